"""The program of `Places`: turns of some steps each, with the temperatures and the exchanges inside it.

The host hears of it when all turns are done. How many they are is an argument and no part of the program, so that the
last turns of a search are not compiled for themselves.

Neighbouring rungs swap their states by `core/exchanges.py`. The ladder tunes itself every 50 turns: a gap between
rungs that swaps less than the mean shrinks, one that swaps more grows,

    gap_i <- gap_i exp(gain (a_i - mean a)),     log beta_i = log hot + sum of gaps, scaled to end at cold

where a_i is the mean acceptance probability of the gap's swaps since the last change.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32, Key, PRNGKeyArray

from discrax.core import random
from discrax.core.driver import CHAIN_AXES, Adapter, Ensemble, run_chunk
from discrax.core.exchanges import Exchanges, decide_exchanges, exchanged
from discrax.core.observers import Observer
from discrax.core.target import Tempered

MOST_TURNS = 1024  # of one call
_TURNS_BETWEEN_TUNINGS = 50
_MOST_CROSSINGS = 100.0  # by which the gain of tuning falls: a temperature that moves takes the best scale with it

# Along which axis of what `run_turns` takes and gives the chains lie, behind that of the places.
_CHAINS = jax.tree.map(lambda axis: None if axis is None else axis + 1, CHAIN_AXES, is_leaf=lambda axis: axis is None)
TAKES = (1, 0, None, _CHAINS, None, None, None)
GIVES = (_CHAINS, None)


class TunedLadder(NamedTuple):
    """Rungs that exchange their states, and what is known of the gaps between them since they were last tuned."""

    betas: Float[Array, " rungs"]
    rates: Float[Array, " gaps"]  # the sum over turns of the mean probability of a swap
    count: Int32[Array, ""]  # of these turns
    turn: Int32[Array, ""]  # of all


def first_ladder(betas: Float[np.ndarray, " rungs"]) -> TunedLadder:
    """Before the first exchange."""
    return TunedLadder(jnp.asarray(betas, jnp.float32), jnp.zeros(len(betas) - 1), jnp.int32(0), jnp.int32(0))


# Compiled as a whole: all that the program takes, and all that decides what it is.
def run_turns(
    keys: Key[Array, "places chains"],
    swap_keys: Key[Array, " chains"],
    target: Tempered,
    ensemble: Ensemble,
    adapter: Adapter | None,
    plan: TunedLadder | Float[Array, "most_turns places"],
    num_turns: Int32[Array, ""],
    *,
    num_steps: int,
    observers: tuple[Observer, ...],
    axes: Any,
    of_all: Callable[[Any], Any] = lambda tree: tree,
) -> tuple[Ensemble, TunedLadder | None]:
    """`num_turns` turns of `num_steps` steps at the temperatures of a ladder, which is tuned and exchanges states after
    every turn, or at those that the plan has for each turn. `axes` are those of the target's arrays. Also returns the
    ladder.
    """
    arrays, static = eqx.partition(ensemble, eqx.is_array)
    is_ladder = isinstance(plan, TunedLadder)

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

    def of_chain(key: PRNGKeyArray, value: Float[Array, " places"]) -> Exchanges:
        return decide_exchanges(random.fold_in(key, turn), betas, value, turn)

    value = states.log_prob.astype(jnp.float32)
    is_swapped, accept_probs = jax.vmap(of_chain, in_axes=(0, 1), out_axes=1)(keys, value)
    return exchanged(states, is_swapped), accept_probs


def _tune(ladder: TunedLadder, rates: Float[Array, " gaps"]) -> TunedLadder:
    """The ladder after one more turn whose swaps had these mean probabilities."""
    turn, count, total = ladder.turn + 1, ladder.count + 1, ladder.rates + rates
    is_due = count == _TURNS_BETWEEN_TUNINGS
    tuned = tune_ladder(ladder.betas, total / count, jnp.sqrt(count / turn))
    return TunedLadder(
        jnp.where(is_due, tuned, ladder.betas), jnp.where(is_due, 0.0, total), jnp.where(is_due, 0, count), turn
    )


def tune_ladder(betas: Any, rates: Any, gain: Any) -> Any:
    """The ladder (rungs,) with its gaps changed towards equal rates; its ends stay. Arrays of numpy or of JAX."""
    xp = betas.__array_namespace__()
    gaps = xp.diff(xp.log(betas)) * xp.exp(gain * (rates - rates.mean()))
    inner = xp.cumsum(gaps) * xp.log(betas[-1] / betas[0]) / gaps.sum()
    return xp.concatenate([betas[:1], betas[0] * xp.exp(inner)])
