"""Every metric: the noise it draws has the covariance by which it multiplies, W + D."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from discrax.curvature import metric as metric_module
from discrax.curvature.build import build_metric
from discrax.curvature.hessian import Hessian
from discrax.curvature.metric import DenseRoot, Edges, Isotropic, SparseRoot, Spectral

N = 6
EDGES = np.array([(0, 1), (1, 2), (2, 3), (0, 3), (4, 5)])
WEIGHTS = np.array([0.5, -0.7, 0.2, 0.4, -0.9])


def of_edges() -> np.ndarray:
    W = np.zeros((N, N))
    W[EDGES[:, 0], EDGES[:, 1]] = W[EDGES[:, 1], EDGES[:, 0]] = WEIGHTS
    return W


W = of_edges() + np.diag([0.1, -0.2, 0.3, 0.0, 0.0, -0.1])
STRENGTH = np.abs(of_edges()).sum(axis=1)
D = np.full(N, 1.7)


def sparse_root() -> SparseRoot:
    L = scipy.sparse.coo_array(np.linalg.cholesky(W + np.diag(D)))
    return SparseRoot.of(L.row, L.col, L.data, D)


METRICS = {
    "isotropic": (lambda: Isotropic(jnp.float32(0.5)), np.zeros((N, N)), np.full(N, 4.0)),
    "spectral": (lambda: Spectral.of(W, 2.0, 0.7), 0.7 * W, np.full(N, 1 - np.linalg.eigvalsh(0.7 * W)[0])),
    "spectral-negative": (lambda: Spectral.of(W, 2.0, -0.7), -0.7 * W, np.full(N, 1 + np.linalg.eigvalsh(0.7 * W)[-1])),
    "dense": (lambda: DenseRoot.of(W + np.diag(D), D), W, D),
    "edges": (lambda: Edges.of(EDGES, WEIGHTS, D + np.diag(W), D), W, D),
    "edges-without-rest": (lambda: Edges.of(EDGES, WEIGHTS, STRENGTH, STRENGTH), of_edges(), STRENGTH),
    "sparse-root": (sparse_root, W, D),
}


@pytest.mark.parametrize("name", METRICS)
def test_product_diagonal_and_noise_belong_together(name, monkeypatch):
    build, W, D = METRICS[name]
    metric = build()
    np.testing.assert_allclose(np.broadcast_to(metric.diagonal, (N,)), D, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(metric.product)(jnp.eye(N)), W + np.diag(D), atol=1e-5)
    # The noise is linear in normal numbers: feed it unit vectors, and it shows its root.
    count = metric.incidence.num_columns if isinstance(metric, Edges) else N
    columns = []
    for unit in np.eye(count):
        monkeypatch.setattr(metric_module, "_normal", lambda key, *shape, unit=unit: jnp.asarray(unit).reshape(shape))
        columns.append(np.asarray(metric.draw(jax.random.key(0), (N,))))
    root = np.stack(columns, axis=1)
    np.testing.assert_allclose(root @ root.T, W + np.diag(D), atol=1e-5)


@pytest.mark.parametrize("name", METRICS)
def test_levels_are_apart(name):
    """On one-hot embeddings a metric of the sites acts on each level alone."""
    metric = METRICS[name][0]()
    z = jnp.asarray(np.random.default_rng(0).normal(size=(N, 3)))
    expected = jnp.stack([metric.product(z[:, level]) for level in range(3)], axis=1)
    np.testing.assert_allclose(metric.product(z), expected, atol=1e-5)
    assert metric.draw(jax.random.key(0), (N, 3)).shape == (N, 3)


def test_a_metric_of_all_levels_acts_on_all_of_them():
    matrix = np.random.default_rng(0).normal(size=(N, N))
    metric = Spectral.of(matrix + matrix.T, 1.0)
    z = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(metric.product(z).reshape(-1), metric.product(z.reshape(-1)), rtol=1e-6)


def test_edges_need_a_dominant_diagonal():
    with pytest.raises(ValueError, match="needs D_i"):
        Edges.of(EDGES, WEIGHTS, 0.5 * STRENGTH, D)


def ring(n: int, sign: float = 1.0) -> scipy.sparse.csr_array:
    rows = np.arange(n)
    weights = np.full(n, sign)
    upper = scipy.sparse.csr_array((weights, (rows, (rows + 1) % n)), shape=(n, n))
    return upper + upper.T


@pytest.mark.parametrize(
    ("n", "matrix", "kind"),
    [(200, ring(200), DenseRoot), (1002, ring(1002), Edges), (1003, ring(1003), Edges)],
    ids=["small", "even-ring", "odd-ring"],
)
def test_the_structure_of_a_metric_follows_from_that_of_w(n, matrix, kind):
    metric, how = build_metric(Hessian(matrix, "W as given"), "trace", exact_ratios=False)
    assert isinstance(metric, kind)
    assert "trace diagonal" in how
    z = jnp.asarray(np.random.default_rng(0).normal(size=n), jnp.float32)
    expected = matrix @ np.asarray(z) + np.asarray(metric.diagonal) * np.asarray(z)
    np.testing.assert_allclose(metric.product(z), expected, rtol=1e-3, atol=1e-3)


def test_a_band_whose_diagonal_is_not_dominant_gets_a_sparse_root():
    """A frustrated band: three of four neighbours attract, so row sums are far from the smallest trace."""
    n = 1200
    pattern = sum(scipy.sparse.diags_array(np.full(n - k, 1.0), offsets=k) for k in (1, 2))
    matrix = scipy.sparse.csr_array(pattern + pattern.T)
    metric, how = build_metric(Hessian(matrix, "W as given"), "trace", exact_ratios=False)
    assert isinstance(metric, SparseRoot), how
    z = jnp.asarray(np.random.default_rng(0).normal(size=n), jnp.float32)
    expected = matrix @ np.asarray(z) + np.asarray(metric.diagonal) * np.asarray(z)
    np.testing.assert_allclose(metric.product(z), expected, rtol=1e-2, atol=1e-2)
