"""Kaufman's formula against enumeration, and against its own differences where nothing can be enumerated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import targets
from discrax.exact import CRITICAL_COUPLING, kaufman, square_ising


def by_enumeration(shape, coupling):
    """From the log-probabilities of the target itself, at coupling 1."""
    lattice = targets.Ising.lattice(shape, coupling=1.0, periodic=True)
    states = jnp.asarray(lattice.space.enumerate())
    bonds = np.rint(np.asarray(jax.vmap(lambda x: lattice.log_prob(lattice.space.embed(x)))(states), np.float64))
    weights = np.exp(coupling * (bonds - bonds.max()))
    p, sites = weights / weights.sum(), np.prod(shape)
    mean = p @ bonds
    log_z = np.log(weights.sum()) + coupling * bonds.max()
    return log_z, -mean / sites, coupling**2 * (p @ (bonds - mean) ** 2) / sites


@pytest.mark.parametrize("shape", [(4, 4), (3, 4), (4, 3)])
@pytest.mark.parametrize("coupling", [0.0, 1e-7, 0.1, CRITICAL_COUPLING, 0.5, 2.0])
def test_the_formula_is_enumeration(shape, coupling):
    np.testing.assert_allclose(square_ising(shape, coupling), by_enumeration(shape, coupling), rtol=1e-10, atol=1e-12)


def test_a_product_that_does_not_change_its_sign_is_seen(monkeypatch):
    """Above the critical temperature g_0 is negative; the twin takes its size."""
    rates = kaufman._rates

    def careless(*arguments):
        x, *more = rates(*arguments)
        return np.abs(x), *more

    monkeypatch.setattr(kaufman, "_rates", careless)
    assert abs(square_ising((4, 4), 0.3).log_Z - by_enumeration((4, 4), 0.3)[0]) > 0.01


@pytest.mark.parametrize("coupling", [0.3, CRITICAL_COUPLING, 0.5])
def test_derivatives_of_a_large_lattice_are_those_of_differences(coupling):
    here, h = square_ising((64, 64), coupling), 1e-5
    above, below = (square_ising((64, 64), coupling + d) for d in (h, -h))
    assert here.energy == pytest.approx(-(above.log_Z - below.log_Z) / (2 * h) / 64**2, rel=1e-7)
    assert here.heat_capacity == pytest.approx(-(coupling**2) * (above.energy - below.energy) / (2 * h), rel=1e-6)


def test_both_ways_round_and_cold():
    assert square_ising((5, 9), 0.6).log_Z == pytest.approx(square_ising((9, 5), 0.6).log_Z, rel=1e-13)
    cold = square_ising((64, 64), 20.0)  # two ground states
    assert cold.log_Z == pytest.approx(2 * 64**2 * 20.0 + np.log(2), rel=1e-14)
    assert cold.energy == pytest.approx(-2)
    # Onsager's energy of the infinite lattice at its critical point; a finite one is lower by about 0.62 / L.
    assert square_ising((512, 512), CRITICAL_COUPLING).energy == pytest.approx(-np.sqrt(2), abs=0.002)


@pytest.mark.parametrize(
    ("shape", "coupling", "message"),
    [
        ((4,), 0.3, "two sides of a rectangle"),
        ((2, 4), 0.3, "A side of the shape must be at least 3, but got 2"),
        ((4, 4), -0.3, "coupling must be at least 0"),
        ((4, 4), np.nan, "coupling"),
    ],
)
def test_mistakes_are_sentences(shape, coupling, message):
    with pytest.raises(ValueError, match=message):
        square_ising(shape, coupling)
