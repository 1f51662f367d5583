"""What `solve` cannot do is said in a sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.problems import MIS, Custom
from discrax.solving import solve, solve_many
from discrax.solving.searches import Anneal, Population, Sites, Temper

from .instances import KEY, PLANTED, PROBLEM

pytestmark = pytest.mark.usefixtures("in_turns_of_five_steps", "hands")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": -1}, "seconds must be at least 0, but got -1"),
        ({"seconds": 1, "num_steps": 5}, "by seconds or by num_steps, not by both"),
        ({"num_steps": 0}, "num_steps must be at least 1"),
        ({"search": "magic"}, "search must be one of auto, sites, sets, anneal, temper, population, or of dx.searches"),
        ({"search": ["anneal"]}, "search must be one of auto, sites"),
        ({"search": 3}, "search must be one of auto, sites"),
        ({"search": Sites}, r"search must be an object, so write Sites\(\) instead of Sites"),
        ({"search": Anneal(sampler="pass")}, "Unknown sampler 'pass'"),
        ({"search": Anneal(num_rounds=9), "num_steps": 8}, "num_rounds must be at most 8"),
        ({"init": np.zeros((2, 3), np.int8)}, "init has one state a chain"),
        ({"init": 5}, "init has one state a chain"),
        ({"init": np.full((2, 32), 7)}, r"init holds states of the problem, but: Codes must lie in 0\.\.1"),
        ({"init": np.zeros((2, 32))}, "init holds states of the problem, but: A state holds integer codes"),
        ({"init": np.zeros((2, 32), np.int8), "search": Sites(num_chains=3)}, r"a chain, shape \(3, 32\)"),
        ({"seconds": np.nan}, "seconds must be finite"),
        ({"seconds": "long"}, "seconds must be real numbers"),
        ({"num_steps": 2.5}, "num_steps must be a whole number"),
        ({"callback": 3}, "callback must be a function of a report"),
        # of too many chains
        *(({"search": how}, r"about [\d,]+ GiB, but there are [\d,]+ GiB; use fewer num_chains")
          for how in (Sites(10**11), Anneal(10**11), Anneal(10**11, sampler="pas"), Temper(10**11),
                      Population(10**11))),
        ({"search": Temper(num_rungs=10**10)}, "would take about .* fewer num_rungs"),
        ({"search": Temper(num_rungs=10**9, sampler="pas")}, "would take about .* fewer num_rungs"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(settings, message, as_a_user):
    with pytest.raises((ValueError, TypeError), match=message):
        solve(KEY, PROBLEM, **settings)


@pytest.mark.parametrize("key", [0, np.int64(3), 1.5, None, "key", jax.random.split(KEY, 3)], ids=type)
def test_keys_of_the_wrong_kind(key, as_a_user):
    with pytest.raises(TypeError, match="key must be one JAX key, such as"):
        solve(key, PROBLEM, num_steps=1)


def test_what_is_no_problem(as_a_user):
    wanted = "must be a problem, such as discrax.problems.MIS"
    for given in (PLANTED, MIS, "mis", None, np.eye(3)):
        with pytest.raises(TypeError, match=wanted):
            solve(KEY, given)
    with pytest.raises(TypeError, match="use solve_many"):
        solve(KEY, [PROBLEM])
    with pytest.raises(TypeError, match="use solve"):
        solve_many(KEY, PROBLEM)
    with pytest.raises(TypeError, match=wanted):
        solve_many(KEY, [PROBLEM, PLANTED])
    with pytest.raises(ValueError, match="init has an array of states for each problem, but got 1 for 2 problems"):
        solve_many(KEY, [PROBLEM] * 2, init=[np.zeros((2, 32), np.int8)])


def test_states_without_a_number_are_no_solutions():
    problem = Custom(lambda e: jnp.where(e[0] > 0.5, jnp.nan, e.sum()), dx.Binary(6))
    solution = solve(KEY, problem, Anneal(num_chains=4), seconds=0)
    assert np.isfinite(solution.objective)
    assert solution.is_feasible
    assert solution.state[0] == 0
    for nowhere in (jnp.nan, jnp.inf):
        with pytest.raises(
            ValueError, match="The objective must be a finite number somewhere, but at 80 random states"
        ):
            solve(KEY, Custom(lambda e: e.sum() * nowhere, dx.Binary(6)), Anneal(num_chains=4))  # noqa: B023
    with pytest.raises(ValueError, match="at the states of `init`, but at some it is not"):
        solve(KEY, problem, init=np.ones((2, 6), np.int8))
