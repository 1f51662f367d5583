"""The statistics of sampling cells: references, lengths, what a step is charged, and its seconds."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.sparse

import discrax as dx
from discrax.bench.execute import cells as execute
from discrax.bench.execute import stages, timing
from discrax.bench.execute.cells import run_cells
from discrax.bench.experiments.ess import LONG_ENOUGH, mix, mixing, scalars
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.core.kernel import Info, State
from discrax.sampling.together import run_after, sample_on

HERE = __file__


def make_cell(**changes) -> Cell:
    fields = {
        "labels": (("task", "bernoulli"), ("sampler", "RWM")),
        "target": call("discrax.bench.experiments.models:bernoulli", num_sites=12, low=0.2),
        "sampler": call("discrax.samplers:rwm"),
        "budget": Budget(6, 20, 400),
        "adaptation": None,
    }
    return Cell(**(fields | changes))


def numbers_of(rows) -> dict[str, float]:
    assert all(row["error"] is None for row in rows), rows[0]["error"]
    return {row["metric"]: row["value"] for row in rows}


def of_draws(kept, thinning=1):
    """As much of a result as a measure reads."""
    return SimpleNamespace(kept=kept, num_draws=kept.shape[1], thinning=thinning)


# --- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "levels", "kind"), [((9,), 2, np.int8), ((8, 20), 2, np.int16), ((9,), 5, np.int8)])
def test_distances_are_to_the_references(shape, levels, kind):
    x = np.random.default_rng(1).integers(0, levels, shape).astype(np.int8)
    references = np.random.default_rng(0).integers(0, levels, (30, x.size))
    found = scalars("distance", shape, levels)(x)
    assert found.tolist() == np.abs(x.reshape(-1) - references).sum(axis=1).tolist()
    assert found.dtype == kind
    assert len({tuple(each) for each in references}) == 30


def slow_spins(num_draws=2_000, num_chains=10, sites=64, stays=0.98):
    """Independent spins whose common sign turns now and then: references of nearly balanced signs do not see it."""
    rng = np.random.default_rng(3)
    turns = np.cumsum(rng.random((num_chains, num_draws, 1)) > stays, axis=1) % 2
    return (turns ^ (rng.random((num_chains, num_draws, sites)) < 0.2)).astype(np.int8)


def test_one_reference_decides_nothing():
    """The mean over thirty references is that over others within its error; of single ones most are far away."""
    draws = slow_spins()
    distances = jax.jit(jax.vmap(jax.vmap(scalars("distance", (64,), 2, 230))))(draws)
    found = mix(of_draws(draws), np.asarray(distances), "first_negative").per_step.mean(axis=0)
    few, others = found[:30], found[30:].mean()
    error = few.std(ddof=1) / np.sqrt(30)
    assert abs(few.mean() - others) < 3 * error < 0.6 * others
    assert np.mean(np.abs(found - others) < 0.3 * others) < 0.5  # the broken twin


def test_rows_tell_how_references_differ():
    found = numbers_of(run_cells([make_cell(budget=Budget(6, 20, 40))])[0])
    assert found["num_references"] == 30
    assert 0 < found["ESS_reference_std"] < found["ESS_per_step"]
    by_sum = make_cell(budget=Budget(6, 20, 40), measure=call("discrax.bench.experiments.ess:mixing", statistic="sum"))
    assert "ESS_reference_std" not in numbers_of(run_cells([by_sum])[0])


# --- length ----------------------------------------------------------------------------------------------------------


def test_more_draws_are_those_of_a_longer_run():
    target, settings = dx.targets.Ising.lattice((3, 3), 0.3), {"num_chains": 3, "num_warmup": 0, "adaptation": None}
    key, kernel = jax.random.key(4), dx.samplers.gibbs("systematic")  # which remembers where its scan is
    whole = dx.sample(key, target, kernel, num_samples=40, progress=False, **settings)
    first = dx.sample(key, target, kernel, num_samples=10, progress=False, **settings)
    (more,) = sample_on([key], [first], num_done=10, num_samples=15, thinning=2)
    np.testing.assert_array_equal(more.draws, whole.draws[:, 11::2])


@pytest.mark.slow
def test_chains_that_are_too_short_say_so(monkeypatch):
    monkeypatch.setattr(stages, "FIRST", 40)
    short, long = (numbers_of(run_cells([make_cell(budget=Budget(6, 20, most))])[0]) for most in (40, 40_000))
    assert (short["is_long_enough"], short["num_steps"], short["ended_by_error"]) == (0, 40, 0)
    assert short["autocorrelation_times"] < LONG_ENOUGH
    assert (long["is_long_enough"], long["ended_by_error"]) == (1, 1)
    assert long["ESS_relative_error"] <= 0.03
    assert 40 < long["num_steps"] < 40_000  # it ended when it had enough
    assert 1.001 * long["ESS_per_step"] * long["num_steps"] >= long["autocorrelation_times"] >= LONG_ENOUGH


def test_without_an_error_a_cell_has_its_whole_budget(monkeypatch):
    monkeypatch.setattr(stages, "FIRST", 40)
    monkeypatch.setattr(stages, "MOST", 40)
    cell = make_cell(budget=Budget(6, 20, 4_000))
    whole = replace(cell, measure=call("discrax.bench.experiments.ess:mixing", error=None))
    short, found = (numbers_of(run_cells([each])[0]) for each in (cell, whole))
    assert short["num_steps"] < 4_000  # of chains that mix well
    assert (found["num_steps"], found["ended_by_error"]) == (4_000, 0)


def test_chains_that_disagree_are_too_short():
    """Each mixes by itself, but around a mean of its own."""
    rng = np.random.default_rng(0)
    together = rng.normal(size=(8, 1_000))
    apart = together + 3 * np.arange(8)[:, None]
    assert mix(of_draws(together), together, "first_negative").is_long_enough
    found = mix(of_draws(apart), apart, "first_negative")
    assert found.per_step.mean() * 1_000 > LONG_ENOUGH > found.autocorrelation_times


def with_a_slow_part(num_draws, num_chains=200, share=0.3, phi=0.97):
    """Independent draws, but for a part of their variance that decays by `phi`, and the ESS of a draw."""
    rng = np.random.default_rng(1)
    slow = rng.normal(size=num_chains)
    values = rng.normal(size=(num_chains, num_draws)) * np.sqrt(1 - share)
    for t in range(num_draws):
        values[:, t] += np.sqrt(share) * slow
        slow = phi * slow + np.sqrt(1 - phi**2) * rng.normal(size=num_chains)
    return values, 1 / (1 + 2 * share * phi / (1 - phi))


def test_short_chains_overstate_what_is_slow_and_their_halves_tell():
    values, exact = with_a_slow_part(60_000, num_chains=100)
    short = mix(of_draws(values[:, :4_000]), values[:, :4_000].copy(), "first_negative")
    assert short.per_step.mean() > 1.05 * exact
    assert short.is_long_enough
    assert short.overstated > 0.05
    assert not short.is_known(max(0.05, short.relative_error))
    long = mix(of_draws(values), values, "first_negative")
    assert long.per_step.mean() == pytest.approx(exact, rel=0.03)
    assert long.overstated < 0.03
    assert long.is_known(0.03)


@pytest.mark.parametrize("rule", ["first_negative", "positive_pairs"])
@pytest.mark.parametrize("num_draws", [2, 301, 400])
@pytest.mark.parametrize("kind", [np.int16, np.int8, np.float32])
def test_an_accelerator_has_the_statistics_of_the_host(rule, num_draws, kind, monkeypatch):
    stuck = np.arange(6)[:, None] * np.ones((6, num_draws)) / 9
    values = 9 * np.stack([with_a_slow_part(num_draws, 6)[0], stuck], axis=-1) + 100
    values = np.clip(values, -127, 127).astype(kind)
    host = mix(of_draws(values), values, rule)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = mix(of_draws(values), values.copy(), rule)
    np.testing.assert_allclose(found.per_step, host.per_step, rtol=2e-4)
    assert found.autocorrelation_times == pytest.approx(host.autocorrelation_times, rel=2e-4)
    assert found.overstated == pytest.approx(host.overstated, abs=2e-4)
    assert (host.per_step[:, 1] == 0).all()


def test_a_long_chain_that_never_moves_tells_nothing():
    """The mean of its values, as single precision has it, is another value."""
    stuck = np.full((4, 80_001), 0.1, np.float32)
    stuck[0] = 0
    assert (mix(of_draws(stuck), stuck, "first_negative").per_step == 0).all()


@pytest.mark.slow
def test_thinning_changes_what_is_kept_and_no_number_per_step(monkeypatch):
    """A budget that cannot be enough: in several stages, thinned on the way, or in one."""
    slow = call("discrax.bench.experiments.models:bernoulli", num_sites=60, low=0.2)
    never = call("discrax.bench.experiments.ess:mixing", error=1e-9)
    cell = make_cell(target=slow, budget=Budget(6, 0, 6_400), measure=never)
    monkeypatch.setattr(stages, "MOST", 100_000)
    monkeypatch.setattr(stages, "FIRST", 6_400)
    whole = numbers_of(run_cells([cell])[0])
    monkeypatch.setattr(stages, "MOST", 1_600)
    monkeypatch.setattr(stages, "FIRST", 160)
    thinned = numbers_of(run_cells([cell])[0])
    assert thinned["num_steps"] == whole["num_steps"] == 6_400
    for name in ("EJD", "acceptance", "evals_per_step", "queries_per_step"):
        assert thinned[name] == pytest.approx(whole[name], rel=1e-5), name
    assert whole["ESS_per_step"] < 0.1
    assert thinned["ESS_per_step"] == pytest.approx(whole["ESS_per_step"], rel=0.05)


@pytest.mark.parametrize(
    ("budget", "most", "wanted"),
    [(255, 640, 255), (637, 640, 637), (250, 160, 240), (800, 160, 800), (1_003, 320, 992)],
)
def test_the_last_stage_takes_what_is_left_of_the_budget(monkeypatch, budget, most, wanted):
    """Stages of 160, 160 and 320 draws, from `most` draws on of sixteen steps each; less than a draw is left."""
    monkeypatch.setattr(stages, "FIRST", 160)
    monkeypatch.setattr(stages, "MOST", most)
    cell = make_cell(budget=Budget(6, 0, budget))
    (result,) = stages.sample_cells([cell], never_enough(), lambda *_: None)
    assert result.num_draws * result.thinning == wanted > budget - result.thinning
    assert result.kept.shape[1] == result.num_draws


def never_enough():
    return mixing()._replace(has_enough=lambda result: False, can_thin=lambda result, every: True)


def lock_and_free_spins():
    """Eight spins that never part, so that chains stay in the mode that they began in, and forty free ones."""
    couplings = np.zeros((48, 48))
    couplings[range(7), range(1, 8)] = couplings[range(1, 8), range(7)] = 8.0
    return dx.targets.Ising.graph(scipy.sparse.csr_array(couplings))


def test_modes_do_not_make_chains_look_slow_that_are_fast_in_each(monkeypatch):
    """Every step of Gibbs draws all free spins anew: 1 a step, which of every sixteenth draw would be at most 1/16."""
    monkeypatch.setattr(stages, "FIRST", 400)
    monkeypatch.setattr(stages, "MOST", 400)
    cell = make_cell(
        target=call(f"{HERE}:lock_and_free_spins"), budget=Budget(8, 50, 6_400),
        sampler=call("discrax.samplers:gibbs", scan="chromatic"), measure=call("discrax.bench.experiments.ess:mixing"),
    )  # fmt: skip
    found = numbers_of(run_cells([cell])[0])
    assert not found["is_long_enough"]
    assert found["ESS_per_step"] > 0.7


def bits(p):
    return dx.targets.Bernoulli(np.full(4, p))


def till_many_or_ones():
    """Two hundred draws are enough, and fewer where most bits are one."""
    measure = mixing("sum")
    return measure._replace(has_enough=lambda result: result.num_draws >= 200 or result.kept.mean() > 2)


@pytest.mark.slow
def test_together_each_ends_when_it_has_enough(monkeypatch):
    monkeypatch.setattr(stages, "FIRST", 40)
    shared = {"measure": call(f"{HERE}:till_many_or_ones"), "budget": Budget(6, 20, 1_600)}
    cells = [make_cell(target=call(f"{HERE}:bits", p=p), **shared) for p in (0.2, 0.8, 0.9)]
    together = [numbers_of(rows) for rows in run_cells(cells)]
    assert [each["num_steps"] for each in together] == [320, 40, 40]
    alone = [numbers_of(run_cells([cell])[0]) for cell in cells[:2]]
    for name in ("num_steps", "EJD", "ESS_per_step", "autocorrelation_times", "is_long_enough"):
        assert [each[name] for each in together[:2]] == pytest.approx([each[name] for each in alone]), name


# --- what a step is charged ------------------------------------------------------------------------------------------


class Seven(dx.samplers.rwm):
    """A random walk that says that it asks for log pi seven times a step."""

    def step(self, key, target, state) -> tuple[State, Info]:
        after, info = super().step(key, target, state)
        return after, info._replace(evals=7 * info.evals)


class SevenGradients(dx.samplers.gwg):
    """Gibbs with gradients that says the same."""

    def step(self, key, target, state) -> tuple[State, Info]:
        after, info = super().step(key, target, state)
        return after, info._replace(evals=7 * info.evals)


@pytest.mark.slow
def test_a_step_is_charged_what_it_says(monkeypatch):
    """Besides its seven it is charged the state where it was, as ours are; twice, where each has a gradient."""
    monkeypatch.setattr(stages, "FIRST", 40)
    charged = {}
    for name in ("Seven", "SevenGradients"):
        cell = make_cell(sampler=call(f"{HERE}:{name}"), budget=Budget(2, 0, 100, thinning=2))
        charged[name] = numbers_of(run_cells([cell])[0])
    assert [each["evals_per_step"] for each in charged.values()] == [7, 7]
    assert [each["queries_per_step"] for each in charged.values()] == [8, 16]
    for each in charged.values():
        assert each["ESS_n"] == pytest.approx(1e4 * each["ESS_per_step"] / each["queries_per_step"])


# --- seconds ---------------------------------------------------------------------------------------------------------


def half_a_second(run) -> float:
    return 0.5


def test_seconds_are_those_of_steps_alone(monkeypatch):
    asked = []

    def seconds_per_step(run):
        asked.append((run.x.shape[0], int(run.ensemble.step)))
        return 0.5

    monkeypatch.setattr(execute, "seconds_per_step", seconds_per_step)
    monkeypatch.setattr(stages, "FIRST", 40)
    cells = [make_cell(is_timed=is_timed, seed=seed, budget=Budget(6, 20, 50)) for seed, is_timed in enumerate((1, 0))]
    timed, untimed = (numbers_of(rows) for rows in run_cells(cells))
    assert asked == [(6, 70)]
    assert timed["microseconds_per_step"] == 5e5
    assert timed["ESS_t"] == pytest.approx(2 * timed["ESS_per_step"])
    assert untimed["microseconds_per_step"] < 5e5


def test_cells_put_aside_have_the_rows_of_those_that_are_timed_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr(execute, "seconds_per_step", half_a_second)
    monkeypatch.setattr(timing, "seconds_per_step", half_a_second)
    measure = call("discrax.bench.experiments.ess:mixing", per_chain=True)
    cells = [make_cell(is_timed=True, seed=seed, budget=Budget(6, 20, 50), measure=measure) for seed in range(2)]
    at_once = run_cells(cells, tmp_path)
    assert timing.cells_aside(tmp_path, cells) == []
    assert run_cells(cells, tmp_path, times=False) == [[], []]
    assert timing.cells_aside(tmp_path, cells) == cells
    (group,) = timing.seeds_apart(cells)
    later = timing.time_cells(tmp_path, group)
    for before, after in zip(at_once, later, strict=True):
        assert [row["metric"] for row in before] == [row["metric"] for row in after]
        for name in ("value", "std", "x"):
            assert [row[name] for row in after] == pytest.approx([row[name] for row in before], nan_ok=True)


def test_what_another_program_put_aside_is_measured_again(monkeypatch, tmp_path):
    cell = make_cell(is_timed=True, budget=Budget(6, 20, 50))
    run_cells([cell], tmp_path, times=False)
    monkeypatch.setattr(timing, "program_of", lambda cell: "another")
    assert timing.cells_aside(tmp_path, [cell]) == []
    assert timing.cells_aside(tmp_path, [cell], of_any_program=True) == [cell]
    (tmp_path / timing.UNTIMED / cell.id).write_bytes(b"half")
    assert timing.cells_aside(tmp_path, [cell]) == []


@pytest.mark.parametrize("name", sorted(dx.samplers.REGISTRY))
def test_kernels_can_be_put_aside(name, tmp_path):
    cell, kernel = make_cell(is_timed=True), dx.samplers.get_sampler(name).build()
    timing.set_aside(tmp_path, cell, [], kernel)
    assert timing.cells_aside(tmp_path, [cell]) == [cell]


def test_the_best_of_three_counts_and_the_first_does_not(monkeypatch):
    left = [100.0, 0.06, *(0.06, 0.06), *(0.04, 0.03), *(0.9, 0.1)]

    def steps(length, chunk):
        return [SimpleNamespace(run=run, seconds=left.pop(0))]

    run = SimpleNamespace(steps=steps, target=dx.targets.Bernoulli(np.full(10, 0.5)), x=np.zeros((4, 10)))
    assert timing.seconds_per_step(run) == pytest.approx(0.07 / 2 / timing._MOST)
    assert not left


def test_a_step_takes_time():
    cell = make_cell(budget=Budget(2, 0, 30))
    (result,) = stages.sample_cells([cell], mixing(), lambda *_: None)
    before = replace(result).states.x
    assert timing.seconds_per_step(run_after(jax.random.key(0), result, 30)) > 0
    np.testing.assert_array_equal(result.states.x, before)
