"""Metrics M = W + D of the Gaussian auxiliary samplers: W approximates the Hessian of log pi, D is diagonal.

A metric can multiply, can draw e ~ N(0, M), and knows D. Its structure decides what a step costs:

- `Isotropic`: W = 0 and D = 2 / step_size;
- `Spectral`: W = gamma * (a symmetric matrix by its eigenvectors), D = 2 / step_size + max(0, -lambda_min(W));
- `NoNoise`: W is diagonal and D = -W, so M = 0;
- `DenseRoot`: M = L L' with a dense L;
- `Edges`: M is a sum over edges of rank-one matrices |W_ij| (u_i + s u_j)(u_i + s u_j)', s = sign W_ij, plus a
  diagonal, which takes D_i >= sum_j |W_ij|: both operations cost O(edges);
- `SparseRoot`: M = L L' with a sparse Cholesky factor L.

They act on the first axis of an array of shape (n,), or (n, levels) for one-hot embeddings, or on all of it where
their size is n * levels.
"""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from discrax.core import random
from discrax.core.sparse import padded_rows
from discrax.core.xla import materialised


class Metric(eqx.Module):
    """M = W + D, as its products and its Gaussian noise."""

    @property
    @abstractmethod
    def diagonal(self) -> Float[Array, "*n"]:
        """D: a number, or one per row."""

    @abstractmethod
    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        """M z."""

    @abstractmethod
    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        """e ~ N(0, M) (of the given shape)."""


def _normal(key: PRNGKeyArray, *shape: int) -> Float[Array, "..."]:
    return random.normal(key, int(np.prod(shape))).reshape(shape).astype(jnp.result_type(float))


def _matmul(matrix: Float[Array, "m m"], z: Float[Array, "..."]) -> Float[Array, "..."]:
    flat = z.reshape(len(matrix), -1)
    return jnp.matmul(matrix, flat, precision=lax.Precision.HIGHEST).reshape(z.shape)


class Isotropic(Metric):
    """W = 0, D = 2 / step_size."""

    step_size: Float[Array, ""]

    @property
    def diagonal(self) -> Float[Array, "*n"]:
        return (2 / self.step_size).astype(jnp.result_type(float))

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        return self.diagonal * z

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        return jnp.sqrt(self.diagonal) * _normal(key, *shape)


class Spectral(Metric):
    """W by its eigenvectors, times gamma."""

    vectors: Float[Array, "m m"]  # columns
    values: Float[Array, " m"]
    step_size: Float[Array, ""]
    gamma: Float[Array, ""]

    @classmethod
    def of(
        cls, matrix: Float[np.ndarray, "m m"], step_size: float | Float[Array, ""], gamma: float = 1.0
    ) -> "Spectral":
        """From a symmetric matrix."""
        values, vectors = np.linalg.eigh(np.asarray(matrix, float))
        to_float = lambda a: jnp.asarray(a, jnp.result_type(float))  # noqa: E731
        scalars = (jnp.asarray(step_size, jnp.float32), jnp.asarray(gamma, jnp.float32))
        return cls(to_float(vectors), to_float(values), *scalars)

    @property
    def diagonal(self) -> Float[Array, "*n"]:
        gamma, step_size = self.gamma.astype(self.values.dtype), self.step_size.astype(self.values.dtype)
        lowest = jnp.minimum(gamma * self.values[0], gamma * self.values[-1])  # a negative gamma turns the order round
        return 2 / step_size + jnp.maximum(0, -lowest)

    def _spectrum(self) -> Float[Array, " m"]:
        return jnp.maximum(self.gamma.astype(self.values.dtype) * self.values + self.diagonal, 0)

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        coefficients = _matmul(self.vectors.T, z).reshape(len(self.values), -1)
        return _matmul(self.vectors, self._spectrum()[:, None] * coefficients).reshape(z.shape)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        coefficients = jnp.sqrt(self._spectrum())[:, None] * _normal(key, *shape).reshape(len(self.values), -1)
        return _matmul(self.vectors, coefficients).reshape(shape)


class _Factored(Metric):
    """M by its factors; D is an array."""

    diagonal_values: Float[Array, " n"]

    @property
    def diagonal(self) -> Float[Array, "*n"]:
        return self.diagonal_values


class NoNoise(_Factored):
    """M = 0, where W is diagonal and D = -W: there is nothing to decouple, and no auxiliary variable."""

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        return jnp.zeros_like(z)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        return jnp.zeros(shape, self.diagonal.dtype)


class DenseRoot(_Factored):
    """M by a dense square root."""

    root: Float[Array, "m m"]
    matrix: Float[Array, "m m"]

    @classmethod
    def of(cls, matrix: Float[np.ndarray, "m m"], diagonal: Float[np.ndarray, " m"]) -> "DenseRoot":
        """`matrix` is W + D. It may be singular, as it is for the smallest D, so the root is not Cholesky's."""
        values, vectors = np.linalg.eigh(np.asarray(matrix, float))
        root = vectors * np.sqrt(np.maximum(values, 0))
        to_float = lambda a: jnp.asarray(a, jnp.result_type(float))  # noqa: E731
        return cls(to_float(diagonal), to_float(root), to_float(root @ root.T))

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        return _matmul(self.matrix, z)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        return _matmul(self.root, _normal(key, *shape))


class Table(eqx.Module):
    """A sparse matrix as lists of its rows' entries, padded to the longest."""

    indices: Int[Array, "n width"]
    weights: Float[Array, "n width"]
    num_columns: int = eqx.field(static=True)

    @classmethod
    def of(cls, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> "Table":
        """From the entries of a matrix of the given shape."""
        indices, weights = padded_rows(rows, columns, values, shape[0])
        return cls(jnp.asarray(indices), jnp.asarray(weights, jnp.result_type(float)), shape[1])

    def product(self, z: Float[Array, "m *levels"]) -> Float[Array, "n *levels"]:
        """The matrix times z."""
        weights = self.weights.reshape(self.weights.shape + (1,) * (z.ndim - 1))
        return jnp.sum(weights * materialised(z)[self.indices], axis=1)


class Edges(_Factored):
    """M by noise on the edges of a graph, where its diagonal dominates."""

    matrix: Table
    incidence: Table  # from noise on edges, and on sites where M_ii > sum_j |W_ij|, to sites

    @classmethod
    def of(
        cls,
        edges: Int[np.ndarray, "m 2"],
        weights: Float[np.ndarray, " m"],
        own: Float[np.ndarray, " n"],
        diagonal: Float[np.ndarray, " n"],
    ) -> "Edges":
        """`edges` join different sites, each pair once; `own` is the diagonal of W + D."""
        n, m = len(diagonal), len(edges)
        sites = np.arange(n)
        strength = np.bincount(edges.reshape(-1), np.repeat(np.abs(weights), 2), minlength=n)
        if (own < strength * (1 - 1e-6) - 1e-9).any():
            raise ValueError("A factor by edges needs D_i + W_ii >= sum_j |W_ij| at every site i.")
        own = np.maximum(own, strength)
        rest = np.where(own - strength > 1e-7 * own.max(), own - strength, 0)
        alone = np.flatnonzero(rest)
        rows, columns = edges.T.reshape(-1), edges[:, ::-1].T.reshape(-1)
        ends = np.concatenate([np.sqrt(np.abs(weights)), np.sign(weights) * np.sqrt(np.abs(weights))])
        matrix = Table.of(
            np.concatenate([sites, rows]),
            np.concatenate([sites, columns]),
            np.concatenate([own, np.tile(weights, 2)]),
            (n, n),
        )
        incidence = Table.of(
            np.concatenate([rows, alone]),
            np.concatenate([np.tile(np.arange(m), 2), m + np.arange(len(alone))]),
            np.concatenate([ends, np.sqrt(rest[alone])]),
            (n, m + len(alone)),
        )
        return cls(jnp.asarray(diagonal, jnp.result_type(float)), matrix, incidence)

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        return self.matrix.product(z)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        return self.incidence.product(_normal(key, self.incidence.num_columns, *shape[1:]))


class SparseRoot(_Factored):
    """M = L L' by a sparse L."""

    root: Table
    transposed: Table

    @classmethod
    def of(
        cls, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, diagonal: Float[np.ndarray, " n"]
    ) -> "SparseRoot":
        """From the entries of L."""
        shape = (len(diagonal), len(diagonal))
        root, transposed = Table.of(rows, columns, values, shape), Table.of(columns, rows, values, shape)
        return cls(jnp.asarray(diagonal, jnp.result_type(float)), root, transposed)

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        return self.root.product(self.transposed.product(z))

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        return self.root.product(_normal(key, *shape))
