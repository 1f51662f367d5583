"""The search of table 4 of Rhodes and Gutmann (2022): on a law whose best radius is known, and what its error says."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.enhanced_gradient_mcmc.searches import _choice_std
from discrax.bench.papers.enhanced_gradient_mcmc.step_sizes import table04
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.printed import find_printed, printed_rows
from discrax.bench.plan.suite import Size
from discrax.bench.report.grid import make_grid
from discrax.core.kernel import Kernel, Knob, State, scalar_info

from .fake_rows import CHAINS, entry, rows
from .fake_rows import cell as labelled

PAPER = "enhanced-gradient-mcmc"


def test_every_cell_has_a_printed_number_and_nothing_is_left_out():
    found = list(table04.cells(Size.DEFAULT))
    metrics = [dict(each.measure.arguments)["metric"] for each in found]
    for each, metric in zip(found, metrics, strict=True):
        printed = find_printed(PAPER, 4, metric, dict(each.labels))
        assert printed is not None
    places = {(each.label("experiment"), each.label("sampler")) for each in found}
    assert {(row["experiment"], row["sampler"]) for row in printed_rows(PAPER, 4)} == places
    assert {each.budget.num_chains for each in found if each.label("experiment") != "conv-ebm"} == {100}
    assert all(each.budget.num_samples == 1_000 for each in found)
    assert next(table04.cells(Size.PAPER)).budget.num_chains == 100


def test_step_sizes_are_those_of_codes_zero_and_one():
    units = {each.label("experiment"): dict(each.measure.arguments).get("unit") for each in table04.cells(Size.DEFAULT)}
    assert units["ising-lattice"] == 4.0  # spins are 2 apart
    assert units["bayesian-regression"] == 1.0


def test_a_choice_is_within_print_or_not():
    labels = {"task": "tuned-step-sizes", "experiment": "ordinal-poly2"}
    found = rows({"epsilon": (0.05, 0.0)}, labelled("NCG", "", **labels))
    found += rows({"epsilon": (0.09, 0.0)}, labelled("AVG", "", **labels))  # print has 0.02
    found += rows({"radius": (15.0, 1.0 * np.sqrt(CHAINS))}, labelled("Ordinal-GWG", "", **labels))  # print has 16
    steps, radii = (make_grid(table, found) for table in table04.exhibits[:2])
    assert entry(steps, ("NCG",), "ordinal-poly2").verdict == "within"
    assert entry(steps, ("AVG",), "ordinal-poly2").side == "above"
    assert entry(radii, ("Ordinal-GWG",), "ordinal-poly2").verdict == "within"
    assert entry(steps, ("PAVG",), "conv-ebm").status == "missing"


def test_the_error_of_a_choice_is_how_much_others_would_differ():
    values, rng = np.array([1.0, 2.0, 3.0]), np.random.default_rng(0)
    noise = rng.normal(size=(3, 50))
    clear, level = np.array([[0.0], [9.0], [0.0]]) + noise, noise - noise.mean(axis=1, keepdims=True)
    assert _choice_std(values, clear) == 0
    assert _choice_std(values, level) / np.sqrt(50) > 0.5


class Toy(Kernel):
    """Jumps exp(-log(width / 20)^2) on every step, and never moves."""

    width: Float[Array, ""]

    def __init__(self, width=0.05):
        self.width = jnp.asarray(width, jnp.float32)

    def init(self, target, x):
        return State(x, jnp.zeros(()), ())

    def step(self, key, target, state):
        return state, scalar_info(0.5, True, jnp.exp(-(jnp.log(self.width / 20) ** 2)), 1, False)

    def knobs(self, target):
        return {"width": Knob(self.width, 1e-3, 1e3)}


@pytest.mark.slow
def test_the_search_finds_what_jumps_furthest_and_tells_what_it_tried():
    values = (0.05, 0.5, 5.0, 50.0, 500.0)
    cell = Cell(
        labels=(("task", "bits"), ("sampler", "toy")),
        target=call("discrax.bench.papers.optimal_scaling.targets:equal_bits", num_sites=3, prob=0.5),
        sampler=call(f"{__name__}:Toy"),
        budget=Budget(2, 0, 3),
        adaptation=None,
        measure=call(
            "discrax.bench.papers.enhanced_gradient_mcmc.searches:longest_jumps",
            knob="width", values=values, metric="epsilon", unit=4.0,
        ),
    )  # fmt: skip
    found = run_cell(cell)
    (best,) = [row for row in found if row["metric"] == "epsilon"]
    assert (best["value"], best["std"]) == (5.0, 0.0)  # 20 in units of 4
    jumps = {row["x"]: row["value"] for row in found if row["metric"] == "jump"}
    assert set(jumps) == {*values, *range(1, 10)}
    assert jumps[5.0] == pytest.approx(1)
    assert jumps[50.0] == pytest.approx(np.exp(-(np.log(10) ** 2)), rel=1e-3)
