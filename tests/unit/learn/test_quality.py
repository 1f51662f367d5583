import numpy as np
import pytest

from discrax.learn.quality import covariance_error, marginal_error, mmd


def direct_mmd(a, b):
    def k(x, y):
        return np.exp(-np.mean(x != y))

    within = sum(
        np.mean([k(x, y) for i, x in enumerate(rows) for j, y in enumerate(rows) if i != j]) for rows in (a, b)
    )
    return within - 2 * np.mean([k(x, y) for x in a for y in b])


@pytest.mark.parametrize("num_levels", [2, 4])
def test_mmd_is_the_sum_over_pairs(num_levels, monkeypatch):
    monkeypatch.setattr("discrax.learn.quality._ROWS_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, num_levels, (9, 2, 3)), rng.integers(0, num_levels, (7, 2, 3))
    assert mmd(a, b) == pytest.approx(direct_mmd(a, b), abs=1e-6)


def test_mmd_of_two_points():
    zeros, ones = np.zeros((5, 6), int), np.ones((4, 6), int)
    assert mmd(zeros, ones) == pytest.approx(2 - 2 * np.exp(-1))
    assert mmd(zeros, zeros[:3]) == pytest.approx(0)


def test_mmd_is_unbiased():
    """Over many pairs of small sets of one law the mean is 0, and of two laws the exact value."""
    rng = np.random.default_rng(1)
    same = [mmd(rng.integers(0, 2, (4, 5)), rng.integers(0, 2, (4, 5))) for _ in range(2000)]
    assert abs(np.mean(same)) < 4 * np.std(same) / np.sqrt(2000)
    p, q, n = 0.2, 0.7, 5
    # A site contributes a factor 1 - P(differs) (1 - exp(-1/n)).
    expected = [
        (1 - differs * (1 - np.exp(-1 / n))) ** n for differs in (2 * p * (1 - p), 2 * q * (1 - q), p + q - 2 * p * q)
    ]
    exact = expected[0] + expected[1] - 2 * expected[2]
    other = [mmd((rng.random((4, n)) < p).astype(int), (rng.random((4, n)) < q).astype(int)) for _ in range(2000)]
    assert abs(np.mean(other) - exact) < 4 * np.std(other) / np.sqrt(2000)
    assert exact > 10 * np.std(same) / np.sqrt(2000)


def test_marginals_and_covariances_of_bits():
    a = np.array([[0, 0], [1, 1], [0, 0], [1, 1]])
    b = np.array([[0, 1], [1, 0], [1, 1], [1, 0]])
    assert marginal_error(a, b) == pytest.approx((0.25 + 0.0) / 2)
    difference = np.cov(a.T, bias=True) - np.cov(b.T, bias=True)
    assert covariance_error(a, b) == pytest.approx(np.sqrt((difference**2).sum()))
    assert covariance_error(a, a) == 0


def test_marginals_and_covariances_of_levels():
    a, b = np.array([[0], [1], [2], [2]]), np.array([[0], [0], [0], [2]])
    assert marginal_error(a, b, num_levels=3) == pytest.approx((0.5 + 0.25 + 0.25) / 3)
    one_hot = np.eye(3)
    difference = np.cov(one_hot[a[:, 0]].T, bias=True) - np.cov(one_hot[b[:, 0]].T, bias=True)
    assert covariance_error(a, b, num_levels=3) == pytest.approx(np.linalg.norm(difference))


def test_mistakes_are_sentences():
    a = np.zeros((3, 4), int)
    with pytest.raises(ValueError, match=r"same sites, but have \(4,\) and \(5,\)"):
        mmd(a, np.zeros((3, 5), int))
    with pytest.raises(ValueError, match=r"integer codes \(rows, \*sites\), but got float64"):
        marginal_error(a, a.astype(float))
    with pytest.raises(ValueError, match="at least two rows"):
        mmd(a, a[:1])
    with pytest.raises(ValueError, match="run from 3 to 3; set num_levels"):
        covariance_error(a, a + 3)
