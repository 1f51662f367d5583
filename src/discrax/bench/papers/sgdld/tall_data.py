"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics": variable selection in tall data.

What a mini-batch says of log pi is wrong by an amount that goes with m / sqrt(batch), the *noise*, m the number of
rows. The paper states m = 100,000 and, by its costs, mini-batches of 625: noise 4,000. But its figure 1 prints jump
rates that differ by 10^30, which is noise 250, that of m = 2,500 in mini-batches of 100 or of 6,250 in 625 (with what
is stated they differ by 10^500 and more). So every suite has data of noise 250 first, and then what is stated.

Cost is counted in rows of data that a chain looks at: a step of a stochastic sampler looks at a mini-batch, a step of
DLMC at all rows. The random-walk oracle (RWM-oracle) knows the exact ratio at the price of a mini-batch. DLMC's time is
tuned to an acceptance rate of 0.574, and that of SGDLD-noP so that it jumps as far as SGDLD, in runs of their own that
are not counted; then all chains begin at random states. Every seed has data of its own.

Not in print: "pseudo-marginal", random walk Metropolis with log pi as a mini-batch tells it; "controlled", SGDLD whose
mini-batches tell the difference to an expansion around the mode (one pass over the data, not counted); "by stays",
weights of whole stays.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Row, over_seeds, relabel
from discrax.bench.plan.suite import Figure, Size, Table, figure, suite

_MEASURES = "discrax.bench.experiments.stochastic_sampling"
_TUNING = 500  # steps that tune DLMC


class Data(NamedTuple):
    """Simulated rows, and how many of them are a mini-batch."""

    rows: int
    distinct: int  # columns, each of which stands twice
    batch: int

    def labels(self, sampler: str) -> tuple[tuple[str, str], ...]:
        """Of a cell."""
        return (
            ("task", "logistic"), ("n", str(2 * self.distinct)), ("m", str(self.rows)), ("batch", str(self.batch)),
            ("sampler", sampler),
        )  # fmt: skip

    def target(self, seed: int, controlled: bool = False) -> Call:
        """The posterior."""
        data = {"num_rows": self.rows, "num_distinct": self.distinct, "batch_size": self.batch}
        return call(f"{_MEASURES}:regression", seed=seed, **data, is_controlled=controlled)


_SMALL = Data(5_000, 4, 50)  # of the quick size
_PRINTED, _STATED = Data(2_500, 9, 100), Data(100_000, 9, 625)
_PRINTED_50, _STATED_50 = Data(8_000, 25, 1_000), Data(100_000, 25, 1_000)
_SEEDS = 5


def _sgdld(h: float, **switches: Any) -> Call:
    return call("discrax.samplers:sgdld", step_size=h, **switches)


def _selection_cells(
    name: str, size: Size, data: Data, steps: int, *, sampler: Call, warmup: int = 0, controlled: bool = False,
    matched: float | None = None,
) -> Iterator[Cell]:  # fmt: skip
    extra = {} if matched is None else {"matched_step": matched}
    for seed in range(1 if size is Size.QUICK else _SEEDS):
        yield Cell(
            labels=data.labels(name),
            target=data.target(seed, controlled),
            sampler=sampler,
            adaptation=None,
            budget=Budget(20 if size is Size.QUICK else 100, warmup, steps),
            seed=seed,
            measure=call(
                f"{_MEASURES}:selection", data_seed=seed, num_rows=data.rows, num_distinct=data.distinct, **extra
            ),
        )


def _comparison_cells(size: Size, data: Data, units: int) -> Iterator[Cell]:
    """All methods with the same number of rows, `units` times the whole data."""
    common: dict[str, Any] = {"size": size, "data": data, "steps": units * data.rows // data.batch}
    for h in (0.6, 0.3, 0.1):
        yield from _selection_cells(f"SGDLD-{h}", **common, sampler=_sgdld(h))
        yield from _selection_cells(f"SGDLD-noC-{h}", **common, sampler=_sgdld(h, cache=False))
    still = _sgdld(0.3, polyak=False, moves="one")
    yield from _selection_cells("SGDLD-noP-0.3", **common, sampler=still, matched=0.3)
    yield from _selection_cells("SGDLD-0.1 by stays", **common, sampler=_sgdld(0.1, weigh="stays"))
    yield from _selection_cells("SGDLD-0.3 controlled", **common, sampler=_sgdld(0.3), controlled=True)
    yield from _selection_cells("pseudo-marginal", **common, sampler=call("discrax.samplers:pseudo_marginal"))
    yield from _selection_cells("RWM-oracle", **common, sampler=call("discrax.samplers:rwm"))
    common |= {"warmup": 50 if size is Size.QUICK else _TUNING, "steps": units}
    yield from _selection_cells("DLMC", **common, sampler=call("discrax.samplers:dlmc"))


def _by_noise(rows: list[Row]) -> list[Row]:
    """The noise m / sqrt(batch) as a label of its own, and seeds as one."""

    def noise(labels: dict[str, str]) -> str:
        return f"{float(labels['m']) / float(labels['batch']) ** 0.5:.0f}"

    return over_seeds([relabel(row, noise=noise(row["labels"])) for row in rows])


def _against_rows(title: str, metric: str, ylabel: str, **options: Any) -> Figure:
    return figure(
        title, "errors", metrics=(metric,), logx=True, **options, xlabel="rows looked at by a chain",
        ylabel=ylabel, panels=("m", "batch"),
    )  # fmt: skip


def _table(title: str, metric: str, columns: tuple[str, ...] = ("m", "batch")) -> Table:
    return Table(title, "", 0, metric, metric, columns, rows=("sampler",), derive=_by_noise)


_ROWS = "chains look at equally many rows of the data, not steps; DLMC and SGDLD-noP are tuned before"
_ERROR = (
    _against_rows("L1 error of the marginals", "marginal_error", "L1 error"),
    _table("L1 error of the marginals when all rows are spent, mean over seeds and its standard error", "final_error"),
    _table("Sites that change a step", "jump"),
    _table("Acceptance rate (1 where there is nothing to reject)", "acceptance"),
    _table("Draws of a chain that carry the weight, in its second half", "effective_weights"),
)
_RHAT = (
    _against_rows("Gelman-Rubin statistic of the states visited; infinite ones stand at 100", "rhat", "R-hat"),
    _against_rows("Coefficients whose R-hat is infinite", "infinite_rhat", "coefficients", logy=False),
    _against_rows("Gelman-Rubin statistic of weighted draws; infinite ones stand at 100", "weighted_rhat", "R-hat"),
    _against_rows(
        "Coefficients whose R-hat of weighted draws is infinite", "infinite_weighted_rhat", "coefficients", logy=False
    ),
)
_PASSES = {Size.DEFAULT: (160, 30), Size.PAPER: (320, 100)}  # over the data of noise 250, and over what is stated


def _noises(size: Size, printed: Data, stated: Data) -> tuple[tuple[Data, int], ...]:
    """Data with passes over them: the noise of figure 1 first."""
    return ((_SMALL, 20),) if size is Size.QUICK else tuple(zip((printed, stated), _PASSES[size], strict=True))


@suite(
    "sgdld/figure03",
    "which of 18 coefficients, 9 columns that stand twice, are on: 2,500 rows in mini-batches of 100, whose noise is "
    "that of figure 1, and 100,000 in 625, as stated",
    *_ERROR,
    unequal=_ROWS,
)
def figure03(size: Size) -> Iterator[Cell]:
    for data, units in _noises(size, _PRINTED, _STATED):
        yield from _comparison_cells(size, data, units)


@suite(
    "sgdld/figure06",
    "which of 50 coefficients, 25 columns that stand twice, are on: 8,000 rows, whose noise is that of figure 1, and "
    "100,000 in mini-batches of 1,000, as the caption states (the text has 100 coefficients)",
    *_ERROR,
    unequal=_ROWS,
)
def figure06(size: Size) -> Iterator[Cell]:
    for data, units in _noises(size, _PRINTED_50, _STATED_50):
        yield from _comparison_cells(size, data, units)


@suite("sgdld/figure07", "the same with 50 coefficients: how fast chains forget where they began", *_RHAT)
def figure07(size: Size) -> Iterator[Cell]:
    for data, units in _noises(size, _PRINTED_50, _STATED_50):
        for h in (0.6, 0.3):
            yield from _selection_cells(f"SGDLD-{h}", size, data, units * data.rows // data.batch, sampler=_sgdld(h))


# --- Noise -----------------------------------------------------------------------------------------------------------


@suite(
    "sgdld/figure01",
    "200 mini-batches at one state: gradients are all of one size, jump rates differ by many powers of ten; by noise, "
    "that with print's 10^30 first, and what the paper states last",
    figure(
        "log10 of the jump rate against the norm of the gradient", "errors", logy=False,
        dots=True, metrics=("log10_jump_rate",), xlabel="norm of the gradient", ylabel="log10 Z", panels=("m", "batch"),
    ),
    _table("Powers of ten between the smallest jump rate and the largest (print: 30)", "spread_of_log10_jump_rate"),
    _table("Powers of ten between the smallest gradient and the largest", "spread_of_log10_gradient_norm"),
    _table("Standard deviation of a log-ratio, in nats", "log_ratio_std"),
)  # fmt: skip
def figure01(size: Size) -> Iterator[Cell]:
    for data in (_SMALL,) if size is Size.QUICK else (_PRINTED, Data(6_250, 9, 625), _STATED):
        for seed in range(1 if size is Size.QUICK else _SEEDS):
            yield Cell(
                labels=data.labels("mini-batches"),
                target=data.target(seed),
                sampler=call("discrax.samplers:sgdld"),
                adaptation=None,
                budget=Budget(1, 0, 1),
                seed=seed,
                measure=call(f"{_MEASURES}:jump_rates"),
            )


_NOISES = (
    _PRINTED,  # 250
    Data(6_250, 9, 625),  # 250
    Data(2_500, 9, 625),  # 100
    Data(2_500, 9, 25),  # 500
    Data(10_000, 9, 100),  # 1,000
    _STATED,  # 4,000
)
_STEPS = (0.6, 0.3, 0.1, 0.03)


@suite(
    "sgdld/noise",
    "the error after 4,000 steps by the noise m / sqrt(batch) and the step h, with and without the cache, and with "
    "control variates: 18 coefficients, five data sets; 250 is two sizes together, 2,500 rows by 100 and 6,250 by 625",
    figure(
        "L1 error of the marginals after 4,000 steps", "curve", _by_noise, x="noise", y="final_error", logx=True,
        logy=True, xlabel="noise: rows / sqrt(batch)", ylabel="L1 error",
    ),
    _table("L1 error of the marginals after 4,000 steps, mean over seeds and its standard error", "final_error"),
    _table("Draws of a chain that carry the weight, in its second half", "effective_weights"),
)  # fmt: skip
def noise(size: Size) -> Iterator[Cell]:
    for data in (_SMALL,) if size is Size.QUICK else _NOISES:
        common: dict[str, Any] = {"size": size, "data": data, "steps": 400 if size is Size.QUICK else 4_000}
        for h in _STEPS:
            yield from _selection_cells(f"SGDLD-{h}", **common, sampler=_sgdld(h))
            yield from _selection_cells(f"SGDLD-noC-{h}", **common, sampler=_sgdld(h, cache=False))
        yield from _selection_cells("SGDLD-0.3 controlled", **common, sampler=_sgdld(0.3), controlled=True)


@suite(
    "sgdld/control-variates",
    "what control variates around the mode buy: the same mini-batches with and without them, in 18 coefficients",
    *_ERROR[:2],
)
def control_variates(size: Size) -> Iterator[Cell]:
    for batch in (20, 100) if size is Size.QUICK else (25, 100, 625):
        data = (_SMALL if size is Size.QUICK else _STATED)._replace(batch=batch)
        common: dict[str, Any] = {"size": size, "data": data, "steps": min(20_000, 20 * data.rows // batch)}
        for name, controlled in (("SGDLD-0.3", False), ("SGDLD-0.3 controlled", True)):
            yield from _selection_cells(name, **common, sampler=_sgdld(0.3), controlled=controlled)
