"""What a command asks for: samplers and tasks of one's own beside a suite's, filters, budgets, seeds, proofs."""

from pathlib import Path

import pytest

from discrax.bench.execute import small_targets, store
from discrax.bench.execute.request import make_request, merge, part_of, requests_of
from discrax.bench.execute.run import run_suites
from discrax.bench.execute.samplers import parse_samplers
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.measure import has_sampler
from discrax.bench.plan.suite import Size, check_budgets, find, shipped_suites, suite, tasks_of
from discrax.bench.report.write import make_document, to_markdown, write_report

HERE = Path(__file__).parent
BALLS = "enhanced-gradient-mcmc/table03"
MINE = f"{HERE / 'my_kernel.py'}:TwoFlips"


def names(cells):
    return {cell.label("sampler") for cell in cells}


# --- budgets belong to the task ---------------------------------------------------------------------------------------


def test_a_sampler_beside_has_the_budget_of_the_task(files):
    cells = make_request([str(files / "suite.py")], Size.QUICK, samplers=[MINE]).cells()
    for group in tasks_of(cells).values():
        mine = [cell for cell in group if cell.label("sampler") == "TwoFlips"]
        assert len(mine) == 1
        for what in ("budget", "init", "measure", "target", "adaptation", "is_timed", "seed"):
            assert {getattr(cell, what) for cell in group} == {getattr(mine[0], what)}, what
    assert len(tasks_of(cells)) == 2


def test_one_cell_a_task_and_seed_of_every_shipped_suite_that_measures_samplers():
    seen = set()
    for name, each in shipped_suites().items():
        if each.cells in seen:
            continue
        seen.add(each.cells)
        wanted = {(cell.task, cell.seed) for cell in each.cells(Size.QUICK) if has_sampler(cell)}
        if not wanted:
            assert name in ("discs/gset", "discs/mis-solve", "discs/partition-solve", "sgdld/figure01", BALLS)
            continue
        cells = make_request([name], Size.QUICK, samplers=[MINE]).cells()
        mine = [(cell.task, cell.seed) for cell in cells if cell.label("sampler") == "TwoFlips"]
        assert len(mine) == len(set(mine)), name
        assert set(mine) == wanted, name


UNEQUAL = """
from discrax.bench import Budget, Cell, call, suite

@suite("mine/bits", "bits", unequal="walks have more")
def bits(size):
    for name, steps, adaptation in (("RWM", 50, "auto"), ("PAS", 10, "auto"), ("PAS-1", 90, None)):
        labels = (("task", "bits"), ("sampler", name))
        target = call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2)
        yield Cell(labels, target, call("discrax.samplers:rwm"), Budget(1, 0, steps), adaptation=adaptation)
"""


def test_of_unequal_budgets_it_is_the_longest_tuned_one(tmp_path):
    path = tmp_path / "unequal.py"
    path.write_text(UNEQUAL)
    cells = make_request([str(path)], Size.DEFAULT, samplers=[MINE]).cells()
    budgets = {cell.label("sampler"): cell.budget for cell in cells}
    assert budgets["TwoFlips"] == budgets["RWM"]
    assert "walks have more" in make_suite(str(path)).about


def make_suite(name, **asked):
    return merge([make_request([name], Size.QUICK, **asked)])[0]


def test_rows_with_another_budget_are_refused():
    def cells(size):
        for steps, name in ((10, "RWM"), (50, "PAS")):
            labels = (("task", "bits"), ("sampler", name))
            target = call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2)
            yield Cell(labels, target, call("discrax.samplers:rwm"), Budget(1, 0, steps))

    made = suite("mine/bits", "bits")(cells)
    with pytest.raises(
        ValueError, match=r"must have the same budget, but in mine/bits 'bits RWM' has 1 chains.* 10 dr"
    ):
        check_budgets(made, list(cells(Size.QUICK)))
    said = suite("mine/bits", "bits", unequal="PAS has more")(cells)
    check_budgets(said, list(cells(Size.QUICK)))
    assert said.title == "bits (unequal budgets: PAS has more)"


@pytest.mark.parametrize("paper", ["any-scale", "discs", "enhanced-gradient-mcmc", "optimal-scaling", "sgdld"])
def test_suites_have_equal_budgets_or_say_so(paper):
    for each in find(paper):
        budgets = [
            {cell.budget for cell in group}
            for size in (Size.QUICK, Size.DEFAULT)
            for group in tasks_of(each.cells(size)).values()
        ]
        assert any(len(group) > 1 for group in budgets) == bool(each.unequal), each.name


# --- what is asked for ------------------------------------------------------------------------------------------------


def test_samplers_with_settings_are_rows():
    (plain,) = parse_samplers("dmala")
    assert (plain.name, plain.sampler, plain.is_tuned) == ("dmala", call("discrax.samplers:dmala"), True)
    sweep = parse_samplers("dmala(step_size=0.1,0.2, balancing=ratio)")
    assert [each.name for each in sweep] == [f"dmala(step_size={step}, balancing=ratio)" for step in (0.1, 0.2)]
    assert not any(each.is_tuned or each.is_foreign for each in sweep)  # what was set stays as it was set
    assert all(each.is_tuned for each in parse_samplers("pas(balancing=sqrt,ratio)"))
    (mine,) = parse_samplers(MINE)
    assert mine.is_foreign
    for wrong, said in (
        ("dmalla", "dmala"),
        ("dmala(0.2)", "name=value"),
        ("dmala(size=1)", "must make a kernel with these settings"),
        (")", "A sampler is"),
    ):
        with pytest.raises(ValueError, match=said):
            parse_samplers(wrong)


def test_only_set_and_seeds(files):
    suite = str(files / "suite.py")
    cells = make_request([suite], Size.QUICK, only=["pas", "side=3"], samplers=["gwg"]).cells()
    assert [cell.name for cell in cells] == ["ising side=3 PAS", "ising side=3 gwg"]
    assert names(make_request([suite], Size.QUICK, only=["r*"]).cells()) == {"RWM"}
    with pytest.raises(ValueError, match=r"No cell fits --only lbp; there are task: ising; .*sampler: RWM, PAS"):
        make_request([suite], Size.QUICK, only=["pas,lbp"]).cells()
    cells = make_request([suite], Size.QUICK, budget={"steps": 7, "chains": 2}, seeds=3).cells()
    assert {cell.budget for cell in cells} == {Budget(2, 40, 7)}
    assert sorted(cell.seed for cell in cells) == sorted([0, 1, 2] * 4)
    with pytest.raises(ValueError, match="A budget has steps, chains, warmup, but got 'step'"):
        make_request([suite], Size.QUICK, budget={"step": 7})
    with pytest.raises(TypeError, match=r"only must be a list of texts, such as \['pas'\], but got 'pas'"):
        make_request([suite], Size.QUICK, only="pas")
    assert "(all cells with steps = 20,000)" in make_suite(suite, budget={"steps": 20_000}).about


def test_seeds_of_instances_are_all_repeated():
    few = {"only": ["N=100", "config=C1", "arwm"]}
    once = make_request(["optimal-scaling/table05"], Size.DEFAULT, **few).cells()
    twice = make_request(["optimal-scaling/table05"], Size.DEFAULT, seeds=2, **few).cells()
    assert sorted(cell.seed for cell in once) == list(range(5))
    assert sorted(cell.seed for cell in twice) == list(range(10))
    assert {cell.target for cell in twice} == {cell.target for cell in once}


def test_a_task_of_ones_own_has_every_sampler(files):
    asked = {"tasks": [f"{files}/own.py:grid"], "samplers": ["gwg"], "only": ["side=3"]}
    cells = make_request([str(files / "suite.py")], Size.QUICK, **asked).cells()
    own = [cell for cell in cells if cell.label("task") == "grid"]
    assert [cell.name for cell in own] == ["grid RWM", "grid PAS", "grid gwg"]
    assert {(cell.budget, cell.init) for cell in own} == {(Budget(4, 40, 90), None)}


# --- run, added to, and reported --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_foreign_kernel_end_to_end(files):
    """It is proved, run with the budget of ours, added to a run that exists, and stands in the report."""
    suite, run = str(files / "suite.py"), files / "run"
    run_suites([suite], Size.QUICK, out=run, progress=False, only=["rwm", "side=2"])
    before = {path: path.stat().st_mtime_ns for path in (run / "rows").iterdir()}
    more = {"samplers": [MINE], "tasks": [f"{files}/own.py:grid"], "only": ["rwm", "side=2"], "seeds": 2}
    report = run_suites([suite], Size.QUICK, out=run, progress=False, together=False, **more)
    assert (report.were_done, report.ok, report.total) == (1, 8, 8)
    assert before.items() <= {path: path.stat().st_mtime_ns for path in (run / "rows").iterdir()}.items()
    rows = [row for row in store.read_rows(run) if row["metric"] == "num_steps"]
    assert {row["value"] for row in rows} == {60.0}
    assert {row["labels"]["sampler"] for row in rows} == {"RWM", "TwoFlips"}
    document = make_document(run)
    assert dict(document.facts)["samplers put beside"] == "TwoFlips"
    assert [section.num_missing for section in document.sections] == [0, 0]
    assert document.sections[1].about == "tasks of your own"
    assert "| TwoFlips |" in to_markdown(document)
    assert requests_of(store.read_about(run))[1].seeds == 2
    with pytest.raises(ValueError, match=r"holds a run with other budget \(as usual, now {'steps': 5}\)"):
        run_suites([suite], Size.QUICK, out=run, progress=False, budget={"steps": 5})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("FirstAxis", r"Spin target of shape \(2, 3\): it reports a jump of 1 in a step that went [^1]"),
        ("Uncounted", "it reports 0 evaluations of the target in a step; `Info.evals` is how many it has made"),
        (
            "RWM",
            r"Two cells of small/lattice are called 'ising side=2 RWM', .* the sampler of one is discrax.samplers:rwm",
        ),
        pytest.param(
            "Biased", r"Biased does not sample the law of a small Spin .*FAILED: p = ", marks=pytest.mark.slow
        ),
    ],
)
def test_a_wrong_kernel_is_stopped_before_it_runs(files, name, said):
    wrong = {"samplers": [f"{files}/own.py:{name}"], "only": ["rwm", "side=2"], "progress": False}
    with pytest.raises(ValueError, match=said):
        run_suites([str(files / "suite.py")], Size.QUICK, out=files / "run", **wrong)
    assert not (files / "run" / "rows").exists()
    assert not (files / "run" / "run.json").exists()


@pytest.mark.slow
def test_an_unchecked_kernel_is_named_so(files):
    wrong = {"samplers": [f"{files}/own.py:Biased"], "only": ["rwm", "side=2"], "check": False, "progress": False}
    assert run_suites([str(files / "suite.py")], Size.QUICK, out=files / "run", **wrong).ok == 2
    assert dict(make_document(files / "run").facts)["samplers put beside"] == "Biased (not checked)"


def test_small_spaces_are_those_of_the_cells():
    cells = [cell for name in ("discs/figure01", "discs/figure08") for cell in find(name)[0].cells(Size.QUICK)]
    found = small_targets.spaces_of(cells[:1] + cells[-1:])
    assert [(type(space).__name__, space.shape, space.num_levels) for space in found] == [
        ("Spin", (2, 3), 2),
        ("Categorical", (4,), 3),
    ]


# --- rows in one file -------------------------------------------------------------------------------------------------


def test_a_file_of_rows_is_a_run(files):
    run = files / "run"
    run_suites([str(files / "suite.py")], Size.QUICK, out=run, progress=False, only=["rwm", "side=2"])
    kept = store.export(run, files / "rows.parquet")
    assert store.read_rows(kept) == store.read_rows(run)
    assert store.read_about(kept) == store.read_about(run)
    page, _ = write_report(kept)
    assert page == files / "rows.html"
    from discrax.bench.report.compare import compare_runs

    assert all(each.ratio in (1.0, None) for each in compare_runs(run, kept).differences)
    assert store.export(run, files / "rows.csv").read_text().startswith('"cell","name","labels"')
    with pytest.raises(ValueError, match=r"a .parquet or a .csv file, but got 'rows.txt'"):
        store.export(run, files / "rows.txt")
    part = store.export(run, files / "part.parquet", *part_of(store.read_about(run), [str(files / "suite.py")]))
    assert store.read_rows(part) == store.read_rows(run)
    with pytest.raises(ValueError, match=r"has no row of discs/figure09"):
        store.export(run, files / "part.parquet", *part_of(store.read_about(run), ["discs/figure09"]))
    about = store.read_about(run)
    about["requests"].append(about["requests"][0] | {"suites": ["discs/figure09"], "only": ["side=50"]})
    part = store.export(run, files / "part.parquet", *part_of(about, [str(files / "suite.py")]))
    assert store.read_rows(part) == store.read_rows(run)  # what was asked of another suite alone is left out
    (files / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"bad.parquet cannot be read: it is damaged"):
        store.read_about(files / "bad.parquet")
