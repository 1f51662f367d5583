"""Random words: Threefry-2x32-20 in counter mode, written so that XLA can fuse it.

This is the generator behind JAX's default keys (Salmon et al., 2011), with two differences that make it
several times cheaper inside a sampler: the rounds are unrolled elementwise operations instead of a loop that XLA
cannot fuse with what follows, and both words of a block are used instead of their exclusive or.
Word `i` of a key depends on the key and on `i` alone, so draws do not depend on the batch they are made in.

The uses of a key are kept apart by the first word of the counter. JAX counts there in 64 bits from 0, so no key or word
that it makes of a key is one that is made here: `split` and `fold_in` share no child with each other or with JAX's.
All of this library's randomness comes from here, but for the first weights of networks and draws of users' functions,
which JAX makes from keys that were split here.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, UInt32

from discrax.core.checks import describe

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_DRAW, _SPLIT, _FOLD = np.uint32(0xD15C0000), np.uint32(0xD15C0001), np.uint32(0xD15C0002)


def threefry(k0: Array, k1: Array, c0: Array | np.uint32, c1: Array) -> tuple[Array, Array]:
    """One block: encrypts the counter `(c0, c1)` with the key `(k0, k1)`; all are uint32 and broadcast."""
    return _threefry(k0, k1, c0, c1)


def _encrypt(k0: Any, k1: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """Of arrays of JAX or of numpy."""
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = c0 + schedule[0], c1 + schedule[1]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))
            x1 = x0 ^ x1
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + schedule[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


_threefry = jax.jit(_encrypt)  # within other programs too: its hundred operations are traced once for each shape


def as_threefry(key: PRNGKeyArray) -> PRNGKeyArray:
    """A Threefry key derived from one JAX key, new style or old; anything else is a TypeError."""
    expected = "key must be one JAX key, such as jax.random.key(0), but got"
    if isinstance(key, np.ndarray) and key.dtype == np.uint32:  # the data of an old-style key
        key = jnp.asarray(key)
    if not isinstance(key, jax.Array):
        raise TypeError(f"{expected} {describe(key)}.")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.dtype != jnp.uint32 or key.ndim == 0:
            raise TypeError(f"{expected} an array of {key.dtype} of shape {key.shape}.")
        if key.ndim == 1:
            try:
                key = jax.random.wrap_key_data(key)
            except (TypeError, ValueError):
                raise TypeError(f"{expected} an array of {key.dtype} of shape {key.shape}.") from None
    if key.shape != ():
        raise TypeError(f"{expected} a batch of keys of shape {key.shape}; pass one of them.")
    if str(jax.random.key_impl(key)) == "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")


def seed_of(key: PRNGKeyArray) -> int:
    """A seed for numpy's generators."""
    return int(words(as_threefry(key), 1)[0])


def _blocks(key: PRNGKeyArray, count: int, use: np.uint32) -> tuple[Array, Array]:
    k = jax.random.key_data(key)
    return threefry(k[0], k[1], use, jnp.arange(count, dtype=jnp.uint32))


def words(key: PRNGKeyArray, count: int) -> UInt32[Array, "{count}"]:
    """`count` independent uniform 32-bit words."""
    first, second = _blocks(key, (count + 1) // 2, _DRAW)
    return jnp.concatenate([first, second])[:count]


def split(key: PRNGKeyArray, num: int) -> Key[Array, "{num}"]:
    """`num` independent keys."""
    return jax.random.wrap_key_data(jnp.stack(_blocks(key, num, _SPLIT), axis=1), impl="threefry2x32")


def split_on_host(data: ArrayLike, num: int) -> UInt32[np.ndarray, "{num} 2"]:
    """The data of the keys of `split`, from the data of a key; nothing is compiled."""
    k = np.asarray(data)
    return np.stack(_encrypt(k[:1], k[1:], np.asarray([_SPLIT]), np.arange(num, dtype=np.uint32)), axis=1)


def from_data(data: UInt32[np.ndarray, "*batch 2"]) -> Key[Array, "*batch"]:
    """Keys from their data."""
    return jax.random.wrap_key_data(jnp.asarray(data), impl="threefry2x32")


def fold_in(key: PRNGKeyArray, data: int | Int[Array, ""] | UInt32[Array, ""]) -> PRNGKeyArray:
    """The key of step `data`."""
    k = jax.random.key_data(key)
    folded = threefry(k[0], k[1], _FOLD, jnp.asarray(data).astype(jnp.uint32))
    return jax.random.wrap_key_data(jnp.stack(folded), impl="threefry2x32")


def to_uniform(bits: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """Words to floats in the open interval (0, 1), symmetric about 1/2: the logarithm is always finite."""
    return ((bits >> np.uint32(9)).astype(jnp.float32) + np.float32(0.5)) * np.float32(2.0**-23)


def uniform(key: PRNGKeyArray, count: int) -> Float[Array, "{count}"]:
    """Floats in the open interval (0, 1)."""
    return to_uniform(words(key, count))


def uniform_scalar(key: PRNGKeyArray) -> Float[Array, ""]:
    """One float in the open interval (0, 1)."""
    return uniform(key, 1)[0]


def normal(key: PRNGKeyArray, count: int) -> Float[Array, "{count}"]:
    """Standard normal numbers, by inversion."""
    return np.float32(np.sqrt(2)) * jax.lax.erf_inv(2 * uniform(key, count) - 1)


def integers(
    key: PRNGKeyArray, count: int, below: int | Int[Array, ""] | Int[Array, "{count}"]
) -> Int[Array, "{count}"]:
    """Uniform integers in [0, below), with one bound for all or one each.

    The high words of `word * below`, which are biased by less than below / 2^32.
    """
    bits, bound = words(key, count), jnp.asarray(below, jnp.uint32)
    low_half = (bits & np.uint32(0xFFFF)) * (bound & np.uint32(0xFFFF)) >> np.uint32(16)
    cross = (bits & np.uint32(0xFFFF)) * (bound >> np.uint32(16))
    other = (bits >> np.uint32(16)) * (bound & np.uint32(0xFFFF))
    high = (bits >> np.uint32(16)) * (bound >> np.uint32(16))
    # 32-bit schoolbook multiplication: 64-bit words need a global JAX flag.
    carry = (low_half + (cross & np.uint32(0xFFFF)) + (other & np.uint32(0xFFFF))) >> np.uint32(16)
    return (high + (cross >> np.uint32(16)) + (other >> np.uint32(16)) + carry).astype(jnp.int32)
