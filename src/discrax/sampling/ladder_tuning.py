"""Warm-up of a ladder: where its rungs are, by the measured barrier, and the scale of each rung's kernel.

The barrier of a path says how hard it is to cross (Syed et al., 2022): exchanges of neighbours at b and b' that are
near are rejected with probability Lambda(b') - Lambda(b), and Lambda = Lambda(1) bounds the round trips of any ladder.
Far neighbours are rejected nearly always, and rates of rejection tell no more. So it is measured as it would be if V
were Gaussian, which for near ones is the rate of rejection itself:

    Lambda(b_k+1) - Lambda(b_k) = 2 / sqrt(pi) erfinv(1 - a_k),        a_k the mean probability of an exchange.

Rungs are best where all gaps have as much of it. They are placed at the ends of rounds, each as long as all before,
and stay where they are in the second half of warm-up, when the kernels get their last scales. Kernels are tuned from
the beginning after each round, since a rung that has moved wants another scale.
"""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfinv
from jaxtyping import Array, Float, Int32

from discrax.core.driver import Adapter
from discrax.core.kernel import Info, State, replaced
from discrax.core.target import Target
from discrax.sampling.stacking import split, stack
from discrax.sampling.tempering import Rungs, Tempering

_ROUNDS = 6  # of placement, the last of which ends in the middle of warm-up
_LEAST_RATE = 1e-6


class LadderReport(NamedTuple):
    """Where warm-up placed the rungs, and what it measured since."""

    betas: tuple[float, ...]
    exchange_rates: tuple[float, ...]  # of each pair of neighbours
    barrier: float  # Lambda
    steps: int
    of_rungs: tuple[Any, ...]  # the reports of the kernels' tuning, the target's last

    def __str__(self) -> str:
        rates = self.exchange_rates
        placed = (
            f"{len(self.betas)} rungs from beta {self.betas[0]:.3g}, exchange rates {min(rates):.2f} to "
            f"{max(rates):.2f}, barrier {self.barrier:.2f}"
        )
        return f"{placed}; {self.of_rungs[-1]}" if self.of_rungs else placed


def gap_barriers(rates: Float[Array | np.ndarray, " gaps"]) -> Any:
    """The barrier of each gap, from the mean probability of its exchange; on the host where that is there."""
    if isinstance(rates, np.ndarray):
        return 2 / math.sqrt(math.pi) * _host_erfinv(1 - np.clip(rates, _LEAST_RATE, 1.0))
    return 2 / math.sqrt(math.pi) * erfinv(1 - jnp.clip(rates, _LEAST_RATE, 1.0))


def _host_erfinv(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """As JAX's, without a program."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((1 + value) / 2) / math.sqrt(2) for value in np.clip(values, 0, 1 - 1e-12)])


def place_rungs(betas: Float[Array, " rungs"], rates: Float[Array, " gaps"], num_rungs: int) -> Float[Array, " placed"]:
    """Rungs with as much of the barrier in every gap, between the same ends; Lambda(b) is linear between rungs."""
    gaps = gap_barriers(rates) + 1e-4  # where all exchanges succeed they are as they were
    reached = jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
    wanted = jnp.linspace(0.0, 1.0, num_rungs) * reached[-1]
    inner = jnp.interp(wanted, reached, betas)[1:-1]
    return jnp.concatenate([betas[:1], inner, betas[-1:]]).astype(betas.dtype)


class Memory(NamedTuple):
    """What was seen since the rungs were last placed."""

    of_rungs: Any  # of the rule of each rung's kernel
    rates: Float[Array, " gaps"]  # the sum of the mean probabilities of exchanges
    count: Int32[Array, ""]
    steps: Int32[Array, ""]  # of all


class LadderTuning(eqx.Module):
    """Tunes the kernel of each rung by a `rule`, and places the rungs where `places` says so."""

    rule: Any
    places: bool = eqx.field(static=True, default=True)
    ends: Int32[Array, " rounds"] | None = None

    def plan(self, target: Target, kernel: Tempering, num_steps: int) -> "LadderTuning":
        """Laid out for a ladder and a number of steps."""
        ends = num_steps // 2 ** np.arange(_ROUNDS, 0, -1) if self.places else np.zeros(_ROUNDS)
        left = num_steps - int(ends[-1])
        last = kernel.laws(target)[-1]
        rule = None if self.rule is None else self.rule.plan(last, kernel.kernels[-1], left)
        return LadderTuning(rule, self.places, jnp.asarray(ends, jnp.int32))

    def init(self, target: Target, kernel: Tempering) -> Memory:
        """What it remembers before the first step."""
        of_rungs, none = None, jnp.zeros((), jnp.int32)
        if self.rule is not None:
            pairs = zip(kernel.laws(target), kernel.kernels, strict=True)
            of_rungs = stack([self.rule.init(law, each) for law, each in pairs])
        return Memory(of_rungs, jnp.zeros(kernel.num_rungs - 1), none, none)

    def _anew(self, target: Target, kernel: Tempering) -> Any:
        """What the rules of all rungs remember before they have seen anything, inside the program."""
        if self.rule is None:
            return None
        return jax.vmap(lambda varied, beta: self.rule.init(kernel.law(target, beta), kernel.kernel(varied)))(
            kernel.varied, kernel.betas
        )

    def update(
        self, target: Target, kernel: Tempering, memory: Memory, states: State, info: Info
    ) -> tuple[Tempering, Memory]:
        """The kernel with the next scale of every rung; at the end of a round with its rungs at other places."""
        assert self.ends is not None
        rungs: Rungs = states.cache
        rates = memory.rates + jnp.mean(rungs.accept_probs, axis=(0, 2))
        count, steps = memory.count + 1, memory.steps + 1
        kernel, of_rungs = self._turn(target, kernel, memory.of_rungs, rungs)
        if not self.places:
            return kernel, Memory(of_rungs, rates, count, steps)
        is_end = jnp.any(steps == self.ends)
        placed = place_rungs(kernel.betas, rates / count, kernel.num_rungs)
        kernel = replaced(kernel, betas=jnp.where(is_end, placed, kernel.betas))
        anew = self._anew(target, kernel)
        of_rungs = jax.tree.map(lambda new, old: jnp.where(is_end, new, old), anew, of_rungs)
        rates, count = jnp.where(is_end, 0.0, rates), jnp.where(is_end, 0, count)
        return kernel, Memory(of_rungs, rates, count, steps)

    def _turn(self, target: Target, kernel: Tempering, memories: Any, rungs: Rungs) -> tuple[Tempering, Any]:
        """The kernels of all rungs after their rules have seen a step; the copies of a rung are more chains."""
        if self.rule is None:
            return kernel, memories

        def by_rung(leaf: Array) -> Array:  # (chain, rung, copy, ...) to (rung, chain and copy, ...)
            leaf = jnp.moveaxis(leaf, 0, 1)
            return leaf.reshape(leaf.shape[0], -1, *leaf.shape[3:])

        is_varied = jax.tree.map(lambda leaf: leaf is not None, kernel.varied, is_leaf=lambda leaf: leaf is None)

        def turn(varied: Any, beta: Array, memory: Any, states: State, info: Info) -> tuple[Any, Any]:
            law = kernel.law(target, beta)
            turned, memory = self.rule.update(law, kernel.kernel(varied), memory, states, info)
            return eqx.filter(turned, is_varied), memory

        seen = jax.tree.map(by_rung, (rungs.states, rungs.info))
        varied, memories = jax.vmap(turn)(kernel.varied, kernel.betas, memories, *seen)
        return replaced(kernel, varied=varied), memories

    def freeze(self, target: Target, kernel: Tempering, memory: Memory) -> tuple[Tempering, LadderReport]:
        """The ladder to draw with, and what was done."""
        of_rungs: tuple[Any, ...] = ()
        if self.rule is not None:
            memories = split(memory.of_rungs, kernel.num_rungs)
            parts = zip(kernel.laws(target), kernel.kernels, memories, strict=True)
            found = [self.rule.freeze(law, each, seen) for law, each, seen in parts]
            kernel = kernel.with_kernels([each for each, _ in found], target).frozen(target)
            of_rungs = tuple(report for _, report in found)
        rates = np.asarray(memory.rates, np.float64) / max(1, int(memory.count))
        betas = tuple(np.asarray(kernel.betas).tolist())
        barrier = float(gap_barriers(rates).sum())
        return kernel, LadderReport(betas, tuple(map(float, rates)), barrier, int(memory.steps), of_rungs)


def check_rule(rule: Any) -> Adapter | None:
    """The one rule by which the kernels of all rungs are tuned."""
    if isinstance(rule, tuple | list):
        if len(rule) > 1:
            raise ValueError(
                f"With tempering one rule tunes the kernels of all rungs, but adaptation has {len(rule)}; pass one."
            )
        rule = rule[0] if rule else None
    return rule
