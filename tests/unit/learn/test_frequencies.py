"""How often sites have their levels in data."""

import numpy as np
import pytest

from discrax.learn import frequencies


def test_frequencies_of_rows():
    np.testing.assert_allclose(frequencies(np.array([[0, 1, 1], [0, 1, 0]])), [0.01, 0.99, 0.5])
    shares = frequencies(np.array([[0, 2], [1, 2]]), num_levels=3)
    rare = 0.02 / 3
    np.testing.assert_allclose(shares, [[0.49 + rare, 0.49 + rare, rare], [rare, rare, 0.98 + rare]])
    with pytest.raises(ValueError, match=r"codes 0\.\.1, but they run from 0 to 2"):
        frequencies(np.array([[0, 2], [1, 2]]))
