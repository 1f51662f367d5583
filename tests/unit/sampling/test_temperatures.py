"""Scans of temperatures against enumeration, Kaufman's formula, and weights that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax import targets
from discrax.exact import square_ising
from discrax.sampling import temperatures
from discrax.sampling.reweighting import Reweighting, gather_entries, jackknife

pytestmark = pytest.mark.runs_long

KEY = jax.random.key(0)
CURVES = ("energy", "heat_capacity", "magnetisation", "susceptibility", "binder", "log_Z")
SMALL = targets.Ising.lattice((4, 4), 1.0, periodic=True)


def exact_curves(betas, first):
    """Of the lattice of 4 x 4 sites, by enumeration."""
    states = np.asarray(SMALL.space.enumerate())
    e = -np.asarray(jax.vmap(lambda x: SMALL.log_prob(SMALL.space.embed(x)))(jnp.asarray(states)), np.float64)
    m = (2.0 * states - 1).mean(axis=(1, 2))
    found, log_z = {name: [] for name in (*CURVES, "corner")}, lambda beta: np.logaddexp.reduce(-beta * e)
    for beta in betas:
        p = np.exp(-beta * e - log_z(beta))
        mean, size, square, fourth = (p @ each for each in (e, np.abs(m), m**2, m**4))
        found["energy"].append(mean / 16)
        found["heat_capacity"].append(beta**2 * (p @ (e - mean) ** 2) / 16)
        found["magnetisation"].append(size)
        found["susceptibility"].append(beta * 16 * (square - size**2))
        found["binder"].append(1 - fourth / (3 * square**2))
        found["log_Z"].append(log_z(beta) - log_z(first))
        found["corner"].append(p @ (states[:, 0, 0] == states[:, 1, 1]))
    return {name: np.array(values) for name, values in found.items()}


@pytest.fixture(scope="module")
def scan():
    betas, observables = np.linspace(0.2, 0.6, 5), {"corner": lambda x: x[0, 0] == x[1, 1]}
    return dx.scan_temperatures(
        KEY, SMALL, betas, observables=observables, num_chains=16, num_warmup=100, num_samples=500
    )


def all_curves(scan):
    return {name: getattr(scan, name) for name in CURVES} | scan.averages


def test_curves_are_those_of_enumeration(scan):
    between = np.array([0.2, 0.25, 0.3, 0.4, 0.45, 0.55, 0.6])
    found = scan.at(between)
    exact = exact_curves(between, 0.2)
    for name, values in all_curves(found).items():
        off = np.abs(values - exact[name]) / np.maximum(found.errors[name], 1e-12)
        assert (off < 4).all(), (name, off)
        assert np.sqrt(np.mean(off[1:] ** 2)) < 2.2, (name, off)  # seven of them, that go together
    assert (found.errors["energy"] < 0.01).all()
    np.testing.assert_allclose(scan.at(scan.betas).energy, scan.energy)
    assert scan.at(0.45).energy.shape == ()


def test_weights_that_do_not_agree_with_themselves_are_seen(scan, monkeypatch):
    """The twin takes the first guess of the free energies."""
    draws, exact = scan._draws, exact_curves([0.45], 0.2)
    monkeypatch.setattr(Reweighting, "_solve", lambda self, betas, f, count, number: f)
    twin = Reweighting(draws._reweighting.entries, draws.betas, 500)
    log_z = twin.averages(np.array([0.2, 0.45]))[0]
    value, error = jackknife(log_z[:, 1:] - log_z[:, :1])
    assert abs(value[0] - exact["log_Z"][0]) > 5 * max(error[0], scan.at(0.45).errors["log_Z"])


def test_reweighting_of_weights_that_are_known():
    """Two temperatures of a coin, with as many draws of each state as are expected: all averages are exact."""
    betas, draws = np.array([0.5, 2.0]), 12_000
    energies = []
    for beta in betas:
        ones = round(draws * np.exp(-beta) / (1 + np.exp(-beta)))
        energies.append(np.tile(np.repeat([1.0, 0.0], [ones, draws - ones]), (3, 1)))
    energy = 1e4 + np.stack(energies)  # a large constant does not matter
    found = Reweighting(gather_entries(energy, energy[None] - 1e4), betas, draws)
    log_z, means = found.averages(np.array([0.5, 1.0, 2.0]))
    expected = np.log1p(np.exp(-np.array([0.5, 1.0, 2.0])))
    np.testing.assert_allclose(
        log_z[0] - log_z[0, 0] + 1e4 * np.array([0, 0.5, 1.5]), expected - expected[0], atol=1e-4
    )
    p = 1 / (1 + np.exp([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(means[0, :, 0] - 1e4, p, atol=1e-4)
    np.testing.assert_allclose(means[0, :, 1], p * (1 - p), atol=1e-4)
    np.testing.assert_allclose(means[0, :, 2], p, atol=1e-4)
    np.testing.assert_allclose(jackknife(means)[1], 0, atol=1e-9)  # all chains are the same


def test_the_jackknife_of_a_mean_is_its_standard_error():
    x = np.random.default_rng(0).normal(size=10)
    samples = np.array([x.mean(), *(np.delete(x, i).mean() for i in range(10))])
    assert jackknife(samples[:, None])[1][0] == pytest.approx(x.std(ddof=1) / np.sqrt(10))


@pytest.mark.slow
def test_a_lattice_of_16_is_kaufmans():
    lattice, betas = targets.Ising.lattice((16, 16), 1.0, periodic=True), np.linspace(0.36, 0.5, 8)
    scan = dx.scan_temperatures(KEY, lattice, betas, num_chains=16, num_warmup=300, num_samples=600)
    assert scan.warning is None
    first = square_ising((16, 16), 0.36).log_Z
    for beta in (0.37, 0.41, 0.44068, 0.49):
        found, exact = scan.at(beta), square_ising((16, 16), beta)
        assert abs(found.energy - exact.energy) < 3.5 * found.errors["energy"]
        assert abs(found.heat_capacity - exact.heat_capacity) < 3.5 * found.errors["heat_capacity"]
        assert abs(found.log_Z - (exact.log_Z - first)) < 3.5 * found.errors["log_Z"]
        assert found.errors["energy"] < 0.01


def test_temperatures_too_far_apart_are_told():
    lattice = targets.Ising.lattice((8, 8), 1.0, periodic=True)
    scan = dx.scan_temperatures(KEY, lattice, [0.1, 0.8], num_chains=2, num_warmup=50, num_samples=50)
    assert "beta 0.1 and 0.8 overlap by" in scan.warning
    assert scan.warning in str(scan)


def test_magnetisation_of_other_spaces():
    of = lambda space, x: float(temperatures.magnetisation(dx.Target.from_log_prob(jnp.sum, space), jnp.asarray(x)))  # noqa: E731
    assert of(dx.Binary(4), np.array([1, 1, 1, 0], np.int8)) == 0.5
    assert of(dx.Categorical(4, 3), np.array([2, 2, 2, 0], np.int8)) == pytest.approx((3 * 0.75 - 1) / 2)
    assert of(dx.Ordinal(2, [0.0, 1.0, 5.0]), np.array([2, 1], np.int8)) == 3


def test_a_picture_has_every_curve(scan):
    figure = scan.plot()
    titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
    assert titles == [*temperatures._CURVES.values(), "corner"]
    assert len(str(scan).splitlines()) == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"betas": []}, r"one or more inverse temperatures, but has shape \(0,\)"),
        ({"betas": 0.4}, r"but has shape \(\)"),
        ({"betas": [0.1, np.nan]}, "betas"),
        ({"betas": [0.2, 0.1]}, "at least 0 and increasing"),
        ({"betas": [-0.2, 0.1]}, "at least 0 and increasing"),
        ({"num_chains": 1}, "num_chains must be at least 2"),
        ({"num_samples": 1}, "num_samples must be at least 2"),
        ({"observables": {"energy": jnp.sum}}, "names other than"),
        ({"observables": {"pair": lambda x: x[:2]}}, "pair"),
        ({"sampler": "guess"}, "guess"),
    ],
)
def test_mistakes_are_sentences(settings, message):
    with pytest.raises(ValueError, match=message):
        dx.scan_temperatures(KEY, SMALL, **({"betas": [0.3, 0.4]} | settings))


def test_what_lies_outside_of_a_scan_is_refused(scan):
    for beta in (0.1, 0.7, [0.3, 0.7]):
        with pytest.raises(ValueError, match=r"beta must lie between 0\.2 and 0\.6"):
            scan.at(beta)
