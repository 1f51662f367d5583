"""Bulk and tail ESS and R-hat by ranks are ArviZ's."""

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from discrax.diagnostics.rank import bulk_ess, rank_rhat, tail_ess


def autoregressive(rng, shape, phi):
    noise, values = rng.normal(size=shape), np.zeros(shape)
    for t in range(1, shape[1]):
        values[:, t] = phi * values[:, t - 1] + noise[:, t]
    return values


@pytest.mark.parametrize("phi", [-0.9, -0.3, 0.0, 0.6, 0.99])
@pytest.mark.parametrize("shape", [(1, 4), (4, 5), (2, 10), (3, 101), (10, 500), (4, 6)])
@pytest.mark.parametrize("kind", ["real", "integer", "one chain apart"])
def test_the_numbers_of_arviz(phi, shape, kind):
    rng = np.random.default_rng(abs(hash((phi, shape))) % 2**32)
    values = autoregressive(rng, shape, phi)
    if kind == "integer":
        values = np.round(values)
    if kind == "one chain apart":
        values[0] += 3.0
    axes = {"chain_axis": 0, "draw_axis": 1}
    np.testing.assert_allclose(bulk_ess(values), array_stats.ess(values, **axes, method="bulk"), rtol=1e-9)
    tail = array_stats.ess(values, **axes, method="tail", prob=(0.05, 0.95))
    np.testing.assert_allclose(tail_ess(values), tail, rtol=1e-9)
    if shape[0] > 1:
        np.testing.assert_allclose(rank_rhat(values), array_stats.rhat(values, **axes, method="rank"), rtol=1e-9)
