"""Exact laws of small targets by enumeration, exact draws from them, and a test of any kernel against them.

`check_kernel` asks two questions with independent draws, so that a chi-square test is honest:

- *invariance*: chains that start from exact draws of the target and make a few steps must still follow the target;
- *convergence*: chains that start from one fixed state and make many steps must reach the target.

A kernel with a wrong acceptance ratio fails the first, one that cannot reach all states fails the second.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import number, real_array, whole
from discrax.core.driver import drive, start
from discrax.core.kernel import Kernel, check_fits
from discrax.core.programs import reads_user_code
from discrax.core.space import Space
from discrax.core.stochastic import has_exact_log_prob
from discrax.core.target import Target, bare, check_target


def law(target: Target, limit: int = 1 << 20) -> Float[np.ndarray, " states"]:
    """The probability of every state, in the order of `target.space.enumerate()`."""
    whole("limit", limit, least=1)
    check_target(target)
    if not has_exact_log_prob(target):
        raise ValueError(
            f"The law of {type(bare(target)).__name__} needs its exact log_prob, but what it has is an estimate from a "
            "part of the data; give the target all rows at once, or log_prob=..."
        )
    states = jnp.asarray(target.space.enumerate(limit))
    values = np.asarray(jax.jit(jax.vmap(lambda x: target.log_prob(target.space.embed(x))))(states), np.float64)
    if np.isnan(values).any() or np.isposinf(values).any() or np.isneginf(values).all():
        what = "NaN" if np.isnan(values).any() else "+inf" if np.isposinf(values).any() else "-inf everywhere"
        raise ValueError(f"log_prob must be a number or -inf, and finite somewhere, but it is {what}.")
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def draw(key: PRNGKeyArray, target: Target, num: int) -> Integer[Array, "num *shape"]:
    """Independent exact draws."""
    whole("num", num, least=1, most=10**9)
    return _draw(key, target.space, law(target), num)


def _draw(
    key: PRNGKeyArray, space: Space, probabilities: Float[np.ndarray, " states"], num: int
) -> Integer[Array, "num *shape"]:
    picks = np.random.default_rng(random.seed_of(key)).choice(len(probabilities), size=num, p=probabilities)
    return jnp.asarray(space.enumerate()[picks])


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    """Half the L1 distance between two laws."""
    p, q = real_array("p", p), real_array("q", q)
    if p.shape != q.shape:
        raise ValueError(f"Two laws must have as many states, but got shapes {p.shape} and {q.shape}.")
    return 0.5 * float(np.abs(p - q).sum())


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """p-value of counts against probabilities; states expected fewer than 10 times are pooled.

    A ValueError where so few draws were made that nothing is left to compare: then there is no evidence.
    """
    from scipy.special import gammaincc  # comes with jax; slow to import

    counts, probabilities = real_array("counts", counts), real_array("probabilities", probabilities)
    if counts.shape != probabilities.shape or counts.ndim != 1:
        raise ValueError(
            f"Counts and probabilities must be one per state, but got shapes {counts.shape} and {probabilities.shape}."
        )
    if (counts < 0).any() or (probabilities < 0).any():
        raise ValueError("Counts and probabilities must be at least 0, but some are negative.")
    if counts[probabilities == 0].any():
        return 0.0  # a state that cannot be was visited
    total = counts.sum()
    expected = probabilities * total
    is_rare = expected < _RARE
    observed = np.append(counts[~is_rare], counts[is_rare].sum())
    expected = np.append(expected[~is_rare], expected[is_rare].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    if len(expected) < 2:
        raise ValueError(
            f"Counts tell two states apart if each is expected at least {_RARE} times, but {int(total):,} draws from "
            "this law leave one; use more draws, or a law with more than one state."
        )
    statistic = float(((observed - expected) ** 2 / expected).sum())
    # The chi-square tail: the regularised upper incomplete gamma function, in double precision whatever JAX's default.
    return float(gammaincc((len(expected) - 1) / 2, statistic / 2))


@dataclass(frozen=True)
class Verdict:
    """The outcome of `check_kernel`; truthy if the kernel passed."""

    is_exact: bool
    p_value: float  # the smaller of the two below, doubled: they are two tests
    invariance_p_value: float
    convergence_p_value: float
    total_variation: float  # the larger distance between the law reached and the target
    expected_total_variation: float  # what independent exact draws would show
    threshold: float
    num_chains: int

    def __bool__(self) -> bool:
        return self.is_exact

    def __str__(self) -> str:
        verdict = "passed" if self.is_exact else "FAILED"
        return (
            f"{verdict}: p = {self.p_value:.3g} (threshold {self.threshold:.0e}; invariance "
            f"{self.invariance_p_value:.3g}, convergence {self.convergence_p_value:.3g}), total variation "
            f"{self.total_variation:.4f} where {self.num_chains:,} exact draws show {self.expected_total_variation:.4f}"
        )


def walk(
    key: PRNGKeyArray,
    target: Target,
    kernel: Kernel,
    x: Integer[Array, "chains *shape"],
    num_steps: int,
    num_rounds: int = 1,
) -> Integer[Array, "chains *shape"]:
    """Where independent chains are after `num_rounds` rounds of `num_steps` steps from `x` (a round is one program)."""
    check_fits(kernel, target)
    kernel, _ = kernel.prepare(target, tuning=False)
    target.space.check(x)
    whole("num_steps", num_steps, least=1, most=10**9)
    whole("num_rounds", num_rounds, least=1, most=10**9)
    return _walk(key, target, kernel, x, num_steps, num_rounds)


def _walk(
    key: PRNGKeyArray,
    target: Target,
    kernel: Kernel,
    x: Integer[Array | np.ndarray, "chains *shape"],
    num_steps: int,
    num_rounds: int = 1,
) -> Integer[Array, "chains *shape"]:
    """`walk` of a kernel that is prepared, from states that were checked."""
    keys = random.split(random.as_threefry(key), x.shape[0])
    ensemble, _ = start(target, kernel, jnp.asarray(x))
    for chunk in drive(keys, target, ensemble, num_rounds, chunk=1, thinning=num_steps):
        ensemble = chunk.ensemble
    return ensemble.states.x


def _check_power(probabilities: Float[np.ndarray, " states"], num_chains: int) -> None:
    """The smaller of the two tests must have at least two states, or pools of rare ones, to tell apart."""
    if (probabilities > 0).sum() < 2:
        raise ValueError("The target has one possible state only, of which every kernel is exact: nothing is proved.")
    largest = float(probabilities.max())
    needed = _BATCHES * math.ceil(_RARE / min(largest, max(1 - largest, 1e-12)))
    if num_chains < needed:
        raise ValueError(
            f"num_chains must be at least {needed:,} for this target, so that two states can be told apart, but got "
            f"{num_chains:,}: fewer prove nothing."
        )


def _check_stayed(kernel: Kernel, space: Space, x: Integer[np.ndarray, "chains *shape"]) -> None:
    outside = x[(x < 0) | (x >= space.num_levels)]
    if outside.size:
        raise ValueError(
            f"{type(kernel).__name__} must stay in its space of codes 0..{space.num_levels - 1}, but it produced code "
            f"{int(outside[0])}."
        )
    space.check(x)


_RARE = 10  # a state that is expected less often is pooled with others
_BATCHES = 10  # of chains in the first test; the second runs one such batch, so that both are one program


@reads_user_code()
def check_kernel(
    kernel: Kernel,
    target: Target,
    *,
    key: PRNGKeyArray | None = None,
    num_chains: int = 100_000,
    num_steps: int = 2,
    num_convergence_steps: int = 200,
    threshold: float = 1e-6,
) -> Verdict:
    """Tests a kernel, yours or ours, against the exact law of a small target.

    The first test makes `num_steps` steps from exact draws, the second `num_convergence_steps` from one fixed state
    with a tenth of the chains. A correct kernel that mixes in that many steps fails with probability `threshold`.
    """
    check_fits(kernel, target)
    number("threshold", threshold, above=0, below=1)
    whole("num_chains", num_chains, least=1, most=10**9)
    whole("num_steps", num_steps, least=1)
    whole("num_convergence_steps", num_convergence_steps, least=1)
    key = random.as_threefry(jax.random.key(0) if key is None else key)
    for_draws, for_invariance, for_start, for_convergence = random.split(key, 4)
    space, probabilities = target.space, law(target)
    few = num_chains // _BATCHES
    _check_power(probabilities, num_chains)
    prepared, _ = kernel.prepare(target, tuning=False)
    starts = np.asarray(_draw(for_draws, space, probabilities, num_chains))[: _BATCHES * few]
    batches = zip(random.split(for_invariance, _BATCHES), np.split(starts, _BATCHES), strict=True)
    ends = np.concatenate([np.asarray(_walk(k, target, prepared, x, num_steps)) for k, x in batches])
    _check_stayed(kernel, space, ends)
    is_possible = probabilities > 0  # of one that is not there may be no way out
    one_state = np.broadcast_to(_draw(for_start, space, is_possible / is_possible.sum(), 1), (few, *space.shape))
    num_rounds = -(-num_convergence_steps // num_steps)
    late_ends = np.asarray(_walk(for_convergence, target, prepared, one_state, num_steps, num_rounds))
    _check_stayed(kernel, space, late_ends)

    p_values, distances, noises = [], [], []
    for x in (ends, late_ends):
        counts = np.bincount(space.index(x), minlength=len(probabilities))
        p_values.append(chi_square(counts, probabilities))
        distances.append(total_variation(counts / counts.sum(), probabilities))
        noises.append(float(np.sqrt(probabilities * (1 - probabilities) / (2 * math.pi * counts.sum())).sum()))
    p_value, (invariance, convergence) = min(1.0, 2 * min(p_values)), p_values
    worst = int(np.argmax(np.array(distances) / np.array(noises)))
    distance, noise, count = distances[worst], noises[worst], (len(ends), few)[worst]
    return Verdict(p_value >= threshold, p_value, invariance, convergence, distance, noise, threshold, count)
