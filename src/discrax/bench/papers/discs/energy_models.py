"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling": energy models of images.

Residual networks are trained here with the path auxiliary sampler and kept in the cache folder. Chains begin as noise.
"""

from collections.abc import Iterable, Iterator

from discrax.bench.experiments.networks import TRAINED, TRAINED_ALL, data_sets, network
from discrax.bench.papers.discs import sampling as discs
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import Figure, Size, figure, suite

_BUDGETS = {
    Size.QUICK: Budget(36, 100, 5, 60),
    Size.DEFAULT: Budget(100, 500, 10, 1_000),
    Size.PAPER: Budget(100, 500, 10, 1_000),
}


@suite(
    "discs/figure05",
    f"RBMs trained on MNIST, with 25 and 200 hidden units ({discs.AS_LONG})",
    *discs.comparison("RBM on MNIST", "rbm", "kind"),
)
def figure05(size: Size) -> Iterator[Cell]:
    yield from (cell for cell in discs.figure16.cells(size) if (cell.label("kind") or "").startswith("binary"))


def _snapshots(names: Iterable[str], size: Size) -> Iterator[Cell]:
    for data in names:
        for name, sampler in discs.TUNED.items():
            yield Cell(
                labels=(("task", "deep-ebm"), ("dataset", data), ("sampler", name)),
                target=network(data, size),
                sampler=sampler,
                budget=_BUDGETS[size],
                measure=call("discrax.bench.experiments.training:snapshots"),
                is_timed=True,
            )


_EXHIBITS: tuple[Figure, ...] = (
    figure("Snapshots of 16 chains", "pictures", hue=("dataset", "sampler")),
    figure(
        "Mean log-probability of the chains (up to a constant)", "errors",
        metrics=("log_prob",), panels=("dataset",), logy=False, xlabel="steps", ylabel="log-probability",
    ),
)  # fmt: skip


@suite("discs/figure06", f"chains on a residual network trained on MNIST ({TRAINED})", *_EXHIBITS)
def figure06(size: Size) -> Iterator[Cell]:
    yield from _snapshots(data_sets(size)[:1], size)


@suite(
    "discs/figure17",
    f"chains on residual networks trained on MNIST, Omniglot and Caltech silhouettes ({TRAINED_ALL})",
    *_EXHIBITS,
)
def figure17(size: Size) -> Iterator[Cell]:
    yield from _snapshots(data_sets(size), size)


ALIASES = {"discs/energy-models": ("discs/figure05", "discs/figure06", "discs/figure17")}
