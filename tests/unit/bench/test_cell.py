import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from discrax.bench.execute import run
from discrax.bench.execute.cells import run_cells, shape_key
from discrax.bench.execute.clusters import Slurm
from discrax.bench.execute.executors import InProcess, Pool
from discrax.bench.execute.run import plan
from discrax.bench.execute.samplers import parse_samplers
from discrax.bench.experiments.ess import scalars
from discrax.bench.plan.cell import Budget, Cell, call, load_file, resolve
from discrax.bench.plan.measure import target_of
from discrax.bench.plan.suite import Size, Table, aliases, find, shipped_suites

HERE = Path(__file__).parent


def make_cell(**changes) -> Cell:
    fields = {
        "labels": (("task", "bernoulli"), ("N", "12"), ("sampler", "RWM")),
        "target": call("discrax.bench.experiments.models:bernoulli", num_sites=12, low=0.2),
        "sampler": call("discrax.samplers:rwm"),
        "budget": Budget(3, 20, 30),
    }
    return Cell(**(fields | changes))


def test_a_cell_is_its_content():
    cell, same = make_cell(), make_cell()
    assert cell == same
    assert hash(cell) == hash(same)
    assert cell.id == same.id
    assert len(cell.id) == 16
    assert pickle.loads(pickle.dumps(cell)) == cell
    changed = [
        make_cell(seed=1),
        make_cell(budget=Budget(3, 20, 31)),
        make_cell(target=call("discrax.bench.experiments.models:bernoulli", num_sites=12, low=0.1)),
        make_cell(adaptation=None),
    ]
    assert len({each.id for each in [cell, *changed]}) == 5
    assert cell.name == "bernoulli N=12 RWM"


def test_addresses():
    assert resolve("discrax.targets:LatticeGaussian.rotation")(0, 4).space.num_sites == 4
    assert load_file(HERE / "my_kernel.py") is load_file(HERE / "my_kernel.py")
    with pytest.raises(ValueError, match="has no 'pass'"):
        resolve("discrax.samplers:pass")
    with pytest.raises(ValueError, match="There is no file"):
        resolve("/nowhere/file.py:Kernel")
    with pytest.raises(ValueError, match="An address is"):
        resolve("rwm")
    with pytest.raises(ValueError, match="but a sampler is a discrax"):
        parse_samplers(f"{HERE / 'my_kernel.py'}:dx.auto")
    with pytest.raises(ValueError, match="must make a kernel without arguments"):
        parse_samplers(f"{HERE / 'my_kernel.py'}:dx.Binary")


def test_every_suite_makes_cells_whose_parts_exist():
    suites = shipped_suites()
    assert set(aliases()) >= {"discs/ising", "discs/potts"}
    assert {name.partition("/")[0] for name in suites} == {
        "any-scale",
        "discs",
        "enhanced-gradient-mcmc",
        "multimodal",
        "optimal-scaling",
        "sgdld",
    }
    addresses, seen = set(), set()
    for name, suite in suites.items():
        assert suite.exhibits, name
        for size in () if suite.cells in seen else Size:  # tables may share their cells
            cells = list(suite.cells(size))
            assert cells, name
            keys = {(cell.labels, cell.seed) for cell in cells}
            assert len(keys) == len(cells), f"{name} has cells that its tables cannot tell apart"
            for cell in cells:
                addresses |= {cell.target.address, cell.sampler.address, cell.measure.address}
                addresses |= {c.address for c in (cell.adaptation, cell.init) if not isinstance(c, str | None)}
        seen.add(suite.cells)
    for address in addresses:
        assert callable(resolve(address)), address


# Some tables derive their numbers from these metrics.
DERIVED_FROM = (
    "log_likelihood",
    "diverged",
    "acceptance",
    *(f"unique_ngrams_pct {reference} {n}" for reference in ("self", "WT103", "TBC") for n in (2, 3)),
)


NEW_METRICS = ("unique_ngrams_pct", "min_mh_steps_per_update", "N_needed_for_0.574")


QUOTED = ("RL", "GS-Tr+S", "GS-Tr+R", "CON", "AFF")  # by the paper from others, whose methods are not here

UNTRAINED = "conv-ebm"  # of a table of step sizes: the network that they are of would have to be trained first


TIMED = '{"is_timed": true}'


def test_every_printed_number_has_a_cell():
    from discrax.bench.plan.printed import match_printed, printed_rows

    places = cache(lambda cells: [(cell.labels, cell.seed) for cell in cells(Size.PAPER)])  # tables may share them
    for name, suite in shipped_suites().items():
        tables = [each for each in suite.exhibits if isinstance(each, Table) and each.paper and not each.is_reading]
        for table in tables:
            rows = [
                {"labels": dict(labels), "metric": metric, "value": values.get(metric, 1.0)}
                | {
                    "seed": seed,
                    "cell": str(labels),
                    "x": None,
                    "std": 0.1,
                    "status": "ok",
                    "error": "",
                    "settings": TIMED,
                }
                for number, (labels, seed) in enumerate(places(suite.cells))
                for values in ({"log_likelihood": -1.0, "diverged": 0.0, "acceptance": float(number % 2)},)
                for metric in (table.ours, *(DERIVED_FROM if table.ours in NEW_METRICS else ()))
            ]
            rows = table.derive(rows) if table.derive else rows
            wanted = [row for row in printed_rows(table.paper, table.number) if row["metric"] == table.metric]
            wanted = [row for row in wanted if row["sampler"] not in QUOTED and row.get("experiment") != UNTRAINED]
            found = [match_printed(wanted, table.metric, row["labels"]) for row in rows]
            keys = {tuple(sorted((k, str(v)) for k, v in row.items())) for row in found if row is not None}
            assert len(keys) == len(wanted) > 0, (name, table.title, len(keys), len(wanted))


def test_names_of_suites():
    assert [suite.name for suite in find("discs/ising")] == ["discs/figure01", "discs/figure09"]
    assert len(find("any-scale")) == 11
    assert [suite.name for suite in find(str(HERE / "tiny_suite.py"))] == ["tiny/bits"]
    with pytest.raises(ValueError, match="There is no suite 'table05'"):
        find("table05")
    with pytest.raises(ValueError, match="defines no suite"):
        find(str(HERE / "my_kernel.py"))


def test_cells_of_one_shape_are_one_program():
    cells = [make_cell(seed=seed) for seed in range(3)] + [make_cell(is_timed=True), make_cell(budget=Budget(3, 20, 9))]
    assert sorted(len(job[0]) for job in plan(cells, together=True, in_process=True)) == [1, 4]
    assert [len(job) for job in plan(cells, together=False, in_process=True)] == [1] * 5
    assert sorted(len(job) for job in plan(cells, together=False, in_process=False)) == [1, 4]
    assert shape_key(make_cell(target=call("discrax.bench.experiments.models:bernoulli", num_sites=3, low=9.0))) is None
    assert shape_key(make_cell(measure=call("discrax.bench.experiments.training:snapshots"))) is None  # no sampling


def test_trainings_are_jobs_of_their_own_and_the_longest_begin_first():
    """Other processes share neither their programs nor their time: twelve in one job would keep one worker busy."""
    training = call("discrax.bench.experiments.training:snapshots")
    cells = [make_cell(measure=training, budget=Budget(3, 0, 9, K), seed=seed) for K in (1, 4, 2) for seed in (0, 1)]
    jobs = plan(cells, together=True, in_process=False)
    assert [batch[0].budget.thinning for (batch,) in jobs] == [4, 4, 2, 2, 1, 1]


@pytest.mark.slow
def test_together_or_alone_is_the_same():
    rates = [call("discrax.adaptation:AcceptanceRate", rate=rate) for rate in (0.2, 0.7)]
    bits = call("discrax.bench.experiments.models:bernoulli", num_sites=40, low=0.3)
    cells = [make_cell(adaptation=rate, target=bits, budget=Budget(3, 60, 30)) for rate in rates]
    together = run_cells(cells)
    values = [{row["metric"]: row["value"] for row in rows} for rows in (together[0], run_cells(cells[:1])[0])]
    assert values[0]["scale"] == pytest.approx(values[1]["scale"], rel=0.05)
    assert values[0]["EJD"] == pytest.approx(values[1]["EJD"], rel=0.2)
    scales = [next(row["value"] for row in rows if row["metric"] == "scale") for rows in together]
    assert scales[0] > 1.3 * scales[1]  # each is tuned to its own rate


def test_statistics_are_shared_functions():
    assert scalars("distance", (4,), 2) is scalars("distance", (4,), 2)
    assert scalars("sum", (2, 2), 3)(np.array([[1, 0], [2, 1]], np.int8)).tolist() == [4]
    with pytest.raises(ValueError, match="'distance' or 'sum'"):
        scalars("mean", (4,), 2)


def test_batches_of_workers_that_share_a_gpu_are_smaller(monkeypatch):
    cells = [make_cell(seed=seed) for seed in range(8)]
    codes = cells[0].budget.num_chains * target_of(cells[0].target).space.num_sites
    monkeypatch.setattr(run, "_MOST_TOGETHER", codes)
    monkeypatch.setattr(run, "_MOST_ELSEWHERE", 8 * codes)
    monkeypatch.setattr(run.jax, "default_backend", lambda: "gpu")
    for num_sharing, size in ((1, 8), (4, 2), (100, 1)):
        assert {len(job[0]) for job in plan(cells, together=True, in_process=True, num_sharing=num_sharing)} == {size}


def test_who_shares_a_device():
    assert InProcess(3).num_sharing == Pool(3).num_sharing == 3
    assert Pool(2, gpus=("0", "1")).num_sharing == 1
    assert not hasattr(Slurm, "num_sharing")  # each has a machine of its own
