"""The Gaussian-Bernoulli model: a small quenched model whose law is known (Sun et al., 2023)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import checked_arguments, real_array
from discrax.core.levels import draw_levels
from discrax.core.space import Binary, Space
from discrax.core.stochastic import Batch, BatchRatios

_COUPLINGS = 0.5 * (np.eye(4) + np.ones((4, 4)))


class GaussianBernoulli(BatchRatios):
    """pi(x) ~ exp(x'Wx / 2 + b'x) as a mixture, pi(x) = E_u pi(x | u), by the Gaussian integral trick.

        u ~ sum_x pi(x) N(W^(1/2) x, I),     pi(x | u) = prod_i sigmoid((2 x_i - 1) t_i),     t = W^(1/2) u + b

    A mini-batch is `batch_size` fresh u, and psi the mean of their pi(x | u). By default W = (I + 11') / 2 on four
    sites and b = -W 1 / 2. All 2^d states are tabulated, so d is at most 12.
    """

    space: Space
    W: Float[Array, "d d"]
    b: Float[Array, " d"]
    root: Float[Array, "d d"]  # W^(1/2)
    log_probs: Float[Array, " states"]
    states: Float[Array, "states d"]
    batch_size: int = eqx.field(static=True)
    in_logs: ClassVar[bool] = True

    @checked_arguments
    def __init__(self, W: ArrayLike = _COUPLINGS, b: ArrayLike | None = None, *, batch_size: int = 1):
        couplings = real_array("W", W)
        d = len(couplings) if couplings.ndim else 0
        field = -0.5 * couplings.sum(axis=-1) if b is None else real_array("b", b)
        if couplings.shape != (d, d) or field.shape != (d,) or not np.allclose(couplings, couplings.T):
            raise ValueError(
                f"W must be symmetric of shape (d, d) and b of shape (d,), but got {couplings.shape} and {field.shape}."
            )
        if d > 12:
            raise ValueError(f"The model tabulates all 2^d states, so d is at most 12, but W has {d} rows.")
        values, vectors = np.linalg.eigh(couplings)
        if values[0] < -1e-9:
            raise ValueError(f"W must have no negative eigenvalue, but its smallest is {values[0]:.3g}.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, but got {batch_size}.")
        self.space, self.batch_size = Binary(d), int(batch_size)
        states = self.space.enumerate().astype(float)
        log_probs = 0.5 * np.einsum("si,ij,sj->s", states, couplings, states) + states @ field
        log_probs -= np.logaddexp.reduce(log_probs)
        dtype = jnp.result_type(float)
        self.W, self.b, self.states = (jnp.asarray(a, dtype) for a in (couplings, field, states))
        self.root = jnp.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T, dtype)
        self.log_probs = jnp.asarray(log_probs, dtype)

    def log_prob(self, e: Float[Array, " d"]) -> Float[Array, ""]:
        """Exact, up to the constant: mini-batches are what the stochastic samplers see."""
        return 0.5 * jnp.dot(e, self.W @ e) + jnp.dot(self.b, e)

    @property
    def probabilities(self) -> Float[np.ndarray, " states"]:
        """The exact law, in the order of `space.enumerate()`."""
        return np.exp(np.asarray(self.log_probs, np.float64))

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Float[Array, "batch d"]:
        """t of fresh u."""
        for_state, for_noise = random.split(key, 2)
        bits = random.words(for_state, self.batch_size)
        chosen = draw_levels(bits, jnp.broadcast_to(self.log_probs, (self.batch_size, len(self.log_probs))))
        d = self.space.num_sites
        noise = random.normal(for_noise, self.batch_size * d).reshape(self.batch_size, d).astype(self.W.dtype)
        return (self.states[chosen] @ self.root + noise) @ self.root + self.b[None]

    def psi(self, e: Float[Array, " d"], xi: Float[Array, "batch d"]) -> Float[Array, ""]:
        """log of the mean of pi(x | u)"""
        terms = jnp.sum(jax.nn.log_sigmoid((2 * e - 1)[None] * xi), axis=1)
        return jax.nn.logsumexp(terms) - jnp.log(self.batch_size)

    def batch(self, x: Int[Array, " d"], xi: Float[Array, "batch d"]) -> Batch:
        """Flipping x_i multiplies pi(x | u) by exp(-(2 x_i - 1) t_i)."""
        signed = (2 * self.space.embed(x) - 1)[None] * xi
        terms = jnp.sum(jax.nn.log_sigmoid(signed), axis=1)
        here = jax.nn.logsumexp(terms)
        there = jax.nn.logsumexp(terms[:, None] - signed, axis=0)
        return Batch(here - jnp.log(self.batch_size), there - here)
