"""Quadratic objectives with linear constraints: `ConstrainedQUBO`.

A constraint is low <= a <= high of a = sum_i c_i x_i over variables x in {0, 1}. Being beyond a limit costs

    price = penalty * max over its variables of G_i / |c_i|,    G_i = |linear_i| + sum_j |w_ij|,

a unit: as much as flipping a variable back can lose at most, where it takes its whole coefficient off the excess.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from discrax.core.checks import describe, number, real_array
from discrax.core.space import Binary, Space
from discrax.core.target import Target
from discrax.problems.problem import BinaryQuadratic, LinearlyConstrained, Problem
from discrax.problems.qubo import QUBO
from discrax.problems.states import per_state, plain_keys, totals
from discrax.targets.quadratic import Quadratic

_SENSES = ("<=", "==", ">=")
_TURNS = 8  # of flips of many variables
_ABSOLUTE, _RELATIVE = 1e-8, 1e-6  # of limits: what is beyond them by less is not beyond them, as in dimod


class Constraint(NamedTuple):
    """low <= sum of coefficients * x[sites] <= high."""

    name: Hashable
    sites: Int[np.ndarray, " terms"]
    coefficients: Float[np.ndarray, " terms"]
    low: float
    high: float


class _Law(eqx.Module):
    form: Quadratic
    constraints: Int[Array, " terms"]
    sites: Int[Array, " terms"]
    coefficients: Float[Array, " terms"]
    low: Float[Array, " constraints"]
    high: Float[Array, " constraints"]
    prices: Float[Array, " constraints"]

    def __call__(self, e: Float[Array, " n"]) -> Float[Array, ""]:
        terms = self.coefficients * e[self.sites]
        a = jnp.zeros_like(self.low).at[self.constraints].add(terms)
        excess = jnp.maximum(0.0, jnp.maximum(self.low - a, a - self.high))
        return self.form.log_prob(e) - jnp.sum(self.prices * excess)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ConstrainedQUBO(Problem):
    """Minimise a QUBO, or whatever `QUBO` takes, under linear constraints.

    A constraint is (terms, sense, limit), terms a dict {name: coefficient} over the names of the variables and sense
    one of "<=", "==" and ">="; a dict {name: constraint} gives them names. `penalty` multiplies the price of being
    beyond a limit. Variables are 0 and 1 in constraints, so a QUBO of spins is refused.
    """

    sense: ClassVar[str] = "min"

    qubo: QUBO
    constraints: tuple[Constraint, ...]
    penalty: float

    def __init__(self, objective: Any, constraints: Any, *, penalty: float = 1.0):
        qubo = objective if isinstance(objective, QUBO) else QUBO(objective)
        if not isinstance(qubo.model, BinaryQuadratic):
            raise ValueError(f"The objective must be without bounds, which constraints say as well, but got {qubo!r}.")
        if qubo.is_spin:
            raise ValueError("Constraints are on variables 0 and 1, but the QUBO is of spins; state it in bits.")
        n = qubo.space.num_sites
        place = {name: i for i, name in enumerate(range(n) if qubo.names is None else qubo.names)}
        named = constraints.items() if isinstance(constraints, Mapping) else enumerate(_listed(constraints))
        checked = tuple(_check_constraint(name, each, place) for name, each in named)
        vars(self).update(qubo=qubo, constraints=checked, penalty=number("penalty", penalty, above=0))

    @cached_property
    def model(self) -> LinearlyConstrained:
        form, some = self.qubo.model, self.constraints
        assert isinstance(form, BinaryQuadratic)
        reach = np.abs(form.linear) + totals(form.edges.ravel(), np.repeat(np.abs(form.weights), 2), form.num_sites)
        prices = [self.penalty * (np.max(reach[c.sites] / np.abs(c.coefficients), initial=0) or 1.0) for c in some]
        return LinearlyConstrained(
            form,
            np.repeat(np.arange(len(some)), [len(c.sites) for c in some]),
            np.concatenate([np.zeros(0, np.int64), *(c.sites for c in some)]),
            np.concatenate([np.zeros(0), *(c.coefficients for c in some)]),
            np.array([c.low for c in some], np.float64),
            np.array([c.high for c in some], np.float64),
            np.array(prices, np.float64),
        )

    @cached_property
    def target(self) -> Target:
        model, real = self.model, jnp.result_type(float)
        places = (jnp.asarray(each, jnp.int32) for each in (model.constraints, model.sites))
        numbers = (jnp.asarray(each, real) for each in (model.coefficients, model.low, model.high, model.prices))
        return Target.from_log_prob(_Law(model.form.target(), *places, *numbers), self.space)

    @cached_property
    def space(self) -> Space:
        return Binary(self.qubo.space.num_sites)

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The energy."""
        return self.qubo.objective(x)

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """How far beyond their limits the constraints are, all together."""
        return per_state(lambda x: float(self._excess(x).sum()), x)

    def _excess(self, x: Integer[np.ndarray, " n"]) -> Float[np.ndarray, " constraints"]:
        model = self.model
        excess, limits = model.excess(model.activities(x)), np.where(np.isfinite(model.low), model.low, model.high)
        return np.where(excess <= _ABSOLUTE + _RELATIVE * np.abs(limits), 0.0, excess)

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Flips variables, the one that gains most of the priced objective first, as long as each lowers what the
        constraints cost; then those that gain while nothing is beyond a limit. It may end before all limits hold.
        """
        return self.repair_in_time(x, lambda: False)

    def repair_in_time(self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]) -> Integer[np.ndarray, " n"]:
        """The same; where the time ends before the limits hold, many variables at once are flipped for each of them."""
        model, dtype, x = self.model, np.asarray(x).dtype, np.array(x, np.int64)
        k, i = model.constraints, model.sites
        start, others, weights = self.qubo._rows
        fields = self._fields(x)
        activities = model.activities(x)
        while not is_over():
            move = 1 - 2 * x
            change = model.excess(activities[k] + model.coefficients * move[i], k) - model.excess(activities[k], k)
            costs = totals(i, model.prices[k] * change, len(x))
            is_beyond = self._excess(x).any()
            least = 1e-9 * max(1.0, model.prices.max(initial=0), np.abs(fields).max())
            gains = np.where(costs < -least, move * fields - costs, -np.inf) if is_beyond else move * fields
            gains = gains if is_beyond else np.where(costs <= 0, gains, -np.inf)
            site = int(np.argmax(gains))
            if gains[site] == -np.inf or (not is_beyond and gains[site] <= least):
                break
            row = slice(start[site], start[site + 1])
            fields[others[row]] += move[site] * weights[row]
            here = i == site
            np.add.at(activities, k[here], model.coefficients[here] * move[site])
            x[site] += move[site]
        else:
            self._flip_many(x)
        return x.astype(dtype)

    def _fields(self, x: Integer[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """What setting each variable adds to the form."""
        form = self.model.form
        (i, j), weights = form.edges.T, form.weights
        return form.linear + totals(np.concatenate([i, j]), np.concatenate([weights * x[j], weights * x[i]]), len(x))

    def _flip_many(self, x: Int[np.ndarray, " n"]) -> None:
        """For each limit that does not hold, variables of its constraint until it does: those first that lose least of
        the form for what they bring. What that breaks elsewhere has a few more turns.
        """
        for _ in range(_TURNS):
            beyond, fields = np.flatnonzero(self._excess(x)), self._fields(x)
            if not len(beyond):
                return
            for each in (self.constraints[k] for k in beyond):
                a, move = each.coefficients @ x[each.sites], 1 - 2 * x[each.sites]
                lacking = each.low - a if a < each.low else each.high - a
                brings = each.coefficients * move * np.sign(lacking)
                useful = np.flatnonzero(brings > 0)
                useful = useful[np.argsort((-move * fields[each.sites])[useful] / brings[useful], kind="stable")]
                count = 1 + int(np.searchsorted(np.cumsum(brings[useful]), abs(lacking) - _ABSOLUTE))
                x[each.sites[useful[:count]]] ^= 1

    def bound(self) -> float:
        """That of the objective without constraints."""
        return self.qubo.bound()

    def fixed_counts(self) -> list[tuple[Int[np.ndarray, " sites"], int]]:
        """The constraints that say "exactly k of these", as sites and k: moves that keep them could hold them."""
        return [
            (each.sites, round(each.low))
            for each in self.constraints
            if each.low == each.high == round(each.low) and (each.coefficients == 1).all()
        ]

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        names = plain_keys(each.name for each in self.constraints)
        excess = zip(names, self._excess(np.asarray(x)).tolist(), strict=True)
        violations = {name: beyond for name, beyond in excess if beyond}
        return {**self.qubo.describe(x), "violations": violations}

    def __repr__(self) -> str:
        n, m = self.space.num_sites, len(self.qubo.energy.edges)
        return f"ConstrainedQUBO({n:,} variables, {m:,} pairs, {len(self.constraints):,} constraints)"


def _listed(constraints: Any) -> list[Any]:
    if isinstance(constraints, str) or not isinstance(constraints, Iterable):
        raise TypeError(f"constraints are a list or a dict of (terms, sense, limit), but got {describe(constraints)}.")
    return list(constraints)


def _check_constraint(name: Hashable, given: Any, place: Mapping[Hashable, int]) -> Constraint:
    try:
        terms, sense, limit = given
    except (TypeError, ValueError):
        raise TypeError(f"Constraint {name!r} must be (terms, sense, limit), but got {describe(given)}.") from None
    if not isinstance(terms, Mapping):
        raise TypeError(f"Constraint {name!r} must have terms {{name: coefficient}}, but got {describe(terms)}.")
    if sense not in _SENSES:
        raise ValueError(f"Constraint {name!r} must be one of {', '.join(_SENSES)}, but got {sense!r}.")
    limit = number(f"The limit of constraint {name!r}", limit)
    values = real_array(f"The coefficients of constraint {name!r}", list(terms.values())) if terms else np.zeros(0)
    for each in terms:
        if each not in place:
            raise ValueError(f"Constraint {name!r} must be of the objective's variables, but one is {describe(each)}.")
    sites = np.array([place[each] for each in terms], np.int64)
    low, high = (-np.inf if sense == "<=" else limit), (np.inf if sense == ">=" else limit)
    return Constraint(name, sites[values != 0], values[values != 0], low, high)
