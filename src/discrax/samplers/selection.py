"""Choosing sites: how many, with or without replacement, and with which weights, at no more cost than needed.

Arrays of chosen sites have a static capacity K; entries beyond the path's random length hold n, an index that
scatters drop.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from discrax.core import random
from discrax.core.xla import materialised

# A path whose length is always even keeps the parity of a binary state, so it could never reach half of the states.
# One length in ten is therefore one longer or one shorter, whatever the path length.
_DETOUR = 0.1


def draw_length(key: PRNGKeyArray, path_length: Float[Array, ""], most: int | Int[Array, ""]) -> Int[Array, ""]:
    """A random integer with mean `path_length` in [1, most]: rounded up or down at random, then a rare detour."""
    rounding, detour = random.uniform(key, 2)
    longest_length = jnp.asarray(most, jnp.float32)
    length = jnp.floor(jnp.minimum(path_length.astype(jnp.float32), longest_length) + rounding)
    length = jnp.clip(length, 1, longest_length)
    up, down = detour > 1 - _DETOUR / 2, detour < _DETOUR / 2
    shift = jnp.where(down | (up & (length == longest_length)), -1.0, jnp.where(up, 1.0, 0.0))
    return jnp.where(length >= 2, length + shift, length).astype(jnp.int32)


def capacity_for(path_length: float, *, room: float = 1.25, least: int = 1) -> int:
    """The next of 1, 8, 12, 16, 24, 32, 48, ... that holds `room` times the path length: few sizes to compile."""
    if path_length == 1 and room <= 1.25 and least <= 1:
        return 1
    wanted = max(least, room * path_length + 4)
    power = 8
    while power < wanted:
        if power + power // 2 >= wanted:
            return power + power // 2
        power *= 2
    return power


def longest(capacity: int, num_sites: int) -> int:
    """The longest path that a capacity holds (the threshold search needs a little slack)."""
    if capacity >= num_sites:
        return num_sites
    return capacity if capacity <= _SMALL else capacity - 2


def inclusive_sums(values: Float[Array, " n"]) -> tuple[Float[Array, "blocks size"], Float[Array, " blocks"]]:
    """Cumulative sums in two levels: within blocks of about sqrt(n), and of the blocks' totals.

    Triangular matrix products: XLA's own cumulative sum is several times slower on both CPU and GPU.
    """
    within = _sums_in_blocks(values)
    return within, _times_triangle(within[:, -1])


def running_sums(values: Float[Array, " n"]) -> Float[Array, " n"]:
    """Cumulative sums of non-negative numbers, none of them a difference: small ones keep their digits."""
    within = _sums_in_blocks(values)
    return (within + _times_triangle(within[:, -1], above=1)[:, None]).reshape(-1)[: values.shape[0]]


def _sums_in_blocks(values: Float[Array, " n"]) -> Float[Array, "blocks size"]:
    n, size = values.shape[0], int(np.ceil(np.sqrt(values.shape[0])))
    blocks = -(-n // size)
    return _times_triangle(jnp.pad(values, (0, blocks * size - n)).reshape(blocks, size))


def _times_triangle(v: Float[Array, "*batch m"], above: int = 0) -> Float[Array, "*batch m"]:
    """Sums of the entries before each, and of itself; with `above=1` without itself."""
    m = v.shape[-1]
    return jnp.matmul(v, jnp.asarray(np.triu(np.ones((m, m)), above), v.dtype), precision=lax.Precision.HIGHEST)


def draw_with_replacement(key: PRNGKeyArray, log_weights: Float[Array, " n"], capacity: int) -> Int[Array, " capacity"]:
    """Independent sites, each with probability proportional to its weight, by inversion of the cumulative weights."""
    n = log_weights.shape[0]
    within, totals = inclusive_sums(jnp.exp(log_weights - jnp.max(log_weights)))
    size, level = within.shape[1], random.uniform(key, capacity).astype(totals.dtype) * totals[-1]
    block = jnp.minimum(_number_at_most(totals[None], jnp.zeros(capacity, jnp.int32), level), totals.shape[0] - 1)
    inside = level - (totals - within[:, -1])[block]
    offset = jnp.minimum(_number_at_most(within, block, inside), size - 1)
    return jnp.minimum(block * size + offset, n - 1).astype(jnp.int32)


def _number_at_most(
    sums: Float[Array, "blocks size"], block: Int[Array, " k"], level: Float[Array, " k"]
) -> Int[Array, " k"]:
    """How many of the numbers of a block, which increase, are at most a level; for each of k blocks and levels.

    A level is compared with all of them at once. Where levels are many, XLA's compiler for GPUs takes minutes to try
    this sum in all the ways it knows; there the number is found by halving, which takes a kernel for each bit.
    """
    if level.shape[0] <= _FEW_LEVELS:
        return _by_comparing(sums, block, level)
    return lax.platform_dependent(sums, block, level, cpu=_by_comparing, default=_by_halving)


def _by_comparing(
    sums: Float[Array, "blocks size"], block: Int[Array, " k"], level: Float[Array, " k"]
) -> Int[Array, " k"]:
    rows = sums if sums.shape[0] == 1 else sums[block]
    # Sums of floats are vectorised, of integers not.
    return jnp.sum((rows <= level[:, None]).astype(jnp.float32), axis=1).astype(jnp.int32)


def _by_halving(
    sums: Float[Array, "blocks size"], block: Int[Array, " k"], level: Float[Array, " k"]
) -> Int[Array, " k"]:
    size, number = sums.shape[1], jnp.zeros(level.shape, jnp.int32)
    for bit in reversed(range(size.bit_length())):
        more = number + (1 << bit)
        is_at_most = sums[block, jnp.minimum(more, size) - 1] <= level
        number = jnp.where((more <= size) & is_at_most, more, number)
    return number


def is_first(sites: Int[Array, " k"], num_sites: int) -> Bool[Array, " k"]:
    """True at the first occurrence of each site; an index of `num_sites` or more is never first."""
    order = jnp.arange(sites.shape[0], dtype=jnp.int32)
    first_use = jnp.full(num_sites, sites.shape[0], jnp.int32).at[sites].min(order, mode="drop")
    return first_use.at[sites].get(mode="fill", fill_value=-1) == order


def _earlier(k: int) -> Bool[Array, "k k"]:
    """True where the column stands before the row. Computed, not a constant: a large one is slow to compile."""
    order = lax.iota(jnp.int32, k)
    return order[None, :] < order[:, None]


def draw_without_replacement(
    key: PRNGKeyArray, log_weights: Float[Array, " n"], length: Int[Array, ""], capacity: int
) -> tuple[Int[Array, " capacity"], Bool[Array, " n"]]:
    """`length` distinct sites in the order of successive weighted draws without replacement, and a mask of them.

    An exponential race: site i arrives at time E_i / w_i with E_i ~ Exp(1), and the first `length` arrivals are the
    draw, in order. Ties go to the lower index.
    """
    n = log_weights.shape[0]
    exponential = -jnp.log(random.uniform(key, n)).astype(log_weights.dtype)
    log_times = materialised(jnp.log(exponential) - log_weights)
    if capacity <= _SMALL:
        order = _smallest_by_top_k(log_times, capacity)
    else:
        order = lax.platform_dependent(
            log_times,
            cpu=lambda t: _smallest_by_threshold(t, length, capacity),
            default=lambda t: _smallest_by_top_k(t, capacity),
        )
    last = order[length - 1]
    is_drawn = (log_times < log_times[last]) | ((log_times == log_times[last]) & (jnp.arange(n) <= last))
    return jnp.where(jnp.arange(capacity) < length, order, n), is_drawn


_SMALL = 4  # below this, picking the smallest one after another is cheapest
_MANY = 2048  # from which on values are looked at block by block
_FEW_LEVELS = 128
_PLACE_BITS = 15  # of an integer that holds a place and half of a value


def _smallest_by_top_k(values: Float[Array, " n"], k: int) -> Int[Array, " k"]:
    """The k smallest in increasing order.

    Of many values only some are looked at: cut into blocks, the k smallest lie in the k blocks of the smallest minima.
    """
    n, size = values.shape[0], int(np.ceil(np.sqrt(values.shape[0] / k)))
    blocks = -(-n // size)
    if n < _MANY or 4 * k > blocks:
        return lax.top_k(-values, k)[1].astype(jnp.int32)
    padded = jnp.pad(values, (0, blocks * size - n), constant_values=jnp.inf).reshape(blocks, size)
    # In the order of their places, so that of equal values the one with the lower index wins.
    chosen = jnp.sort(lax.top_k(-jnp.min(padded, axis=1), k)[1])
    nearest = lax.top_k(-padded[chosen].reshape(-1), k)[1]
    return (chosen[nearest // size] * size + nearest % size).astype(jnp.int32)


def _smallest_by_threshold(values: Float[Array, " n"], count: Int[Array, ""], k: int) -> Int[Array, " k"]:
    """The `count` smallest in increasing order, sorting nothing else.

    Bisection finds a threshold below which there are at least `count` and at most k values; those are moved to the
    front, and only they are sorted. On a CPU this costs a fraction of `top_k`, which costs a fraction of a sort.
    """
    low = jnp.min(values)
    high = jnp.max(jnp.where(jnp.isfinite(values), values, low))

    def number_below(threshold):
        return jnp.sum((values <= threshold).astype(jnp.float32))

    def unfinished(search):
        _, _, below, tries = search
        return (below > k) & (tries < 64)

    def halve(search):
        low, high, below, tries = search
        middle = low + (high - low) / 2
        at_middle = number_below(middle)
        enough = at_middle >= count
        return (
            jnp.where(enough, low, middle),
            jnp.where(enough, middle, high),
            jnp.where(enough, at_middle, below),
            tries + 1,
        )

    _, threshold, _, _ = lax.while_loop(unfinished, halve, (low, high, number_below(high), jnp.int32(0)))
    slots = materialised(_first_true(values <= threshold, k))
    candidates = materialised(values.at[slots].get(mode="fill", fill_value=jnp.inf))
    return slots[_sorted_places(candidates)]


def _sorted_places(values: Float[Array, " k"]) -> Int[Array, " k"]:
    """The places of values in increasing order; of equal ones the lower place comes first.

    XLA's CPU compiler sorts single integers four times faster than anything else. So each half of the bits of a value
    is sorted in one integer with a place: first by the lower halves, then, which keeps their order, by the upper ones.
    """
    k = values.shape[0]
    if k > 1 << _PLACE_BITS or values.dtype != jnp.float32:
        return jnp.argsort(values)
    bits = lax.bitcast_convert_type(jnp.where(values == 0, 0, values), jnp.uint32)  # -0 is 0
    ordered = jnp.where(bits >> 31 == 1, ~bits, bits | np.uint32(2**31))
    places = lax.iota(jnp.int32, k)
    for half in (ordered & 0xFFFF, ordered >> 16):
        packed = (half[places].astype(jnp.int32) << _PLACE_BITS) | lax.iota(jnp.int32, k)
        places = places[lax.sort(packed, is_stable=False) & (2**_PLACE_BITS - 1)]
    return places


def _first_true(mask: Bool[Array, " n"], k: int) -> Int[Array, " k"]:
    """The places of the first k that are true, n where there are fewer: first their blocks, then places in them."""
    within, totals = inclusive_sums(mask.astype(jnp.float32))
    blocks, size = within.shape
    before = jnp.arange(k, dtype=jnp.float32)  # how many are true before each
    block = _by_comparing(totals[None], jnp.zeros(k, jnp.int32), before)
    found = jnp.minimum(block, blocks - 1)
    inside = before - (totals - within[:, -1])[found]
    offset = _by_comparing(within, found, inside)
    return jnp.where(block < blocks, found * size + offset, mask.shape[0])


def draw_uniform(
    key: PRNGKeyArray, num_sites: int, num_free: int | Int[Array, ""], length: Int[Array, ""], capacity: int
) -> Int[Array, " k"]:
    """`length` distinct numbers below `num_free`, uniformly; unused entries are `num_sites`.

    The cost does not grow with the sites: more candidates are drawn than needed and repeats are skipped. In the rare
    case that too few distinct ones are found the draw is shorter; it never depends on the state, so a random walk that
    uses it stays symmetric.
    """
    if 8 * capacity > num_sites:
        log_weights = jnp.where(jnp.arange(num_sites) < num_free, 0.0, -jnp.inf)
        return draw_without_replacement(key, log_weights, jnp.minimum(length, num_free), capacity)[0]
    candidates = random.integers(key, capacity + capacity // 4 + 2, num_free)
    size = candidates.shape[0]
    if size * size < 2 * num_sites:  # all pairs, not an array of the sites: those may be millions
        first = ~jnp.any((candidates[:, None] == candidates[None, :]) & _earlier(size), axis=1)
    else:
        first = is_first(candidates, num_sites)
    rank = jnp.matmul(_earlier(size).astype(jnp.float32), first.astype(jnp.float32), precision=lax.Precision.HIGHEST)
    return jnp.where(first & (rank < length), candidates, num_sites)
