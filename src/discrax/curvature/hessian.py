"""W, a symmetric approximation of the Hessian of log pi in the embedding: exact where the target is quadratic, else
estimated from the states of a burn-in.

- `least_squares`: from moves z = x' - x and changes of the gradient v = G(x') - G(x), the symmetric W with the smallest
  sum |W z - v|^2. With S = sum z z' and C = sum v z' it solves W S + S W = C + C', entry by entry in the eigenbasis
  of S. The sums are over every step of the burn-in, block by block (`MoveSums`).
- `moments`: a multiple gamma of the covariance or of the precision of the states, whichever explains the second-order
  part f(x') - f(x) - G(x).z = z' W z / 2 of the changes of f = log pi better (Rhodes and Gutmann, 2022). It looks at
  the last 20,000 pairs of states.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.checks import describe
from discrax.core.programs import compiled
from discrax.core.target import QuadraticForm, Target, bare, embedding_of, inverse_temperature, offered
from discrax.curvature.matrices import checked_matrix

ESTIMATORS = ("least squares", "moments")
LARGEST = 4000  # rows of an estimated, hence dense, W
_MOST_PAIRS = 20_000  # for moments
_BLOCK = 8_192  # states whose moves are summed at once
_RIDGE = 1e-6


@dataclass(frozen=True)
class Hessian:
    """W, and where it comes from."""

    matrix: Any  # a symmetric numpy array, or scipy.sparse where it came sparse
    origin: str  # how it was found, for reports
    is_exact: bool = False

    def __post_init__(self) -> None:
        checked_matrix(self.matrix, "matrix")
        if not isinstance(self.origin, str):
            raise TypeError(f"origin must be words, but got {describe(self.origin)}.")


def exact_hessian(target: Target) -> Hessian | None:
    """W of a quadratic target (at its temperature), or None."""
    if not isinstance(target, Target):
        raise TypeError(f"target must be a discrax Target, but got {describe(target)}.")
    quadratic = offered(target, QuadraticForm)
    if quadratic is None:
        return None
    edges, values = quadratic.hessian()
    values, n = np.asarray(values, float) * float(inverse_temperature(target)), target.space.num_sites
    apart = edges[:, 0] != edges[:, 1]
    if len(edges) * 4 > n * n:
        matrix = np.zeros((n, n))
        np.add.at(matrix, (edges[:, 0], edges[:, 1]), values)
        matrix += np.triu(matrix, 1).T
        return Hessian(matrix, "W exact", True)
    from scipy.sparse import csr_array

    rows = np.concatenate([edges[:, 0], edges[apart, 1]])
    columns = np.concatenate([edges[:, 1], edges[apart, 0]])
    return Hessian(csr_array((np.concatenate([values, values[apart]]), (rows, columns)), shape=(n, n)), "W exact", True)


def find_hessian(
    target: Target,
    draws: Integer[np.ndarray, "chains draws *sites"] | None,
    *,
    estimates: bool = False,
    estimator: str = "least squares",
) -> Hessian | None:
    """W as the target tells it, else as the draws of a burn-in do, else None. With `estimates` the target is not asked.

    `estimator` is one of `ESTIMATORS`.
    """
    hessian = None if estimates else exact_hessian(target)
    return estimated_hessian(target, draws, estimator) if hessian is None and draws is not None else hessian


def estimated_hessian(target: Target, draws: Integer[np.ndarray, "chains draws *sites"], estimator: str) -> Hessian:
    """W from the draws of a burn-in; `estimator` is one of `ESTIMATORS`."""
    if estimator == "least squares":
        return MoveSums(target).add(draws).hessian()
    pairs = _pairs(target, draws)
    moved = int(np.any(pairs.e != pairs.e_next, axis=1).sum())
    _check_moved(moved)
    matrix, share, name = moments(pairs)
    matrix *= float(inverse_temperature(target))
    return Hessian(matrix, f"W by {name} from {moved:,} moves, explaining {share:.0%} of the changes")


def _check_moved(moved: int) -> None:
    if moved < 2:
        raise ValueError(
            f"W is estimated from the moves of the burn-in, but its chains moved {moved} times; give warm-up more "
            "steps, or a smaller first step size, or pass W."
        )


def _check_size(rows: int) -> None:
    if rows > LARGEST:
        raise ValueError(
            f"W is estimated as a dense matrix, for at most {LARGEST:,} rows, but this target has {rows:,}; "
            "pass a sparse W, or use a sampler of first order."
        )


class MoveSums:
    """S = sum z z' and C = sum v z' over the steps of chains, block by block: the steps themselves are not kept."""

    def __init__(self, target: Target):
        self._target, self._last = target, None
        m = embedding_of(target.space).size
        _check_size(m)
        self.S, self.C, self.changes = np.zeros((m, m)), np.zeros((m, m)), 0.0  # changes: sum |v|^2
        self.moved, self.site_moved = 0, np.zeros(target.space.num_sites, bool)

    def add(self, draws: Integer[np.ndarray, "chains draws *sites"]) -> "MoveSums":
        """Adds the steps of more draws, which go on where the last ones ended."""
        draws = draws if self._last is None else np.concatenate([self._last, draws], axis=1)
        self._last, base = draws[:, -1:], bare(self._target)
        length = max(1, _BLOCK // draws.shape[0])
        for first in range(0, draws.shape[1] - 1, length):
            block = (base, jnp.asarray(draws[:, first : first + length + 1]))
            program, _ = compiled(_sums_of_moves, block, {})
            S, C, changes, moved, site_moved = (np.asarray(each) for each in program(block))
            self.S, self.C, self.changes = self.S + S, self.C + C, self.changes + float(changes)
            self.moved, self.site_moved = self.moved + int(moved), self.site_moved | site_moved
        return self

    def hessian(self) -> Hessian:
        """The symmetric W with the smallest sum |W z - v|^2."""
        _check_moved(self.moved)
        S, C = self.S, self.C
        s, V = np.linalg.eigh(S)
        s = np.maximum(s, 0) + _RIDGE * np.trace(S) / len(S)
        W = V @ ((V.T @ (C + C.T) @ V) / (s[:, None] + s[None, :])) @ V.T
        W = (W + W.T) / 2
        left = np.vdot(W @ S, W) - 2 * np.vdot(W, C) + self.changes
        share = float(1 - left / max(self.changes, 1e-30))
        return Hessian(W * float(inverse_temperature(self._target)), self.origin(share))

    def origin(self, share: float) -> str:
        """A sentence about what the sums are of."""
        sites = f"{int(self.site_moved.sum()):,} of {len(self.site_moved):,} sites"
        return f"W by least squares from {self.moved:,} moves of {sites}, explaining {share:.0%} of the changes"


def _sums_of_moves(base: Target, x: Integer[Array, "chains draws *sites"]) -> tuple[Array, ...]:
    """S, C, sum |v|^2, how many moves there were, and which sites moved."""
    states = x.reshape(-1, *base.space.shape)
    e, _, gradient = (a.reshape(*x.shape[:2], -1) for a in _values_and_gradients(base, states))
    z, v = ((a[:, 1:] - a[:, :-1]).reshape(-1, a.shape[2]) for a in (e, gradient))
    S, C = (jnp.matmul(a.T, z, precision=jax.lax.Precision.HIGHEST) for a in (z, v))
    has_moved = z != 0
    by_site = jnp.any(has_moved, axis=0).reshape(base.space.num_sites, -1)
    return S, C, jnp.sum(v**2), jnp.sum(jnp.any(has_moved, axis=1)), jnp.any(by_site, axis=1)


class Pairs(NamedTuple):
    """Consecutive states of chains in the embedding, with log pi and its gradient there."""

    e: Float[np.ndarray, "pairs m"]
    e_next: Float[np.ndarray, "pairs m"]
    log_prob: Float[np.ndarray, " pairs"]
    log_prob_next: Float[np.ndarray, " pairs"]
    gradient: Float[np.ndarray, "pairs m"]


def moments(pairs: Pairs) -> tuple[Float[np.ndarray, "m m"], float, str]:
    """gamma M, the share of the second-order changes of log pi that it explains, and which M it was."""
    z = pairs.e_next - pairs.e
    second_order = pairs.log_prob_next - pairs.log_prob - np.sum(pairs.gradient * z, axis=1)
    covariance = np.atleast_2d(np.cov(pairs.e, rowvar=False))
    variances = np.diag(covariance)
    floor = np.where(variances < 1e-2, 1e-2, 0)  # a site that did not move has no precision
    # A pseudo-inverse: one-hot codes add up to 1 at every site, and few draws leave directions without a spread.
    precision = np.linalg.pinv(covariance + np.diag(floor), rcond=1e-3, hermitian=True)
    best = None
    for name, M in {"covariance": covariance, "precision": precision}.items():
        curvature = np.sum((z @ M) * z, axis=1) / 2
        gamma = float(curvature @ second_order / max(curvature @ curvature, 1e-30))
        loss = float(((second_order - gamma * curvature) ** 2).sum())
        if best is None or loss < best[0]:
            best = loss, gamma * (M + M.T) / 2, f"{gamma:.3g} x {name}"
    assert best is not None
    return best[1], 1 - best[0] / max(float((second_order**2).sum()), 1e-30), best[2]


def _pairs(target: Target, draws: Integer[np.ndarray, "chains draws *sites"]) -> Pairs:
    """At most `_MOST_PAIRS` pairs, the latest of every chain."""
    space, base = target.space, bare(target)
    length = min(draws.shape[1], max(2, 1 + _MOST_PAIRS // draws.shape[0]))
    late = jnp.asarray(draws[:, -length:]).reshape(-1, *space.shape)
    program, _ = compiled(_values_and_gradients, (base, late), {})
    e, value, gradient = (np.asarray(a, np.float64).reshape(draws.shape[0], length, -1) for a in program((base, late)))
    _check_size(e.shape[2])
    flat = lambda a: a.reshape(-1, a.shape[2])  # noqa: E731
    return Pairs(
        *(flat(e[:, :-1]), flat(e[:, 1:])),
        *(flat(value[:, :-1])[:, 0], flat(value[:, 1:])[:, 0]),
        flat(gradient[:, :-1]),
    )


def _values_and_gradients(base: Target, x: Integer[Array, "states *sites"]) -> tuple[Array, Array, Array]:
    def one(x):
        e = base.space.embed(x)
        return e, *jax.value_and_grad(base.log_prob)(e)

    return jax.lax.map(one, x, batch_size=256)
