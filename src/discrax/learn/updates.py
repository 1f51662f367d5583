"""One update of contrastive divergence, and many of them as one program; `training` has the algorithm."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key, PRNGKeyArray

from discrax.core import random
from discrax.core.devices import Devices
from discrax.core.driver import Adapter, Ensemble, run_chunk
from discrax.core.kernel import Info, Kernel
from discrax.core.target import Target
from discrax.data.images import binarise
from discrax.learn.models import trained_parts, without_constants

CURVES = ("gap", "acceptance", "jump", "gradient_norm")  # of every update


class Progress(NamedTuple):
    """All that one update hands to the next; what a checkpoint holds."""

    update: Int[Array, ""]
    model: Target
    average: Any  # of the trained parameters
    optimiser: Any  # its memory
    order: Int[Array, " rows"]  # in which the data has its turn
    buffer: Integer[Array, "chains *shape"]
    kernel: Kernel
    memory: Any  # the adapter's
    scan: Any  # which site has its turn in each chain, for samplers that redraw them in turn


class Settings(NamedTuple):
    """What an update does, apart from its arrays; equal settings share one program."""

    batch_size: int
    num_steps: int
    is_persistent: bool
    reshuffles: bool  # the buffer, before each pass over it
    is_dynamic: bool
    optimiser: Any
    ema: float
    l1: float
    weight_decay: float
    trains: Callable[[Any], Any] | None
    penalty: Callable[[Any], Array] | None
    refresh: Callable[[Any, Any], Any] | None
    devices: Devices | None = None  # over which the chains of an update are spread


def run_updates(
    key: PRNGKeyArray,
    state: Progress,
    rows: Array,
    adapter: Adapter | None,
    length: Int[Array, ""],
    *,
    most: int,
    settings: Settings,
) -> tuple[Progress, dict[str, Float[Array, " most"]]]:
    """`length` updates, at most `most`, and what was recorded of each."""
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(i, carry):
        arrays, recorded = carry
        state, now = one_update(key, eqx.combine(arrays, static), rows, adapter, settings)
        return eqx.filter(state, eqx.is_array), {name: recorded[name].at[i].set(now[name]) for name in CURVES}

    nothing = {name: jnp.zeros(most, jnp.float32) for name in CURVES}
    arrays, recorded = jax.lax.fori_loop(0, length, body, (arrays, nothing))
    return eqx.combine(arrays, static), recorded


def one_update(
    key: PRNGKeyArray, state: Progress, rows: Array, adapter: Adapter | None, settings: Settings
) -> tuple[Progress, dict[str, Float[Array, ""]]]:
    """The next state of training, and what is recorded of it by the names of `CURVES`."""
    model, batch_size = state.model, settings.batch_size
    for_rows, for_pixels, for_chains, for_buffer = random.split(random.fold_in(key, state.update), 4)
    turn = jnp.remainder(state.update, rows.shape[0] // batch_size)
    # A pass over the data in random order adds less noise to the parameters than independent batches do.
    order = jax.lax.cond(turn == 0, lambda: _shuffled(for_rows, rows.shape[0]), lambda: state.order)
    batch = rows[jax.lax.dynamic_slice_in_dim(order, turn * batch_size, batch_size)]
    if settings.is_dynamic:
        batch = binarise(for_pixels, batch).astype(model.space.dtype)
    first = jnp.remainder(state.update, state.buffer.shape[0] // batch_size) * batch_size
    if settings.reshuffles:
        chains = (state.buffer, state.scan)
        buffer, scan = jax.lax.cond(first == 0, partial(_reshuffled, for_buffer), lambda chains: chains, chains)
        state = state._replace(buffer=buffer, scan=scan)
    x = jax.lax.dynamic_slice_in_dim(state.buffer, first, batch_size) if settings.is_persistent else batch

    scan = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, batch_size), state.scan)
    keys, move = random.split(for_chains, batch_size), partial(_move, num_steps=settings.num_steps)
    if settings.devices is not None:
        takes = (0, 0, 0, None, None, None, None)
        divided, more = settings.devices.divide(_move, takes, None, num_steps=settings.num_steps)
        move = partial(divided, **more)
    moved = move(keys, x, scan, model, state.kernel, state.memory, adapter)
    chains, moved_scan, kernel, adapter_memory, info = moved

    parameters, constants = eqx.partition(model, trained_spec(model, settings.trains))

    def loss(parameters):
        model = without_constants(eqx.combine(parameters, constants))
        values = jax.vmap(lambda x: model.log_prob(model.space.embed(x)))(jnp.concatenate([batch, chains]))
        gap = jnp.mean(values[:batch_size]) - jnp.mean(values[batch_size:])
        return _penalties(model, parameters, settings) - gap, gap

    gradient, gap = jax.grad(loss, has_aux=True)(parameters)
    updates, memory = settings.optimiser.update(gradient, state.optimiser, parameters)
    parameters = eqx.apply_updates(parameters, updates)
    model = eqx.combine(parameters, constants)
    # The mean of the first updates would otherwise be mostly the untrained parameters.
    decay = jnp.minimum(settings.ema, (1 + state.update) / (10 + state.update))
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, state.average, parameters)
    if settings.refresh is not None:
        kernel = settings.refresh(kernel, model)
    put_back = partial(jax.lax.dynamic_update_slice_in_dim, start_index=first, axis=0)
    buffer = put_back(state.buffer, chains) if settings.is_persistent else state.buffer
    scan = jax.tree.map(put_back, state.scan, moved_scan)
    squares = [jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradient)]
    now = {
        "gap": gap.astype(jnp.float32),
        "acceptance": info.accept_prob,
        "jump": info.jump,
        "gradient_norm": jnp.sqrt(sum(squares)).astype(jnp.float32),
    }
    return Progress(state.update + 1, model, average, memory, order, buffer, kernel, adapter_memory, scan), now


def _move(
    keys: Key[Array, " chains"],
    x: Integer[Array, "chains *shape"],
    scan: Any,
    model: Target,
    kernel: Kernel,
    memory: Any,
    adapter: Adapter | None,
    *,
    num_steps: int,
    of_all: Callable[[Any], Any] = lambda tree: tree,
) -> tuple[Integer[Array, "all_chains *shape"], Any, Kernel, Any, Info]:
    """Steps of the chains at x: where all of them are then, the same of their scans, and what the tuning came to.

    All devices are told of all chains, and all compute the gradient of all: its sum in parts would round otherwise.
    """
    states = jax.vmap(kernel.init, in_axes=(None, 0))(model, x)
    states = states._replace(cache=eqx.combine(scan, states.cache))
    ensemble = Ensemble(jnp.zeros((), jnp.uint32), states, kernel, memory)
    after, _, info = run_chunk(keys, model, ensemble, adapter, num_draws=1, thinning=num_steps, of_all=of_all)
    chains, scan = of_all((after.states.x, scan_of(after.states.cache)))
    return chains, scan, after.kernel, after.memory, info


def _shuffled(key: PRNGKeyArray, count: int) -> Int[Array, " rows"]:
    return jnp.argsort(random.words(key, count)).astype(jnp.int32)


def _reshuffled(key: PRNGKeyArray, chains: Any) -> Any:
    """The buffer and the scans of its chains, all in one new order."""
    order = _shuffled(key, chains[0].shape[0])
    return jax.tree.map(lambda leaf: leaf[order], chains)


def _penalties(model: Target, parameters: Any, settings: Settings) -> Float[Array, ""] | float:
    total = 0.0 if settings.penalty is None else settings.penalty(model)
    matrices = [leaf for leaf in jax.tree.leaves(parameters) if leaf.ndim >= 2]
    if settings.l1:
        total = total + settings.l1 * sum(jnp.sum(jnp.abs(leaf)) for leaf in matrices)
    if settings.weight_decay:
        total = total + settings.weight_decay / 2 * sum(jnp.sum(jnp.square(leaf)) for leaf in matrices)
    return total


def trained_spec(model: Target, trains: Callable[[Any], Any] | None) -> Any:
    """A tree like the model, with True where an array is trained."""
    everything = trained_parts(model)
    if trains is None:
        return everything
    nothing = jax.tree.map(lambda _: False, model)
    return eqx.tree_at(trains, nothing, jax.tree.map(eqx.is_inexact_array, trains(model)))


def scan_of(cache: Any) -> Any:
    """Integers in a cache say which site has its turn; the rest is of the parameters of one update."""
    return eqx.filter(cache, lambda leaf: jnp.issubdtype(leaf.dtype, jnp.integer))
