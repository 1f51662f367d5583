"""What stands in a loaded result for a target or a kernel that could not be stored."""

from typing import Any, NoReturn

import equinox as eqx
from jaxtyping import Array

from discrax.core.kernel import Kernel
from discrax.core.space import Space
from discrax.core.target import Target, bare
from discrax.samplers.registry import name_of


class LeftOut(Target):
    """A target of which only the space and the name are known."""

    space: Space
    name: str = eqx.field(static=True)

    def log_prob(self, e: Array) -> NoReturn:
        raise ValueError(
            f"The target {self.name} was not stored with the result, because it holds code of yours; build it again "
            "to evaluate it."
        )


class LeftOutKernel(Kernel):
    """A kernel of which only the name is known."""

    name: str = eqx.field(static=True)

    def init(self, target: Target, x: Array) -> NoReturn:
        raise ValueError(f"The kernel {self.name} was not stored with the result; build it again to draw more.")

    def step(self, key: Any, target: Target, state: Any) -> NoReturn:
        raise ValueError(f"The kernel {self.name} was not stored with the result; build it again to draw more.")


def title_of(thing: Target | Kernel) -> str:
    """What a target or a kernel is called in reports, also where it was left out."""
    thing = bare(thing) if isinstance(thing, Target) else thing
    if isinstance(thing, LeftOut | LeftOutKernel):
        return thing.name
    return name_of(thing) if isinstance(thing, Kernel) else type(thing).__name__
