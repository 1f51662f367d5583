import itertools
import os
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core.stochastic import evaluate_batch
from discrax.core.target import value_and_changes
from discrax.problems.facility import FacilityLocation

from ..helpers import Z_SCORE

SIZES = [(4, 5, 3), (2, 3, 1)]  # facilities, customers, scenarios of a batch; with two facilities there are two levels


def cost_by_hand(problem, x, d):
    """The cost of one scenario, with loops over what the constraints of the program say."""
    I = problem.num_facilities  # noqa: E741
    y, a = x[:I], x[I:]
    total = sum(float(problem.opening[i]) * y[i] for i in range(I))
    load = np.zeros(I)
    for j, facility in enumerate(a):
        total += float(problem.transport[facility, j]) * d[j]
        load[facility] += d[j]
    return total + sum(
        float(problem.penalty[i]) * max(0.0, load[i] - float(problem.capacity[i]) * y[i]) for i in range(I)
    )


@pytest.mark.parametrize(("facilities", "customers", "batch_size"), SIZES)
def test_costs_and_all_their_changes(facilities, customers, batch_size):
    problem = FacilityLocation.simulated(1, facilities, customers, batch_size=batch_size)
    xi = problem.draw(jax.random.key(2), jnp.int32(0))

    exists = np.ones(problem.space.shape if facilities == 2 else (*problem.space.shape, facilities), bool)
    if facilities > 2:
        exists[:facilities, 2:] = False  # a facility is open or not

    @jax.jit
    def told(x):
        by_psi = value_and_changes(lambda x: problem.psi(problem.space.embed(x), xi), problem.space, x)
        return problem.cost(x, xi), evaluate_batch(problem, x, xi), by_psi

    for x in jax.vmap(problem.space.random)(jax.random.split(jax.random.key(3), 6)):
        costs, batch, (here, changes) = told(x)
        by_hand = [cost_by_hand(problem, x.tolist(), d) for d in np.asarray(xi, np.float64)]
        np.testing.assert_allclose(costs, by_hand, rtol=1e-5)
        assert float(here) == pytest.approx(-np.mean(by_hand), rel=1e-5)
        assert float(batch.here) == pytest.approx(float(here), rel=1e-6)
        is_barred = np.isneginf(np.asarray(changes))
        assert (is_barred == ~exists).all()
        np.testing.assert_allclose(
            np.where(is_barred, 0, batch.changes), np.where(is_barred, 0, changes), atol=1e-5 * abs(float(here))
        )


@pytest.mark.slow
def test_facilities_are_open_or_not_and_customers_are_anywhere():
    import discrax as dx

    problem = FacilityLocation.simulated(0, 4, 6)
    kernel = dx.samplers.sgdld(step_size=2.0, temperature=1e6)  # so hot that all changes are as good as each other
    result = dx.sample(
        jax.random.key(0), problem, kernel,
        num_chains=8, num_warmup=0, num_samples=200, adaptation=None, progress=False,
    )  # fmt: skip
    assert result.draws is not None
    assert result.draws[..., :4].max() == 1
    assert set(np.unique(result.draws[..., 4:])) == {0, 1, 2, 3}


def test_demands_have_their_means_and_spreads():
    problem = FacilityLocation.simulated(5, 3, 4, spread=0.8, batch_size=40_000)
    d = np.asarray(problem.draw(jax.random.key(0), jnp.int32(0)), np.float64)
    assert (d > 0).all()
    means, spreads = np.asarray(problem.demand), 0.8 * np.asarray(problem.demand)
    assert np.all(np.abs(d.mean(axis=0) - means) < Z_SCORE * spreads / np.sqrt(len(d)))
    np.testing.assert_allclose(d.std(axis=0), spreads, rtol=0.1)
    certain = FacilityLocation.simulated(5, 3, 4, spread=0.0)
    np.testing.assert_allclose(certain.scenarios, np.broadcast_to(certain.demand, certain.scenarios.shape), rtol=1e-6)


def test_bernoulli_demands_are_all_or_nothing_with_the_same_mean_and_spread():
    problem = FacilityLocation.simulated(5, 3, 4, spread=1.0, law="bernoulli", batch_size=40_000)
    d = np.asarray(problem.draw(jax.random.key(0), jnp.int32(0)), np.float64)
    means = np.asarray(problem.demand, np.float64)
    assert ((d == 0) | np.isclose(d, 2 * means)).all()
    assert np.all(np.abs(d.mean(axis=0) - means) < Z_SCORE * means / np.sqrt(len(d)))
    np.testing.assert_allclose(d.std(axis=0), means, rtol=0.01)
    certain = FacilityLocation.simulated(5, 3, 4, spread=0.0, law="bernoulli")
    np.testing.assert_array_equal(certain.scenarios, np.broadcast_to(certain.demand, certain.scenarios.shape))


def test_simulated_capacities_are_the_ratio_times_demand():
    problem = FacilityLocation.simulated(0, 15, 30, ratio=3.0)
    assert float(problem.capacity.sum() / problem.demand.sum()) == pytest.approx(3, rel=1e-5)
    sizes = np.asarray(problem.capacity / problem.capacity.sum())
    order = np.argsort(sizes)
    assert np.asarray(problem.opening)[order[-1]] > np.asarray(problem.opening)[order[0]]  # 1,000 and more against 400


def test_log_prob_is_minus_the_mean_cost_of_fixed_scenarios():
    problem = FacilityLocation.simulated(2, 3, 4)
    x = problem.space.random(jax.random.key(0))
    expected = -np.mean([cost_by_hand(problem, x.tolist(), d) for d in np.asarray(problem.scenarios, np.float64)])
    assert float(eqx.filter_jit(problem.log_prob)(problem.space.embed(x))) == pytest.approx(expected, rel=1e-5)
    again = FacilityLocation.simulated(2, 3, 4)
    assert (again.scenarios == problem.scenarios).all()
    assert not np.array_equal(FacilityLocation.simulated(3, 3, 4).demand, problem.demand)


def test_a_problem_that_can_be_solved_by_hand():
    """Two facilities; demands are certain, so both customers fit into the cheap one if it is large enough."""
    problem = FacilityLocation([10.0, 100.0], [[1.0, 2.0], [1.0, 1.0]], [30.0, 30.0], 50.0, [10.0, 10.0], 0.0)
    states = np.array(list(itertools.product((0, 1), repeat=4)), np.int8)
    costs = np.asarray(jax.jit(jax.vmap(lambda x: problem.cost(x, problem.demand)))(jnp.asarray(states)))
    assert states[costs.argmin()].tolist() == [1, 0, 0, 0]
    assert costs.min() == pytest.approx(10 + 10 + 20)
    assert costs[0] == pytest.approx(10 + 20 + 50 * 20)  # all closed: everything is bought elsewhere


def test_orlib_costs_are_of_all_demand():
    cost = np.array([[10.0, 40.0], [30.0, 20.0]])
    problem = FacilityLocation.from_orlib([5.0, 6.0], [100.0, 50.0], [10.0, 20.0], cost, spread=0.0)
    np.testing.assert_allclose(problem.transport, [[1.0, 2.0], [3.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(problem.penalty, 2 * 3.0 + 6 / 50, rtol=1e-6)
    x = jnp.array([1, 1, 0, 1], jnp.int8)
    assert float(problem.cost(x, problem.demand)) == pytest.approx(5 + 6 + 10 + 20)


def test_a_problem_of_the_library():
    path = Path(os.environ.get("DISCRAX_DATA", "")) / "facility_location" / "orlib_cap.npz"
    if not path.is_file():
        pytest.skip("DISCRAX_DATA has no facility_location/orlib_cap.npz")
    with np.load(path) as arrays:
        given = [arrays[f"cap71_{name}"] for name in ("fixed", "cap", "demand", "cost")]
    problem = FacilityLocation.from_orlib(*given)
    assert (problem.num_facilities, problem.num_customers) == (16, 50)
    assert np.isfinite(problem.log_prob(problem.space.embed(problem.space.random(jax.random.key(0)))))


def problem_with(**changed):
    given = {"opening": [1.0, 1.0], "transport": np.ones((2, 3)), "capacity": [9.0, 9.0], "penalty": 2.0}
    return FacilityLocation(**(given | {"demand": np.ones(3)} | changed))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"capacity": [1.0, -2.0]}, "capacity holds finite numbers, none of them negative, but one is -2"),
        ({"demand": [1.0, np.nan, 1.0]}, "demand must be finite, but holds nan"),
        ({"spread": -0.5}, "spread holds finite numbers, none of them negative, but one is -0.5"),
        ({"opening": [1.0, 2.0, 3.0]}, r"opening has 2 numbers here, but its shape is \(3,\)"),
        ({"transport": np.ones(3)}, r"transport is a table .* but its shape is \(3,\)"),
        ({"transport": np.ones((1, 3))}, "at least two facilities"),
        ({"batch_size": 0}, "batch_size must be at least 1, but got 0"),
    ],
)
def test_bad_numbers_are_sentences(as_a_user, changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        problem_with(**changed)


def test_bad_sizes_are_sentences(as_a_user):
    with pytest.raises(ValueError, match="num_facilities must be at least 2, but got 1"):
        FacilityLocation.simulated(0, 1, 5)
    with pytest.raises(ValueError, match=r"cost has a row a facility .* but its shape is \(2, 2\)"):
        FacilityLocation.from_orlib([1.0, 1.0], [1.0, 1.0], [1.0, 1.0, 1.0], np.ones((2, 2)))
    with pytest.raises(ValueError, match="Demands and capacities are positive"):
        FacilityLocation.from_orlib([1.0, 1.0], [1.0, 1.0], [1.0, 0.0], np.ones((2, 2)))
