"""Symmetric matrices, dense or CSR, and what the solvers of diagonals have in common."""

from typing import Any, NamedTuple

import numpy as np

from discrax.core.checks import real_array
from discrax.core.extras import import_extra

LARGEST_DENSE = 1500  # up to here all eigenvalues are computed, beyond it the smallest by Lanczos
ROUNDING = 1e-7  # of the eigenvalues of W / scale
_TINY = 1e-6  # D = _TINY I counts as nothing where gaps are relative


class Solution(NamedTuple):
    """What a solver found for W / scale."""

    values: np.ndarray
    objective: float
    bound: float
    iterations: int


def relative_gap(objective: float, bound: float, of_identity: float) -> float:
    """How far an objective is above its bound; `of_identity` is the objective of D = I."""
    return (objective - bound) / max(abs(objective), _TINY * of_identity)


def import_solver(module: str) -> Any:
    """A module of the extra for diagonals."""
    return import_extra(module, "Diagonals need", "curvature")


def checked_matrix(W: Any, name: str = "W", *, tolerance: float = 1e-5) -> Any:
    """A symmetric matrix as numpy array (or scipy.sparse as it is); a ValueError says what is wrong."""
    is_sparse = hasattr(W, "tocoo")
    W = W if is_sparse else real_array(name, W)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError(f"{name} must be a square matrix, but got shape {W.shape}.")
    if is_sparse:
        real_array(name, W.data)
    asymmetry, size = abs(W - W.T).max(), abs(W).max()
    if asymmetry > tolerance * max(size, 1e-30):
        raise ValueError(
            f"{name} must be symmetric, but it differs from its transpose by up to {asymmetry:.3g}; "
            f"pass ({name} + {name}.T) / 2."
        )
    return W


def dense(W: Any) -> np.ndarray:
    """W as a numpy array."""
    return W if isinstance(W, np.ndarray) else W.toarray()


def plus_diagonal(W: Any, values: np.ndarray) -> Any:
    """W + D, sparse where W is."""
    return W + (np.diag(values) if isinstance(W, np.ndarray) else import_solver("scipy.sparse").diags_array(values))


def diagonal_matrix(values: np.ndarray) -> Any:
    """A sparse matrix with these numbers on its diagonal."""
    return import_solver("scipy.sparse").diags_array(values).tocsr()


def smallest_eigenvalue(W: Any, accuracy: float = 1e-6) -> tuple[float, float]:
    """Bounds, no further apart than `accuracy`, of the smallest eigenvalue of a W with eigenvalues in [-1, 2].

    Beyond LARGEST_DENSE by Lanczos for W - 3, where it is the largest in magnitude however many others are near 0: a
    Ritz value is never below the smallest eigenvalue, and an eigenvalue lies within its residual.
    """
    num_sites = W.shape[0]
    if num_sites <= LARGEST_DENSE:
        value = float(np.linalg.eigvalsh(dense(W))[0])
        return value - 1e-14 * num_sites, value
    start = np.random.default_rng(0).standard_normal(num_sites)
    shifted = plus_diagonal(W, np.full(num_sites, -3.0))
    eigsh = import_solver("scipy.sparse.linalg").eigsh
    (value,), vectors = eigsh(shifted, k=1, which="LM", tol=accuracy / 4, v0=start, ncv=32)
    residual = np.linalg.norm(shifted @ vectors[:, 0] - value * vectors[:, 0])
    return float(value + 3 - residual), float(value + 3)


def lift(W: Any, values: np.ndarray, tolerance: float) -> np.ndarray:
    """The smallest values + t I, t >= 0, with W + D >= 0, up to a hundredth of the tolerance in their sum."""
    accuracy = max(1e-10, tolerance / 100 * values.mean())
    lower, _ = smallest_eigenvalue(plus_diagonal(W, values), accuracy)
    return values + max(0.0, -lower)


def off_diagonal(W: Any) -> Any:
    """W without its diagonal, as a CSR array."""
    graph = import_solver("scipy.sparse").csr_array(W)
    graph = plus_diagonal(graph, -graph.diagonal()).tocsr()
    graph.eliminate_zeros()
    return graph


def rescale(Z: np.ndarray, most: np.ndarray) -> np.ndarray:
    """S Z S with a diagonal S <= I such that no Z_ii exceeds its `most`; Z >= 0 stays so."""
    sites = Z.diagonal()
    shrink = np.sqrt(np.divide(most, sites, out=np.ones(len(Z)), where=sites > most))
    return shrink[:, None] * Z * shrink
