"""The generator: bit by bit against others, and its uses against their laws."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from discrax.core import random

from ..helpers import P_VALUE, Z_SCORE, chi_square_p_value

KEY = jax.random.key(20)


@pytest.mark.parametrize(
    ("key", "counter", "block"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_threefry_gives_the_published_blocks(key, counter, block):
    """Known answers of Random123 for threefry2x32 with 20 rounds."""
    ours = random.threefry(*(jnp.uint32(word) for word in (*key, *counter)))
    assert tuple(int(word) for word in ours) == block


def test_threefry_is_bit_exact_with_jax():
    k0, k1 = jax.random.key_data(KEY)
    c0, c1 = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, (2, 500), np.uint64).astype(np.uint32))
    theirs = jax.extend.random.threefry_2x32((k0, k1), jnp.concatenate([c0, c1]))
    np.testing.assert_array_equal(jnp.concatenate(random.threefry(k0, k1, c0, c1)), theirs)


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_words_are_blocks_of_a_counter(count):
    """Word i is the first half of block i, then come the second halves; an odd last word is left out."""
    half = (count + 1) // 2
    counters = jnp.concatenate([jnp.full(half, random._DRAW), jnp.arange(half, dtype=jnp.uint32)])
    k0, k1 = jax.random.key_data(KEY)
    theirs = jax.extend.random.threefry_2x32((k0, k1), counters)
    np.testing.assert_array_equal(random.words(KEY, count), theirs[:count])


def test_the_uses_of_a_key_do_not_collide():
    """8,192 words of each use as 64-bit blocks: all distinct (a random collision has probability 4e-12)."""
    m = 4096
    drawn = np.asarray(random.words(KEY, 2 * m)).reshape(2, m).T
    split = np.asarray(jax.random.key_data(random.split(KEY, m)))
    folded = np.asarray(jax.random.key_data(jax.vmap(lambda i: random.fold_in(KEY, i))(jnp.arange(m))))
    blocks = np.concatenate([drawn, split, folded])
    assert len(np.unique(blocks, axis=0)) == 3 * m
    assert not (blocks == np.asarray(jax.random.key_data(KEY))).all(axis=1).any()


def children(split, fold_in, count=300) -> list[np.ndarray]:
    """Keys that come of one key, as rows of two words."""
    split = np.asarray(jax.random.key_data(split(KEY, count)))
    folded = np.asarray(jax.random.key_data(jax.vmap(lambda i: fold_in(KEY, i))(jnp.arange(count))))
    return [split, folded]


def test_our_children_of_a_key_are_not_those_of_jax():
    """Whoever splits a key with JAX and then hands it to us must not meet the same numbers twice."""
    ours = np.concatenate(children(random.split, random.fold_in))
    theirs = np.concatenate(children(jax.random.split, jax.random.fold_in))
    drawn = np.asarray(jax.random.bits(KEY, (300, 2), jnp.uint32))
    assert len(np.unique(ours, axis=0)) == len(ours)
    both = np.concatenate([ours, np.unique(np.concatenate([theirs, drawn]), axis=0)])
    assert len(np.unique(both, axis=0)) == len(both)


def test_grandchildren_by_either_way_are_distinct():
    first = [random.split(KEY, 3)[0], random.fold_in(KEY, 0), jax.random.split(KEY)[1], jax.random.fold_in(KEY, 0)]
    blocks = np.concatenate([np.asarray(jax.random.key_data(random.split(key, 50))) for key in first])
    assert len(np.unique(blocks, axis=0)) == len(blocks)


def test_split_gives_the_same_first_keys_whatever_the_number():
    few, many = random.split(KEY, 3), random.split(KEY, 10)
    np.testing.assert_array_equal(jax.random.key_data(few), jax.random.key_data(many)[:3])


def test_as_threefry_keeps_threefry_keys_and_converts_others():
    typed, raw = jax.random.key(5), jax.random.PRNGKey(5)
    np.testing.assert_array_equal(jax.random.key_data(random.as_threefry(typed)), raw)
    np.testing.assert_array_equal(jax.random.key_data(random.as_threefry(raw)), raw)
    one, other = (jax.random.key_data(random.as_threefry(jax.random.key(s, impl="rbg"))) for s in (0, 1))
    assert one.shape == (2,)
    assert (one != other).any()


@pytest.mark.parametrize("below", [1, 2, 3, 1000, 2**16, 2**16 + 1, 2**31 - 1])
@pytest.mark.parametrize("traced", [False, True], ids=["number", "array"])
def test_integers_are_the_high_word_of_a_product(below, traced):
    """Bit-exact against Python's integers, so the bias is below / 2^32 and no more."""
    bound = jnp.asarray(below, jnp.int32) if traced else below
    words = [int(word) for word in np.asarray(random.words(KEY, 200))]
    ours = np.asarray(random.integers(KEY, 200, bound))
    np.testing.assert_array_equal(ours, [word * below >> 32 for word in words])
    assert (ours >= 0).all()
    assert (ours < below).all()


@pytest.mark.parametrize("below", [6, 1000])
def test_integers_are_uniform(below):
    """Chi-square on 100,000 integers, p = 1e-6."""
    counts = np.bincount(random.integers(KEY, 100_000, below), minlength=below)
    assert chi_square_p_value(counts, np.full(below, 1 / below)) > P_VALUE


def test_integers_with_a_large_bound_are_uniform():
    """Kolmogorov-Smirnov on 100,000 integers below 2^31 - 1, p = 1e-6."""
    shares = np.asarray(random.integers(KEY, 100_000, 2**31 - 1)) / (2**31 - 1)
    assert scipy.stats.kstest(shares, "uniform").pvalue > P_VALUE


def test_uniforms_lie_strictly_between_zero_and_one():
    extremes = random.to_uniform(jnp.array([0, 1, 511, 512, 0xFFFFFFFF], jnp.uint32))
    assert float(extremes[0]) > 0
    assert float(extremes[-1]) < 1
    assert bool(jnp.isfinite(jnp.log(extremes)).all())
    assert bool(jnp.isfinite(jnp.log(-jnp.log(extremes))).all())


def test_uniforms_are_symmetric_about_a_half():
    bits = random.words(KEY, 1000)
    np.testing.assert_array_equal(random.to_uniform(~bits), 1 - random.to_uniform(bits))


def test_uniforms_are_uniform_and_serially_independent():
    """On 200,000 uniforms: chi-square of 256 cells, of 16 x 16 cells of neighbours, and of neighbouring halves."""
    u = np.asarray(random.uniform(KEY, 200_000), np.float64)
    cells = np.bincount((u * 256).astype(int), minlength=256)
    assert chi_square_p_value(cells, np.full(256, 1 / 256)) > P_VALUE
    for first, second in ((u[0::2], u[1::2]), (u[:100_000], u[100_000:])):
        pairs = np.bincount((first * 16).astype(int) * 16 + (second * 16).astype(int), minlength=256)
        assert chi_square_p_value(pairs, np.full(256, 1 / 256)) > P_VALUE


def test_every_bit_of_a_word_is_fair_under_splitting_and_folding():
    """The keys of 20,000 steps and of 20,000 chains: each of 64 bits is set half of the time, |z| below 4.9."""
    m = 20_000
    for keys in (random.split(KEY, m), jax.vmap(lambda i: random.fold_in(KEY, i))(jnp.arange(m))):
        data = np.asarray(jax.random.key_data(keys))
        bits = np.unpackbits(data.view(np.uint8), axis=1)
        z = (bits.mean(axis=0) - 0.5) / (0.5 / np.sqrt(m))
        assert np.abs(z).max() < Z_SCORE


@pytest.mark.parametrize(
    ("key", "came"),
    [
        (0, "0"),
        (np.int64(3), "3"),
        (1.5, "1.5"),
        ("seed", "'seed'"),
        (None, "None"),
        (np.zeros(3), "an array of float64"),
        (jnp.zeros((), jnp.uint32), "an array of uint32"),
        (jnp.zeros(3, jnp.uint32), "an array of uint32"),
        (jax.random.split(KEY, 2), r"a batch of keys of shape \(2,\)"),
        (jax.random.split(jax.random.PRNGKey(0), 2), r"a batch of keys"),
    ],
)
def test_what_is_not_one_key_is_refused_with_a_sentence(key, came, as_a_user):
    with pytest.raises(TypeError, match=f"key must be one JAX key, .* but got {came}"):
        random.as_threefry(key)
