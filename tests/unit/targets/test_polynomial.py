"""Polynomials against products that are multiplied out in numpy, at every state of small spaces."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import sparse
from discrax.samplers.conditionals import conditional_ratios
from discrax.targets import Polynomial

from ..helpers import brute_force_ratios, changed

SPACES = {"bits": dx.Binary(6), "literals": dx.Binary((2, 3)), "spins": dx.Spin(6)}
spaces = pytest.mark.parametrize("name", SPACES)


def random_terms(name: str, num_terms: int = 12) -> dict:
    """Terms of one to five sites, some of them equal, and the codes at which factors are 1."""
    rng = np.random.default_rng(len(name))
    terms = [rng.permutation(6)[: rng.integers(1, 6)] for _ in range(num_terms)]
    terms[-1] = terms[0]
    sites = np.concatenate(terms)
    codes = rng.integers(0, 2, len(sites)) if name == "literals" else None
    start = np.append(0, np.cumsum([len(term) for term in terms]))
    return {"start": start, "sites": sites, "weights": rng.normal(size=num_terms), "codes": codes, "offset": 0.25}


def plain_value(name: str, parts: dict, x: np.ndarray) -> float:
    x, value = x.reshape(-1).astype(int), parts["offset"]
    for t, (begin, end) in enumerate(itertools.pairwise(parts["start"])):
        product = parts["weights"][t]
        for place in range(begin, end):
            code = x[parts["sites"][place]]
            if name == "spins":
                product *= 2 * code - 1
            else:
                product *= code if parts["codes"] is None or parts["codes"][place] == 1 else 1 - code
        value += product
    return float(value)


@spaces
@pytest.mark.parametrize("num_blocks", ["one block", "several"])
def test_values_and_ratios_are_exact(name, num_blocks, monkeypatch):
    if num_blocks == "several":
        monkeypatch.setattr(sparse, "_FEW_NUMBERS", 0)
    space, parts = SPACES[name], random_terms(name)
    if num_blocks == "several":  # a site that is in many terms
        more = 60
        parts["sites"] = np.append(parts["sites"], np.zeros(more, int))
        parts["start"] = np.append(parts["start"], parts["start"][-1] + 1 + np.arange(more))
        parts["weights"] = np.append(parts["weights"], np.linspace(-1, 1, more))
        parts["codes"] = None if parts["codes"] is None else np.append(parts["codes"], np.ones(more, int))
    target = Polynomial(space, **parts)
    assert (len(target.places.indices) > 1) == (len(target.members.indices) > 1) == (num_blocks == "several")
    states = space.enumerate()[::5]
    value = lambda x: plain_value(name, parts, x)  # noqa: E731
    expected = np.array([value(x) for x in states])
    ratios = np.array([brute_force_ratios(value, x, 2) for x in states])
    x = jnp.asarray(states)
    found = jax.jit(jax.vmap(lambda x: target.evaluate(x)))(x)
    np.testing.assert_allclose(found.log_prob, expected, atol=1e-5)
    np.testing.assert_allclose(found.ratios, ratios, atol=1e-5)
    values, slopes = jax.jit(jax.vmap(lambda x: jax.value_and_grad(target.log_prob)(space.embed(x))))(x)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    # A product is linear in each factor, so that a gradient tells single flips exactly.
    moves = 1.0 - 2.0 * states if name != "spins" else 2.0 - 4.0 * states
    np.testing.assert_allclose(slopes * moves, ratios, atol=1e-5)
    sites = jnp.arange(6)
    local = jax.jit(jax.vmap(lambda x: jax.vmap(lambda i: conditional_ratios(target, x, i))(sites)))(x)
    np.testing.assert_allclose(local, ratios.reshape(len(states), 6), atol=1e-5)


@spaces
def test_changes_of_several_sites_are_exact(name):
    space, parts = SPACES[name], random_terms(name)
    target, rng = Polynomial(space, **parts), np.random.default_rng(0)
    change = jax.jit(lambda *arguments: target.change(*arguments))
    for x in space.enumerate()[::7]:
        sites, codes = rng.permutation(6)[:3], rng.integers(0, 2, 3).astype(x.dtype)
        y = x
        for site, code in zip(sites, codes, strict=True):
            y = changed(y, site, code)
        # The last one is what pads a path: a site that changes elsewhere, with the code it has.
        sites, codes = np.append(sites, sites[0]), np.append(codes, x.reshape(-1)[sites[0]])
        found = change(jnp.asarray(x), jnp.asarray(sites, jnp.int32), jnp.asarray(codes))
        expected = plain_value(name, parts, y) - plain_value(name, parts, x)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@spaces
def test_sites_of_a_term_have_different_colours(name):
    parts = random_terms(name, num_terms=4)
    colours = Polynomial(SPACES[name], **parts).colours()
    assert colours.shape == SPACES[name].shape
    for begin, end in itertools.pairwise(parts["start"]):
        own = colours.reshape(-1)[parts["sites"][begin:end]]
        assert len(set(own.tolist())) == len(own)


def test_sites_without_a_common_term_share_a_colour():
    target = Polynomial.from_terms(dx.Binary(6), {(0, 1, 2): 1.0, (3, 4, 5): -1.0})
    assert target.colours().max() == 2


def test_a_dict_of_terms_is_an_ising_model_where_all_are_pairs():
    weights = {(0, 1): 0.5, (1, 2): -0.7, (2,): 0.3}
    target = Polynomial.from_terms(dx.Spin(3), weights)
    ising = dx.targets.Ising.graph(np.array([[0, 1], [1, 2]]), [0.5, -0.7], [0, 0, 0.3])
    np.testing.assert_allclose(dx.exact.law(target), dx.exact.law(ising), rtol=1e-5)


def test_no_terms_at_all():
    constant = Polynomial.from_terms(dx.Binary(3), {(): 1.5, frozenset(): 0.25, (0, 1): 1.0}, offset=2.0)
    assert constant.log_prob(jnp.ones(3)) == 4.75
    target = Polynomial.from_terms(dx.Binary(3), {}, offset=2.0)
    found = target.evaluate(jnp.zeros(3, jnp.int8))
    assert float(found.log_prob) == 2
    assert not np.asarray(found.ratios).any()


def test_a_long_term_among_short_ones_costs_no_table():
    """Padded to the longest, the tables would have a hundred times as many places as there are factors."""
    n = 2000
    terms = {(i, (i + 1) % n): 1.0 for i in range(n)} | {tuple(range(n)): 1.0}
    target = Polynomial.from_terms(dx.Binary(n), terms)
    places = sum(block.size for lists in (target.members, target.places) for block in lists.indices)
    assert places < 5 * 3 * n
    found = jax.jit(lambda x: target.evaluate(x))(jnp.ones(n, jnp.int8))
    assert float(found.log_prob) == n + 1
    assert (np.asarray(found.ratios) == -3).all()


SAMPLERS = {"pas": dx.samplers.pas, "gwg": dx.samplers.gwg, "dmala": dx.samplers.dmala, "gibbs": dx.samplers.gibbs}


SLOW = [("literals", "pas"), ("spins", "pas"), ("literals", "chromatic"), ("bits", "gwg"), ("bits", "dmala")]


@pytest.mark.parametrize(
    ("name", "sampler"), [("spins", "gibbs"), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_samplers_leave_the_law_invariant(name, sampler):
    target = dx.Tempered(Polynomial(SPACES[name], **random_terms(name)), 0.4)
    kernel = dx.samplers.gibbs("chromatic") if sampler == "chromatic" else SAMPLERS[sampler]()
    verdict = dx.exact.check_kernel(kernel, target, num_chains=20_000, num_convergence_steps=100)
    assert verdict, verdict


def test_a_sampler_with_wrong_ratios_is_found():
    class Wrong(Polynomial):
        """A term that one flip makes 1 is overlooked."""

        def _ratios(self, is_one, counts, weights):
            return jnp.sum(weights * jnp.where(is_one, -(counts == 0).astype(weights.dtype), 0.0), axis=-1)

    target = Wrong(SPACES["literals"], **random_terms("literals"))
    assert not dx.exact.check_kernel(dx.samplers.gibbs(), target, num_chains=20_000, num_convergence_steps=60)


def test_bad_input(as_a_user):
    make = Polynomial.from_terms
    with pytest.raises(TypeError, match="dict of tuples of sites"):
        make(dx.Binary(3), [(0, 1)])
    with pytest.raises(TypeError, match="a tuple of sites"):
        make(dx.Binary(3), {3: 1.0})
    with pytest.raises(TypeError, match="Binary or a Spin space"):
        make(dx.Categorical(3, 3), {(0, 1): 1.0})
    with pytest.raises(ValueError, match=r"sites 0\.\.2, but one names site 3"):
        make(dx.Binary(3), {(0, 3): 1.0})
    with pytest.raises(ValueError, match="names one twice"):
        make(dx.Binary(3), {(0, 0): 1.0})
    with pytest.raises(ValueError, match="a constant is the offset"):
        Polynomial(dx.Binary(3), np.array([0, 0]), np.zeros(0, int), [1.0])
    with pytest.raises(ValueError, match="must be finite"):
        make(dx.Binary(3), {(0,): np.inf})
    with pytest.raises(TypeError, match="whole numbers"):
        make(dx.Binary(3), {(0.5,): 1.0})
    with pytest.raises(ValueError, match="all 1 for spins"):
        Polynomial(dx.Spin(3), np.array([0, 1]), np.array([0]), [1.0], np.array([0]))
    with pytest.raises(ValueError, match="2 terms, 1 weights"):
        Polynomial(dx.Spin(3), np.array([0, 1, 2]), np.array([0, 1]), [1.0])
