"""`DiscraxPolySampler`: what dimod asks of a sampler of polynomials."""

import dimod
import numpy as np
import pytest
from dimod.core.polysampler import PolySampler
from dimod.higherorder.polynomial import BinaryPolynomial

from discrax.interop.dimod_poly import DiscraxPolySampler
from discrax.solving.polynomial_chains import PolynomialChains


def planted(vartype: str) -> tuple[BinaryPolynomial, float]:
    """Products of three spins that can all have their way, and the energy of that."""
    rng = np.random.default_rng(0)
    hidden, triples = rng.choice([-1, 1], 40), np.stack([rng.permutation(40)[:3] for _ in range(60)])
    weights = rng.uniform(0.5, 1.5, len(triples))
    names = [("s", i) for i in range(40)]
    terms = {
        tuple(names[i] for i in triple): -weight * hidden[triple].prod()
        for triple, weight in zip(triples, weights, strict=True)
    }
    spins = BinaryPolynomial(terms | {(): 3.0}, "SPIN")
    return spins if vartype == "SPIN" else spins.to_binary(), 3.0 - weights.sum()


def assert_finds_the_least_energy(vartype: str) -> None:
    polynomial, least = planted(vartype)
    found = DiscraxPolySampler().sample_poly(polynomial, num_reads=4, num_sweeps=2000, seed=0)
    assert found.vartype is polynomial.vartype
    assert set(found.variables) == polynomial.variables
    np.testing.assert_allclose(found.record.energy, polynomial.energies(found))
    assert found.first.energy == pytest.approx(least)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_finds_the_least_energy(vartype):
    assert_finds_the_least_energy(vartype)


def test_idle_sweeps_do_not_find_the_least_energy(monkeypatch):
    monkeypatch.setattr(PolynomialChains, "anneal", lambda *_: None)
    with pytest.raises(AssertionError, match="comparison failed"):
        assert_finds_the_least_energy("SPIN")


def test_the_interface_of_dimod():
    sampler = DiscraxPolySampler()
    assert isinstance(sampler, PolySampler)
    assert "num_reads" in sampler.parameters
    assert sampler.properties["beta_schedule_options"] == ("linear", "geometric")
    found = sampler.sample_hubo({("a", "b", "c"): -1.0, ("a",): 0.5}, num_sweeps=20, seed=1)
    assert found.first.sample == {"a": 1, "b": 1, "c": 1}
    assert sampler.sample_hising({"a": 1.0}, {("a", "b", "c"): -1.0}, num_sweeps=20, seed=1).first.energy == -2
    one, two = (sampler.sample_poly(planted("SPIN")[0], num_reads=3, num_sweeps=10, seed=2) for _ in range(2))
    assert (one.record.sample == two.record.sample).all()


def test_a_constant():
    found = DiscraxPolySampler().sample_poly(BinaryPolynomial({(): 2.5}, "SPIN"), num_reads=3)
    assert found.record.energy.tolist() == [2.5] * 3
    assert len(found.variables) == 0


def test_a_search_may_be_interrupted():
    found = DiscraxPolySampler().sample_poly(planted("SPIN")[0], num_sweeps=10**9, interrupt_function=lambda: True)
    assert len(found) == 1


def test_what_is_refused():
    sample = DiscraxPolySampler().sample_poly
    polynomial = BinaryPolynomial({"ab": 1.0}, "SPIN")
    with pytest.raises(TypeError, match=r"a dimod\.BinaryPolynomial, but got"):
        sample(dimod.BinaryQuadraticModel("SPIN"))
    with pytest.raises(ValueError, match="linear, geometric, but got 'cubic'"):
        sample(polynomial, beta_schedule_type="cubic")
    with pytest.raises(ValueError, match="num_reads must be at least 1"):
        sample(polynomial, num_reads=0)
    with pytest.raises(ValueError, match="hot"):
        sample(polynomial, beta_range=(2.0, 1.0))
    with pytest.raises(TypeError, match="interrupt_function is a function"):
        sample(polynomial, interrupt_function=3)
