"""Approximate computing: which units of a circuit may be imprecise, so that its result suffers least.

A circuit is a binary tree of 15 units that add or multiply, from 16 inputs to one output. An imprecise unit v returns
its result times 1 + delta_v, delta_v = 0.1 or -0.1 with equal chances. With k imprecise units at the
nodes x_1 .. x_k and a draw xi of inputs and of delta for all nodes,

    f(x, xi) = 100 |output(x, xi) - exact output(xi)| / exact output(xi)        (percent),

and pi(x) is proportional to exp(-E f(x, xi)). Inputs are 0.1, 0.2 .. 9.9, all equally likely. Inputs and errors are
those of the public set of circuits (CO_ProxyDesign) that the paper's numbers come from; there some circuits have 14
inputs, of which two are read twice, but which is not recorded: here all have 16.

A state has a site for each imprecise unit, whose code is its node. Two units cannot share a node: a change to a node
that is taken has probability 0, so that a single change is a swap of an imprecise with a precise node.

What the units do is part of the circuit (drawn from its seed) and not of xi: the best nodes depend on it, and the
paper runs a chain for each such configuration.

Reference: Sun et al. (2023), after Wang, Wu, Yang, Hao and Li (2022).
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments, whole
from discrax.core.levels import is_level
from discrax.core.programs import compiled
from discrax.core.seeds import key_of
from discrax.core.space import Categorical
from discrax.core.stochastic import Batch, BatchRatios

NUM_INPUTS, NUM_NODES = 16, 15
_ERROR = 0.1  # of an imprecise unit, up or down
_INPUTS = 99  # values of an input: so many tenths
_SCENARIOS = 256  # fixed, whose mean error is the log-probability
_PLACEMENTS_AT_ONCE = 64
_MOST_DRAWS = 1_000_000  # all at once


class Draw(eqx.Module):
    """Mini-batch: inputs, and the relative errors that the nodes have if they are imprecise."""

    inputs: Float[Array, "batch inputs"]
    errors: Float[Array, "batch nodes"]


class ApproximateCircuit(BatchRatios):
    """Where to put `num_units` imprecise units among the 15 nodes of a circuit.

    - `multiplies`: for each node, the inputs' side first and the output last, whether it multiplies or adds.
    - `batch_size`: draws of a mini-batch, whose errors are averaged.
    """

    space: Categorical
    multiplies: Bool[Array, " nodes"]
    scenarios: Draw
    batch_size: int = eqx.field(static=True)

    def __init__(self, multiplies: Any, num_units: int, *, batch_size: int = 1):
        multiplies = np.asarray(multiplies)
        if multiplies.shape != (NUM_NODES,) or multiplies.dtype != np.bool_:
            raise ValueError(
                f"multiplies says of each of the {NUM_NODES} nodes whether it is a product, but it is an array of "
                f"{multiplies.dtype} of shape {multiplies.shape}."
            )
        if not _is_count(num_units) or num_units >= NUM_NODES:
            raise ValueError(
                f"num_units is a whole number from 1 to {NUM_NODES - 1}, fewer than the nodes, but got {num_units!r}."
            )
        if not _is_count(batch_size):
            raise ValueError(f"batch_size is a whole number of draws, at least 1, but got {batch_size!r}.")
        self.multiplies, self.batch_size = jnp.asarray(multiplies), int(batch_size)
        self.space = Categorical(int(num_units), NUM_NODES)
        self.scenarios = _draw(random.as_threefry(jax.random.key(0)), _SCENARIOS)

    @staticmethod
    @checked_arguments
    def simulated(seed: int, num_units: int = 3, *, batch_size: int = 1) -> "ApproximateCircuit":
        """A circuit whose nodes add or multiply with equal chances."""
        generator = np.random.default_rng(whole("seed", seed, least=0))
        return ApproximateCircuit(generator.random(NUM_NODES) < 0.5, num_units, batch_size=batch_size)

    @property
    def num_units(self) -> int:
        """How many are imprecise."""
        return self.space.num_sites

    def init(self, key: PRNGKeyArray, num_chains: int) -> Integer[Array, "chains units"]:
        """Random nodes, all different."""
        order = random.uniform(random.as_threefry(key), num_chains * NUM_NODES).reshape(num_chains, NUM_NODES)
        return jnp.argsort(order, axis=1)[:, : self.num_units].astype(self.space.dtype)

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Draw:
        return _draw(key, self.batch_size)

    def psi(self, e: Float[Array, "units nodes"], xi: Draw) -> Float[Array, ""]:
        taken = jnp.sum(e, axis=0)
        return jnp.where(jnp.any(taken > 1.5), -jnp.inf, -jnp.mean(self._errors(taken, xi)))

    def log_prob(self, e: Float[Array, "units nodes"]) -> Float[Array, ""]:
        """Minus the mean error of a fixed set of draws."""
        return self.psi(e, self.scenarios)

    def batch(self, x: Integer[Array, " units"], xi: Draw) -> Batch:
        """Minus the errors of all swaps, evaluated one by one, less that of x."""
        is_mine = is_level(x, NUM_NODES)
        taken = jnp.any(is_mine, axis=0)
        left, nodes = taken[None] & ~is_mine, jnp.eye(NUM_NODES, dtype=bool)
        swapped = left[:, None] | nodes[None]  # (unit, its new node, node): is it imprecise
        here = -jnp.mean(self._errors(taken, xi))
        changes = -jnp.mean(self._errors(swapped, xi), axis=-1) - here
        return Batch(here, jnp.where(is_mine, 0, jnp.where(left, -jnp.inf, changes)))

    def placements(self) -> Integer[np.ndarray, "placements units"]:
        """All ways to choose the nodes."""
        return np.array(list(itertools.combinations(range(NUM_NODES), self.num_units)), self.space.dtype)

    def expected_errors(
        self, placements: Integer[Array | np.ndarray, "placements units"], num_draws: int = 16_384, seed: int = 0
    ) -> Float[np.ndarray, " placements"]:
        """The mean error of each placement over the same draws."""
        placements = np.asarray(placements, self.space.dtype)
        at_once = min(_PLACEMENTS_AT_ONCE, len(placements))
        count = math.ceil(len(placements) / at_once) * at_once
        padded = jnp.asarray(np.resize(placements, (count, self.num_units)))
        whole("num_draws", num_draws, least=1, most=_MOST_DRAWS)
        arguments = (self, padded, random.as_threefry(key_of(whole("seed", seed))))
        program, _ = compiled(_expected_errors, arguments, {"num_draws": num_draws, "at_once": at_once})
        return np.asarray(program(arguments), np.float64)[: len(placements)]

    def optimum(self, num_draws: int = 16_384, seed: int = 0) -> tuple[Integer[np.ndarray, " units"], float]:
        """The placement with the smallest mean error of all, and that error."""
        placements = self.placements()
        errors = self.expected_errors(placements, num_draws, seed)
        return placements[errors.argmin()], float(errors.min())

    def _errors(self, taken: Array, xi: Draw) -> Float[Array, "*placements batch"]:
        """f of the nodes that are imprecise, in percent, for each draw."""
        exact = self._output(xi.inputs, jnp.ones_like(xi.errors))
        more = (1,) * (taken.ndim - 1)
        factors = 1 + taken[..., None, :].astype(xi.errors.dtype) * xi.errors.reshape(*more, *xi.errors.shape)
        output = self._output(xi.inputs.reshape(*more, *xi.inputs.shape), factors)
        return 100 * jnp.abs(output / exact.reshape(*more, -1) - 1)

    def _output(self, values: Array, factors: Array) -> Array:
        """The circuit, layer by layer: 16 inputs, then the results of 8, 4, 2 and 1 nodes."""
        first = 0
        for width in (8, 4, 2, 1):
            here = slice(first, first + width)
            a, b = values[..., 0::2], values[..., 1::2]
            is_product = self.multiplies[here].reshape((1,) * (a.ndim - 1) + (width,))
            values = jnp.where(is_product, a * b, a + b) * factors[..., here]
            first += width
        return values[..., 0]


def _expected_errors(
    circuit: ApproximateCircuit,
    placements: Integer[Array, "placements units"],
    key: PRNGKeyArray,
    *,
    num_draws: int,
    at_once: int,
) -> Float[Array, " placements"]:
    xi = _draw(key, num_draws)

    def of_some(some: Integer[Array, "some units"]) -> Float[Array, " some"]:
        taken = jnp.any(is_level(some, NUM_NODES), axis=-2)
        return jnp.mean(circuit._errors(taken, xi), axis=-1)

    blocks = placements.reshape(-1, at_once, placements.shape[-1])
    return jax.lax.map(of_some, blocks).reshape(-1)


def _draw(key: PRNGKeyArray, count: int) -> Draw:
    u = random.uniform(key, count * (NUM_INPUTS + NUM_NODES)).reshape(count, -1)
    tenths = 1 + jnp.minimum(jnp.floor(_INPUTS * u[:, :NUM_INPUTS]), _INPUTS - 1)
    return Draw(tenths / 10, jnp.where(u[:, NUM_INPUTS:] < 0.5, _ERROR, -_ERROR))


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1
