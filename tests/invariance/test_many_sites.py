"""Targets too large to enumerate whose law is still known: independent bits, as sites or as bonds of an Ising chain.

Long paths choose sites by a threshold search, and a dense target updates its log-ratios row by row, only where there
are many sites. Each question is answered by the smallest of many p-values times their number (Bonferroni).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from invariance.exactness import THRESHOLD

pytestmark = pytest.mark.optimised  # XLA's older writer of fused operations is wrong on chromatic-sparse

NUM_CHAINS, NUM_BATCHES = 2_000, 10  # all batches for invariance, one for convergence


class Bits(NamedTuple):
    """A target that is a one-to-one function of independent bits."""

    target: dx.Target
    probabilities: np.ndarray
    to_codes: Callable[[np.ndarray], np.ndarray]
    to_bits: Callable[[np.ndarray], np.ndarray]


def independent_sites(n: int) -> Bits:
    probabilities = np.linspace(0.1, 0.9, n)
    return Bits(dx.targets.Bernoulli(probabilities), probabilities, np.asarray, np.asarray)


def ising_chain(n: int, coupling: type[dx.targets.Coupling]) -> Bits:
    """Spins on a line without a field: the bonds s_i s_i+1 are independent, and the first spin is a fair coin."""
    bonds = np.linspace(-0.6, 0.8, n - 1)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    match coupling:
        case dx.targets.Dense:
            structure = dx.targets.Dense(np.diag(bonds, 1) + np.diag(bonds, -1))
        case dx.targets.Sparse:
            structure = dx.targets.Sparse(edges, bonds, (n,))
        case _:
            structure = dx.targets.Lattice((n,), np.append(bonds, 0.0))
    return Bits(
        dx.targets.Ising(dx.Spin(n), structure),
        np.append(0.5, 1 / (1 + np.exp(-2 * bonds))),
        lambda bits: np.cumsum(np.append(bits[:, :1], 1 - bits[:, 1:], axis=1), axis=1) % 2,
        lambda codes: np.append(codes[:, :1], codes[:, 1:] == codes[:, :-1], axis=1),
    )


def smallest_p_value(bits: np.ndarray, probabilities: np.ndarray) -> float:
    """Of all means, of all products of neighbours and of the number of ones, corrected for their number."""
    deviations, variances = bits - probabilities, probabilities * (1 - probabilities)
    means = deviations.sum(0) / np.sqrt(len(bits) * variances)
    products = (deviations[:, 1:] * deviations[:, :-1]).sum(0) / np.sqrt(len(bits) * variances[1:] * variances[:-1])
    scores = np.abs(np.concatenate([means, products]))
    number_of_ones = np.ones(1)  # its law, a convolution
    for p in probabilities:
        number_of_ones = np.convolve(number_of_ones, [1 - p, p])
    counts = np.bincount(bits.sum(1).astype(int), minlength=len(number_of_ones))
    p_values = [math.erfc(scores.max() / math.sqrt(2)), dx.exact.chi_square(counts, number_of_ones)]
    return min(1.0, (len(scores) + 1) * min(p_values))


def p_value_of_invariance(kernel: dx.Kernel, bits: Bits, key: jax.Array) -> float:
    rng, ends = np.random.default_rng(0), []
    for batch in jax.random.split(key, NUM_BATCHES):
        exact = (rng.random((NUM_CHAINS, len(bits.probabilities))) < bits.probabilities).astype(int)
        start = jnp.asarray(bits.to_codes(exact), bits.target.space.dtype)
        ends.append(bits.to_bits(np.asarray(dx.exact.walk(batch, bits.target, kernel, start, 3))))
    return smallest_p_value(np.concatenate(ends), bits.probabilities)


def p_value_of_convergence(kernel: dx.Kernel, bits: Bits, key: jax.Array, num_steps: int) -> float:
    start = jnp.zeros((NUM_CHAINS, *bits.target.space.shape), bits.target.space.dtype)
    ends = dx.exact.walk(key, bits.target, kernel, start, 3, num_steps // 3)
    return smallest_p_value(bits.to_bits(np.asarray(ends)), bits.probabilities)


CASES = {
    "pas-threshold-search": (lambda: independent_sites(100), lambda: dx.samplers.pas(20.0), 60),
    "pas-rows-of-dense": (lambda: ising_chain(140, dx.targets.Dense), lambda: dx.samplers.pas(20.0), 100),
    "gwg-rows-of-dense": (lambda: ising_chain(140, dx.targets.Dense), lambda: dx.samplers.gwg(20.0), 240),
    "dmala-lattice": (lambda: ising_chain(140, dx.targets.Lattice), lambda: dx.samplers.dmala(1.5), 300),
    "chromatic-sparse": (lambda: ising_chain(140, dx.targets.Sparse), lambda: dx.samplers.gibbs("chromatic"), 30),
    "rwm-few-of-many": (lambda: ising_chain(70, dx.targets.Sparse), lambda: dx.samplers.rwm(3.0), 400),
}


SLOW = ("pas-rows-of-dense", "gwg-rows-of-dense", "pas-threshold-search", "rwm-few-of-many", "dmala-lattice")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in CASES])
def test_exact_on_many_sites(name, key):
    bits, kernel, num_steps = CASES[name][0](), CASES[name][1](), CASES[name][2]
    for_invariance, for_convergence = jax.random.split(key)
    assert p_value_of_invariance(kernel, bits, for_invariance) >= THRESHOLD / 2
    assert p_value_of_convergence(kernel, bits, for_convergence, num_steps) >= THRESHOLD / 2
