"""The samplers under test by name, with settings that mix on the small targets."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

import discrax as dx

WEIGHTS = {name: build() for name, build in dx.samplers.WEIGHT_FUNCTIONS.items()} | {"power": dx.samplers.Power(0.7)}


class AnyWeight(eqx.Module):
    """A weight function chosen by a leaf, so that kernels with different ones share a compiled program."""

    which: Int[Array, ""]

    def __init__(self, name: str):
        self.which = jnp.asarray(list(WEIGHTS).index(name), jnp.int32)

    def __call__(self, log_ratio: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.select([self.which == i for i in range(len(WEIGHTS))], [g(log_ratio) for g in WEIGHTS.values()])


# The path length and the step size are leaves too: kernels of one family that differ in them alone share a program.
INFORMED: dict[str, Callable[[AnyWeight], dx.Kernel]] = {
    "gwg-1": lambda weight: dx.samplers.gwg(1.0, weight),
    "gwg-2.5": lambda weight: dx.samplers.gwg(2.5, weight),
    "pas-1": lambda weight: dx.samplers.pas(1.0, weight),
    "pas-2": lambda weight: dx.samplers.pas(2.0, weight),
    "pas-2.5": lambda weight: dx.samplers.pas(2.5, weight),
    "pas-3.5": lambda weight: dx.samplers.pas(3.5, weight),
    "dmala": lambda weight: dx.samplers.dmala(3.0, weight),
}
UNINFORMED: dict[str, Callable[[], dx.Kernel]] = {
    "rwm-1": lambda: dx.samplers.rwm(1.0),
    "rwm-2.5": lambda: dx.samplers.rwm(2.5),
    "gibbs-random": lambda: dx.samplers.gibbs("random"),
    "gibbs-systematic": lambda: dx.samplers.gibbs("systematic"),
    "gibbs-chromatic": lambda: dx.samplers.gibbs("chromatic"),
}


def kernel(name: str, weight: str = "sqrt") -> dx.Kernel:
    return UNINFORMED[name]() if name in UNINFORMED else INFORMED[name](AnyWeight(weight))
