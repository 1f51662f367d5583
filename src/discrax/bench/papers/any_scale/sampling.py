"""Sun et al. (2023), "Any-scale balanced samplers for discrete space"."""

from collections.abc import Iterator, Sequence
from typing import Any

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Derive, Row, only, relabel
from discrax.bench.plan.suite import Note, Size, Suite, Table, figure, note, suite

COUPLINGS = ("0.3000", "0.4407", "0.7071")
CONDITIONS = ("2", "10", "50")
TASKS = {"grid-ising": "J", "ba4-ising": "J", "rotation-gaussian": "L", "sparse-gaussian": "L"}
SAMPLERS = {
    "Gibbs": "gibbs",
    "RW": "rwm",
    "DLP": "dmala",
    "DLP-trace": "dlp_trace",
    "AB-1st": "ab_first",
    "AB-shift": "ab_shift",
    "AB-max": "ab_max",
    "AB-trace": "ab_trace",
}
BUDGETS = {
    Size.QUICK: Budget(8, 600, 600),
    Size.DEFAULT: Budget(100, 20_000, 16_000),  # the paper's burn-in: cold lattices freeze into domains that last
    Size.PAPER: Budget(100, 20_000, 80_000),
}
PER_CHAIN = call("discrax.bench.experiments.ess:mixing", per_chain=True)


def target(task: str, value: str) -> Call:
    """The target of a task at a coupling or a condition number."""
    if task == "grid-ising":
        return call("discrax.bench.papers.any_scale.targets:ising_grid", side=20, coupling=float(value))
    if task == "ba4-ising":
        models = "discrax.bench.papers.any_scale.targets:ising_barabasi_albert"
        return call(models, num_sites=400, attached=4, coupling=float(value))
    # Centred in the box: b = 0, as stated, puts the mode into a corner, and then neither LB nor AB-trace has the
    # printed ESS on the rotated one; with b = 10 both have it, at all three condition numbers.
    kind, condition = f"discrax.targets:LatticeGaussian.{task.partition('-')[0]}", float(value)
    return call(kind, seed=0, dimension=100, condition=condition, centre=10.0)


def sampler(name: str, *, ordinal: bool) -> Call:
    """The random walk on ordinal sites moves some of them, their number tuned, by a level.

    W is fitted to the burn-in, as in the paper, also where the exact Hessian is known.
    """
    settings: dict[str, Any] = {}
    if ordinal and name == "RW":
        settings = {"reach": 1}
    if name in ("AB-shift", "AB-max", "AB-trace"):
        settings = {"W": "estimate"}
    return call(f"discrax.samplers:{SAMPLERS[name]}", **settings)


def quadratic(task: str, value: str, effort: Size) -> Iterator[Cell]:
    """All samplers on a task, and Gibbs colour by colour where few colours do for its graph."""
    rows = {name: sampler(name, ordinal=TASKS[task] == "L") for name in SAMPLERS}
    if TASKS[task] == "J":
        rows["Gibbs (chromatic)"] = call("discrax.samplers:gibbs", scan="chromatic")
    for name, built in rows.items():
        yield Cell(
            labels=(("task", task), (TASKS[task], value), ("sampler", name)),
            target=target(task, value),
            sampler=built,
            budget=budget(effort, ordinal=TASKS[task] == "L"),
            is_timed=True,
        )


def budget(effort: Size, *, ordinal: bool) -> Budget:
    """Sites with 21 levels cost more, and mix faster."""
    return Budget(50, 2_000, 6_000) if ordinal and effort is Size.DEFAULT else BUDGETS[effort]


_SCAN = "Another scan: print fits one that takes the sites in turn, ours draws them."
_SCANNED = (
    "in turn 4.15, 2.40 and 1.48 at L = 2, 10 and 50 on the rotated Gaussian (print 4.55, 2.81, 1.64), drawn 2.11, "
    "1.33 and 0.89"
)
_DOMAINS = (
    "Burn-in: chains that begin at random freeze into domains. The paper's burn-in is as long, but of its steps Gibbs "
    "makes one update of a site, which is too few to dissolve them."
)
_REFERENCE = "Another reference state, or several: which ones the ESS of print is against is not said."
_AT_CRITICAL = "DMALA has 4.2 against one state and 7.0 against 24 others (2.3 to 14.5)"
_AT_TEN = "AB-shift has 176 against one state and 201 +- 11 against 399 others (print 197)"
_JUMPS = (
    "Tuning: several (sigma, alpha) have nearly the longest jumps here, and chains of the one that is chosen stick now "
    "and then."
)
_JUMPED = "425, twice the printed one, at sigma = 1.2 and alpha = 0.6, which jump 0.87 as far"
_SPECTRUM = (
    "Another target: the printed diagonal of this Gaussian is garbled, and no reading that we tried gives all printed "
    "numbers."
)
_DIAGONAL = "Our sampler knows the exact diagonal of a quadratic target; that of print has gradients alone."
_BY_GRADIENT = "77.0 and 24.9 at L = 10 and 50 by gradients alone (print 71.2 and 32.2), 113 and 64.2 with the diagonal"
_TIES = "Ties: among diagonals D that are equally large ours takes that of the least trace."
_UNTIED = "399 without that (print 132.9), 1,129 with it"
_PAIRS = "How many moves W is fitted to."
_FITTED = "271 with up to 4,000 pairs of states, 180 with 20,000, 107 with 38,000 (print 160)"


def _notes_on(text: str, tested: str, task: str, value: str, sampler: str) -> tuple[Note, Note]:
    """For the settings as tables 2-5 write them and as table 1 does."""
    name = TASKS[task]
    return (
        note(text, tested, **{"task": task, name: value, "sampler": sampler}),
        note(text, tested, model=task, parameter=f"{name}={value}", sampler=sampler),
    )


NOTES: tuple[Note, ...] = tuple(
    each
    for text, tested, task, values, samplers in (
        (_SCAN, _SCANNED, "rotation-gaussian", CONDITIONS, ("Gibbs",)),
        (_SCAN, "", "sparse-gaussian", CONDITIONS, ("Gibbs",)),
        (_DOMAINS, "", "grid-ising", ("0.7071",), ("Gibbs",)),
        (
            _REFERENCE,
            _AT_CRITICAL,
            "grid-ising",
            ("0.4407",),
            ("LB", "DLP", "AB-1st", "AB-shift", "AB-max", "AB-trace"),
        ),
        (_REFERENCE, _AT_TEN, "rotation-gaussian", ("10",), ("AB-shift",)),
        (_JUMPS, _JUMPED, "ba4-ising", ("0.3000",), ("AB-1st",)),
        (_PAIRS, _FITTED, "ba4-ising", ("0.7071",), ("AB-shift",)),
        (_DIAGONAL, _BY_GRADIENT, "sparse-gaussian", ("10", "50"), ("LB", "DLP")),
        (_TIES, _UNTIED, "sparse-gaussian", ("50",), ("AB-max",)),
        (_SPECTRUM, "", "sparse-gaussian", CONDITIONS, ("AB-shift", "AB-trace")),
    )
    for value in values
    for sampler in samplers
    for each in _notes_on(text, tested, task, value, sampler)
)


def _middle(rows: list[Row]) -> list[Row]:
    """The settings of table 1 as that table writes them."""
    found = []
    for row in rows:
        labels = row["labels"]
        name = TASKS.get(labels.get("task", ""))
        if name and labels.get(name) in ("0.4407", "10"):
            where = {"model": labels["task"], "parameter": f"{name}={labels[name]}"}
            found.append(row | {"labels": where | {"sampler": labels["sampler"]}})
    return found


def _rename_dlp(rows: list[Row]) -> list[Row]:
    """Tables 2-5 call DLP "LB", and have no DLP-trace."""
    return [relabel(row, sampler="LB") if row["labels"]["sampler"] == "DLP" else row for row in rows]


def _pair(number: int, title: str, columns: tuple[str, ...], derive: Derive) -> tuple[Table, Table]:
    shared: dict[str, Any] = {"paper": "any-scale", "number": number, "columns": columns}
    shared |= {"rows": ("sampler",), "derive": derive}
    return (
        Table(f"ESS per 10,000 queries, {title}", metric="ESS_n", ours="ESS_n", notes=NOTES, **shared),
        Table(f"ESS per second, {title}", metric="ESS_t", ours="ESS_t", compares=False, **shared),
    )


@suite(
    "any-scale/table01",
    "ESS on quadratic targets: Ising on a grid and on a Barabasi-Albert graph, two lattice Gaussians",
    *_pair(1, "quadratic targets", ("model", "parameter"), _middle),
)
def table01(effort: Size) -> Iterator[Cell]:
    for task, name in TASKS.items():
        yield from quadratic(task, "0.4407" if name == "J" else "10", effort)


def _one_task(number: int, task: str, about: str) -> Suite:
    values = COUPLINGS if TASKS[task] == "J" else CONDITIONS

    def derive(rows: list[Row]) -> list[Row]:
        return _rename_dlp(only(task=task)(rows))

    def cells(effort: Size) -> Iterator[Cell]:
        for value in values:
            yield from quadratic(task, value, effort)

    return suite(f"any-scale/table{number:02}", about, *_pair(number, about, (TASKS[task],), derive))(cells)


table02 = _one_task(2, "grid-ising", "Ising on a 20 x 20 grid")
table03 = _one_task(3, "ba4-ising", "Ising on a Barabasi-Albert graph")
table04 = _one_task(4, "rotation-gaussian", "rotated lattice Gaussian")
table05 = _one_task(5, "sparse-gaussian", "sparse lattice Gaussian")


def _grid(
    effort: Size, task: str, made: Call, name: str, sigmas: Sequence[float], alphas: Sequence[float], burns_in: bool
) -> Iterator[Cell]:
    """A sampler at fixed (sigma, alpha); where it estimates a Hessian, the values are set after its burn-in."""
    short = {Size.QUICK: Budget(8, 120, 300), Size.DEFAULT: Budget(100, 1_500, 4_000), Size.PAPER: BUDGETS[Size.PAPER]}
    for sigma in sigmas:
        for alpha in alphas:
            fixed = {"sigma": float(sigma), "alpha": float(alpha)}
            yield Cell(
                labels=(("task", task), ("sampler", name), ("sigma", f"{sigma:g}"), ("alpha", f"{alpha:g}")),
                target=made,
                sampler=call(f"discrax.samplers:{SAMPLERS[name]}", **({} if burns_in else fixed)),
                adaptation=call("discrax.bench.papers.any_scale.kernels:SetKnobs", **fixed) if burns_in else None,
                budget=short[effort],
            )


@suite(
    "any-scale/figure01",
    "the best exponent grows with the scale: t^alpha on independent bits",
    figure("ESS against alpha for several sigma, independent bits", "weights", metric="ESS_per_step"),
)
def figure01(effort: Size) -> Iterator[Cell]:
    made = call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=0.05)
    sigmas = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 12.8, 1000.0)
    yield from _grid(effort, "bernoulli", made, "AB-1st", sigmas, [k / 10 for k in range(3, 11)], burns_in=False)


def _non_quadratic(
    number: int, task: str, made: Call, about: str, sigmas: tuple[float, ...], *, ordinal: bool
) -> Suite:
    def cells(effort: Size) -> Iterator[Cell]:
        for name in SAMPLERS:
            yield Cell(
                labels=(("task", task), ("sampler", name)),
                target=made,
                sampler=sampler(name, ordinal=ordinal),
                budget=budget(effort, ordinal=ordinal),
                measure=PER_CHAIN,
                is_timed=True,
            )
        alphas = (0.5, 0.75, 1.0) if effort is Size.QUICK else tuple(round(0.5 + 0.1 * k, 1) for k in range(6))
        few = sigmas[::2] if effort is Size.QUICK else sigmas
        yield from _grid(effort, task, made, "AB-trace", few, alphas, burns_in=True)

    def cells_with(fixed: bool) -> Derive:
        return lambda rows: [row for row in only(task=task)(rows) if ("sigma" in row["labels"]) == fixed]

    return suite(
        f"any-scale/figure{number:02}",
        about,
        figure(f"ESS per 10,000 queries, {about}", "bars", cells_with(fixed=False), metric="ESS_n"),
        figure(f"ESS per step of the chains, {about}", "boxes", cells_with(fixed=False), metric="ESS_chain"),
        figure(
            f"ESS per step of AB-trace at fixed (sigma, alpha), {about}",
            "heat",
            cells_with(fixed=True),
            metric="ESS_per_step",
        ),
        unequal="below the paper's size the cells at a fixed (sigma, alpha) are shorter",
    )(cells)


figure02 = _non_quadratic(
    2,
    "logistic-regression",
    call("discrax.targets:LogisticRegression.simulated", seed=0),
    "Bayesian logistic regression",
    (0.25, 1.0, 4.0, 16.0, 64.0),
    ordinal=False,
)
figure03 = _non_quadratic(
    3,
    "quartic-mixture",
    call("discrax.targets:QuarticMixture.simulated", seed=0),
    "quartic mixture",
    (4.0, 16.0, 64.0, 256.0, 1000.0),
    ordinal=True,
)
