"""How chains lie in memory while a program runs. A kernel is one step of one chain; this is the driver's affair.

- As they are: chains first.
- Chains last, on accelerators, where a target gathers and there is much to gather: whole lines of memory are read.
- In an order of the kernel's own (`Kernel.arrange`), chains last, where that pays.

Nobody outside sees it: draws are those of the kernel, and results have the chains first.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
from jaxtyping import Array, Key

from discrax.core.kernel import Info, Kernel, State
from discrax.core.target import Target
from discrax.core.xla import chains_last

_WORTH_IT = 2**18  # codes of all chains; below, the launches of a step cost more than its gathers
_FEW_CODES = 2**20  # of all chains, up to which a turn of the loop counts beside what is done in it
_MANY_STEPS = 10**6  # that repay a longer compilation


class Layout(NamedTuple):
    """Steps of all chains in some layout."""

    enter: Callable[[State], State]  # states with chains first, laid out for steps
    step: Callable[[Kernel, Key[Array, " chains"], State], tuple[State, Info]]
    leave: Callable[[State], State]  # states as everyone knows them


def choose_layout(target: Target, kernel: Kernel, states: State) -> Layout:
    """The one place that decides."""
    arranged = kernel.arrange(target)
    if arranged is not None:
        sweep = jax.vmap(arranged.step)
        return _laid_out(
            jax.vmap(arranged.enter), lambda _, keys, states: sweep(keys, states), jax.vmap(arranged.leave)
        )

    def step(kernel: Kernel, keys: Key[Array, " chains"], states: State) -> tuple[State, Info]:
        return jax.vmap(kernel.step, in_axes=(0, None, 0))(keys, target, states)

    if target.gathers and states.x.size >= _WORTH_IT:
        return _laid_out(_as_is, step, _as_is)
    return Layout(_as_is, step, _as_is)


def steps_in_a_turn(states: State, num_steps: int) -> int:
    """Of the loop. On accelerators a turn costs some microseconds by itself; a longer one takes seconds to compile."""
    is_small, is_long = states.x.size <= _FEW_CODES, num_steps >= _MANY_STEPS
    return 4 if is_small and is_long and jax.default_backend() != "cpu" else 1


def pays_to_arrange(target: Target) -> bool:
    """Whether a kernel should plan an order of its own: on accelerators, elsewhere where the target gathers anyway."""
    return target.gathers or jax.default_backend() != "cpu"


def _laid_out(
    enter: Callable[[State], State],
    step: Callable[[Kernel, Key[Array, " chains"], State], tuple[State, Info]],
    leave: Callable[[State], State],
) -> Layout:
    """With the chains of a site side by side."""

    def step_and_lay_out(kernel: Kernel, keys: Key[Array, " chains"], states: State) -> tuple[State, Info]:
        states, info = step(kernel, keys, states)
        return chains_last(states), info

    return Layout(lambda states: chains_last(enter(states)), step_and_lay_out, leave)


def _as_is(states: State) -> State:
    return states
