"""`sampler="auto"`: a short pilot tries the samplers that suit the space and the target, and the fastest mover wins.

Each candidate is tuned for a few hundred steps as a run would tune it, in one compiled program, and scored by its mean
jump distance per second (or by the effective sample size of log pi per second) in the last part of them. Candidates
are tried in the order of what is known about them; when the budget of seconds is spent, compilation included, the best
so far is taken.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Integer, Key

from discrax.adaptation import AcceptanceRate, JumpProbes, JumpReport, knobs_of
from discrax.core.driver import Adapter, Recorder, drive, start
from discrax.core.kernel import Kernel, Sized, Tunable
from discrax.core.space import Ordinal
from discrax.core.target import Coloured, ExactRatios, QuadraticForm, Target, offered
from discrax.curvature.hessian import Preconditioned, exact_hessian
from discrax.diagnostics import ess
from discrax.samplers import build_kernel, gibbs

SCORES = ("jump", "ess")
_CHUNK = 50
_CHUNKS = {"jump": 4, "ess": 12}
_MOST_COLOURS = 8
_LARGEST_PREPARED = 20_000  # sites for which a D is found in seconds


class Auto(NamedTuple):
    """How "auto" chooses: seconds to spend at most, "jump" or "ess" per second, and which samplers to consider."""

    seconds: float = 20.0
    score: str = "jump"
    candidates: tuple[str | Kernel, ...] | None = None


class Trial(NamedTuple):
    name: str
    score: float  # per second
    acceptance: float


class AutoReport(NamedTuple):
    """What the pilot tried and chose."""

    chosen: str
    score: str
    trials: tuple[Trial, ...]  # best first
    left_out: tuple[str, ...]  # for want of time
    failed: tuple[tuple[str, str], ...]
    seconds: float

    def __str__(self) -> str:
        tried = ", ".join(f"{trial.name} {trial.score:.3g}" for trial in self.trials)
        more = f"; not tried for want of time: {', '.join(self.left_out)}" if self.left_out else ""
        failed = "".join(f"; {name} failed: {why}" for name, why in self.failed)
        return f"auto chose {self.chosen} in {self.seconds:.0f} s ({self.score} per second: {tried}{more}{failed})"


def auto(seconds: float = 20.0, score: str = "jump", candidates: tuple[str | Kernel, ...] | None = None) -> Auto:
    """A sampler to be chosen by a pilot; pass it as `sampler`."""
    if score not in SCORES:
        raise ValueError(f"auto scores by {' or '.join(map(repr, SCORES))}, but got {score!r}.")
    if not seconds > 0:
        raise ValueError(f"The pilot needs a positive number of seconds, but got {seconds}.")
    if candidates is not None and not candidates:
        raise ValueError("auto needs at least one candidate.")
    return Auto(seconds, score, candidates)


def candidates_for(target: Target, *, differentiable: bool) -> Iterator[tuple[str, str | Kernel]]:
    """Names and samplers in the order in which they are tried."""
    space = target.space
    colouring = offered(target, Coloured)
    if colouring is not None and offered(target, ExactRatios) and colouring.num_colours <= _MOST_COLOURS:
        yield "gibbs, chromatic", gibbs("chromatic")
    if not differentiable:
        yield from ((name, name) for name in ("rwm", "gibbs", "block_gibbs"))
        return
    if offered(target, QuadraticForm) and space.num_sites <= _LARGEST_PREPARED and space.num_sites > 1:
        yield ("ab_trace", "ab_trace") if isinstance(space, Ordinal) or space.has_two_levels else ("dlmc", "dlmc")
    yield from ((name, name) for name in ("dmala", "pas"))
    if isinstance(space, Ordinal):
        yield "gwg_ordinal", "gwg_ordinal"
    yield from ((name, name) for name in ("dlmc", "gwg", "gibbs"))


def pilot(
    spec: Auto, target: Target, keys: Key[Array, " chains"], x: Integer[Array, "chains *shape"], differentiable: bool
) -> tuple[str | Kernel, AutoReport]:
    """The sampler to use, and what was tried."""
    begin = time.perf_counter()
    if spec.candidates is None:
        waiting = list(dict(candidates_for(target, differentiable=differentiable)).items())
    else:
        waiting = [(c if isinstance(c, str) else type(c).__name__, c) for c in spec.candidates]
    trials, failed, by_name = [], [], dict(waiting)
    while waiting:
        spent = time.perf_counter() - begin
        # A candidate costs about as much as the dearest so far: stop before the budget is overspent.
        if trials and spent + spent / (len(trials) + len(failed)) > spec.seconds:
            break
        name, sampler = waiting.pop(0)
        try:
            trials.append(_try(name, sampler, spec.score, target, keys, x))
        except Exception as error:
            failed.append((name, f"{type(error).__name__}: {error}".splitlines()[0]))
    if not trials:
        raise ValueError(f"No candidate could sample this target: {'; '.join(f'{n}: {why}' for n, why in failed)}.")
    trials.sort(key=lambda trial: -trial.score)
    left_out = tuple(name for name, _ in waiting)
    seconds = time.perf_counter() - begin
    report = AutoReport(trials[0].name, spec.score, tuple(trials), left_out, tuple(failed), seconds)
    return by_name[trials[0].name], report


def default_adapter(kernel: Kernel) -> Adapter | None:
    """The rule that suits a kernel: its acceptance rate where it has an optimal one, else its jump distance."""
    if isinstance(kernel, Tunable):
        return AcceptanceRate()
    return JumpProbes() if knobs_of(kernel) else None


def _try(name: str, sampler: str | Kernel, score: str, target: Target, keys, x) -> Trial:
    kernel = build_kernel(sampler, target)
    if isinstance(kernel, Preconditioned) and not kernel.is_prepared:
        hessian = exact_hessian(target)
        if hessian is None:
            raise ValueError("it estimates a Hessian in a burn-in, for which a pilot is too short")
        kernel, _ = kernel.prepared(target, hessian)
    num_chunks = _CHUNKS[score]
    adapter = default_adapter(kernel)
    if isinstance(kernel, Sized):
        kernel = kernel.sized(target, room=adapter is not None)
    recorder = Recorder(keep=None)
    ensemble, _ = start(target, kernel, x, recorder)
    if adapter is not None:
        adapter = adapter.planned(kernel, _CHUNK * num_chunks)
        ensemble = ensemble._replace(memory=adapter.init(target, kernel))

    def resize(kernel: Kernel) -> Kernel:
        return kernel.sized(target, room=True) if isinstance(kernel, Sized) else kernel

    settings = {"chunk": _CHUNK, "adapter": adapter, "recorder": recorder, "resize": resize}
    chunks = list(drive(keys, target, ensemble, _CHUNK * num_chunks, **settings))
    late = chunks[len(chunks) // 2 :]
    seconds_per_step = min(chunk.seconds for chunk in late) / _CHUNK
    if score == "jump":
        value = float(np.mean(late[-1].recorded.stats["jump"]))
        if adapter is not None:
            _, report = adapter.freeze(target, late[-1].ensemble.kernel, late[-1].ensemble.memory)
            if isinstance(report, JumpReport) and np.isfinite(report.jump):
                value = report.jump
        per_step = value * len(x)
    else:
        lp = np.concatenate([np.asarray(chunk.recorded.stats["lp"]) for chunk in late]).T
        per_step = float(ess(lp).sum()) / lp.shape[1]
    acceptance = float(np.mean([chunk.acceptance for chunk in late]))
    return Trial(name, per_step / seconds_per_step, acceptance)
