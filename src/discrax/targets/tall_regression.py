"""Variable selection in logistic regression on more rows than one wants to look at in every step (Sun et al., 2023)."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments, describe, real_array
from discrax.core.kernel import replaced
from discrax.core.space import Binary, Space
from discrax.core.stochastic import Batch, BatchRatios, DataTarget, Rows
from discrax.data.rows import as_rows
from discrax.data.stream import RowStream
from discrax.targets.stochastic import Control, sum_in_stages, sum_over_rows


class TallLogisticRegression(DataTarget, BatchRatios):
    """log pi(x) = prior_logit sum_j x_j + sum_i y_i v_i - log(1 + exp(v_i)),   v = X x,   x in {0, 1}^d.

    The rows (X_i, y_i) are seen in mini-batches of `batch_size`. `data` is a pair (X, y) of arrays, or a `RowStream` of
    such pairs, which need not fit into memory. With the products v of a mini-batch, flipping x_j changes them by
    s_j X_ij, s_j = 1 - 2 x_j: the changes of psi by all flips cost d log-likelihoods, not d products.

    Control variates (`with_control`): with the expansion of the log-likelihood l(v) of a row around v* = X_i x*,

        q(v) = l(v*) + l'(v*) (v - v*) + l''(v*) (v - v*)^2 / 2,

    mini-batches estimate sum l - q, and sum q over all rows is known.
    """

    space: Space
    rows: Rows
    prior_logit: Float[Array, ""]
    control: Control | None
    batch_size: int = eqx.field(static=True)

    @checked_arguments
    def __init__(self, data: tuple[ArrayLike, ArrayLike] | RowStream, *, batch_size: int, inclusion_prob: float = 0.5):
        if not isinstance(data, RowStream):
            if not isinstance(data, tuple | list) or len(data) != 2:
                raise TypeError(f"data must be a pair (X, y) or a stream, but got {describe(data)}.")
            X, y = real_array("X", data[0]), real_array("y", data[1])
            if X.ndim != 2 or y.shape != X.shape[:1]:
                raise ValueError(f"data is a pair (X, y) of shapes (m, d) and (m,), but got {X.shape} and {y.shape}.")
            if not np.isin(y, (0, 1)).all():
                raise ValueError("The outcomes of a logistic regression are 0 or 1, but y holds other values.")
            data, d = (X, y), X.shape[1]
        else:
            shapes = [row.shape for row in jax.tree.leaves(data.row)]
            if len(shapes) != 2 or len(shapes[0]) != 1 or shapes[1] != ():
                raise ValueError(
                    f"A stream for a regression has rows (X_i, y_i) of shapes (d,) and (), but got {shapes}."
                )
            d = shapes[0][0]
        if not 0 < inclusion_prob < 1:
            raise ValueError(f"inclusion_prob must lie strictly between 0 and 1, but got {inclusion_prob}.")
        self.space, self.rows, self.batch_size = Binary(d), as_rows(data, batch_size), int(batch_size)
        self.prior_logit = jnp.asarray(math.log(inclusion_prob / (1 - inclusion_prob)), jnp.result_type(float))
        self.control = None

    @classmethod
    @checked_arguments
    def simulated(
        cls, seed: int, num_rows: int = 100_000, num_distinct: int = 9, *, batch_size: int = 625
    ) -> "TallLogisticRegression":
        """The paper's data: d distinct columns, each twice; rows N(0, (I + 11') / d); the first sqrt(d) are on."""
        rng = np.random.default_rng(seed)
        X = (rng.normal(size=(num_rows, num_distinct)) + rng.normal(size=(num_rows, 1))) / math.sqrt(num_distinct)
        v = X[:, : math.ceil(math.sqrt(num_distinct))].sum(axis=1)
        y = rng.random(num_rows) < 1 / (1 + np.exp(-v))
        return cls((np.concatenate([X, X], axis=1), y), batch_size=batch_size)

    def log_prob(self, e: Float[Array, " d"]) -> Float[Array, ""]:
        """Of all rows; of a stream, estimated from the block on the device."""
        X, y = jax.tree.leaves(self.rows.resident())
        v = _products(X, e)
        scale = self.rows.num_rows / X.shape[0]
        return self.prior_logit * jnp.sum(e) + scale * sum_in_stages(y.astype(v.dtype) * v - jax.nn.softplus(v))

    def psi(self, e: Float[Array, " d"], xi: Any) -> Float[Array, ""]:
        X, y = jax.tree.leaves(xi)
        v, scale = _products(X, e), self.rows.num_rows / self.batch_size
        terms = y.astype(v.dtype) * v - jax.nn.softplus(v)
        prior = self.prior_logit * jnp.sum(e)
        if self.control is None:
            return prior + scale * jnp.sum(terms)
        control, step = self.control, e - self.control.e
        at, value, slope, curvature = self._expansion(X, y)
        rest = terms - value - slope * (v - at) - curvature * jnp.square(v - at) / 2
        known = control.value + jnp.dot(control.gradient, step) + jnp.dot(step, control.hessian @ step) / 2
        return prior + known + scale * jnp.sum(rest)

    def batch(self, x: Integer[Array, " d"], xi: Any) -> Batch:
        e = self.space.embed(x)
        X, y = jax.tree.leaves(xi)
        v, scale, sign = _products(X, e), self.rows.num_rows / self.batch_size, 1 - 2 * e
        y = y.astype(v.dtype)
        moves = sign[None] * X
        changes = y @ moves - jnp.sum(_softplus(v[:, None] + moves) - _softplus(v)[:, None], axis=0)
        prior = self.prior_logit * sign
        if self.control is None:
            return Batch(self.psi(e, xi), prior + scale * changes)
        control, step = self.control, e - self.control.e
        at, _, slope, curvature = self._expansion(X, y)
        expected = (slope + curvature * (v - at)) @ moves + curvature @ jnp.square(moves) / 2
        known = (control.gradient + control.hessian @ step) * sign + jnp.diagonal(control.hessian) / 2
        return Batch(self.psi(e, xi), prior + known + scale * (changes - expected))

    def _expansion(self, X: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        """v* and l(v*), l'(v*), l''(v*) of each row."""
        assert self.control is not None
        v = _products(X, self.control.e)
        p = jax.nn.sigmoid(v)
        y = y.astype(v.dtype)
        return v, y * v - _softplus(v), y - p, -p * (1 - p)

    def with_control(self, reference: ArrayLike, *, rows_at_once: int = 65_536) -> "TallLogisticRegression":
        """With control variates around a reference state, for which all rows are gone through once."""
        self.space.check(np.asarray(reference))
        e = self.space.embed(jnp.asarray(reference, self.space.dtype))

        @eqx.filter_jit
        def parts(rows: Any) -> tuple[Array, Array, Array]:
            X, y = jax.tree.leaves(rows)
            v = _products(X, e)
            p, y = jax.nn.sigmoid(v), y.astype(v.dtype)
            hessian = -jnp.matmul(X.T, (p * (1 - p))[:, None] * X, precision=jax.lax.Precision.HIGHEST)
            return (
                sum_in_stages(y * v - _softplus(v)),
                jnp.matmul(y - p, X, precision=jax.lax.Precision.HIGHEST),
                hessian,
            )

        control = Control(e, *(jnp.asarray(part, e.dtype) for part in sum_over_rows(parts, self.rows, rows_at_once)))
        return eqx.tree_at(lambda it: it.control, self, control, is_leaf=lambda leaf: leaf is None)

    @checked_arguments
    def mode(self, num_rounds: int = 20) -> Int[np.ndarray, " d"]:
        """A state that no flip improves, found by going to the best neighbour by all rows on the device.

        A good reference for `with_control`.
        """
        rows = self.rows.renewed().resident()
        whole = replaced(self, batch_size=jax.tree.leaves(rows)[0].shape[0])  # scaled to all rows of a stream
        evaluate = eqx.filter_jit(lambda x: whole.batch(x, rows).changes)
        x = np.zeros(self.space.shape, self.space.dtype)
        for _ in range(num_rounds * self.space.num_sites):
            changes = np.asarray(evaluate(jnp.asarray(x)))
            best = int(np.argmax(changes))
            if changes[best] <= 0:
                break
            x[best] = 1 - x[best]
        return x.astype(int)

    @checked_arguments
    def exact_marginals(self, limit: int = 1 << 16, *, radius: int | None = None) -> Float[np.ndarray, " d"]:
        """P(x_j = 1), by summing over how many copies of each distinct column are on.

        With a `radius`, only over counts that differ in at most so many columns from those of `mode()`: enough where
        the data leave no doubt about the counts.
        """
        X, y = (np.asarray(part, np.float64) for part in jax.tree.leaves(self.rows.resident()))
        distinct, group = np.unique(X, axis=1, return_inverse=True)
        group = group.reshape(-1)
        sizes = np.bincount(group)
        if self.rows.num_resident is not None:
            raise ValueError("Exact marginals need all rows in memory, but these are streamed.")
        num_counts = math.prod(int(size) + 1 for size in sizes)
        if radius is None and num_counts > limit:
            raise ValueError(
                f"Exact marginals sum over at most {limit:,} combinations of columns, but there are {num_counts:,}; "
                "pass a radius, or raise `limit`."
            )
        if radius is None:
            counts = np.array(list(itertools.product(*(range(size + 1) for size in sizes))), np.float64)
        else:
            counts = _near(np.bincount(group, self.mode()), sizes, radius)
        parts = np.array_split(counts, -(-len(counts) // 64))
        log_weights = np.concatenate([_log_likelihood(distinct, y, part) for part in parts])
        log_weights += float(self.prior_logit) * counts.sum(axis=1)
        log_weights += [
            sum(math.log(math.comb(int(size), int(on))) for size, on in zip(sizes, row, strict=True)) for row in counts
        ]
        weights = np.exp(log_weights - log_weights.max())
        return ((weights / weights.sum()) @ counts / sizes)[group]


def _near(centre: np.ndarray, sizes: np.ndarray, radius: int) -> np.ndarray:
    """All counts that differ from `centre` in at most `radius` places."""
    found = {tuple(centre.astype(int))}
    for _ in range(radius):
        found |= {
            (*row[:place], count, *row[place + 1 :])
            for row in found
            for place in range(len(sizes))
            for count in range(int(sizes[place]) + 1)
        }
    return np.array(sorted(found), np.float64)


def _products(X: Float[Array, "m d"], e: Float[Array, " d"]) -> Float[Array, " m"]:
    return jnp.matmul(X.astype(e.dtype), e, precision=jax.lax.Precision.HIGHEST)


def _softplus(v: Array) -> Array:
    return jnp.maximum(v, 0) + jnp.log1p(jnp.exp(-jnp.abs(v)))


@jax.jit
def _likelihoods(X: Array, y: Array, counts: Array) -> Array:
    v = jnp.matmul(counts, X.T, precision=jax.lax.Precision.HIGHEST)
    return jax.vmap(lambda v: sum_in_stages(y * v - _softplus(v)))(v)


def _log_likelihood(X: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of each combination of counts, in double precision between parts of 8,192 rows."""
    total = np.zeros(len(counts))
    for first in range(0, len(y), 8192):
        some = slice(first, first + 8192)
        parts = (jnp.asarray(each, jnp.result_type(float)) for each in (X[some], y[some], counts))
        total += np.asarray(_likelihoods(*parts), np.float64)
    return total
