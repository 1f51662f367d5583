"""Factorial hidden Markov models: the posterior of K hidden chains of length L given one series y.

    log pi(x) = -sum_l (y_l - m_l)^2 / (2 sigma^2) + sum_k initial(x_1k) + stay_logit * #{(l, k): x_lk = x_(l-1)k}

with the mean m_l = sum_k w_k x_lk + b (`FHMM`, two levels) or m_l = sum_k w_k[x_lk] + b (`CategoricalFHMM`). The chains
are independent before y is seen; `stay_logit` is the log-odds of staying against one given other level.

In the embedding log pi is quadratic. Sites at one time interact through their weights and sites next to each other in
one chain through `stay_logit`, so with the residual r_l = y_l - m_l every change of a site costs O(1) and a change of
several sites is a sum over the sites and their pairs.
"""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments, real_array, whole
from discrax.core.levels import at_level
from discrax.core.space import Binary, Categorical
from discrax.core.target import Coloured, Evaluation, ExactRatios, LocalChanges

INITIAL, STAY = 0.1, 0.8  # the prior of the papers: P(x_1k is not 0), and the probability to stay


class _FactorialChains(ExactRatios, LocalChanges, Coloured):
    """What chains of two and of more levels share: everything that one level axis more does not change."""

    space: eqx.AbstractVar[Binary | Categorical]
    series: Float[Array, " L"]
    weights: Float[Array, "K *C"]
    offset: Float[Array, ""]
    noise_variance: Float[Array, ""]
    stay_logit: Float[Array, ""]

    @abstractmethod
    def _starts(self) -> Float[Array, "*C"]:
        """The slope of log pi in a first site."""

    @abstractmethod
    def _votes(self, codes: Integer[Array, " k"]) -> Float[Array, "k *C"]:
        """What neighbours with these codes add to the slope of log pi at a site, in units of `stay_logit`."""

    @abstractmethod
    def _products(self, z: Float[Array, "k *C"]) -> Float[Array, "k k"]:
        """What moves z of neighbours in a chain add to log pi together, in units of `stay_logit`."""

    def colours(self) -> Int[np.ndarray, "L K"]:
        """(l + k) mod K: it differs among the factors at one time, and from one time to the next in a chain."""
        length, num_factors = self.space.shape
        return (np.arange(length)[:, None] + np.arange(num_factors)) % max(num_factors, 2)

    def _residuals(self, series: Float[Array, " l"], e: Float[Array, "l K *C"]) -> Float[Array, " l"]:
        return series - e.reshape(len(e), -1) @ self.weights.reshape(-1) - self.offset

    def _fit(self, e: Float[Array, "L K *C"]) -> Float[Array, ""]:
        return -jnp.sum(jnp.square(self._residuals(self.series, e))) / (2 * self.noise_variance)

    def change(
        self, x: Integer[Array, "L K"], sites: Int[Array, " k"], codes: Integer[Array, " k"]
    ) -> Float[Array, ""]:
        """z'h + z'J z / 2 with the moves z, the fields h at the sites and the couplings J among them."""
        z = self.space.embed(codes) - self.space.embed(x.reshape(-1)[sites])
        time, factor = sites // self.space.shape[1], sites % self.space.shape[1]
        w_z = jnp.sum((self.weights[factor] * z).reshape(len(z), -1), axis=1)
        lag = jnp.abs(time[:, None] - time[None])
        couplings = self.stay_logit * ((lag == 1) & (factor[:, None] == factor[None])) * self._products(z)
        couplings -= (lag == 0) * jnp.outer(w_z, w_z) / self.noise_variance
        return jnp.sum(z * self._fields_at(x, time, factor)) + jnp.sum(couplings) / 2

    def _fields_at(
        self, x: Integer[Array, "L K"], time: Int[Array, " k"], factor: Int[Array, " k"]
    ) -> Float[Array, "k *C"]:
        """The derivative of log pi at some sites."""
        last, levels = x.shape[0] - 1, (1,) * (self.weights.ndim - 1)
        has_before, has_after = (known.reshape(-1, *levels) for known in (time > 0, time < last))
        before, after = x[jnp.maximum(time - 1, 0), factor], x[jnp.minimum(time + 1, last), factor]
        votes = jnp.where(has_before, self._votes(before), 0)
        votes += jnp.where(has_after, self._votes(after), 0)
        residual = self._residuals(self.series[time], self.space.embed(x[time])).reshape(-1, *levels)
        start = jnp.where(has_before, 0, self._starts())
        return self.weights[factor] * residual / self.noise_variance + self.stay_logit * votes + start


class FHMM(_FactorialChains):
    """Two levels: y_l ~ N(sum_k w_k x_lk + b, sigma^2), x in {0, 1}^(L x K).

    `initial_logit` is the log-odds of x_1k = 1, `stay_logit` that of staying; by default P(x_1k = 1) = 0.1 and the
    probability to stay is 0.8.
    """

    space: Binary
    initial_logit: Float[Array, ""]

    def __init__(
        self,
        series: ArrayLike,
        weights: ArrayLike,
        offset: ArrayLike = 0.0,
        noise_variance: ArrayLike = 1.0,
        *,
        initial_logit: ArrayLike | None = None,
        stay_logit: ArrayLike | None = None,
    ):
        self.series, self.offset, self.noise_variance = _observations(series, offset, noise_variance)
        self.weights = _finite("weights", weights, 1)
        self.initial_logit = _finite("initial_logit", _logit(INITIAL) if initial_logit is None else initial_logit, 0)
        self.stay_logit = _finite("stay_logit", _logit(STAY) if stay_logit is None else stay_logit, 0)
        self.space = Binary((len(self.series), len(self.weights)))

    @classmethod
    @checked_arguments
    def simulated(
        cls,
        seed: int,
        length: int,
        num_factors: int,
        noise_variance: float = 1.0,
        *,
        initial_prob: float = INITIAL,
        stay_prob: float = STAY,
        weights: ArrayLike | None = None,
        offset: float | None = None,
    ) -> "FHMM":
        """The posterior given a simulated series: x from the prior, then y. Weights and offset are standard normal."""
        rng = _generator(seed, length, num_factors, 2, noise_variance, initial_prob, stay_prob)
        w = rng.normal(size=num_factors) if weights is None else real_array("weights", weights)
        if w.shape != (num_factors,):
            raise ValueError(f"weights must be one number per factor ({num_factors}), but has shape {w.shape}.")
        b = rng.normal() if offset is None else offset
        x = _simulated_chains(rng, length, num_factors, 2, initial_prob, stay_prob)
        y = x @ w + b + np.sqrt(noise_variance) * rng.normal(size=length)
        return cls(y, w, b, noise_variance, initial_logit=_logit(initial_prob), stay_logit=_logit(stay_prob))

    @property
    def level_means(self) -> Float[Array, "K 2"]:
        """What each level of each factor adds to the mean of y_l."""
        return jnp.stack([jnp.zeros_like(self.weights), self.weights], axis=1)

    @property
    def initial_logits(self) -> Float[Array, " 2"]:
        """Of the two levels of a factor at time 0."""
        return jnp.stack([jnp.zeros_like(self.initial_logit), self.initial_logit])

    def log_prob(self, e: Float[Array, "L K"]) -> Float[Array, ""]:
        fit, stays = self._fit(e), jnp.sum(e[1:] * e[:-1] + (1 - e[1:]) * (1 - e[:-1]))
        return fit + self.initial_logit * jnp.sum(e[0]) + self.stay_logit * stays

    def evaluate(self, x: Integer[Array, "L K"]) -> Evaluation:
        e = self.space.embed(x)
        spin = 2 * e - 1
        w, scale = self.weights[None], 1 / self.noise_variance
        residual = self._residuals(self.series, e)
        around = jnp.pad(spin, ((1, 1), (0, 0)))  # 0 beyond both ends: no neighbour, no vote
        field = scale * w * residual[:, None] + self.stay_logit * (around[:-2] + around[2:])
        field += jnp.where(_is_first(len(x)), self.initial_logit, 0)
        return Evaluation(self.log_prob(e), -spin * field - scale * jnp.square(w) / 2)

    def ratios_at(self, x: Integer[Array, "L K"], site: Int[Array, ""]) -> Float[Array, ""]:
        time, factor = site // self.space.shape[1], site % self.space.shape[1]
        z = 1 - 2 * self.space.embed(x[time, factor])
        curvature = jnp.square(self.weights[factor]) / self.noise_variance
        return z * self._fields_at(x, time[None], factor[None])[0] - curvature / 2

    def _starts(self) -> Float[Array, ""]:
        return self.initial_logit

    def _votes(self, codes: Integer[Array, " k"]) -> Float[Array, " k"]:
        return 2 * self.space.embed(codes) - 1

    def _products(self, z: Float[Array, " k"]) -> Float[Array, "k k"]:
        return 2 * jnp.outer(z, z)


class CategoricalFHMM(_FactorialChains):
    """C levels: y_l ~ N(sum_k w_k[x_lk] + b, sigma^2), x in {0, .., C - 1}^(L x K).

    A chain starts at level c with probability proportional to exp(initial_logits[c]), by default 0.9 for level 0 and
    the same for all others, and stays with probability 0.8, going to each other level equally often.
    """

    space: Categorical
    initial_logits: Float[Array, " C"]

    def __init__(
        self,
        series: ArrayLike,
        weights: ArrayLike,
        offset: ArrayLike = 0.0,
        noise_variance: ArrayLike = 1.0,
        *,
        initial_logits: ArrayLike | None = None,
        stay_logit: ArrayLike | None = None,
    ):
        self.series, self.offset, self.noise_variance = _observations(series, offset, noise_variance)
        self.weights = _finite("weights", weights, 2)
        num_factors, num_levels = self.weights.shape
        if initial_logits is None:
            initial_logits = _initial_logits(num_levels, INITIAL)
        self.initial_logits = _finite("initial_logits", initial_logits, 1)
        if self.initial_logits.shape != (num_levels,):
            raise ValueError(
                f"initial_logits must be one number per level ({num_levels}), "
                f"but has shape {self.initial_logits.shape}."
            )
        self.stay_logit = _finite("stay_logit", _stay_logit(num_levels, STAY) if stay_logit is None else stay_logit, 0)
        self.space = Categorical((len(self.series), num_factors), num_levels)

    @classmethod
    @checked_arguments
    def simulated(
        cls,
        seed: int,
        length: int,
        num_factors: int,
        num_levels: int,
        noise_variance: float = 1.0,
        *,
        initial_prob: float = INITIAL,
        stay_prob: float = STAY,
    ) -> "CategoricalFHMM":
        """The posterior given a simulated series: x from the prior, then y. Weights and offset are standard normal.

        `initial_prob` is the probability that a chain does not start at level 0.
        """
        rng = _generator(seed, length, num_factors, num_levels, noise_variance, initial_prob, stay_prob)
        w, b = rng.normal(size=(num_factors, num_levels)), rng.normal()
        x = _simulated_chains(rng, length, num_factors, num_levels, initial_prob, stay_prob)
        mean = w[np.arange(num_factors), x].sum(axis=1) + b
        y = mean + np.sqrt(noise_variance) * rng.normal(size=length)
        initial, stay = _initial_logits(num_levels, initial_prob), _stay_logit(num_levels, stay_prob)
        return cls(y, w, b, noise_variance, initial_logits=initial, stay_logit=stay)

    @property
    def level_means(self) -> Float[Array, "K C"]:
        """What each level of each factor adds to the mean of y_l."""
        return self.weights

    def log_prob(self, e: Float[Array, "L K C"]) -> Float[Array, ""]:
        fit, start = self._fit(e), jnp.sum(e[0] * self.initial_logits[None])
        return fit + start + self.stay_logit * jnp.sum(e[1:] * e[:-1])

    def evaluate(self, x: Integer[Array, "L K"]) -> Evaluation:
        e, w, scale = self.space.embed(x), self.weights[None], 1 / self.noise_variance
        moves = w - at_level(jnp.broadcast_to(w, e.shape), x)[..., None]
        around = jnp.pad(e, ((1, 1), (0, 0), (0, 0)))  # 0 beyond both ends: no neighbour, no vote
        prior = self.stay_logit * (around[:-2] + around[2:])
        prior += jnp.where(_is_first(len(x))[..., None], self.initial_logits[None, None], 0)
        prior -= at_level(prior, x)[..., None]
        residual = self._residuals(self.series, e)[:, None, None]
        ratios = scale * moves * (residual - moves / 2) + prior
        return Evaluation(self.log_prob(e), at_level(ratios, 1 - x) if self.space.has_two_levels else ratios)

    def ratios_at(self, x: Integer[Array, "L K"], site: Int[Array, ""]) -> Float[Array, "..."]:
        time, factor = site // self.space.shape[1], site % self.space.shape[1]
        here, w = x[time, factor], self.weights[factor]
        h = self._fields_at(x, time[None], factor[None])[0]
        ratios = h - at_level(h, here) - jnp.square(w - at_level(w, here)) / (2 * self.noise_variance)
        return at_level(ratios, 1 - here) if self.space.has_two_levels else ratios

    def _starts(self) -> Float[Array, "1 C"]:
        return self.initial_logits[None]

    def _votes(self, codes: Integer[Array, " k"]) -> Float[Array, "k C"]:
        return self.space.embed(codes)

    def _products(self, z: Float[Array, "k C"]) -> Float[Array, "k k"]:
        return z @ z.T


def _is_first(length: int) -> Bool[Array, "L 1"]:
    return (jnp.arange(length) == 0)[:, None]


def _finite(name: str, value: ArrayLike, num_axes: int) -> Array:
    array = real_array(name, value)
    if array.ndim != num_axes or array.size == 0:
        kind = ("a number", "a row of numbers", "a table of factors and levels")[num_axes]
        raise ValueError(f"{name} must be {kind}, but has shape {array.shape}.")
    return jnp.asarray(array, jnp.result_type(float))


def _observations(series: ArrayLike, offset: ArrayLike, noise_variance: ArrayLike) -> tuple[Array, Array, Array]:
    variance = _finite("noise_variance", noise_variance, 0)
    if not variance > 0:
        raise ValueError(f"noise_variance must be positive, but is {float(variance)}.")
    return _finite("series", series, 1), _finite("offset", offset, 0), variance


def _logit(prob: float) -> float:
    return float(np.log(prob) - np.log1p(-prob))


def _initial_logits(num_levels: int, initial_prob: float) -> np.ndarray:
    return np.log(np.append(1 - initial_prob, np.full(num_levels - 1, initial_prob / (num_levels - 1))))


def _stay_logit(num_levels: int, stay_prob: float) -> float:
    return _logit(stay_prob) + float(np.log(num_levels - 1))


def _generator(
    seed: int,
    length: int,
    num_factors: int,
    num_levels: int,
    noise_variance: float,
    initial_prob: float,
    stay_prob: float,
) -> np.random.Generator:
    """The generator of a simulation, once its arguments make sense."""
    for name, count, least in (("length", length, 1), ("num_factors", num_factors, 1), ("num_levels", num_levels, 2)):
        whole(name, count, least=least)
    if not noise_variance > 0:
        raise ValueError(f"noise_variance must be positive, but is {noise_variance}.")
    for name, prob in (("initial_prob", initial_prob), ("stay_prob", stay_prob)):
        if not 0 < prob < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, but is {prob}.")
    return np.random.default_rng(seed)


def _simulated_chains(
    rng: np.random.Generator, length: int, num_factors: int, num_levels: int, initial_prob: float, stay_prob: float
) -> Int[np.ndarray, "L K"]:
    """Chains from the prior: each level but the current one (at first: but level 0) is equally likely to be next."""
    changes = rng.random((length, num_factors)) >= stay_prob
    changes[0] = rng.random(num_factors) < initial_prob
    steps = rng.integers(1, num_levels, (length, num_factors))
    return np.cumsum(np.where(changes, steps, 0), axis=0) % num_levels
