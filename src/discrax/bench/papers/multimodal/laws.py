"""Laws with many modes: tempering, clusters and normalising constants beside what is exact, and beside local samplers.

Sweeps are by colours unless a row says otherwise. At the quick size lattices are small and keys few.
"""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Row, relabel
from discrax.bench.plan.suite import Figure, Size, Table, figure, suite
from discrax.core.target import Target
from discrax.exact import CRITICAL_COUPLING
from discrax.samplers.registry import REGISTRY
from discrax.targets import Ising, LogisticRegression, PolynomialMixture, TallLogisticRegression

_HERE, _MEASURES = "discrax.bench.papers.multimodal.laws", "discrax.bench.experiments.multimodal"
_GIBBS = call("discrax.samplers:gibbs", scan="chromatic")
_LOCAL = {
    "Gibbs (chromatic)": _GIBBS,
    "RWM": call("discrax.samplers:rwm"),
    "GWG": call("discrax.samplers:gwg"),
    "PAS": call("discrax.samplers:pas"),
    "DMALA": call("discrax.samplers:dmala"),
    "DLMC": call("discrax.samplers:dlmc"),
}
_CLUSTERS = {name: call(f"discrax.samplers:{name}") for name in ("swendsen_wang", "wolff")}
_STEPS = {  # of a draw on the lattice; of other local samplers 4
    "rwm": 200, "gibbs": 4_096, "block_gibbs": 1_500, "hamming_ball": 50, "lb": 10, "gwg": 16, "dmala": 12,
}  # fmt: skip
# Clusters; what moves between few states only, or keeps the magnetisation; what is not exact.
_NOT_LOCAL = (*_CLUSTERS, "global_flip", "swap", "swap_uniform", "dula")


# --- Targets ---------------------------------------------------------------------------------------------------------


def edwards_anderson(shape: tuple[int, ...], beta: float, seed: int = 0) -> Target:
    """Spins on a periodic grid, of which neighbours are coupled by +beta or -beta at random."""
    rng = np.random.default_rng(seed)
    return Ising.lattice(shape, tuple(beta * rng.choice([-1.0, 1.0], shape) for _ in shape), periodic=True)


def duplicated_columns(num_columns: int = 4, num_copies: int = 3, num_rows: int = 200, seed: int = 0) -> Target:
    """Logistic regression in which every column is there several times: one of the copies is in, and any will do."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(num_rows, num_columns))
    y = rng.random(num_rows) < 1 / (1 + np.exp(-2.5 * columns.sum(axis=1)))
    return LogisticRegression(2.5 * np.tile(columns, num_copies), y)


def tall_columns(num_rows: int, num_distinct: int = 9, seed: int = 0) -> Target:
    """The law of `TallLogisticRegression.simulated`, in which every column stands twice, known whole."""
    tall = TallLogisticRegression.simulated(seed, num_rows, num_distinct, batch_size=1)
    return LogisticRegression(*tall.rows.resident())


def in_one_mode(target: Target, seed: int, num_chains: int) -> Array:
    """All chains alike: a mixture's at the most probable level of its first component, others at the lowest level."""
    level = 0
    if isinstance(target, PolynomialMixture):
        level = int(np.argmax(np.polyval(target.coefficients, target.space.values - target.centres[0])))
    return jnp.full((num_chains, *target.space.shape), level, target.space.dtype)


def _lattice(side: int, coupling: float) -> Call:
    return call("discrax.targets:Ising.lattice", shape=(side, side), coupling=coupling, periodic=True)


# --- Suites ----------------------------------------------------------------------------------------------------------


def _measure(name: str, **settings: Any) -> Call:
    return call(f"{_MEASURES}:{name}", **settings)


def _table(title: str, metric: str, *columns: str) -> Table:
    return Table(title, "", 0, metric, metric, columns, rows=("sampler",))


def _bars(title: str, metric: str, *panels: str, **options: Any) -> Figure:
    return figure(title, "bars", metric=metric, panels=panels, hue=("sampler",), **options)


def _in_a_word(rows: list[Row]) -> list[Row]:
    """The shape of a glass without spaces, which would break lines."""
    return [relabel(row, glass=row["labels"]["glass"].replace(" ", "")) for row in rows]


def _coverage(what: str, name: str) -> tuple[Table | Figure, ...]:
    return (
        _table(f"{name}: share of 95 % intervals that hold the exact value", f"{what}_coverage", "side", "beta"),
        _table(f"{name}: mean of all keys less the exact value", f"{what}_difference", "side", "beta"),
        _table(f"{name}: mean standard error of a key", f"{what}_error", "side", "beta"),
        _bars(f"{name}: share of 95 % intervals that hold it", f"{what}_coverage", "side", "beta", logy=False),
        _bars(f"{name}: mean of all keys less the exact value", f"{what}_difference", "side", "beta", logy=False),
    )


def _lattices(size: Size) -> Iterator[tuple[int, float, int]]:
    """Sides, couplings and numbers of keys."""
    for coupling in (CRITICAL_COUPLING, 0.5):
        yield (8, coupling, 6) if size is Size.QUICK else (64, coupling, 40)


@suite(
    "multimodal/normaliser",
    "log Z of periodic Ising lattices by annealing, population annealing and tempering, all with steps of "
    "Swendsen-Wang, beside Kaufman's formula (default: 64 x 64, 40 keys)",
    *_coverage("log_Z", "log Z"),
    _table("Seconds of a key, the first with compiling", "time_s", "side", "beta"),
    unequal="annealing has 200 chains of 2,500 temperatures, populations 8 of 250 particles and a step a temperature, "
    "a ladder 8 chains of 64 rungs and 1,300 steps",
)
def normaliser(size: Size) -> Iterator[Cell]:
    few = size is Size.QUICK
    ways: dict[str, tuple[Budget, dict[str, Any]]] = {
        "annealing": (Budget(200, 0, 2_500), {"num_chains": 200, "num_temperatures": 200 if few else 2_500}),
        "population": (Budget(2_000, 0, 1), {"num_particles": 100 if few else 250, "steps": 1}),
        "tempering": (Budget(8, 300, 1_000), {"num_rungs": 8 if few else 64, "num_warmup": 300, "num_samples": 1_000}),
    }
    for side, coupling, repeats in _lattices(size):
        for method, (budget, settings) in ways.items():
            yield Cell(
                labels=(("task", "log Z"), ("side", str(side)), ("beta", f"{coupling:.4f}"), ("sampler", method)),
                target=_lattice(side, coupling),
                sampler=_CLUSTERS["swendsen_wang"],
                budget=budget,
                measure=_measure(
                    "normaliser", method=method, side=side, coupling=coupling, repeats=repeats, **settings
                ),
            )


@suite(
    "multimodal/thermodynamics",
    "energy and heat capacity a site of periodic Ising lattices by scans of temperatures, beside Kaufman's formula "
    "(default: 64 x 64, 40 keys)",
    *_coverage("energy", "Energy"),
    *_coverage("heat_capacity", "Heat capacity"),
)
def thermodynamics(size: Size) -> Iterator[Cell]:
    for side, at, repeats in _lattices(size):
        betas = tuple(round(at + step, 6) for step in ((-0.05, 0.0, 0.05) if side < 64 else (-0.01, 0.0, 0.01)))
        budget = Budget(8, 100, 500) if size is Size.QUICK else Budget(16, 300, 1_000)
        for name, sampler in {"swendsen_wang": _CLUSTERS["swendsen_wang"], "Gibbs (chromatic)": _GIBBS}.items():
            yield Cell(
                labels=(("task", "thermodynamics"), ("side", str(side)), ("beta", f"{at:.4f}"), ("sampler", name)),
                target=_lattice(side, 1.0),
                sampler=sampler,
                budget=budget,
                init=call(f"{_HERE}:in_one_mode"),
                measure=_measure("thermodynamics", side=side, betas=betas, at=at, repeats=repeats),
            )


@suite(
    "multimodal/clusters",
    "a periodic Ising lattice at the critical point: ESS of the magnetisation, by clusters and by every local sampler "
    "(default: 64 x 64, 16 chains)",
    _table("ESS of the magnetisation a second", "ESS_per_second", "side"),
    _table("ESS of the magnetisation a draw", "ESS_per_draw", "side"),
    _table("ESS of the size of the magnetisation a second", "ESS_of_size_per_second", "side"),
    _table("ESS of the size of the magnetisation a draw", "ESS_of_size_per_draw", "side"),
    _table(
        "Whether chains are 50 autocorrelation times long; where not, their ESS is too large", "is_long_enough", "side"
    ),
    _bars("ESS of the magnetisation a second", "ESS_per_second", "side", logy=True),
    _bars("ESS of the size of the magnetisation a second", "ESS_of_size_per_second", "side", logy=True),
    unequal="clusters make 10,000 draws of a step, chromatic sweeps 10,000 of four, all others, whose chains are too "
    "short in any case, 1,500 of so many steps that these take about as long",
)
def clusters(size: Size) -> Iterator[Cell]:
    few = size is Size.QUICK
    side, chains, warmup, long, short = (16, 4, 200, 1_000, 200) if few else (64, 16, 500, 10_000, 1_500)
    target = _lattice(side, CRITICAL_COUPLING)
    local = [row.name for row in REGISTRY.values() if row.name not in _NOT_LOCAL and row.fits(target())]
    samplers = _CLUSTERS | {"Gibbs (chromatic)": _GIBBS} | {name: call(f"discrax.samplers:{name}") for name in local}
    for name, sampler in samplers.items():
        thinning = 1 if few or name in _CLUSTERS else _STEPS.get(name, 4)
        yield Cell(
            labels=(("task", "clusters"), ("side", str(side)), ("sampler", name)),
            target=target,
            sampler=sampler,
            budget=Budget(chains, warmup, short if name in local else long, thinning),
            measure=_measure("magnetisation"),
        )


@suite(
    "multimodal/glass",
    "Edwards-Anderson spin glasses, +-J: R-hat of the overlap at beta 1.1 (default: 8 x 8 x 8), and round trips in two "
    "dimensions with Houdayer's clusters and without (default: 32 x 32, beta 2)",
    _table("R-hat of the overlap", "rhat_of_overlap", "glass"),
    _table("Round trips of a chain", "round_trips", "glass"),
    _table("Rungs", "num_rungs", "glass"),
    _table("Seconds of drawing", "time_s", "glass"),
    _bars("R-hat of the overlap", "rhat_of_overlap", "glass", derive=_in_a_word, logy=False),
    _bars("Round trips of a chain", "round_trips", "glass", derive=_in_a_word),
)
def glass(size: Size) -> Iterator[Cell]:
    few = size is Size.QUICK
    cube, square = ((4, 4, 4), (8, 8)) if few else ((8, 8, 8), (32, 32))
    budget = Budget(8, 300, 600) if few else Budget(16, 5_000, 20_000)

    def cell(name: str, shape: tuple[int, ...], beta: float, sampler: Call, **settings: Any) -> Cell:
        return Cell(
            labels=(("task", "glass"), ("glass", " x ".join(map(str, shape))), ("sampler", name)),
            target=call(f"{_HERE}:edwards_anderson", shape=shape, beta=beta),
            sampler=sampler,
            budget=budget,
            measure=_measure("overlap", **settings),
        )

    for name, sampler in _LOCAL.items():
        yield cell(name, cube, 1.1, sampler)
    yield cell("tempering", cube, 1.1, _GIBBS, is_tempered=True)
    num_rungs = 6 if few else 24
    yield cell("tempering", square, 2.0, _GIBBS, is_tempered=True, num_rungs=num_rungs)
    yield cell("tempering with clusters", square, 2.0, _GIBBS, is_tempered=True, num_rungs=num_rungs, clusters=True)


@suite(
    "multimodal/modes",
    "laws whose marginals are known (of the quartic mixture: by a long run), all chains begin in one mode: the largest "
    "error of a marginal, by a sampler alone and with a ladder",
    _table("Largest error of a marginal, of all chains", "marginal_error", "law"),
    _table("Largest error of a marginal, of a chain on average", "marginal_error_of_a_chain", "law"),
    _table("Round trips of a chain", "round_trips", "law"),
    _table("Rungs", "num_rungs", "law"),
    _table("Seconds of drawing", "time_s", "law"),
    _bars("Largest error of a marginal, of all chains", "marginal_error", "law", logy=True),
    _bars("Largest error of a marginal, of a chain on average", "marginal_error_of_a_chain", "law", logy=True),
)
def modes(size: Size) -> Iterator[Cell]:
    few = size is Size.QUICK
    laws = {
        "poly2": call("discrax.targets:PolynomialMixture.poly2"),
        "poly4": call("discrax.targets:PolynomialMixture.poly4"),
        "quartic mixture": call("discrax.targets:QuarticMixture.simulated", seed=0),
        "duplicated columns": call(f"{_HERE}:duplicated_columns"),
        "tall columns": call(f"{_HERE}:tall_columns", num_rows=1_000 if few else 2_500),
    }
    # Three copies of four columns, and two of nine, take more draws.
    budgets = {"duplicated columns": Budget(16, 500, 40_000), "tall columns": Budget(16, 500, 16_000)}
    samplers = {name: _LOCAL[name] for name in ("PAS", "DMALA", "GWG")} | {"Gibbs": call("discrax.samplers:gibbs")}
    ladders = {name: samplers[name] for name in ("PAS", "DMALA")}
    extra = {"long_run": (4, 500)} if few else {}
    for law, target in laws.items():
        for name, sampler in (samplers | {f"{name}, ladder": sampler for name, sampler in ladders.items()}).items():
            yield Cell(
                labels=(("task", "modes"), ("law", law), ("sampler", name)),
                target=target,
                sampler=sampler,
                budget=Budget(4, 200, 500) if few else budgets.get(law, Budget(16, 500, 4_000)),
                init=call(f"{_HERE}:in_one_mode"),
                measure=_measure("marginals", is_tempered=name not in samplers, **extra),
            )


@suite(
    "multimodal/cost",
    "what a ladder costs: seconds of a draw, by rung, beside those without, Ising 50 x 50",
    _table("Cost by rung", "cost_by_rung", "chains", "rungs"),
    _table("Cost of a ladder beside a run without", "cost", "chains", "rungs"),
    _bars("Cost by rung", "cost_by_rung", "chains", "rungs", logy=False),
)
def cost(size: Size) -> Iterator[Cell]:
    few = size is Size.QUICK
    for chains, rungs in ((4, 4),) if few else ((4, 8), (100, 16)):
        for name in ("Gibbs (chromatic)", "PAS"):
            yield Cell(
                labels=(("task", "cost"), ("chains", str(chains)), ("rungs", str(rungs)), ("sampler", name)),
                target=_lattice(16 if few else 50, 0.4),
                sampler=_LOCAL[name],
                budget=Budget(chains, 100, 200 if few else 1_000),
                measure=_measure("cost", num_rungs=rungs),
            )
