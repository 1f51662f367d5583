"""An adapter with a switch: the program that tunes a kernel draws with it too. A program is seconds of compilation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from discrax.core.driver import Adapter
from discrax.core.kernel import Info, State
from discrax.core.target import Target


class Switched(eqx.Module):
    """An adapter that can be switched off, without another program."""

    adapter: Any
    is_on: Bool[Array, ""]

    def __init__(self, adapter: Adapter, is_on: bool = True):
        self.adapter, self.is_on = adapter, jnp.asarray(is_on)

    def switch_off(self) -> "Switched":
        """The same adapter; kernels stay as they are from now on."""
        return Switched(self.adapter, False)

    def plan(self, target: Target, kernel: Any, num_steps: int) -> "Switched":
        """Laid out for a kernel and a number of steps."""
        return Switched(self.adapter.plan(target, kernel, num_steps))

    def init(self, target: Target, kernel: Any) -> Any:
        """What the adapter remembers before the first step."""
        return self.adapter.init(target, kernel)

    def update(self, target: Target, kernel: Any, memory: Any, states: State, info: Info) -> tuple[Any, Any]:
        """The next (kernel, memory), or the same."""
        before, static = eqx.partition((kernel, memory), eqx.is_array)

        def update() -> Any:
            return eqx.filter(self.adapter.update(target, kernel, memory, states, info), eqx.is_array)

        return eqx.combine(jax.lax.cond(self.is_on, update, lambda: before), static)

    def freeze(self, target: Target, kernel: Any, memory: Any) -> tuple[Any, Any]:
        """The kernel to draw with, and a report of what was done."""
        return self.adapter.freeze(target, kernel, memory)
