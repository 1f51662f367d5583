"""Small models whose states can all be listed, and whether states have the law exp(beta v)."""

import itertools

import numpy as np

from discrax.problems.problem import BinaryQuadratic

from ..helpers import chi_square_p_value


def random_model(num_sites: int, seed: int, *, scale: float | None = None) -> BinaryQuadratic:
    generator = np.random.default_rng(seed)
    edges = np.array([pair for pair in itertools.combinations(range(num_sites), 2) if generator.random() < 0.5])
    linear, weights = generator.normal(size=num_sites), generator.normal(size=len(edges))
    if scale is not None:  # integers
        linear, weights = np.round(scale * linear), np.round(scale * weights)
    return BinaryQuadratic(linear, edges.reshape(-1, 2), weights, offset=0.25)


def all_states(num_levels: int, num_sites: int) -> np.ndarray:
    return np.array(list(itertools.product(range(num_levels), repeat=num_sites)))


def p_value_of_the_law(codes: np.ndarray, values: np.ndarray, num_levels: int, beta: float) -> float:
    """Of states against exp(beta v), where `values` are those of all states in order. Rare states count as one."""
    numbers = codes.astype(np.int64) @ num_levels ** np.arange(codes.shape[1])[::-1]
    probabilities = np.exp(beta * (values - values.max()))
    probabilities /= probabilities.sum()
    counts = np.bincount(numbers, minlength=len(values))
    is_rare = len(codes) * probabilities < 20
    if is_rare.any():
        counts = np.append(counts[~is_rare], counts[is_rare].sum())
        probabilities = np.append(probabilities[~is_rare], probabilities[is_rare].sum())
    return chi_square_p_value(counts, probabilities)
