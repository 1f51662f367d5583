"""Kernels: one step of one chain, as a pure function.

Adaptation and the driver see a kernel through abstract classes: every kernel is a `Kernel`; one with a scale that can
be tuned to an acceptance rate is `Tunable`; one with fields that are tuned by trying values is `Probed`; one whose
arrays have a static capacity is `Sized`.
"""

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from discrax.core.checks import describe
from discrax.core.space import Space
from discrax.core.target import Target, check_target, evaluate, offered

Module = TypeVar("Module", bound=eqx.Module)


class State(NamedTuple):
    """Where a chain is. `log_prob` and `cache` are of the untempered target, so a change of temperature keeps them."""

    x: Integer[Array, "*shape"]
    log_prob: Float[Array, ""]
    cache: Any  # whatever saves the next step an evaluation


class Info(NamedTuple):
    """What happened in a step; the same fields for every kernel."""

    accept_prob: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    jump: Float[Array, ""]  # distance moved (space.distance); 0 when rejected
    evals: Float[Array, ""]  # target evaluations this step cost
    log_weight: Float[Array, ""]  # of the time that the state after the step counts for
    is_invalid: Bool[Array, ""]  # the log-probability at the proposal was NaN or +inf


class Kernel(eqx.Module):
    """A Markov kernel. Its tunables are leaves: changing them never recompiles."""

    spaces: ClassVar[tuple[type[Space], ...]] = (Space,)  # the spaces it takes
    needs: ClassVar[tuple[type[Target], ...]] = ()  # capabilities a target must offer
    is_exact: ClassVar[bool] = True  # False where it samples another law than the target's, if a near one
    uses_gradient: ClassVar[bool] = False  # where the target has no exact ratios, it must be differentiable
    sites_changed: ClassVar[int | str | None] = None  # in a step: a number, the field that has it, or None for all

    def prepare(self, target: Target) -> "Kernel":
        """The kernel with what it must know of the target before a program is made of both; by default as it is."""
        return self

    @abstractmethod
    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State: ...

    @abstractmethod
    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        """One step of one chain (no batch axis)."""


def sites_per_step(kernel: Kernel, space: Space) -> float:
    """How many sites a step may change."""
    changed = kernel.sites_changed
    most = float(space.num_free)
    if changed is None:
        return most
    return min(most, float(getattr(kernel, changed) if isinstance(changed, str) else changed))


def check_fits(kernel: Kernel, target: Target) -> None:
    """Raises an error that says why a kernel cannot have a target."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a kernel, such as discrax.samplers.pas(), but got {describe(kernel)}.")
    if not isinstance(target, Target):
        check_target(target)
    if not isinstance(target.space, kernel.spaces):
        takes = " or ".join(space.__name__ for space in kernel.spaces)
        raise ValueError(
            f"{type(kernel).__name__} takes {takes} spaces, but the target's is {type(target.space).__name__}; "
            "`discrax samplers` lists what takes which."
        )
    for capability in kernel.needs:
        if offered(target, capability) is None:
            what = (capability.__doc__ or capability.__name__).strip()
            raise ValueError(
                f"{type(kernel).__name__} needs {what} ({capability.__name__}), which "
                f"{type(target).__name__} does not offer; use another sampler or a target that offers it."
            )


class Tunable(Kernel):
    """A kernel with one scale. Adaptation moves its logarithm; larger scales jump further and are accepted less."""

    parameter: ClassVar[str]  # the name of the tuned field
    target_rate: ClassVar[float]  # the acceptance rate at which the papers find it most efficient

    @abstractmethod
    def log_scale(self, target: Target) -> Float[Array, ""]: ...

    @abstractmethod
    def with_log_scale(self, target: Target, value: Float[Array, ""]) -> "Tunable":
        """The kernel with another scale, clipped to what makes sense."""


class Rated(Tunable):
    """A kernel whose scale is the time that rates g of all single-site changes have to act."""

    @abstractmethod
    def log_rate(self, target: Target, state: State) -> Float[Array, ""]:
        """log Z(x): the logarithm of the sum of all rates."""


class Probed(Kernel):
    """A kernel with scalar fields ("knobs") that are tuned by trying values."""

    @property
    @abstractmethod
    def knobs(self) -> dict[str, tuple[float, ...]]:
        """The names of the fields, and for each the values to try first."""

    @abstractmethod
    def knob(self, name: str) -> Float[Array, ""]: ...

    @abstractmethod
    def with_knob(self, name: str, value: Float[Array, ""]) -> "Probed":
        """The kernel with another value of the field, clipped to what makes sense."""


class Sized(Kernel):
    """A kernel whose arrays have a static capacity."""

    @abstractmethod
    def sized(self, target: Target, *, room: bool) -> "Sized":
        """The kernel with the capacity that suits its present scale; with `room` for it to grow in warm-up."""


def start_state(target: Target, x: Integer[Array, "*shape"]) -> State:
    """The first state of a kernel whose cache is the log-ratios of all single-site changes."""
    evaluation = evaluate(target, x)
    return State(x, evaluation.log_prob, evaluation.ratios)


def replaced(module: Module, **fields: Any) -> Module:
    """A copy of a module with other values of some fields, static ones too (`eqx.tree_at` reaches leaves only)."""
    known = [each.name for each in dataclasses.fields(module)]  # pyright: ignore[reportArgumentType]
    for name in fields:
        if name not in known:
            raise TypeError(f"{type(module).__name__} has no field {name!r}, but it has {', '.join(known)}.")
    copy = object.__new__(type(module))
    for name in known:
        object.__setattr__(copy, name, fields[name] if name in fields else getattr(module, name))
    return copy


def scalar_info(accept_prob, is_accepted, jump, evals, is_invalid, log_weight: float | Array = 0.0) -> Info:
    """An `Info` whose types are the same whatever the kernel passed."""

    def as_float(value):
        return jnp.asarray(value, jnp.float32)

    return Info(
        as_float(accept_prob),
        jnp.asarray(is_accepted, bool),
        as_float(jump),
        as_float(evals),
        as_float(log_weight),
        jnp.asarray(is_invalid, bool),
    )
