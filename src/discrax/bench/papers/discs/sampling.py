"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling": the sampling experiments.

Every sampler is tuned to its acceptance rate; outside of sweeps also by a search for the scale with the longest jumps
(`*-search`). Figures are drawn per 10,000 queries and per second. Two kinds of rows are not the paper's: "(per rate)"
counts the time of DLMC in units of 1 / Z(x), where the paper's is a number; "Gibbs (chromatic)" and "Gibbs (layers)"
redraw all sites in a step, colour by colour of the target's graph or by the layers of an RBM.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Derive, Row, only, relabel
from discrax.bench.plan.suite import Figure, Size, figure, suite

SAMPLERS = {
    "RWM": call("discrax.samplers:rwm"),
    "BG-2": call("discrax.samplers:block_gibbs", block_size=2),
    "HB-10-1": call("discrax.samplers:hamming_ball", block_size=10, radius=1),
    "GWG": call("discrax.samplers:gwg"),
    "PAS": call("discrax.samplers:pas"),
    "DMALA": call("discrax.samplers:dmala"),
    "DLMC": call("discrax.samplers:dlmc"),
    "DLMCf": call("discrax.samplers:dlmcf"),
}
# As the paper has them: the time of DLMC is a number, the same at all states.
TUNED = SAMPLERS | {
    "DLMC": call("discrax.samplers:dlmc", per_rate=False),
    "DLMCf": call("discrax.samplers:dlmcf", per_rate=False),
}
_OURS = {
    "DLMC (per rate)": call("discrax.samplers:dlmc"),
    "DLMCf (per rate)": call("discrax.samplers:dlmcf"),
}
_TOO_MANY = ("BG-2",)  # of 256 levels: 65,536 joint states a step
_SEARCH, _PATHS = "discrax.bench.papers.rules:StepSearch", (1.0, 10.0, 100.0)
_SEARCHES = {name: call(_SEARCH, values=_PATHS) for name in ("GWG", "PAS")}
_SEARCHES |= {name: call(_SEARCH) for name in ("DMALA", "DLMC", "DLMCf")}
_LONG, SHORT = 1_000_000, 100_000  # steps of the paper, in sweeps and elsewhere; half are burn-in
# A step reads and writes about ten numbers of four bytes a site and level of a chain; an H200 moves about 2e12 bytes a
# second, so this many take about five seconds. Small targets are bound by the start of kernels: some 60,000 steps a
# second. Of targets with more than 15,000 sites and levels the 33 cells of a size (eleven samplers, three seeds) would
# take longer than four minutes: they get a third, and at least a thousand draws.
_CODES, _CODES_IF_LARGE, _STEPS = 2.5e11, 8e10, 200_000


def budget(effort: Size, sites: int, paper_steps: int) -> Budget:
    """The most that a cell may run; sites count once per level beyond two. A cell ends when its statistics are good."""
    if effort is Size.PAPER:
        return Budget(100, paper_steps // 2, paper_steps // 2)
    if effort is Size.DEFAULT:
        codes = _CODES if sites <= 15_000 else _CODES_IF_LARGE
        most = min(paper_steps // 2, _STEPS, max(1_000, int(codes / (100 * sites))))
        return Budget(100, min(20_000, max(500, most // 4)), most)
    steps = int(min(250, max(30, 4e6 / (4 * sites))))
    return Budget(4, steps, steps)


_BRIEF = budget(Size.DEFAULT, 10_000, SHORT)
AS_LONG = (  # what titles say of models at one size
    f"by default at most the paper's {_BRIEF.num_samples:,} draws, after {_BRIEF.num_warmup:,} of warm-up in place of "
    f"{SHORT // 2:,}"
)


def _shorter(*sites: int) -> str:
    """What titles say of sweeps: how many draws are fewer than in print. Sites are as `budget` counts them."""
    draws = [budget(Size.DEFAULT, each, _LONG).num_samples for each in sites]
    return (
        f"by default at most {max(draws):,} draws, fewer where steps are dear: seconds of an H200 a cell, "
        f"{min(draws):,} at the largest; print has {_LONG // 2:,}"
    )


def model(
    labels: dict[str, str],
    made: Call,
    effort: Size,
    sites: int,
    *,
    paper_steps: int = _LONG,
    with_search: bool = False,
    without: Sequence[str] = (),
    scan: str = "chromatic",
) -> Iterator[Cell]:
    """All samplers on a target, with the same budget; `scan` is that of Gibbs sampling of all sites."""
    rows: dict[str, tuple[Call, Any]] = {name: (built, "auto") for name, built in (TUNED | _OURS).items()}
    rows[f"Gibbs ({scan})"] = (call("discrax.samplers:gibbs", scan=scan), None)
    if with_search:
        rows |= {f"{name}-search": (TUNED[name], search) for name, search in _SEARCHES.items()}
    for name, (built, adaptation) in rows.items():
        if name not in without:
            yield Cell(
                labels=(*labels.items(), ("sampler", name)),
                target=made,
                sampler=built,
                budget=budget(effort, sites, paper_steps),
                adaptation=adaptation,
                is_timed=True,
            )


_ESS = {"ESS_n": "ESS per 10,000 queries", "ESS_t": "ESS per second"}


def sweep(title: str, task: str, x: str, derive: Derive | None = None) -> list[Figure]:
    """Two figures: ESS per query and per second against a label; the rows are the task's, or what `derive` makes."""
    shared: dict[str, Any] = {"kind": "curve", "derive": derive or only(task=task), "x": x}
    return [figure(f"{what}, {title}", **shared, y=metric, logx=True, logy=True) for metric, what in _ESS.items()]


def comparison(title: str, task: str, *panels: str, hue: str = "sampler", derive: Derive | None = None) -> list[Figure]:
    """Two figures: ESS per query and per second of all samplers, or of what another label says, side by side; the rows
    are the task's, or what `derive` makes.
    """
    shared: dict[str, Any] = {"kind": "bars", "derive": derive or only(task=task), "panels": panels, "hue": (hue,)}
    return [figure(f"{what}, {title}", metric=metric, **shared) for metric, what in _ESS.items()]


def _ising(side: int, temperature: str) -> Call:
    coupling, mean, spread = {"high": (0.5, 0.5, 1.5), "low": (1.0, 1.0, 3.0)}[temperature]
    settings = {"side": side, "coupling": coupling, "mean": mean, "spread": spread}
    return call("discrax.bench.papers.discs.targets:ising_in_field", **settings)


def _potts(side: int, levels: int) -> Call:
    settings = {"side": side, "num_levels": levels, "coupling": 1.0, "mean": 0.5, "spread": 1.5}
    return call("discrax.bench.papers.discs.targets:potts_disc", **settings)


def _bits(sites: int, spread: float) -> Call:
    return call("discrax.bench.papers.discs.targets:normal_bernoulli", num_sites=sites, spread=spread)


def _categories(sites: int, levels: int) -> Call:
    settings = {"num_sites": sites, "num_levels": levels, "spread": 1.5}
    return call("discrax.bench.papers.discs.targets:normal_categorical", **settings)


def _fhmm(length: int, factors: int, levels: int) -> Call:
    family = "FHMM" if levels == 2 else "CategoricalFHMM"
    settings = {"seed": 0, "length": length, "num_factors": factors, "noise_variance": 4.0}
    return call(f"discrax.targets:{family}.simulated", **settings, **({} if levels == 2 else {"num_levels": levels}))


class Model(NamedTuple):
    """A target that all samplers are compared on at one size."""

    label: str  # the value of the label that tells the targets of a task apart
    target: Call
    sites: int  # as `budget` counts them


# By task: the label that tells its targets apart, and they.
MODELS: dict[str, tuple[str, tuple[Model, ...]]] = {
    "bernoulli": ("temperature", (Model("high", _bits(10_000, 0.5), 10_000), Model("low", _bits(10_000, 1.5), 10_000))),
    "categorical": ("levels", tuple(Model(str(c), _categories(2_000, c), 2_000 * c) for c in (4, 8))),
    "ising": ("temperature", tuple(Model(each, _ising(50, each), 2_500) for each in ("high", "low"))),
    "potts": ("levels", tuple(Model(str(c), _potts(30, c), 900 * c) for c in (4, 8))),
    "fhmm": (
        "kind",
        (
            Model("binary high", _fhmm(200, 50, 2), 10_000),
            Model("binary low", _fhmm(1_000, 10, 2), 10_000),
            *(Model(f"{c} levels", _fhmm(200, 10, c), 2_000 * c) for c in (4, 8)),
        ),
    ),
}


def models(task: str, effort: Size) -> Iterator[Cell]:
    """All samplers on the targets of a task; a search for the longest jumps beside them where sites have two levels."""
    label, its = MODELS[task]
    for each in its:
        labels = {"task": task, label: each.label}
        search = not each.label[0].isdigit()
        yield from model(labels, each.target, effort, each.sites, paper_steps=SHORT, with_search=search)


_SIDES = (25, 50, 100, 250)


@suite(
    "discs/figure01",
    f"Ising: ESS against the number of sites ({_shorter(*(side**2 for side in _SIDES))})",
    *sweep("Ising", "ising-sizes", "sites"),
)
def figure01(effort: Size) -> Iterator[Cell]:
    for side in _SIDES:
        labels = {"task": "ising-sizes", "sites": str(side**2)}
        yield from model(labels, _ising(side, "high"), effort, side**2)


BETAS = tuple(round(0.1607 + 0.04 * k, 4) for k in range(16))
INFORMED = ("GWG", "PAS", "DMALA", "DLMC", "DLMCf")


def weighted(name: str, weight: str) -> Call:
    """An informed sampler of the paper with another weight function."""
    return call(TUNED[name].address, **dict(TUNED[name].arguments), balancing=weight)


@suite(
    "discs/figure02",
    "Ising without field: weight functions sqrt(t) and t/(t+1) against inverse temperature (default: 50 x 50 and "
    "40,000 draws; print has 200,000, and 100 x 100 too)",
    figure(
        "ESS per step against inverse temperature", "curve", only(task="ising-temperatures"),
        x="beta", y="ESS_per_step", logy=True, panels=("side", "sampler"), hue=("weight_fn",),
        xlabel="inverse temperature (critical: 0.4407)",
    ),
)  # fmt: skip
def figure02(effort: Size) -> Iterator[Cell]:
    """Chains begin with all spins up: below the critical temperature a random start would freeze into domains.

    The 528 cells of a side are one group: four minutes of an H200 are 50,000 steps of each at 50 x 50.
    """
    for side, paper in {50: 400_000, 100: 1_000_000}.items():
        if side > 50 and effort is Size.DEFAULT:
            continue
        shorter = {Size.QUICK: Budget(4, 150, 200), Size.DEFAULT: Budget(100, 10_000, 40_000)}
        most = shorter.get(effort) or budget(effort, side**2, paper)
        for beta in BETAS[::3] if effort is Size.QUICK else BETAS:
            labels = {"task": "ising-temperatures", "side": str(side), "beta": str(beta)}
            settings: dict[str, Any] = {
                "target": call("discrax.bench.papers.discs.targets:tempered_grid", side=side, beta=beta),
                "budget": most,
                "init": call("discrax.bench.papers.discs.targets:all_up"),
            }
            for name in INFORMED:
                for shown, weight in (("sqrt(t)", "sqrt"), ("t/(t+1)", "ratio")):
                    how = {"sampler": name, "weight_fn": shown}
                    yield Cell((*labels.items(), *how.items()), sampler=weighted(name, weight), **settings)
            gibbs = call("discrax.samplers:gibbs", scan="chromatic")
            yield Cell((*labels.items(), ("sampler", "Gibbs (chromatic)")), sampler=gibbs, **settings)


_LEVELS = (4, 16, 64, 256)


@suite(
    "discs/figure03",
    f"Potts: ESS against the number of levels ({_shorter(*(900 * levels for levels in _LEVELS))})",
    *sweep("Potts 30 x 30", "potts-levels", "levels"),
)
def figure03(effort: Size) -> Iterator[Cell]:
    for levels in _LEVELS:
        labels = {"task": "potts-levels", "levels": str(levels)}
        without = _TOO_MANY if levels == 256 else ()
        yield from model(labels, _potts(30, levels), effort, 900 * levels, without=without)


_BITS = (2_000, 10_000, 100_000, 500_000)


@suite(
    "discs/figure07",
    f"independent bits: temperature ({AS_LONG}) and number of sites ({_shorter(*_BITS)})",
    *comparison("independent bits", "bernoulli", "temperature"),
    *sweep("independent bits", "bernoulli-sizes", "sites"),
)
def figure07(effort: Size) -> Iterator[Cell]:
    yield from models("bernoulli", effort)
    for sites in _BITS:
        yield from model({"task": "bernoulli-sizes", "sites": str(sites)}, _bits(sites, 1.5), effort, sites)


def _by_levels(rows: list[Row]) -> list[Row]:
    """The cells of 2,000 sites are on both axes: that of sites, and that of levels, where they are those of four."""
    shared = [relabel(row, levels="4") for row in only(task="categorical-sizes", sites="2000")(rows)]
    return [*shared, *only(task="categorical-levels")(rows)]


@suite(
    "discs/figure08",
    f"independent categories: four and eight levels ({AS_LONG}), number of sites (by default up to 32,000; print has "
    f"512,000 too) and of levels ({_shorter(1_000, *(2_000 * levels for levels in _LEVELS))})",
    *comparison("2,000 independent categories", "categorical", "levels"),
    *sweep("independent categories, 4 levels", "categorical-sizes", "sites"),
    *sweep("2,000 independent categories, by levels", "categorical-levels", "levels", _by_levels),
)
def figure08(effort: Size) -> Iterator[Cell]:
    """Of 512,000 sites, eleven samplers and three seeds are more than four minutes of an H200 for a thousand draws."""
    yield from models("categorical", effort)
    for sites in (250, 2_000, 32_000, 512_000):
        if sites == 512_000 and effort is Size.DEFAULT:
            continue
        yield from model({"task": "categorical-sizes", "sites": str(sites)}, _categories(sites, 4), effort, 4 * sites)
    for levels in _LEVELS[1:]:
        labels = {"task": "categorical-levels", "levels": str(levels)}
        made, without = _categories(2_000, levels), _TOO_MANY if levels == 256 else ()
        yield from model(labels, made, effort, 2_000 * levels, without=without)


@suite(
    "discs/figure09",
    f"Ising 50 x 50: temperature ({AS_LONG})",
    *comparison("Ising 50 x 50", "ising", "temperature"),
)
def figure09(effort: Size) -> Iterator[Cell]:
    yield from models("ising", effort)


_POTTS_SIDES = (10, 30, 100, 300)


@suite(
    "discs/figure10",
    f"Potts: four and eight levels ({AS_LONG}), number of sites ({_shorter(*(4 * side**2 for side in _POTTS_SIDES))})",
    *comparison("Potts 30 x 30", "potts", "levels"),
    *sweep("Potts, 4 levels", "potts-sizes", "sites"),
)
def figure10(effort: Size) -> Iterator[Cell]:
    yield from models("potts", effort)
    for side in _POTTS_SIDES:
        yield from model({"task": "potts-sizes", "sites": str(side**2)}, _potts(side, 4), effort, 4 * side**2)


@suite(
    "discs/figure11",
    f"factorial hidden Markov models, binary and categorical ({AS_LONG})",
    *comparison("FHMM", "fhmm", "kind"),
)
def figure11(effort: Size) -> Iterator[Cell]:
    yield from models("fhmm", effort)


@suite("discs/figure16", f"RBMs, binary and categorical ({AS_LONG})", *comparison("RBM", "rbm", "kind"))
def figure16(effort: Size) -> Iterator[Cell]:
    """The binary one of 25 hidden units ships with the package; the others are trained on the user's MNIST and
    Fashion-MNIST, and without these data their cells say what is missing.
    """
    short = {"num_images": 5_000, "num_gibbs": 10} if effort is Size.QUICK else {}
    fashion = "discrax.bench.papers.discs.targets:fashion_rbm"
    made = {
        "binary 25": call("discrax.targets:RBM.pretrained"),
        "binary 200": call("discrax.bench.experiments.models:mnist_rbm", num_hidden=200, **short),
        "4 levels": call(fashion, num_levels=4, num_hidden=100, **short),
        "8 levels": call(fashion, num_levels=8, num_hidden=100, **short),
    }
    for kind, target in made.items():
        sites = 784 * (1 if kind.startswith("binary") else int(kind[0]))
        how: dict[str, Any] = {"with_search": kind == "binary 25", "scan": "layers"}
        yield from model({"task": "rbm", "kind": kind}, target, effort, sites, paper_steps=SHORT, **how)


ALIASES = {
    "discs/ising": ("discs/figure01", "discs/figure09"),
    "discs/potts": ("discs/figure03", "discs/figure10"),
    "discs/temperature": ("discs/figure02",),
    "discs/bernoulli": ("discs/figure07",),
    "discs/categorical": ("discs/figure08",),
    "discs/fhmm": ("discs/figure11",),
    "discs/rbm": ("discs/figure16",),
}
