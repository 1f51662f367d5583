"""Sun et al. (2023), "Any-scale balanced samplers for discrete space"."""

from collections.abc import Iterator, Sequence
from typing import Any

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Derive, Row, only, relabel
from discrax.bench.plan.suite import Note, Size, Suite, Table, figure, note, suite

COUPLINGS = ("0.3000", "0.4407", "0.7071")
CONDITIONS = ("2", "10", "50")
TASKS = {"grid-ising": "J", "ba4-ising": "J", "rotation-gaussian": "L", "sparse-gaussian": "L"}
ATTACHED = {"ba4-ising": 4, "ba2-ising": 2}  # to how many nodes of the graph a new one attaches; print says four
PRINT_STEPS = 80_000
BUDGETS = {
    Size.QUICK: Budget(8, 4_200, 600),  # from sigma = 0.1 Algorithm 3 needs its rounds of 600 steps
    Size.DEFAULT: Budget(100, 20_000, PRINT_STEPS),
    Size.PAPER: Budget(100, 20_000, PRINT_STEPS),
}
WHICH = (
    "rows that have the names of print are done as printed: gradients alone, AB adapted by Algorithm 3 from the first "
    "step to the last, W from the whole burn-in; (ours): exact ratios, (sigma, alpha) by a grid of probes, then "
    "frozen; Gibbs, walks, LB, DLP and DLP-trace of both are tuned in the burn-in by our rule, to the acceptance that "
    "the paper names; every cell has 80,000 draws at the paper's size; at the default size only rows by Algorithm 3 "
    "and those of Gaussians have, and others end when their ESS is known to 3 %, or when thinner chains would hide it"
)


def target(task: str, value: str) -> Call:
    """The target of a task at a coupling or a condition number."""
    if task == "grid-ising":
        return call("discrax.bench.papers.any_scale.targets:ising_grid", side=20, coupling=float(value))
    if task in ATTACHED:
        models = "discrax.bench.papers.any_scale.targets:ising_barabasi_albert"
        return call(models, num_sites=400, attached=ATTACHED[task], coupling=float(value))
    # Centred in the box: b = 0, as stated, puts the mode into a corner, and then neither LB nor AB-trace has the
    # printed ESS on the rotated one; with b = 10 both have it, at all three condition numbers.
    kind, condition = f"discrax.targets:LatticeGaussian.{task.partition('-')[0]}", float(value)
    return call(kind, seed=0, dimension=100, condition=condition, centre=10.0)


def mixing(*, whole: bool, per_chain: bool = False) -> Call:
    """The measure of a sampler that is tuned in warm-up; with its `whole` budget it is not cut short."""
    how: dict[str, Any] = {"per_chain": True} if per_chain else {}
    return call("discrax.bench.experiments.ess:mixing", **how, **({"error": None} if whole else {}))


def _frozen(effort: Size, *, ordinal: bool, per_chain: bool) -> Call:
    """Gaussians have their whole budget at all sizes: of short chains their ESS is too large, by up to 18 %."""
    return mixing(whole=effort is Size.PAPER or (ordinal and not per_chain), per_chain=per_chain)


def printed_rows(effort: Size, *, ordinal: bool, per_chain: bool = False) -> dict[str, dict[str, Any]]:
    """The samplers as the paper has them: what a cell of each needs.

    On ordinal sites Gibbs takes them in turn, and the random walk moves some of them, their number tuned, by a level.
    W is fitted to the burn-in also where the exact Hessian is known.
    """
    measure = call("discrax.bench.papers.any_scale.algorithm:adapted_throughout", per_chain=per_chain)
    second: dict[str, Any] = {"W": "estimate", "ratios": "gradient"}
    adapted = {
        "AB-1st": call("discrax.samplers:ab_first", ratios="gradient"),
        "AB-shift": call("discrax.samplers:ab_shift", **second),
        "AB-max": call("discrax.samplers:ab_max", **second, ties="none"),
        "AB-trace": call("discrax.samplers:ab_trace", **second),
    }
    tuned = {
        "Gibbs": call("discrax.samplers:gibbs", scan="systematic" if ordinal else "random"),
        "RW": call("discrax.samplers:rwm", **({"reach": 1} if ordinal else {})),
        "DLP": call("discrax.samplers:dmala", ratios="gradient"),
        "DLP-trace": call("discrax.samplers:dlp_trace", ratios="gradient"),
    }
    frozen = _frozen(effort, ordinal=ordinal, per_chain=per_chain)
    rows = {name: {"sampler": built, "measure": frozen, "is_timed": True} for name, built in tuned.items()}
    return rows | {name: {"sampler": built, "measure": measure} for name, built in adapted.items()}


def our_rows(effort: Size, *, ordinal: bool, per_chain: bool = False) -> dict[str, dict[str, Any]]:
    """The same samplers with our rules and exact ratios, and other scans of Gibbs."""
    others = {
        "Gibbs (random)" if ordinal else "Gibbs (chromatic)": call(
            "discrax.samplers:gibbs", scan="random" if ordinal else "chromatic"
        ),
        "DLP (ours)": call("discrax.samplers:dmala"),
        "DLP-trace (ours)": call("discrax.samplers:dlp_trace"),
        "AB-1st (ours)": call("discrax.samplers:ab_first"),
        "AB-shift (ours)": call("discrax.samplers:ab_shift", W="estimate"),
        "AB-max (ours)": call("discrax.samplers:ab_max", W="estimate"),
        "AB-trace (ours)": call("discrax.samplers:ab_trace", W="estimate"),
    }
    if not ordinal and not per_chain:  # gradients are exact ratios on Ising models
        others = {name: each for name, each in others.items() if not name.startswith("DLP")}
    if per_chain:  # no colours
        others.pop("Gibbs (chromatic)", None)
    frozen = _frozen(effort, ordinal=ordinal, per_chain=per_chain)
    return {name: {"sampler": built, "measure": frozen, "is_timed": True} for name, built in others.items()}


def quadratic(task: str, value: str, effort: Size) -> Iterator[Cell]:
    """All samplers on a task."""
    ordinal = TASKS[task] == "L"
    for name, how in (printed_rows(effort, ordinal=ordinal) | our_rows(effort, ordinal=ordinal)).items():
        labels = (("task", task), (TASKS[task], value), ("sampler", name))
        yield Cell(labels=labels, target=target(task, value), budget=BUDGETS[effort], **how)


_DOMAINS = (
    "Burn-in: chains that begin at random freeze into domains. The paper's burn-in is as long, but of its steps Gibbs "
    "makes one update of a site, which is too few to dissolve them."
)
_FROM_ORDER = (  # the first: benchmarks/lattice_rows.py --ordered
    "begun with all spins up it has 4.7 +- 0.1, between references 0.4, and 8.4 with sites in turn; print, 6.11, lies "
    "between"
)
_SECOND_ORDER = ("AB-shift", "AB-max", "AB-trace")
_RIDGE = (
    "Algorithm 3 as printed comes out of the burn-in, whose W and D are 0, with the (sigma, alpha) of first order, and "
    "climbs in the draws that count the ridge that ends at (infinity, 1); print has what is found near its end."
)
_TIES = (
    "Many D have the least largest eigenvalue, and print does not say which one it takes; the row has whichever comes."
)
# By benchmarks/lattice_rows.py --chains 10 --begin 100 0.95
_BEGUN_ABOVE = {
    ("rotation-gaussian", "AB-shift", "2"): "1,096 +- 3.2, between references 40.2 (print 1,182)",
    ("rotation-gaussian", "AB-shift", "10"): "199.6 +- 0.6, between references 10.4 (print 196.9)",
    ("rotation-gaussian", "AB-shift", "50"): "36.9 +- 0.2, between references 2.0 (print 35.72)",
    ("rotation-gaussian", "AB-max", "2"): "1,141 +- 1.8, between references 40.1 (print 1,224)",
    ("rotation-gaussian", "AB-max", "10"): "209.5 +- 0.7, between references 10.6 (print 217.4)",
    ("rotation-gaussian", "AB-max", "50"): "37.0 +- 0.2, between references 2.1 (print 36.75)",
    ("rotation-gaussian", "AB-trace", "2"): "1,185 +- 2.1, between references 46.0 (print 1,244)",
    ("rotation-gaussian", "AB-trace", "10"): "238.0 +- 1.0, between references 12.9 (print 239.1)",
    ("rotation-gaussian", "AB-trace", "50"): "51.2 +- 0.3, between references 4.0 (print 52.84)",
    ("sparse-gaussian", "AB-shift", "2"): "605.0 +- 1.9, between references 42.0 (print 545.1)",
    ("sparse-gaussian", "AB-shift", "10"): "163.0 +- 0.6, between references 10.8 (print 154.0)",
    ("sparse-gaussian", "AB-shift", "50"): "56.5 +- 0.5, between references 3.2: print, 45.19, lies between",
    ("sparse-gaussian", "AB-trace", "2"): "1,018 +- 2.5, between references 93.2 (print 916.8)",
    ("sparse-gaussian", "AB-trace", "10"): "881 +- 2, and by probes 1,111 +- 1, between references 99 (print 1,228)",
    ("sparse-gaussian", "AB-trace", "50"): "1,271 +- 2.3, between references 75.8 (print 1,418)",
}
_WITH_LEAST_TRACE = {
    "2": "with that of least trace, and probes, it has 1,102 +- 1; print, 680, lies between",
    "10": "with that of least trace, and probes, it has 1,106 +- 1; print, 475, lies between",
}
_WITH_MOST_TRACE = (
    "with that of most trace (benchmarks/lattice_rows.py) it has 144.1 +- 0.5, and references differ by 5 % (print 133)"
)
_REFERENCE = (
    "Print has one reference state and does not say whether the grid has an edge; its samplers are here as much below "
    "ours."
)
_PERIODIC = (
    "on the periodic grid it has 6.46 and one reference differs from another by 0.86 (standard deviation): print is "
    "1.92 of these below"
)
_STILL_THERE = (
    "Algorithm 3 as printed is after 100,000 steps still on the ridge of (sigma, alpha) that ends at (infinity, 1); at "
    "its end ours is above print, as LB is: print has one reference state and does not say if the grid has an edge."
)
_BOTH = (
    "with (sigma, alpha) by probes AB-shift, AB-max and AB-trace have 233.6 +- 0.3, 235.9 +- 0.3 and 239.0 +- 0.3 "
    "here, and AB-trace 226 on the periodic grid, where one reference differs from another by 39: print is 1.1 of "
    "these below"
)

_IN_TURN = "Print does not say how its Gibbs chooses a site of spins: at random, as ours does, or in turn."
_SITES_IN_TURN = "in turn it has 5.67 +- 0.07, between references 0.79 (print 4.50)"  # any-scale/readings
_WALK = (
    "Print does not say how its walk chooses sites: each with probability R / n, as that of DISCS does, or R of them, "
    "as ours does."
)
# benchmarks/lattice_walks.py: +- of chains, and between references, of which print has one
_EACH_ALONE = {
    ("rotation-gaussian", "2"): "so it has 14.76 +- 0.14, between references 0.57 (print 14.53)",
    ("rotation-gaussian", "10"): "so it has 9.73 +- 0.12, between references 0.60 (print 9.41)",
    ("rotation-gaussian", "50"): "so it has 6.52 +- 0.06, between references 0.47 (print 6.20)",
    ("sparse-gaussian", "2"): "so it has 12.68 +- 0.14, between references 0.95 (print 11.80)",
}


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
        (_DOMAINS, _FROM_ORDER, "grid-ising", ("0.7071",), ("Gibbs",)),
        (_IN_TURN, _SITES_IN_TURN, "grid-ising", ("0.3000",), ("Gibbs",)),
        *(
            (_RIDGE, f"begun at (100, 0.95) after the burn-in it has {found}", task, (value,), (sampler,))
            for (task, sampler, value), found in _BEGUN_ABOVE.items()
        ),
        *((_TIES, found, "sparse-gaussian", (value,), ("AB-max",)) for value, found in _WITH_LEAST_TRACE.items()),
        (_TIES, _WITH_MOST_TRACE, "sparse-gaussian", ("50",), ("AB-max",)),
        *((_WALK, found, task, (value,), ("RW",)) for (task, value), found in _EACH_ALONE.items()),
        (_REFERENCE, _PERIODIC, "grid-ising", ("0.3000",), ("RW",)),
        (_STILL_THERE, _BOTH, "grid-ising", ("0.3000",), _SECOND_ORDER),
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
    names = {"DLP": "LB", "DLP (ours)": "LB (ours)"}
    return [relabel(row, sampler=names.get(row["labels"]["sampler"], row["labels"]["sampler"])) for row in rows]


# How much the ESS differs between eight instances, at L = 2, 10 and 50, as a part of their mean, without the error of
# the chains: benchmarks/lattice_rows.py
_BETWEEN_INSTANCES = {
    ("sparse-gaussian", "RW"): (0.026, 0.041, 0.0),
    ("sparse-gaussian", "DLP"): (0.050, 0.051, 0.040),
    ("sparse-gaussian", "DLP-trace"): (0.054, 0.052, 0.042),
    ("rotation-gaussian", "DLP"): (0.0, 0.0, 0.047),
}


def _instance_spread(labels: dict[str, str]) -> float:
    """The matrices of the Gaussians are random, and print has one instance of each. 0 where it was not measured."""
    task, sampler = labels.get("task", labels.get("model", "")), labels["sampler"]
    condition = labels.get("L") or labels.get("parameter", "").removeprefix("L=")
    spread = _BETWEEN_INSTANCES.get((task, "DLP" if sampler == "LB" else sampler))
    return 0.0 if spread is None else spread[CONDITIONS.index(condition)]


def _pair(number: int, title: str, columns: tuple[str, ...], derive: Derive) -> tuple[Table, Table]:
    shared: dict[str, Any] = {"paper": "any-scale", "number": number, "columns": columns}
    shared |= {"rows": ("sampler",), "derive": derive}
    return (
        Table(
            f"ESS per 10,000 queries, {title}",
            metric="ESS_n",
            ours="ESS_n",
            notes=NOTES,
            instance_spread=_instance_spread,
            print_steps=PRINT_STEPS,
            **shared,
        ),
        Table(f"ESS per second, {title}", metric="ESS_t", ours="ESS_t", compares=False, **shared),
    )


@suite(
    "any-scale/table01",
    f"ESS on quadratic targets: Ising on a grid and on a Barabasi-Albert graph, two lattice Gaussians; {WHICH}",
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

    moved = "Sites that moved in the burn-in, to whose moves W is fitted"
    exhibits = (
        *_pair(number, about, (TASKS[task],), derive),
        Table(moved, "", 0, "burn_in_sites_moved", "burn_in_sites_moved", (TASKS[task],), ("sampler",), derive=derive),
    )
    drawn = figure(f"ESS per 10,000 queries, {about}", "bars", only(task=task), metric="ESS_n", panels=(TASKS[task],))
    return suite(f"any-scale/table{number:02}", f"{about}; {WHICH}", *exhibits, drawn)(cells)


table02 = _one_task(2, "grid-ising", "Ising on a 20 x 20 grid")
table03 = _one_task(3, "ba4-ising", "Ising on a Barabasi-Albert graph")
table04 = _one_task(4, "rotation-gaussian", "rotated lattice Gaussian")
table05 = _one_task(5, "sparse-gaussian", "sparse lattice Gaussian")


def _grid(
    effort: Size, task: str, made: Call, name: str, sigmas: Sequence[float], alphas: Sequence[float], burns_in: bool
) -> Iterator[Cell]:
    """A sampler at fixed (sigma, alpha); where it estimates a Hessian, the values are set after its burn-in."""
    address = "discrax.samplers:ab_trace" if burns_in else "discrax.samplers:ab_first"
    short = {Size.QUICK: Budget(8, 120, 300), Size.DEFAULT: Budget(100, 1_500, 4_000), Size.PAPER: BUDGETS[Size.PAPER]}
    for sigma in sigmas:
        for alpha in alphas:
            fixed = {"sigma": float(sigma), "alpha": float(alpha)}
            yield Cell(
                labels=(("task", task), ("sampler", name), ("sigma", f"{sigma:g}"), ("alpha", f"{alpha:g}")),
                target=made,
                sampler=call(address, ratios="gradient", **({} if burns_in else fixed)),
                adaptation=call("discrax.bench.papers.any_scale.kernels:SetKnobs", **fixed) if burns_in else None,
                budget=short[effort],
                measure=mixing(whole=effort is Size.PAPER),
            )


@suite(
    "any-scale/figure01",
    "t^alpha at several scales on 100 independent bits, p uniform in [0.05, 0.95] (print does not say which p); "
    "80,000 draws after 20,000 steps at the paper's size, 4,000 after 1,500 at the default",
    figure(
        "ESS against alpha for several sigma, independent bits",
        "weights",
        metric="ESS_per_step",
        sigma0=call("discrax.bench.papers.any_scale.targets:mean_variance", num_sites=100, low=0.05),
    ),
)
def figure01(effort: Size) -> Iterator[Cell]:
    made = call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=0.05)
    sigmas = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 12.8, 1000.0)
    yield from _grid(effort, "bernoulli", made, "AB-1st", sigmas, [k / 10 for k in range(3, 11)], burns_in=False)


def _non_quadratic(
    number: int, task: str, made: Call, about: str, sigmas: tuple[float, ...], *, ordinal: bool
) -> Suite:
    def cells(effort: Size) -> Iterator[Cell]:
        rows = printed_rows(effort, ordinal=ordinal, per_chain=True) | our_rows(effort, ordinal=ordinal, per_chain=True)
        for name, how in rows.items():
            yield Cell(labels=(("task", task), ("sampler", name)), target=made, budget=BUDGETS[effort], **how)
        alphas = (0.5, 0.75, 1.0) if effort is Size.QUICK else tuple(round(0.5 + 0.1 * k, 1) for k in range(6))
        few = sigmas[::2] if effort is Size.QUICK else sigmas
        yield from _grid(effort, task, made, "AB-trace", few, alphas, burns_in=True)

    def cells_with(fixed: bool) -> Derive:
        return lambda rows: [row for row in only(task=task)(rows) if ("sigma" in row["labels"]) == fixed]

    return suite(
        f"any-scale/figure{number:02}",
        f"{about}; {WHICH}",
        figure(f"ESS per 10,000 queries, {about}", "bars", cells_with(fixed=False), metric="ESS_n"),
        figure(f"ESS per step of the chains, {about}", "boxes", cells_with(fixed=False), metric="ESS_chain"),
        figure(
            f"ESS per step of AB-trace at fixed (sigma, alpha), {about}",
            "heat",
            cells_with(fixed=True),
            metric="ESS_per_step",
        ),
        unequal="at the default size cells at a fixed (sigma, alpha) have 4,000 draws, others up to 80,000; at the "
        "paper's size all have 80,000",
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
