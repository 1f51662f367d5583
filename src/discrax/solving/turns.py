"""The program of `Places`: turns of some steps each, with the temperatures and the exchanges inside it.

The host hears of it when all turns are done. How many they are is an argument and no part of the program, so that the
last turns of a search are not compiled for themselves.

A swap of the states of two neighbouring rungs is accepted with probability

    min(1, exp((beta_i - beta_i+1) (value_i+1 - value_i)))

for even i after even turns and odd i after odd ones. The ladder tunes itself every 50 turns: a gap between rungs that
swaps less than the mean shrinks, one that swaps more grows,

    gap_i <- gap_i exp(gain (a_i - mean a)),     log beta_i = log hot + sum of gaps, scaled to end at cold

where a_i is the mean acceptance probability of the gap's swaps since the last change.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32, Key

from discrax.core import random
from discrax.core.driver import CHAIN_AXES, Adapter, Ensemble, run_chunk
from discrax.core.observers import Observer
from discrax.core.target import Tempered

MOST_TURNS = 1024  # of one call
_TURNS_BETWEEN_TUNINGS = 50
_MOST_CROSSINGS = 100.0  # by which the gain of tuning falls: a temperature that moves takes the best scale with it

# Along which axis of what `run_turns` takes and gives the chains lie, behind that of the places.
_CHAINS = jax.tree.map(lambda axis: None if axis is None else axis + 1, CHAIN_AXES, is_leaf=lambda axis: axis is None)
TAKES = (1, 0, None, _CHAINS, None, None, None)
GIVES = (_CHAINS, None)


class Ladder(NamedTuple):
    """Rungs that exchange their states, and what is known of the gaps between them since they were last tuned."""

    betas: Float[Array, " rungs"]
    rates: Float[Array, " gaps"]  # the sum over turns of the mean probability of a swap
    count: Int32[Array, ""]  # of these turns
    turn: Int32[Array, ""]  # of all


def first_ladder(betas: Float[np.ndarray, " rungs"]) -> Ladder:
    """Before the first exchange."""
    return Ladder(jnp.asarray(betas, jnp.float32), jnp.zeros(len(betas) - 1), jnp.int32(0), jnp.int32(0))


# Compiled as a whole: all that the program takes, and all that decides what it is.
def run_turns(
    keys: Key[Array, "places chains"],
    swap_keys: Key[Array, " chains"],
    target: Tempered,
    ensemble: Ensemble,
    adapter: Adapter | None,
    plan: Ladder | Float[Array, "most_turns places"],
    num_turns: Int32[Array, ""],
    *,
    num_steps: int,
    observers: tuple[Observer, ...],
    axes: Any,
    of_all: Callable[[Any], Any] = lambda tree: tree,
) -> tuple[Ensemble, Ladder | None]:
    """`num_turns` turns of `num_steps` steps at the temperatures of a ladder, which is tuned and exchanges states after
    every turn, or at those that the plan has for each turn. `axes` are those of the target's arrays. Also returns the
    ladder.
    """
    arrays, static = eqx.partition(ensemble, eqx.is_array)
    is_ladder = isinstance(plan, Ladder)

    def of_place(keys: Array, target: Tempered, ensemble: Ensemble, adapter: Adapter | None) -> Ensemble:
        settings: dict[str, Any] = {"num_draws": 1, "thinning": num_steps, "observers": observers, "of_all": of_all}
        return run_chunk(keys, target, ensemble, adapter, **settings)[0]

    def one_turn(t: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        arrays, ladder = carry
        betas = ladder.betas if is_ladder else plan[t]
        here = eqx.tree_at(lambda target: target.beta, target, betas.astype(target.beta.dtype))
        before = _with_gain(eqx.combine(arrays, static))
        in_axes = (0, axes, eqx.if_array(0), eqx.if_array(0))
        after = eqx.filter_vmap(of_place, in_axes=in_axes)(keys, here, before, adapter)
        if is_ladder:
            states, rates = exchange(swap_keys, after.states, betas, ladder.turn)
            after = after._replace(states=states)
            ladder = _tune(ladder, jnp.mean(of_all(rates.T), axis=0))
        return eqx.filter(after, eqx.is_array), ladder

    arrays, ladder = jax.lax.fori_loop(0, num_turns, one_turn, (arrays, plan if is_ladder else None))
    return eqx.combine(arrays, static), ladder


def _with_gain(ensemble: Ensemble) -> Ensemble:
    """Adaptation that goes on as if it had begun not long ago."""
    memory = ensemble.memory
    if not hasattr(memory, "crossings"):
        return ensemble
    return ensemble._replace(memory=memory._replace(crossings=jnp.minimum(memory.crossings, _MOST_CROSSINGS)))


def exchange(
    keys: Key[Array, " chains"], states: Any, betas: Float[Array, " places"], turn: Int32[Array, ""]
) -> tuple[Any, Float[Array, "gaps chains"]]:
    """States after the swaps of a turn, chain by chain, and the probability of each gap's swap."""
    places, chains = states.log_prob.shape
    value = states.log_prob.astype(jnp.float32)
    log_ratio = (betas[:-1] - betas[1:])[:, None] * (value[1:] - value[:-1])
    is_pair = (jnp.arange(places - 1) % 2 == turn % 2)[:, None]
    of_chain = jax.vmap(lambda key: random.uniform(random.fold_in(key, turn), places - 1), out_axes=1)
    swaps = is_pair & (jnp.log(of_chain(keys)) < log_ratio)
    none = jnp.zeros((1, chains), bool)
    here = jnp.arange(places)[:, None] + jnp.concatenate([swaps, none]) - jnp.concatenate([none, swaps])
    moved = jax.tree.map(lambda leaf: leaf[here, jnp.arange(chains)], states)
    return moved, jnp.exp(jnp.minimum(log_ratio, 0))


def _tune(ladder: Ladder, rates: Float[Array, " gaps"]) -> Ladder:
    """The ladder after one more turn whose swaps had these mean probabilities."""
    turn, count, total = ladder.turn + 1, ladder.count + 1, ladder.rates + rates
    is_due = count == _TURNS_BETWEEN_TUNINGS
    tuned = tune_ladder(ladder.betas, total / count, jnp.sqrt(count / turn))
    return Ladder(
        jnp.where(is_due, tuned, ladder.betas), jnp.where(is_due, 0.0, total), jnp.where(is_due, 0, count), turn
    )


def tune_ladder(betas: Any, rates: Any, gain: Any) -> Any:
    """The ladder (rungs,) with its gaps changed towards equal rates; its ends stay. Arrays of numpy or of JAX."""
    xp = betas.__array_namespace__()
    gaps = xp.diff(xp.log(betas)) * xp.exp(gain * (rates - rates.mean()))
    inner = xp.cumsum(gaps) * xp.log(betas[-1] / betas[0]) / gaps.sum()
    return xp.concatenate([betas[:1], betas[0] * xp.exp(inner)])
