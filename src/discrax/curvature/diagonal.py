"""Diagonals D >= 0 that make a symmetric W positive semidefinite: W + D >= 0.

Three rules:

- `lambda_shift`: D = lambda I;
- `smallest_trace`: min tr D;
- `smallest_norm`: min lambda with 0 <= W + D <= lambda I, and among such D one of small trace.

The last two are semidefinite programs. Whatever solves them, the D that is returned is feasible, and beside what it
attains stands a lower bound that needs no trust in the solver, because any feasible point of the dual gives one:

    trace:  tr D >= -<W, Z>          Z >= 0, Z_ii <= 1
    norm:   lambda >= <W, Y - Z>     Y >= 0, tr Y = 1, Z >= 0, Z_ii <= Y_ii

Everything is computed for W / scale, scale = max_i sum_j |W_ij|, where the eigenvalues of W lie in [-1, 1] and D = I
is feasible.
"""

import time
from importlib import import_module
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from discrax.core.checks import describe, number, real_array, whole
from discrax.core.sparse import greedy_colouring

TRACE_METHODS = ("auto", "low_rank", "sdp")
NORM_METHODS = ("auto", "admm", "sdp")
WORST_GAP = 0.05  # a wider gap is an error
LARGEST_DENSE = 1500  # up to here all eigenvalues are computed, beyond it the smallest by Lanczos
LARGEST_ADMM = 1000
OVERSHOOT = 1.8
CHECKED_SWEEPS = {int(10 * 1.4**k) for k in range(40)}
CHECK_EVERY = 10  # iterations of ADMM
TIE_ITERATIONS = 200  # of ADMM, for a smaller trace, once lambda is within the tolerance
_ROUNDING = 1e-7  # of the eigenvalues of W / scale
_TINY = 1e-6  # D = _TINY I counts as nothing where gaps are relative


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


class Solution(NamedTuple):
    """What a solver found for W / scale."""

    values: np.ndarray
    objective: float
    bound: float
    iterations: int


def lambda_shift(W: Any, *, floor: float = 1e-3) -> Diagonal:
    """D = lambda I with lambda = max(floor, -lambda_min(W))."""
    begin = time.perf_counter()
    W, scale = checked(W)
    number("The floor of the shift", floor, least=0)
    lower, upper = smallest_eigenvalue(W)
    objective, bound = max(floor, -scale * lower), max(floor, -scale * upper)
    solution = Solution(np.full(W.shape[0], objective / scale), objective / scale, bound / scale, 1)
    return reported(solution, "shift", "eigenvalue", scale, 1.0, begin)


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
    W, scale = checked(W)
    check_options(method, TRACE_METHODS, tolerance, max_sweeps)
    solution = closed_trace(W) if method == "auto" else None
    if solution is not None:
        method = "closed"
    elif method == "sdp":
        solution = sdp_trace(W, tolerance)
    else:
        method = "low_rank"
        solution = low_rank_trace(W, tolerance, max_sweeps)
    return reported(solution, "trace", method, scale, float(W.shape[0]), begin)


def smallest_norm(W: Any, *, method: str = "auto", tolerance: float = 1e-3, max_iterations: int = 2000) -> Diagonal:
    """The D of smallest lambda with 0 <= W + D <= lambda I; of those within `tolerance`, one of small trace.

    `auto` answers at once where W >= 0 or W is diagonal, else by `admm`, which takes hundreds of eigendecompositions:
    12 s for 400 sites, minutes for 1000, which is the most it accepts. `sdp` is the interior-point solver
    Clarabel, for checking; it takes two to three times as long as for the trace.
    """
    begin = time.perf_counter()
    W, scale = checked(W)
    check_options(method, NORM_METHODS, tolerance, max_iterations)
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
        solution = sdp_norm(W, tolerance)
    else:
        method = "admm"
        solution = admm_norm(W, tolerance, max_iterations)
    return reported(solution, "norm", method, scale, 1.0, begin)


# Input and output.


def checked(W: Any) -> tuple[Any, float]:
    """W / scale in double precision, as a CSR array if it came sparse, and the scale."""
    is_sparse = hasattr(W, "tocsr")
    if is_sparse:
        real_array("W", W.data)
    W = needed("scipy.sparse").csr_array(W, dtype=float) if is_sparse else real_array("W", W)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise ValueError(f"W is a square matrix, but got one of shape {W.shape}.")
    largest = abs(W).max()
    asymmetry = abs(W - W.T).max()
    if asymmetry > 1e-6 * largest:
        raise ValueError(f"W is symmetric, but got W - W.T of up to {asymmetry:.3g}; pass (W + W.T) / 2.")
    W = (W + W.T) / 2
    scale = float(abs(W).sum(axis=1).max()) or 1.0
    return W / scale, scale


def check_options(method: str, methods: tuple[str, ...], tolerance: float, max_iterations: int) -> None:
    if not isinstance(method, str) or method not in methods:
        raise ValueError(f"method must be one of {', '.join(methods)}, but got {describe(method)}.")
    number("The tolerance, a relative gap,", tolerance, above=0, below=1)
    whole("The number of sweeps or iterations", max_iterations, least=1, most=10**9)


def reported(solution: Solution, rule: str, method: str, scale: float, of_identity: float, begin: float) -> Diagonal:
    """The solution for W / scale as one for W; `of_identity` is the objective of D = I."""
    gap = relative_gap(solution.objective, solution.bound, of_identity)
    if gap > WORST_GAP:
        raise RuntimeError(
            f"The {rule} rule by {method} ended {gap:.1%} above its lower bound after {solution.iterations} "
            "iterations; allow more of them, or use lambda_shift."
        )
    return Diagonal(
        scale * solution.values,
        rule,
        method,
        scale * float(solution.objective),
        scale * float(solution.bound),
        float(gap),
        solution.iterations,
        time.perf_counter() - begin,
    )


def relative_gap(objective: float, bound: float, of_identity: float) -> float:
    return (objective - bound) / max(abs(objective), _TINY * of_identity)


def needed(module: str) -> Any:
    """A module of the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(f'Diagonals need {package}, which is missing: pip install "discrax[curvature]".') from error


# Matrices, dense or CSR.


def dense(W: Any) -> np.ndarray:
    return W if isinstance(W, np.ndarray) else W.toarray()


def plus_diagonal(W: Any, values: np.ndarray) -> Any:
    return W + (np.diag(values) if isinstance(W, np.ndarray) else needed("scipy.sparse").diags_array(values))


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
    eigsh = needed("scipy.sparse.linalg").eigsh
    (value,), vectors = eigsh(shifted, k=1, which="LM", tol=accuracy / 4, v0=start, ncv=32)
    residual = np.linalg.norm(shifted @ vectors[:, 0] - value * vectors[:, 0])
    return float(value + 3 - residual), float(value + 3)


def lifted(W: Any, values: np.ndarray, tolerance: float) -> np.ndarray:
    """The smallest values + t I, t >= 0, with W + D >= 0, up to a hundredth of the tolerance in their sum."""
    accuracy = max(1e-10, tolerance / 100 * values.mean())
    lower, _ = smallest_eigenvalue(plus_diagonal(W, values), accuracy)
    return values + max(0.0, -lower)


# The smallest trace.


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
    if values.min() >= -_ROUNDING and opposing_signs(graph) is not None:
        return Solution(np.maximum(0, values), np.maximum(0, values).sum(), values.sum(), 0)
    if sites.min() >= 0 and smallest_eigenvalue(W)[1] >= -_ROUNDING:
        return Solution(np.zeros(len(sites)), 0.0, 0.0, 0)
    return None


def off_diagonal(W: Any) -> Any:
    graph = needed("scipy.sparse").csr_array(W)
    graph = plus_diagonal(graph, -graph.diagonal()).tocsr()
    graph.eliminate_zeros()
    return graph


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
            V[block] = moved(V[block], row @ V, sites[block, None])
        if sweep not in CHECKED_SWEEPS and sweep < max_sweeps:
            continue
        H = -(graph @ V)
        bound = max(bound, np.vdot(H, V) - sites @ (V * V).sum(axis=1))
        values = np.maximum(0, lengths(H)[:, 0] - sites)
        if relative_gap(values.sum(), bound, num_sites) <= tolerance or sweep == max_sweeps:
            best = min(best, lifted(W, values, tolerance), key=np.sum)
            if relative_gap(best.sum(), bound, num_sites) <= tolerance:
                break
    values = np.empty(num_sites)
    values[order] = best
    return Solution(values, values.sum(), bound, sweep)


def lengths(rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ik,ik->i", rows, rows))[:, None]


def moved(V: np.ndarray, H: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """The rows v_i after one update each, given h_i and W_ii; v_i stays where h_i = 0 and W_ii <= 0."""
    size = lengths(H)
    pivot = np.maximum(size, sites)
    best = np.divide(H, pivot, out=V.copy(), where=pivot > 0)
    moved = V + OVERSHOOT * (best - V)
    length = lengths(moved)
    return moved / np.where(sites < size, length, np.maximum(length, 1))


# The smallest norm.


def closed_norm(W: np.ndarray) -> Solution | None:
    """The answer for a W that is diagonal or positive semidefinite already."""
    eigenvalues = np.linalg.eigvalsh(W)
    largest = max(0.0, eigenvalues[-1])
    if eigenvalues[0] >= -_ROUNDING:
        return Solution(np.zeros(len(W)), largest, largest, 0)
    if off_diagonal(W).nnz == 0:
        return Solution(np.maximum(0, -W.diagonal()), largest, largest, 0)
    return None


def admm_norm(W: np.ndarray, tolerance: float, max_iterations: int) -> Solution:
    """Alternates between X = W + D and 0 <= X <= lambda I, minimising lambda + price tr D, from the shift.

    It ends when lambda is within the tolerance and the sum of both is settled, or TIE_ITERATIONS after the former; if
    the sum is settled first, the price was too high. Of the D met within the tolerance the one of smallest trace is
    returned.
    """
    price = price_of_trace(W, tolerance)
    shift, largest = feasible(W, np.zeros(len(W)))
    bound = least = np.linalg.eigvalsh(W)[-1]
    values, U, rho = shift, np.zeros_like(W), 10 / len(W)
    met = [(largest, shift)]
    within_tolerance = iteration = 0
    for iteration in range(1, max_iterations + 1):
        X = plus_diagonal(W, values)
        eigenvalues, Q = np.linalg.eigh(X + U)
        top = level(eigenvalues, 1 / rho)
        P = (Q * np.clip(eigenvalues, 0, top)) @ Q.T
        U = X + U - P
        before, values = values, np.maximum(0, P.diagonal() - U.diagonal() - W.diagonal() - price / rho)
        if iteration % CHECK_EVERY and iteration < max_iterations:
            continue
        repaired, largest = feasible(W, values)
        met.append((largest, repaired))
        Y, Z = (Q * np.maximum(0, eigenvalues - top)) @ Q.T, (Q * np.maximum(0, -eigenvalues)) @ Q.T
        bound, least = max(bound, norm_bound(W, Y, Z)), max(least, norm_bound(W, Y, Z, price))
        is_settled = relative_gap(largest + price * repaired.sum(), least, 1.0) <= tolerance / 20
        if relative_gap(min(met, key=itemgetter(0))[0], bound, 1.0) <= tolerance:
            within_tolerance = within_tolerance or iteration
            if is_settled or iteration >= within_tolerance + TIE_ITERATIONS:
                break
        elif is_settled:
            price, least = price / 4, bound
        residual = np.linalg.norm(X - P) * np.linalg.norm(U)
        change = np.linalg.norm(values - before) * np.linalg.norm(P)
        factor = 2.0 if residual > 2 * change else 0.5 if change > 2 * residual else 1.0
        rho, U = rho * factor, U / factor
    good = [pair for pair in met if relative_gap(pair[0], bound, 1.0) <= tolerance] or [min(met, key=itemgetter(0))]
    objective, values = min(good, key=lambda pair: pair[1].sum())
    return Solution(values, objective, bound, iteration)


def price_of_trace(W: np.ndarray, tolerance: float) -> float:
    """The price at which a tenth of the shift's trace is worth as much as the tolerance of lambda."""
    shift, largest = feasible(W, np.zeros(len(W)))
    return 10 * tolerance * largest / shift.sum()


def norm_bound(W: np.ndarray, Y: np.ndarray, Z: np.ndarray, price: float = 0.0) -> float:
    """The lower bound of lambda + price tr D by Y, Z >= 0, after scaling to tr Y = 1 and Z_ii <= Y_ii + price."""
    mass = np.trace(Y)
    return np.vdot(W, Y / mass - rescaled(Z / mass, Y.diagonal() / mass + price)) if mass > 0 else -np.inf


def level(eigenvalues: np.ndarray, excess: float) -> float:
    """The lambda >= 0 with sum_i max(0, a_i - lambda) = excess."""
    falling = np.sort(eigenvalues)[::-1]
    return max(0.0, float(np.max((np.cumsum(falling) - excess) / np.arange(1, len(falling) + 1))))


def rescaled(Z: np.ndarray, most: np.ndarray) -> np.ndarray:
    """S Z S with a diagonal S <= I such that no Z_ii exceeds its `most`; Z >= 0 stays so."""
    sites = Z.diagonal()
    shrink = np.sqrt(np.divide(most, sites, out=np.ones(len(Z)), where=sites > most))
    return shrink[:, None] * Z * shrink


def feasible(W: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """values + t I, t >= 0, with W + D >= 0, and the largest eigenvalue of that."""
    eigenvalues = np.linalg.eigvalsh(plus_diagonal(W, values))
    lift = max(0.0, -eigenvalues[0])
    return values + lift, float(eigenvalues[-1] + lift)


# Clarabel.


def sdp_trace(W: Any, tolerance: float) -> Solution:
    num_sites = W.shape[0]
    values, (Z,), iterations = clarabel_solution(W, np.ones(num_sites))
    values = lifted(W, values, tolerance)
    Z = rescaled(positive_part(Z), np.ones(num_sites))
    return Solution(values, values.sum(), -float((W * Z).sum()), iterations)


def sdp_norm(W: Any, tolerance: float) -> Solution:
    """Minimises lambda + price tr D, at a lower price where that one costs more of lambda than the tolerance."""
    price = price_of_trace(W, tolerance)
    lowest_price = price / 1000
    while True:
        solution, (Z, Y), iterations = clarabel_solution(W, np.append(np.full(W.shape[0], price), 1.0))
        values, objective = feasible(W, solution[:-1])
        bound = norm_bound(W, positive_part(Y), positive_part(Z))
        if relative_gap(objective, bound, 1.0) <= tolerance or price < lowest_price:
            return Solution(values, objective, bound, iterations)
        price /= 10


def clarabel_solution(W: Any, cost: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], int]:
    """The D >= 0 of least cost with W + D >= 0; the (D, lambda) with W + D <= lambda I too if there are d + 1 costs.

    Beside it the multipliers of these inequalities and the number of iterations. Clarabel takes A x + s = b with s in
    a product of cones; a symmetric matrix is the stacked columns of its upper triangle, entries off the diagonal times
    sqrt 2.
    """
    clarabel, sparse = needed("clarabel"), needed("scipy.sparse")
    num_sites = W.shape[0]
    num_matrices = 1 + len(cost) - num_sites
    size = num_sites * (num_sites + 1) // 2
    upper = sparse.triu(sparse.csr_array(W)).tocoo()
    stacked = np.zeros(size)
    stacked[upper.col * (upper.col + 1) // 2 + upper.row] = upper.data * np.where(upper.row < upper.col, np.sqrt(2), 1)
    columns = np.arange(num_sites)
    diagonal = sparse.csc_array((np.ones(num_sites), (columns * (columns + 3) // 2, columns)), shape=(size, num_sites))
    nonnegative = sparse.eye_array(num_sites)
    if num_matrices == 1:
        A = sparse.vstack([-diagonal, -nonnegative])
    else:
        identity = sparse.csc_array(diagonal.sum(axis=1)[:, None])
        A = sparse.block_array([[-diagonal, None], [diagonal, -identity], [-nonnegative, None]])
    b = np.concatenate([*[stacked, -stacked][:num_matrices], np.zeros(num_sites)])
    cones = [clarabel.PSDTriangleConeT(num_sites)] * num_matrices + [clarabel.NonnegativeConeT(num_sites)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    no_quadratic = sparse.csc_matrix((len(cost), len(cost)))
    solution = clarabel.DefaultSolver(no_quadratic, cost, sparse.csc_matrix(A), b, cones, settings).solve()
    if str(solution.status) != "Solved":
        raise RuntimeError(f"Clarabel ended with {solution.status}, not with a solution; use another method.")
    multipliers = np.array(solution.z)[: num_matrices * size].reshape(num_matrices, size)
    return np.maximum(0, solution.x), [unstacked(row, num_sites) for row in multipliers], solution.iterations


def unstacked(stacked: np.ndarray, num_sites: int) -> np.ndarray:
    """The symmetric matrix of Clarabel's vector."""
    column, row = np.tril_indices(num_sites)  # the lower triangle by rows is the upper by columns
    Z = np.zeros((num_sites, num_sites))
    Z[row, column] = Z[column, row] = stacked / np.where(row < column, np.sqrt(2), 1)
    return Z


def positive_part(Z: np.ndarray) -> np.ndarray:
    eigenvalues, Q = np.linalg.eigh(Z)
    return (Q * np.maximum(0, eigenvalues)) @ Q.T
