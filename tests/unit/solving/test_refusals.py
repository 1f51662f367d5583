"""What `solve` cannot do is said in a sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.problems import MIS, Custom
from discrax.solving import solve, solve_many

from .instances import KEY, PLANTED, PROBLEM

pytestmark = pytest.mark.usefixtures("in_blocks_of_five_steps", "hands")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": -1}, "seconds must be at least 0, but got -1"),
        ({"seconds": 1, "num_steps": 5}, "by seconds or by num_steps, not by both"),
        ({"num_steps": 0}, "num_steps must be at least 1"),
        ({"num_chains": 0}, "num_chains must be at least 1"),
        ({"method": "magic"}, "Unknown method 'magic'; known: auto, sites"),
        ({"schedule": "slow", "method": "anneal"}, "Unknown schedule 'slow'"),
        ({"method": "temper", "num_rungs": 1}, "num_rungs must be at least 2"),
        ({"num_rounds": 0}, "num_rounds must be at least 1"),
        ({"method": "sites", "sampler": "pas"}, "has no sampler"),
        ({"sampler": "pass"}, "Unknown sampler 'pass'"),
        ({"sampler": 3}, "sampler must be a name or a kernel"),
        ({"init": np.zeros((2, 3), np.int8)}, "init has one state a chain"),
        ({"init": 5}, "init has one state a chain"),
        ({"init": np.full((2, 32), 7)}, r"init holds states of the problem, but: Codes must lie in 0\.\.1"),
        ({"init": np.zeros((2, 32))}, "init holds states of the problem, but: A state holds integer codes"),
        ({"init": np.zeros((2, 32), np.int8), "num_chains": 3}, r"init has one state a chain, shape \(3, 32\)"),
        ({"seconds": np.nan}, "seconds must be finite"),
        ({"seconds": "long"}, "seconds must be real numbers"),
        ({"num_steps": 2.5}, "num_steps must be a whole number"),
        ({"num_chains": True}, "num_chains must be a whole number"),
        ({"method": ["anneal"]}, "Unknown method"),
        ({"schedule": None}, "Unknown schedule None"),
        # what a method has no use for is not dropped
        ({"num_rungs": 8}, "num_rungs is for method='temper', but the method here is 'sites'"),
        ({"num_rungs": 8, "method": "anneal"}, "num_rungs is for method='temper', but the method here is 'anneal'"),
        ({"num_rounds": 2, "method": "temper"}, "num_rounds and reheat are for annealing, methods 'sites' and"),
        ({"num_rounds": 2, "schedule": "tempering"}, "num_rounds and reheat are for annealing"),
        ({"reheat": 0.5}, "reheat is where the rounds after the first begin, so it needs num_rounds"),
        ({"reheat": 1.0, "num_rounds": 2}, "reheat must be at least 0 and less than 1"),
        ({"reheat": np.nan, "num_rounds": 2}, "reheat must be finite"),
        ({"schedule": "tempering", "method": "anneal"}, "'sites'; method='temper' tempers with a sampler"),
        *(({"betas": betas}, "betas are two inverse temperatures, 0 < hot < cold, but got")
          for betas in ((2.0, 1.0), (np.nan, 1.0), (1.0, np.inf), (0.0, 1.0), (1.0,), 3.0, "ab", (1j, 2))),
        *(({"num_chains": 10**11, "method": method}, r"about [\d,]+ GiB, but there are [\d,]+ GiB; use fewer")
          for method in ("sites", "anneal", "temper")),
        ({"num_rungs": 10**9, "method": "temper"}, "on 1,000,000,000 rungs on 32 sites would take about"),
    ],
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
    solution = solve(KEY, problem, seconds=0, num_chains=4)
    assert np.isfinite(solution.objective)
    assert solution.is_feasible
    assert solution.state[0] == 0
    for nowhere in (jnp.nan, jnp.inf):
        with pytest.raises(
            ValueError, match="The objective must be a finite number somewhere, but at 80 random states"
        ):
            solve(KEY, Custom(lambda e: e.sum() * nowhere, dx.Binary(6)), num_chains=4)  # noqa: B023
    with pytest.raises(ValueError, match="at the states of `init`, but at some it is not"):
        solve(KEY, problem, init=np.ones((2, 6), np.int8))
