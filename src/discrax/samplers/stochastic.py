"""Samplers that see a target pi(x) = phi(E psi(x, xi)) through mini-batches xi (Sun et al., 2023).

SGDLD (stochastic gradient discrete Langevin dynamics) simulates the process that jumps from x to a neighbour z with
rate R_z = g(r_z), r_z = pi(z) / pi(x). All mini-batches drawn since the chain came to x are averaged (the *cache*),

    log r_z = log phi(mean psi(z)) - log phi(mean psi(x))
    Z = sum_z R_z,     eps = h_t / Z        (the *Polyak step*: h_t is the expected number of jumps)

x is kept with the weight eps, and then the chain moves:

- `moves="one"`: it leaves with probability min(1, h_t), and goes to z with probability R_z / Z;
- `moves="all"`: every site by itself changes to c with probability eps R_ic (together at most 1).

If it moves, the cache is emptied. There is no accept/reject: averages weighted by eps are right in the limit h -> 0,
since then the cache of a state holds ever more mini-batches. Without the cache they stay biased, whatever h is.

- `cache=False` (SGDLD-noC) uses the last mini-batch only; `polyak=False` (SGDLD-noP) has eps = h_t.
- `exact=False` takes log-ratios from one gradient of psi instead of psi at every neighbour: cheaper where psi is a
  network, and not exact in the limit either.
- `temperature` T_t divides log-ratios; the cache holds them undivided.
- `weigh="stays"` goes beyond the paper. Of a stay of k steps the first weights come from few mini-batches; where these
  are noisy the largest of them is most of the sum, and it is an accident. So the stay counts once, in its last draw,
  for k h_t / Z by all its mini-batches; its other draws have weight 0. In the limit it is the same.

Beside it, for comparison: `local_search` goes to the neighbour with the largest cached r_z if that is above 1, and
`minibatch_gibbs` draws one site from its conditional by one mini-batch, which is biased. (Metropolis with estimates has
a file of its own, pseudo_marginal.py.)

A step goes where the last one decided, draws a mini-batch there, and decides where to go next. So the weight of the
state after a step is known, and is that state's; the very first step stays.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.levels import bar_missing, draw_levels, is_level
from discrax.core.stochastic import (
    Average,
    StochasticTarget,
    add_batch,
    base_of,
    empty_average,
    evaluate_batch,
    log_ratios,
)
from discrax.core.target import Target, effective_ratios, temper
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.schedules import Schedule, as_schedule, log_of


class Cache(NamedTuple):
    """What a chain knows of its surroundings from mini-batches."""

    average: Average  # of the mini-batches drawn at the present state
    count: Int[Array, ""]  # mini-batches drawn in all
    offset: Int[Array, ""]  # chains begin at different places of data that come in order
    next: Integer[Array, "*shape"]  # where the chain goes in the next step


class _FromBatches(Kernel):
    needs: ClassVar[tuple[type[Target], ...]] = (StochasticTarget,)
    is_exact: ClassVar[bool] = False

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        average, zero = empty_average(base_of(target)), jnp.zeros((), jnp.int32)
        return State(x, average.here, Cache(average, zero, zero, x))


class SGDLD(_FromBatches):
    """Stochastic gradient discrete Langevin dynamics; `step_size` is h, a number or a schedule."""

    schedule: Schedule
    temperature: Schedule | None
    balancing: Balancing
    cache: bool = eqx.field(static=True)
    polyak: bool = eqx.field(static=True)
    moves: str = eqx.field(static=True)
    exact: bool = eqx.field(static=True)
    weigh: str = eqx.field(static=True)

    @checked_arguments
    def __init__(
        self,
        step_size: float | Schedule = 0.3,
        cache: bool = True,
        polyak: bool = True,
        balancing: str | Balancing = "sqrt",
        moves: str = "auto",
        exact: bool = True,
        temperature: float | Schedule | None = None,
        weigh: str = "steps",
    ):
        if weigh not in ("steps", "stays"):
            raise ValueError(f"weigh is 'steps' or 'stays', but got {weigh!r}.")
        if moves not in ("auto", "one", "all"):
            raise ValueError(f"moves is 'one', 'all' or 'auto', but got {moves!r}.")
        self.schedule = as_schedule("step_size", step_size)
        self.temperature = None if temperature is None else as_schedule("temperature", temperature)
        self.balancing, self.cache, self.polyak, self.exact = get_balancing(balancing), cache, polyak, exact
        self.weigh = weigh
        # One site moves at most once a step, so more than one jump a step needs all of them to move.
        is_small = polyak and float(self.schedule(jnp.zeros((), jnp.float32))) <= 1
        self.moves = moves if moves != "auto" else "one" if is_small else "all"

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        for_move, for_batch = random.split(key, 2)
        after, is_invalid = _next_state(for_batch, target, state, keeps=self.cache, exact=self.exact)
        log_rates = self._log_rates(target, after)
        log_time = log_of(self.schedule, after.cache.count.astype(jnp.float32) - 1)
        if self.polyak:
            # A state that nothing leaves would count for ever.
            log_time = log_time - jnp.maximum(logsumexp(log_rates), -1e30)
        # Where no mini-batch was a number yet, nothing is known about the neighbours.
        count = after.cache.average.count
        following = self._draw_next(for_move, target, after.x, log_rates + jnp.where(count > 0, log_time, -jnp.inf))
        log_weight = log_time
        if self.weigh == "stays":
            log_weight = jnp.where(jnp.all(following == after.x), -jnp.inf, log_time + jnp.log(count))
        after = after._replace(cache=after.cache._replace(next=following))
        jump = target.space.distance(state.x, after.x)
        return after, scalar_info(1, ~is_invalid, jump, 1, is_invalid, log_weight)

    def _log_rates(self, target: Target, state: State) -> Float[Array, "n ..."]:
        """log R of all single-site changes; -inf at the present level and for barred changes."""
        space, cache = target.space, state.cache
        ratios = log_ratios(base_of(target), cache.average)
        if self.temperature is not None:
            ratios = ratios / self.temperature(cache.count.astype(jnp.float32) - 1)
        ratios = effective_ratios(target, state.x, ratios)
        rates = jnp.where(jnp.isneginf(ratios), -jnp.inf, self.balancing(ratios))
        return rates if space.has_two_levels else jnp.where(_is_here(target, state.x), -jnp.inf, rates)

    def _draw_next(
        self, key: PRNGKeyArray, target: Target, x: Integer[Array, "*shape"], log_p: Float[Array, "n ..."]
    ) -> Integer[Array, "*shape"]:
        """The next state, given the logarithms of eps R."""
        space, here, x = target.space, x, x.reshape(-1)
        if self.moves == "one":
            for_leaving, for_site = random.split(key, 2)
            flat = log_p.reshape(-1)
            leaves = random.to_uniform(random.words(for_leaving, 1)[0]) < jnp.exp(jnp.minimum(logsumexp(flat), 0))
            y = jnp.where(leaves, _apply(target, x, _index(for_site, flat)), x)
        else:
            bits = random.words(key, space.num_sites)
            if space.has_two_levels:
                y = jnp.where(random.to_uniform(bits) < jnp.exp(jnp.minimum(log_p, 0)), 1 - x, x)
            else:
                leaving = jnp.sum(jnp.exp(jnp.minimum(log_p, 0)), axis=-1)
                staying = jnp.log(jnp.maximum(1 - leaving, 0))
                y = draw_levels(bits, jnp.where(_is_here(target, here), staying[:, None], log_p)).astype(x.dtype)
        return y.reshape(space.shape)


class LocalSearch(_FromBatches):
    """To the neighbour that looks best, if it looks better."""

    cache: bool = eqx.field(static=True)
    sites_changed: ClassVar[int | str | None] = 1

    @checked_arguments
    def __init__(self, cache: bool = True):
        self.cache = cache

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        after, is_invalid = _next_state(key, target, state, keeps=self.cache, exact=True)
        ratios = effective_ratios(target, after.x, log_ratios(base_of(target), after.cache.average)).reshape(-1)
        x, best = after.x.reshape(-1), jnp.argmax(ratios)
        following = jnp.where(ratios[best] > 0, _apply(target, x, best), x).reshape(after.x.shape)
        after = after._replace(cache=after.cache._replace(next=following))
        return after, scalar_info(1, ~is_invalid, target.space.distance(state.x, after.x), 1, is_invalid)


class MinibatchGibbs(_FromBatches):
    """A random site from its conditional, as one mini-batch tells it: biased."""

    sites_changed: ClassVar[int | str | None] = 1

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        base, space, cache = base_of(target), target.space, state.cache
        for_site, for_batch, for_level = random.split(key, 3)
        site = space.free_site(random.integers(for_site, 1, jnp.asarray(space.num_free, jnp.int32))[0])
        xi = base.draw(for_batch, cache.count + cache.offset)
        here = state.x.reshape(-1)

        def value(code):
            e = space.embed(here.at[site].set(code).reshape(space.shape))
            return base.log_phi(base.psi(e, xi))

        values = jax.vmap(value)(jnp.arange(space.num_levels, dtype=here.dtype))
        values = bar_missing(values, space.levels_at(site))
        is_invalid = jnp.any(jnp.isnan(values) | jnp.isposinf(values))
        level = _index(for_level, temper(target, jnp.where(is_invalid, 0, values)))
        code = jnp.where(is_invalid, here[site], level.astype(here.dtype))
        y = here.at[site].set(code).reshape(space.shape)
        after = State(y, values[code].astype(state.log_prob.dtype), cache._replace(count=cache.count + 1, next=y))
        return after, scalar_info(1, ~is_invalid, space.distance(state.x, y), 1, is_invalid)


def _next_state(
    key: PRNGKeyArray, target: Target, state: State, *, keeps: bool, exact: bool
) -> tuple[State, Bool[Array, ""]]:
    """The next state with one more mini-batch, and whether that was no number: then it tells nothing."""
    base, cache, y = base_of(target), state.cache, state.cache.next
    for_offset, for_batch = random.split(key, 2)
    first = random.words(for_offset, 1)[0] >> 2
    offset = jnp.where(cache.count == 0, first.astype(jnp.int32), cache.offset)
    batch = evaluate_batch(base, y, base.draw(for_batch, cache.count + offset), exact=exact)
    is_invalid = jnp.isnan(batch.here) | jnp.isposinf(batch.here)
    is_invalid |= jnp.any(jnp.isnan(batch.changes) | jnp.isposinf(batch.changes))
    is_kept = jnp.asarray(keeps) & jnp.all(state.x == y)
    old = jax.tree.map(lambda a: jnp.where(is_kept, a, 0), cache.average)
    new = add_batch(base, old, jax.tree.map(lambda a: jnp.where(is_invalid, 0, a), batch), exact=exact)
    average = jax.tree.map(lambda a, b: jnp.where(is_invalid, a, b.astype(a.dtype)), old, new)
    return State(y, base.log_phi(average.here), Cache(average, cache.count + 1, offset, y)), is_invalid


def _is_here(target: Target, x: Integer[Array, "*shape"]) -> Bool[Array, "n levels"]:
    return is_level(x.reshape(-1), target.space.num_levels)


def _apply(target: Target, x: Integer[Array, " n"], change: Int[Array, ""]) -> Integer[Array, " n"]:
    """x after the `change`-th of all single-site changes."""
    space = target.space
    site, code = jnp.divmod(change, 1 if space.has_two_levels else space.num_levels)
    return x.at[site].set(1 - x[site] if space.has_two_levels else code.astype(x.dtype))


def _index(key: PRNGKeyArray, logits: Float[Array, " k"]) -> Int[Array, ""]:
    return draw_levels(random.words(key, 1)[0], logits)
