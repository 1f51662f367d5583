"""The any-scale paper's own rules: Algorithm 3, and chains that are adapted from the first step to the last."""

import jax
import jax.numpy as jnp
import pytest

import discrax as dx
from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.any_scale import kernels, readings, sampling
from discrax.bench.papers.rules import PaperProbes
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.printed import printed_rows
from discrax.bench.plan.suite import Size
from discrax.bench.report.grid import make_grid
from repeats import repeats

from .fake_rows import cell as fake_cell
from .fake_rows import entry
from .fake_rows import rows as fake_rows

pytestmark = pytest.mark.optimised  # steps of many sites take longer than compiling them


class Sinks(PaperProbes):
    """A broken twin: where nothing moved it goes down, whatever the reason."""

    def judge(self, plan, score, goes_up, limits):
        return super().judge(plan, score, jnp.asarray(False), limits)


def sigma_after(rule: PaperProbes, task: str, value: str) -> float:
    """Of six rounds on a target of the suite."""
    target, kernel = sampling.target(task, value)(), dx.samplers.ab_first(ratios="gradient")
    settings = {"num_chains": 4, "num_warmup": 3_600, "num_samples": 2, "progress": False}
    return float(dx.sample(jax.random.key(0), target, kernel, adaptation=rule, **settings).kernel.sigma)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "value"), repeats([("grid-ising", "0.4407")], [("grid-ising", "0.4407"), ("ba4-ising", "0.7071")])
)
def test_algorithm_3_leaves_a_start_from_which_nothing_is_proposed(task, value):
    assert sigma_after(PaperProbes(), task, value) == pytest.approx(0.1 * 1.2**6, rel=0.25)


@pytest.mark.slow
def test_a_twin_that_goes_down_there_never_moves():
    with pytest.raises(ValueError, match="nothing was proposed"):
        sigma_after(Sinks(), "grid-ising", "0.4407")


def test_its_window_is_that_of_print():
    kernel = dx.samplers.ab_first()
    rule = PaperProbes().plan(sampling.target("grid-ising", "0.3000")(), kernel, 20_000)
    assert (rule.window, rule.num_windows) == (100, 200)


class TooWarm(kernels.EachAlone):
    """A broken twin: it accepts as if the target were twice as warm."""

    def step(self, key, target, state):
        return super().step(key, dx.Tempered(target, 0.5), state)


@pytest.mark.slow
def test_a_walk_that_moves_each_site_alone_is_exact():
    target = dx.targets.Ising.lattice((2, 3), 0.4, 0.2)
    assert dx.exact.check_kernel(kernels.EachAlone(1.5), target, num_chains=20_000)
    assert not dx.exact.check_kernel(TooWarm(1.5), target, num_chains=20_000)


def test_a_walk_that_moves_each_site_alone_moves_as_many_on_average():
    target = dx.targets.Ising.lattice((20, 20), 0.0)
    result = dx.sample(jax.random.key(0), target, kernels.EachAlone(5.0), num_chains=4, num_warmup=0, num_samples=500,
                       adaptation=None, progress=False)  # fmt: skip
    jumps = result.stats["jump"]
    assert jumps.mean() == pytest.approx(5.0, rel=0.05)
    assert jumps.std() == pytest.approx(5.0**0.5, rel=0.1)


def test_readings_stand_beside_the_rows_of_print_that_they_are_readings_of():
    found = []
    for sampler, value in (("DLP", 100.0), ("Gibbs", 5.0), ("Gibbs (in turn)", 9.0)):
        made = fake_cell(sampler, "", task="ba2-ising", J="0.3000")
        found += fake_rows({"ESS_n": (value, 1.0)}, made)
    whole, choices, *_ = (make_grid(each, found) for each in readings.readings.exhibits)
    assert (entry(whole, ("LB",), "0.3000").ours, entry(whole, ("LB",), "0.3000").paper) == (100.0, 117.06)
    assert entry(whole, ("Gibbs",), "0.3000").ours == 5.0
    assert entry(choices, ("Gibbs",), "0.3000").ours == 9.0
    assert {each.is_reading for each in readings.readings.exhibits} == {True}


def small_cell(sampler: str) -> Cell:
    return Cell(
        labels=(("task", "small"), ("sampler", sampler)),
        target=call("discrax.targets:LatticeGaussian.rotation", seed=0, dimension=6, condition=4.0, centre=10.0),
        budget=Budget(4, 1_300, 700),
        **sampling.printed_rows(Size.QUICK, ordinal=True)[sampler],
    )


@pytest.mark.slow
def test_a_chain_that_is_adapted_throughout():
    found = {row["metric"]: row["value"] for row in run_cell(small_cell("AB-trace"))}
    assert found["burn_in_sites_moved"] == 6
    assert found["sigma"] > 0.1
    assert found["ESS_n"] == pytest.approx(1e4 * found["ESS_per_step"] / 4)
    assert found["num_steps"] == 700
    assert "ESS_t" not in found


def test_rows_as_printed():
    cells = list(sampling.quadratic("rotation-gaussian", "10", Size.PAPER))
    made = {cell.label("sampler"): dict(cell.sampler.arguments) for cell in cells}
    printed = {row["sampler"] for row in printed_rows("any-scale", 1)}
    assert printed <= set(made)
    assert made["Gibbs"] == {"scan": "systematic"}
    for name in printed - {"Gibbs", "RW"}:
        assert made[name]["ratios"] == "gradient"
        assert "ratios" not in made[f"{name} (ours)"]
    assert made["AB-max"]["ties"] == "none"
    assert {cell.budget for cell in cells} == {Budget(100, 20_000, 80_000)}
    frozen = [cell for cell in cells if cell.measure.address.endswith(":mixing")]
    assert len(frozen) == 11
    assert all(dict(cell.measure.arguments)["error"] is None for cell in frozen)  # none ends before its budget does
