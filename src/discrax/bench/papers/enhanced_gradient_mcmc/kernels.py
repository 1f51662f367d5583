"""PAVG as it was released, one that knows the quadratic part of its target, and where the chains begin."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Integer

from discrax import samplers, targets
from discrax.core.kernel import Kernel, Knob
from discrax.core.target import Target
from discrax.samplers.gaussian_auxiliary import PAVG


def near_level_eleven(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Every coordinate uniform over the grid points 10, 11 and 12, off the mass of the mixtures."""
    return np.random.default_rng(seed).integers(10, 13, (num_chains, *target.space.shape)).astype(np.int8)


def only_second(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """The state with nothing but the second coordinate on."""
    x = np.zeros((num_chains, *target.space.shape), np.int8)
    x[:, 1] = 1
    return x


class PrintedPAVG(PAVG):
    """PAVG with `first_step` until M is estimated, and with `step_size` from then on: only gamma is tuned."""

    later_step: float = eqx.field(static=True)

    def __init__(self, first_step: float, step_size: float):
        super().__init__(first_step)
        self.later_step = step_size

    def prepare(
        self, target: Target, *, tuning: bool, draws: Integer[np.ndarray, "..."] | None = None
    ) -> tuple[Any, str | None]:
        ready, origin = super().prepare(target, tuning=tuning, draws=draws)
        if ready.is_prepared and not self.is_prepared:
            ready = ready.with_knobs(step_size=jnp.float32(self.later_step))
        return ready, origin

    def knobs(self, target: Target) -> dict[str, Knob]:
        return {name: knob for name, knob in super().knobs(target).items() if name == "gamma"}


def pavg_of_pairs(step_size: float, side: int = 4) -> Kernel:
    """PAVG with the Hessian of the quadratic part of a `CubicIsing` lattice, whatever its triples are."""
    return samplers.pavg(step_size=step_size, M=targets.CubicIsing.lattice(side=side, strength=0.0).quadratic_matrix())
