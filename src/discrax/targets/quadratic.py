"""Quadratic targets: log pi(x) = e' J e / 2 + b' e, where e is the embedding of x.

Ising, Potts, QUBO and independent sites are all this one class with another space and another coupling (`coupling.py`).
With the local field h = J e + b and a move z = e(y_i) - e(x_i) of one site,

    log pi(x) = e' (h + b) / 2,        log pi(y) - log pi(x) = h_i z + J_ii |z|^2 / 2,

so the exact log-ratios of all single-site changes cost one product with J. Changing several sites by z costs z'h +
z'Jz / 2.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.bonds import Bonded, Bonds
from discrax.core.checks import checked_arguments, real_array
from discrax.core.levels import is_level
from discrax.core.space import Binary, Categorical, Space, Spin, check_space
from discrax.core.target import (
    Coloured,
    Evaluation,
    ExactRatios,
    LocalChanges,
    QuadraticForm,
    RatioUpdates,
    Rearrangeable,
)
from discrax.targets.coupling import Coupling, Dense, Lattice, Weights, as_edges
from discrax.targets.rows import Relabelling, Rows
from discrax.targets.sparse_coupling import Sparse

Family = TypeVar("Family", bound="Quadratic")


class Quadratic(ExactRatios, LocalChanges, RatioUpdates, Rearrangeable, Coloured, QuadraticForm, Bonded):
    """log pi(x) = e' J e / 2 + b' e. `coupling` is J: a `Coupling`, or a symmetric matrix."""

    space: Space
    coupling: Coupling
    linear: Float[Array, "..."]  # b, in the shape of the embedding

    def __init__(self, space: Space, coupling: Coupling | ArrayLike, linear: ArrayLike = 0.0):
        check_space(space)
        self.space = space
        self.coupling = coupling if isinstance(coupling, Coupling) else Dense(coupling, space.shape)
        if self.coupling.shape != space.shape:
            raise ValueError(
                f"The coupling is for sites of shape {self.coupling.shape}, but the space has {space.shape}."
            )
        one_hot = isinstance(space, Categorical)
        embedded = (*space.shape, space.num_levels) if one_hot else space.shape
        linear = real_array("The field", linear)
        if one_hot and linear.ndim and linear.shape == space.shape:
            raise ValueError(f"A field on a categorical space has a last axis of levels: expected shape {embedded}.")
        try:
            linear = np.broadcast_to(linear, embedded)
        except ValueError:
            raise ValueError(f"The field must broadcast to {embedded}, but has shape {linear.shape}.") from None
        self.linear = jnp.asarray(linear, jnp.result_type(float))

    @classmethod
    def _of(cls: type[Family], space: Space, coupling: Coupling, linear: ArrayLike) -> Family:
        """For the constructors of the families below, which add nothing but names."""
        return cls(space, coupling, linear)

    @staticmethod
    def from_qubo(Q: Any) -> "Quadratic":
        """log pi(x) = -x' Q x with x in {0, 1}: low values of the quadratic form are likely.

        Q is a square matrix, dense or scipy.sparse. Its diagonal is the linear term, since x^2 = x.
        """
        if not hasattr(Q, "tocoo"):
            Q = real_array("Q", Q)
        if Q.ndim != 2 or Q.shape[0] != Q.shape[1]:
            raise ValueError(f"A QUBO needs a square matrix, but got shape {Q.shape}.")
        J, linear = -(Q + Q.T), -Q.diagonal()
        if hasattr(J, "tocoo"):
            J = J.tocsr()  # ty: ignore[missing-union-attribute]
            J.setdiag(0)
            J.eliminate_zeros()
            edges, weights, n = as_edges(J)
            return Quadratic(Binary(n), Sparse(edges, np.asarray(weights), (n,)), linear)
        np.fill_diagonal(J, 0)
        return Quadratic(Binary(len(J)), Dense(J), linear)

    @property
    def gathers(self) -> bool:
        return self.coupling.gathers

    def colours(self) -> Int[np.ndarray, "*shape"]:
        return self.coupling.colours()

    def in_order(self, order: Int[np.ndarray, " n"], ends: Sequence[int]) -> Relabelling:
        return self.coupling.in_order(order, ends)

    def blocks(self, plan: Relabelling) -> "QuadraticBlocks":  # ty: ignore[incompatible-method-override]
        def ordered(array: Float[Array, "..."]) -> Float[Array, "n ..."]:
            return array.reshape(self.space.num_sites, *array.shape[len(self.space.shape) :])[plan.order]

        diagonal = self.coupling.diagonal()
        return QuadraticBlocks(
            self.space,
            plan.apply(self.coupling.flat_weights()),
            ordered(self.linear),
            None if diagonal is None else ordered(diagonal),
            plan.spans,
        )

    def hessian(self) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"]]:
        first, others, weights = self.coupling.csr()
        rows = np.repeat(np.arange(self.space.num_sites, dtype=np.int32), np.diff(first))
        once = (weights != 0) & (rows <= others)
        return np.stack([rows[once], others[once]], axis=1), weights[once]

    def bonds(self) -> Bonds:
        return self.coupling.bonds()

    def strengths(self, bonds: Bonds) -> Float[Array, " bonds"]:
        """J of one-hot vectors; of numbers l and h, J e_i e_j = J (h - l)^2 / 2 [x_i = x_j] + what sites do alone."""
        weights = self.coupling.bond_weights(bonds)
        if isinstance(self.space, Categorical):
            return weights
        low, high = self._ends()
        return weights * (high - low).reshape(-1)[0] ** 2 / 2

    def site_fields(self) -> Float[Array, "n ..."]:
        """b of one-hot vectors; of numbers l and h, (h - l) (b + J (l + h) / 2)."""
        n = self.space.num_sites
        if isinstance(self.space, Categorical):
            fields = self.linear.reshape(n, -1)
            return fields[:, 1] - fields[:, 0] if self.space.has_two_levels else fields
        low, high = self._ends()
        return ((high - low) * (self.linear + self.coupling.product((low + high) / 2))).reshape(n)

    def _ends(self) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
        """Embeddings of the states whose sites all have code 0, and code 1."""
        low, high = (self.space.embed(jnp.full(self.space.shape, code, self.space.dtype)) for code in (0, 1))
        return low, high

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return jnp.sum(e * (self.coupling.product(e) / 2 + self.linear))

    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        e = self.space.embed(x)
        h = self.coupling.product(e) + self.linear
        return Evaluation(jnp.sum(e * (h + self.linear)) / 2, self._ratios(x, h))

    def _ratios(self, x: Integer[Array, "*shape"], h: Float[Array, "..."]) -> Float[Array, "..."]:
        ratios, curvature = self.space.ratios_from_gradient(x, h), self._curvature(x)
        return ratios if curvature is None else ratios + curvature

    def _curvature(self, x: Integer[Array, "*shape"]) -> Float[Array, "..."] | None:
        """J_ii |z|^2 / 2 for all single-site changes; None where J has no diagonal."""
        diagonal = self.coupling.diagonal()
        return None if diagonal is None else diagonal_term(self.space, diagonal, x)

    def change(
        self, x: Integer[Array, "*shape"], sites: Int[Array, " k"], codes: Integer[Array, " k"]
    ) -> Float[Array, ""]:
        z = self.space.embed(codes) - self.space.embed(x.reshape(-1)[sites])
        z = z.reshape(sites.shape[0], -1)
        h, k = self._fields_at(x, sites).reshape(z.shape), len(z)
        if isinstance(self.coupling, Dense) or 8 * k * k <= self.space.num_sites:
            return jnp.sum(z * h) + jnp.sum(self.coupling.among(sites) * jnp.sum(z[:, None] * z[None, :], -1)) / 2
        # Where all pairs are more work than a copy of the state: J z at the sites is the change of their fields.
        flat = x.reshape(-1)
        y = flat.at[sites].add(codes - flat[sites]).reshape(x.shape)  # the padding of a path changes nothing
        return jnp.sum(z * (h + self._fields_at(y, sites).reshape(z.shape))) / 2

    def _fields_at(self, x: Integer[Array, "*shape"], sites: Int[Array, " k"]) -> Float[Array, "k ..."]:
        indices, weights = self.coupling.neighbours(sites)
        around = self.space.embed(x.reshape(-1)[indices])
        if around.ndim > weights.ndim:
            weights = weights[..., None]
        linear = self.linear.reshape(self.space.num_sites, *self.linear.shape[len(self.space.shape) :])
        return jnp.sum(weights * around, axis=1) + linear[sites]

    def ratios_at(self, x: Integer[Array, "*shape"], site: Int[Array, ""]) -> Float[Array, "..."]:
        sites = site[None]
        here = x.reshape(-1)[sites]
        ratios = self.space.ratios_from_gradient(here, self._fields_at(x, sites))[0]
        if self.coupling.diagonal() is None:
            return ratios
        return ratios + diagonal_term(self.space, self.coupling.among(sites)[0], here)[0]

    def update(
        self, x: Integer[Array, "*shape"], evaluation: Evaluation, y: Integer[Array, "*shape"], sites: Int[Array, " k"]
    ) -> Evaluation:
        """On a dense J with two levels, adds the changed rows; elsewhere a full evaluation is as cheap."""
        k, n = sites.shape[0], self.space.num_sites
        if not isinstance(self.coupling, Dense) or not self.space.has_two_levels or 4 * k > n:
            return self.evaluate(y)
        ones = jnp.ones(self.space.shape, jnp.result_type(float))
        moves = self.space.ratios_from_gradient(x, self._as_gradient(ones))
        curvature = self._curvature(x)
        slopes = evaluation.ratios if curvature is None else evaluation.ratios - curvature
        h = slopes / moves  # moves are +-1 or +-2: the division is exact
        z = jnp.where(x == y, 0, moves).reshape(-1).at[sites].get(mode="fill", fill_value=0)
        rows = self.coupling.matrix.at[sites].get(mode="fill", fill_value=0)
        # Of a one-hot pair both levels change, in opposite directions, so the slope between them changes twice.
        dh = (2 if isinstance(self.space, Categorical) else 1) * (z @ rows).reshape(self.space.shape)
        at_sites = (h + dh / 2).reshape(-1).at[sites].get(mode="fill", fill_value=0)
        new_curvature = self._curvature(y)
        ratios = self.space.ratios_from_gradient(y, self._as_gradient(h + dh))
        change = jnp.sum(z * at_sites)
        return Evaluation(evaluation.log_prob + change, ratios if new_curvature is None else ratios + new_curvature)

    def _as_gradient(self, slope: Float[Array, "*shape"]) -> Float[Array, "..."]:
        """A gradient whose two-level ratios are `slope` times the move; on one-hot pairs the slope is a difference."""
        if isinstance(self.space, Categorical):
            return jnp.stack([jnp.zeros_like(slope), slope], axis=-1)
        return slope


def diagonal_term(space: Space, diagonal: Float[Array, "*sites"], x: Integer[Array, "*sites"]) -> Float[Array, "..."]:
    """J_ii |z|^2 / 2 for all changes of some sites."""
    if space.has_two_levels:
        return diagonal * space.squared_moves(x) / 2
    moves = jnp.where(is_level(x, space.num_levels), 0, space.squared_moves(x))
    return diagonal[..., None] * moves / 2


class QuadraticBlocks(eqx.Module):
    """A quadratic target with its sites in another order: blocks of rows of J, b and diag J."""

    space: Space
    rows: tuple[Rows, ...]
    linear: Float[Array, "n ..."]
    diagonal: Float[Array, " n"] | None
    spans: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def ratios(self, x: Integer[Array, " n"], block: int) -> Float[Array, "k ..."]:
        """h_i z + J_ii |z|^2 / 2 for all changes of the sites of a block."""
        place = slice(*self.spans[block])
        h, here = self.rows[block].product(self.space.embed(x)) + self.linear[place], x[place]
        ratios = self.space.ratios_from_gradient(here, h)
        return ratios if self.diagonal is None else ratios + diagonal_term(self.space, self.diagonal[place], here)


def _graph_coupling(graph: Any, coupling: ArrayLike) -> Sparse:
    edges, weights, n = as_edges(graph)
    scale = real_array("coupling", coupling)
    if scale.ndim and scale.shape != (len(edges),):
        raise ValueError(f"coupling is a number or one per edge ({len(edges)}), but has shape {scale.shape}.")
    return Sparse(edges, scale if weights is None else scale * weights, (n,))


class Ising(Quadratic):
    """log pi(s) = sum over edges J_ij s_i s_j + sum_i h_i s_i with s in {-1, +1}; each edge counts once."""

    @classmethod
    def lattice(
        cls, shape: Sequence[int], coupling: Weights = 1.0, field: ArrayLike = 0.0, *, periodic: bool = False
    ) -> "Ising":
        """Nearest neighbours on a grid; `coupling` is a number, or one (number or array) per axis."""
        return cls._of(Spin(shape), Lattice(shape, coupling, periodic), field)

    @classmethod
    def graph(cls, graph: Any, coupling: ArrayLike = 1.0, field: ArrayLike = 0.0) -> "Ising":
        """Any graph: networkx, scipy.sparse or an edge array; `coupling` multiplies the weights the graph has."""
        structure = _graph_coupling(graph, coupling)
        return cls._of(Spin(structure.shape), structure, field)

    @classmethod
    def dense(cls, couplings: ArrayLike, field: ArrayLike = 0.0) -> "Ising":
        """All pairs: a symmetric matrix of couplings J."""
        structure = Dense(couplings)
        return cls._of(Spin(structure.shape), structure, field)


class Potts(Quadratic):
    """log pi(x) = sum over edges J_ij [x_i = x_j] + sum_i h_i(x_i), with `num_levels` levels per site."""

    @classmethod
    @checked_arguments
    def lattice(
        cls,
        shape: Sequence[int],
        num_levels: int,
        coupling: Weights = 1.0,
        field: ArrayLike = 0.0,
        *,
        periodic: bool = False,
    ) -> "Potts":
        """Nearest neighbours on a grid; the field has a last axis of levels."""
        return cls._of(Categorical(shape, num_levels), Lattice(shape, coupling, periodic), field)

    @classmethod
    @checked_arguments
    def graph(cls, graph: Any, num_levels: int, coupling: ArrayLike = 1.0, field: ArrayLike = 0.0) -> "Potts":
        """Any graph, as in `Ising.graph`; the field has a last axis of levels."""
        structure = _graph_coupling(graph, coupling)
        return cls._of(Categorical(structure.shape, num_levels), structure, field)
