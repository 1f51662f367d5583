"""Parallel tempering as a kernel: one chain is a ladder of replicas, of which the last is the chain's state.

Rung k has the law p_b at b = betas[k], on a path whose last law, at b = 1, is the target:

    log p_b(x) = b log pi(x),        or with a reference        (1 - b) log reference(x) + b log pi(x).

A step moves every rung by its own kernel, then neighbours change places (`core/exchanges.py`). Both leave the product
of the laws of all rungs invariant, so that the last rung has the law of the target. With clusters each rung has two
replicas, which first exchange a cluster of sites (`houdayer.py`).

Samplers that make paths have them as long as the target's rung needs, or as cost it nothing, at all rungs.

What a kernel has cached does not depend on the temperature, so that on the path of powers an exchange costs nothing.
With a reference it does depend on b, and states are evaluated anew after exchanges.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, Int32, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.exchanges import decide_exchanges, exchanged
from discrax.core.kernel import Info, Kernel, State, reevaluate, scalar_info
from discrax.core.target import Target, Tempered, inverse_temperature, temper
from discrax.sampling.houdayer import Couplings, houdayer_move
from discrax.sampling.stacking import split, stack
from discrax.targets.between import between

NEITHER, FROM_TARGET, FROM_HOTTEST = 0, 1, 2  # where a replica was last, of the two ends
_FREE = 16  # a step that looks at all n sites takes as long for paths of n / 16 as for short ones


class Rungs(NamedTuple):
    """All replicas of a chain, axes (rung, copy, ...), and what their last step was like."""

    states: State
    info: Info
    values: Float[Array, "rungs copies"]  # V = d log p_b / db: log pi, or log pi - log reference
    accept_probs: Float[Array, "gaps copies"]  # of exchanges
    ends: Int8[Array, "rungs copies"]  # which end each replica was at last; the hottest counts after the target's
    trips: Int32[Array, ""]  # from the target's rung to the hottest and back, of all replicas so far
    turn: Int32[Array, ""]


class Tempering(Kernel):
    """A kernel on a ladder. `varied` and `shared` make up the kernels of the rungs: what knobs change, and the rest."""

    betas: Float[Array, " rungs"]
    varied: Kernel  # arrays have a leading axis of rungs
    shared: Kernel
    reference: Target | None
    couplings: Couplings | None  # where clusters are exchanged
    log_first: Float[Array, ""]  # log Z of the law at b = 0; NaN where it is not known
    num_steps: int = eqx.field(static=True)  # of each rung between exchanges
    capacity: int | None = eqx.field(static=True)  # of the kernels of all rungs

    @staticmethod
    def of(kernels: Sequence[Kernel], target: Target, **fields: Any) -> "Tempering":
        """From a kernel a rung: they differ in their knobs alone."""
        capacities = [kernel.capacity for kernel in kernels if kernel.capacity is not None]
        capacity = max(capacities, default=None)
        if capacity is not None:
            kernels = [kernel.with_capacity(capacity) for kernel in kernels]
        last = jax.tree.map(_as_leaf, kernels[-1])
        knobs = {name: jnp.asarray(np.array(knob.value)) for name, knob in last.knobs(target).items()}
        turned = last.with_knobs(**knobs) if knobs else last  # with new arrays where a knob has a part
        is_varied = jax.tree.map(lambda old, new: old is not new, last, turned)
        varied = stack([eqx.filter(kernel, is_varied) for kernel in kernels])
        shared = eqx.filter(last, is_varied, inverse=True)
        return Tempering(varied=varied, shared=shared, capacity=capacity, **fields)

    # --- What it is made of ---------------------------------------------------------------------------------------

    @property
    def num_rungs(self) -> int:
        """Laws on the path."""
        return self.betas.shape[-1]

    @property
    def num_copies(self) -> int:
        """Replicas a rung."""
        return 1 if self.couplings is None else 2

    @property
    def num_replicas(self) -> int:
        """Of all rungs."""
        return self.num_rungs * self.num_copies

    @property
    def uses_gradient(self) -> bool:
        """As the kernels of the rungs."""
        return self.shared.uses_gradient

    @property
    def keeps_totals(self) -> bool:
        """As the kernels of the rungs."""
        return self.shared.keeps_totals

    @property
    def is_prepared(self) -> bool:
        return self.shared.is_prepared

    def kernel(self, varied: Kernel) -> Kernel:
        """The kernel of a rung, from what it has for itself."""
        kernel = eqx.combine(varied, self.shared)
        return kernel if self.capacity is None else kernel.with_capacity(self.capacity)

    @property
    def kernels(self) -> list[Kernel]:
        """The kernel of each rung, the target's last; on the host."""
        return [self.kernel(varied) for varied in split(self.varied, self.num_rungs)]

    def law(self, target: Target, beta: float | Float[Array, ""]) -> Target:
        """The law at a place of the path."""
        return Tempered(target, beta) if self.reference is None else between(self.reference, target, beta)

    def laws(self, target: Target) -> list[Target]:
        """The law of each rung; on the host."""
        return [self.law(target, beta) for beta in np.asarray(self.betas).tolist()]

    def with_kernels(self, kernels: Sequence[Kernel], target: Target) -> "Tempering":
        """With other kernels of the rungs."""
        names = ("betas", "reference", "couplings", "log_first", "num_steps")
        return Tempering.of(kernels, target, **{name: getattr(self, name) for name in names})

    def prepare(
        self, target: Target, *, tuning: bool, draws: Integer[np.ndarray, "chains draws *shape"] | None = None
    ) -> tuple["Tempering", str | None]:
        kernels, laws = self.kernels, self.laws(target)
        last, note = kernels[-1].prepare(laws[-1], tuning=tuning, draws=draws)
        if kernels[-1].is_prepared:
            found = [kernel.prepare(law, tuning=tuning)[0] for kernel, law in zip(kernels, laws, strict=True)]
        else:
            found = [last] * self.num_rungs  # what one has found costs much, and is the same for all
        return self.with_kernels(self._bounded(found, laws), target), note

    def frozen(self, target: Target) -> "Tempering":
        """With paths no longer than they are to be; arrays keep their size, for which there is a program."""
        if self.capacity is None:
            return self
        fitted, _ = self.prepare(target, tuning=False)
        return self.with_kernels([kernel.with_capacity(self.capacity) for kernel in fitted.kernels], target)

    def _bounded(self, kernels: list[Kernel], laws: list[Target]) -> list[Kernel]:
        """With no longer paths than the target's rung needs, or than cost nothing.

        All rungs are moved side by side, and each pays for the longest path. A hot rung would have its whole state
        changed in a step: that takes longer than the round trips it saves.
        """
        last = kernels[-1]
        if last.capacity is None:
            return kernels
        free = laws[-1].space.num_sites // _FREE if last.uses_gradient else 1
        capacity = min(max(last.capacity, free), max(kernel.capacity or 1 for kernel in kernels))
        return [_within_limits(each.with_capacity(capacity), law) for each, law in zip(kernels, laws, strict=True)]

    # --- Steps ----------------------------------------------------------------------------------------------------

    def each(self, function: Callable[..., Any], target: Target, *trees: Any) -> Any:
        """`function(kernel, law, *parts)` of all replicas, from trees with axes (rung, copy, ...)."""

        def of_rung(varied: Kernel, beta: Array, *parts: Any) -> Any:
            kernel, law = self.kernel(varied), self.law(target, beta)
            return jax.vmap(lambda *parts: function(kernel, law, *parts))(*parts)

        return jax.vmap(of_rung)(self.varied, self.betas, *trees)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        """All replicas begin at x."""
        return self.init_at(target, jnp.broadcast_to(x, (self.num_rungs, self.num_copies, *x.shape)))

    def init_at(self, target: Target, starts: Integer[Array, "rungs copies *shape"]) -> State:
        """Every replica begins at a state of its own."""
        shape = starts.shape[:2]
        states = self.each(lambda kernel, law, x: kernel.init(law, x), target, starts)
        zeros = jnp.zeros(shape, jnp.float32)
        info = jax.vmap(jax.vmap(scalar_info))(zeros, zeros, zeros, zeros, zeros, zeros)
        values, none = self.values(target, states), jnp.zeros((), jnp.int32)
        ends = jnp.full(shape, NEITHER, jnp.int8).at[-1].set(FROM_TARGET)
        return self._state(target, Rungs(states, info, values, zeros[1:], ends, none, none))

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        for_steps, for_clusters, for_exchanges = random.split(key, 3)
        rungs: Rungs = state.cache
        states, info = self._move(for_steps, target, rungs.states)
        if self.couplings is not None:
            x = houdayer_move(for_clusters, self.couplings, states.x)
            states = self.each(reevaluate, target, states._replace(x=x))
        values = self.values(target, states)
        is_swapped, accept_probs = self.exchanges(for_exchanges, values, rungs.turn)
        states, values, ends = exchanged((states, values, rungs.ends), is_swapped)
        if self.reference is not None:
            states = self.each(reevaluate, target, states)
        trips = rungs.trips + jnp.sum(ends[-1] == FROM_HOTTEST, dtype=jnp.int32)
        was_at_target = ends[0] != NEITHER
        ends = ends.at[-1].set(FROM_TARGET)
        ends = ends.at[0].set(jnp.where(was_at_target, FROM_HOTTEST, NEITHER).astype(jnp.int8))
        after = self._state(target, Rungs(states, info, values, accept_probs, ends, trips, rungs.turn + 1))
        of_target = jax.tree.map(lambda leaf: leaf[-1, 0], info)
        jump = jnp.asarray(target.space.distance(state.x, after.x), jnp.float32)
        return after, of_target._replace(jump=jump, evals=jnp.sum(info.evals))

    def exchanges(self, key: PRNGKeyArray, values: Float[Array, "rungs copies"], turn: Int32[Array, ""]) -> Any:
        """Which neighbouring rungs change places."""
        return decide_exchanges(key, self.betas, values, turn)

    def values(self, target: Target, states: State) -> Float[Array, "rungs copies"]:
        """V = d log p_b / db of all replicas."""
        if self.reference is None:
            return temper(target, states.log_prob)
        path = between(self.reference, target)
        return jax.vmap(jax.vmap(lambda x: path.log_ratio(target.space.embed(x))))(states.x)

    def _move(self, key: PRNGKeyArray, target: Target, states: State) -> tuple[State, Info]:
        def move(states: State, key: PRNGKeyArray) -> tuple[State, Info]:
            keys = random.split(key, self.num_replicas).reshape(self.num_rungs, self.num_copies)
            return self.each(lambda kernel, law, key, state: kernel.step(key, law, state), target, keys, states)

        if self.num_steps == 1:
            return move(states, key)
        states, infos = jax.lax.scan(move, states, random.split(key, self.num_steps))
        means = Info(*(jnp.mean(stat.astype(jnp.float32), axis=0) for stat in infos))
        return states, means._replace(
            is_accepted=jnp.any(infos.is_accepted, axis=0),
            is_invalid=jnp.any(infos.is_invalid, axis=0),
            evals=jnp.sum(infos.evals, axis=0),
            log_weight=infos.log_weight[-1],
        )

    def _state(self, target: Target, rungs: Rungs) -> State:
        """The state of the chain: that of the last rung, with the untempered log-probability of the target."""
        x, value = rungs.states.x[-1, 0], rungs.states.log_prob[-1, 0]
        return State(x, value if self.reference is None else value / inverse_temperature(target), rungs)


def _within_limits(kernel: Kernel, law: Target) -> Kernel:
    knobs = kernel.knobs(law).items()
    over = {name: jnp.asarray(knob.high, jnp.float32) for name, knob in knobs if knob.value > knob.high}
    return kernel.with_knobs(**over) if over else kernel


def _as_leaf(value: Any) -> Any:
    return jnp.asarray(value) if isinstance(value, np.ndarray | np.generic) else value
