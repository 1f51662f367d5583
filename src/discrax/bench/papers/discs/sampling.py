"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling": the sampling experiments.

Every sampler is tuned to its acceptance rate; outside of sweeps also by a search for the scale with the longest jumps
(`*-search`). Figures are drawn per 10,000 queries and per second.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import only
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
_SEARCH, _PATHS = "discrax.bench.papers.rules:StepSearch", (1.0, 10.0, 100.0)
_SEARCHES = {name: call(_SEARCH, values=_PATHS) for name in ("GWG", "PAS")}
_SEARCHES |= {name: call(_SEARCH) for name in ("DMALA", "DLMC", "DLMCf")}
_LONG, _SHORT = 1_000_000, 100_000  # steps of the paper, in sweeps and elsewhere; half are burn-in


def budget(effort: Size, sites: int, paper_steps: int) -> Budget:
    """As many steps as the size of the target allows; sites count once per level beyond two."""
    if effort is Size.PAPER:
        return Budget(100, paper_steps // 2, paper_steps // 2)
    if effort is Size.DEFAULT:
        steps = int(min(5_000, max(500, 2e8 / (100 * sites))))
        return Budget(100, steps, steps)
    steps = int(min(250, max(30, 4e6 / (4 * sites))))
    return Budget(4, steps, steps)


def model(
    labels: dict[str, str],
    made: Call,
    effort: Size,
    sites: int,
    *,
    paper_steps: int = _LONG,
    with_search: bool = False,
    without: Sequence[str] = (),
    init: Call | None = None,
) -> Iterator[Cell]:
    """All samplers on a target."""
    for name, built in SAMPLERS.items():
        if name in without:
            continue
        choices: list[tuple[str, Any]] = [(name, "auto")]
        if with_search and name in _SEARCHES:
            choices.append((f"{name}-search", _SEARCHES[name]))
        for shown, adaptation in choices:
            yield Cell(
                labels=(*labels.items(), ("sampler", shown)),
                target=made,
                sampler=built,
                budget=budget(effort, sites, paper_steps),
                adaptation=adaptation,
                init=init,
                is_timed=True,
            )


_ESS = {"ESS_n": "ESS per 10,000 queries", "ESS_t": "ESS per second"}


def sweep(title: str, task: str, x: str) -> list[Figure]:
    """Two figures: ESS per query and per second against a label."""
    shared = {"kind": "curve", "derive": only(task=task), "x": x}
    return [figure(f"{what}, {title}", **shared, y=metric, logx=True, logy=True) for metric, what in _ESS.items()]


def comparison(title: str, task: str, *panels: str) -> list[Figure]:
    """Two figures: ESS per query and per second of all samplers, side by side."""
    shared = {"kind": "bars", "derive": only(task=task), "panels": panels, "hue": ("sampler",)}
    return [figure(f"{what}, {title}", metric=metric, **shared) for metric, what in _ESS.items()]


def _ising(side: int, temperature: str) -> Call:
    coupling, mean, spread = {"high": (0.5, 0.5, 1.5), "low": (1.0, 1.0, 3.0)}[temperature]
    return call("discrax.bench.experiments.models:ising_disc", side=side, coupling=coupling, mean=mean, spread=spread)


@suite("discs/figure01", "Ising: ESS against the number of sites", *sweep("Ising", "ising-sizes", "sites"))
def figure01(effort: Size) -> Iterator[Cell]:
    for side in (25, 50, 100, 250):
        labels = {"task": "ising-sizes", "sites": str(side**2)}
        yield from model(labels, _ising(side, "high"), effort, side**2)


BETAS = tuple(round(0.1607 + 0.04 * k, 4) for k in range(16))
_INFORMED = {"GWG": "gwg", "PAS": "pas", "DMALA": "dmala", "DLMC": "dlmc"}


@suite(
    "discs/figure02",
    "Ising without field: weight functions sqrt(t) and t/(t+1) against inverse temperature",
    figure(
        "ESS per step against inverse temperature", "curve", only(task="ising-temperatures"),
        x="beta", y="ESS_per_step", logy=True, panels=("side", "sampler"), hue=("weight_fn",),
        xlabel="inverse temperature (critical: 0.4407)",
    ),
)  # fmt: skip
def figure02(effort: Size) -> Iterator[Cell]:
    """Chains begin with all spins up: below the critical temperature a random start would freeze into domains."""
    steps = {Size.QUICK: Budget(4, 150, 200), Size.DEFAULT: Budget(50, 2_000, 8_000)}
    for side in (50, 100):
        paper = {50: 400_000, 100: 1_000_000}[side]
        for beta in BETAS[::3] if effort is Size.QUICK else BETAS:
            for name, built in _INFORMED.items():
                for shown, weight in (("sqrt(t)", "sqrt"), ("t/(t+1)", "ratio")):
                    labels = {"task": "ising-temperatures", "side": str(side), "beta": str(beta), "sampler": name}
                    yield Cell(
                        labels=(*labels.items(), ("weight_fn", shown)),
                        target=call("discrax.bench.papers.discs.targets:tempered_grid", side=side, beta=beta),
                        sampler=call(f"discrax.samplers:{built}", balancing=weight),
                        budget=steps.get(effort, Budget(100, paper // 2, paper // 2)),
                        init=call("discrax.bench.papers.discs.targets:all_up"),
                    )


def _potts(side: int, levels: int) -> Call:
    settings = {"side": side, "num_levels": levels, "coupling": 1.0, "mean": 0.5, "spread": 1.5}
    return call("discrax.bench.papers.discs.targets:potts_disc", **settings)


@suite("discs/figure03", "Potts: ESS against the number of levels", *sweep("Potts 30 x 30", "potts-levels", "levels"))
def figure03(effort: Size) -> Iterator[Cell]:
    for levels in (4, 16, 64, 256):
        labels = {"task": "potts-levels", "levels": str(levels)}
        without = ("BG-2",) if levels == 256 else ()  # 65,536 joint states a step
        yield from model(labels, _potts(30, levels), effort, 900 * levels, without=without)


@suite(
    "discs/figure07",
    "independent bits: temperature and number of sites",
    *comparison("independent bits", "bernoulli", "temperature"),
    *sweep("independent bits", "bernoulli-sizes", "sites"),
)
def figure07(effort: Size) -> Iterator[Cell]:
    for temperature, spread in (("high", 0.5), ("low", 1.5)):
        made = call("discrax.bench.papers.discs.targets:normal_bernoulli", num_sites=10_000, spread=spread)
        labels = {"task": "bernoulli", "temperature": temperature}
        yield from model(labels, made, effort, 10_000, paper_steps=_SHORT, with_search=True)
    for sites in (2_000, 10_000, 100_000, 500_000):
        made = call("discrax.bench.papers.discs.targets:normal_bernoulli", num_sites=sites, spread=1.5)
        yield from model({"task": "bernoulli-sizes", "sites": str(sites)}, made, effort, sites)


@suite(
    "discs/figure08",
    "independent categories: number of sites and of levels",
    *sweep("independent categories", "categorical-sizes", "sites"),
    *sweep("independent categories", "categorical-levels", "levels"),
)
def figure08(effort: Size) -> Iterator[Cell]:
    def made(sites: int, levels: int) -> Call:
        settings = {"num_sites": sites, "num_levels": levels, "spread": 1.5}
        return call("discrax.bench.papers.discs.targets:normal_categorical", **settings)

    for sites in (250, 2_000, 32_000, 512_000):
        yield from model({"task": "categorical-sizes", "sites": str(sites)}, made(sites, 4), effort, 4 * sites)
    for levels in (4, 16, 64, 256):
        without = ("BG-2",) if levels == 256 else ()
        labels = {"task": "categorical-levels", "levels": str(levels)}
        yield from model(labels, made(2_000, levels), effort, 2_000 * levels, without=without)


@suite("discs/figure09", "Ising 50 x 50: temperature", *comparison("Ising 50 x 50", "ising", "temperature"))
def figure09(effort: Size) -> Iterator[Cell]:
    for temperature in ("high", "low"):
        labels = {"task": "ising", "temperature": temperature}
        yield from model(labels, _ising(50, temperature), effort, 2_500, paper_steps=_SHORT, with_search=True)


@suite("discs/figure10", "Potts: number of sites", *sweep("Potts, 4 levels", "potts-sizes", "sites"))
def figure10(effort: Size) -> Iterator[Cell]:
    for side in (10, 30, 100, 300):
        yield from model({"task": "potts-sizes", "sites": str(side**2)}, _potts(side, 4), effort, 4 * side**2)


@suite("discs/figure11", "factorial hidden Markov models, binary and categorical", *comparison("FHMM", "fhmm", "kind"))
def figure11(effort: Size) -> Iterator[Cell]:
    for kind, length, factors in (("binary high", 200, 50), ("binary low", 1_000, 10)):
        made = call("discrax.targets:FHMM.simulated", seed=0, length=length, num_factors=factors, noise_variance=4.0)
        labels = {"task": "fhmm", "kind": kind}
        yield from model(labels, made, effort, length * factors, paper_steps=_SHORT, with_search=True)
    for levels in (4, 8):
        settings = {"seed": 0, "length": 200, "num_factors": 10, "num_levels": levels, "noise_variance": 4.0}
        made = call("discrax.targets:CategoricalFHMM.simulated", **settings)
        labels = {"task": "fhmm", "kind": f"{levels} levels"}
        yield from model(labels, made, effort, 2_000 * levels, paper_steps=_SHORT)


@suite("discs/figure16", "RBMs, binary and categorical", *comparison("RBM", "rbm", "kind"))
def figure16(effort: Size) -> Iterator[Cell]:
    """The small ones ship with the package; those with more hidden units are trained on the user's data."""
    short = {"num_images": 5_000, "num_gibbs": 10} if effort is Size.QUICK else {}
    made = {
        "binary 25": call("discrax.targets:RBM.pretrained"),
        "binary 200": call("discrax.bench.experiments.models:mnist_rbm", num_hidden=200, **short),
        "4 levels": call("discrax.targets:CategoricalRBM.pretrained"),
        "8 levels": call("discrax.bench.papers.discs.targets:fashion_rbm", num_levels=8, num_hidden=50, **short),
    }
    for kind, target in made.items():
        sites = 784 * (1 if kind.startswith("binary") else int(kind[0]))
        labels = {"task": "rbm", "kind": kind}
        yield from model(labels, target, effort, sites, paper_steps=_SHORT, with_search=kind == "binary 25")


ALIASES = {
    "discs/ising": ("discs/figure01", "discs/figure09"),
    "discs/potts": ("discs/figure03", "discs/figure10"),
    "discs/temperature": ("discs/figure02",),
    "discs/bernoulli": ("discs/figure07",),
    "discs/categorical": ("discs/figure08",),
    "discs/fhmm": ("discs/figure11",),
    "discs/rbm": ("discs/figure16",),
}
