"""Rows and suites that look measured, without sampling."""

import json
from pathlib import Path

import numpy as np

from discrax.bench.execute import store
from discrax.bench.experiments.training import pixels
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.measure import Number, Timing
from discrax.bench.plan.suite import Suite, Table, figure, note

CHAINS = 16


def cell(sampler="ALBP", weight="sqrt(t)", *, seed=0, **labels):
    """A cell that is never run; its labels are all that matters."""
    labels = labels | {"sampler": sampler} | ({"weight_fn": weight} if weight else {})
    labels = tuple((name, str(value)) for name, value in labels.items())
    return Cell(labels, call("nowhere:target"), call("nowhere:sampler"), Budget(CHAINS, 10, 20), seed=seed)


def rows(numbers, of=None, *, error=None, seconds=2.0):
    """Rows as they are read from a run: metric -> value, (value, std), or {x: value or (value, std)}."""
    found = []
    for metric, given in numbers.items():
        for x, number in given.items() if isinstance(given, dict) else [(None, given)]:
            value, std = number if isinstance(number, tuple) else (number, None)
            found.append(Number(metric, value, std, x))
    made = store.rows_of(of or cell(), found, Timing(seconds, 1.0, 0.5), error)
    return [row | {"labels": dict((of or cell()).labels)} for row in made]


EJD = Table(
    "Jump distance, Bernoulli", "optimal-scaling", 5, "EJD", "EJD", ("N", "config"),
    notes=(
        note("One site at a time.", tested="0.447 with two sites", sampler="LBP-1"),
        note("Nobody knows.", sampler="AGWG"),
    ),
)  # fmt: skip
ESS = Table(
    "ESS, Bernoulli", "optimal-scaling", 6, "ESS", "ESS_per_step", ("N", "config"), factor=lambda labels: 2000.0
)  # fmt: skip
SECONDS = Table("Seconds, Bernoulli", "optimal-scaling", 7, "time_s", "time_s", ("N", "config"), compares=False)


def bernoulli(sampler, weight="", size="100", config="C1"):
    return cell(sampler, weight, task="bernoulli", N=size, config=config)


def entry(grid, head, *column):
    """One place of a grid."""
    line = next(line for line in grid.lines if line.head == head)
    return line.entries[grid.columns.index(column)]


def sampling(ejd, rate=0.57, scale=10.0, ess=0.05, generator=None):
    """The numbers of an ordinary cell."""
    generator = generator or np.random.default_rng(0)
    chains = ess * np.exp(0.2 * generator.normal(size=CHAINS))
    return {
        "EJD": (ejd, 0.02 * ejd), "acceptance": rate, "ESS_per_step": (ess, 0.2 * ess), "ESS_n": 2500 * ess,
        "time_s": 3.0 * (1 + generator.random()), "scale": scale, "ESS_chain": dict(enumerate(chains.tolist())),
    }  # fmt: skip


def every_plot():
    """(kind, options, rows) of each kind of plot."""
    generator = np.random.default_rng(1)
    sizes = (100, 800, 6400)

    def against_size():
        for task in ("bernoulli", "ising"):
            for name, weight, power in (("ALBP", "sqrt(t)", 2 / 3), ("AGWG", "sqrt(t)", 0.45), ("ARWM", "", 0.0)):
                for size in sizes:
                    scale = 3 * size**power * np.exp(0.05 * generator.normal())
                    numbers = sampling(0.57 * scale, scale=scale, ess=0.001 * scale, generator=generator)
                    yield from rows(numbers, cell(name, weight, task=task, N=size))

    def against_rate():
        for config in ("C1", "C2", "C3"):
            for name, weight, top in (("LBP", "sqrt(t)", 24), ("LBP", "t/(t+1)", 22), ("GWG", "sqrt(t)", 17)):
                for rate in np.linspace(0.1, 0.95, 12):
                    shape = rate * (1 - rate) ** 0.7
                    numbers = sampling(top * shape * (1 + 0.05 * generator.normal()), rate=float(rate))
                    numbers |= {"lbp_unit": 20.0} if name == "LBP" else {}
                    yield from rows(numbers, cell(name, weight, config=config, rate=f"{rate:.2f}"))

    def series():
        for name, speed in (("NCG", 0.4), ("AVG", 0.7), ("PAVG", 1.2), ("Gibbs", 0.3)):
            x = np.arange(1.0, 11.0)
            numbers = {
                "marginal_KL": {t: (float(np.exp(-speed) / t**speed), 0.5 / t) for t in x},
                "covariance_error": {t: (float(4 / t**speed), 0.8 / t) for t in x},
            }
            yield from rows(numbers, cell(name, ""))

    def scale_and_exponent():
        for sigma in (0.5, 2, 8, 32, 128):
            best = 0.5 + 0.5 * (sigma / 4) / (np.sqrt((sigma / 4) ** 2 + 4) + 2)
            for alpha in np.linspace(0.3, 1.0, 8):
                ess = 0.02 * sigma**0.4 * np.exp(-8 * (alpha - best) ** 2)
                yield from rows({"ESS_per_step": float(ess)}, cell("AB-trace", "", sigma=sigma, alpha=f"{alpha:.1f}"))

    def snapshots():
        for name in ("PAS", "DMALA"):
            shots = generator.integers(0, 2, (3, 4, 8, 8)).astype(np.int8)
            found: dict = {}
            for number in pixels(shots, 100):
                if number.x is None:
                    found[number.metric] = number.value
                else:
                    found.setdefault(number.metric, {})[number.x] = number.value
            yield from rows(found, cell(name, "", dataset="digits"))

    by_size = list(against_size())
    grid = list(scale_and_exponent())
    return (
        ("curve", {"x": "N", "y": "ESS_per_step", "panels": ("task",), "logx": True, "logy": True}, by_size),
        ("efficiency", {"panels": ("config",)}, list(against_rate())),
        ("slopes", {"x": "N", "informed": "ALBP sqrt(t)", "walk": "ARWM", "panels": ("task",)}, by_size),
        ("errors", {"metrics": ("marginal_KL", "covariance_error")}, list(series())),
        ("boxes", {"panels": ("task",), "ylabel": "ESS per step"}, by_size),
        ("heat", {}, grid),
        ("weights", {}, grid),
        ("bars", {"panels": ("task", "N")}, by_size),
        ("pictures", {"hue": ("dataset", "sampler")}, list(snapshots())),
    )


def write_run(folder: Path, monkeypatch) -> Suite:
    """A run of a suite with three tables and a figure of each kind; one cell failed, most have not run."""
    from discrax.bench.plan.printed import printed_rows
    from discrax.bench.report import write as report

    generator = np.random.default_rng(2)
    measured = []
    for row in printed_rows("optimal-scaling", 5):
        if row["N"] == "6400":
            continue
        of = bernoulli(row["sampler"], row["weight_fn"], row["N"], row["config"])
        if row["sampler"] == "GGWG" and row["config"] == "C2":
            measured.append(rows({}, of, error="ValueError: the path is\nlonger than <the> space."))
            continue
        factor = 0.45 if row["sampler"] == "LBP-1" and row["config"] == "C3" else float(generator.normal(1.0, 0.09))
        measured.append(rows(sampling(factor * row["value"], ess=0.01 * factor, generator=generator), of))
    measured.append(rows(sampling(30.0), bernoulli("my_sampler")))

    plots = every_plot()
    planned = [
        bernoulli(row["sampler"], row["weight_fn"], row["N"], row["config"])
        for row in printed_rows("optimal-scaling", 5)
    ]
    known = {(kind, place): drawn for place, (kind, _, drawn) in enumerate(plots)}
    exhibits = [
        figure(f"A plot of kind {kind}", kind, lambda _, key=(kind, place): known[key], **options)
        for place, (kind, options, _) in enumerate(plots)
    ]
    nothing = figure("A plot of nothing", "curve", lambda _: [], x="N")
    made = Suite("fake/all", "Numbers nobody measured.", lambda size: planned, (EJD, ESS, SECONDS, *exhibits, nothing))
    for group in measured:
        store.write_rows(folder, [row | {"labels": json.dumps(row["labels"])} for row in group])
    store.write_about(
        folder,
        {"suites": ["fake/all"], "size": "quick", "user_files": [], "samplers": ["/a/file.py:my_sampler"],
         "started": "2026-01-01T00:00:00+00:00", "versions": store.versions()},
    )  # fmt: skip
    monkeypatch.setattr(report, "find", lambda name: [made])
    return made
