"""Cells that train: small versions of the suites of energy models."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import samplers, targets
from discrax.bench.execute import cells as measure
from discrax.bench.experiments import data, training
from discrax.bench.papers.any_scale import energy_models as any_scale_energy
from discrax.bench.papers.discs import energy_models as discs_energy
from discrax.bench.papers.enhanced_gradient_mcmc import convolutional, couplings
from discrax.bench.papers.enhanced_gradient_mcmc import energy_models as enhanced_learning
from discrax.bench.papers.optimal_scaling import energy_models as optimal_scaling_learning
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.printed import printed_rows
from discrax.bench.plan.suite import Size, Suite, Table, find
from discrax.bench.report import plots
from discrax.bench.report.grid import make_grid
from discrax.core.space import Binary
from discrax.data.folder import VARIABLE
from discrax.learn.checkpoints import TrainingFolder
from discrax.learn.models import NetworkModel

from .fake_rows import cell as fake_cell
from .fake_rows import rows as fake_rows

SUITES = (
    "enhanced-gradient-mcmc/table01", "enhanced-gradient-mcmc/figure07", "enhanced-gradient-mcmc/table02",
    "enhanced-gradient-mcmc/figure13", "enhanced-gradient-mcmc/figure15", "optimal-scaling/table02",
    "discs/figure05", "discs/figure06", "discs/figure17",
    "any-scale/figure04",
)  # fmt: skip
TINY = call(
    "discrax.bench.experiments.training:trained_resnet",
    data="digits", width=2, num_blocks=1, num_updates=2, num_steps=1, learning_rate=1e-3, buffer_size=100,
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(data.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


def single(rows):
    assert {row["status"] for row in rows} == {"ok"}, rows[0]["error"]
    return {row["metric"]: row["value"] for row in rows if row["x"] is None}


# --- Suites ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUITES)
def test_cells_are_plain_values(name, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)  # nothing is read or built
    (found,) = find(name)
    assert isinstance(found, Suite)
    for size in Size:
        cells = list(found.cells(size))
        assert len({cell.id for cell in cells}) == len(cells)
        assert len({(cell.labels, cell.seed) for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    ("suite", "paper", "number", "metric"),
    [
        (enhanced_learning.table01, "enhanced-gradient-mcmc", 1, "J_estimation_error"),
        (enhanced_learning.table02, "enhanced-gradient-mcmc", 2, "J_estimation_error"),
    ],
)
def test_every_printed_number_has_a_cell_with_the_printed_steps(suite, paper, number, metric):
    cells = {(cell.label("sampler"), cell.label("K")): cell for cell in suite.cells(Size.PAPER)}
    for row in printed_rows(paper, number):
        cell = cells[row["sampler"], row["K"]]
        assert cell.budget.thinning == int(row["mcmc_steps_used"])
        assert cell.label("task") == row["task"]
        assert row["metric"] == metric


def test_printed_data_sets_and_samplers_have_cells():
    cells = list(optimal_scaling_learning.table02.cells(Size.PAPER))
    ours = {(cell.label("dataset"), cell.label("sampler"), cell.label("weight_fn")) for cell in cells}
    printed = {(row["dataset"], row["sampler"], row["weight_fn"]) for row in printed_rows("optimal-scaling", 2)}
    assert {each for each in ours if "(our rule)" not in each[1]} == printed
    assert len(ours) == len(printed) + 8  # tuned by our rule: two weights on four data sets


def test_a_missing_data_set_is_a_sentence(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    training.image_set.cache_clear()
    for suite in (enhanced_learning.table02, optimal_scaling_learning.table02, discs_energy.figure06,
                  any_scale_energy.figure04):  # fmt: skip
        (row,) = measure.run_cell(next(iter(suite.cells(Size.DEFAULT))))
        assert row["status"] == "failed"
        assert "This needs the data set" in row["error"]


# --- Couplings -------------------------------------------------------------------------------------------------------


def lattice(sampler, *, steps=2, adaptation=None, seed=0, updates=40):
    return Cell(
        (("sampler", "s"),),
        call(
            "discrax.bench.papers.enhanced_gradient_mcmc.couplings:ising_lattice", side=4, strength=0.15, num_rows=1000
        ),
        sampler,
        Budget(100, 0, updates, steps),
        seed=seed,
        adaptation=adaptation,
        measure=call(
            "discrax.bench.papers.enhanced_gradient_mcmc.couplings:estimation",
            learning_rate=5e-3,
            l1=0.01,
            buffer_size=200,
        ),
        is_timed=True,
    )


@pytest.mark.slow
def test_data_of_the_lattice_are_samples():
    known = couplings.ising_lattice(side=4, strength=0.15, num_rows=1000)
    assert known.rows.shape == (1000, 16)
    J = known.couplings
    assert J.sum(axis=0) == pytest.approx(0.6)
    assert (J == J.T).all()
    # Two neighbours of a periodic 4 x 4 lattice with coupling 0.3: their mean product, by summing all states.
    states = 1 - 2.0 * ((np.arange(2**16)[:, None] >> np.arange(16)) & 1)
    log_prob = np.einsum("si,ij,sj->s", states, J, states)
    weights = np.exp(log_prob - log_prob.max())
    exact = (weights * states[:, 0] * states[:, 1]).sum() / weights.sum()
    spins = 2.0 * known.rows - 1
    pairs = np.array([(spins[:, i] * spins[:, j]).mean() for i, j in np.argwhere(np.triu(J))])
    assert pairs.mean() == pytest.approx(exact, abs=0.03)


@pytest.mark.slow
def test_the_lattice_is_learnt():
    cell = lattice(call("discrax.samplers:dmala", step_size=2.0))
    learnt = single(measure.run_cell(cell))
    known = cell.target()
    before = np.asarray(known.part(known.untrained(0))) / 2
    assert np.linalg.norm(before - known.couplings) / 4 > 0.28  # ||J*||_F / 4 = 0.3
    assert learnt["J_estimation_error"] < 0.21
    assert learnt["num_updates"] == 40
    assert abs(learnt["mmd"]) < 0.02


class Killed(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


@pytest.mark.slow
def test_training_that_is_killed_goes_on(tmp_path, monkeypatch):
    cell = lattice(call("discrax.samplers:dmala", step_size=2.0))
    monkeypatch.setattr(training, "_LONG", 0)
    whole = measure.run_cell(cell, tmp_path / "whole")
    original, updates = TrainingFolder.save, []

    def save(self, state, curves):
        updates.append(int(state.update))
        original(self, state, curves)
        if updates == [10, 20]:
            raise Killed

    monkeypatch.setattr(TrainingFolder, "save", save)
    with pytest.raises(Killed):
        measure.run_cell(cell, tmp_path / "killed")
    again = measure.run_cell(cell, tmp_path / "killed")
    assert updates[:3] == [10, 20, 30]
    before, after = (
        {(row["metric"], row["x"]): row["value"] for row in rows if row["metric"] != "time_s"}
        for rows in (whole, again)
    )
    assert before == after


def test_pavg_follows_the_model_and_is_always_accepted():
    numbers = single(
        measure.run_cell(lattice(call("discrax.bench.papers.enhanced_gradient_mcmc.couplings:pavg_of_model")))
    )
    assert numbers["acceptance"] > 0.98
    assert numbers["J_estimation_error"] < 0.17


def test_pavg_of_data_is_in_units_of_codes():
    known = couplings.ising_lattice(side=4, strength=0.15, num_rows=1000)
    kernel = couplings.pavg_of_data(0.2).kernel(known)
    assert float(kernel.step_size) == pytest.approx(0.8)  # on spins
    assert float(kernel.metric.values.sum()) == pytest.approx(np.cov(known.rows.T).trace() / 4, rel=1e-4)


@pytest.mark.slow
def test_pavg_of_data_learns():
    cell = lattice(
        call("discrax.bench.papers.enhanced_gradient_mcmc.couplings:pavg_of_data", step_size=0.2),
        adaptation=call("discrax.bench.papers.rules:GammaRule", window=10),
    )
    numbers = single(measure.run_cell(cell))
    assert 0 < numbers["acceptance"] < 1
    assert numbers["J_estimation_error"] < 0.28


def test_seeds_become_a_mean_with_a_spread():
    found = []
    for seed, error in enumerate((1.0, 3.0)):
        of = fake_cell("NCG", "", seed=seed, task="ising-lattice-pcd", K=5)
        found += fake_rows({"J_estimation_error": error}, of)
    (table,) = (each for each in enhanced_learning.table01.exhibits if isinstance(each, Table))
    grid = make_grid(table, found)
    line = next(line for line in grid.lines if line.head == ("NCG",))
    entry = line.entries[grid.columns.index(("5",))]
    assert (entry.ours, entry.std, entry.paper) == (2.0, pytest.approx(2**0.5), 0.117)
    assert entry.ratio == pytest.approx(0.117 / 2)


def test_errors_relative_to_the_usual_step_size():
    cells = {m: fake_cell("NCG", "", task="ising-lattice-pcd", K=10, multiplier=m) for m in ("0.1", "1")}
    found = [row for m, e in (("0.1", 0.3), ("1", 0.2)) for row in fake_rows({"J_estimation_error": e}, cells[m])]
    assert [row["value"] for row in enhanced_learning._relative(found)] == pytest.approx([1.5, 1.0])


def test_a_learnt_network_keeps_what_is_not_trained():
    """Stage three of the convolutional network: only the couplings change."""
    model = NetworkModel(
        lambda image: jnp.sum(image), Binary((2, 2)), bias=np.ones((2, 2)), couplings=0.1 * (1 - np.eye(4))
    )
    truth = np.asarray(model.couplings)
    known = couplings.Known(
        truth, np.zeros((50, 2, 2), np.int8), lambda seed: model, convolutional.network_couplings, factor=1.0
    )
    trained = training.train_cell(
        lattice(None, updates=3), known.untrained(0), known.rows, sampler="gibbs", trains=known.part, buffer_size=100
    )
    assert (np.asarray(trained.model.bias) == 1).all()
    assert not np.allclose(np.asarray(trained.model.couplings), truth)


# --- Likelihoods ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_likelihood_of_a_trained_network():
    cell = Cell(
        (("sampler", "s"),),
        call("discrax.bench.experiments.training:image_set", name="digits"),
        call("discrax.samplers:pas"),
        Budget(100, 0, 2, 1),
        adaptation=None,
        measure=call(
            "discrax.bench.experiments.training:likelihood",
            width=2, num_blocks=1, learning_rate=1e-3, num_growing=10, variance=2.0, buffer_size=100,
            num_temperatures=20,
        ),
    )  # fmt: skip
    numbers = single(measure.run_cell(cell))
    # An untrained network is little more than independent pixels.
    images = training.image_set("digits")
    p = np.clip(images.mean * 0.98 + 0.01, 1e-9, 1)
    independent = (images.test * np.log(p) + (1 - images.test) * np.log1p(-p)).sum(axis=(1, 2)).mean()
    assert numbers["log_likelihood"] == pytest.approx(independent, abs=1.0)
    assert numbers["diverged"] == 0


# --- Chains on networks ----------------------------------------------------------------------------------------------


# Stands for a network on 8 x 8 pixels, and compiles faster.
EIGHT = call("discrax.bench.papers.any_scale.targets:ising_grid", side=8, coupling=0.2)


def chains_cell(measured, budget, sampler, target=EIGHT):
    return Cell((("dataset", "digits"), ("sampler", "s")), target, sampler, budget, measure=call(measured))


@pytest.mark.slow
def test_snapshots_come_back_as_pictures():
    cell = chains_cell(
        "discrax.bench.experiments.training:snapshots", Budget(6, 0, 3, 4), call("discrax.samplers:rwm"), TINY
    )
    rows = measure.run_cell(cell)
    numbers = single(rows)
    assert (numbers["pixels_snapshots"], numbers["pixels_shown"], numbers["pixels_every"]) == (3, 6, 4)
    assert [row["x"] for row in rows if row["metric"] == "log_prob"] == [4, 8, 12]
    for row in rows:
        row["labels"] = dict(cell.labels)
    figure = plots.draw("pictures", rows, {"hue": ("dataset", "sampler")})
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["digits s"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["4", "8", "12"]


def test_pixels_are_bits():
    shots = np.random.default_rng(0).integers(0, 2, (2, 3, 5, 4)).astype(np.int8)
    numbers = training.pixels(shots, 10)
    shape = {number.metric: int(number.value) for number in numbers if number.x is None}
    lines = np.array([int(number.value) for number in numbers if number.x is not None])
    sheet = plots._sheet(lines, shape)
    shown = sheet[2:-2, 2:-2]
    assert (shown[:5, :4] == shots[0, 0]).all()
    assert (shown[:5, 5:9] == shots[0, 1]).all()
    assert (shown[6:11, :4] == shots[0, 2]).all()
    assert plots._standing_still(lines, shape) == ""
    still = shots.copy()
    still[1, :2] = still[0, :2]
    lines = np.array([int(number.value) for number in training.pixels(still, 10) if number.x is not None])
    assert plots._standing_still(lines, shape) == "\n2 of 3 never move"
    with pytest.raises(ValueError, match="at most 52"):
        training.pixels(np.zeros((1, 1, 1, 60), np.int8), 1)


@pytest.mark.slow
def test_trained_networks_are_kept(monkeypatch):
    first = TINY()
    monkeypatch.setattr(training, "pcd", None)
    again = TINY()
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()


def test_chains_of_all_samplers_begin_as_the_same_noise():
    budget, measured = Budget(4, 0, 2, 2), "discrax.bench.experiments.training:mixing_from_noise"
    found = [
        measure.run_cell(chains_cell(measured, budget, sampler))
        for sampler in (
            call("discrax.samplers:dmala"),
            call("discrax.bench.papers.any_scale.kernels:ab_of_data", data="digits", sigma=0.5, alpha=0.6),
        )
    ]
    curves = [{row["x"]: row["value"] for row in rows if row["metric"] == "log_prob"} for rows in found]
    assert [list(curve) for curve in curves] == [[0, 2, 4]] * 2
    assert curves[0][0] == curves[1][0]
    assert curves[0][4] != curves[1][4]


def test_a_diagonal_hessian_needs_no_auxiliary_variable():
    """AB with W = -diag(w) is DMALA with g = t^alpha and 1 / sigma + alpha w in place of 1 / sigma."""
    target, w, alpha, sigma = targets.Bernoulli(np.array([0.2, 0.6, 0.9])), 0.7, 0.6, 2.0
    diagonal = samplers.ab_diagonal(sigma, alpha, np.full(3, -w))
    same = samplers.ab_first(1 / (1 / sigma + alpha * w), alpha)
    x = jnp.zeros(3, jnp.int8)

    @eqx.filter_jit
    def steps(kernel, keys):
        return jax.vmap(lambda key: kernel.step(key, target, kernel.init(target, x)))(keys)

    def acceptance(kernel):
        states, info = steps(kernel, jax.random.split(jax.random.key(0, impl="threefry2x32"), 4000))
        return np.asarray(states.x).mean(axis=0), float(info.accept_prob.mean())

    (mean, rate), (expected, expected_rate) = acceptance(diagonal), acceptance(same)
    assert mean == pytest.approx(expected, abs=0.04)
    assert rate == pytest.approx(expected_rate, abs=0.01)


def test_the_best_of_a_grid():
    found = fake_rows({"log_prob": {0.0: -9.0, 1.0: -5.0}}, fake_cell("LB", "", dataset="digits"))
    for sigma, last in (("0.1", -6.0), ("0.5", -4.0)):
        cell = fake_cell("AB", "", dataset="digits", sigma=sigma, alpha="0.6")
        found += fake_rows({"log_prob": {0.0: -9.0, 1.0: last}, "acceptance": 0.5}, cell)
    names = {row["labels"]["sampler"] for row in any_scale_energy.best_of_grid(found)}
    assert names == {"LB", "AB, sigma = 0.5, alpha = 0.6"}
