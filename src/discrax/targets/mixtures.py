"""Mixtures on ordinal grids: smooth, with many modes or strong correlations, and with known exact quantities.

- `QuarticMixture`: 50 components of a rotated quartic (Sun et al., 2023).
- `PolynomialMixture`: components of independent sites, a polynomial in each; everything about it is known exactly
  (Rhodes and Gutmann, 2022).
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments, real_array
from discrax.core.space import Ordinal
from discrax.core.target import Target
from discrax.targets.gaussian import random_orthogonal


class QuarticMixture(Target):
    """log pi(x) = log sum_k exp(-sum_d h(u_kd)),   u_k = P ((e - c_k) / s),   h(u) = (u + 1) (u^2 + 1/2) (u - 2).

    h has its minimum at u = (1 + sqrt 3) / 2. `rotation` is P, `scales` s (one per site), `centres` c (one number per
    component); sites are 0 .. num_levels - 1.
    """

    space: Ordinal
    rotation: Float[Array, "n n"]
    scales: Float[Array, " n"]
    centres: Float[Array, " components"]

    @checked_arguments
    def __init__(self, rotation: ArrayLike, scales: ArrayLike, centres: ArrayLike, num_levels: int = 21):
        given = {"rotation": rotation, "scales": scales, "centres": centres}
        rotation, scales, centres = (real_array(name, array) for name, array in given.items())
        n = scales.size
        if scales.shape != (n,) or rotation.shape != (n, n) or centres.ndim != 1 or not centres.size:
            raise ValueError(
                "Expected a rotation (n, n), n scales and one centre per component, but got shapes "
                f"{rotation.shape}, {scales.shape} and {centres.shape}."
            )
        self.space = Ordinal(n, np.arange(num_levels))
        dtype = jnp.result_type(float)
        self.rotation, self.scales = jnp.asarray(rotation, dtype), jnp.asarray(scales, dtype)
        self.centres = jnp.asarray(centres, dtype)

    @classmethod
    @checked_arguments
    def simulated(
        cls,
        seed: int,
        dimension: int = 20,
        num_components: int = 50,
        num_levels: int = 21,
        *,
        printed_centres: bool = False,
    ) -> "QuarticMixture":
        """The paper's mixture: s_i = w exp(-1/2 + i / (n - 1)), P random orthogonal, c from 0 to w = num_levels - 1.

        The paper prints centres from 0 to 1, for which all components nearly coincide: `printed_centres`.
        """
        width = num_levels - 1
        scales = width * np.exp(-0.5 + np.linspace(0, 1, dimension))
        centres = np.linspace(0, 1 if printed_centres else width, num_components)
        return cls(random_orthogonal(np.random.default_rng(seed), dimension), scales, centres, num_levels)

    def log_prob(self, e: Float[Array, " n"]) -> Float[Array, ""]:
        v = (e[None, :] - self.centres[:, None]) / self.scales[None, :]
        u = jnp.matmul(v, self.rotation.T, precision=jax.lax.Precision.HIGHEST)
        return jax.nn.logsumexp(-jnp.sum((u + 1) * (u * u + 0.5) * (u - 2), axis=1))


class PolynomialMixture(Target):
    """log pi(x) = log (1 / K) sum_k prod_i p_k(e_i),   p_k(v) = exp(g(v - c_k)) / Z_k,   Z_k summed over the grid.

    g is the polynomial with `coefficients` from the highest degree down to a constant, which Z_k takes up, and c are
    the `centres`. Sites are independent in a component and dependent through it. log pi is normalised.
    """

    space: Ordinal
    coefficients: Float[Array, " degree"]
    centres: Float[Array, " components"]
    log_normalisers: Float[Array, " components"]

    @checked_arguments
    def __init__(self, coefficients: ArrayLike, centres: ArrayLike, values: ArrayLike, dimension: int):
        coefficients, centres = real_array("coefficients", coefficients), real_array("centres", centres)
        if coefficients.ndim != 1 or centres.ndim != 1 or not coefficients.size or not centres.size:
            raise ValueError(
                "Expected a list of coefficients and a list of centres, but got shapes "
                f"{coefficients.shape} and {centres.shape}."
            )
        self.space = Ordinal(dimension, values)
        dtype = jnp.result_type(float)
        self.coefficients, self.centres = jnp.asarray(coefficients, dtype), jnp.asarray(centres, dtype)
        self.log_normalisers = jnp.asarray(_log_table(coefficients, centres, np.asarray(values, float))[1], dtype)

    @classmethod
    @checked_arguments
    def poly2(cls, dimension: int = 20, num_components: int = 50, num_levels: int = 50) -> "PolynomialMixture":
        """g(t) = -2 t - 6 t^2, centres from 0 to 2, levels from -1.5 to 3: sites correlated 0.81."""
        return cls([-6.0, -2.0, 0.0], np.linspace(0, 2, num_components), np.linspace(-1.5, 3.0, num_levels), dimension)

    @classmethod
    @checked_arguments
    def poly4(cls, dimension: int = 20, num_components: int = 50, num_levels: int = 50) -> "PolynomialMixture":
        """g(t) = 2 (-t + t^2 - t^3 - t^4), centres from 0 to 3, levels from -1.5 to 3: sites correlated 0.90.

        The paper prints other arguments of g for both mixtures, of which many components miss the grid; these are the
        ones it ran.
        """
        centres, levels = np.linspace(0, 3, num_components), np.linspace(-1.5, 3.0, num_levels)
        return cls([-2.0, -2.0, 2.0, -2.0, 0.0], centres, levels, dimension)

    def log_prob(self, e: Float[Array, " n"]) -> Float[Array, ""]:
        t = e[None, :] - self.centres[:, None]
        g = jnp.zeros_like(t)
        for coefficient in self.coefficients:
            g = g * t + coefficient
        by_component = jnp.sum(g, axis=1) - e.shape[0] * self.log_normalisers
        return jax.nn.logsumexp(by_component) - math.log(self.centres.size)

    def exact_marginal(self) -> Float[np.ndarray, " levels"]:
        """The law of a site, the same for every site."""
        return self._by_component().mean(axis=0)

    def exact_mean_and_covariance(self) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
        """Of the embedding: Cov(e_i, e_j) = Var_k(mean_k) + [i = j] mean_k(var_k)."""
        values, n = np.asarray(self.space.values, np.float64), self.space.num_sites
        table = self._by_component()
        means = table @ values
        variances = table @ values**2 - means**2
        return np.full(n, means.mean()), np.full((n, n), means.var()) + variances.mean() * np.eye(n)

    @checked_arguments
    def exact_draws(self, seed: int, num: int) -> Integer[np.ndarray, "num n"]:
        """Independent draws, as codes: a component, then the sites."""
        rng, levels = np.random.default_rng(seed), self.space.num_levels
        component = rng.integers(len(self.centres), size=(num, 1))
        # All distribution functions in one increasing list: that of component k rises from k to k + 1.
        steps = np.arange(len(self.centres))[:, None] + np.cumsum(self._by_component(), axis=1)
        found = np.searchsorted(steps.reshape(-1), component + rng.random((num, self.space.num_sites)), side="right")
        return np.clip(found - component * levels, 0, levels - 1).astype(self.space.dtype)

    def _by_component(self) -> Float[np.ndarray, "components levels"]:
        """p_k(v), in double precision."""
        arrays = (self.coefficients, self.centres, self.space.values)
        table, log_normalisers = _log_table(*(np.asarray(a, np.float64) for a in arrays))
        return np.exp(table - log_normalisers[:, None])


def _log_table(
    coefficients: Float[np.ndarray, " degree"],
    centres: Float[np.ndarray, " components"],
    values: Float[np.ndarray, " levels"],
) -> tuple[Float[np.ndarray, "components levels"], Float[np.ndarray, " components"]]:
    """g(v - c_k), and log of its sum of exponentials over the grid."""
    table = np.polyval(coefficients, values[None, :] - centres[:, None])
    highest = table.max(axis=1)
    return table, highest + np.log(np.exp(table - highest[:, None]).sum(axis=1))
