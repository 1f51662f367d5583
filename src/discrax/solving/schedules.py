"""Schedules: the inverse temperature beta as a function of the share p of the search that is done.

    geometric            beta = hot (cold / hot)^p; also called exponential, as it is in the temperature by the papers
    linear               beta = hot + (cold - hot) p
    linear-temperature   1 / beta falls linearly: the papers' "linear"

`hot` and `cold` are inverse temperatures, hot < cold.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from discrax.problems.problem import BinaryQuadratic, Labelling, Problem

KINDS = ("geometric", "linear", "linear-temperature")


class Schedule(NamedTuple):
    hot: float
    cold: float
    kind: str = "geometric"

    def beta(self, p: float) -> float:
        p = min(max(p, 0.0), 1.0)
        if self.kind == "geometric":
            return self.hot * (self.cold / self.hot) ** p
        if self.kind == "linear":
            return self.hot + (self.cold - self.hot) * p
        return 1 / (1 / self.hot + (1 / self.cold - 1 / self.hot) * p)


def make_schedule(problem: Problem, kind: str = "auto", betas: tuple[float, float] | None = None) -> Schedule:
    """A schedule of that kind, between the given inverse temperatures or those that suit the problem."""
    kind = "geometric" if kind in ("auto", "exponential") else kind
    if kind not in KINDS:
        raise ValueError(f"Unknown schedule {kind!r}; known: {', '.join(KINDS)}.")
    hot, cold = suitable_betas(problem) if betas is None else betas
    if not 0 < hot < cold < np.inf:
        raise ValueError(f"betas are two inverse temperatures, 0 < hot < cold, but got ({hot:g}, {cold:g}).")
    return Schedule(float(hot), float(cold), kind)


def suitable_betas(problem: Problem) -> tuple[float, float]:
    """Inverse temperatures between which the problem freezes.

    They come from the costs of single changes at local optima: at the hot end the mean cost is paid easily (with
    probability e^-2.5), at the cold end the smallest that counts hardly ever (e^-10). Costs far below the mean, such as
    the 10^-4 by which a penalty outweighs what it forbids, do not count.
    """
    costs = _costs_at_local_optima(problem)
    costs = costs[costs > 0]
    if not len(costs):
        return 1.0, 10.0
    mean = float(costs.mean())
    return 2.5 / mean, max(10 / float(costs[costs > 0.02 * mean].min()), 5 / mean)


def _costs_at_local_optima(problem: Problem, num_starts: int = 4) -> Float[np.ndarray, " costs"]:
    generator = np.random.default_rng(0)
    model = problem.model
    starts = problem.start(generator, num_starts)
    if isinstance(model, BinaryQuadratic):
        return np.concatenate([_binary_costs(model, x, generator) for x in starts])
    if isinstance(model, Labelling):
        # A change of label costs about the edges it cuts: the mean degree, and one edge at least.
        degree = np.zeros(model.num_nodes)
        np.add.at(degree, model.edges.ravel(), np.repeat(np.abs(model.weights), 2))
        return model.cut_cost * degree[degree > 0] / 2
    import jax

    from discrax.core.target import exact_evaluation

    ratios = jax.vmap(lambda x: exact_evaluation(problem.target, x).ratios)(starts.reshape(-1, *problem.space.shape))
    return np.abs(np.asarray(ratios, np.float64)).ravel()


def _binary_costs(
    model: BinaryQuadratic, x: np.ndarray, generator: np.random.Generator, num_rounds: int = 30
) -> Float[np.ndarray, " costs"]:
    """What flips cost at a local optimum, or near one: all sites that gain are flipped with probability a half."""
    from scipy.sparse import coo_array

    n, (i, j) = model.num_sites, model.edges.T
    rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = coo_array((np.concatenate([model.weights, model.weights]), (rows, columns)), shape=(n, n)).tocsr()
    for _ in range(num_rounds):
        gain = (1 - 2 * x) * (model.linear + matrix @ x)
        better = gain > 0
        if not better.any():
            break
        x = np.where(better & (generator.random(n) < 0.5), 1 - x, x)
    gain = (1 - 2 * x) * (model.linear + matrix @ x)
    return -gain[gain < 0]
