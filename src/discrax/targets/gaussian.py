"""Gaussians on a grid of integers: quadratic targets with a coupling -Q.

    log pi(x) = -(x - b)' Q (x - b) / 2 + const,      x in {0 .. num_levels - 1}^d,      Q positive definite
              = -x' Q x / 2 + (Q b)' x + const

The two random families are those of "Any-scale balanced samplers" (Sun et al., 2023). With a spectrum that falls from
sqrt(L) to 1 / sqrt(L), L the condition number,

    lam_i = sqrt(L) / (1 + (L - 1) i / (d - 1)),      i = 0 .. d - 1,

`rotation` has Q = P diag(lam) P' with P a random orthogonal matrix, and `sparse` has Q = diag(lam)^(1/2) M
diag(lam)^(1/2) with M = I + N(0, 0.04) between neighbours on a cycle. (The paper prints another diagonal for `sparse`,
of which L is not the condition number; and a Q of the other sign, which has its mode in the corners.)
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments, real_array
from discrax.core.space import Ordinal
from discrax.targets.coupling import Dense, as_edges
from discrax.targets.quadratic import Quadratic
from discrax.targets.sparse_coupling import Sparse

_MOST_DRAWS = 1000  # of M, until one is positive definite


class LatticeGaussian(Quadratic):
    """log pi(x) = -(x - b)' Q (x - b) / 2 up to a constant, with x in {0 .. num_levels - 1}^d."""

    @classmethod
    @checked_arguments
    def from_matrix(cls, Q: Any, num_levels: int = 21, centre: ArrayLike = 0.0) -> "LatticeGaussian":
        """From a positive definite Q, dense or scipy.sparse; `centre` is b, a number or one per site."""
        if hasattr(Q, "tocoo"):
            edges, weights, n = as_edges(Q)
            coupling, diagonal = Sparse(edges, -np.asarray(weights), (n,)), Q.diagonal()
        else:
            Q = real_array("Q", Q)
            coupling = Dense(-Q)
            n, diagonal = len(Q), np.diag(Q)
        if not (diagonal > 0).all():
            raise ValueError(
                f"Q must be positive definite, but its diagonal holds {diagonal.min():.3g}; "
                "log pi is -(x - b)' Q (x - b) / 2, so check the sign of Q."
            )
        return cls._of(Ordinal(n, np.arange(num_levels)), coupling, Q @ _centre(centre, n))

    @classmethod
    @checked_arguments
    def rotation(
        cls, seed: int, dimension: int = 100, condition: float = 10, num_levels: int = 21, centre: ArrayLike = 0.0
    ) -> "LatticeGaussian":
        """Q = P diag(lam) P', P a random orthogonal matrix, lam from sqrt(condition) to 1 / sqrt(condition)."""
        P = random_orthogonal(np.random.default_rng(seed), dimension)
        Q = (P * (_spectrum(dimension, condition) * np.sqrt(condition))) @ P.T
        return cls.from_matrix((Q + Q.T) / 2, num_levels, centre)

    @classmethod
    @checked_arguments
    def sparse(
        cls, seed: int, dimension: int = 100, condition: float = 10, num_levels: int = 21, centre: ArrayLike = 0.0
    ) -> "LatticeGaussian":
        """Q = diag(lam)^(1/2) M diag(lam)^(1/2), M = I + N(0, 0.04) on a cycle, redrawn until positive definite.

        lam, the diagonal of Q, is from 1 to 1 / condition.
        """
        if dimension < 3:
            raise ValueError(f"A cycle needs at least 3 sites, but dimension is {dimension}.")
        rng, sites = np.random.default_rng(seed), np.arange(dimension)
        following = (sites + 1) % dimension
        for _ in range(_MOST_DRAWS):
            around = 0.2 * rng.normal(size=dimension)
            M = np.eye(dimension)
            M[sites, following] = M[following, sites] = around
            if np.linalg.eigvalsh(M)[0] > 0:
                break
        else:
            raise ValueError(
                f"M should be positive definite, but none of {_MOST_DRAWS} draws with {dimension} sites was; "
                "use a smaller dimension."
            )
        root = np.sqrt(_spectrum(dimension, condition))
        Q = root[:, None] * M * root[None, :]
        edges = np.concatenate([np.stack([sites, sites], 1), np.stack([sites, following], 1)])
        coupling = Sparse(edges, -Q[edges[:, 0], edges[:, 1]], (dimension,))
        return cls._of(Ordinal(dimension, np.arange(num_levels)), coupling, Q @ _centre(centre, dimension))


@checked_arguments
def random_orthogonal(rng: np.random.Generator, n: int) -> Float[np.ndarray, "n n"]:
    """A uniformly (Haar) random orthogonal matrix."""
    P, R = np.linalg.qr(rng.normal(size=(n, n)))
    return P * np.sign(np.diag(R))


def _spectrum(dimension: int, condition: float) -> Float[np.ndarray, " n"]:
    if condition < 1:
        raise ValueError(f"A condition number is at least 1, but got {condition}.")
    return 1 / (1 + (condition - 1) * np.linspace(0, 1, dimension))


def _centre(centre: ArrayLike, n: int) -> Float[np.ndarray, " n"]:
    centre = real_array("The centre", centre)
    if centre.shape not in ((), (n,)):
        raise ValueError(f"The centre is a number or one per site ({n}), but has shape {centre.shape}.")
    return np.broadcast_to(centre, (n,))
