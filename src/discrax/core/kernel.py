"""Kernels: one step of one chain, as a pure function.

Adaptation and the driver see a kernel through one abstract class. What warm-up may turn is its mapping of `knobs`; what
must be found before it runs (the size of its arrays, second derivatives of the target) is found by its `prepare`.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from discrax.core.checks import describe
from discrax.core.space import Space
from discrax.core.target import Target, check_target, evaluate, offered
from discrax.core.xla import numpy_for

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


class PartCaches(NamedTuple):
    """The cache of a kernel that is made of others: what each keeps, and how the last step of each went."""

    caches: tuple[Any, ...]
    infos: tuple[Info, ...]


class Caution(str):
    """A sentence of `Kernel.prepare` that whoever trusts the draws should know: it is in the summary of a result."""


class Knob(NamedTuple):
    """A number of a kernel that warm-up may turn: what it is now, its limits, and what is known of good values."""

    value: Float[Array | np.ndarray, ""]
    low: float | Float[Array, ""]
    high: float | Float[Array, ""]
    tries: tuple[float, ...] = (0.05, 0.5, 5.0, 50.0, 500.0)  # the values to try first
    rate: float | None = None  # the acceptance rate at which it is most efficient, where theory knows one
    # An increasing coordinate for tuning to a rate: one unit of it multiplies the number of moves by about e.
    to_scale: Callable[[Array], Array] = lambda value: numpy_for(value).log(value)
    from_scale: Callable[[Array], Array] = lambda scale: numpy_for(scale).exp(scale)


class Kernel(eqx.Module):
    """A Markov kernel. Its knobs are leaves: changing them never recompiles."""

    spaces: ClassVar[tuple[type[Space], ...]] = (Space,)  # the spaces it takes
    needs: ClassVar[tuple[type[Target], ...]] = ()  # capabilities a target must offer
    is_exact: ClassVar[bool] = True  # False where it samples another law than the target's, if a near one
    uses_gradient: ClassVar[bool] = False  # where the target has no exact ratios, it must be differentiable
    sites_changed: ClassVar[int | str | None] = None  # in a step: a number, the field that has it, or None for all
    capacity: ClassVar[int | None] = None  # a static field where arrays of what a step changes have a size; it may grow
    num_replicas: ClassVar[int] = 1  # states that a step of a chain moves
    keeps_totals: ClassVar[bool] = False  # it never leaves the states whose totals a space bounds
    evaluates_levels: ClassVar[bool] = False  # a step evaluates the target at every level of a site, or of all sites

    @property
    def parts(self) -> tuple["Kernel", ...]:
        """The kernels that it is made of, where it is made of others."""
        return ()

    def refusal(self, target: Target) -> str | None:
        """Why it cannot have a target that offers all it needs, in a sentence; None where it can, or cannot tell yet.

        Called on the host, before anything is compiled; inside a program the target's numbers are not known.
        """
        return None

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        """The state of a chain that starts at x; by default its cache is the log-ratios of all single-site changes."""
        return start_state(target, x)

    @abstractmethod
    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        """One step of one chain (no batch axis)."""

    def arrange(self, target: Target) -> "Arranged | None":
        """Its steps on states laid out in a way of its own, once for all steps of a program; None where it has none."""
        return None

    def knobs(self, target: Target) -> dict[str, Knob]:
        """What warm-up may turn, by name; nothing by default."""
        return {}

    def with_knobs(self, **values: Float[Array, ""]) -> "Kernel":
        """The kernel with other values of its knobs; the caller keeps to their limits."""
        return replaced(self, **values)

    def with_capacity(self, capacity: int) -> "Kernel":
        """The kernel with another capacity, where it has one."""
        return replaced(self, capacity=capacity)

    def queries(self, target: Target, evals: float) -> float:
        """Queries of log pi in a step as the papers count them, given the evaluations that it made (`Info.evals`).

        The papers keep nothing between steps: x is evaluated too, and a gradient is a query of its own.
        """
        return (evals + 1) * (2 if self.uses_gradient else 1)

    @property
    def is_prepared(self) -> bool:
        """False while it lacks what `prepare` would give it; it is a valid kernel all the same."""
        return True

    def prepare(
        self, target: Target, *, tuning: bool, draws: Integer[np.ndarray, "chains draws *shape"] | None = None
    ) -> tuple["Kernel", str | None]:
        """The kernel ready to run on a target, and a sentence about what was done, if there is one to tell.

        Called on the host, before a run and between its chunks. With `tuning` its knobs may be turned, so its arrays
        have room to grow. From the `draws` of a burn-in it may learn what the target does not tell.
        """
        return self, None


class Arranged(eqx.Module):
    """The steps of a kernel on a target, in an order of the sites of its own; log_prob may wait until `leave`."""

    @abstractmethod
    def enter(self, state: State) -> State:
        """A chain's state, laid out for steps."""

    @abstractmethod
    def step(self, key: PRNGKeyArray, state: State) -> tuple[State, Info]:
        """One step of one chain (no batch axis)."""

    @abstractmethod
    def leave(self, state: State) -> State:
        """The state as everyone else knows it, log_prob and all."""


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
    if target.space.totals is not None and not kernel.keeps_totals:
        raise ValueError(
            f"{type(kernel).__name__} changes sites one by one, but the totals of this {type(target.space).__name__} "
            "space are bounded; use 'swap', or 'swap_uniform' where log_prob has no gradient."
        )
    for capability in kernel.needs:
        if offered(target, capability) is None:
            what = (capability.__doc__ or capability.__name__).strip()
            raise ValueError(
                f"{type(kernel).__name__} needs {what} ({capability.__name__}), which "
                f"{type(target).__name__} does not offer; use another sampler or a target that offers it."
            )
    for part in kernel.parts:
        check_fits(part, target)
    refusal = kernel.refusal(target)
    if refusal is not None:
        raise ValueError(refusal)


def rated_knob(kernel: Kernel, target: Target) -> tuple[str, Knob] | None:
    """The knob that can be tuned to an acceptance rate, and its name."""
    return next(((name, knob) for name, knob in kernel.knobs(target).items() if knob.rate is not None), None)


def reevaluate(kernel: Kernel, target: Target, state: State) -> State:
    """The state of a chain whose target has changed under it.

    Integers in a cache say where a scan of the sites is, and stay; the rest is evaluated anew.
    """
    fresh = kernel.init(target, state.x)

    def newer(new: Array, old: Array) -> Array:
        return old if jnp.issubdtype(new.dtype, jnp.integer) else new

    return fresh._replace(cache=jax.tree.map(newer, fresh.cache, state.cache))


def start_state(target: Target, x: Integer[Array, "*shape"]) -> State:
    """The first state of a kernel whose cache is the log-ratios of all single-site changes."""
    evaluation = evaluate(target, x)
    return State(x, evaluation.log_prob, evaluation.ratios)


def replaced(module: Module, **fields: Any) -> Module:
    """A copy of a module with other values of some fields, static ones too (`eqx.tree_at` reaches leaves only)."""
    known = [each.name for each in dataclasses.fields(module)]
    for name in fields:
        if name not in known:
            raise TypeError(f"{type(module).__name__} has no field {name!r}, but it has {', '.join(known)}.")
    copy = object.__new__(type(module))
    for name in known:
        object.__setattr__(copy, name, fields[name] if name in fields else getattr(module, name))
    return copy


def scalar_info(
    accept_prob: ArrayLike,
    is_accepted: ArrayLike,
    jump: ArrayLike,
    evals: ArrayLike,
    is_invalid: ArrayLike,
    log_weight: ArrayLike = 0.0,
) -> Info:
    """An `Info` whose types are the same whatever the kernel passed."""

    def as_float(value: ArrayLike) -> Array:
        return jnp.asarray(value, jnp.float32)

    return Info(
        as_float(accept_prob),
        jnp.asarray(is_accepted, bool),
        as_float(jump),
        as_float(evals),
        as_float(log_weight),
        jnp.asarray(is_invalid, bool),
    )
