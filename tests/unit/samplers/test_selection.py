"""Choosing sites: every draw against the law it promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discrax.core import random
from discrax.samplers import selection

from ..helpers import P_VALUE, Z_SCORE, chi_square_p_value, z_score

NUM = 100_000
KEYS = random.split(jax.random.key(3), NUM)


def on_every_key(draw):
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(draw))(KEYS))


# --- without replacement ---

WEIGHTS = {
    # name: weights, capacity; a capacity up to 4 picks the smallest arrival times one by one, above it thresholds them.
    "small": (np.array([1.0, 5.0, 0.2, 2.0, 3.0]), 3),
    "threshold": (np.array([1.0, 5.0, 0.2, 2.0, 3.0, 0.7]), 6),
    "small-barred": (np.array([1.0, 0.0, 2.0, 0.0, 0.5]), 3),
    "threshold-barred": (np.array([0.0, 1.0, 0.0, 2.0, 0.5, 0.0, 1.5]), 7),
}


@pytest.fixture(scope="module", params=list(WEIGHTS))
def drawn(request):
    """Paths of length 2, once for all the tests of their law."""
    weights, capacity = WEIGHTS[request.param]
    with np.errstate(divide="ignore"):
        log_weights = jnp.asarray(np.log(weights) + 30, jnp.float32)  # only ratios of weights matter
    draw = selection.draw_without_replacement
    paths, masks = on_every_key(lambda key: draw(key, log_weights, jnp.int32(2), capacity))
    return weights, paths, masks


def test_first_draw_has_the_law_of_the_weights(drawn):
    """Chi-square on 100,000 draws, p = 1e-6; a barred site is never drawn."""
    weights, paths, _ = drawn
    counts = np.bincount(paths[:, 0], minlength=len(weights))
    assert chi_square_p_value(counts, weights / weights.sum()) > P_VALUE


def test_successive_draws_follow_plackett_and_luce(drawn):
    """P(i, j) = w_i / W * w_j / (W - w_i): chi-square of all pairs on 100,000 draws, p = 1e-6."""
    weights, paths, _ = drawn
    n, total = len(weights), weights.sum()
    pairs = np.outer(weights / total, weights) / (total - weights)[:, None]
    np.fill_diagonal(pairs, 0)
    counts = np.zeros((n, n), int)
    np.add.at(counts, (paths[:, 0], paths[:, 1]), 1)
    assert chi_square_p_value(counts, pairs) > P_VALUE


def test_entries_beyond_the_length_are_no_site(drawn):
    weights, paths, _ = drawn
    assert (paths[:, 2:] == len(weights)).all()


def test_the_mask_marks_the_path_and_nothing_else(drawn):
    _, paths, masks = drawn
    expected = np.zeros(masks.shape, bool)
    expected[np.arange(NUM)[:, None], paths[:, :2]] = True
    np.testing.assert_array_equal(masks, expected)


def times(seed: int, n: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n).astype(np.float32)
    if kind == "pairs":  # a tie of two fits into the slack that the capacity has
        values = rng.permutation(np.repeat(values[: n // 2], 2))
    if kind == "outlier":
        values[rng.integers(n)] = -1e6
    if kind == "barred":
        values[rng.permutation(n)[: n // 2]] = np.inf
    return values


@pytest.mark.parametrize("kind", ["plain", "pairs", "outlier", "barred"])
@pytest.mark.parametrize(("n", "k"), [(200, 24), (12, 12), (1000, 400)], ids=["24-of-200", "12-of-12", "400-of-1000"])
def test_both_ways_to_find_the_smallest_agree(n, k, kind):
    """For the same arrival times the threshold search gives the order of a sort (400 are too many for pairs)."""
    counts = (1, selection.longest(k, n) // 2, selection.longest(k, n))
    by_threshold = jax.jit(lambda v, count: selection._smallest_by_threshold(v, count, k))
    by_top_k = jax.jit(lambda v: selection._smallest_by_top_k(v, k))
    for seed in range(3):
        values = times(seed, n, kind)
        expected = np.sort(values)
        for count in counts:
            count = min(count, int(np.isfinite(values).sum()))
            ours = np.asarray(by_threshold(jnp.asarray(values), jnp.int32(count)))[:count]
            theirs = np.asarray(by_top_k(jnp.asarray(values)))[:count]
            np.testing.assert_array_equal(values[ours], expected[:count])
            np.testing.assert_array_equal(values[theirs], expected[:count])
            assert len(set(ours.tolist())) == count
            if kind != "pairs":
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("capacity", [3, 8], ids=["small", "threshold"])
def test_all_sites_can_be_drawn(capacity):
    n = capacity
    log_weights = jnp.asarray(np.random.default_rng(0).normal(size=n), jnp.float32)
    draw = jax.vmap(lambda key: selection.draw_without_replacement(key, log_weights, jnp.int32(n), capacity))
    paths, masks = jax.jit(draw)(KEYS[:500])
    np.testing.assert_array_equal(np.sort(paths, axis=1), np.broadcast_to(np.arange(n), paths.shape))
    assert np.asarray(masks).all()


# --- with replacement ---


@pytest.mark.parametrize("shift", [0.0, 80.0, -80.0])
def test_draws_with_replacement_have_the_law_of_the_weights(shift):
    """30 sites in 6 blocks, some barred: chi-square on 100,000 independent draws, p = 1e-6."""
    rng = np.random.default_rng(4)
    weights = rng.exponential(size=30) + 0.02
    weights[[0, 5, 6, 17, 29]] = 0
    with np.errstate(divide="ignore"):
        log_weights = jnp.asarray(np.log(weights) + shift, jnp.float32)
    sites = jax.jit(lambda key: selection.draw_with_replacement(key, log_weights, NUM))(jax.random.key(5))
    assert chi_square_p_value(np.bincount(sites, minlength=30), weights / weights.sum()) > P_VALUE


def test_successive_draws_with_replacement_are_independent():
    """Chi-square of pairs of neighbouring draws, p = 1e-6."""
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    log_weights = jnp.asarray(np.log(weights), jnp.float32)
    sites = np.asarray(selection.draw_with_replacement(jax.random.key(6), log_weights, NUM)).reshape(-1, 2)
    counts = np.bincount(sites[:, 0] * 4 + sites[:, 1], minlength=16)
    assert chi_square_p_value(counts, np.outer(weights, weights)) > P_VALUE


@pytest.mark.parametrize("n", [1, 2, 9, 10, 100])
def test_inclusive_sums_are_cumulative_sums(n):
    values = np.random.default_rng(0).exponential(size=n).astype(np.float32)
    within, totals = selection.inclusive_sums(jnp.asarray(values))
    within, totals = np.asarray(within), np.asarray(totals)
    together = (within + (totals - within[:, -1])[:, None]).reshape(-1)[:n]
    np.testing.assert_allclose(together, np.cumsum(values, dtype=np.float64), rtol=1e-5)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=7, max_size=7))
def test_first_occurrences(sites):
    expected = [site < 5 and site not in sites[:i] for i, site in enumerate(sites)]  # 5 is no site
    assert selection.is_first(jnp.array(sites), 5).tolist() == expected


# --- uniformly ---

UNIFORM = {
    # name: sites, free sites, capacity; few sites per capacity use the race above, many use rejection of repeats.
    "race": (6, 6, 3),
    "race-frozen": (7, 5, 4),
    "rejection": (40, 40, 4),
    "rejection-frozen": (40, 5, 4),
}


@pytest.mark.parametrize("name", list(UNIFORM))
def test_uniform_draws_are_distinct_free_and_uniform(name):
    """Pairs of the first two picks: chi-square on about 100,000 draws, p = 1e-6."""
    n, num_free, capacity = UNIFORM[name]
    free = jnp.asarray(num_free, jnp.int32)
    picks = on_every_key(lambda key: selection.draw_uniform(key, n, free, jnp.int32(2), capacity))
    used = picks < n
    assert (used.sum(axis=1) <= 2).all()
    assert (used.sum(axis=1) == 2).mean() > 0.999  # repeats rarely leave too few
    pairs = picks[used.sum(axis=1) == 2]
    pairs = pairs[pairs < n].reshape(-1, 2)  # in the order of drawing
    counts = np.zeros((n, n), int)
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    probabilities = np.zeros((n, n))
    probabilities[:num_free, :num_free] = 1 / (num_free * (num_free - 1))
    np.fill_diagonal(probabilities, 0)
    assert chi_square_p_value(counts, probabilities) > P_VALUE


def test_uniform_draws_never_exceed_the_free_sites():
    draw = jax.jit(jax.vmap(lambda key: selection.draw_uniform(key, 40, jnp.int32(3), jnp.int32(4), 4)))
    picks = np.asarray(draw(KEYS[:1000]))
    used = [sorted(row[row < 40].tolist()) for row in picks]
    assert all(row == sorted(set(row)) and max(row) < 3 for row in used)
    assert [0, 1, 2] in used


# --- how many ---


@pytest.mark.parametrize("path_length", [1.0, 1.3, 2.0, 2.5, 7.9, 12.0])
def test_lengths_have_their_mean(path_length):
    """100,000 independent lengths: the mean is within 4.9 standard errors."""
    lengths = on_every_key(lambda key: selection.draw_length(key, jnp.float32(path_length), 20))
    assert lengths.min() >= 1
    assert lengths.max() <= np.ceil(path_length) + 1
    if path_length == 1:
        assert (lengths == 1).all()
    else:
        assert z_score(lengths, path_length) < Z_SCORE


def test_lengths_stay_in_range():
    """At the longest length every detour is downwards: always 6 of 6 sites would keep the parity of the state."""
    for path_length in (6.0, 9.6):
        lengths = on_every_key(lambda key, r=path_length: selection.draw_length(key, jnp.float32(r), jnp.int32(6)))
        assert set(np.unique(lengths)) == {5, 6}
        assert z_score(lengths == 5, 0.1) < Z_SCORE


@pytest.mark.parametrize("path_length", [2.0, 4.0, 10.0])
def test_even_lengths_are_sometimes_odd(path_length):
    """One in ten, so that a binary state can change its parity; within 4.9 standard errors of 0.1."""
    lengths = on_every_key(lambda key: selection.draw_length(key, jnp.float32(path_length), 30))
    assert z_score(lengths % 2, 0.1) < Z_SCORE


SIZES = [1, *sorted(8 * 2**i for i in range(12)), *sorted(12 * 2**i for i in range(12))]


@settings(deadline=None, derandomize=True)
@given(st.floats(1, 5000), st.sampled_from([1.25, 4.0]), st.integers(1, 3000))
def test_capacities_are_few_and_large_enough(path_length, room, least):
    capacity = selection.capacity_for(path_length, room=room, least=least)
    assert capacity in SIZES
    assert capacity >= least
    if capacity > 1:
        assert capacity >= room * path_length + 4
        smaller = [size for size in SIZES if 8 <= size < capacity]
        assert all(size < max(least, room * path_length + 4) for size in smaller)  # the smallest that does
    # The longest length that is drawn, one more than the rounded-up path length, fits.
    assert path_length == 1 or selection.longest(capacity, 10**6) >= np.ceil(path_length) + 1


@pytest.mark.parametrize(
    ("capacity", "num_sites", "length"), [(1, 10, 1), (4, 10, 4), (8, 10, 6), (8, 5, 5), (48, 46, 46)]
)
def test_longest_path_of_a_capacity(capacity, num_sites, length):
    assert selection.longest(capacity, num_sites) == length


@pytest.mark.parametrize(("n", "k"), [(2048, 1), (5000, 16), (10_007, 48), (3000, 700)])
def test_the_smallest_are_found_block_by_block(n, k):
    from discrax.samplers.selection import _smallest_by_top_k

    generator = np.random.default_rng(n)
    for values in (
        generator.normal(size=n),
        generator.integers(0, 40, n),
        np.where(generator.random(n) < 0.5, np.inf, 1),
    ):
        values = values.astype(np.float32)  # the last two have many equal ones
        found = np.asarray(_smallest_by_top_k(jnp.asarray(values), k))
        np.testing.assert_array_equal(found, np.argsort(values, kind="stable")[:k])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100, 128])
def test_a_gpu_counts_as_a_cpu_does(size):
    """Also levels below and above all numbers, equal to one of them, and numbers that are equal."""
    rng = np.random.default_rng(size)
    sums = jnp.asarray(np.cumsum(rng.integers(0, 3, (5, size)), axis=1), jnp.float32)
    block = jnp.asarray(rng.integers(0, 5, 400), jnp.int32)
    level = jnp.asarray(rng.integers(-1, 2 * size + 3, 400), jnp.float32)
    for s, b in ((sums, block), (sums[:1], 0 * block)):
        expected = [np.searchsorted(s[i], t, side="right") for i, t in zip(b, level, strict=True)]
        assert np.array_equal(selection._by_comparing(s, b, level), expected)
        assert np.array_equal(jax.jit(selection._by_halving)(s, b, level), expected)
