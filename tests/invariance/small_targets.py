"""Targets small enough to enumerate: at most 1024 states, none of them so rare that a chi-square test would lose it.

Their parameters are leaves, so targets on one space share their compiled programs.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Float, Integer

import discrax as dx
from discrax.core.target import Evaluation, ExactRatios

SPACES = {
    "binary": dx.Binary(4),
    "spin": dx.Spin(4),
    "ordinal": dx.Ordinal(3, [-1.0, -0.2, 0.5, 1.5]),
    "categorical": dx.Categorical(4, 3),
    "ordinal-two-levels": dx.Ordinal(4, [-0.4, 1.1]),
    "categorical-two-levels": dx.Categorical(4, 2),
}


def _pattern(size: int, frequency: float) -> np.ndarray:
    """Fixed numbers in [-1, 1] without any symmetry."""
    return np.sin(frequency * np.arange(1, size + 1) ** 1.3)


class Cubic(eqx.Module):
    """log pi = a'z + z'Qz / 2 + c (w'z)^3 of the flattened embedding z: its gradient gives first-order ratios only."""

    linear: Float[Array, " m"]
    quadratic: Float[Array, "m m"]
    direction: Float[Array, " m"]
    skewness: Float[Array, ""]

    def __init__(self, size: int, strength: float):
        self.linear = jnp.asarray(0.4 * strength * _pattern(size, 1.7))
        matrix = 0.6 * strength / np.sqrt(size) * _pattern(size * size, 0.9).reshape(size, size)
        self.quadratic = jnp.asarray(matrix + matrix.T)
        self.direction = jnp.asarray(2 / np.sqrt(size) * _pattern(size, 2.3))
        self.skewness = jnp.asarray(0.15 * strength)

    def __call__(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        z = e.reshape(-1)
        return self.linear @ z + z @ self.quadratic @ z / 2 + self.skewness * (self.direction @ z) ** 3


def cubic(space: dx.Space) -> dx.Target:
    """A target on any space that is neither quadratic nor symmetric."""
    low, high = (space.embed(jnp.full(space.shape, code, space.dtype)) for code in (0, space.num_levels - 1))
    return dx.Target.from_log_prob(Cubic(low.size, strength=1.2 / float(jnp.max(high - low))), space)


def frozen(space: dx.Space) -> dx.Space:
    """The space with every second site clamped to the highest level."""
    mask = np.arange(space.num_sites).reshape(space.shape) % 2 == 1
    clamped = {"frozen": mask, "frozen_codes": np.where(mask, space.num_levels - 1, 0)}
    match space:
        case dx.Ordinal():
            return dx.Ordinal(space.shape, np.asarray(space.values), **clamped)
        case dx.Categorical():
            return dx.Categorical(space.shape, space.num_levels, **clamped)
        case _:
            return type(space)(space.shape, **clamped)


def symmetric(n: int, scale: float) -> np.ndarray:
    """A dense symmetric matrix with a diagonal."""
    matrix = scale * _pattern(n * n, 1.1).reshape(n, n)
    return (matrix + matrix.T) / 2


class HardCore(ExactRatios):
    """Sites on a ring, no two neighbours both 1: most log-ratios are -inf."""

    space: dx.Space
    field: Float[Array, " n"]

    def __init__(self, n: int):
        self.space, self.field = dx.Binary(n), jnp.asarray(0.5 * _pattern(n, 1.3))

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return jnp.where(jnp.any(e * jnp.roll(e, 1) > 0), -jnp.inf, self.field @ e)

    def evaluate(self, x: Integer[Array, " n"]) -> Evaluation:
        flips = jnp.eye(x.size, dtype=x.dtype) ^ x[None]
        value = self.log_prob(self.space.embed(x))
        return Evaluation(value, jax.vmap(lambda y: self.log_prob(self.space.embed(y)))(flips) - value)


_GRAPH = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3)])


def _without_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix * (1 - np.eye(len(matrix)))


def _mostly_frozen(space_type: type[dx.Space], n: int, num_free: int) -> dx.Space:
    """Many sites, of which a few evenly spread ones are free."""
    mask = np.ones(n, bool)
    mask[np.linspace(0, n - 1, num_free).astype(int)] = False
    clamped = {"frozen": mask, "frozen_codes": np.arange(n) % 2}
    return dx.Categorical(n, 2, **clamped) if space_type is dx.Categorical else space_type(n, **clamped)


def _field(space: dx.Space) -> np.ndarray:
    embedded = space.embed(jnp.zeros(space.shape, space.dtype)).shape
    return 0.4 * _pattern(int(np.prod(embedded)), 1.9).reshape(embedded)


def _dense(space: dx.Space, scale: float) -> dx.Target:
    """A dense J with a diagonal, which makes exact log-ratios differ from the slope."""
    return dx.targets.Quadratic(space, symmetric(space.num_sites, scale), _field(space))


QUADRATIC: dict[str, Callable[[], dx.Target]] = {
    "ising-dense": lambda: dx.targets.Ising.dense(_without_diagonal(symmetric(5, 0.8)), 0.3 * _pattern(5, 1.9)),
    "ising-graph": lambda: dx.targets.Ising.graph(_GRAPH, 0.5 * _pattern(6, 0.7), 0.3 * _pattern(5, 1.9)),
    "ising-lattice": lambda: dx.targets.Ising.lattice(
        (2, 3), (0.4, 0.5 * _pattern(6, 0.7).reshape(2, 3)), 0.3 * _pattern(6, 1.9).reshape(2, 3)
    ),
    "ising-periodic": lambda: dx.targets.Ising.lattice((3, 3), 0.25, 0.1, periodic=True),
    "qubo-dense": lambda: dx.targets.Quadratic.from_qubo(1.2 * _pattern(25, 0.9).reshape(5, 5)),
    "qubo-sparse": lambda: dx.targets.Quadratic.from_qubo(
        scipy.sparse.csr_array(np.where(_pattern(25, 2.9) > 0, 1.2 * _pattern(25, 0.9), 0.0).reshape(5, 5))
    ),
    "potts-lattice": lambda: dx.targets.Potts.lattice((2, 2), 3, (0.8, -0.5), 0.4 * _pattern(12, 1.9).reshape(2, 2, 3)),
    "potts-graph": lambda: dx.targets.Potts.graph(_GRAPH, 3, 0.8 * _pattern(6, 0.7), 0.4 * _pattern(3, 1.9)),
    "ordinal-dense": lambda: _dense(SPACES["ordinal"], 0.8),
    "ordinal-frozen": lambda: _dense(frozen(dx.Ordinal(5, [-1.0, -0.2, 0.5, 1.5])), 0.8),
    "categorical-dense": lambda: _dense(SPACES["categorical"], 1.2),
    # Where a step changes few of many sites, a dense target adds rows of J to the log-ratios it has.
    "rows-eight-sites": lambda: _dense(dx.Ordinal(8, [-0.4, 1.1]), 0.4),
    "rows-binary": lambda: _dense(_mostly_frozen(dx.Binary, 32, 10), 0.6),
    "rows-spin": lambda: _dense(_mostly_frozen(dx.Spin, 32, 10), 0.3),
    "rows-categorical": lambda: _dense(_mostly_frozen(dx.Categorical, 32, 10), 0.5),
    # Where few of many sites are free, a random walk draws candidates and skips repeats.
    "many-frozen": lambda: dx.targets.Quadratic(
        _mostly_frozen(dx.Spin, 64, 6), dx.targets.Lattice((64,), 0.4), 0.3 * _pattern(64, 1.9)
    ),
}
