"""The diagonal of smallest norm: min lambda with 0 <= W + D <= lambda I, and of such D one of small trace, or any."""

from operator import itemgetter

import numpy as np

from discrax.curvature.matrices import ROUNDING, Solution, off_diagonal, plus_diagonal, relative_gap, rescale

CHECK_EVERY = 10  # iterations of ADMM
TIE_ITERATIONS = 200  # of ADMM, for a smaller trace, once lambda is within the tolerance


def closed_norm(W: np.ndarray) -> Solution | None:
    """The answer for a W that is diagonal or positive semidefinite already."""
    eigenvalues = np.linalg.eigvalsh(W)
    largest = max(0.0, eigenvalues[-1])
    if eigenvalues[0] >= -ROUNDING:
        return Solution(np.zeros(len(W)), largest, largest, 0)
    if off_diagonal(W).nnz == 0:
        return Solution(np.maximum(0, -W.diagonal()), largest, largest, 0)
    return None


def admm_norm(W: np.ndarray, tolerance: float, max_iterations: int, ties: str = "trace") -> Solution:
    """Alternates between X = W + D and 0 <= X <= lambda I, minimising lambda + price tr D, from the shift.

    It ends when lambda is within the tolerance and the sum of both is settled, or TIE_ITERATIONS after the former; if
    the sum is settled first, the price was too high. Of the D met within the tolerance the one of smallest trace is
    returned. With ties="none" the price is 0, it ends when lambda is within the tolerance, and the last D counts.
    """
    price = price_of_trace(W, tolerance) if ties == "trace" else 0.0
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
            if is_settled or ties == "none" or iteration >= within_tolerance + TIE_ITERATIONS:
                break
        elif is_settled:
            price, least = price / 4, bound
        residual = np.linalg.norm(X - P) * np.linalg.norm(U)
        change = np.linalg.norm(values - before) * np.linalg.norm(P)
        factor = 2.0 if residual > 2 * change else 0.5 if change > 2 * residual else 1.0
        rho, U = rho * factor, U / factor
    good = [pair for pair in met if relative_gap(pair[0], bound, 1.0) <= tolerance] or [min(met, key=itemgetter(0))]
    objective, values = min(good, key=lambda pair: pair[1].sum()) if ties == "trace" else good[-1]
    return Solution(values, objective, bound, iteration)


def price_of_trace(W: np.ndarray, tolerance: float) -> float:
    """The price at which a tenth of the shift's trace is worth as much as the tolerance of lambda."""
    shift, largest = feasible(W, np.zeros(len(W)))
    return 10 * tolerance * largest / shift.sum()


def norm_bound(W: np.ndarray, Y: np.ndarray, Z: np.ndarray, price: float = 0.0) -> float:
    """The lower bound of lambda + price tr D by Y, Z >= 0, after scaling to tr Y = 1 and Z_ii <= Y_ii + price."""
    mass = np.trace(Y)
    return np.vdot(W, Y / mass - rescale(Z / mass, Y.diagonal() / mass + price)) if mass > 0 else -np.inf


def level(eigenvalues: np.ndarray, excess: float) -> float:
    """The lambda >= 0 with sum_i max(0, a_i - lambda) = excess."""
    falling = np.sort(eigenvalues)[::-1]
    return max(0.0, float(np.max((np.cumsum(falling) - excess) / np.arange(1, len(falling) + 1))))


def feasible(W: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """values + t I, t >= 0, with W + D >= 0, and the largest eigenvalue of that."""
    eigenvalues = np.linalg.eigvalsh(plus_diagonal(W, values))
    lift = max(0.0, -eigenvalues[0])
    return values + lift, float(eigenvalues[-1] + lift)
