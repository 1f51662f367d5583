"""The diagonal of smallest trace: min tr D with W + D >= 0."""

from itertools import pairwise
from typing import Any

import numpy as np

from discrax.core.sparse import greedy_colouring
from discrax.curvature.matrices import ROUNDING, Solution, lift, off_diagonal, relative_gap, smallest_eigenvalue

OVERSHOOT = 1.8
CHECKED_SWEEPS = {int(10 * 1.4**k) for k in range(40)}


def closed_trace(W: Any) -> Solution | None:
    """The answer where it has a formula.

    If s_i W_ij s_j = -|W_ij| off the diagonal, Z = s s' bounds tr D by the sum of sum_j |W_ij| - W_ii, and these, where
    none is negative, make W + D diagonally dominant.
    """
    sites = W.diagonal()
    graph = off_diagonal(W)
    if graph.nnz == 0:
        values = np.maximum(0, -sites)
        return Solution(values, values.sum(), values.sum(), 0)
    values = abs(graph).sum(axis=1) - sites
    if values.min() >= -ROUNDING and opposing_signs(graph) is not None:
        return Solution(np.maximum(0, values), np.maximum(0, values).sum(), values.sum(), 0)
    if sites.min() >= 0 and smallest_eigenvalue(W)[1] >= -ROUNDING:
        return Solution(np.zeros(len(sites)), 0.0, 0.0, 0)
    return None


def opposing_signs(graph: Any) -> np.ndarray | None:
    """s in {-1, 1} with s_i W_ij s_j < 0 along every edge, or None if there is none."""
    signs = np.zeros(graph.shape[0])
    for root in range(len(signs)):
        if signs[root]:
            continue
        signs[root] = 1
        reached = [root]
        while reached:
            i = reached.pop()
            row = slice(graph.indptr[i], graph.indptr[i + 1])
            neighbours, wanted = graph.indices[row], -signs[i] * np.sign(graph.data[row])
            known = signs[neighbours]
            if np.any(known * wanted < 0):
                return None
            signs[neighbours] = wanted
            reached.extend(neighbours[known == 0])
    return signs


def low_rank_trace(W: Any, tolerance: float, max_sweeps: int) -> Solution:
    """Coordinate ascent on Z = VV', rows v_i in R^r with |v_i| <= 1 and r = ceil(sqrt(2 d)) + 1.

    With h_i = -sum_{j != i} W_ij v_j the best v_i given the others is h_i / max(W_ii, |h_i|). Each update goes there
    and beyond, by the factor OVERSHOOT, then back into the ball: that raises -<W, Z> too, and needs far fewer sweeps.
    Sites of one colour are updated at once. At the optimum D_ii = max(0, |h_i| - W_ii).
    """
    num_sites = W.shape[0]
    graph = off_diagonal(W)
    colours = greedy_colouring(graph.indptr, graph.indices)
    order = np.argsort(colours, kind="stable")
    W, graph, sites = W[order][:, order], graph[order][:, order], W.diagonal()[order]
    ends = np.cumsum(np.bincount(colours))
    if len(ends) > num_sites / 4:
        graph = graph.toarray()
    blocks = [slice(begin, end) for begin, end in pairwise([0, *ends])]
    rows = [-graph[block] for block in blocks]
    V = np.random.default_rng(0).standard_normal((num_sites, int(np.ceil(np.sqrt(2 * num_sites))) + 1))
    V /= lengths(V)
    best, bound, sweep = np.full(num_sites, np.inf), -np.inf, 0
    for sweep in range(1, max_sweeps + 1):
        for block, row in zip(blocks, rows, strict=True):
            V[block] = move_rows(V[block], row @ V, sites[block, None])
        if sweep not in CHECKED_SWEEPS and sweep < max_sweeps:
            continue
        H = -(graph @ V)
        bound = max(bound, np.vdot(H, V) - sites @ (V * V).sum(axis=1))
        values = np.maximum(0, lengths(H)[:, 0] - sites)
        if relative_gap(values.sum(), bound, num_sites) <= tolerance or sweep == max_sweeps:
            best = min(best, lift(W, values, tolerance), key=np.sum)
            if relative_gap(best.sum(), bound, num_sites) <= tolerance:
                break
    values = np.empty(num_sites)
    values[order] = best
    return Solution(values, values.sum(), bound, sweep)


def lengths(rows: np.ndarray) -> np.ndarray:
    """Of each row, as a column."""
    return np.sqrt(np.einsum("ik,ik->i", rows, rows))[:, None]


def move_rows(V: np.ndarray, H: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """The rows v_i after one update each, given h_i and W_ii; v_i stays where h_i = 0 and W_ii <= 0."""
    size = lengths(H)
    pivot = np.maximum(size, sites)
    best = np.divide(H, pivot, out=V.copy(), where=pivot > 0)
    moved = V + OVERSHOOT * (best - V)
    length = lengths(moved)
    return moved / np.where(sites < size, length, np.maximum(length, 1))
