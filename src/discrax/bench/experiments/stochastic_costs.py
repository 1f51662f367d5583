"""Stochastic costs as cells: facilities that are located before demands are known, and imprecise units in circuits.

A cell of facility location has one instance, and its measure is

    search           the cell's sampler, chains and steps: the last states are scored and the best is evaluated
    integer_program  HiGHS on the mean over a few scenarios, for so many seconds

with the numbers cost, cost_error (its standard error), time_s, and num_open, the facilities that are open. Cells with
the same target and seed are evaluated on the same demands.

A cell of circuits has many of them, and a chain in each; its measure is

    place              the units where the chains end, or those that weigh most
    best_placements    the best of all placements
    stored_placements  the set's own best ones, by the errors that it stores
    random_placements  the mean over all placements

with the number relative_error, the mean over the circuits (`instances`) in percent. Placements are compared on draws
that none of them was chosen by.
"""

import time
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Integer

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import (
    Measured,
    Number,
    Timing,
    check_complete,
    experiment,
    experiment_without_sampler,
    input_of,
    kernel_of,
    series,
)
from discrax.core import random
from discrax.core.kernel import Kernel
from discrax.data.folder import data_arrays
from discrax.problems.circuits import NUM_NODES, ApproximateCircuit
from discrax.problems.facility import FacilityLocation
from discrax.samplers import sgdld
from discrax.samplers.schedules import Geometric, Power
from discrax.sampling.together import sample_together
from discrax.solving.stochastic import StochasticSolution, minimise_expected, sample_average

_USUAL_STEPS = 10_000  # that the schedules of facility location are meant for
_ENUMERATED, _EVALUATED = 4_096, 16_384  # draws that find the best placement, and that placements are compared on


# --- Facilities ------------------------------------------------------------------------------------------------------


def library_problem(name: str, law: str, spread: float) -> FacilityLocation:
    """An instance of the OR-Library, such as "cap71", its costs over 100."""
    stored = data_arrays("facility_location/orlib_cap.npz")
    fixed, capacity, demand, cost = (stored[f"{name}_{part}"] for part in ("fixed", "cap", "demand", "cost"))
    return FacilityLocation.from_orlib(fixed / 100, capacity, demand, cost / 100, law=law, spread=spread)


def facility_sampler(hot: float, num_steps: int, cache: bool = True) -> Kernel:
    """SGDLD with h = max((1000 / (100 + t))^(1/2), 0.3) and temperatures hot * 0.999^t for 10,000 steps.

    With another number of steps time runs faster or slower, and h and temperature go through the same values.
    """
    share = num_steps / _USUAL_STEPS
    step = Power(1000.0 * share, 100.0 * share, 0.3)
    return sgdld(step_size=step, cache=cache, temperature=Geometric(hot, 0.999 ** (1 / share)))


def fast_facility_sampler(hot: float, num_steps: int) -> Kernel:
    """SGDLD with ten times the jumps a step, from 30 to 3, and temperatures from 0.3 hot that fall more slowly."""
    share = num_steps / _USUAL_STEPS
    step = Power(100_000.0 * share, 100.0 * share, 3.0)
    return sgdld(step_size=step, temperature=Geometric(0.3 * hot, 0.9994 ** (1 / share)))


def no_sampler() -> None:
    """The sampler of a cell whose measure needs none."""


@experiment
def search(cell: Cell, num_rescoring: int = 10_000, num_evaluation: int = 10_000) -> Measured:
    """The cell's sampler, from random states."""
    target: FacilityLocation = input_of(cell.target)
    found = minimise_expected(
        jax.random.key(cell.seed),
        target,
        kernel_of(cell, target),
        num_chains=cell.budget.num_chains,
        num_steps=cell.budget.num_samples,
        num_rescoring=num_rescoring,
        num_evaluation=num_evaluation,
    )
    return _facility_numbers(target, found)


@experiment_without_sampler
def integer_program(cell: Cell, num_scenarios: int, seconds: float, num_evaluation: int = 10_000) -> Measured:
    """HiGHS on a sample average."""
    target: FacilityLocation = input_of(cell.target)
    found = sample_average(target, num_scenarios, seconds, cell.seed, num_evaluation=num_evaluation)
    return _facility_numbers(target, found)


def _facility_numbers(target: FacilityLocation, found: StochasticSolution) -> Measured:
    numbers = [
        Number("cost", found.cost),
        Number("cost_error", found.standard_error),
        Number("time_s", found.seconds),
        Number("num_open", float((found.x[: target.num_facilities] == 1).sum())),
    ]
    numbers += series("score_of_chain", range(len(found.scores)), found.scores)
    return numbers, Timing(seconds=found.seconds, compile_seconds=found.compile_seconds)


# --- Circuits --------------------------------------------------------------------------------------------------------


def circuits(count: int, num_units: int, batch_size: int) -> tuple[ApproximateCircuit, ...]:
    """The first of the 499 circuits of the public set."""
    stored = data_arrays("circuits/circuits.npz")
    made = []
    for multiplies, edges in zip(stored["operation"][:count] == 1, stored["edges"][:count], strict=True):
        parents = np.full(NUM_NODES, -1)
        parents[edges[0, : NUM_NODES - 1]] = edges[1, : NUM_NODES - 1]  # the other half is the way back
        made.append(ApproximateCircuit(multiplies[side_by_side(parents)], num_units, batch_size=batch_size))
    return tuple(made)


def side_by_side(parents: Integer[np.ndarray, " nodes"]) -> Integer[np.ndarray, " nodes"]:
    """The nodes of a tree, layer by layer to the output, so that the two children of every node are neighbours."""
    layer = order = np.array([NUM_NODES - 1])
    while len(order) < NUM_NODES:
        layer = np.concatenate([np.flatnonzero(parents == node) for node in layer])
        order = np.concatenate([layer, order])
    return order


def placement_sampler(cache: bool = True, scale: float = 3.0) -> Kernel:
    """SGDLD with h = max((scale / (10 + t))^(1/2), 0.1) and temperatures 5 * 0.96^t."""
    return sgdld(step_size=Power(scale, 10.0, 0.1), cache=cache, temperature=Geometric(5.0, 0.96))


@experiment
def place(cell: Cell, solution: str = "last") -> Measured:
    """One chain a circuit with the cell's sampler and steps, all in one program; of it the last or heaviest state."""
    if solution not in ("last", "heaviest"):
        raise ValueError(f"The solution is the 'last' state or the 'heaviest', but got {solution!r}.")
    made: tuple[ApproximateCircuit, ...] = input_of(cell.target)
    keys = random.split(jax.random.key(cell.seed), 2 * len(made))
    begin = time.perf_counter()
    init = [circuit.init(key, 1) for circuit, key in zip(made, keys[len(made) :], strict=True)]
    steps: dict[str, Any] = {"num_warmup": 0, "num_samples": cell.budget.num_samples}
    samplers = [cell.sampler()] * len(made)
    results = sample_together(list(keys[: len(made)]), made, samplers, num_chains=1, init=init, **steps)
    check_complete(*results)
    seconds = time.perf_counter() - begin
    chosen = [-1 if solution == "last" else int(np.argmax(result.stats["log_weight"][0])) for result in results]
    found = [np.asarray(result.draws[0, place]) for result, place in zip(results, chosen, strict=True)]
    return _circuit_numbers(_errors(made, found), seconds)


@experiment_without_sampler
def best_placements(cell: Cell) -> Measured:
    """The best placement of each circuit, of all."""
    begin = time.perf_counter()
    made = input_of(cell.target)
    errors = _errors(made, [circuit.optimum(_ENUMERATED)[0] for circuit in made])
    return _circuit_numbers(errors, time.perf_counter() - begin)


@experiment_without_sampler
def stored_placements(cell: Cell) -> Measured:
    """The least of all errors as the set has it."""
    made = input_of(cell.target)
    column = {3: 0, 5: 1, 8: 2}[made[0].num_units]
    return _circuit_numbers(100 * data_arrays("circuits/circuits.npz")["score"][: len(made), column], 0.0)


@experiment_without_sampler
def random_placements(cell: Cell) -> Measured:
    """The mean over all placements of each circuit."""
    begin = time.perf_counter()
    made = input_of(cell.target)
    errors = [circuit.expected_errors(circuit.placements(), _ENUMERATED).mean() for circuit in made]
    return _circuit_numbers(np.array(errors), time.perf_counter() - begin)


def _errors(
    made: tuple[ApproximateCircuit, ...], placements: list[Integer[np.ndarray, " units"]]
) -> Float[np.ndarray, " circuits"]:
    pairs = zip(made, placements, strict=True)
    return np.array([circuit.expected_errors(x[None], _EVALUATED, seed=1)[0] for circuit, x in pairs])


def _circuit_numbers(errors: Float[np.ndarray, " circuits"], seconds: float) -> Measured:
    numbers = [
        Number("relative_error", float(errors.mean()), float(errors.std())),
        Number("instances", float(len(errors))),
        Number("time_s", seconds),
    ]
    return numbers, Timing(seconds=seconds)
