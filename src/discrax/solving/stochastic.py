"""Minimising an expected cost: E_xi cost(x, xi), of which only mini-batches are seen.

A stochastic target whose psi is minus a cost is searched by sampling at a falling temperature. Chains end in different
states, and mini-batches do not say which is best, so

    the last state of every chain is scored on the same fresh mini-batches, and the best is kept;
    what that one costs is the mean over further mini-batches, for the best of many scores is too good.

`sample_average` is the usual way of mathematical programming, for comparison: the expectation is replaced by the mean
over a few scenarios, and the integer program that makes is given to HiGHS.
"""

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments, number, whole
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.memory import check_memory
from discrax.core.programs import compiled, reads_user_code
from discrax.core.seeds import key_of
from discrax.core.stochastic import StochasticTarget
from discrax.problems.facility import FacilityLocation
from discrax.sampling.sample import sample

_NUMBERS_AT_ONCE = 2**24  # of embedded states times mini-batches, when states are scored
_MOST_AT_ONCE = 256  # mini-batches


@dataclass(frozen=True, eq=False)
class StochasticSolution:
    """The best state that was found, and what it costs in expectation."""

    x: Integer[np.ndarray, "*shape"] = field(repr=False)
    cost: float
    standard_error: float  # of the cost
    seconds: float  # of searching and choosing; neither of compilation nor of the last evaluation
    compile_seconds: float
    scores: Float[np.ndarray, " chains"] = field(repr=False)  # of the states it was chosen from
    is_complete: bool = True  # False if it was interrupted, and then less sure


@reads_user_code()
@listening()
def minimise_expected(
    key: PRNGKeyArray,
    target: StochasticTarget,
    sampler: str | Kernel,
    *,
    num_chains: int = 100,
    num_steps: int = 10_000,
    init: Integer[Array | np.ndarray, "..."] | None = None,
    num_rescoring: int = 10_000,
    num_evaluation: int = 10_000,
) -> StochasticSolution:
    """Samples, scores the chains' last states, and evaluates the best of them.

    - `sampler`: a kernel for stochastic targets with a falling temperature, such as `discrax.samplers.sgdld`.
    - `init`: states to begin with; by default those of `target.init(key, num_chains)` where it has one.
    - `num_rescoring`, `num_evaluation`: mini-batches that states are scored and the best one is evaluated with.

    Ctrl-C or SIGTERM ends the search where the chains are, and scoring after the mini-batches that were seen.
    """
    key = random.as_threefry(key)
    _check_target(target)
    _check_positive(num_steps=num_steps, num_rescoring=num_rescoring, num_evaluation=num_evaluation)
    whole("num_chains", num_chains, least=1)
    space = target.space
    needed = 40.0 * num_chains * space.num_sites * space.num_levels
    check_memory(f"A search of {num_chains:,} chains on {space.num_sites:,} sites", needed, "use fewer num_chains")
    for_search, for_rescoring, for_evaluation = random.split(key, 3)
    if init is None and hasattr(target, "init"):
        for_init, for_search = random.split(for_search, 2)
        init = target.init(for_init, num_chains)  # ty: ignore[call-non-callable]
    thinning = math.gcd(num_steps, 1000)  # nothing is kept of the chains but where they end
    with Interrupts():  # a signal that one of the three hears is for those after it, too
        result = sample(
            for_search, target, sampler,
            num_chains=num_chains, num_warmup=0, num_samples=num_steps // thinning, thinning=thinning,
            init=init, adaptation=None, progress=False,
        )  # fmt: skip
        states = np.asarray(result.states.x)
        chosen, seconds, compile_seconds = states[0], result.seconds, result.compile_seconds
        scores, is_complete = np.full(1, np.nan), result.is_complete
        if num_chains > 1:
            begin = time.perf_counter()
            found = _score(for_rescoring, target, states, num_rescoring)
            scores, is_complete = found.costs, is_complete and found.is_complete
            seconds += time.perf_counter() - begin - found.compile_seconds
            compile_seconds += found.compile_seconds
            chosen = states[np.argmin(np.nan_to_num(scores, nan=np.inf))]
        last = _score(for_evaluation, target, chosen[None], num_evaluation)
    cost, error, compile_seconds = float(last.costs[0]), float(last.errors[0]), compile_seconds + last.compile_seconds
    is_complete = is_complete and last.is_complete
    return StochasticSolution(chosen, cost, error, seconds, compile_seconds, scores, is_complete)


def expected_costs(
    key: PRNGKeyArray, target: StochasticTarget, states: Integer[Array | np.ndarray, "states *shape"], num_batches: int
) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"], float]:
    """The mean of -psi over the same mini-batches for all states, its standard errors, and seconds of compilation.

    A signal raises a KeyboardInterrupt: these are the numbers of all mini-batches, or none.
    """
    _check_target(target)
    _check_positive(num_batches=num_batches)
    found = _score(random.as_threefry(key), target, states, num_batches)
    if not found.is_complete:
        raise KeyboardInterrupt
    return found.costs, found.errors, found.compile_seconds


class _Scores(NamedTuple):
    costs: Float[np.ndarray, " states"]
    errors: Float[np.ndarray, " states"]
    compile_seconds: float
    is_complete: bool  # False if there were fewer mini-batches


def _score(
    key: PRNGKeyArray, target: StochasticTarget, states: Integer[Array | np.ndarray, "states *shape"], num_batches: int
) -> _Scores:
    """Interrupted, what the first mini-batches say: at least as many as are drawn at once."""
    states = jnp.asarray(states, target.space.dtype)
    numbers = len(states) * target.space.num_sites * target.space.num_levels
    at_once = max(1, min(_MOST_AT_ONCE, num_batches, _NUMBERS_AT_ONCE // numbers))
    first = jnp.zeros((), jnp.int32)
    program, compile_seconds = compiled(_costs, (key, target, states, first), {"count": at_once})
    pieces = []
    with Interrupts() as interrupts:
        for start in range(0, num_batches, at_once):
            if pieces and interrupts.requested:
                break
            found = program((key, target, states, jnp.asarray(start, jnp.int32)))
            pieces.append(np.asarray(found, np.float64))
    costs = np.concatenate(pieces, axis=1)[:, :num_batches]
    count = costs.shape[1]
    errors = costs.std(axis=1, ddof=1) / math.sqrt(count) if count > 1 else np.full(len(states), np.nan)
    return _Scores(costs.mean(axis=1), errors, compile_seconds, count == num_batches)


def _costs(
    key: PRNGKeyArray,
    target: StochasticTarget,
    states: Integer[Array, "states *shape"],
    start: Integer[Array, ""],
    *,
    count: int,
) -> Float[Array, "states count"]:
    """-psi of every state at the mini-batches `start` to `start + count - 1` of a key."""
    places = start + jnp.arange(count, dtype=start.dtype)
    batches = jax.vmap(lambda place: target.draw(random.fold_in(key, place), place))(places)

    def of_state(x: Integer[Array, "*shape"]) -> Float[Array, " count"]:
        e = target.space.embed(x)
        return -jax.vmap(lambda xi: target.psi(e, xi))(batches)

    return jax.lax.map(of_state, states)


@checked_arguments
def sample_average(
    target: FacilityLocation, num_scenarios: int, seconds: float, seed: int = 0, *, num_evaluation: int = 10_000
) -> StochasticSolution:
    """The best state for the mean over `num_scenarios` scenarios that HiGHS finds in so many seconds.

    In variables x_ij (is customer j given to facility i), y_i, both 0 or 1, and s_ik >= 0 for each scenario k,

        minimise    sum_i c_i y_i + sum_ij c_ij mean_k(d_jk) x_ij + mean_k sum_i g_i s_ik
        subject to  sum_i x_ij = 1   and   sum_j d_jk x_ij <= K_i y_i + s_ik.

    `seconds` limits the solver; stating the program comes on top. The state is evaluated on the mini-batches that
    `minimise_expected` uses with `jax.random.key(seed)`. Raises a TimeoutError where HiGHS has found nothing in time.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not isinstance(target, FacilityLocation):
        raise TypeError(f"sample_average is for a FacilityLocation, but got a {type(target).__name__}.")
    _check_positive(num_scenarios=num_scenarios, num_evaluation=num_evaluation)
    number("seconds", seconds, above=0)
    needed = 32.0 * num_scenarios * target.num_facilities * (target.num_customers + 2)
    check_memory(f"The program of {num_scenarios:,} scenarios", needed, "use fewer num_scenarios")
    # As `minimise_expected` splits its key.
    for_scenarios, _, for_evaluation = random.split(random.as_threefry(key_of(whole("seed", seed))), 3)
    begin = time.perf_counter()
    d = np.asarray(target._demands(for_scenarios, num_scenarios), np.float64)
    costs, matrix, low, high = _integer_program(target, d)
    num_integers = target.num_facilities * (target.num_customers + 1)
    is_integer = np.arange(len(costs)) < num_integers
    found = milp(
        costs,
        integrality=is_integer,
        bounds=Bounds(0, np.where(is_integer, 1.0, np.inf)),
        constraints=LinearConstraint(matrix, low, high),
        options={"time_limit": seconds},
    )
    taken = time.perf_counter() - begin
    if found.x is None:
        raise TimeoutError(
            f"HiGHS has found no solution with {num_scenarios} scenarios in {seconds:g} seconds: {found.message}"
        )
    at = found.x[: target.num_facilities * target.num_customers].reshape(target.num_facilities, -1)
    y = found.x[at.size : num_integers] > 0.5
    x = np.concatenate([y, at.argmax(axis=0)]).astype(target.space.dtype)
    (cost,), (error,), compiling = expected_costs(for_evaluation, target, x[None], num_evaluation)
    return StochasticSolution(x, float(cost), float(error), taken, compiling, np.array([found.fun]))


def _integer_program(target: FacilityLocation, d: Float[np.ndarray, "scenarios customers"]) -> tuple:
    """Costs, matrix, and bounds of its rows; variables are x_ij, then y_i, then s_ik, and rows j, then (k, i)."""
    from scipy import sparse

    (I, J), K = target.transport.shape, len(d)  # noqa: E741
    opening, transport, capacity, penalty = (
        np.asarray(values, np.float64) for values in (target.opening, target.transport, target.capacity, target.penalty)
    )
    costs = np.concatenate([(transport * d.mean(axis=0)).ravel(), opening, np.tile(penalty, K) / K])
    served = sparse.hstack([sparse.kron(np.ones((1, I)), sparse.eye_array(J)), sparse.csr_array((J, I + I * K))])
    loads = sparse.vstack([sparse.kron(sparse.eye_array(I), demands[None]) for demands in d])
    rooms = sparse.vstack([sparse.diags_array(-capacity)] * K)
    within = sparse.hstack([loads, rooms, -sparse.eye_array(I * K)])
    matrix = sparse.vstack([served, within], format="csc")
    low = np.concatenate([np.ones(J), np.full(I * K, -np.inf)])
    high = np.concatenate([np.ones(J), np.zeros(I * K)])
    return costs, matrix, low, high


def _check_target(target: StochasticTarget) -> None:
    if not isinstance(target, StochasticTarget):
        raise TypeError(
            f"An expected cost is that of a StochasticTarget, whose psi is minus a cost, but got a "
            f"{type(target).__name__}."
        )
    if target.in_logs or not target.is_exponential:
        raise ValueError(f"The psi of {type(target).__name__} is not minus a cost: its log_phi is not the identity.")


def _check_positive(**counts: int) -> None:
    for name, count in counts.items():
        whole(name, count, least=1)
