"""Spins with interactions of three: a target whose Hessian changes with the state."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, checked_arguments, leaf_number, real_array
from discrax.core.space import Binary, Spin
from discrax.core.target import Target


class CubicIsing(Target):
    """log pi(s) = s' J s + a sum over triples s_i s_j s_k,   s in {-1, +1}^n  (Rhodes and Gutmann, 2022).

    Each pair counts twice in s' J s. `coding` is the embedding that samplers see: "binary" (the paper's) has e in
    {0, 1} and s = 2 e - 1, "spin" has e = s; step sizes and preconditioners refer to it. Indices of a triple may
    repeat.
    """

    space: Binary | Spin
    couplings: Float[Array, "n n"]  # J
    triples: Int[Array, "m 3"]
    strength: Float[Array, ""]  # a

    @checked_arguments
    def __init__(
        self, couplings: ArrayLike, triples: ArrayLike, strength: float, *, coding: Literal["binary", "spin"] = "binary"
    ):
        J, triples = real_array("couplings", couplings), as_array("triples", triples)
        if J.ndim != 2 or J.shape[0] != J.shape[1] or not np.allclose(J, J.T, rtol=1e-5, atol=1e-7):
            raise ValueError(
                f"The couplings must be a symmetric matrix, but got one of shape {J.shape}; pass (J + J.T) / 2."
            )
        if triples.ndim != 2 or triples.shape[1] != 3 or not np.issubdtype(triples.dtype, np.integer):
            raise ValueError(
                f"Triples are whole numbers of shape (m, 3), but got {triples.dtype} of shape {triples.shape}."
            )
        if triples.size and (triples.min() < 0 or triples.max() >= len(J)):
            raise ValueError(
                f"Triples must join sites 0..{len(J) - 1}, but they name {triples.min()}..{triples.max()}."
            )
        if coding not in ("binary", "spin"):
            raise ValueError(f"coding is 'binary' or 'spin', but got {coding!r}.")
        self.space = Binary(len(J)) if coding == "binary" else Spin(len(J))
        self.couplings = jnp.asarray(J, jnp.result_type(float))
        self.triples = jnp.asarray(triples, jnp.int32)
        self.strength = leaf_number("strength", strength)

    @classmethod
    @checked_arguments
    def lattice(
        cls,
        side: int = 4,
        coupling: float = 0.2,
        strength: float = 0.3,
        num_triples: int = 50,
        seed: int = 0,
        *,
        coding: Literal["binary", "spin"] = "binary",
    ) -> "CubicIsing":
        """A periodic square lattice, J = `coupling` on its edges, and random triples (indices drawn independently)."""
        if side < 3:
            raise ValueError(f"A periodic lattice needs at least 3 sites along each axis, but side is {side}.")
        sites = np.arange(side * side).reshape(side, side)
        J = np.zeros((sites.size, sites.size))
        for axis in (0, 1):
            following = np.roll(sites, -1, axis)
            J[sites, following] = J[following, sites] = coupling
        triples = np.random.default_rng(seed).integers(0, sites.size, (num_triples, 3))
        return cls(J, triples, strength, coding=coding)

    def log_prob(self, e: Float[Array, " n"]) -> Float[Array, ""]:
        s = 2 * e - 1 if isinstance(self.space, Binary) else e
        pairs = jnp.sum(s * jnp.matmul(self.couplings, s, precision=lax.Precision.HIGHEST))
        i, j, k = self.triples.T
        return pairs + self.strength * jnp.sum(s[i] * s[j] * s[k])

    def quadratic_matrix(self) -> Float[np.ndarray, "n n"]:
        """The Hessian of s' J s in the embedding, for a preconditioner: 8 J for {0, 1}, 2 J for spins."""
        return (8 if isinstance(self.space, Binary) else 2) * np.asarray(self.couplings, np.float64)
