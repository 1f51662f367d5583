"""The diagonals against answers that are known and against an interior-point solver."""

import sys

import numpy as np
import pytest

from discrax.core.sparse import greedy_colouring
from discrax.curvature import norm, semidefinite
from discrax.curvature.diagonal import lambda_shift, smallest_norm, smallest_trace
from discrax.curvature.matrices import off_diagonal
from discrax.samplers import ab_max
from repeats import repeats

scipy_sparse = pytest.importorskip("scipy.sparse")
J = 0.4407


def grid(side: int, signs_from: int | None = None):
    """The square lattice with coupling J, of random sign if a seed is given."""
    path = scipy_sparse.diags_array([np.ones(side - 1)], offsets=[1], shape=(side, side))
    one = scipy_sparse.eye_array(side)
    upper = (J * (scipy_sparse.kron(one, path) + scipy_sparse.kron(path, one))).tocsr()
    if signs_from is not None:
        upper.data *= np.random.default_rng(signs_from).choice([-1, 1], len(upper.data))
    return upper + upper.T


def scale_free(num_sites: int):
    nx = pytest.importorskip("networkx")
    return J * nx.to_scipy_sparse_array(nx.barabasi_albert_graph(num_sites, 4, seed=0), dtype=float)


def dense(num_sites: int, mean: float, spread: float = 1.0, seed: int = 0) -> np.ndarray:
    """Gaussian off the diagonal, and on it with this mean and spread."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((num_sites, num_sites))
    W = (W + W.T) / 2
    np.fill_diagonal(W, rng.normal(mean, spread, num_sites))
    return W


def loosely_coupled() -> np.ndarray:
    """Two strongly coupled sites, which fix the norm at 1 + 1, and eighteen that it leaves free.

    One of these has a diagonal of 1.5, with which a shift, D = I, has a norm of 2.5.
    """
    W = np.zeros((20, 20))
    W[0, 1] = W[1, 0] = 1
    W[2:, 2:] = 0.02 * dense(18, 0.0)
    W[2, 2] = 1.5
    return W


def sum_with(W, values: np.ndarray) -> np.ndarray:
    return (W if isinstance(W, np.ndarray) else W.toarray()) + np.diag(values)


def assert_valid(W, result) -> None:
    """Feasible, with an objective that is what it says and a gap that is not negative."""
    eigenvalues = np.linalg.eigvalsh(sum_with(W, result.values))
    assert np.all(result.values >= 0)
    assert eigenvalues[0] >= -1e-6 * eigenvalues[-1]
    assert result.gap >= -1e-9
    attained = {"trace": result.values.sum(), "norm": eigenvalues[-1], "shift": result.values.max()}[result.rule]
    assert result.objective == pytest.approx(attained, rel=1e-9)


# Known answers.


@pytest.mark.parametrize("method", ["auto", "low_rank"])
def test_trace_of_the_ferromagnet_is_the_row_sums(method):
    W = grid(5)
    result = smallest_trace(W, method=method, tolerance=1e-7)
    assert_valid(W, result)
    assert result.objective == pytest.approx(35.256, rel=1e-6)
    np.testing.assert_allclose(result.values, W.sum(axis=1), atol=1e-3)


def test_shift_of_the_ferromagnet():
    result = lambda_shift(grid(5))
    assert_valid(grid(5), result)
    assert result.values.sum() == pytest.approx(38.1657, rel=1e-5)
    assert result.objective == pytest.approx(2 * 2 * J * np.cos(np.pi / 6), rel=1e-9)


def test_shift_is_never_below_the_floor():
    assert lambda_shift(np.eye(3), floor=0.2).values.tolist() == [0.2] * 3
    assert lambda_shift(np.zeros((3, 3))).objective == 1e-3


def test_shift_of_a_large_sparse_matrix():
    """Lanczos against the formula for a path."""
    d = 2000
    path = scipy_sparse.diags_array([np.ones(d - 1), np.ones(d - 1)], offsets=[1, -1]).tocsr()
    result = lambda_shift(path)
    exact = 2 * np.cos(np.pi / (d + 1))
    assert result.bound <= exact <= result.objective
    assert result.objective == pytest.approx(exact, abs=3e-6)


@pytest.mark.parametrize("method", ["auto", "low_rank"])
def test_signs_that_can_be_gauged_away_change_nothing(method):
    """s_i W_ij s_j has the same D as W."""
    signs = np.random.default_rng(0).choice([-1, 1], 36)
    W = grid(6).toarray() * np.outer(signs, signs)
    result = smallest_trace(W, method=method, tolerance=1e-6)
    assert_valid(W, result)
    np.testing.assert_allclose(result.values, abs(W).sum(axis=1), atol=1e-2)


@pytest.mark.parametrize("coupling", [0.3, -0.3])
def test_trace_on_the_complete_graph(coupling):
    """J (11' - I): D = J I for J > 0, and (d - 1) |J| I for J < 0."""
    d = 12
    result = smallest_trace(coupling * (np.ones((d, d)) - np.eye(d)), tolerance=1e-7)
    expected = coupling if coupling > 0 else -(d - 1) * coupling
    np.testing.assert_allclose(result.values, expected, rtol=1e-3)
    assert result.objective == pytest.approx(d * expected, rel=1e-6)


@pytest.mark.parametrize("rule", [smallest_trace, smallest_norm])
def test_a_semidefinite_matrix_needs_nothing(rule):
    root = np.random.default_rng(0).standard_normal((8, 5))
    result = rule(root @ root.T)
    assert result.values.tolist() == [0.0] * 8
    assert result.method == "closed"


@pytest.mark.parametrize("rule", [smallest_trace, smallest_norm])
def test_a_diagonal_matrix_loses_its_negative_entries(rule):
    result = rule(np.diag([-1.0, -2.0, 3.0]))
    assert result.values.tolist() == [1.0, 2.0, 0.0]
    assert result.objective == 3.0


def test_rows_dominated_by_their_diagonal_get_nothing():
    W = np.array([[5.0, 1.0, 0.0], [1.0, 0.1, 1.0], [0.0, 1.0, 0.2]])
    result = smallest_trace(W, tolerance=1e-7)
    assert_valid(W, result)
    assert result.values[0] == pytest.approx(0, abs=1e-6)
    # What is left of the first site is -1/5 on the second: (d_2 - 0.1)(d_3 + 0.2) = 1 with least d_2 + d_3.
    assert result.objective == pytest.approx(2 - 0.3 + 0.2, rel=1e-5)


def test_norm_of_two_sites():
    """[[0, 1], [1, 0]]: lambda = 2 with D = I; a third, lone site adds nothing and gets nothing."""
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 1
    result = smallest_norm(W)
    assert_valid(W, result)
    assert result.objective == pytest.approx(2, rel=1e-3)
    np.testing.assert_allclose(result.values, [1, 1, 0], atol=0.02)


@pytest.mark.parametrize("method", ["admm", "sdp"])
def test_norm_breaks_ties_by_the_trace(method):
    """Two strongly coupled sites fix lambda; the others, uncoupled to them, get the D of smallest trace."""
    W = loosely_coupled()
    result = smallest_norm(W, method=method)
    assert_valid(W, result)
    assert result.objective == pytest.approx(2, rel=1e-3)
    assert result.values[2:].sum() == pytest.approx(smallest_trace(W[2:, 2:]).objective, rel=0.01)


@pytest.mark.parametrize("method", ["admm", "sdp"])
def test_norm_without_ties_attains_the_same_norm_by_another_diagonal(method):
    W = loosely_coupled()
    by_trace, by_none = (smallest_norm(W, method=method, ties=ties) for ties in ("trace", "none"))
    assert_valid(W, by_none)
    assert by_none.objective == pytest.approx(2, rel=1e-3)
    assert by_none.gap <= 1e-3
    assert np.linalg.eigvalsh(sum_with(W, lambda_shift(W).values))[-1] == pytest.approx(2.5, rel=0.02)
    assert by_none.values.sum() > 1.5 * by_trace.values.sum()


def test_ab_max_has_the_norm_that_it_minimises_with_ties_and_without():
    """Of the matrix W + D that the sampler itself holds."""
    W = loosely_coupled()
    by_trace, by_none = (ab_max(np.inf, 1.0, W, ties=ties).metric.matrix for ties in ("trace", "none"))
    for total in (by_trace, by_none):
        np.testing.assert_allclose(np.asarray(total) - np.diag(np.diag(total)), W - np.diag(np.diag(W)), atol=1e-5)
        eigenvalues = np.linalg.eigvalsh(np.asarray(total, float))
        assert eigenvalues[0] > -1e-5
        assert eigenvalues[-1] == pytest.approx(2, rel=2e-3)
    assert np.trace(by_none) > 1.5 * np.trace(by_trace)


@pytest.mark.parametrize("method", ["admm", "sdp"])
def test_norm_stays_within_the_tolerance_at_a_price_too_high(method, monkeypatch):
    W = dense(20, 3.0, 3.0)
    price = norm.price_of_trace
    assert smallest_norm(W, method=method).gap <= 1e-3
    for module in (norm, semidefinite):
        monkeypatch.setattr(module, "price_of_trace", lambda W, tolerance: 50 * price(W, tolerance))
    result = smallest_norm(W, method=method)
    assert_valid(W, result)
    assert result.gap <= 1e-3


# Against Clarabel.


@pytest.mark.parametrize(
    "W",
    [
        dense(30, 0.0),
        dense(30, 4.0, 3.0),
        dense(30, -2.0),
        dense(40, 8.0, 1.0, seed=1),
        grid(8, signs_from=0),
        grid(20, signs_from=1),
        scale_free(100),
    ],
    ids=["zero", "mixed", "negative", "positive", "glass 64", "glass 400", "scale-free 100"],
)
def test_low_rank_trace_agrees_with_clarabel(W):
    pytest.importorskip("clarabel")
    interior = smallest_trace(W, method="sdp")
    result = smallest_trace(W, method="low_rank", tolerance=1e-5, max_sweeps=20_000)
    assert_valid(W, interior)
    assert_valid(W, result)
    assert interior.gap < 1e-5
    assert result.gap <= 1e-5
    assert result.objective == pytest.approx(interior.objective, rel=2e-5)
    np.testing.assert_allclose(result.values, interior.values, atol=0.02 * interior.values.max())


@pytest.mark.parametrize(
    "W", [dense(15, 0.0), dense(15, 2.0, 2.0), grid(4, signs_from=0)], ids=["zero", "mixed", "spin glass"]
)
def test_admm_norm_agrees_with_clarabel(W):
    pytest.importorskip("clarabel")
    interior = smallest_norm(W, method="sdp")
    result = smallest_norm(W)
    assert_valid(W, interior)
    assert_valid(W, result)
    assert result.gap <= 1e-3
    assert result.objective == pytest.approx(interior.objective, rel=1e-3)
    assert result.values.sum() == pytest.approx(interior.values.sum(), rel=0.02)
    shift = lambda_shift(W).values
    assert result.objective <= 1.001 * np.linalg.eigvalsh(sum_with(W, shift))[-1]
    assert result.values.sum() < 0.97 * shift.sum()


# Larger ones, by their own certificates.


LARGER = {
    "dense": lambda: dense(300, 0.0),
    "spin glass": lambda: grid(45, signs_from=0),
    "scale-free": lambda: scale_free(2000),
}


@pytest.mark.parametrize("name", ["dense", *(pytest.param(n, marks=pytest.mark.slow) for n in list(LARGER)[1:])])
def test_trace_of_a_larger_matrix(name):
    W = LARGER[name]()
    result = smallest_trace(W)
    assert_valid(W, result)
    assert result.method == "low_rank"
    assert result.gap <= 1e-3
    assert result.objective < 0.97 * lambda_shift(W).values.sum()


def is_positive(matrix) -> bool:
    """By a sparse LDL' factor, in which rows are eliminated in the order of columns: pivots have the signs of the
    eigenvalues.
    """
    splu = pytest.importorskip("scipy.sparse.linalg").splu
    factor = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    assert np.array_equal(factor.perm_r, factor.perm_c)
    return bool(np.all(factor.U.diagonal() > 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spin glass", *repeats([], ["scale-free"])])
def test_trace_of_ten_thousand_sites(name):
    """Feasible: no eigenvalue is below -1e-6 of the largest. Tight: some are below 1e-3 of it."""
    W = grid(100, signs_from=0) if name == "spin glass" else scale_free(10_000)
    result = smallest_trace(W)
    assert result.gap <= 1e-3
    eigsh = pytest.importorskip("scipy.sparse.linalg").eigsh
    total = W + scipy_sparse.diags_array(result.values)
    largest = eigsh(total, k=1, which="LA", return_eigenvectors=False)[0]
    one = scipy_sparse.eye_array(W.shape[0])
    assert is_positive(total + 1e-6 * largest * one)
    assert not is_positive(total - 1e-3 * largest * one)


def test_scale_changes_nothing_else():
    W = dense(20, 0.0)
    ours, tiny = smallest_trace(W), smallest_trace(1e-9 * W)
    np.testing.assert_allclose(tiny.values, 1e-9 * ours.values, rtol=1e-6)
    assert tiny.gap == pytest.approx(ours.gap, rel=1e-3)


def test_dense_and_sparse_agree():
    W = grid(7, signs_from=1)
    np.testing.assert_allclose(smallest_trace(W).values, smallest_trace(W.toarray()).values, rtol=1e-9)
    np.testing.assert_allclose(smallest_norm(W).values, smallest_norm(W.toarray()).values, rtol=1e-9)


def test_neighbours_differ_in_colour():
    graph = off_diagonal(scale_free(200))
    colours = greedy_colouring(graph.indptr, graph.indices)
    rows, columns = graph.nonzero()
    assert np.all(colours[rows] != colours[columns])
    assert 3 <= colours.max() + 1 <= 10


def test_the_report_reads_well():
    text = str(smallest_trace(grid(5)))
    assert text.startswith("trace diagonal of 25 sites: objective 35.256, at most 0.0e+00 above the best (closed")


# Bad input.


@pytest.mark.parametrize("rule", [lambda_shift, smallest_trace, smallest_norm])
@pytest.mark.parametrize(
    ("W", "sentence"),
    [
        (np.zeros((2, 3)), r"square matrix, but got shape \(2, 3\)"),
        (np.zeros((0, 0)), r"square matrix, but got shape \(0, 0\)"),
        (np.zeros(4), r"square matrix, but got shape \(4,\)"),
        (scipy_sparse.csr_array((2, 3)), r"square matrix, but got shape \(2, 3\)"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), r"symmetric.*pass \(W \+ W\.T\) / 2"),
        (scipy_sparse.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]])), r"symmetric.*pass \(W \+ W\.T\) / 2"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "W must be finite"),
        (scipy_sparse.csr_array(np.array([[0.0, np.inf], [np.inf, 0.0]])), "W must be finite"),
    ],
)
def test_a_bad_matrix_is_answered(rule, W, sentence):
    with pytest.raises(ValueError, match=sentence):
        rule(W)


@pytest.mark.parametrize(
    ("rule", "options", "sentence"),
    [
        (smallest_trace, {"method": "admm"}, "method must be one of auto, low_rank, sdp, but got 'admm'"),
        (smallest_norm, {"method": "low_rank"}, "method must be one of auto, admm, sdp, but got 'low_rank'"),
        (smallest_trace, {"tolerance": 0}, "greater than 0 and less than 1, but got 0"),
        (smallest_trace, {"max_sweeps": 0}, "at least 1, but got 0"),
        (smallest_norm, {"max_iterations": 0}, "at least 1, but got 0"),
        (lambda_shift, {"floor": -1}, "at least 0, but got -1"),
    ],
)
def test_bad_options_are_answered(rule, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        rule(grid(3), **options)


def test_a_wide_gap_is_an_error():
    with pytest.raises(RuntimeError, match=r"\d% above its lower bound after 1 iterations; allow more"):
        smallest_trace(dense(60, 0.0), max_sweeps=1)


def test_a_norm_too_large_is_answered():
    with pytest.raises(ValueError, match="up to 1000 sites, but got 1024; use smallest_trace"):
        smallest_norm(grid(32))


@pytest.mark.parametrize("package", ["scipy", "clarabel"])
def test_a_missing_package_is_named(package, monkeypatch):
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'need {package}.*pip install "discrax\[curvature\]"'):
        smallest_trace(np.array([[0.0, 1.0], [1.0, 0.0]]), method="sdp")
