"""Block Gibbs and Hamming balls: several sites are redrawn together, so nothing is ever rejected.

The free sites, in order, are cut into blocks of `block_size` (the last may be shorter), and a step redraws the next.
With O the offsets o of a block that have at most `radius` non-zeros, and x + o the state with o added to the codes of
the block, modulo the number of levels,

    u = x + o,     o ~ uniform on O
    x' = u + o',   o' ~ softmax over O of log pi(u + o')

- Hamming ball sampling (Titsias and Yau, 2017): O has as many elements at every state and holds -o with every o, so
  p(u | x) = p(u | x') is constant and drops out of the second draw. Drawn in any other way, u would have to stay in it.
- Block Gibbs is the ball of radius `block_size`: whatever u is, x' is any setting of the block.
"""

import functools
import itertools
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import whole
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.levels import draw_levels
from discrax.core.space import Space
from discrax.core.statistics import compensated_add
from discrax.core.target import LocalChanges, Target, log_prob, offered, temper

_MOST_CANDIDATES = 1 << 16


class HammingBall(Kernel):
    """Redraws the next block within a Hamming ball."""

    block_size: int = eqx.field(static=True)
    radius: int = eqx.field(static=True)
    sites_changed: ClassVar[int | str | None] = "radius"
    evaluates_levels: ClassVar[bool] = True

    def __init__(self, block_size: int = 10, radius: int = 1):
        self.block_size = whole("block_size", block_size, least=1, most=10**9)
        self.radius = whole("radius", radius, least=1, most=10**9)
        if self.radius > self.block_size:
            raise ValueError(
                f"radius is how many sites of a block may change, at most block_size = {block_size}, but got {radius}."
            )

    def _sizes(self, space: Space) -> tuple[int, int]:
        """The block and the radius on a space: a block that would be larger than the space is all of it."""
        return min(self.block_size, space.num_sites), min(self.radius, space.num_sites)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        _offsets(*self._sizes(target.space), target.space.num_levels)  # says so if there are too many
        value = log_prob(target, x)
        # The cache: the first place of the next block among the free sites, and the rounding error of the summed
        # log_prob.
        return State(x, value, (jnp.zeros((), jnp.int32), jnp.zeros_like(value)))

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, x, (position, error) = target.space, state.x.reshape(-1), state.cache
        for_centre, for_candidate = random.split(key, 2)
        block_size, radius = self._sizes(space)
        places = position + jnp.arange(block_size, dtype=jnp.int32)
        is_in_block = places < space.num_free
        sites = space.free_site(places % space.num_sites)  # distinct, also those that are not in a shorter block
        old = x[sites]

        offsets, levels = jnp.asarray(_offsets(block_size, radius, space.num_levels)), space.levels_at(sites)
        is_candidate = jnp.all((offsets == 0) | is_in_block[None], axis=1)
        if not isinstance(levels, int):  # offsets of a site are those of its own levels
            is_candidate &= jnp.all(offsets < levels[None], axis=1)
            offsets = offsets[jnp.argsort(~is_candidate)]
            is_candidate, levels = jnp.sort(is_candidate, descending=True), levels[None]
        num_candidates = jnp.sum(is_candidate, dtype=jnp.int32)
        centre = offsets[random.integers(for_centre, 1, num_candidates)[0]]
        shifts = jnp.where(is_in_block[None], centre[None] + offsets, 0)
        candidates = ((old.astype(jnp.int32)[None] + shifts) % levels).astype(space.dtype)

        # The state itself is always a candidate, so there is one to draw whatever the target says of the others.
        changes = jnp.where(jnp.all(candidates == old[None], axis=1), 0, _changes(target, state, sites, candidates))
        tempered = temper(target, changes)
        is_invalid = is_candidate & (jnp.isnan(tempered) | jnp.isposinf(tempered))
        pick = draw_levels(random.words(for_candidate, 1)[0], jnp.where(is_candidate & ~is_invalid, tempered, -jnp.inf))
        value, error = compensated_add(state.log_prob, error, changes[pick])
        next_position = jnp.where(places[-1] + 1 < space.num_free, places[-1] + 1, 0)
        after = State(x.at[sites].set(candidates[pick]).reshape(space.shape), value, (next_position, error))
        jump = space.distance(old, candidates[pick])
        return after, scalar_info(1, True, jump, num_candidates - 1, jnp.any(is_invalid))


class BlockGibbs(HammingBall):
    """Redraws the next block from its conditional."""

    def __init__(self, block_size: int = 2):
        super().__init__(block_size, radius=block_size)


@functools.lru_cache(maxsize=8)
def _offsets(block_size: int, radius: int, num_levels: int) -> Int[np.ndarray, "offsets block_size"]:
    """O. Sorted by the last site they change, so that those which fit into a shorter block come first."""
    count = sum(math.comb(block_size, changed) * (num_levels - 1) ** changed for changed in range(radius + 1))
    if count > _MOST_CANDIDATES:
        raise ValueError(
            f"A block of {block_size} sites with {num_levels} levels, of which {radius} may change, has {count:,} "
            f"candidates, but a step enumerates at most {_MOST_CANDIDATES:,}; use a smaller block or radius."
        )
    table = np.zeros((count, block_size), np.int32)
    row = 1
    for changed in range(1, radius + 1):
        values = np.array(list(itertools.product(range(1, num_levels), repeat=changed)), np.int32)
        for sites in itertools.combinations(range(block_size), changed):
            table[row : row + len(values), sites] = values
            row += len(values)
    last_changed = np.max(np.where(table != 0, np.arange(block_size), -1), axis=1)
    return table[np.argsort(last_changed, kind="stable")]


def _changes(
    target: Target, state: State, sites: Int[Array, " k"], candidates: Integer[Array, "candidates k"]
) -> Float[Array, " candidates"]:
    """Untempered log pi(y) - log pi(x), y with the codes of a candidate at the sites."""
    local = offered(target, LocalChanges)
    if local is not None:
        return jax.vmap(lambda codes: local.change(state.x, sites, codes))(candidates)
    x, shape = state.x.reshape(-1), target.space.shape
    values = jax.vmap(lambda codes: log_prob(target, x.at[sites].set(codes).reshape(shape)))(candidates)
    return values - state.log_prob
