"""What Sun et al. (2022) sample from, for how long, and with what.

Random walk (RWM), Gibbs with gradients (GWG, sites with replacement) and path auxiliary (LBP, without) samplers, each
with one site a step (-1), tuned to the optimal acceptance rate (A), and at the best of a grid of rates (G). Tuning is
algorithm 2 of the paper, R <- R + (A - a*) from R = 1 through the first half of a chain, frozen after it; rows "(our
rule)" are tuned by the default of the package in as many steps.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from discrax.bench.experiments.models import probabilities
from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.suite import Size
from discrax.exact import scaling
from discrax.samplers.balancing import get_balancing

CONFIGS = ("C1", "C2", "C3")
WEIGHTS = {"sqrt(t)": "sqrt", "t/(t+1)": "ratio"}
FAMILIES = (("RWM", ""), *(("GWG", weight) for weight in WEIGHTS), *(("LBP", weight) for weight in WEIGHTS))
OURS = "(our rule)"
FORWARD = "(forward order)"
RATE = "discrax.bench.papers.rules:PaperRate"


class Task(NamedTuple):
    """A target in three sizes, and how long each is run."""

    size_label: str
    sizes: tuple[int, ...]
    first_table: int  # of jump distance; the next two are ESS and seconds
    num_steps: tuple[int, ...]  # as the paper states them, half of them burn-in
    default_chains: tuple[int, ...]  # the paper has a hundred
    shares: tuple[float, ...] = (1.0, 1.0, 1.0)  # of these steps that the printed ESS fits


STATED = (10_000, 40_000, 100_000)
TASKS = {
    "bernoulli": Task("N", (100, 800, 6400), 5, STATED, (100, 100, 20), (0.4, 0.25, 0.4)),
    "ising": Task("p", (20, 50, 100), 8, STATED, (100, 50, 10)),
    "fhmm": Task("L", (200, 1000, 4000), 11, STATED, (100, 20, 5), (1.0, 0.5, 0.4)),
    "rbm": Task("h", (100, 400, 1000), 14, (40_000,) * 3, (20, 20, 20)),
}
LOW = {"C1": 0.25, "C2": 0.15, "C3": 0.05}
ISING = {"C1": (0.1, 0.1, 0.3), "C2": (0.15, 0.15, 0.45), "C3": (0.2, 0.2, 0.6)}
NOISE = {"C1": 2.0, "C2": 1.0, "C3": 0.5}
_QUICK_STEPS, _QUICK_CHAINS = (800, 600, 300), (8, 8, 4)
_RATES: dict[Size, tuple[float, ...]] = {
    Size.QUICK: (0.3, 0.5, 0.65, 0.8),
    Size.DEFAULT: tuple(round(0.05 + 0.1 * k, 2) for k in range(10)),
    Size.PAPER: tuple(round(0.03 + 0.02 * k, 2) for k in range(49)),
}
_FEW_RATES = (0.45, 0.55, 0.65)  # by default those of the largest size, where a run is dear
_FEW_WALK_RATES = (0.15, 0.25, 0.35)


def target(task: str, size: int, config: str, effort: Size, instance: int = 0) -> Call:
    """The target of a task at a size and configuration."""
    if task == "bernoulli":
        return call("discrax.bench.experiments.models:bernoulli", num_sites=size, low=LOW[config], seed=instance)
    if task == "ising":
        coupling, mean, spread = ISING[config]
        settings = {"side": size, "coupling": coupling, "mean": mean, "spread": spread}
        return call("discrax.bench.experiments.models:ising_disc", **settings)
    if task == "fhmm":
        return call(
            "discrax.bench.papers.optimal_scaling.targets:fhmm_released", length=size, noise_variance=NOISE[config]
        )
    short = {"num_images": 5_000, "num_gibbs": 10} if effort is Size.QUICK else {}
    return call("discrax.bench.experiments.models:mnist_rbm", num_hidden=size, **short)


def settings(task: str) -> Iterator[tuple[int, int, str]]:
    """(index of the size, size, configuration); the RBMs have one configuration a size."""
    sizes = TASKS[task].sizes
    if task == "rbm":
        yield from ((1, size, config) for size, config in zip(sizes, CONFIGS, strict=True))
    else:
        yield from ((i, size, config) for i, size in enumerate(sizes) for config in CONFIGS)


def instances(task: str, size: int, effort: Size) -> range:
    """A hundred random bits differ from draw to draw by more than the samplers do, so several draws are averaged."""
    return range(5 if task == "bernoulli" and size == 100 and effort is not Size.QUICK else 1)


@cache
def jump_spread(size: int, config: str, name: str, num_draws: int = 60) -> float:
    """How much the jump distance on independent bits differs between draws of their probabilities, as a part of it.

    That of -1 rows is exact, E[2 min(p, 1 - p)] of walks and 1 of the others; that of tuned ones is the theory's, which
    is proportional to the unit of `exact.scaling`.
    """
    if name.endswith("-1") and not name.startswith("RWM"):
        return 0.0
    values = []
    for seed in range(num_draws):
        p = probabilities(size, LOW[config], seed)
        if name == "RWM-1":
            values.append(float(np.mean(2 * np.minimum(p, 1 - p))))
        else:
            values.append(scaling(p, None if "RWM" in name else get_balancing("sqrt")).unit)
    return float(np.std(values, ddof=1) / np.mean(values))


# Between 16 instances at C1, C2 and C3, at the smallest size; between RBMs that were trained with other seeds, of 100,
# 400 and 1,000 hidden units, over both weights. Without the Monte Carlo error: benchmarks/jump_spread.py
_MEASURED = {
    ("ising", "RWM"): (0.040, 0.043, 0.040),
    ("ising", "GWG"): (0.013, 0.020, 0.024),
    ("ising", "LBP"): (0.0065, 0.0073, 0.012),
    ("fhmm", "RWM"): (0.074, 0.081, 0.082),
    ("fhmm", "GWG"): (0.026, 0.033, 0.035),
    ("fhmm", "LBP"): (0.0093, 0.013, 0.014),
    ("rbm", "RWM"): (0.017, 0.029, 0.091),
    ("rbm", "GWG"): (0.029, 0.070, 0.087),
    ("rbm", "LBP"): (0.036, 0.092, 0.107),
}
# The same of the ESS of RBMs, which differs by much more: five machines of 100, four of 400, five of 1,000.
_MEASURED_ESS = {"RWM": (0.0, 0.12, 0.0), "GWG": (0.26, 0.0, 0.18), "LBP": (0.21, 0.17, 0.25)}


def instance_spread(task: str, size: int, config: str, name: str, metric: str = "EJD") -> float:
    """How much a row differs between random instances of a task, as a part of it: its jump distance or ESS.

    Fields and series are drawn site by site, so it falls with the root of the number of sites: p^2 spins, L steps. Of
    RBMs it was measured at every size. An ESS differs at least as its jump distance does.
    """
    if task == "bernoulli":
        return jump_spread(size, config, name)
    family = next((family for family in ("RWM", "GWG", "LBP") if family in name), "")
    is_walk_of_rbm = (task, family) == ("rbm", "RWM")  # whose tuned walks change one site as well
    if (name.endswith("-1") and not is_walk_of_rbm) or (task, family) not in _MEASURED:
        return 0.0  # of one site a step it was not measured
    smaller = TASKS[task].sizes[0] / size
    power = {"ising": 1.0, "fhmm": 0.5, "rbm": 0.0}[task]
    of_jumps = _MEASURED[task, family][CONFIGS.index(config)] * smaller**power
    if (task, metric) == ("rbm", "ESS"):
        return max(of_jumps, _MEASURED_ESS[family][CONFIGS.index(config)])
    return of_jumps


def budget(task: str, index: int, effort: Size) -> Budget:
    """Half of the steps are burn-in, and tuning. Of a task all rows have the same."""
    its = TASKS[task]
    if effort is Size.QUICK:
        return Budget(_QUICK_CHAINS[index], _QUICK_STEPS[index] // 2, _QUICK_STEPS[index] // 2)
    num_chains = its.default_chains[index] if effort is Size.DEFAULT else 100
    return Budget(num_chains, its.num_steps[index] // 2, its.num_steps[index] // 2)


def sampler(family: str, weight: str) -> Call:
    """The sampler of a family with a weight function."""
    if family == "RWM":
        return call("discrax.samplers:rwm")
    if family in ("chromatic", "layers"):
        return call("discrax.samplers:gibbs", scan=family)
    address = {
        "GWG": "discrax.samplers:gwg",
        "LBP": "discrax.samplers:pas",
        "forward": "discrax.bench.papers.optimal_scaling.kernels:ForwardOrder",
    }[family]
    return call(address, balancing=WEIGHTS[weight])


def fixed_and_tuned(task: str, effort: Size) -> Iterator[Cell]:
    """The -1 and A rows, and beside them what is not in print: our rule, the other order, Gibbs of all sites."""
    scan = "layers" if task == "rbm" else "chromatic"
    rows = [(f"Gibbs ({scan})", scan, "", None)]
    for family, weight in FAMILIES:
        rows += [
            (f"{family}-1", family, weight, None),
            (f"A{family}", family, weight, call(RATE)),
            (f"A{family} {OURS}", family, weight, "auto"),
        ]
        if task != "rbm" and family == "LBP":
            rows.append((f"ALBP {FORWARD}", "forward", weight, call(RATE)))
    for setting in settings(task):
        for row in rows:
            for instance in instances(task, setting[1], effort):
                yield _cell(task, setting, effort, *row, instance)


def grid(task: str, effort: Size, *, medium_only: bool = False) -> Iterator[Cell]:
    """The runs that the G rows are the best of."""
    for setting in settings(task):
        if medium_only and setting[0] != 1:
            continue
        for family, weight in FAMILIES:
            for rate in _rates(task, setting[0], family == "RWM", effort):
                for instance in instances(task, setting[1], effort):
                    tuning = call(RATE, rate=rate)
                    yield _cell(task, setting, effort, f"G{family}", family, weight, tuning, instance, rate)


def _rates(task: str, index: int, is_walk: bool, effort: Size) -> tuple[float, ...]:
    if task == "rbm" and is_walk:  # one site a step is accepted less often than at a quarter: higher rates repeat it
        return tuple(rate for rate in _RATES[effort] if rate <= max(0.25, _RATES[effort][0]))
    if index == 2 and effort is Size.DEFAULT:
        return _FEW_WALK_RATES if is_walk else _FEW_RATES
    return _RATES[effort]


def _cell(
    task: str, setting: tuple[int, int, str], effort: Size, name: str, family: str, weight: str,
    adaptation: Call | str | None, instance: int, rate: float | None = None,
) -> Cell:  # fmt: skip
    index, size, config = setting
    its = TASKS[task]
    labels = {"task": task, its.size_label: str(size), "config": config, "sampler": name}
    labels |= {"weight_fn": weight} if weight else {}
    labels |= {} if rate is None else {"rate": str(rate)}
    return Cell(
        labels=tuple(labels.items()),
        target=target(task, size, config, effort, instance),
        seed=instance,
        sampler=sampler(family, weight),
        budget=budget(task, index, effort),
        adaptation=adaptation,
        measure=call(
            "discrax.bench.papers.optimal_scaling.measures:as_printed",
            statistic="sum" if task == "rbm" else "distance",
            share=its.shares[index],
        ),
        init=call("discrax.bench.papers.optimal_scaling.targets:from_visible_bias") if task == "rbm" else None,
        is_timed=rate is None,
    )
