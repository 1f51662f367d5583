"""Both programs by the interior-point solver Clarabel, for checking."""

from typing import Any

import numpy as np

from discrax.curvature.matrices import Solution, import_solver, lift, relative_gap, rescale
from discrax.curvature.norm import feasible, norm_bound, price_of_trace


def sdp_trace(W: Any, tolerance: float) -> Solution:
    """The smallest trace."""
    num_sites = W.shape[0]
    values, (Z,), iterations = solve_by_clarabel(W, np.ones(num_sites))
    values = lift(W, values, tolerance)
    Z = rescale(positive_part(Z), np.ones(num_sites))
    return Solution(values, values.sum(), -float((W * Z).sum()), iterations)


def sdp_norm(W: Any, tolerance: float, ties: str = "trace") -> Solution:
    """Minimises lambda + price tr D, at a lower price where that one costs more of lambda than the tolerance."""
    price = price_of_trace(W, tolerance) if ties == "trace" else 0.0
    lowest_price = price / 1000
    while True:
        solution, (Z, Y), iterations = solve_by_clarabel(W, np.append(np.full(W.shape[0], price), 1.0))
        values, objective = feasible(W, solution[:-1])
        bound = norm_bound(W, positive_part(Y), positive_part(Z))
        if relative_gap(objective, bound, 1.0) <= tolerance or price <= lowest_price:
            return Solution(values, objective, bound, iterations)
        price /= 10


def solve_by_clarabel(W: Any, cost: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], int]:
    """The D >= 0 of least cost with W + D >= 0; the (D, lambda) with W + D <= lambda I too if there are d + 1 costs.

    Beside it the multipliers of these inequalities and the number of iterations. Clarabel takes A x + s = b with s in
    a product of cones; a symmetric matrix is the stacked columns of its upper triangle, entries off the diagonal times
    sqrt 2.
    """
    clarabel, sparse = import_solver("clarabel"), import_solver("scipy.sparse")
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
    return np.maximum(0, solution.x), [unstack(row, num_sites) for row in multipliers], solution.iterations


def unstack(stacked: np.ndarray, num_sites: int) -> np.ndarray:
    """The symmetric matrix of Clarabel's vector."""
    column, row = np.tril_indices(num_sites)  # the lower triangle by rows is the upper by columns
    Z = np.zeros((num_sites, num_sites))
    Z[row, column] = Z[column, row] = stacked / np.where(row < column, np.sqrt(2), 1)
    return Z


def positive_part(Z: np.ndarray) -> np.ndarray:
    """Z without its negative eigenvalues."""
    eigenvalues, Q = np.linalg.eigh(Z)
    return (Q * np.maximum(0, eigenvalues)) @ Q.T
