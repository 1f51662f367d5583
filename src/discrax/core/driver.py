"""The only loop in the house: a compiled scan over steps of a vmap over chains; the host sees a chunk, not a step.

Step t of chain c uses the key `fold_in(key_c, t)` and nothing else, so the draws do not depend on the chunk length,
on the number of chains or on who looks at them.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer, Key, UInt32

from discrax.core import random
from discrax.core.devices import Devices, compiled_on, gather
from discrax.core.kernel import Info, Kernel, State
from discrax.core.layout import choose_layout, steps_in_a_turn
from discrax.core.observers import Observer
from discrax.core.target import Target

_WORK_OF_A_CHUNK = {"cpu": 5e7}  # numbers that its steps touch: some hundredths of a second
_WORK_ELSEWHERE = 1e9


@runtime_checkable
class Adapter(Protocol):
    """Tunes a kernel from what the whole ensemble did, one update a step, inside the scan."""

    def plan(self, target: Target, kernel: Any, num_steps: int) -> "Adapter":
        """The adapter laid out for a kernel and a number of steps; a ValueError if it cannot tune this kernel."""
        ...

    def init(self, target: Target, kernel: Any) -> Any:
        """What it remembers before the first step."""
        ...

    def update(self, target: Target, kernel: Any, memory: Any, states: State, info: Info) -> tuple[Any, Any]:
        """The next (kernel, memory), given where the chains are now and what their step was like."""
        ...

    def freeze(self, target: Target, kernel: Any, memory: Any) -> tuple[Any, Any]:
        """The kernel to draw with, and a report of what was done."""
        ...


class Ensemble(NamedTuple):
    """All that a run carries from one chunk to the next."""

    step: UInt32[Array, ""]
    states: State  # every leaf has a leading axis of chains
    kernel: Kernel
    memory: Any = None  # of the adapter
    observed: tuple[Any, ...] = ()  # what each observer remembers


# Along which axis of an ensemble's arrays its chains lie; a field that is not named here is a KeyError.
_AXES = {"step": None, "states": 0, "kernel": None, "memory": None, "observed": 0}
CHAIN_AXES = Ensemble._make(_AXES[name] for name in Ensemble._fields)


def start(
    target: Target, kernel: Kernel, x: Integer[Array, "chains *shape"], devices: Devices | None = None
) -> tuple[Ensemble, float]:
    """The ensemble before its first step, and the seconds its compilation took."""
    program, compile_seconds = compiled_on(devices, _start, (target, kernel, x), {}, takes=(None, None, 0), gives=0)
    return Ensemble(jnp.zeros((), jnp.uint32), program(), kernel), compile_seconds


def _start(target: Target, kernel: Kernel, x: Integer[Array, "chains *shape"], **_: Any) -> State:
    return jax.vmap(kernel.init, in_axes=(None, 0))(target, x)


def first_memories(target: Target, states: State, *, observers: tuple[Observer, ...], **_: Any) -> tuple[Any, ...]:
    """What observers remember before the first step."""
    return tuple(observer.init(target, states) for observer in observers)


def run_chunk(
    keys: Key[Array, " chains"],
    target: Target,
    ensemble: Ensemble,
    adapter: Adapter | None,
    *,
    num_draws: int,
    thinning: int,
    observers: tuple[Observer, ...] = (),
    unroll: int = 1,
    of_all: Callable[[Any], Any] = lambda tree: tree,
) -> tuple[Ensemble, tuple[Any, ...], Info]:
    """`num_draws` times `thinning` steps of all chains. With an adapter the kernel is tuned after every step.

    Also returns what the observers hand to the host, axes (draw, chain, ...), and the mean `Info` of the chunk.
    Statistics are summed as they come, not stacked: on a GPU every array that a step writes is a kernel of its own.
    `unroll` steps are one turn of the loop. `of_all` makes of arrays of these chains those of all, where others are on
    other devices.
    """
    kernel_arrays, kernel_static = eqx.partition(ensemble.kernel, eqx.is_array)
    enter, step_all, leave = choose_layout(target, ensemble.kernel, ensemble.states)
    watching = tuple(observer for observer in observers if observer.sees_every_step)

    def one_step(carry, _):
        (step, states, arrays, memory, watched), sums = carry
        kernel = eqx.combine(arrays, kernel_static)
        step_keys = jax.vmap(random.fold_in, in_axes=(0, None))(keys, step)
        states, info = step_all(kernel, step_keys, states)
        left = leave(states)
        if adapter is not None:
            kernel, memory = adapter.update(
                target, kernel, memory, *of_all((left, info))
            )  # what is not read is not sent
            arrays = eqx.filter(kernel, eqx.is_array)
        watched = tuple(o.look(target, m, left, info)[0] for o, m in zip(watching, watched, strict=True))
        sums = _add(sums, info)._replace(log_weight=info.log_weight)  # a draw counts for its own time
        return ((step + jnp.uint32(1), states, arrays, memory, watched), sums), None

    def one_draw(carry, _):
        moving, resting, totals = carry
        (moving, sums), _ = jax.lax.scan(
            one_step, (moving, no_info), None, length=thinning, unroll=min(unroll, thinning)
        )
        states, info = leave(moving[1]), _thin(sums, thinning)
        seen = [o.look(target, m, states, info) for o, m in zip(calm, resting, strict=True)]
        resting, handed = tuple(memory for memory, _ in seen), tuple(handed for _, handed in seen)
        return (moving, resting, _add(totals, info)), handed

    calm = tuple(observer for observer in observers if not observer.sees_every_step)
    pairs = list(zip(observers, ensemble.observed, strict=True))
    watched = tuple(memory for observer, memory in pairs if observer.sees_every_step)
    resting = tuple(memory for observer, memory in pairs if not observer.sees_every_step)
    moving = (ensemble.step, enter(ensemble.states), kernel_arrays, ensemble.memory, watched)
    no_info = Info(*(jnp.zeros(len(keys), jnp.float32) for _ in Info._fields))
    carry = (moving, resting, no_info)
    (moving, resting, totals), handed = jax.lax.scan(
        one_draw, carry, None, length=num_draws, unroll=1 if thinning > 1 else unroll
    )
    step, states, arrays, memory, watched = moving
    watched, resting, handed = iter(watched), iter(resting), iter(handed)
    observed = tuple(next(watched if observer.sees_every_step else resting) for observer in observers)
    handed = tuple(None if observer.sees_every_step else next(handed) for observer in observers)
    after = Ensemble(step, leave(states), eqx.combine(arrays, kernel_static), memory, observed)
    return after, handed, jax.tree.map(lambda total: jnp.mean(total) / num_draws, of_all(totals))


def _add(sums: Info, info: Info) -> Info:
    """The sums of the statistics after one more step or draw."""
    return Info(*(total + stat.astype(jnp.float32) for total, stat in zip(sums, info, strict=True)))


def _thin(sums: Info, thinning: int) -> Info:
    """One Info for the steps of a draw: costs add up, the state kept counts for its own time, the rest is averaged."""
    if thinning == 1:
        return sums._replace(is_accepted=sums.is_accepted > 0, is_invalid=sums.is_invalid > 0)
    means = Info(*(total / thinning for total in sums))
    return means._replace(evals=sums.evals, log_weight=sums.log_weight)


class Chunk(NamedTuple):
    """What the host gets of a chunk of draws."""

    ensemble: Ensemble
    handed: tuple[Any, ...]  # by each observer; axes (draw, chain, ...)
    num_draws: int
    info: Info  # means over the chunk
    seconds: float
    compile_seconds: float


# The one loop: all that a run consists of comes here.
def drive(
    keys: Key[Array, "*batch chains"],
    target: Target,
    ensemble: Ensemble,
    num_draws: int,
    *,
    chunk: int,
    thinning: int = 1,
    adapter: Adapter | None = None,
    observers: tuple[Observer, ...] = (),
    before_chunk: Callable[[Target, Kernel], tuple[Target, Kernel]] | None = None,
    axes: Any = None,
    devices: Devices | None = None,
    done: int = 0,
) -> Iterator[Chunk]:
    """Runs `num_draws` draws chunk by chunk, but for those that are done.

    - `before_chunk` may change the target's arrays and the kernel, its static sizes too.
    - `observers` go on with what they remember in the ensemble, else they begin.
    - `axes`: of the target's arrays, where several runs lie along a leading axis of all other arrays.
    - `devices`: on which the chains are spread; by default all are where JAX puts them.
    """
    compile_seconds, places = 0.0, lambda *axes_: None if axes is None else axes_
    if len(ensemble.observed) != len(observers):
        arguments, settings = (target, ensemble.states), {"observers": observers}
        program, compile_seconds = compiled_on(
            devices, first_memories, arguments, settings, takes=(None, 0), gives=0, axes=places(axes, 0)
        )
        ensemble = ensemble._replace(observed=program())
    unroll = steps_in_a_turn(ensemble.states, num_draws * thinning)
    while done < num_draws:
        length = min(chunk, num_draws - done)
        if before_chunk is not None:
            target, kernel = before_chunk(target, ensemble.kernel)
            ensemble = ensemble._replace(kernel=kernel)
        settings = {"num_draws": length, "thinning": thinning, "observers": observers, "unroll": unroll}
        program, more = compiled_on(
            devices,
            run_chunk,
            (keys, target, ensemble, adapter),
            settings,
            takes=(0, None, CHAIN_AXES, None),
            gives=(CHAIN_AXES, 1, None),
            axes=places(0, axes, 0, 0),
        )
        begin = time.perf_counter()
        ensemble, handed, info = jax.block_until_ready(program())
        seconds = time.perf_counter() - begin
        handed = tuple(o.unpack(each, thinning) for o, each in zip(observers, gather(handed), strict=True))
        yield Chunk(ensemble, handed, length, info, seconds, compile_seconds + more)
        done, compile_seconds = done + length, 0.0


def chunk_length(num_draws: int, work_per_draw: float) -> int:
    """Draws per chunk: enough work to make the host's part negligible, little enough to report and to stop in time.

    A divisor of `num_draws` is preferred, since a shorter last chunk would be one more program to compile.
    """
    work = _WORK_OF_A_CHUNK.get(jax.default_backend(), _WORK_ELSEWHERE)
    ideal = int(np.clip(work / work_per_draw, 1, 2000))
    if num_draws <= ideal:
        return max(1, num_draws)
    for length in range(ideal, max(1, ideal // 4), -1):
        if num_draws % length == 0:
            return length
    return ideal
