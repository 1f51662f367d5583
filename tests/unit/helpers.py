"""Reference computations in plain numpy, and the thresholds of statistical tests.

Statistical tests are seeded, so a test passes always or never. A threshold of 1e-6 means that a correct program would
have failed for one seed in a million.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Array, Float

from discrax.core import random
from discrax.core.kernel import Kernel, State, scalar_info
from discrax.core.target import log_prob, temper

P_VALUE = 1e-6
Z_SCORE = scipy.stats.norm.isf(P_VALUE / 2)  # two-sided


def chi_square_p_value(counts, probabilities) -> float:
    """Counts against probabilities; cells that cannot be hit must not be hit, and are then left out."""
    counts, probabilities = np.asarray(counts).ravel(), np.asarray(probabilities, np.float64).ravel()
    possible = probabilities > 0
    assert not counts[~possible].any(), "a cell of probability 0 was hit"
    expected = probabilities[possible] / probabilities[possible].sum() * counts.sum()
    assert expected.min() >= 5, "too few draws for a chi-square test"
    if expected.size == 1:
        return 1.0
    return float(scipy.stats.chisquare(counts[possible], expected).pvalue)


def z_score(values, mean: float) -> float:
    """How many standard errors the mean of independent values is away from what it should be."""
    values = np.asarray(values, np.float64)
    return abs(values.mean() - mean) / (values.std(ddof=1) / np.sqrt(values.size))


def one_hot(codes, num_levels: int) -> np.ndarray:
    return np.eye(num_levels)[np.asarray(codes)]


def changed(x: np.ndarray, site: int, code: int) -> np.ndarray:
    """`x` with another code at a flat site."""
    y = np.array(x)
    y.reshape(-1)[site] = code
    return y


def brute_force_ratios(log_prob, x: np.ndarray, num_levels: int) -> np.ndarray:
    """log_prob(y) - log_prob(x) for all single-site changes y, in the library's shape of log-ratios."""
    here = log_prob(x)
    flat = np.asarray(x).reshape(-1)
    if num_levels == 2:
        return np.array([log_prob(changed(x, i, 1 - flat[i])) - here for i in range(flat.size)]).reshape(x.shape)
    table = [[log_prob(changed(x, i, c)) - here for c in range(num_levels)] for i in range(flat.size)]
    return np.array(table).reshape(*x.shape, num_levels)


class OneFlip(Kernel):
    """Metropolis on one random site of a two-level space: compiles quickly, for tests of everything else."""

    laziness: Float[Array, ""] = eqx.field(converter=lambda value: jnp.asarray(value, jnp.float32), default=0.0)

    def init(self, target, x):
        return State(x, log_prob(target, x), ())

    def step(self, key, target, state):
        site, level = random.uniform(key, 2)
        flat = state.x.reshape(-1)
        pick = (site * flat.size).astype(jnp.int32)
        y = flat.at[pick].set(1 - flat[pick]).reshape(state.x.shape)
        there = State(y, log_prob(target, y), ())
        change = temper(target, there.log_prob - state.log_prob)
        is_invalid = ~(change < jnp.inf)
        accept_prob = jnp.where(is_invalid, 0, jnp.minimum(1, jnp.exp(change)) * (1 - self.laziness))
        is_accepted = level < accept_prob
        after = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), there, state)
        return after, scalar_info(accept_prob, is_accepted, is_accepted, 1, is_invalid)
