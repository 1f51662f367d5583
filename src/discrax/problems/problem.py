"""`Problem`: an objective over a discrete space, with what a search and its user need.

A search climbs `target.log_prob`, which is the objective (with the sign that makes it a maximisation) less a penalty
for what is not allowed. What it finds is repaired, judged by the true objective, and handed back.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, Integer

from discrax.core import checks
from discrax.core.space import Binary, Space
from discrax.core.target import Target
from discrax.core.totals import Totals
from discrax.problems.products import Products
from discrax.targets.coupling import Dense, Uncoupled
from discrax.targets.quadratic import Quadratic
from discrax.targets.sparse_coupling import Sparse

_MOST_BYTES = 2**34  # of coupling matrices
_ROUNDING = 1e-12  # of an objective, relative to it
_WHOLE = 2.0**53  # integers up to this are exact


def is_rounding(a: float, b: float) -> bool:
    """Whether two sums may differ only because their terms came in another order: whole numbers never do."""
    if not (np.isfinite(a) and np.isfinite(b)):
        return a == b
    are_whole = float(a).is_integer() and float(b).is_integer() and max(abs(a), abs(b)) <= _WHOLE
    return a == b or (not are_whole and abs(a - b) <= _ROUNDING * max(abs(a), abs(b)))


@dataclass(frozen=True, eq=False)
class BinaryQuadratic:
    """offset + linear' x + sum over edges of weight x_i x_j, x in {0, 1}^n: to be made as large as possible."""

    linear: Float[np.ndarray, " n"]
    edges: Int[np.ndarray, "m 2"]  # each pair once, no loops
    weights: Float[np.ndarray, " m"]
    offset: float = 0.0

    def __post_init__(self) -> None:
        linear, weights = checks.real_array("linear", self.linear), checks.real_array("weights", self.weights)
        edges = checks.as_array("edges", self.edges)
        checks.number("offset", self.offset)
        if linear.ndim != 1 or edges.ndim != 2 or edges.shape[1] != 2 or weights.shape != edges.shape[:1]:
            raise ValueError(
                "linear must have shape (n,), edges (m, 2) and weights (m,), but they have "
                f"{linear.shape}, {edges.shape} and {weights.shape}."
            )
        if not np.issubdtype(edges.dtype, np.integer) or (
            edges.size and not 0 <= edges.min() <= edges.max() < len(linear)
        ):
            raise ValueError(f"edges must join sites 0..{len(linear) - 1}, but hold others.")
        for name, array in (("linear", linear), ("edges", edges), ("weights", weights)):
            object.__setattr__(self, name, array)

    @property
    def num_sites(self) -> int:
        """n, how many variables there are."""
        return len(self.linear)

    def value(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The form at states of codes 0 and 1."""
        x = np.asarray(x)
        pairs = (x[..., self.edges[:, 0]] & x[..., self.edges[:, 1]]) @ self.weights
        return self.offset + x @ self.linear + pairs

    def is_dense(self, num_instances: int = 1) -> bool:
        """Whether adding the few rows that change is cheaper than following neighbour lists of the largest degree.

        On an accelerator, where gathers are slow, it is if the matrices of all instances fit.
        """
        if jax.default_backend() != "cpu":
            return 4 * self.num_sites**2 * num_instances <= _MOST_BYTES
        largest = np.bincount(self.edges.ravel(), minlength=1).max() if len(self.edges) else 0
        return 8 * int(largest) >= self.num_sites

    def dense(self, size: int) -> Dense:
        """The couplings as a matrix, with room for `size` sites."""
        matrix = np.zeros((size, size), np.float32)
        i, j = self.edges.T
        matrix[i, j] = matrix[j, i] = self.weights
        return Dense(matrix)

    def target(self, space: Binary | None = None) -> Quadratic:
        """Its law: log_prob is the form without its offset, on all states or on those of a space."""
        n = self.num_sites
        if not len(self.edges):
            coupling = Uncoupled((n,))
        else:
            coupling = self.dense(n) if self.is_dense() else Sparse(self.edges, self.weights, (n,))
        return Quadratic(space or Binary(n), coupling, self.linear)


@dataclass(frozen=True, eq=False)
class BoundedQuadratic:
    """A quadratic form on the states of a space whose groups of sites have bounded totals."""

    form: BinaryQuadratic
    space: Binary

    def __post_init__(self) -> None:
        if self.space.totals is None or self.space.shape != (self.form.num_sites,):
            raise ValueError(
                f"The space must have {self.form.num_sites} sites in one axis and bounds on their totals, such as "
                f"Binary({self.form.num_sites}, exactly=1), but it has shape {self.space.shape}."
            )

    @property
    def totals(self) -> Totals:
        """The groups, and the bounds on their totals."""
        assert self.space.totals is not None
        return self.space.totals

    @property
    def num_sites(self) -> int:
        """n, how many variables there are."""
        return self.form.num_sites

    @property
    def edges(self) -> Int[np.ndarray, "m 2"]:
        """The pairs of the form."""
        return self.form.edges

    @property
    def offset(self) -> float:
        """The constant of the form."""
        return self.form.offset

    def value(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The form at states of codes 0 and 1, within bounds or not."""
        return self.form.value(x)

    def target(self) -> Quadratic:
        """Its law: log_prob is the form without its offset, on the states within bounds."""
        return self.form.target(self.space)


class LinearlyConstrained(NamedTuple):
    """A quadratic form less what its constraints cost: to be made as large as possible is

    form(x) - sum_k prices_k * excess_k,    excess_k = max(0, low_k - a_k, a_k - high_k),    a_k = sum_i c_ki x_i
    """

    form: BinaryQuadratic
    constraints: Int[np.ndarray, " terms"]  # k of each coefficient, ascending
    sites: Int[np.ndarray, " terms"]  # i
    coefficients: Float[np.ndarray, " terms"]  # c_ki
    low: Float[np.ndarray, " constraints"]  # may be -inf
    high: Float[np.ndarray, " constraints"]  # may be inf
    prices: Float[np.ndarray, " constraints"]

    @property
    def num_sites(self) -> int:
        """n, how many variables there are."""
        return self.form.num_sites

    @property
    def edges(self) -> Int[np.ndarray, "m 2"]:
        """Of the form."""
        return self.form.edges

    def activities(self, x: Integer[np.ndarray, " n"]) -> Float[np.ndarray, " constraints"]:
        """a_k at a state of codes 0 and 1."""
        return np.bincount(self.constraints, self.coefficients * x[self.sites], minlength=len(self.low))

    def excess(self, activities: Float[np.ndarray, "..."], k: Any = slice(None)) -> Float[np.ndarray, "..."]:
        """What activities, of all constraints or of those named, are beyond their limits."""
        return np.maximum(0.0, np.maximum(self.low[k] - activities, activities - self.high[k]))

    def value(self, x: Integer[np.ndarray, "states n"]) -> Float[np.ndarray, " states"]:
        """The form less what its constraints cost."""
        costs = [self.prices @ self.excess(self.activities(state)) for state in x]
        return self.form.value(x) - np.array(costs)


class Labelling(NamedTuple):
    """Labels 0..k-1 of the nodes of a graph: to be made as large as possible is

    - cut_cost * (weight of the edges whose ends differ) - size_cost * sum over labels of (n / k - count)^2
    """

    num_nodes: int
    num_labels: int
    edges: Int[np.ndarray, "m 2"]
    weights: Float[np.ndarray, " m"]
    cut_cost: float
    size_cost: float


# What is searched site by site.
PlainModel = BinaryQuadratic | BoundedQuadratic | Labelling | LinearlyConstrained | Products


class Problem(ABC):
    """States are arrays of codes whose last axis is the sites; methods take one state or a batch of them."""

    sense: ClassVar[str] = "max"  # or "min"

    @property
    @abstractmethod
    def target(self) -> Target:
        """log_prob is the objective, signed so that more is better, less the penalty."""

    @property
    def space(self) -> Space:
        """The states there are."""
        return self.target.space

    @property
    def model(self) -> PlainModel | None:
        """The same as plain arrays, where it has such a form: for searches that go site by site."""
        return None

    @abstractmethod
    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The true objective of states, allowed or not."""

    @abstractmethod
    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """How much of what is not allowed states have; 0 where they are feasible."""

    @abstractmethod
    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """A feasible state near one; a feasible one is not made worse."""

    def repair_in_time(self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]) -> Integer[np.ndarray, " n"]:
        """`repair`, which may end early, at a state that is not feasible, once `is_over` says so."""
        return self.repair(x)

    def bound(self) -> float | None:
        """A value that no feasible state can pass, where one is cheap."""
        return None

    def quick_bound(self) -> float | None:
        """`bound`, or a weaker one where that takes more than a moment: a search may end where it is met."""
        return self.bound()

    def meets_bound(self, objective: float, bound: float | None) -> bool:
        """Whether no feasible state can be better, but for rounding."""
        if bound is None or not np.isfinite(objective):
            return False
        short = bound - objective if self.sense == "max" else objective - bound
        return short <= 0 or is_rounding(objective, bound)

    def is_feasible(self, x: Integer[np.ndarray, "*batch n"]) -> np.ndarray:
        """Which of the states have no violations, shape (*batch)."""
        return np.asarray(np.asarray(self.violations(x)) == 0)

    def init(self, generator: np.random.Generator, num_chains: int) -> Integer[np.ndarray, "chains n"]:
        """States to begin with: uniform, unless a problem knows better; totals that are bounded are mended."""
        space, n = self.space, self.space.num_sites
        x = generator.integers(0, np.asarray(space.levels_at()), (num_chains, n)).astype(space.dtype)
        x = np.asarray(space.hold(x))
        if space.totals is None:
            return x
        return np.array([space.mend(state, generator.random(n)) for state in x], space.dtype)

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        """The solution in the words of the problem, as JSON takes it."""
        return {"state": [int(code) for code in x]}

    def is_better(self, first: float, second: float) -> bool:
        """Whether the first objective is better than the second."""
        return first > second if self.sense == "max" else first < second


class BinaryProblem(Problem):
    """A problem whose penalised objective is a quadratic form of {0, 1} variables."""

    @property
    @abstractmethod
    def model(self) -> BinaryQuadratic | BoundedQuadratic: ...

    @cached_property
    def target(self) -> Quadratic:
        return self.model.target()

    @cached_property
    def space(self) -> Space:
        return Binary(self.model.num_sites)  # not the target's, which a search site by site never builds
