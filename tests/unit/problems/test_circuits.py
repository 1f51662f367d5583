import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core.stochastic import evaluate_batch
from discrax.core.target import value_and_changes
from discrax.problems.circuits import NUM_NODES, ApproximateCircuit, Draw

SUMS, PRODUCTS = np.zeros(NUM_NODES, bool), np.ones(NUM_NODES, bool)


def output_by_hand(multiplies, inputs, factors):
    """The tree, node by node."""
    values, node = list(inputs), 0
    while len(values) > 1:
        above = []
        for a, b in zip(values[::2], values[1::2], strict=True):
            above.append((a * b if multiplies[node] else a + b) * factors[node])
            node += 1
        values = above
    return values[0]


def test_error_is_that_of_the_tree():
    circuit = ApproximateCircuit.simulated(4, num_units=3, batch_size=5)
    xi = circuit.draw(jax.random.key(0), jnp.int32(0))
    x = circuit.init(jax.random.key(1), 1)[0]
    taken = np.isin(np.arange(NUM_NODES), x)
    errors = []
    for inputs, delta in zip(np.asarray(xi.inputs, np.float64), np.asarray(xi.errors, np.float64), strict=True):
        exact = output_by_hand(np.asarray(circuit.multiplies), inputs, np.ones(NUM_NODES))
        found = output_by_hand(np.asarray(circuit.multiplies), inputs, 1 + taken * delta)
        errors.append(100 * abs(found - exact) / exact)
    assert float(eqx.filter_jit(circuit.psi)(circuit.space.embed(x), xi)) == pytest.approx(-np.mean(errors), rel=1e-4)


def test_a_batch_tells_every_swap():
    num_units = 3
    circuit = ApproximateCircuit.simulated(1, num_units, batch_size=4)
    xi = circuit.draw(jax.random.key(2), jnp.int32(0))

    @jax.jit
    def both(x):
        by_psi = value_and_changes(lambda x: circuit.psi(circuit.space.embed(x), xi), circuit.space, x)
        return evaluate_batch(circuit, x, xi), by_psi

    for x in circuit.init(jax.random.key(3), 4):
        told, (here, changes) = both(x)
        assert float(told.here) == pytest.approx(float(here), rel=1e-4)
        np.testing.assert_allclose(told.changes, changes, atol=2e-4)
        assert np.isneginf(np.asarray(told.changes)).sum() == num_units * (num_units - 1)


def test_chains_keep_units_apart():
    import discrax as dx

    circuit = ApproximateCircuit.simulated(0, 5)
    result = dx.sample(
        jax.random.key(0), circuit, dx.samplers.sgdld(step_size=0.9, temperature=1e4),
        num_chains=4, num_warmup=0, num_samples=200, init=circuit.init(jax.random.key(1), 4),
        adaptation=None, progress=False,
    )  # fmt: skip
    assert result.draws is not None
    ordered = np.sort(result.draws, axis=-1)
    assert (np.diff(ordered, axis=-1) > 0).all()
    assert set(np.unique(ordered)) == set(range(NUM_NODES))


def test_errors_of_one_unit_are_known():
    """At the output, or anywhere among products, an imprecise unit makes the result 10 % wrong; in sums, its share."""
    for multiplies, node, expected in ((PRODUCTS, 0, 10.0), (PRODUCTS, 14, 10.0), (SUMS, 14, 10.0), (SUMS, 0, 10 / 8)):
        circuit = ApproximateCircuit(multiplies, 1)
        (error,) = circuit.expected_errors(np.array([[node]], np.int8), 16_384)
        assert error == pytest.approx(expected, rel=0.03), (multiplies[0], node)


def test_inputs_and_errors_are_those_of_the_public_set():
    xi = ApproximateCircuit(SUMS, 1, batch_size=20_000).draw(jax.random.key(0), jnp.int32(0))
    tenths = np.asarray(xi.inputs, np.float64) * 10
    np.testing.assert_allclose(tenths, np.round(tenths), atol=1e-4)
    assert set(np.unique(np.round(tenths))) == set(range(1, 100))
    assert tenths.mean() == pytest.approx(50, abs=0.3)
    np.testing.assert_allclose(np.abs(xi.errors), 0.1, rtol=1e-6)
    assert np.mean(np.asarray(xi.errors) > 0) == pytest.approx(0.5, abs=0.01)


def test_the_optimum_is_the_best_of_all():
    circuit = ApproximateCircuit(np.arange(NUM_NODES) == 14, 2)  # a product of two sums
    placements = circuit.placements()
    assert len(placements) == math.comb(NUM_NODES, 2)
    assert len({tuple(p) for p in placements.tolist()}) == len(placements)
    x, error = circuit.optimum(num_draws=4096)
    errors = circuit.expected_errors(placements, 4096)
    assert error == errors.min()
    assert x.max() < 8  # beside the inputs, where an error is an eighth of one half
    assert 14 in placements[errors.argmax()]
    several = circuit.expected_errors(placements[:3], 4096)
    np.testing.assert_allclose(several, errors[:3], rtol=1e-5)


def test_log_prob_is_minus_the_mean_error_of_fixed_draws():
    circuit = ApproximateCircuit.simulated(2, 3)
    x = jnp.array([0, 5, 9], jnp.int8)
    assert isinstance(circuit.scenarios, Draw)
    log_prob = jax.jit(lambda x: circuit.log_prob(circuit.space.embed(x)))
    expected = float(eqx.filter_jit(circuit.psi)(circuit.space.embed(x), circuit.scenarios))
    assert float(log_prob(x)) == pytest.approx(expected, rel=1e-6)
    assert expected < 0
    assert np.isneginf(log_prob(jnp.array([0, 5, 5], jnp.int8)))
    assert not np.array_equal(ApproximateCircuit.simulated(3, 3).multiplies, circuit.multiplies)


def test_bad_input_is_a_sentence(as_a_user):
    with pytest.raises(ValueError, match=r"num_units is a whole number from 1 to 14, .* but got 16"):
        ApproximateCircuit.simulated(0, 16)
    with pytest.raises(ValueError, match="but got 0"):
        ApproximateCircuit.simulated(0, 0)
    with pytest.raises(ValueError, match="batch_size is a whole number of draws, at least 1, but got 0"):
        ApproximateCircuit.simulated(0, 3, batch_size=0)
    with pytest.raises(ValueError, match=r"multiplies says of each of the 15 nodes .* shape \(4,\)"):
        ApproximateCircuit(np.ones(4, bool), 3)
