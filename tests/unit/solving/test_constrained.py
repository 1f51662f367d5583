"""`ConstrainedQUBO`: the law that sweeps leave alone, prices, repair, and what is refused."""

import itertools

import jax
import numpy as np
import pytest

from discrax.core.target import log_prob
from discrax.problems import QUBO, ConstrainedQUBO
from discrax.solving import solve
from discrax.solving.searches import Anneal
from discrax.solving.sites_constrained import ConstrainedChains

EVERY = np.array(list(itertools.product([0, 1], repeat=5)), np.int8)
SACK = {"sack": (dict(enumerate([1.0, 2.0, 3.5, 1.5, 2.0])), "<=", 4.0)}


def make(seed: int = 0, penalty: float = 0.2) -> ConstrainedQUBO:
    Q = np.triu(np.random.default_rng(seed).normal(size=(5, 5)))
    constraints = {**SACK, "two": ({0: 1, 1: 1, 2: 1, 4: 1}, "==", 2), "least": ({1: -1, 3: 2}, ">=", 0)}
    return ConstrainedQUBO(Q, constraints, penalty=penalty)


def distance_from_the_law(beta: float = 0.7) -> float:
    """Of many chains after many sweeps at one temperature, in total variation."""
    model = make().model
    chains = ConstrainedChains(model, 20_000, 3)
    chains.restart(0, chains.num_chains)
    chains.anneal(np.full(40, beta), 0, chains.num_chains)
    counts = np.bincount(chains.states @ (1 << np.arange(5))[::-1], minlength=32) / chains.num_chains
    law = np.exp(beta * model.value(EVERY))
    return float(0.5 * np.abs(counts - law / law.sum()).sum())


def test_sweeps_leave_the_law_alone():
    assert distance_from_the_law() < 0.02


def test_a_model_that_is_priced_otherwise_has_another_law(monkeypatch):
    """The proof is one: half the price, and it fails."""
    whole = ConstrainedChains.__init__

    def cheaper(self, model, *rest):
        whole(self, model, *rest)
        self.limits = (model.low, model.high, 0.5 * model.prices)

    monkeypatch.setattr(ConstrainedChains, "__init__", cheaper)
    assert distance_from_the_law() > 0.05


def test_values_that_are_kept_are_the_values():
    model = make(1).model
    chains = ConstrainedChains(model, 8, 0)
    chains.restart(0, 8)
    chains.anneal(np.linspace(0.1, 3.0, 50), 0, 8)
    np.testing.assert_allclose(chains.current_values(), model.value(chains.states))


def test_the_target_is_the_model():
    made = make(2)
    values = jax.vmap(lambda x: log_prob(made.target, x))(EVERY)
    np.testing.assert_allclose(values, made.model.value(EVERY) - made.model.form.offset, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_repair_ends_feasible_where_flips_can_and_keeps_what_is(seed):
    """Of a sack alone, which can be emptied."""
    made = ConstrainedQUBO(np.triu(np.random.default_rng(seed).normal(size=(5, 5))), SACK)
    for state in EVERY:
        repaired = made.repair(state)
        assert made.is_feasible(repaired)
        assert repaired.dtype == state.dtype
        if made.is_feasible(state):
            assert made.objective(repaired) <= made.objective(state) + 1e-9


def test_limits_hold_but_for_rounding():
    made = ConstrainedQUBO({0: 1.0, 1: 1.0}, [({0: 0.1, 1: 0.2}, "==", 0.3)])
    np.testing.assert_array_equal(made.is_feasible(np.array([[0, 0], [0, 1], [1, 1]])), [False, False, True])


@pytest.mark.slow
def test_annealing_with_a_sampler_solves_it_too():
    made = make(3, penalty=1.0)
    ok = made.is_feasible(EVERY)
    found = solve(jax.random.key(0), made, Anneal(8), num_steps=200)
    assert found.objective == pytest.approx(made.objective(EVERY)[ok].min())


REFUSED = {
    "must be (terms, sense, limit), but got 3": [3],
    "must have terms {name: coefficient}": [([1, 2], "<=", 1)],
    "must be one of <=, ==, >=, but got '<'": [({0: 1}, "<", 1)],
    "The limit of constraint 0 must be finite": [({0: 1}, "<=", np.inf)],
    "of the objective's variables, but one is 7": [({7: 1}, "<=", 1)],
    "The coefficients of constraint 'c' must be real numbers": {"c": ({0: "x"}, "<=", 1)},
    "constraints are a list or a dict": 3,
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_wrong_is_said_in_a_sentence(message, as_a_user):
    with pytest.raises((ValueError, TypeError)) as caught:
        ConstrainedQUBO(np.eye(2), REFUSED[message])
    assert message in str(caught.value)


def test_spins_are_refused():
    with pytest.raises(ValueError, match="the QUBO is of spins"):
        ConstrainedQUBO(QUBO({0: 1.0}, vartype="SPIN"), [])
