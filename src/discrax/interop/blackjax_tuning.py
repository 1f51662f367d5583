"""Warm-up of both halves of a mixed sampler at once: our rule tunes the kernel of the sites, and the step size and the
diagonal mass of BlackJAX's half are found from all chains.

The step size follows BlackJAX's dual averaging of the chains' mean acceptance rate. The mass is found in windows, each
twice as long as the one before: at the end of a window the inverse mass is the variance of the values in it, between
chains too, drawn a little towards 0.001, and the step size is sought anew. A first and a last part of warm-up tune the
step size alone.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from discrax.core.driver import Adapter
from discrax.core.extras import import_extra
from discrax.core.kernel import Info, State, replaced
from discrax.core.statistics import RunningMoments, add_to_moments, no_moments
from discrax.core.target import Target

_FIRST, _LAST = 0.15, 0.1  # shares of warm-up that tune the step size alone
_SHORTEST = 25  # steps of a window
_PRIOR_DRAWS, _PRIOR_VARIANCE = 5.0, 1e-3


class MixedReport(NamedTuple):
    """What warm-up chose for both halves."""

    discrete: Any  # of our rule; None where the kernel of the sites was left as it is
    step_size: float | None  # None where it was given
    asked_rate: float
    reached_rate: float
    num_steps: int

    def __str__(self) -> str:
        parts = [] if self.discrete is None else [str(self.discrete)]
        if self.step_size is not None:
            parts.append(
                f"step_size = {self.step_size:.4g} (asked for acceptance {self.asked_rate:.3f}, reached "
                f"{self.reached_rate:.3f} in {self.num_steps} steps)"
            )
        return "; ".join(parts)


class Memory(NamedTuple):
    """What tuning carries from step to step."""

    ours: Any
    step: Int[Array, ""]
    averaging: Any  # of the step size
    mean_rate: Float[Array, ""]  # since the step size was last sought anew
    moments: RunningMoments | None  # of the values of every chain in this window


class Joint(eqx.Module):
    """Tunes both halves; `ours` is the rule for the kernel of the sites, or None."""

    ours: Adapter | None
    is_slow: Bool[Array, " steps"] | None = None  # steps whose values count for the mass
    is_end: Bool[Array, " steps"] | None = None  # of a window

    def plan(self, target: Any, kernel: Any, num_steps: int) -> "Joint":
        """With windows laid out for so many steps, and our rule with them."""
        ours = None if self.ours is None else self.ours.plan(_of_sites(target), kernel.discrete, num_steps)
        is_slow, is_end = windows(num_steps)
        return Joint(ours, jnp.asarray(is_slow), jnp.asarray(is_end))

    def init(self, target: Any, kernel: Any) -> Memory:
        """What it remembers before the first step."""
        ours = None if self.ours is None else self.ours.init(_of_sites(target), kernel.discrete)
        step_size = kernel.block.parameters.get("step_size", 1.0)
        zero = jnp.zeros((), jnp.float32)
        moments = no_moments(_flat(target.zeros)) if "inverse_mass_matrix" in kernel.block.tuned else None
        return Memory(ours, jnp.zeros((), jnp.int32), _averaging(kernel, step_size), zero, moments)

    def update(self, target: Any, kernel: Any, memory: Memory, states: State, info: Info) -> tuple[Any, Memory]:
        """The next (kernel, memory)."""
        assert self.is_slow is not None
        assert self.is_end is not None
        discrete, ours = kernel.discrete, memory.ours
        if self.ours is not None:
            discrete, ours = self.ours.update(_of_sites(target), discrete, ours, states, info)
        block, at_end = kernel.block, self.is_end[memory.step]
        rate = jnp.mean(states.cache.accept_prob)
        share = 1 / memory.averaging.step.astype(jnp.float32)
        mean_rate = memory.mean_rate + share * (rate - memory.mean_rate)
        averaging, tuned = _updated(kernel, memory.averaging, rate), {}
        moments = memory.moments
        if moments is not None:
            moments = _select(self.is_slow[memory.step], _add_chains(moments, states.cache.z), moments)
            found = _regularised(moments).astype(block.parameters["inverse_mass_matrix"].dtype)
            tuned["inverse_mass_matrix"] = jnp.where(at_end, found, block.parameters["inverse_mass_matrix"])
            moments = _select(at_end, no_moments(moments.mean), moments)
        if "step_size" in block.tuned:
            step_size = jnp.exp(averaging.log_step_size).astype(block.parameters["step_size"].dtype)
            tuned["step_size"] = step_size
            if moments is not None:
                averaging = _select(at_end, _averaging(kernel, step_size), averaging)
        kernel = replaced(kernel, discrete=discrete, block=block.with_parameters(**tuned))
        return kernel, Memory(ours, memory.step + 1, averaging, mean_rate, moments)

    def freeze(self, target: Any, kernel: Any, memory: Memory) -> tuple[Any, MixedReport]:
        """The kernel to draw with, and what was done."""
        discrete, report, block, step_size = kernel.discrete, None, kernel.block, None
        if self.ours is not None:
            discrete, report = self.ours.freeze(_of_sites(target), discrete, memory.ours)
        if "step_size" in block.tuned:
            averaged = jnp.exp(memory.averaging.log_step_size_avg)
            block = block.with_parameters(step_size=jnp.asarray(averaged, block.parameters["step_size"].dtype))
            step_size = float(averaged)
        told = MixedReport(report, step_size, block.rate, float(memory.mean_rate), int(memory.step))
        return replaced(kernel, discrete=discrete, block=block), told


def windows(num_steps: int) -> tuple[Bool[np.ndarray, " steps"], Bool[np.ndarray, " steps"]]:
    """Which of so many steps count for the mass, and which of them end a window."""
    is_slow, is_end = np.zeros((2, num_steps), bool)
    first, last = int(_FIRST * num_steps), num_steps - max(1, int(_LAST * num_steps))
    length = _SHORTEST
    while first + length <= last:
        end = last if first + 3 * length > last else first + length  # the next would not fit: this one has its steps
        is_slow[first:end], is_end[end - 1] = True, True
        first, length = end, 2 * length
    return is_slow, is_end


def _of_sites(target: Any) -> Target:
    return target.given(target.zeros)


def _rule(kernel: Any) -> Any:
    package = import_extra("blackjax.adaptation.step_size", "A kernel of BlackJAX needs", "blackjax")
    return package.dual_averaging_adaptation(kernel.block.rate)


def _averaging(kernel: Any, step_size: Any) -> Any:
    """BlackJAX's dual averaging before its first step."""
    return jax.tree.map(lambda value: jnp.asarray(value, jnp.result_type(float)), _rule(kernel)[0](step_size))


def _updated(kernel: Any, averaging: Any, rate: Float[Array, ""]) -> Any:
    after = _rule(kernel)[1](averaging, rate)
    return jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, averaging)


def _flat(z: Any) -> Float[Array, " values"]:
    return jax.flatten_util.ravel_pytree(z)[0]


def _add_chains(moments: RunningMoments, z: Any) -> RunningMoments:
    """The moments with the values of all chains."""

    def add(moments: RunningMoments, flat: Array) -> tuple[RunningMoments, None]:
        return add_to_moments(moments, flat, jnp.zeros(())), None

    return jax.lax.scan(add, moments, jax.vmap(_flat)(z))[0]


def _regularised(moments: RunningMoments) -> Float[Array, " values"]:
    """The variance, as if a few draws more had a small one."""
    count = moments.scaled_weight
    return (moments.scaled_squares + _PRIOR_DRAWS * _PRIOR_VARIANCE) / (count + _PRIOR_DRAWS)


def _select(which: Bool[Array, ""], new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), new, old)
