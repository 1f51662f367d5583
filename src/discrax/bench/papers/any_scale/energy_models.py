"""Sun et al. (2023), "Any-scale balanced samplers for discrete space": how fast chains find good images.

The chains of the any-scale balanced sampler (AB) begin as noise, so no Hessian can be estimated from them. As in the
paper W is diagonal and comes from the data; the paper prints W_ii = 1 / (1 + var_i), but W approximates a Hessian, and
a positive one would reward every flip: here W_ii = -1 / (1 + var_i). No Gaussian auxiliary variable is needed then. AB
has fixed (sigma, alpha), the best of a grid; LB is tuned to its acceptance rate in a run of its own.
"""

from collections.abc import Iterator
from typing import Any

from discrax.bench.experiments.networks import TRAINED_ALL, data_sets, network
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.rows import Row, relabel
from discrax.bench.plan.suite import Size, figure, suite

_BUDGETS = {
    Size.QUICK: Budget(32, 100, 15, 20),
    Size.DEFAULT: Budget(100, 1_000, 100, 20),
    Size.PAPER: Budget(100, 1_000, 250, 20),
}
_SIGMAS = {Size.QUICK: (0.2, 0.5), Size.DEFAULT: (0.1, 0.2, 0.3, 0.5, 1.0), Size.PAPER: (0.1, 0.2, 0.3, 0.5, 1.0)}
_ALPHAS = {Size.QUICK: (0.5, 0.6), Size.DEFAULT: (0.5, 0.55, 0.6, 0.7), Size.PAPER: (0.5, 0.55, 0.6, 0.65, 0.7, 0.8)}


def best_of_grid(rows: list[Row]) -> list[Row]:
    """LB, and of AB for each data set the (sigma, alpha) with the highest log-probability over all steps."""
    curves: dict[str, dict[Any, list[Row]]] = {}
    others = []
    for row in rows:
        labels = row["labels"]
        if row["metric"] != "log_prob" or row["value"] is None:
            continue
        if "sigma" in labels:
            grid = curves.setdefault(labels["dataset"], {})
            grid.setdefault((labels["sigma"], labels["alpha"]), []).append(row)
        else:
            others.append(row)
    for grid in curves.values():
        (sigma, alpha), best = max(grid.items(), key=lambda item: sum(row["value"] for row in item[1]))
        name = f"AB, sigma = {sigma}, alpha = {alpha}"
        others += [relabel(row, sampler=name) for row in best]
    return others


@suite(
    "any-scale/figure04",
    "residual networks trained on MNIST, Omniglot and Caltech silhouettes: how fast chains that begin as noise find "
    f"good images; the paper's best alpha is 0.6, 0.55 and 0.55 ({TRAINED_ALL})",
    figure(
        "Mean log-probability (up to a constant) against steps, AB with its best scale", "errors", best_of_grid,
        metrics=("log_prob",), panels=("dataset",), hue=("sampler",), logy=False, xlabel="steps",
        ylabel="log-probability",
    ),
    figure(
        "Acceptance of AB at fixed (sigma, alpha)", "heat", metric="acceptance", panels=("dataset",),
    ),
    unequal="AB at a fixed (sigma, alpha) has no warm-up",
)  # fmt: skip
def figure04(size: Size) -> Iterator[Cell]:
    for data in data_sets(size):
        shared: dict[str, Any] = {
            "target": network(data, size),
            "measure": call("discrax.bench.experiments.training:mixing_from_noise"),
            "is_timed": True,
        }
        labels, budget = (("task", "deep-ebm"), ("dataset", data)), _BUDGETS[size]
        lb = call("discrax.samplers:dmala", ratios="gradient")
        yield Cell(labels=(*labels, ("sampler", "LB")), sampler=lb, budget=budget, **shared)
        for sigma in _SIGMAS[size]:
            for alpha in _ALPHAS[size]:
                yield Cell(
                    labels=(*labels, ("sampler", "AB"), ("sigma", f"{sigma:g}"), ("alpha", f"{alpha:g}")),
                    sampler=call(
                        "discrax.bench.papers.any_scale.kernels:ab_of_data", data=data, sigma=sigma, alpha=alpha
                    ),
                    budget=Budget(budget.num_chains, 0, budget.num_samples, budget.thinning),
                    **shared,
                )


@suite(
    "any-scale/figure06",
    f"images that chains of the path auxiliary sampler draw from the same networks, beginning as noise ({TRAINED_ALL})",
    figure("16 chains", "pictures", hue=("dataset",)),
)
def figure06(size: Size) -> Iterator[Cell]:
    for data in data_sets(size):
        budget = _BUDGETS[size]
        yield Cell(
            labels=(("task", "deep-ebm"), ("dataset", data), ("sampler", "PAS")),
            target=network(data, size),
            sampler=call("discrax.samplers:pas"),
            budget=Budget(16, budget.num_warmup, 2, budget.num_samples * budget.thinning // 2),
            measure=call("discrax.bench.experiments.training:snapshots"),
        )
