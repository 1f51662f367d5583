"""Stochastic targets from functions: pi(x) = phi(E_xi psi(x, xi)), by mini-batches xi.

- `Expectation`: any psi, phi and law of xi.
- `Quenched`: pi(x) = E_u pi(x | u), from log pi(x | u) and a sampler of u.
- `Bayesian`: log pi(x) = log prior(x) + sum over a data set of log-likelihoods, of any size.

Control variates (`Bayesian.with_control`): around a reference state x*, whose neighbourhood holds most of pi,
log f(u | x) is nearly its second-order expansion q(u | x) in the embedding. The sum of q over all data is known after
one pass, so that mini-batches need to tell only the rest,

    psi(x, xi) = log prior(x) + sum_all q(u | x) + (M / B) sum_xi [ log f(u | x) - q(u | x) ],

which has the same mean and, near x*, much less noise.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import describe, in_words, whole
from discrax.core.closures import capture
from discrax.core.space import Space, check_space
from discrax.core.stochastic import DataTarget, Rows, StochasticTarget
from discrax.core.target import check_log_prob, embedding_of
from discrax.data.rows import as_rows

_FIXED_BATCHES = 64  # from which log_prob is estimated where no exact one is known


class Expectation(StochasticTarget):
    """pi(x) = phi(E psi(x, xi)) from functions psi(e, xi), draw(key) and phi, which is exp by default.

    Functions are traced here, once. `log_prob`, a function of the embedding, is for those who know the expectation:
    without it, exact samplers refuse the target.
    """

    space: Space
    function: Callable[[Array, Any], Array]
    sample: Callable[[PRNGKeyArray], Any]
    phi: Callable[[Array], Array] | None
    known_log_prob: Callable[[Array], Array] | None

    def __init__(
        self,
        psi: Callable[[Array, Any], Array],
        draw: Callable[[PRNGKeyArray], Any],
        space: Space,
        phi: Callable[[Array], Array] | None = None,
        *,
        log_prob: Callable[[Array], Array] | None = None,
    ):
        self.space, self.known_log_prob = space, _capture_log_prob(log_prob, space)
        self.function, self.sample = _capture_draws("psi", psi, draw, space)
        a_number = jax.ShapeDtypeStruct((), jnp.result_type(float))
        self.phi = None if phi is None else _capture_number("phi", phi, a_number)

    @property
    def is_log_prob_exact(self) -> bool:
        return self.known_log_prob is not None

    @property
    def is_exponential(self) -> bool:
        return self.phi is None

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Any:
        return self.sample(key)

    def psi(self, e: Float[Array, "..."], xi: Any) -> Float[Array, ""]:
        return self.function(e, xi)

    def log_phi(self, mean: Float[Array, "..."]) -> Float[Array, "..."]:
        if self.phi is None:
            return mean
        return jnp.log(jax.vmap(self.phi)(mean.reshape(-1))).reshape(mean.shape)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """As it is known, else from 64 mini-batches that are always the same."""
        if self.known_log_prob is not None:
            return self.known_log_prob(e)
        return self.log_phi(jnp.mean(_fixed_values(self, e)))


class Quenched(StochasticTarget):
    """pi(x) = E_u pi(x | u) from log pi(x | u), a function of (e, u), and a sampler of u, a function of a key.

    pi(x | u) must be normalised over x, or at least alike for all u: otherwise its mean is another law. Functions, and
    `log_prob` for those who know the mean, are as in `Expectation`.
    """

    space: Space
    log_conditional: Callable[[Array, Any], Array]
    sample: Callable[[PRNGKeyArray], Any]
    known_log_prob: Callable[[Array], Array] | None
    batch_size: int = eqx.field(static=True)
    in_logs: ClassVar[bool] = True

    def __init__(
        self,
        log_conditional: Callable[[Array, Any], Array],
        draw: Callable[[PRNGKeyArray], Any],
        space: Space,
        *,
        batch_size: int = 1,
        log_prob: Callable[[Array], Array] | None = None,
    ):
        self.batch_size = whole("batch_size", batch_size, least=1)
        self.space, self.known_log_prob = space, _capture_log_prob(log_prob, space)
        self.log_conditional, self.sample = _capture_draws("log_conditional", log_conditional, draw, space)

    @property
    def is_log_prob_exact(self) -> bool:
        return self.known_log_prob is not None

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Any:
        return jax.vmap(self.sample)(random.split(key, self.batch_size))

    def psi(self, e: Float[Array, "..."], xi: Any) -> Float[Array, ""]:
        values = jax.vmap(lambda u: self.log_conditional(e, u))(xi)
        return jax.nn.logsumexp(values) - jnp.log(self.batch_size)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """As it is known, else from 64 mini-batches that are always the same."""
        if self.known_log_prob is not None:
            return self.known_log_prob(e)
        return jax.nn.logsumexp(_fixed_values(self, e)) - jnp.log(_FIXED_BATCHES)


def _capture_function(name: str, function: Callable, *examples: Any) -> Callable:
    if not callable(function):
        raise TypeError(f"{name} must be a function, but got {describe(function)}.")
    try:
        return capture(function, *examples)
    except Exception as error:
        raise ValueError(f"{name} cannot be evaluated, but raises {in_words(error)}") from error


def _capture_number(name: str, function: Callable, *examples: Any) -> Callable:
    """One whose values are real numbers."""
    captured = _capture_function(name, function, *examples)
    value = jax.eval_shape(captured, *examples)
    if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"{name} must be a real number, a float of shape (), but the function returns {value}.")
    return captured


def _capture_draws(name: str, function: Callable, draw: Callable, space: Space) -> tuple[Callable, Callable]:
    """A function of (e, xi) and the draw of xi, as they are now."""
    check_space(space)
    draw = _capture_function("draw", draw, random.as_threefry(jax.random.key(0)))
    xi = jax.eval_shape(draw, jax.random.key(0))
    return _capture_number(f"{name} of a mini-batch", function, embedding_of(space), xi), draw


def _capture_log_prob(log_prob: Callable | None, space: Space) -> Callable | None:
    if log_prob is None:
        return None
    check_log_prob(log_prob, space)
    return capture(log_prob, embedding_of(space))


def _fixed_values(target: StochasticTarget, e: Array) -> Float[Array, " batches"]:
    keys = random.split(random.as_threefry(jax.random.key(0)), _FIXED_BATCHES)
    return jax.vmap(lambda key: target.psi(e, target.draw(key, jnp.zeros((), jnp.int32))))(keys)


class Control(NamedTuple):
    """The sum over all data of second-order expansions of log-likelihoods around a reference state."""

    e: Float[Array, "..."]  # its embedding
    value: Float[Array, ""]
    gradient: Float[Array, "..."]
    hessian: Float[Array, "n n"]  # of the flat embedding


class Bayesian(DataTarget):
    """log pi(x) = log_prior(e) + sum over rows u of log_likelihood(e, u).

    `data`: a pytree of arrays with one row per observation, or a `discrax.data.RowStream` for data that do not fit;
    then `log_prob` is estimated from the block that is on the device. `log_likelihood(e, row)` takes one row.
    """

    space: Space
    log_likelihood: Callable[[Array, Any], Array]
    log_prior: Callable[[Array], Array] | None
    rows: Rows
    control: Control | None
    batch_size: int = eqx.field(static=True)

    def __init__(
        self,
        log_likelihood: Callable[[Array, Any], Array],
        data: Any,
        space: Space,
        *,
        batch_size: int,
        log_prior: Callable[[Array], Array] | None = None,
    ):
        check_space(space)
        self.rows, self.batch_size = as_rows(data, batch_size), int(batch_size)
        self.space, self.control, e = space, None, embedding_of(space)
        row = jax.tree.map(lambda rows: jax.ShapeDtypeStruct(rows.shape[1:], rows.dtype), self.rows.resident())
        self.log_likelihood = _capture_number("log_likelihood of a row", log_likelihood, e, row)
        self.log_prior = None if log_prior is None else _capture_number("log_prior", log_prior, e)

    def psi(self, e: Float[Array, "..."], xi: Any) -> Float[Array, ""]:
        scale = self.rows.num_rows / self.batch_size
        prior = jnp.zeros((), e.dtype) if self.log_prior is None else self.log_prior(e)
        if self.control is None:
            return prior + scale * jnp.sum(self._log_likelihoods(e, xi))
        control, step = self.control, e - self.control.e
        flat = step.reshape(-1)
        known = control.value + jnp.sum(control.gradient * step) + jnp.dot(flat, control.hessian @ flat) / 2
        rest = jax.vmap(lambda row: _beyond_second_order(self.log_likelihood, control.e, step, row))(xi)
        return prior + known + scale * jnp.sum(rest)

    def _log_likelihoods(self, e: Array, rows: Any) -> Float[Array, " rows"]:
        return jax.vmap(lambda row: self.log_likelihood(e, row))(rows)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        prior = jnp.zeros((), e.dtype) if self.log_prior is None else self.log_prior(e)
        rows = self.rows.resident()
        scale = self.rows.num_rows / jax.tree.leaves(rows)[0].shape[0]
        return prior + scale * sum_in_stages(self._log_likelihoods(e, rows))

    def with_control(self, reference: ArrayLike, *, rows_at_once: int = 4096) -> "Bayesian":
        """With control variates around a reference state (codes), for which all data are gone through once."""
        self.space.check(np.asarray(reference))
        e = self.space.embed(jnp.asarray(reference, self.space.dtype))

        def total(e: Array, rows: Any) -> Array:
            return jnp.sum(self._log_likelihoods(e, rows))

        @eqx.filter_jit
        def parts(rows: Any) -> tuple[Array, Array, Array]:
            flat_total = lambda flat: total(flat.reshape(e.shape), rows)  # noqa: E731
            return total(e, rows), jax.grad(total)(e, rows), jax.hessian(flat_total)(e.reshape(-1))

        sums = sum_over_rows(parts, self.rows, rows_at_once)
        control = Control(e, *(jnp.asarray(part, e.dtype) for part in sums))
        return eqx.tree_at(lambda it: it.control, self, control, is_leaf=lambda leaf: leaf is None)


def _beyond_second_order(function: Callable[[Array, Any], Array], e: Array, step: Array, row: Any) -> Float[Array, ""]:
    """f(e + step) less its second-order expansion around e."""

    def along(s: Array) -> Array:
        return function(e + s * step, row)

    zero, one = jnp.zeros((), e.dtype), jnp.ones((), e.dtype)
    slope = lambda s: jax.jvp(along, (s,), (one,))[1]  # noqa: E731
    first, second = jax.jvp(slope, (zero,), (one,))
    return along(one) - along(zero) - first - second / 2


def sum_over_rows(parts: Callable[[Any], tuple], rows: Rows, rows_at_once: int) -> tuple[np.ndarray, ...]:
    """The sums of `parts(rows)` over a whole data set, in double precision on the host, some rows at a time."""
    sums: list[np.ndarray] | None = None
    for some in rows.once(rows_at_once):
        found = [np.asarray(part, np.float64) for part in parts(some)]
        sums = found if sums is None else [np.asarray(a + b) for a, b in zip(sums, found, strict=True)]
    assert sums is not None
    return tuple(sums)


def sum_in_stages(values: Float[Array, " rows"]) -> Float[Array, ""]:
    """Their sum, in two stages: added one after the other, 10^5 single-precision numbers lose two more digits."""
    width = 1024
    padded = jnp.pad(values, (0, -values.shape[0] % width))
    return jnp.sum(jnp.sum(padded.reshape(-1, width), axis=1))
