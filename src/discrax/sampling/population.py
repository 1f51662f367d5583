"""Population annealing: particles go from a reference p_0 to the target p_1 together (Hukushima and Iba, 2003).

Along the path log p_b = (1 - b) log p_0 + b log p_1, with the gap g(x) = log p_1(x) - log p_0(x), a population goes
from b to b' in three strokes:

    weigh       w_i = exp((b' - b) g(x_i)),        log Z <- log Z + log mean_i w_i
    resample    particle i gets w_i / mean(w) copies on average, by systematic resampling
    move        `steps` steps of a kernel that leaves p_b' invariant

b' is the largest at which the effective share (sum w)^2 / (N sum w^2) of the weights is still `ess`, on average over
the populations. The kernel's scale is tuned while it runs, from all particles. Both make log Z depend on the particles
a little more than with a plan made beforehand: a bias of the order of 1 / num_particles, as that of the logarithm.

Populations run side by side and never exchange particles; from how much their log Z differ comes its error. Families
are the descendants of one draw of p_0. With nu_i the share of a population that family i has in the end,

    rho_t = N sum_i nu_i^2,        rho_s = N exp(sum_i nu_i log nu_i)

are 1 where nothing was resampled and N where all descend from one: N / rho_t is a number of particles that are
independent even if the moves did nothing (Wang, Machta and Katzgraber, 2015).
"""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32
from numpy.typing import ArrayLike

from discrax.adaptation import AcceptanceRate
from discrax.core import random
from discrax.core.checks import number, whole, yes_or_no
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Caution, Kernel, State, rated_knob
from discrax.core.observers import STATS, Stats
from discrax.core.programs import compiled, reads_user_code
from discrax.core.resampling import systematic
from discrax.core.target import Target
from discrax.sampling.annealed import begin_path, check_gaps, draws, split_key
from discrax.sampling.checks import check_run_memory
from discrax.sampling.normaliser import Normaliser, from_weights
from discrax.sampling.path import Path
from discrax.sampling.progress import ProgressBar
from discrax.sampling.result import Result
from discrax.sampling.run import Run
from discrax.sampling.stored_array import with_weights

_HALVINGS = 60
_FEW = 10  # independent particles


class PopulationReport(NamedTuple):
    """What a population annealing found on its way."""

    log_Z: float  # noqa: N815
    error: float  # the standard error of log_Z, from the populations
    interval: tuple[float, float]  # of 95 %
    log_Zs: Float[np.ndarray, " populations"]  # noqa: N815
    betas: Float[np.ndarray, " temperatures"]  # the last is 1
    acceptance: Float[np.ndarray, " temperatures"]
    rho_t: Float[np.ndarray, " populations"]  # families by their mean square size
    rho_s: Float[np.ndarray, " populations"]  # and by their entropy
    num_particles: int

    @property
    def warning(self) -> str | None:
        """A sentence where too few families are left."""
        left = self.num_particles / float(self.rho_t.max())
        if left >= _FEW:
            return None
        return (
            f"The {self.num_particles:,} particles of a population descend from few draws of the reference, as good as "
            f"{left:.1f}: if the moves do not mix, neither do the draws; use more particles or steps."
        )

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"log Z = {self.log_Z:.3f} +- {self.error:.3f} (95 %: {low:.3f} to {high:.3f}) from {len(self.log_Zs)} "
            f"populations of {self.num_particles:,} at {len(self.betas)} temperatures; rho_t {self.rho_t.mean():.1f}"
        )


# The verb: its parameters are what a user may say of it.
@reads_user_code()
@listening()
def anneal_population(
    key: PRNGKeyArray,
    target: Target,
    num_particles: int = 1000,
    *,
    num_populations: int = 8,
    sampler: str | Kernel | None = None,
    steps: int = 5,
    ess: float = 0.9,
    reference: ArrayLike | Target | None = None,
    progress: bool | None = None,
) -> Result:
    """Draws of a target by populations of particles that go to it from a reference, resampled on the way; and log Z.

    `result.draws` are the particles in the end, (population, particle, *sites), of equal weight; those of one family
    lie side by side. `result.report` has `log_Z` with its `error`, the temperatures that were taken, and `rho_t` and
    `rho_s`, which say how few families are left.

    - `num_particles`: of each population. `num_populations` run side by side, for the error.
    - `sampler`: a registry name or a kernel. One that has a scale for an acceptance rate is tuned to it along the way;
      any other is used as it is. By default sweeps by colours where the path allows them, else "pas".
    - `steps`: of the sampler at every temperature.
    - `ess`: the effective share of the weights of one temperature at the next one: nearer to 1 means more temperatures.
    - `reference`: the probabilities of independent sites at which particles begin, of 1 (or +1) for two levels,
      (*shape), else (*shape, levels), or a target of such sites; uniform by default.
    """
    key = random.as_threefry(key)
    whole("num_particles", num_particles, least=2)
    whole("num_populations", num_populations, least=2)
    whole("steps", steps, least=1)
    number("ess", ess, above=0, below=1)
    yes_or_no("progress", progress is not None and progress)
    path, kernel = begin_path(target, reference, sampler)
    check_run_memory(target.space, "draws", num_populations * num_particles, 1, 0)
    for_starts, for_moves, for_copies = split_key(key, 3)
    count = num_populations * num_particles
    run = Run.at(split_key(for_moves, count), path.end, kernel, draws(for_starts, path, count))
    run = replace(run, targets=(target,))
    if rated_knob(kernel, path.end) is not None:
        run = run.begin_tuning([AcceptanceRate()], 1)
    with Interrupts() as interrupts:
        way = _Way(path, run, num_populations, for_copies)
        with ProgressBar("annealing", 1000, progress) as bar:
            while way.betas[-1] < 1:
                interrupts.raise_if_requested()  # particles on the way are no draws of the target
                way.go_on(float(ess), int(steps))
                bar.advance(*way.news())
        return way.result(target, int(steps))


def population_normaliser(
    key: PRNGKeyArray,
    target: Target,
    *,
    num_particles: int = 1000,
    num_populations: int = 8,
    sampler: str | Kernel | None = None,
    steps: int = 5,
    ess: float = 0.9,
    reference: ArrayLike | Target | None = None,
    progress: bool | None = None,
) -> Normaliser:
    """log Z by `anneal_population`."""
    settings: dict[str, Any] = {"num_populations": num_populations, "sampler": sampler, "steps": steps, "ess": ess}
    result = anneal_population(key, target, num_particles, reference=reference, progress=progress, **settings)
    report = result.report
    states = result.draws.reshape(-1, *target.space.shape)
    return from_weights(report.log_Zs, states, report.acceptance)


class _Way:
    """Where populations are on their path. The host chooses temperatures; particles stay where they are computed."""

    def __init__(self, path: Path, run: Run, num_populations: int, key: PRNGKeyArray):
        self.path, self.run, self.key = path, run, key
        self.betas, self.acceptance = [0.0], []
        self.log_Zs = np.zeros(num_populations)
        self.families = np.tile(np.arange(len(run.keys) // num_populations), (num_populations, 1))
        self.seconds, self.compile_seconds, self.stats = 0.0, run.compile_seconds, {}
        check_gaps(self._gaps())

    def _gaps(self) -> Float[np.ndarray, "populations particles"]:
        gaps = self._call(_gaps, (self.path, self.run.ensemble.states))
        return np.asarray(gaps, np.float64).reshape(self.families.shape)

    def _call(self, function: Any, arguments: tuple, **settings: int) -> Any:
        program, seconds = compiled(function, arguments, settings)
        self.compile_seconds += seconds
        return program(arguments)

    def go_on(self, ess: float, steps: int) -> None:
        """To the next temperature."""
        began, compiling = time.perf_counter(), self.compile_seconds
        gaps, last = self._gaps(), self.betas[-1]
        b = next_beta(last, gaps, ess)
        self.log_Zs += log_mean_exp((b - last) * gaps)
        kernel, states = self.run.ensemble.kernel, self.run.ensemble.states
        numbers = tuple(jnp.asarray(each, jnp.result_type(float)) for each in (b, b - last))
        arguments = (self.key, jnp.asarray(len(self.betas), jnp.uint32), self.path, kernel, states, *numbers)
        states, parents = self._call(_resample, arguments, populations=len(gaps))
        self.families = np.take_along_axis(self.families, np.asarray(parents), axis=1)
        ensemble = self.run.ensemble._replace(states=states)
        self.run = replace(self.run, ensemble=ensemble, target=self.path.at(numbers[0]))
        for moved in self.run.steps(1, thinning=steps, observe=(Stats(),)):
            self.run, self.stats = moved.run, moved.handed[0][0]
            self.compile_seconds += moved.compile_seconds
        self.betas.append(b)
        self.acceptance.append(float(self.stats["accept_prob"].mean()))
        self.seconds += time.perf_counter() - began - (self.compile_seconds - compiling)

    def news(self) -> tuple[int, float]:
        """Thousandths of the path that the last stroke went, and its acceptance."""
        return int(1000 * self.betas[-1]) - int(1000 * self.betas[-2]), self.acceptance[-1]

    def report(self) -> PopulationReport:
        """What was found."""
        count = self.families.shape[1]
        shares = np.stack([np.bincount(each, minlength=count) for each in self.families]) / count
        entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1)
        found = from_weights(self.log_Zs, np.zeros((0, 1), np.int8), np.asarray(self.acceptance))
        return PopulationReport(
            log_Z=found.log_Z,
            error=found.error,
            interval=found.interval,
            log_Zs=self.log_Zs,
            betas=np.asarray(self.betas[1:]),
            acceptance=found.acceptance,
            rho_t=count * np.sum(shares**2, axis=1),
            rho_s=count * np.exp(-entropy),
            num_particles=count,
        )

    def result(self, target: Target, steps: int) -> Result:
        """The particles as draws: a population is a chain of them."""
        run, report, shape = self.run.freeze(), self.report(), self.families.shape
        states = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:]), run.ensemble.states)
        stats = with_weights({name: np.asarray(values).reshape(shape) for name, values in self.stats.items()})
        cautions = () if report.warning is None else (Caution(report.warning),)
        return Result(
            target=target,
            kernel=run.kernels[0],
            draws=states.x,
            kept=None,
            moments=None,
            stats=stats,
            mean_stats={name: np.asarray(stats[name], np.float64).mean(axis=1) for name in STATS},
            warmup_stats={},
            warmup_draws=None,
            reports=(*run.reports[0], *cautions, report),
            seconds=self.seconds,
            warmup_seconds=0.0,
            compile_seconds=self.compile_seconds,
            is_complete=True,
            thinning=steps,
            num_draws=shape[1],
            states=jax.tree.map(lambda leaf: leaf[:, -1], states),
        )


def _gaps(path: Path, states: State) -> Float[Array, " chains"]:
    return jax.vmap(path.gap)(states)


def _resample(
    key: PRNGKeyArray,
    turn: UInt32[Array, ""],
    path: Path,
    kernel: Kernel,
    states: State,
    b: Float[Array, ""],
    step: Float[Array, ""],
    *,
    populations: int,
) -> tuple[State, Int[Array, "populations particles"]]:
    """The particles at b, each a copy of one that was `step` before it; and of which one of its population."""
    log_weights = step * jax.vmap(path.gap)(states).reshape(populations, -1)
    parents = systematic(random.uniform(random.fold_in(key, turn), populations), log_weights)
    first = jnp.arange(populations, dtype=jnp.int32)[:, None] * parents.shape[1]
    chosen = (first + parents).reshape(-1)
    states = jax.tree.map(lambda leaf: leaf[chosen], states)
    return jax.vmap(lambda state: path.carry(kernel, path.at(b), state))(states), parents


def log_mean_exp(log_weights: Float[np.ndarray, "populations particles"]) -> Float[np.ndarray, " populations"]:
    """log of the mean weight of each population."""
    largest = log_weights.max(axis=1)
    return largest + np.log(np.mean(np.exp(log_weights - largest[:, None]), axis=1))


def next_beta(b: float, gaps: Float[np.ndarray, "populations particles"], ess: float) -> float:
    """The largest temperature, as a float32 has it, at which the effective share of the weights is still `ess`.

    Of particles that are possible, that is: those where log_prob is -inf have no weight at any temperature.
    """
    if np.isnan(gaps).any() or np.isposinf(gaps).any() or np.isneginf(gaps).all(axis=1).any():
        raise ValueError(
            f"The weights of particles at b = {b:.4g} are NaN, infinite or all 0: log_prob is not a finite number "
            "where they went."
        )
    possible = np.isfinite(gaps).sum(axis=1)
    centred = gaps - gaps.max(axis=1, keepdims=True)

    def share(to: float) -> float:
        weights = np.exp((to - b) * centred)
        return float(np.mean(weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1) / possible))

    if share(1.0) >= ess:
        return 1.0
    low, high = b, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) >= ess else (low, middle)
    found = float(np.float32(low))
    if found <= b:
        spread = float(np.max(-centred[np.isfinite(centred)]))
        raise ValueError(
            f"Weights would overflow: log_prob differs by {spread:.3g} between particles at b = {b:.4g}, and no "
            f"temperature beyond keeps a share of {ess:g} of them; scale log_prob down, or lower ess."
        )
    return found
