"""Seeds of the command line."""

import jax
from jaxtyping import PRNGKeyArray

_END = 2**32


def checked_seed(seed: int) -> int:
    """JAX cuts a seed to 32 bits, so that others would stand for the same numbers as one of these."""
    if not 0 <= seed < _END:
        raise ValueError(f"A seed is a whole number from 0 to {_END - 1:,}, but got {seed}.")
    return seed


def key_of(seed: int) -> PRNGKeyArray:
    """The key of a seed that a user gave."""
    return jax.random.key(checked_seed(seed))
