"""Rhodes and Gutmann (2022), "Enhanced gradient-based MCMC in discrete spaces": learning of couplings.

The error is ||J - J*||_F / sqrt(d), as in the authors' code; the paper calls it Frobenius norm. K is the number of
steps of AVG; cheaper samplers make more steps, so that all take about the same time.

The paper's step sizes are for codes 0 and 1. On spins, whose levels are 2 apart, they are 4 times as large.

Training is as in the authors' code: the 2,000 updates of the paper end with the pass over the data that they are in, so
there are 2,200, of batches of 50 rows, and the buffer of 5,000 chains is reshuffled before each pass over it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Row, group_by, over_seeds, relabel, without
from discrax.bench.plan.suite import Size, Table, figure, note, suite

_LEARNING = "discrax.bench.papers.enhanced_gradient_mcmc.couplings"
_NETWORK = "discrax.bench.papers.enhanced_gradient_mcmc.convolutional"
_GAMMA = call("discrax.bench.papers.rules:GammaRule", window=100)
_K = (1, 5, 10, 15, 20)
_UPDATES, _BATCH, _SPINS = 2_200, 50, 4.0
_COST = "samplers have steps of equal cost for each K, as the paper counts them"


# --- An Ising lattice ------------------------------------------------------------------------------------------------


def _ising_samplers(multiplier: float = 1.0) -> dict[str, tuple[Call, Any, dict[int, int]]]:
    """Sampler, tuning, and the steps it makes for each K."""
    steps = {1: (1, 1, 3, 2), 5: (6, 5, 15, 10), 10: (12, 10, 30, 20), 15: (18, 15, 45, 30), 20: (24, 20, 60, 40)}
    first, avg, block, gibbs = ({K: found[place] for K, found in steps.items()} for place in range(4))
    data = call(f"{_LEARNING}:pavg_of_data", step_size=0.2 * multiplier)
    return {
        "NCG": (call("discrax.samplers:dmala", step_size=0.5 * _SPINS * multiplier), None, first),
        "AVG": (call("discrax.samplers:avg", step_size=0.2 * _SPINS * multiplier), None, avg),
        "PAVG model-specific": (call(f"{_LEARNING}:pavg_of_model"), None, block),
        "PAVG model-agnostic": (data, _GAMMA, avg),
        "GWG": (call("discrax.samplers:gwg"), None, first),
        "Gibbs": (call("discrax.samplers:gibbs"), None, gibbs),
    }


def ising(name: str, K: int, seed: int, *, multiplier: float | None = None, reshuffle: bool = True) -> Cell:
    """The lattice learnt with a sampler whose cost is that of K steps of AVG."""
    sampler, adaptation, steps = _ising_samplers(1.0 if multiplier is None else multiplier)[name]
    shown = name if reshuffle else f"{name}, not reshuffled"
    labels = (("task", "ising-lattice-pcd"), ("K", str(K)), ("sampler", shown))
    return Cell(
        labels=labels if multiplier is None else (*labels, ("multiplier", f"{multiplier:g}")),
        target=call(f"{_LEARNING}:ising_lattice"),
        sampler=sampler,
        adaptation=adaptation,
        budget=Budget(_BATCH, 0, _UPDATES, steps[K]),
        seed=seed,
        measure=call(f"{_LEARNING}:estimation", learning_rate=3e-4, l1=0.01, reshuffle=reshuffle),
        is_timed=True,
    )


# Of errors between three other sets of samples, at each K, as a part of their mean: benchmarks/lattice_samples.py. Of
# PAVG model-agnostic at K = 5 one of the three does not learn: 0.002 is of the two that do.
_BETWEEN_SAMPLES = {
    "NCG": (0.0907, 0.0148, 0.0091, 0.0155, 0.0125),
    "AVG": (0.0046, 0.0052, 0.0063, 0.0100, 0.0144),
    "PAVG model-specific": (0.0077, 0.0086, 0.0101, 0.0080, 0.0107),
    "PAVG model-agnostic": (0.0045, 0.0020, 0.0058, 0.0103, 0.0132),
    "GWG": (0.0061, 0.0157, 0.0064, 0.0104, 0.0092),
    "Gibbs": (0.0087, 0.0216, 0.0052, 0.0128, 0.0067),
}


def between(found: Mapping[str, Sequence[float]], each: Sequence[int]) -> Callable[[dict[str, str]], float]:
    """How much errors differ between sets of data or truths, of which seeds share one: what was `found` at each K."""

    def spread(labels: dict[str, str]) -> float:
        its = found.get(labels["sampler"])
        return 0.0 if its is None else its[each.index(int(labels["K"]))]

    return spread


@suite(
    "enhanced-gradient-mcmc/table01",
    "couplings of a 10 x 10 Ising lattice, learnt with few sampler steps per update: 2,200 updates of batches of 50, a "
    "buffer of 5,000 chains that is reshuffled before each pass; a row without that shows what it does. Print's "
    "samples of the lattice are others than ours, and how errors differ between sets of samples counts",
    Table(
        "Error of the couplings (smaller is better: the ratio is print / ours)",
        "enhanced-gradient-mcmc", 1, "J_estimation_error", "J_estimation_error", ("K",), rows=("sampler",),
        derive=over_seeds, smaller_is_better=True, instance_spread=between(_BETWEEN_SAMPLES, _K),
    ),
    figure("Error of the couplings against K", "curve", over_seeds, x="K", y="J_estimation_error", logy=True),
    unequal=_COST,
)  # fmt: skip
def table01(size: Size) -> Iterator[Cell]:
    for K in _K[:2] if size is Size.QUICK else _K:
        for seed in range(1 if size is Size.QUICK else 5):
            for name in _ising_samplers():
                yield ising(name, K, seed)
            yield ising("NCG", K, seed, reshuffle=False)


_MULTIPLIERS = (0.1, 0.3, 1.0, 3.0, 10.0)


def _relative(rows: list[Row]) -> list[Row]:
    """The error over that of the same sampler with the step size of the table."""
    rows = [row for row in over_seeds(rows) if row["metric"] == "J_estimation_error" and row["value"] is not None]
    usual = {row["labels"]["sampler"]: row["value"] for row in rows if row["labels"].get("multiplier") == "1"}
    return [
        row | {"metric": "relative_error", "value": row["value"] / usual[row["labels"]["sampler"]], "std": None}
        for row in rows
        if row["labels"]["sampler"] in usual
    ]


@suite(
    "enhanced-gradient-mcmc/figure07",
    "couplings of a 10 x 10 Ising lattice, K = 10: step sizes of the paper times a number (PAVG is model-agnostic)",
    figure(
        "Error over that with the usual step size", "curve", _relative,
        x="multiplier", y="relative_error", logx=True, logy=True, xlabel="step size over the usual one",
    ),
    figure(
        "Error of the couplings", "curve", over_seeds,
        x="multiplier", y="J_estimation_error", logx=True, logy=True, xlabel="step size over the usual one",
    ),
    unequal=_COST,
)  # fmt: skip
def figure07(size: Size) -> Iterator[Cell]:
    for seed in range(1 if size is Size.QUICK else 5):
        for multiplier in _MULTIPLIERS[::2] if size is Size.QUICK else _MULTIPLIERS:
            for name in ("NCG", "AVG", "PAVG model-agnostic"):
                yield ising(name, 10, seed, multiplier=multiplier)
        yield ising("GWG", 10, seed, multiplier=1.0)


# --- A convolutional network with couplings --------------------------------------------------------------------------

TRUTH = {  # with seed 0 training runs away: after 149 updates data and chains are 2e6 apart, also in full precision
    # A network that is hardly trained.
    Size.QUICK: {"num_updates": 10, "num_steps": 5, "learning_rate": 3e-4, "num_reference": 10, "num_rows": 200},
    Size.DEFAULT: {"num_updates": 10_000, "num_steps": 50, "learning_rate": 3e-4, "num_reference": 5_000, "seed": 1},
    Size.PAPER: {"num_updates": 10_000, "num_steps": 50, "learning_rate": 3e-4, "num_reference": 50_000, "seed": 1},
}
_CONV_SAMPLERS: dict[str, tuple[Call, Any]] = {
    "NCG": (call("discrax.samplers:dmala", step_size=0.2), None),
    "AVG": (call("discrax.samplers:avg", step_size=0.1), None),
    "PAVG": (call(f"{_LEARNING}:pavg_of_data", step_size=0.1), _GAMMA),
    # The released script's step size; print says 0.1.
    "AVG, 0.08": (call("discrax.samplers:avg", step_size=0.08), None),
    "PAVG, 0.08": (call(f"{_LEARNING}:pavg_of_data", step_size=0.08), _GAMMA),
    "GWG": (call("discrax.samplers:gwg"), None),
    "Gibbs": (call("discrax.samplers:gibbs"), None),
}


_CONV_K = (5, 10, 15, 20)


def _steps(name: str, K: int) -> int:
    """Gibbs is cheaper: 8, 16, 24, 32 for K = 5, 10, 15, 20."""
    return 8 * K // 5 if name == "Gibbs" else K


def _learnt_again(name: str, K: int, seed: int, size: Size, which: str = "") -> Cell:
    """A cell of table 2; the row of a truth that is not the suite's says so."""
    sampler, adaptation = _CONV_SAMPLERS[name]
    is_quick = size is Size.QUICK
    updates, rate = (10, 1e-3) if is_quick else (_UPDATES, 3e-4)
    return Cell(
        labels=(
            ("task", "conv-ebm-usps-pcd"),
            ("K", str(K)),
            ("sampler", f"{name}, {which}" if which else name),
        ),
        target=call(f"{_NETWORK}:convolutional", **(TRUTH[size] | ({"seed": _OTHERS[which]} if which else {}))),
        sampler=sampler,
        adaptation=adaptation,
        budget=Budget(_BATCH, 0, updates, _steps(name, K)),
        seed=seed,
        measure=call(f"{_LEARNING}:estimation", learning_rate=rate, l1=0.01, buffer_size=200 if is_quick else 5000),
        is_timed=True,
    )


def _convolutional(size: Size) -> Iterator[Cell]:
    for K in (5,) if size is Size.QUICK else _CONV_K:
        for seed in range({Size.QUICK: 1, Size.DEFAULT: 3, Size.PAPER: 5}[size]):
            for name in _CONV_SAMPLERS:
                yield _learnt_again(name, K, seed, size)


_OTHERS = {"another truth": 2, "a third truth": 4, "a fourth truth": 5}  # seeds; with 3 training runs away, as with 0


def _of_other_truths(size: Size) -> Iterator[Cell]:
    """Print's rows for networks of other seeds; at the quick size no network is trained enough to be a truth."""
    if size is not Size.QUICK:
        for which in _OTHERS:
            for K in _CONV_K:
                for name in _CONV_SAMPLERS:
                    if not name.endswith("0.08"):
                        yield _learnt_again(name, K, 0, size, which)


# Of errors between the truths, as a part of their mean, at each K. Where one truth is a case of its own it is of the
# others, which is less: NCG at K = 5 and PAVG at 10 and 15 do not come near one of them, AVG at K = 20 near one only.
# Of PAVG at K = 10 a seed of the page's own truth that fails is left out as well.
BETWEEN_TRUTHS = {
    "NCG": (0.107, 0.118, 0.130, 0.150),
    "AVG": (0.223, 0.237, 0.256, 0.153),
    "PAVG": (0.218, 0.368, 0.190, 0.204),
    "GWG": (0.605, 0.538, 0.238, 0.095),
    "Gibbs": (0.224, 0.280, 0.332, 0.484),
}


_ENOUGH = "How many steps AVG needs to come near a truth depends on the truth, and print has another one than ours."
_TRUTH_NOTES = tuple(
    note(
        _ENOUGH,
        "20 are enough for one of our four (0.117, where 15 leave it at 2.29) and not for three (2.9 to 4.0); print's "
        "has 0.496 after 15 and 0.114 after 20. With the step size of the authors' script, 0.08, they are enough for "
        "the truth of this row (0.162 +- 0.014), and 15 are not (3.26).",
        sampler="AVG",
        K=K,
    )
    for K in ("15", "20")
)
_LEARNT_AGAIN = (
    "a convolutional network with couplings s'J s of all pixels is trained on USPS with GWG (10,000 updates of 50 "
    "steps), its chains make 5,000 more steps (50,000 in the paper), and J is learnt again from them by 2,200 updates "
    "of batches of 50; all this is far shorter at the quick size. The network is that of the second seed "
    '(with the first training runs away), of "another", "a third" and "a fourth truth" that of the third, fifth and '
    "sixth (with the fourth it runs away too), and how much errors differ between these four counts; rows 0.08 have "
    "the step size of the authors' script, where print says 0.1"
)


@suite(
    "enhanced-gradient-mcmc/table02",
    _LEARNT_AGAIN,
    Table(
        "Error of the couplings (smaller is better: the ratio is print / ours)",
        "enhanced-gradient-mcmc", 2, "J_estimation_error", "J_estimation_error", ("K",), rows=("sampler",),
        notes=_TRUTH_NOTES, derive=over_seeds, smaller_is_better=True, instance_spread=between(BETWEEN_TRUTHS, _CONV_K),
    ),
    unequal=_COST,
)  # fmt: skip
def table02(size: Size) -> Iterator[Cell]:
    yield from _convolutional(size)
    yield from _of_other_truths(size)


def _against_error(metric: str) -> Callable[[list[Row]], list[Row]]:
    """The label `error` is that of the couplings."""

    def labelled(rows: list[Row]) -> list[Row]:
        rows = [row for row in rows if row["value"] is not None and math.isfinite(row["value"])]
        errors = {row["cell"]: f"{row['value']:.4g}" for row in rows if row["metric"] == "J_estimation_error"}
        return [
            relabel(row, error=errors[row["cell"]]) for row in rows if row["metric"] == metric and row["cell"] in errors
        ]

    return labelled


_CHAINS = {"mmd": "Squared maximum mean discrepancy", "marginal_error": "Error of the means",
           "covariance_error": "Error of the covariances"}  # fmt: skip


@suite(
    "enhanced-gradient-mcmc/figure13",
    f"distance of the chains from samples of the true model, against the error of couplings: {_LEARNT_AGAIN}",
    *(
        figure(
            f"{words} of chains and samples", "curve", _against_error(metric),
            x="error", y=metric, logx=True, logy=metric != "mmd", xlabel="error of the couplings",
        )
        for metric, words in _CHAINS.items()
    ),
    unequal=_COST,
)  # fmt: skip
def figure13(size: Size) -> Iterator[Cell]:
    yield from _convolutional(size)


def _side_by_side(rows: list[Row]) -> list[Row]:
    """The pictures of a sampler at all K as one sheet: those of the first seed, in the order of K."""
    pictures = [row for row in rows if row["metric"].startswith("pixels") and row["status"] == "ok"]
    made: list[Row] = []
    for group in group_by(pictures, lambda row: row["labels"]["sampler"]).values():
        cells = group_by(group, lambda row: (int(row["labels"]["K"]), row["seed"]))
        first = {K: min(seed for its, seed in cells if its == K) for K, _ in cells}
        sheets = [cells[K, first[K]] for K in sorted(first)]
        sizes = [row for row in sheets[0] if row["metric"] not in ("pixels", "pixels_snapshots", "pixels_every")]
        lines = [[row for row in sheet if row["metric"] == "pixels"] for sheet in sheets]
        made += sizes + [
            row | {"x": row["x"] + len(lines[0]) * place} for place, sheet in enumerate(lines) for row in sheet
        ]
        of_all = sheets[0][0] | {"x": None, "std": None}
        made.append(of_all | {"metric": "pixels_snapshots", "value": float(len(sheets))})
        made.append(of_all | {"metric": "pixels_every", "value": float(min(first))})
    return [without(row, "K") for row in made]


@suite(
    "enhanced-gradient-mcmc/figure15",
    f"chains at the end of training, a block for each K: {_LEARNT_AGAIN}",
    figure("Chains by sampler and K", "pictures", _side_by_side, xlabel="K"),
    unequal=_COST,
)
def figure15(size: Size) -> Iterator[Cell]:
    yield from _convolutional(size)
