"""A run: chains of a kernel on a target, prepared, tuned and stepped. Everyone who runs chains does it by this.

    run = Run.prepare(key, target, "pas", num_chains=4)
    run = run.tune(AcceptanceRate(), num_steps=500)
    for chunk in run.steps(1000, observe=(Stats(), Draws())):
        run = chunk.run

`Run.stack` makes one program of several runs that differ in the values of arrays only: their arrays are stacked along a
leading axis (arrays of the targets that are one object are not), each run is tuned by itself, and its draws are those
that it would have alone. A run is a value: every method returns another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Integer, Key, PRNGKeyArray

from discrax.core.devices import Devices, bring_home, gather
from discrax.core.driver import Adapter, Chunk, Ensemble, chunk_length, drive, first_memories, start
from discrax.core.kernel import Kernel
from discrax.core.observers import Observer
from discrax.core.stochastic import renewed, steps_per_block
from discrax.core.target import Target, Tempered, check_target
from discrax.samplers import build_kernel
from discrax.sampling.checks import (
    chain_keys,
    check_batches,
    check_gradient,
    check_law,
    check_start,
    initial_states,
    possible_starts,
)
from discrax.sampling.stacking import split, stack, stack_shared, structure_of
from discrax.sampling.switched import Switched

_MUCH_ROOM = 2e7  # entries of paths, most of them empty, that take about as long as a compilation
PILOT_CHUNK = 50
_SHORTEST_CHUNK = 25  # draws; a chunk is some tenths of a millisecond of the host's time


class Progress(NamedTuple):
    """A chunk of draws, and the run after it."""

    run: "Run"
    handed: tuple[tuple[Any, ...], ...]  # what each observer hands over, run by run; axes (draw, chain, ...)
    num_draws: int
    acceptance: float
    seconds: float
    compile_seconds: float


@dataclass(frozen=True)
class Run:
    """Chains of a kernel on a target; or, where it is `stacked`, of several, with a leading axis of runs."""

    targets: tuple[Target, ...]  # one a run, as they were when it was prepared
    target: Target  # that is sampled: with several runs, all of them, stacked
    keys: Key[Array, "*runs chains"]
    ensemble: Ensemble
    x: Integer[Array, "..."]  # where it began: (*runs, chains, *shape)
    reports: tuple[tuple[Any, ...], ...]  # run by run: what preparation and tuning have to tell
    axes: Any = None  # along which the runs lie in each array of the target; None for a single run
    adapter: Adapter | None = None  # while it is tuned
    observers: tuple[Observer, ...] = ()  # that watched it last
    compile_seconds: float = field(default=0.0, compare=False)
    devices: Devices | None = None  # on which its chains are spread
    shared_chunk: int | None = None  # draws a chunk of the program that tunes and draws, where one does both

    @classmethod
    def prepare(
        cls,
        key: PRNGKeyArray,
        target: Target,
        sampler: str | Kernel,
        num_chains: int = 4,
        init: Array | np.ndarray | None = None,
        devices: Devices | None = None,
    ) -> "Run":
        """Checks, builds and starts: what cannot run ends here with a sentence.

        `init`: codes of shape (*sites) or (chain, *sites); uniformly random by default, and drawn again where a hard
        constraint forbids them.
        """
        check_target(target)
        for_init, keys = chain_keys(key, num_chains)
        x = initial_states(for_init, target, num_chains, init)
        run = cls.at(keys, target, sampler, x, devices)
        if init is None and np.isneginf(gather(run.ensemble.states.log_prob)).any():
            placed, kernel = run.target, run.ensemble.kernel
            begin = lambda x: _start(devices, placed, kernel, x)[1]  # noqa: E731
            x = possible_starts(for_init, target, x, lambda x: gather(begin(x).states.log_prob))
            run = replace(run, ensemble=begin(x), x=x)
        check_start(gather(run.ensemble.states), run.kernels[0])
        return run

    @classmethod
    def at(
        cls,
        keys: Key[Array, " chains"],
        target: Target,
        sampler: str | Kernel,
        x: Integer[Array, "chains *shape"],
        devices: Devices | None = None,
    ) -> "Run":
        """With the keys of the chains, at states of theirs; whether these are possible is not checked."""
        kernel = build_kernel(sampler, target)
        check_law(target, kernel)
        check_gradient(target, kernel)
        check_batches(target, kernel, keys, x)
        kernel, note = kernel.prepare(target, tuning=True)
        placed, ensemble, compile_seconds = _start(devices, target, kernel, x)
        reports = () if note is None else (note,)
        return cls((target,), placed, keys, ensemble, x, (reports,), compile_seconds=compile_seconds, devices=devices)

    @classmethod
    def stack(cls, runs: Sequence["Run"]) -> "Run":
        """Several runs as one; they must differ in the values of arrays only."""
        kernels = _of_one_size([run.ensemble.kernel for run in runs])
        parts = {"targets": [run.targets[0] for run in runs], "samplers": kernels, "starts": [run.x for run in runs]}
        for what, trees in parts.items():
            if any(structure_of(tree) != structure_of(trees[0]) for tree in trees):
                raise ValueError(f"Runs that share a program have {what} of one structure; run these one by one.")
        ensembles = [run.ensemble._replace(kernel=kernel) for run, kernel in zip(runs, kernels, strict=True)]
        target, axes = stack_shared(parts["targets"])
        return cls(
            tuple(parts["targets"]),
            target,
            stack([run.keys for run in runs]),
            stack(ensembles),
            stack([run.x for run in runs]),
            tuple(run.reports[0] for run in runs),
            axes=axes,
            compile_seconds=sum(run.compile_seconds for run in runs),
        )

    def on(self, devices: Devices | None) -> "Run":
        """With its chains spread over devices from the next step on."""
        target = self.target if devices is None else devices.place(self.target)
        return replace(self, target=target, devices=devices)

    # --- What it is made of -------------------------------------------------------------------------------------------

    @property
    def is_stacked(self) -> bool:
        """Whether there is a leading axis of runs."""
        return self.axes is not None

    @property
    def kernels(self) -> list[Kernel]:
        """The kernel of each run."""
        return self.split(bring_home(self.ensemble.kernel))

    def split(self, tree: Any) -> list[Any]:
        """What belongs to each run of a tree whose arrays have the leading axis of runs, if there is one."""
        return split(tree, len(self.targets)) if self.is_stacked else [tree]

    def _join(self, trees: Sequence[Any]) -> Any:
        return stack(trees) if self.is_stacked else trees[0]

    def with_kernels(self, kernels: Sequence[Kernel]) -> "Run":
        """With other kernels, one a run; where they have a capacity, all get the largest."""
        return replace(self, ensemble=self.ensemble._replace(kernel=self._join(_of_one_size(kernels))))

    def with_ensembles(self, ensembles: Sequence[Ensemble]) -> "Run":
        """With other states, kernels and what belongs to them, one a run."""
        return replace(self, ensemble=self._join(ensembles))

    def with_reports(self, reports: Sequence[Any]) -> "Run":
        """With one more report a run; None where there is nothing to tell."""
        more = [() if report is None else (report,) for report in reports]
        return replace(self, reports=tuple(old + new for old, new in zip(self.reports, more, strict=True)))

    def at_temperatures(self, betas: ArrayLike) -> "Run":
        """A run of a `Tempered` target at another temperature, or several at one each; states stay as they are."""
        assert isinstance(self.target, Tempered)
        beta = jnp.asarray(betas, self.target.beta.dtype).reshape(self.target.beta.shape)
        return replace(self, target=eqx.tree_at(lambda target: target.beta, self.target, beta))

    def learn(self, draws: Sequence[Integer[np.ndarray, "chains draws *shape"]]) -> "Run":
        """With kernels that have learnt from the draws of a burn-in what the targets do not tell."""
        found = [
            kernel.prepare(target, tuning=True, draws=drawn)
            for kernel, target, drawn in zip(self.kernels, self.targets, draws, strict=True)
        ]
        return self.with_kernels([kernel for kernel, _ in found]).with_reports([note for _, note in found])

    # --- Tuning -------------------------------------------------------------------------------------------------------

    def begin_tuning(self, adapters: Sequence[Adapter], num_steps: int, num_draws: int | None = None) -> "Run":
        """With adapters, one a run, laid out for so many steps; `steps` tunes the kernels until `freeze`.

        With `num_draws`, that many draws will follow, and the program that tunes makes them too where chunks of one
        length do for both: a program is seconds of compilation.
        """
        parts = list(zip(adapters, self.targets, self.kernels, strict=True))
        plans = [adapter.plan(target, kernel, num_steps) for adapter, target, kernel in parts]
        if any(structure_of(plan) != structure_of(plans[0]) for plan in plans):
            raise ValueError("Runs that share a program have adaptations of one structure; run these one by one.")
        memories = [plan.init(target, kernel) for plan, (_, target, kernel) in zip(plans, parts, strict=True)]
        run = replace(self, adapter=self._join(plans), ensemble=self.ensemble._replace(memory=self._join(memories)))
        # A kernel with a capacity is enlarged between chunks of one length only, whatever follows. Others have the
        # length of a pilot's chunks, whose program then does for all.
        longest = run._chunk(num_steps, 1, None)
        lengths = [PILOT_CHUNK, *range(longest, _SHORTEST_CHUNK - 1, -1)]
        if self.ensemble.kernel.capacity is not None or longest < PILOT_CHUNK:
            lengths = [longest]
        chunk = next((c for c in lengths if num_draws and num_steps % c == num_draws % c == 0), None)
        if chunk is None:
            return run
        return replace(run, adapter=self._join([Switched(plan) for plan in plans]), shared_chunk=chunk)

    @property
    def is_tuning(self) -> bool:
        """Whether steps change the kernel."""
        is_off = isinstance(self.adapter, Switched) and not np.any(self.adapter.is_on)
        return self.adapter is not None and not is_off

    def freeze(self) -> "Run":
        """With the kernels to draw with, and reports of how they were tuned."""
        if self.adapter is None or not self.is_tuning:
            return self
        assert self.ensemble.memory is not None
        memories, adapters = self.split(bring_home(self.ensemble.memory)), self.split(self.adapter)
        frozen = [
            adapter.freeze(target, kernel, memory)
            for adapter, target, kernel, memory in zip(adapters, self.targets, self.kernels, memories, strict=True)
        ]
        run = self.with_kernels([kernel for kernel, _ in frozen]).with_reports([report for _, report in frozen])
        if self.shared_chunk is None:
            return run.stop_tuning()
        return replace(run, adapter=self._join([adapter.switch_off() for adapter in adapters]))

    def stop_tuning(self) -> "Run":
        """With the kernels as they are."""
        return replace(self, adapter=None, shared_chunk=None, ensemble=self.ensemble._replace(memory=None))

    def tune(self, adapter: Adapter, num_steps: int) -> "Run":
        """With kernels that were tuned for so many steps, and frozen."""
        run = self.begin_tuning([adapter] * len(self.targets), num_steps)
        for progress in run.steps(num_steps):
            run = progress.run
        return run.freeze()

    # --- Steps --------------------------------------------------------------------------------------------------------

    def steps(
        self,
        num_draws: int,
        *,
        thinning: int = 1,
        observe: tuple[Observer, ...] = (),
        chunk: int | None = None,
        resize: bool = True,
        done: int = 0,
    ) -> Iterator[Progress]:
        """`num_draws` draws, `thinning` steps apart, in chunks; each comes with the run after it.

        `done` of the draws were made before, in chunks of the same length.

        Observers begin anew, unless the same ones watched the run before. With `resize` the capacity of a kernel is
        what its present scale needs.
        """
        ensemble = self.ensemble if observe == self.observers else self.ensemble._replace(observed=())
        for progress in drive(
            self.keys,
            self.target,
            ensemble,
            num_draws,
            chunk=self._chunk(num_draws, thinning, chunk),
            thinning=thinning,
            adapter=self.adapter,
            observers=observe,
            before_chunk=self._before_chunk(resize, num_draws),
            axes=self.axes,
            devices=self.devices,
            done=done,
        ):
            yield self._progress(progress, observe)

    def begin_watching(self, observers: tuple[Observer, ...]) -> tuple[Any, ...]:
        """What observers remember before the first step."""
        begin = partial(first_memories, observers=observers)
        begin = eqx.filter_vmap(begin, in_axes=(self.axes, 0)) if self.is_stacked else begin
        return begin(self.target, self.ensemble.states)

    def _progress(self, chunk: Chunk, observers: tuple[Observer, ...]) -> Progress:
        count = len(self.targets)
        return Progress(
            replace(self, ensemble=chunk.ensemble, observers=observers),
            tuple(self.split(chunk.handed)),
            chunk.num_draws,
            float(np.mean(chunk.info.accept_prob)),
            chunk.seconds / count,
            chunk.compile_seconds / count,
        )

    def _chunk(self, num_draws: int, thinning: int, wanted: int | None) -> int:
        """Draws a chunk. A kernel that may outgrow its capacity is enlarged between chunks, and when decides what it
        draws: that is not for the user to say.
        """
        longest = longest_chunk(self.targets[0], thinning)
        if self.shared_chunk is not None:
            return self.shared_chunk
        if self.is_tuning and self.ensemble.kernel.capacity is not None:
            return min(warmup_chunk(num_draws), longest)
        work = len(self.targets) * work_per_step(self.targets[0], self.x.shape[-1 - len(self.targets[0].space.shape)])
        return min(wanted or chunk_length(num_draws, work * thinning), longest)

    def _before_chunk(self, resize: bool, num_draws: int) -> Any:
        """Streams hand over their next block, and kernels with a capacity get what they need."""
        is_streamed = any(steps_per_block(target) is not None for target in self.targets)
        is_sized = resize and self.ensemble.kernel.capacity is not None
        work = num_draws * self.keys.size * self.ensemble.kernel.num_replicas
        if not is_streamed and not is_sized:
            return None

        def before_chunk(target: Target, kernel: Kernel) -> tuple[Target, Kernel]:
            if is_streamed:
                blocks = [renewed(each) for each in self.targets]
                target = stack_shared(blocks)[0] if self.is_stacked else renewed(target)
            if is_sized:
                parts = zip(self.split(bring_home(kernel)), self.targets, strict=True)
                sized = _of_one_size([each.prepare(of, tuning=self.is_tuning)[0] for each, of in parts])
                there, needed = kernel.capacity or 0, sized[0].capacity or 0
                if self.shared_chunk is None or there < needed or there * work > _MUCH_ROOM:
                    kernel = self._join(sized)  # else the program that tuned it draws as well
            return target, kernel

        return before_chunk


def _start(
    devices: Devices | None, target: Target, kernel: Kernel, x: Integer[Array, "chains *shape"]
) -> tuple[Target, Ensemble, float]:
    """The target and the ensemble before its first step, on the devices, and the seconds of compilation."""
    target = target if devices is None else devices.place(target)  # once for all chunks
    return target, *start(target, kernel, x, devices)


def _of_one_size(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Kernels with the largest of their capacities, where they have one."""
    capacities = [kernel.capacity for kernel in kernels]
    if None in capacities or len(set(capacities)) == 1:
        return list(kernels)
    most = max(capacity for capacity in capacities if capacity is not None)
    return [kernel.with_capacity(most) for kernel in kernels]


def longest_chunk(target: Target, thinning: int) -> int:
    """Draws for which the data on the device last, where they come block by block."""
    steps = steps_per_block(target)
    if steps is None:
        return 2**31 - 1
    if steps < thinning:
        raise ValueError(
            f"A block of the data lasts for {steps} steps, but a draw takes thinning = {thinning}; use larger blocks, "
            "smaller batches or less thinning."
        )
    return steps // thinning


def work_per_step(target: Target, num_chains: int) -> int:
    """What `chunk_length` weighs: the numbers that a step of all chains touches."""
    space = target.space
    return num_chains * space.num_sites * (1 if space.has_two_levels else space.num_levels)


def warmup_chunk(num_steps: int) -> int:
    """Short, so that a kernel that outgrows its capacity is enlarged soon, and that a signal is heard soon."""
    return min(max(50, num_steps // 20), 2000)
