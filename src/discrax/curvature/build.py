"""From W and a rule for D to a metric with the cheapest factor of W + D."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from discrax.curvature.diagonal import Diagonal, lambda_shift, smallest_norm, smallest_trace
from discrax.curvature.hessian import Hessian
from discrax.curvature.metric import DenseRoot, Edges, Metric, NoNoise, SparseRoot

RULES = {
    "shift": lambda_shift,
    "max": smallest_norm,
    "max, any": partial(smallest_norm, ties="none"),  # of those with that norm
    "trace": smallest_trace,
}
LARGEST_DENSE = 1000  # beyond it a step by a dense root, O(n^2), is not worth its price where W is sparse
_NEARLY = 1.05  # a D whose trace is this near to the best is as good
_WIDEST = 3  # times as many entries in the fullest row or column of a sparse root as in that of W


def build_metric(hessian: Hessian, rule: str, *, exact_ratios: bool) -> tuple[Metric, str]:
    """The metric of W with the diagonal of a rule, and a sentence about it.

    Where a target has exact log-ratios they hold the diagonal of W already, so D takes it over: the proposal subtracts
    the diagonal of W + D instead of D.
    """
    W = hessian.matrix
    if rule == "diagonal":
        values = np.zeros(W.shape[0]) if exact_ratios else -W.diagonal()
        return NoNoise(jnp.asarray(values, jnp.result_type(float))), f"{hessian.origin}; its diagonal"
    n, is_sparse = W.shape[0], hasattr(W, "tocoo")
    found: Diagonal = RULES[rule](W)
    if not is_sparse or n <= LARGEST_DENSE:
        dense = np.asarray(W.todense() if is_sparse else W, float)
        total = dense + np.diag(found.values)
        subtracted = np.diag(total) if exact_ratios else found.values
        return DenseRoot.of(total, subtracted), f"{hessian.origin}; {found}; dense root"
    return _sparse_metric(W, found, hessian.origin, exact_ratios)


def _sparse_metric(W: Any, found: Diagonal, origin: str, exact_ratios: bool) -> tuple[Metric, str]:
    from scipy.sparse import triu

    own = W.diagonal()
    upper = triu(W, 1).tocoo()
    edges, weights = np.stack([upper.row, upper.col], 1), np.asarray(upper.data, float)
    strength = np.bincount(edges.reshape(-1), np.repeat(np.abs(weights), 2), minlength=len(own))
    dominant = np.maximum(np.maximum(found.values, strength - own), 0)  # the smallest D >= D_found that edges allow
    price = dominant.sum() / max(found.values.sum(), 1e-30)
    if price > _NEARLY:
        root = _sparse_cholesky(W, found.values)
        if root is not None:
            rows, columns, values = root
            subtracted = found.values + own if exact_ratios else found.values
            metric = SparseRoot.of(rows, columns, values, subtracted)
            return metric, f"{origin}; {found}; sparse Cholesky root"
    metric = Edges.of(edges, weights, dominant + own, dominant + own if exact_ratios else dominant)
    return metric, f"{origin}; {found}; factor by edges, for which tr D is {price:.2f} times as large"


def _sparse_cholesky(W: Any, diagonal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Rows, columns and values of L with L L' = W + D (+ a little), or None where L is much fuller than W.

    Rows are padded to the fullest, so that is what counts. Chains, trees and narrow bands stay sparse; a grid does not.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    scale = float(np.abs(diagonal).max()) or 1.0
    M = (W + diags_array(diagonal + 1e-6 * scale)).tocsc()
    factor = splu(M, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    pivots = factor.U.diagonal()
    entries = factor.L.tocoo()
    widest = max(np.bincount(entries.row).max(), np.bincount(entries.col).max())
    limit = _WIDEST * np.diff(M.indptr).max()
    if widest > limit or (pivots <= 0).any() or (factor.perm_r != factor.perm_c).any():
        return None
    back = np.argsort(factor.perm_c)  # row i of the permuted matrix is row back[i] of M
    return back[entries.row], entries.col.copy(), entries.data * np.sqrt(pivots)[entries.col]
