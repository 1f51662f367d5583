"""Diagonals D >= 0 that make a symmetric W positive semidefinite: W + D >= 0.

Three rules:

- `lambda_shift`: D = lambda I;
- `smallest_trace`: min tr D;
- `smallest_norm`: min lambda with 0 <= W + D <= lambda I, and among such D one of small trace, or any.

The last two are semidefinite programs. Whatever solves them, the D that is returned is feasible, and beside what it
attains stands a lower bound that needs no trust in the solver, because any feasible point of the dual gives one:

    trace:  tr D >= -<W, Z>          Z >= 0, Z_ii <= 1
    norm:   lambda >= <W, Y - Z>     Y >= 0, tr Y = 1, Z >= 0, Z_ii <= Y_ii

Everything is computed for W / scale, scale = max_i sum_j |W_ij|, where the eigenvalues of W lie in [-1, 1] and D = I
is feasible.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from discrax.core.checks import describe, number, whole
from discrax.curvature.matrices import Solution, checked_matrix, dense, import_solver, relative_gap, smallest_eigenvalue
from discrax.curvature.norm import admm_norm, closed_norm
from discrax.curvature.semidefinite import sdp_norm, sdp_trace
from discrax.curvature.trace import closed_trace, low_rank_trace

TRACE_METHODS = ("auto", "low_rank", "sdp")
NORM_METHODS = ("auto", "admm", "sdp")
TIES = ("trace", "none")  # among D of one norm
WORST_GAP = 0.05  # a wider gap is an error
LARGEST_ADMM = 1000


class Diagonal(NamedTuple):
    """The diagonal of D, and how good it is."""

    values: np.ndarray
    rule: str
    method: str
    objective: float  # tr D for the rule `trace`, lambda for the others
    bound: float  # no D does better than this
    gap: float  # (objective - bound) / objective
    iterations: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.rule} diagonal of {len(self.values)} sites: objective {self.objective:.6g}, at most "
            f"{max(self.gap, 0):.1e} above the best ({self.method}, {self.iterations} iterations, {self.seconds:.2f} s)"
        )


def lambda_shift(W: Any, *, floor: float = 1e-3) -> Diagonal:
    """D = lambda I with lambda = max(floor, -lambda_min(W))."""
    begin = time.perf_counter()
    W, scale = check_and_scale(W)
    number("The floor of the shift", floor, least=0)
    lower, upper = smallest_eigenvalue(W)
    objective, bound = max(floor, -scale * lower), max(floor, -scale * upper)
    solution = Solution(np.full(W.shape[0], objective / scale), objective / scale, bound / scale, 1)
    return report(solution, "shift", "eigenvalue", scale, 1.0, begin)


def smallest_trace(W: Any, *, method: str = "auto", tolerance: float = 1e-3, max_sweeps: int = 2000) -> Diagonal:
    """The D of smallest trace, to a relative gap of `tolerance`.

    `auto` answers in closed form where it can (W >= 0; signs s with s_i W_ij s_j <= 0 and no row dominated by its
    diagonal, as on every bipartite graph with couplings of one sign), else by `low_rank`, which takes seconds for
    10,000 sparse or 2000 dense sites.

    `sdp` is the interior-point solver Clarabel, for checking: its gap is near 1e-8, but it is slow. On one core it took
    1.5 s for 50 dense sites and 44 s for 100. Sparse W it decomposes along a chordal graph: square lattices took 3 s
    for 20 x 20 and 54 s (1.7 GB) for 40 x 40, Barabasi-Albert graphs with 4 edges per new site 10 s for 200 sites and
    144 s (3.2 GB) for 400.
    """
    begin = time.perf_counter()
    W, scale = check_and_scale(W)
    check_options(method, TRACE_METHODS, tolerance, max_sweeps)
    solution = closed_trace(W) if method == "auto" else None
    if solution is not None:
        method = "closed"
    elif method == "sdp":
        solution = sdp_trace(W, tolerance)
    else:
        method = "low_rank"
        solution = low_rank_trace(W, tolerance, max_sweeps)
    return report(solution, "trace", method, scale, float(W.shape[0]), begin)


def smallest_norm(
    W: Any, *, method: str = "auto", tolerance: float = 1e-3, max_iterations: int = 2000, ties: str = "trace"
) -> Diagonal:
    """The D of smallest lambda with 0 <= W + D <= lambda I; of those within `tolerance`, one of small trace.

    With ties="none" the trace does not count: the D with which the search ended.

    `auto` answers at once where W >= 0 or W is diagonal, else by `admm`, which takes hundreds of eigendecompositions:
    12 s for 400 sites, minutes for 1000, which is the most it accepts. `sdp` is the interior-point solver
    Clarabel, for checking; it takes two to three times as long as for the trace.
    """
    begin = time.perf_counter()
    W, scale = check_and_scale(W)
    check_options(method, NORM_METHODS, tolerance, max_iterations)
    if not isinstance(ties, str) or ties not in TIES:
        raise ValueError(f"ties must be {' or '.join(map(repr, TIES))}, but got {describe(ties)}.")
    num_sites = W.shape[0]
    if num_sites > LARGEST_ADMM:
        raise ValueError(
            f"The norm rule takes matrices of up to {LARGEST_ADMM} sites, but got {num_sites}; use smallest_trace."
        )
    W = dense(W)
    solution = closed_norm(W) if method == "auto" else None
    if solution is not None:
        method = "closed"
    elif method == "sdp":
        solution = sdp_norm(W, tolerance, ties)
    else:
        method = "admm"
        solution = admm_norm(W, tolerance, max_iterations, ties)
    return report(solution, "norm", method, scale, 1.0, begin)


def check_and_scale(W: Any) -> tuple[Any, float]:
    """W / scale in double precision, as a CSR array if it came sparse, and the scale."""
    W = checked_matrix(W, tolerance=1e-6)
    W = import_solver("scipy.sparse").csr_array(W, dtype=float) if hasattr(W, "tocsr") else W
    W = (W + W.T) / 2
    scale = float(abs(W).sum(axis=1).max()) or 1.0
    return W / scale, scale


def check_options(method: str, methods: tuple[str, ...], tolerance: float, max_iterations: int) -> None:
    """A known method, a relative gap and a positive number of iterations, or a sentence."""
    if not isinstance(method, str) or method not in methods:
        raise ValueError(f"method must be one of {', '.join(methods)}, but got {describe(method)}.")
    number("The tolerance, a relative gap,", tolerance, above=0, below=1)
    whole("The number of sweeps or iterations", max_iterations, least=1, most=10**9)


def report(solution: Solution, rule: str, method: str, scale: float, of_identity: float, begin: float) -> Diagonal:
    """The solution for W / scale as one for W; `of_identity` is the objective of D = I."""
    gap = relative_gap(solution.objective, solution.bound, of_identity)
    if gap > WORST_GAP:
        raise RuntimeError(
            f"The {rule} rule by {method} ended {gap:.1%} above its lower bound after {solution.iterations} "
            "iterations; allow more of them, or use lambda_shift."
        )
    objective, bound = scale * float(solution.objective), scale * float(solution.bound)
    seconds = time.perf_counter() - begin
    return Diagonal(scale * solution.values, rule, method, objective, bound, float(gap), solution.iterations, seconds)
