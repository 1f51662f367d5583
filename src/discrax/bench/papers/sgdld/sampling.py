"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics": a model whose law is known (figures 2 and 5)."""

from collections.abc import Iterator

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.suite import Figure, Size, figure, suite

_MEASURES = "discrax.bench.experiments.stochastic_sampling"

_STEPS = (0.8, 0.4, 0.2, 0.1, 0.05)
_WITHOUT_STEP = {"Gibbs": "minibatch_gibbs", "pseudo-marginal": "pseudo_marginal"}  # the second is not in print
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
            for name, sampler in _WITHOUT_STEP.items():
                yield _law_cell(f"{name}-{batch_size}", h, target, call(f"discrax.samplers:{sampler}"), size)


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
    "the number behind a name is the batch size; Gibbs and the pseudo-marginal sampler (exact, not in print) have no "
    "step",
    *_DISTANCES,
)
def figure02(size: Size) -> Iterator[Cell]:
    yield from _law_cells(size, (1, 2))


@suite("sgdld/figure05", "the quenched model with larger batches", *_DISTANCES)
def figure05(size: Size) -> Iterator[Cell]:
    yield from _law_cells(size, (4, 8))
