"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics": laws and posteriors.

Cost is counted in rows of data that a chain looks at: a step of a stochastic sampler looks at a mini-batch, a step of
DLMC at all rows. The random-walk oracle (RWM-oracle) knows the exact ratio at the price of a mini-batch.
"""

from collections.abc import Iterator
from typing import Any

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Row
from discrax.bench.plan.suite import Figure, Size, figure, suite

_MEASURES = "discrax.bench.experiments.stochastic_sampling"


# --- A model whose law is known --------------------------------------------------------------------------------------

_STEPS = (0.8, 0.4, 0.2, 0.1, 0.05)
_LAW = {
    Size.QUICK: Budget(100, 100, 1_000),
    Size.DEFAULT: Budget(200, 500, 6_000),
    Size.PAPER: Budget(100, 5_000, 20_000),
}


def _law_cells(size: Size, batch_sizes: tuple[int, ...]) -> Iterator[Cell]:
    for batch_size in batch_sizes:
        target = call("discrax.targets:GaussianBernoulli", batch_size=batch_size)
        for h in _STEPS[::2] if size is Size.QUICK else _STEPS:
            for name, cache in (("SGDLD", True), ("SGDLD-noC", False)):
                sampler = call("discrax.samplers:sgdld", step_size=h, cache=cache)
                yield _law_cell(f"{name}-{batch_size}", h, target, sampler, size)
            yield _law_cell(f"Gibbs-{batch_size}", h, target, call("discrax.samplers:minibatch_gibbs"), size)


def _law_cell(name: str, h: float, target: Call, sampler: Call, size: Size) -> Cell:
    return Cell(
        labels=(("task", "gaussian-bernoulli"), ("h", f"{h:g}"), ("sampler", name)),
        target=target,
        sampler=sampler,
        adaptation=None,
        budget=_LAW[size],
        measure=call(f"{_MEASURES}:total_variation"),
    )


def _distance(title: str, metric: str) -> Figure:
    return figure(title, "curve", x="h", y=metric, logx=True, logy=True, xlabel="step h", ylabel="total variation")


_DISTANCES = (
    _distance("Distance of all chains together", "total_variation"),
    _distance("Distance of a chain", "total_variation_of_a_chain"),
)


@suite(
    "sgdld/figure02",
    "a quenched model whose law is known: with the cache the error falls with the step, without it stays; "
    "the number behind a name is the batch size, and Gibbs has no step",
    *_DISTANCES,
)
def figure02(size: Size) -> Iterator[Cell]:
    yield from _law_cells(size, (1, 2))


@suite("sgdld/figure05", "the quenched model with larger batches", *_DISTANCES)
def figure05(size: Size) -> Iterator[Cell]:
    yield from _law_cells(size, (4, 8))


# --- Tall data -------------------------------------------------------------------------------------------------------


def _selection_cells(
    name: str, size: Size, data: tuple[int, int, int], steps: int, *, sampler: Call, warmup: int = 0,
    controlled: bool = False, matched: float | None = None, seeds: int = 1,
) -> Iterator[Cell]:  # fmt: skip
    """`data`: rows, distinct columns, and rows of a mini-batch."""
    rows, distinct, batch = data
    extra = {} if matched is None else {"matched_step": matched}
    for seed in range(seeds):
        yield Cell(
            labels=(("task", "logistic"), ("n", str(2 * distinct)), ("sampler", name)),
            target=call(
                f"{_MEASURES}:regression", seed=0, num_rows=rows, num_distinct=distinct, batch_size=batch,
                is_controlled=controlled,
            ),
            sampler=sampler,
            adaptation=None,
            budget=Budget(20 if size is Size.QUICK else 100, warmup, steps),
            seed=seed,
            measure=call(f"{_MEASURES}:selection", data_seed=0, num_rows=rows, num_distinct=distinct, **extra),
            is_timed=True,
        )  # fmt: skip


def _comparison_cells(
    size: Size, rows: int, distinct: int, batches: tuple[int, ...], units: int, seeds: int, *,
    with_oracle: bool = False,
) -> Iterator[Cell]:  # fmt: skip
    """All methods with the same number of rows, `units` times the whole data."""

    def sgdld(step: float, **switches: Any) -> Call:
        return call("discrax.samplers:sgdld", step_size=step, **switches)

    for batch in batches:
        steps, shown = units * rows // batch, f", batch {batch}" if batch != batches[0] else ""
        common: dict[str, Any] = {"size": size, "data": (rows, distinct, batch), "steps": steps, "seeds": seeds}
        for h in (0.6, 0.3, 0.1):
            yield from _selection_cells(f"SGDLD-{h}{shown}", **common, sampler=sgdld(h))
            yield from _selection_cells(f"SGDLD-noC-{h}{shown}", **common, sampler=sgdld(h, cache=False))
        yield from _selection_cells(f"SGDLD-0.1 by stays{shown}", **common, sampler=sgdld(0.1, weigh="stays"))
        still = sgdld(0.3, polyak=False, moves="one")
        yield from _selection_cells(f"SGDLD-noP-0.3{shown}", **common, sampler=still, matched=0.3)
    common = {"size": size, "data": (rows, distinct, batches[0]), "seeds": seeds}
    if with_oracle:
        steps = units * rows // batches[0]
        yield from _selection_cells("RWM-oracle", **common, steps=steps, sampler=call("discrax.samplers:rwm"))
    common |= {"warmup": units // 5, "steps": units - units // 5}
    yield from _selection_cells("DLMC", **common, sampler=call("discrax.samplers:dlmc"))


def _by_batch(rows: list[Row]) -> list[Row]:
    """The batch size, where it is part of a name, as a label of its own."""

    def split(labels: dict[str, str]) -> dict[str, str]:
        name, *rest = labels["sampler"].split(", ")
        batch = [part.removeprefix("batch ") for part in rest if part.startswith("batch ")]
        rest = [part for part in rest if not part.startswith("batch ")]
        return labels | {"sampler": ", ".join([name, *rest]), "batch": batch[0] if batch else "the usual"}

    return [row | {"labels": split(row["labels"])} for row in rows]


def _against_rows(title: str, metric: str, ylabel: str) -> Figure:
    return figure(
        title, "errors", _by_batch, metrics=(metric,), logx=True, logy=True, xlabel="rows looked at by a chain",
        ylabel=ylabel, panels=("n", "batch"),
    )  # fmt: skip


_ROWS = "chains look at equally many rows of the data, not steps"
_EFFORT = {Size.DEFAULT: (30, 1), Size.PAPER: (100, 5)}  # passes over the data, seeds
_ERROR = _against_rows("Error of the marginals", "marginal_error", "L1 error")
_RHAT = _against_rows("Gelman-Rubin statistic of the states visited", "rhat", "R-hat")
_WEIGHTED = _against_rows("Gelman-Rubin statistic of weighted draws", "weighted_rhat", "R-hat")


@suite(
    "sgdld/figure03",
    "which of 18 coefficients, 9 columns that stand twice, are on: 100,000 rows in mini-batches of 625 and 100",
    _ERROR,
    unequal=_ROWS,
)
def figure03(size: Size) -> Iterator[Cell]:
    if size is Size.QUICK:
        yield from _comparison_cells(size, 5_000, 4, (50,), 20, 1)
    else:
        yield from _comparison_cells(size, 100_000, 9, (625, 100), *_EFFORT[size])


@suite(
    "sgdld/figure06",
    "which of 50 coefficients, 25 columns that stand twice, are on: 100,000 rows in mini-batches of 1,000",
    _ERROR,
    unequal=_ROWS,
)
def figure06(size: Size) -> Iterator[Cell]:
    if size is Size.QUICK:
        yield from _comparison_cells(size, 5_000, 8, (50,), 20, 1, with_oracle=True)
    else:
        yield from _comparison_cells(size, 100_000, 25, (1_000,), *_EFFORT[size], with_oracle=True)


@suite("sgdld/figure07", "the same with 50 coefficients: how fast chains forget where they began", _RHAT, _WEIGHTED)
def figure07(size: Size) -> Iterator[Cell]:
    rows, distinct, batch = (5_000, 8, 50) if size is Size.QUICK else (100_000, 25, 1_000)
    steps = (20 if size is Size.QUICK else _EFFORT[size][0]) * rows // batch
    for h in (0.6, 0.3):
        sampler = call("discrax.samplers:sgdld", step_size=h)
        yield from _selection_cells(f"SGDLD-{h}", size, (rows, distinct, batch), steps, sampler=sampler)


@suite(
    "sgdld/figure01",
    "200 mini-batches at one state: gradients are all of one size, jump rates differ by many powers of ten",
    figure(
        "log10 of the jump rate against the norm of the gradient", "errors", logy=False, metrics=("log10_jump_rate",),
        xlabel="norm of the gradient", ylabel="log10 Z",
    ),
)  # fmt: skip
def figure01(size: Size) -> Iterator[Cell]:
    rows, distinct, batch = (5_000, 9, 50) if size is Size.QUICK else (100_000, 9, 625)
    yield Cell(
        labels=(("task", "logistic"), ("sampler", "mini-batches")),
        target=call(f"{_MEASURES}:regression", seed=0, num_rows=rows, num_distinct=distinct, batch_size=batch),
        sampler=call("discrax.samplers:sgdld"),
        adaptation=None,
        budget=Budget(1, 0, 1),
        measure=call(f"{_MEASURES}:jump_rates"),
    )


@suite(
    "sgdld/control-variates",
    "what control variates around the mode buy: the same mini-batches with and without them, in 18 coefficients",
    _ERROR,
    unequal=_ROWS,
)
def control_variates(size: Size) -> Iterator[Cell]:
    rows, distinct = (5_000, 4) if size is Size.QUICK else (100_000, 9)
    seeds = 1 if size is Size.QUICK else 3
    for batch in (20, 100) if size is Size.QUICK else (25, 100, 625):
        for controlled in (False, True):
            name = f"SGDLD-0.3, batch {batch}{', controlled' if controlled else ''}"
            steps = min(20_000, 20 * rows // batch)
            common: dict[str, Any] = {"sampler": call("discrax.samplers:sgdld", step_size=0.3), "seeds": seeds}
            yield from _selection_cells(name, size, (rows, distinct, batch), steps, controlled=controlled, **common)
