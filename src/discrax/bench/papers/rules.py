"""The papers' own rules of adaptation, which tables are compared by; `discrax.adaptation` has those for use.

- `PaperRate`: of Sun et al. (2022) for path lengths and radii, R <- clip(R + (A - a*), 1, n), and of Sun et al. (2023)
  for a time tau that rates act, by the expected number of moves n = tau Z: n <- max(1, tau Z + 3 (A - a*)) and
  tau = n / Z, where Z is the mean of the chains' total rates. The last value is frozen.
- `PaperProbes` (Sun et al., 2023): one knob theta after the other is tried at theta, theta (1 + gamma) and
  theta (1 - gamma), gamma = 0.2, for 100 steps each, and all move to their best after a round; gamma shrinks by 0.9
  after a round that changed nothing. Where no chain moved, it goes up if nothing was proposed and down if all was
  rejected (Algorithm 3 as printed goes up either way).
- `StepSearch` (Rhodes and Gutmann, 2022): five values of one knob, then nine around the best of them.
- `GammaRule` (the same): the multiple gamma of a preconditioner keeps changing in one direction while the jump grows
  and turns round when it falls; the change delta = 0.25 decays by 0.99 per window. The printed rule takes
  gamma (1 + delta) for an increase below -1 too, where it is none, and never gets far below; here it is a decrease.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int

from discrax.adaptation.acceptance import AcceptanceRate, Memory, next_memory, scale_of, with_scale
from discrax.adaptation.windows import Windowed
from discrax.core.checks import describe, real_array
from discrax.core.kernel import Info, Kernel, State, rated_knob
from discrax.core.target import Target
from discrax.samplers.continuous_time import DLMC, DLMCf
from discrax.samplers.langevin import DMALA, total_log_rate


class PaperRate(AcceptanceRate):
    """The papers' rule for an acceptance rate; `rate=None` takes the kernel's own optimum."""

    rule: str = eqx.field(static=True, default="paper")
    rules: ClassVar[tuple[str, ...]] = ("paper",)

    def plan(self, target: Target, kernel: Kernel, num_steps: int) -> AcceptanceRate:
        """With the rate to reach; a ValueError where the papers have no rule for the kernel."""
        found = rated_knob(kernel, target)
        if found is None or (found[0] == "step_size" and not isinstance(kernel, DMALA | DLMC | DLMCf)):
            raise ValueError(
                "The papers' rule tunes a path length, a radius or the time of rates, which "
                f"{type(kernel).__name__} has not; use discrax.adaptation.AcceptanceRate()."
            )
        return super().plan(target, kernel, num_steps)

    def update(
        self, target: Target, kernel: Kernel, memory: Memory, states: State, info: Info
    ) -> tuple[Kernel, Memory]:
        """The kernel with its next scale."""
        assert self.rate is not None
        accept_prob = jnp.mean(info.accept_prob)
        error = accept_prob - self.rate
        log_rate, gain = jnp.zeros((), jnp.float32), 1.0
        if scale_of(target, kernel)[0] == "step_size":
            log_rate, gain = _mean_log_rate(target, kernel, states), 3.0
        # Clamped before the logarithm: the sum can be negative.
        proposed = jnp.log(jnp.maximum(jnp.exp(memory.log_scale + log_rate) + gain * error, 1.0)) - log_rate
        kernel, log_scale = with_scale(target, kernel, proposed)
        return kernel, next_memory(memory, accept_prob, error, memory.crossings, log_scale)


def _mean_log_rate(target: Target, kernel: Any, states: State) -> Float[Array, ""]:
    """log of the mean over chains of Z(x); 0 where the kernel counts its time in units of 1 / Z."""
    if getattr(kernel, "per_rate", False):
        return jnp.zeros((), jnp.float32)
    of_chains = jax.vmap(lambda state: total_log_rate(target, state, kernel.balancing))(states).astype(jnp.float32)
    return logsumexp(of_chains) - jnp.log(jnp.float32(of_chains.shape[0]))


class PaperPlan(NamedTuple):
    """Where a search by probes stands."""

    middle: Float[Array, " knobs"]
    knob: Int[Array, ""]
    phase: Int[Array, ""]  # 0: the middle, 1: above, 2: below
    scores: Float[Array, " 3"]
    gamma: Float[Array, ""]
    following: Float[Array, " knobs"]  # where the middle goes after a round


class PaperProbes(Windowed):
    """Coordinate probes of one or more knobs; `names=None` takes all that the kernel has."""

    window: int | None = eqx.field(static=True, default=100)
    title: ClassVar[str] = "paper probes"

    def schedule(self, tries: dict[str, tuple[float, ...]], num_steps: int) -> tuple[int, dict[str, Any]]:
        return 60, {}

    def first_plan(self, values: Float[Array, " knobs"]) -> PaperPlan:
        zero = jnp.zeros((), jnp.int32)
        return PaperPlan(values, zero, zero, jnp.zeros(3, jnp.float32), jnp.float32(0.2), values)

    def trial(self, plan: PaperPlan) -> Float[Array, " knobs"]:
        factors = jnp.stack([jnp.ones_like(plan.gamma), 1 + plan.gamma, 1 - plan.gamma])
        return plan.middle.at[plan.knob].multiply(factors[plan.phase])

    def judge(
        self, plan: PaperPlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> PaperPlan:
        scores = plan.scores.at[plan.phase].set(score)
        # Ties stay in the middle, unless nothing moved at all.
        winner = jnp.where(jnp.max(scores) > 0, jnp.argmax(scores), jnp.where(goes_up, 1, 2))
        best = jnp.clip(self.trial(plan._replace(phase=winner)), *limits)
        following = plan.following.at[plan.knob].set(best[plan.knob])
        round_ends = plan.knob == plan.middle.shape[0] - 1
        unchanged = jnp.all(following == plan.middle)
        finished = PaperPlan(
            jnp.where(round_ends, following, plan.middle),
            (plan.knob + 1) % plan.middle.shape[0],
            jnp.zeros_like(plan.phase),
            jnp.zeros_like(scores),
            jnp.clip(jnp.where(round_ends & unchanged, 0.9 * plan.gamma, plan.gamma), 1e-3, 2.0),
            following,
        )
        going_on = plan._replace(phase=plan.phase + 1, scores=scores)
        return jax.tree.map(lambda a, b: jnp.where(plan.phase == 2, a, b), finished, going_on)

    def best(self, plan: PaperPlan) -> Float[Array, " knobs"]:
        return plan.middle


class SearchPlan(NamedTuple):
    """Where a search over values stands."""

    turn: Int[Array, ""]
    best: Float[Array, ""]
    score: Float[Array, ""]
    coarse_best: Float[Array, ""]


class StepSearch(Windowed):
    """Five coarse and nine fine values of one knob; `values=None` takes the kernel's own coarse ones."""

    values: tuple[float, ...] | None = eqx.field(static=True, default=None)
    title: ClassVar[str] = "search"
    most_knobs: ClassVar[int | None] = 1

    def __check_init__(self):
        if self.values is None:
            return
        if not isinstance(self.values, tuple | list):
            raise TypeError(f"values must be a tuple of numbers, but got {describe(self.values)}.")
        values = real_array("values", self.values)
        if values.ndim != 1 or len(values) < 2 or (values <= 0).any() or (np.diff(values) <= 0).any():
            raise ValueError(f"values must be two or more positive, increasing numbers, but got {self.values!r}.")

    def schedule(self, tries: dict[str, tuple[float, ...]], num_steps: int) -> tuple[int, dict[str, Any]]:
        values = self.values or next(iter(tries.values()))
        return len(values) + 9, {"values": values}

    def first_plan(self, values: Float[Array, " knobs"]) -> SearchPlan:
        assert self.values is not None
        first = jnp.asarray(self.values[0], jnp.float32)
        return SearchPlan(jnp.zeros((), jnp.int32), first, jnp.float32(-1), first)

    def trial(self, plan: SearchPlan) -> Float[Array, " knobs"]:
        assert self.values is not None
        coarse, fine = jnp.asarray(self.values, jnp.float32), jnp.arange(1, 10, dtype=jnp.float32)
        if self.values[-1] > 1.5 * self.values[-2]:  # decades: 1 .. 9 times the power of ten below
            power = 10 ** jnp.floor(jnp.log10(plan.coarse_best) + 1e-4)
            fine = fine * power
            fine = jnp.where(plan.coarse_best == coarse[-1], fine + power, fine)  # the top may be passed: 2 .. 10
        else:
            fine = jnp.maximum(plan.coarse_best + fine - 5, coarse[0])
        done = plan.turn >= len(self.values) + 9
        values = jnp.concatenate([coarse, fine])
        value = jnp.where(done, plan.best, values[jnp.minimum(plan.turn, len(self.values) + 8)])
        return value[None]

    def judge(
        self, plan: SearchPlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> SearchPlan:
        assert self.values is not None
        still = (score == 0) & (plan.score <= 0) & goes_up
        better = ((score > plan.score) | still) & (plan.turn < len(self.values) + 9)
        best = jnp.where(better, jnp.clip(self.trial(plan), *limits)[0], plan.best)
        in_coarse = plan.turn < len(self.values)
        return SearchPlan(
            plan.turn + 1, best, jnp.where(better, score, plan.score), jnp.where(in_coarse, best, plan.coarse_best)
        )

    def best(self, plan: SearchPlan) -> Float[Array, " knobs"]:
        return plan.best[None]


class GammaPlan(NamedTuple):
    """Where the search for gamma stands."""

    gamma: Float[Array, ""]
    delta: Float[Array, ""]
    direction: Float[Array, ""]
    score: Float[Array, ""]


class GammaRule(Windowed):
    """The multiple gamma of PAVG's preconditioner."""

    names: tuple[str, ...] | None = eqx.field(static=True, default=("gamma",))
    title: ClassVar[str] = "gamma"

    def schedule(self, tries: dict[str, tuple[float, ...]], num_steps: int) -> tuple[int, dict[str, Any]]:
        return 30, {}

    def first_plan(self, values: Float[Array, " knobs"]) -> GammaPlan:
        return GammaPlan(values[0], jnp.float32(0.25), jnp.float32(1), jnp.float32(-1))

    def trial(self, plan: GammaPlan) -> Float[Array, " knobs"]:
        return plan.gamma[None]

    def judge(
        self, plan: GammaPlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> GammaPlan:
        direction = jnp.where(score > plan.score, plan.direction, -plan.direction)
        # Away from 0 in the direction of its sign, towards it in the other.
        scaled = plan.gamma * jnp.where(direction * plan.gamma > 0, 1 + plan.delta, 1 / (1 + plan.delta))
        moved = plan.gamma + direction * plan.delta
        gamma = jnp.where(jnp.abs(plan.gamma) >= 1, scaled, moved)
        gamma = jnp.clip(jnp.where(plan.delta < 1e-4, plan.gamma, gamma), limits[0, 0], limits[1, 0])
        return GammaPlan(gamma, 0.99 * plan.delta, direction, score)

    def best(self, plan: GammaPlan) -> Float[Array, " knobs"]:
        return plan.gamma[None]
