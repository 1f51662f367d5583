"""Balanced partition: labels of the nodes of a graph that cut few edges and are used equally often.

With the one-hot e of n nodes and k labels, the symmetric weights A, the label counts n_s = sum_i e_is and

    cut = sum over i < j of A_ij (1 - e_i' e_j),

    log pi(x) = -(a cut + c sum_s (n / k - n_s)^2).

This is quadratic in e, with the coupling J = a A - 2 c 1 1'. Its second part is never stored: it acts through the
counts. With the field F_is = a (A e)_is - 2 c n_s, to move node i from label s to label t changes log pi by

    F_it - F_is - 2 c.

A few moves z = e(y) - e(x) change the field by J z, and log pi by z' (F + J z / 2).
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments
from discrax.core.levels import is_level
from discrax.core.space import Categorical
from discrax.core.target import Evaluation, ExactRatios, LocalChanges, QuadraticForm, RatioUpdates
from discrax.targets.coupling import Coupling, Dense


class BalancedLabels(ExactRatios, LocalChanges, RatioUpdates, QuadraticForm):
    """log pi(x) = -(cut_cost * cut + size_cost * sum_s (n / k - n_s)^2). `coupling` is A: a `Coupling`, or a matrix."""

    space: Categorical
    coupling: Coupling
    cut_cost: Float[Array, ""]  # a
    size_cost: Float[Array, ""]  # c
    degrees: Float[Array, " n"]  # A 1

    @checked_arguments
    def __init__(self, coupling: Coupling | ArrayLike, num_labels: int, cut_cost: float = 2.0, size_cost: float = 1.0):
        self.coupling = coupling if isinstance(coupling, Coupling) else Dense(coupling)
        if len(self.coupling.shape) != 1:
            raise ValueError(f"The nodes of a graph have one axis, but the coupling has shape {self.coupling.shape}.")
        diagonal = self.coupling.diagonal()
        if diagonal is not None and np.asarray(diagonal).any():
            raise ValueError("No node is joined to itself here, but the coupling has a diagonal; set it to 0.")
        self.space = Categorical(self.coupling.shape, num_labels)
        self.cut_cost = jnp.asarray(cut_cost, jnp.result_type(float))
        self.size_cost = jnp.asarray(size_cost, jnp.result_type(float))
        self.degrees = self.coupling.product(jnp.ones(self.coupling.shape, jnp.result_type(float)))

    def hessian(self) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"]]:
        """J of all pairs, since the sizes couple them all."""
        n = self.space.num_sites
        first, others, weights = self.coupling.csr()
        J = np.full((n, n), -2 * float(self.size_cost))
        np.add.at(J, (np.repeat(np.arange(n), np.diff(first)), others), float(self.cut_cost) * weights)
        i, j = np.triu_indices(n)
        return np.stack([i, j], axis=1), J[i, j]

    @property
    def gathers(self) -> bool:
        return self.coupling.gathers

    def log_prob(self, e: Float[Array, "n k"]) -> Float[Array, ""]:
        return self._value(e, self.coupling.product(e))

    def evaluate(self, x: Integer[Array, " n"]) -> Evaluation:
        e = self.space.embed(x)
        Ae = self.coupling.product(e)
        return Evaluation(self._value(e, Ae), self._ratios(x, self._field(Ae, jnp.sum(e, axis=0))))

    def _value(self, e: Float[Array, "n k"], Ae: Float[Array, "n k"]) -> Float[Array, ""]:
        cut = jnp.sum(self.degrees - jnp.sum(e * Ae, axis=1)) / 2
        misfit = self.space.num_sites / self.space.num_levels - jnp.sum(e, axis=0)
        return -(self.cut_cost * cut + self.size_cost * jnp.sum(jnp.square(misfit)))

    def _field(self, Ae: Float[Array, "m k"], counts: Float[Array, " k"]) -> Float[Array, "m k"]:
        return self.cut_cost * Ae - 2 * self.size_cost * counts[None]

    def _ratios(self, x: Integer[Array, " m"], F: Float[Array, "m k"]) -> Float[Array, "..."]:
        """F_it - F_is - 2 c, in the shape of log-ratios; F may be off by a number per node."""
        slopes = self.space.ratios_from_gradient(x, F)
        if self.space.has_two_levels:
            return slopes - 2 * self.size_cost
        return jnp.where(is_level(x, self.space.num_levels), 0, slopes - 2 * self.size_cost)

    def _slopes(self, x: Integer[Array, " n"], ratios: Float[Array, "..."]) -> Float[Array, "n k"]:
        """The field less a number per node, from log-ratios."""
        if self.space.has_two_levels:
            ratios = ratios[:, None]
        return jnp.where(is_level(x, self.space.num_levels), 0, ratios + 2 * self.size_cost)

    def change(self, x: Integer[Array, " n"], sites: Int[Array, " m"], codes: Integer[Array, " m"]) -> Float[Array, ""]:
        z = self.space.embed(codes) - self.space.embed(x[sites])
        Jz = self._field(_product(self.coupling.among(sites), z), jnp.sum(z, axis=0))
        return jnp.sum(z * (self._fields_at(x, sites) + Jz / 2))

    def ratios_at(self, x: Integer[Array, " n"], site: Int[Array, ""]) -> Float[Array, "..."]:
        return self._ratios(x[site][None], self._fields_at(x, site[None]))[0]

    def _fields_at(self, x: Integer[Array, " n"], sites: Int[Array, " m"]) -> Float[Array, "m k"]:
        others, weights = self.coupling.neighbours(sites)
        Ae = jnp.sum(weights[..., None] * self.space.embed(x[others]), axis=1)
        return self._field(Ae, jnp.sum(self.space.embed(x), axis=0))

    def update(
        self, x: Integer[Array, " n"], evaluation: Evaluation, y: Integer[Array, " n"], sites: Int[Array, " m"]
    ) -> Evaluation:
        """On a dense A, adds the changed rows; elsewhere a full evaluation is as cheap."""
        if not isinstance(self.coupling, Dense) or 4 * sites.shape[0] > self.space.num_sites:
            return self.evaluate(y)
        moves = self.space.embed(y) - self.space.embed(x)
        z = moves.at[sites].get(mode="fill", fill_value=0)
        rows = self.coupling.matrix.at[sites].get(mode="fill", fill_value=0)
        slopes = self._slopes(x, evaluation.ratios)
        Jz = self._field(_product(rows.T, z), jnp.sum(z, axis=0))
        change = jnp.sum(moves * (slopes + Jz / 2))
        return Evaluation(evaluation.log_prob + change, self._ratios(y, slopes + Jz))


def _product(A: Float[Array, "m p"], z: Float[Array, "p k"]) -> Float[Array, "m k"]:
    # The default precision of an accelerator (tf32) would make log-probabilities wrong in the third digit.
    return jnp.matmul(A, z, precision=lax.Precision.HIGHEST)
