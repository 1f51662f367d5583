"""The only loop in the house: a compiled scan over steps of a vmap over chains; the host sees a chunk, not a step.

Step t of chain c uses the key `fold_in(key_c, t)` and nothing else, so the draws do not depend on the chunk length,
on the number of chains or on what is recorded.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key, UInt32

from discrax.core import random
from discrax.core.kernel import Info, Kernel, State
from discrax.core.programs import Batched, compiled
from discrax.core.statistics import add_to_moments, no_moments
from discrax.core.stochastic import renewed
from discrax.core.target import Target, temper


@runtime_checkable
class Adapter(Protocol):
    """Tunes a kernel from what the whole ensemble did, one update a step, inside the scan."""

    def check(self, kernel: Any) -> None:
        """Raises a ValueError if it cannot tune this kernel."""
        ...

    def planned(self, kernel: Any, num_steps: int) -> "Adapter":
        """The adapter with its schedule laid out for a number of steps."""
        ...

    def init(self, target: Target, kernel: Any) -> Any: ...

    def update(self, target: Target, kernel: Any, memory: Any, states: State, info: Info) -> tuple[Any, Any]:
        """The next (kernel, memory), given where the chains are now and what their step was like."""
        ...

    def freeze(self, target: Target, kernel: Any, memory: Any) -> tuple[Any, Any]:
        """The kernel to draw with, and a report of what was done."""
        ...


STATS = (*Info._fields, "lp")  # what is recorded of every draw


class Ensemble(NamedTuple):
    """All that a run carries from one chunk to the next."""

    step: UInt32[Array, ""]
    states: State  # every leaf has a leading axis of chains
    kernel: Kernel
    memory: Any  # of the adapter
    moments: Any  # running moments of draws and statistics, or None
    best: Any = None  # the `Best` of each chain so far, where a search wants it


class Best(NamedTuple):
    """The most probable state a chain has been in."""

    x: Integer[Array, "*shape"]
    log_prob: Float[Array, ""]  # untempered


class Recorded(NamedTuple):
    """What a chunk hands to the host; axes are (draw, chain, ...)."""

    kept: Any
    stats: dict[str, Array]


class Recorder(NamedTuple):
    """What to keep of a draw: a function of the codes, or running moments of the embedding."""

    keep: Callable[[Array], Any] | None
    moments: bool = False


def start(
    target: Target, kernel: Kernel, x: Integer[Array, "..."], recorder: Recorder, *, batched: Batched = False
) -> tuple[Ensemble, float]:
    """The ensemble before its first step, and the seconds its compilation took."""
    program, compile_seconds = compiled(_start, (target, kernel, x), {"with_moments": recorder.moments}, batched)
    return program((target, kernel, x)), compile_seconds


def _start(target: Target, kernel: Kernel, x: Integer[Array, "chains *shape"], *, with_moments: bool) -> Ensemble:
    states = jax.vmap(kernel.init, in_axes=(None, 0))(target, x)
    moments = None
    if with_moments:
        sites = jax.vmap(lambda x: no_moments(target.space.embed(x)))(x)
        scalars = jax.vmap(lambda _: no_moments(jnp.zeros(len(STATS))))(x)
        moments = (sites, scalars)
    return Ensemble(jnp.zeros((), jnp.uint32), states, kernel, None, moments)


def run_chunk(
    keys: Key[Array, " chains"],
    target: Target,
    ensemble: Ensemble,
    adapter: Adapter | None,
    *,
    num_draws: int,
    thinning: int,
    recorder: Recorder,
) -> tuple[Ensemble, Recorded, Float[Array, ""]]:
    """`num_draws` times `thinning` steps of all chains. With an adapter the kernel is tuned after every step.

    Also returns the mean acceptance probability of the chunk, for those who watch.
    """
    kernel_arrays, kernel_static = eqx.partition(ensemble.kernel, eqx.is_array)

    def one_step(carry, _):
        step, states, arrays, memory, best = carry
        kernel = eqx.combine(arrays, kernel_static)
        step_keys = jax.vmap(random.fold_in, in_axes=(0, None))(keys, step)
        states, info = jax.vmap(kernel.step, in_axes=(0, None, 0))(step_keys, target, states)
        if adapter is not None:
            kernel, memory = adapter.update(target, kernel, memory, states, info)
            arrays = eqx.filter(kernel, eqx.is_array)
        if best is not None:
            best = jax.vmap(_better)(best, states)
        return (step + jnp.uint32(1), states, arrays, memory, best), info

    def one_draw(carry, _):
        moving, moments = carry
        moving, infos = jax.lax.scan(one_step, moving, None, length=thinning)
        states = moving[1]
        stats = _thin(infos)._asdict() | {"lp": temper(target, states.log_prob).astype(jnp.float32)}
        acceptance = jnp.mean(stats["accept_prob"])
        if moments is not None:
            sites, scalars = moments
            add = jax.vmap(add_to_moments)
            together = jnp.stack([jnp.asarray(stat, jnp.float32) for stat in stats.values()], axis=-1)
            sites = add(sites, jax.vmap(target.space.embed)(states.x), stats["log_weight"])
            moments, stats = (sites, add(scalars, together, jnp.zeros_like(stats["log_weight"]))), {}
        kept = None if recorder.keep is None else jax.vmap(recorder.keep)(states.x)
        return (moving, moments), (Recorded(kept, stats), acceptance)

    moving = (ensemble.step, ensemble.states, kernel_arrays, ensemble.memory, ensemble.best)
    carry = (moving, ensemble.moments)
    (moving, moments), (recorded, acceptance) = jax.lax.scan(one_draw, carry, None, length=num_draws)
    step, states, arrays, memory, best = moving
    after = Ensemble(step, states, eqx.combine(arrays, kernel_static), memory, moments, best)
    return after, recorded, jnp.mean(acceptance)


def _better(best: Best, state: State) -> Best:
    is_better = state.log_prob > best.log_prob
    return Best(jnp.where(is_better, state.x, best.x), jnp.where(is_better, state.log_prob, best.log_prob))


def _thin(infos: Info) -> Info:
    """One Info for the steps of a draw: costs add up, the state kept counts for its own time, the rest is averaged."""
    if infos.jump.shape[0] == 1:
        return jax.tree.map(lambda stat: stat[0], infos)

    def mean(stat):
        return jnp.mean(stat.astype(jnp.float32), axis=0)

    return Info(
        accept_prob=mean(infos.accept_prob),
        is_accepted=mean(infos.is_accepted),
        jump=mean(infos.jump),
        evals=jnp.sum(infos.evals, axis=0),
        log_weight=infos.log_weight[-1],
        is_invalid=mean(infos.is_invalid),
    )


class Chunk(NamedTuple):
    ensemble: Ensemble
    recorded: Recorded
    num_draws: int
    acceptance: float
    seconds: float
    compile_seconds: float


def drive(
    keys: Key[Array, "*batch chains"],
    target: Target,
    ensemble: Ensemble,
    num_draws: int,
    *,
    chunk: int,
    thinning: int = 1,
    adapter: Adapter | None = None,
    recorder: Recorder,
    resize: Callable[[Kernel], Kernel] = lambda kernel: kernel,
    batched: Batched = False,
) -> Iterator[Chunk]:
    """Runs `num_draws` draws chunk by chunk. `resize` may change the kernel's static sizes between chunks.

    `batched`: every array has a leading axis, and what stands at one place of it is a run of its own; of "one target",
    a `Tempered` one, only the temperature has.
    """
    done = 0
    while done < num_draws:
        length = min(chunk, num_draws - done)
        ensemble = ensemble._replace(kernel=resize(ensemble.kernel))
        settings = {"num_draws": length, "thinning": thinning, "recorder": recorder}
        target = renewed(target)
        arguments = (keys, target, ensemble, adapter)
        program, compile_seconds = compiled(run_chunk, arguments, settings, batched)
        begin = time.perf_counter()
        ensemble, recorded, acceptance = jax.block_until_ready(program(arguments))
        seconds = time.perf_counter() - begin
        yield Chunk(ensemble, recorded, length, float(jnp.mean(acceptance)), seconds, compile_seconds)
        done += length


def chunk_length(num_draws: int, work_per_draw: float) -> int:
    """Draws per chunk: enough work to make the host's part negligible, little enough to report and to stop in time.

    A divisor of `num_draws` is preferred, since a shorter last chunk would be one more program to compile.
    """
    ideal = int(np.clip(5e7 / work_per_draw, 1, 2000))
    if num_draws <= ideal:
        return max(1, num_draws)
    for length in range(ideal, max(1, ideal // 4), -1):
        if num_draws % length == 0:
            return length
    return ideal
