"""Kernels that are made of others: all in turn, one drawn at random, or one on some of the sites.

Where kernels P_1 .. P_m leave pi as it is, so do

    cycle     P_1 P_2 ... P_m         a step is one step of each, in this order, each with a key of its own
    mixture   sum_k w_k P_k           a step is one step of kernel k with probability w_k, whatever the state

and a kernel on the sites of a mask, with all others frozen to what they are, leaves the law of those given the others
as it is, and so pi. What a kernel keeps between steps (log-ratios) is of the state that it left: before its turn it is
evaluated anew, but for integers, which say where a scan of the sites is.

A mixture makes the step of every kernel and keeps one of them: chains run side by side, and each draws by itself. The
acceptance of each is known at every step in both, so that each is tuned as if it were alone.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import as_array, describe, real_array
from discrax.core.conditioning import with_space
from discrax.core.kernel import Caution, Info, Kernel, Knob, PartCaches, State, reevaluate, replaced, scalar_info
from discrax.core.levels import draw_weighted_levels
from discrax.core.metropolis import select
from discrax.core.sites import Frozen
from discrax.core.stochastic import StochasticTarget
from discrax.core.target import Target


class Composed(Kernel):
    """A kernel made of others. Subclasses say how their steps become one."""

    kernels: tuple[Kernel, ...]
    title: ClassVar[str]

    @abstractmethod
    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        """One step of one chain (no batch axis)."""

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.kernels

    def with_parts(self, kernels: Sequence[Kernel]) -> "Composed":
        """With other kernels in place of its own."""
        return replaced(self, kernels=tuple(kernels))

    @property
    def capacity(self) -> int | None:
        """The largest of its parts, which `prepare` gives to all that have one."""
        return max((part.capacity for part in self.kernels if part.capacity is not None), default=None)

    def with_capacity(self, capacity: int) -> "Composed":
        return self.with_parts([k if k.capacity is None else k.with_capacity(capacity) for k in self.kernels])

    @property
    def is_exact(self) -> bool:
        """Whether all of its parts are."""
        return all(part.is_exact for part in self.kernels)

    @property
    def uses_gradient(self) -> bool:
        """Whether one of its parts does."""
        return any(part.uses_gradient for part in self.kernels)

    @property
    def keeps_totals(self) -> bool:
        """Whether all of its parts do."""
        return all(part.keeps_totals for part in self.kernels)

    @property
    def evaluates_levels(self) -> bool:
        """Whether one of its parts does."""
        return any(part.evaluates_levels for part in self.kernels)

    @property
    def is_prepared(self) -> bool:
        return all(part.is_prepared for part in self.kernels)

    def prepare(self, target: Target, *, tuning: bool, draws: Any = None) -> tuple["Composed", str | None]:
        """With all parts prepared."""
        found = [part.prepare(target, tuning=tuning, draws=draws) for part in self.kernels]
        ready, notes = self.with_parts([part for part, _ in found]), [note for _, note in found if note is not None]
        ready = ready if ready.capacity is None else ready.with_capacity(ready.capacity)
        kind = Caution if any(isinstance(note, Caution) for note in notes) else str
        return ready, kind("; ".join(notes)) if notes else None

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        states = [part.init(target, x) for part in self.kernels]
        nothing = scalar_info(0, False, 0, 0, False)
        return State(x, states[0].log_prob, PartCaches(tuple(s.cache for s in states), (nothing,) * len(states)))

    def arrive(self, part: Kernel, target: Target, state: State) -> State:
        """The state of a part at the beginning of its turn, with its cache as it left it: others may have moved."""
        return reevaluate(part, target, state)

    def turn(self, part: Kernel, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        """A step of a part."""
        if not jax.tree.leaves(state.cache):
            return part.step(key, target, state)
        after, info = part.step(key, target, self.arrive(part, target, state))
        return after, info._replace(evals=info.evals + 1)


class Cycle(Composed):
    """One step of each kernel, in turn."""

    title: ClassVar[str] = "cycle"

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        here, caches, infos = state, [], []
        for part, of_part, cache in zip(self.kernels, self.keys(key), state.cache.caches, strict=True):
            here, info = self.turn(part, of_part, target, here._replace(cache=cache))
            caches.append(here.cache)
            infos.append(info)
        after = State(here.x, here.log_prob, PartCaches(tuple(caches), tuple(infos)))
        return after, _of_all(infos, target.space.distance(state.x, here.x))

    def keys(self, key: PRNGKeyArray) -> Sequence[PRNGKeyArray]:
        """One for each kernel."""
        return list(random.split(key, len(self.kernels)))


class Mixture(Composed):
    """One step of one of the kernels, drawn with their weights."""

    weights: Float[Array, " kernels"]
    title: ClassVar[str] = "mixture"

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        for_choice, *keys = random.split(key, 1 + len(self.kernels))
        chosen = draw_weighted_levels(random.words(for_choice, 1), self.weights[None])[0]
        made, caches, infos = None, [], []
        for i, (part, of_part, cache) in enumerate(zip(self.kernels, keys, state.cache.caches, strict=True)):
            after, info = self.turn(part, of_part, target, state._replace(cache=cache))
            caches.append(select(chosen == i, after.cache, cache))
            infos.append(info)
            this = (after._replace(cache=()), info)
            made = this if made is None else select(chosen == i, this, made)
        assert made is not None
        there, info = made
        evals = jnp.sum(jnp.stack([each.evals for each in infos]))  # all of them were made
        return there._replace(cache=PartCaches(tuple(caches), tuple(infos))), info._replace(evals=evals)


class OnSites(Kernel):
    """A kernel that moves some sites only: the others are frozen to what they are at each step."""

    kernel: Kernel
    moves: Bool[Array, "*shape"]

    def __init__(self, kernel: Kernel, moves: ArrayLike):
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel, such as discrax.samplers.pas(), but got {describe(kernel)}.")
        mask = as_array("sites", moves)
        if mask.dtype != np.bool_ or not mask.any():
            raise ValueError(
                "sites must be a boolean mask of the shape of a state, True for at least one site to move, but got "
                f"{mask.dtype} of shape {mask.shape}{' without a True' if mask.dtype == np.bool_ else ''}."
            )
        self.kernel, self.moves = kernel, jnp.asarray(mask)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    @property
    def capacity(self) -> int | None:
        """That of its kernel."""
        return self.kernel.capacity

    def with_capacity(self, capacity: int) -> "OnSites":
        return replaced(self, kernel=self.kernel.with_capacity(capacity))

    @property
    def is_exact(self) -> bool:
        """Whether its kernel is."""
        return self.kernel.is_exact

    @property
    def uses_gradient(self) -> bool:
        """Whether its kernel does."""
        return self.kernel.uses_gradient

    @property
    def is_prepared(self) -> bool:
        return self.kernel.is_prepared

    def refusal(self, target: Target) -> str | None:
        space = target.space
        if self.moves.shape != space.shape:
            return f"sites must be a mask of shape {space.shape}, that of a state, but it has shape {self.moves.shape}."
        if space.totals is not None:
            return "A kernel on some of the sites cannot keep the totals of all; use 'swap' by itself."
        is_free = True if space.frozen is None else ~np.asarray(space.frozen.mask)
        if not np.any(np.asarray(self.moves) & is_free):
            return "sites must have at least one site that the target's space has not frozen, but it has none."
        return None

    def knobs(self, target: Target) -> dict[str, Knob]:
        return self.kernel.knobs(self.seen(target, jnp.zeros(target.space.shape, target.space.dtype)))

    def with_knobs(self, **values: Float[Array, ""]) -> "OnSites":
        return replaced(self, kernel=self.kernel.with_knobs(**values))

    def prepare(self, target: Target, *, tuning: bool, draws: Any = None) -> tuple["OnSites", str | None]:
        """With its kernel prepared."""
        kernel, note = self.kernel.prepare(target, tuning=tuning, draws=draws)
        return replaced(self, kernel=kernel), note

    def seen(self, target: Target, x: Integer[Array, "*shape"]) -> Target:
        """The target, with the other sites frozen to those of a state."""
        space = target.space
        mask = ~self.moves if space.frozen is None else ~self.moves | space.frozen.mask
        free_sites = jnp.argsort(mask.reshape(-1), stable=True).astype(jnp.int32)
        held = Frozen(mask, jnp.where(mask, x, 0), free_sites, jnp.sum(~mask, dtype=jnp.int32))
        frozen = eqx.tree_at(lambda each: each.frozen, space, held, is_leaf=lambda each: each is None)
        return with_space(target, space, frozen)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return self.kernel.init(self.seen(target, x), x)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        return self.kernel.step(key, self.seen(target, state.x), state)


def check_parts(kernels: Sequence[Kernel]) -> None:
    """Raises a sentence where kernels cannot take turns."""
    if len(kernels) < 2:
        raise ValueError(f"Kernels take turns where there are at least two of them, but got {len(kernels)}.")
    for kernel in kernels:
        if StochasticTarget in kernel.needs:
            raise ValueError(
                f"{type(kernel).__name__} sees its target through mini-batches, and what it remembers of them is of "
                "one state after another; it cannot take turns with others, but runs by itself."
            )


def checked_weights(weights: Any, count: int) -> Float[Array, " kernels"]:
    """Weights of a mixture, which add up to 1; equal ones if there are none."""
    values = np.ones(count) if weights is None else real_array("weights", weights)
    if values.shape != (count,) or not np.isfinite(values).all() or (values <= 0).any():
        raise ValueError(
            f"weights must be {count} positive numbers, one for each kernel, but got {describe(weights)}; leave a "
            "kernel out that is never to be drawn."
        )
    return jnp.asarray(values / values.sum(), jnp.float32)


def _of_all(infos: Sequence[Info], jump: Float[Array, ""]) -> Info:
    """One Info of several steps: costs add up, the acceptance is their mean."""
    stacked = jax.tree.map(lambda *stats: jnp.stack(stats), *infos)
    return scalar_info(
        jnp.mean(stacked.accept_prob),
        jnp.any(stacked.is_accepted),
        jump,
        jnp.sum(stacked.evals),
        jnp.any(stacked.is_invalid),
        jnp.sum(stacked.log_weight),
    )
