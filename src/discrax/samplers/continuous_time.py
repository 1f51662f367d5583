"""DLMC and DLMCf: every site runs a Markov chain of its own in continuous time, with rates g, for a time tau.

With the log-ratios r_ic at x, rates g_ic = g(exp(r_ic)) and nu_ic = softmax_c(r_ic), what the chain of site i tends to,
a site moves to c != x_i with probability

    DLMC    p_ic = nu_ic (1 - exp(-tau g_ic / nu_ic))       (two levels: the exact transition probability)
    DLMCf   p_ic proportional to tau g_ic, and p_i,x_i to max(1 - tau sum_c g_ic, nu_i,x_i)     (an Euler step, capped;
            two levels: p_i = min(tau g_i, nu_i))

and stays otherwise (Sun et al., 2023). For a balanced g the chain of one site leaves its conditional invariant; log A
corrects for all of them moving at once. The time tau is `step_size` / Z(x), with Z(x) = sum_ic g_ic the rate of any
move, so `step_size` is the expected number of moves while moves are rare; with `per_rate=False` it is tau itself. As
tau goes to 0 both agree with DMALA to first order. Most efficient at acceptance 0.574.

Probabilities are computed as such: of nu as exp(r - max r), of exp(-tau g / nu), without differences of near numbers,
so a site costs three exponentials a level and one logarithm. Only where one is too small for float32 its logarithm is
taken apart.
"""

import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments
from discrax.core.kernel import Info, Knob, State
from discrax.core.levels import draw_weighted_levels, is_level, max_levels, sum_levels
from discrax.core.target import Target, effective_ratios
from discrax.core.xla import materialised
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.factorised import judge
from discrax.samplers.informed import Informed, check_ratios
from discrax.samplers.langevin import positive, total_log_rate

_LIMITS = (math.exp(-30), math.exp(30))  # of the step size
_SMALL, _LARGE = -15.0, 60.0  # logarithms of a: below the first 1 - exp(-a) is a, above the second exp(-a) is 0
_MOST_CERTAIN = 1e-6  # a site stays with at least this probability, so that the way back has one


class Chances(NamedTuple):
    """What every site draws its level from: probabilities p of all levels, shape (levels, n); of two, of a flip.

    log p = logs + log(factors), also where p underflows.
    """

    probs: Float[Array, "... n"]
    logs: Float[Array, "... n"]
    factors: Float[Array, "... n"]
    staying: Float[Array, " n"]  # two levels: 1 - p


class _ContinuousTime(Informed):
    step_size: Float[Array, ""]
    balancing: Balancing
    per_rate: bool = eqx.field(static=True)
    is_euler: eqx.AbstractClassVar[bool]
    target_rate: ClassVar[float] = 0.574

    @checked_arguments
    def __init__(
        self,
        step_size: float = 3.0,
        balancing: str | Balancing = "sqrt",
        per_rate: bool = True,
        ratios: str = "exact",
    ):
        self.step_size, self.per_rate = positive("step_size", step_size), per_rate
        self.balancing, self.ratios = get_balancing(balancing), check_ratios(ratios)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target = self.seen(target)
        space, x = target.space, state.x.reshape(-1)
        for_levels, for_decision = random.split(key, 2)
        bits, forth = random.words(for_levels, space.num_sites), self.chances(target, state)
        flips = random.to_uniform(bits) < forth.probs if space.has_two_levels else None
        if flips is not None:
            # One array says both: log q of a site, with the other sign where it flips.
            signed = materialised(jnp.where(flips, -1, 1) * _log_flips(forth, flips))
            flips, log_forth = signed > 0, -jnp.abs(signed)
            y = materialised(jnp.where(flips, 1 - x, x))
        else:
            probs = materialised(forth.probs)
            y = materialised(draw_weighted_levels(bits, probs, 0).astype(space.dtype))
            log_forth = jnp.log(_pick(probs, y))  # what was drawn has not underflown

        def log_ratio(there: State) -> Float[Array, ""]:
            # Three loops read the ratios: two for Z, and one for the sites.
            back = self.chances(target, there._replace(cache=materialised(there.cache)))
            if flips is not None:
                log_back = _log_flips(back, flips)
            else:
                log_back = _pick(back.logs, x) + jnp.log(_pick(back.factors, x))
            return jnp.sum(log_back - log_forth)

        return judge(for_decision, target, state, y, log_ratio)

    def chances(self, target: Target, state: State) -> Chances:
        """What the sites draw from at a state."""
        ratios = effective_ratios(target, state.x, state.cache)
        log_tau = jnp.log(self.step_size).astype(ratios.dtype)
        if self.per_rate:
            log_tau = log_tau - total_log_rate(target, state, self.balancing)
        if target.space.has_two_levels:
            return self._of_flips(ratios, log_tau)
        return self._of_levels(ratios, state.x.reshape(-1), log_tau)

    def _of_flips(self, r: Float[Array, " n"], log_tau: Float[Array, ""]) -> Chances:
        smaller = jnp.exp(-jnp.abs(r))
        is_likely, total = r > 0, 1 + smaller
        here, there, log_there = jnp.where(is_likely, smaller, 1), jnp.where(is_likely, 1, smaller), jnp.minimum(r, 0)
        allowed = jnp.where(jnp.isneginf(r), 0, r)
        log_rate = log_tau + self.balancing(allowed) - jnp.minimum(allowed, 0)  # log(tau g / nu), but for the total
        if self.is_euler:
            rate, most = jnp.exp(log_rate), 1 / total
            factor, staying = jnp.minimum(rate, most), jnp.where(rate < most, 1 - there * rate, here * most)
        else:
            moved, not_moved = _moved_by(jnp.exp(jnp.minimum(log_rate, _LARGE)) * total)
            factor, staying = moved / total, (here + there * not_moved) / total
        is_slow = log_rate < _SMALL
        return Chances(
            jnp.minimum(there * factor, 1 - _MOST_CERTAIN),
            log_there + jnp.where(is_slow, log_rate, 0),
            jnp.where(is_slow, 1, jnp.minimum(factor, 1 - _MOST_CERTAIN)),
            jnp.maximum(staying, _MOST_CERTAIN),
        )

    def _of_levels(
        self, ratios: Float[Array, "n levels"], x: Integer[Array, " n"], log_tau: Float[Array, ""]
    ) -> Chances:
        is_here = is_level(x, ratios.shape[-1]).T
        r = jnp.where(is_here, 0, ratios.T)  # whatever the target put there
        log_shares = r - max_levels(r, 0)[None]  # of nu, but for the total
        shares, is_barred = jnp.exp(log_shares), jnp.isneginf(r)
        total = sum_levels(shares, 0)[None]
        log_moves = log_tau + self.balancing(jnp.where(is_barred, 0, r))
        if self.is_euler:
            log_moves = jnp.where(is_here | is_barred, -jnp.inf, log_moves)
            shift = jnp.maximum(max_levels(log_moves, 0), 0)[None]
            logs, factors, log_stay = log_moves - shift, jnp.ones_like(r), -shift
            weights = jnp.exp(logs)
            staying = jnp.where(shift > 0, 0, 1 - sum_levels(weights, 0)[None])
            staying = jnp.maximum(staying, sum_levels(jnp.where(is_here, shares, 0), 0)[None] / total)
            staying = jnp.maximum(staying, _MOST_CERTAIN)
        else:
            log_rates = jnp.where(is_barred, 0, log_moves - log_shares)  # log(tau g / nu), but for the total
            moved, not_moved = _moved_by(jnp.exp(jnp.minimum(log_rates, _LARGE)) * total)
            is_slow = log_rates < _SMALL
            logs, log_stay = log_shares + jnp.where(is_slow, log_rates, 0), 0.0
            factors, weights = jnp.where(is_slow, total, moved), shares * moved
            staying = sum_levels(shares * jnp.where(is_here, 1, not_moved), 0)[None]
            staying = jnp.maximum(staying, _MOST_CERTAIN * total)
        weights = jnp.where(is_here, staying * jnp.exp(log_stay), weights)
        norm = 1 / sum_levels(weights, 0)[None]
        factors = jnp.where(is_here, staying, factors) * norm
        return Chances(weights * norm, jnp.where(is_here, log_stay, logs), factors, staying[0])

    def knobs(self, target: Target) -> dict[str, Knob]:
        return {"step_size": Knob(self.step_size, *_LIMITS, rate=self.target_rate)}


def _moved_by(a: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """1 - exp(-a) and exp(-a), each to the last digits; `expm1` costs as much as three exponentials."""
    not_moved = jnp.exp(-a)
    return jnp.where(a < 0.1, a * (1 - a / 2 * (1 - a / 3 * (1 - a / 4))), 1 - not_moved), not_moved


def _log_flips(chances: Chances, flips: Bool[Array, " n"]) -> Float[Array, " n"]:
    """log q of every site, given which of them flip."""
    return jnp.where(flips, chances.logs, 0) + jnp.log(jnp.where(flips, chances.factors, chances.staying))


def _pick(values: Float[Array, "levels n"], x: Integer[Array, " n"]) -> Float[Array, " n"]:
    return sum_levels(jnp.where(is_level(x, len(values)).T, values, 0), 0)


class DLMC(_ContinuousTime):
    """By interpolation between the current level and the conditional."""

    is_euler: ClassVar[bool] = False

    def __init__(
        self,
        step_size: float = 3.0,
        balancing: str | Balancing = "sqrt",
        per_rate: bool = True,
        ratios: str = "exact",
    ):
        super().__init__(step_size, balancing, per_rate, ratios)


class DLMCf(_ContinuousTime):
    """By one Euler step."""

    is_euler: ClassVar[bool] = True

    def __init__(
        self,
        step_size: float = 3.0,
        balancing: str | Balancing = "sqrt",
        per_rate: bool = True,
        ratios: str = "exact",
    ):
        super().__init__(step_size, balancing, per_rate, ratios)
