"""Facility location with random demands, a problem in expectation.

Facility i may be opened (y_i = 1) at the cost c_i and then serves K_i units; every customer j is given to one facility
a_j, whose transport costs c_ij a unit; what a facility is asked for beyond its capacity is bought elsewhere at g_i a
unit. With demands d and loads L_i = sum of d_j over the customers of i,

    cost(y, a; d) = sum_i c_i y_i + sum_j c_{a_j j} d_j + sum_i g_i s_i(L_i),    s_i(L) = max(0, L - K_i y_i),

and pi(y, a) is proportional to exp(-E_d cost(y, a; d)): a sampler's temperature makes it a search. A mini-batch d says
what every single change does at once, since all that it needs is the loads:

    customer j from a to b    (c_bj - c_aj) d_j + g_a [s_a(L_a - d_j) - s_a(L_a)] + g_b [s_b(L_b + d_j) - s_b(L_b)]
    facility i opened         c_i + g_i [max(0, L_i - K_i) - L_i],    and closed the negative of it

A state has a site of two levels for each facility, whose code is y_i, and then a site for each customer, whose code is
a_j.

Demands are independent, with given means and relative spreads s (standard deviation over mean), by one of two laws:

    "lognormal"   positive, and never the same twice
    "bernoulli"   mean (1 + s^2) with probability p = 1 / (1 + s^2), else none: a customer asks or does not

Reference: stochastic facility location with outsourcing, Albareda-Sambola, Fernandez and Saldanha-da-Gama (2011).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments, number, real_array, whole
from discrax.core.levels import is_level
from discrax.core.space import Categorical
from discrax.core.stochastic import Batch, BatchRatios

_MOST_SIMULATED = 20_000  # facilities or customers; each pair has a cost
_SCENARIOS = 256  # of demands, fixed, whose mean cost is the log-probability


class FacilityLocation(BatchRatios):
    """Which facilities to open, and which of them serves each customer, before the demands are known.

    - `opening`, `capacity`, `penalty`: of each facility; `penalty` is the price of a unit beyond the capacity.
    - `transport`: (facilities, customers), of a unit of demand.
    - `demand`, `spread`: the mean demand of each customer, and its standard deviation over the mean.
    - `law`: of the demands, "lognormal" or "bernoulli".
    - `batch_size`: scenarios of a mini-batch, whose costs are averaged.

    Without a `penalty` a unit bought elsewhere costs twice the dearest transport and a unit of the dearest capacity.
    """

    space: Categorical
    opening: Float[Array, " facilities"]
    transport: Float[Array, "facilities customers"]
    capacity: Float[Array, " facilities"]
    penalty: Float[Array, " facilities"]
    demand: Float[Array, " customers"]
    spread: Float[Array, " customers"]
    scenarios: Float[Array, "scenarios customers"]
    law: str = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def __init__(
        self,
        opening: Any,
        transport: Any,
        capacity: Any,
        penalty: Any,
        demand: Any,
        spread: Any = 0.5,
        *,
        law: str = "lognormal",
        batch_size: int = 1,
    ):
        if law not in ("lognormal", "bernoulli"):
            raise ValueError(f"law is that of the demands, 'lognormal' or 'bernoulli', but got {law!r}.")
        transport = real_array("transport", transport)
        if transport.ndim != 2 or transport.shape[0] < 2 or transport.shape[1] < 1:
            raise ValueError(
                "transport is a table of at least two facilities by at least one customer, but its shape is "
                f"{transport.shape}."
            )
        num_facilities, num_customers = transport.shape
        self.opening = _checked("opening", opening, num_facilities)
        self.capacity = _checked("capacity", capacity, num_facilities)
        if penalty is None:
            penalty = 2 * transport.max() + float(jnp.max(self.opening / self.capacity))
        self.penalty = _checked("penalty", penalty, num_facilities)
        self.demand = _checked("demand", demand, num_customers)
        self.spread = _checked("spread", spread, num_customers)
        self.transport = _checked("transport", transport, num_customers)
        self.law, self.batch_size = law, whole("batch_size", batch_size, least=1)
        levels = np.repeat([2, num_facilities], [num_facilities, num_customers])
        self.space = Categorical(num_facilities + num_customers, levels)
        self.scenarios = self._demands(random.as_threefry(jax.random.key(0)), _SCENARIOS)

    @staticmethod
    @checked_arguments
    def simulated(
        seed: int,
        num_facilities: int = 15,
        num_customers: int = 30,
        *,
        ratio: float = 5.0,
        spread: float = 0.5,
        law: str = "lognormal",
        batch_size: int = 1,
    ) -> "FacilityLocation":
        """Facilities and customers in the unit square, as Cornuejols, Sridharan and Thizy (1991) make them.

        Mean demands are 5 .. 35 and capacities k = 10 .. 160; opening costs U{0 .. 90} + U{100 .. 110} sqrt(k), and
        transport 10 a unit of demand and of distance. Then capacities are scaled to `ratio` times the mean demand in
        all. That demands are random, and what a unit costs that is bought elsewhere, is not theirs.
        """
        whole("num_facilities", num_facilities, least=2, most=_MOST_SIMULATED)
        whole("num_customers", num_customers, least=1, most=_MOST_SIMULATED)
        generator = np.random.default_rng(whole("seed", seed, least=0))
        facilities, customers = generator.random((num_facilities, 2)), generator.random((num_customers, 2))
        demand = generator.integers(5, 36, num_customers)
        size = generator.integers(10, 161, num_facilities)
        per_root = generator.integers(100, 111, num_facilities)
        opening = generator.integers(0, 91, num_facilities) + per_root * np.sqrt(size)
        capacity = number("ratio", ratio, above=0) * demand.sum() / size.sum() * size
        transport = 10 * np.linalg.norm(facilities[:, None] - customers, axis=-1)
        return FacilityLocation(opening, transport, capacity, None, demand, spread, law=law, batch_size=batch_size)

    @staticmethod
    @checked_arguments
    def from_orlib(
        fixed: Any,
        capacity: Any,
        demand: Any,
        cost: Any,
        *,
        penalty: Any = None,
        spread: float = 0.5,
        law: str = "lognormal",
        batch_size: int = 1,
    ) -> "FacilityLocation":
        """A problem as the OR-Library states them: `cost` is that of serving all demand of a customer."""
        fixed, capacity, demand, cost = (
            real_array(name, given)
            for name, given in (("fixed", fixed), ("capacity", capacity), ("demand", demand), ("cost", cost))
        )
        if cost.shape != (fixed.size, demand.size):
            raise ValueError(
                f"cost has a row a facility and a column a customer, {(fixed.size, demand.size)}, but its shape is "
                f"{cost.shape}."
            )
        if not (demand > 0).all() or not (capacity > 0).all():
            raise ValueError("Demands and capacities are positive, but some of these are not.")
        transport = cost / demand[None]
        return FacilityLocation(fixed, transport, capacity, penalty, demand, spread, law=law, batch_size=batch_size)

    @property
    def num_facilities(self) -> int:
        """How many may be opened."""
        return self.space.num_levels

    @property
    def num_customers(self) -> int:
        """How many are to be served."""
        return self.space.num_sites - self.space.num_levels

    def draw(self, key: PRNGKeyArray, step: Integer[Array, ""]) -> Float[Array, "batch customers"]:
        return self._demands(key, self.batch_size)

    def cost(self, x: Integer[Array, " n"], d: Float[Array, "*batch customers"]) -> Float[Array, "*batch"]:
        """The cost of a state if the demands are `d`."""
        return self._cost(self.space.embed(x), d)

    def psi(self, e: Float[Array, "n facilities"], xi: Float[Array, "batch customers"]) -> Float[Array, ""]:
        return -jnp.mean(self._cost(e, xi))

    def log_prob(self, e: Float[Array, "n facilities"]) -> Float[Array, ""]:
        """Minus the mean cost of a fixed set of scenarios."""
        return self.psi(e, self.scenarios)

    def batch(self, x: Integer[Array, " n"], xi: Float[Array, "batch customers"]) -> Batch:
        """The rise of minus the mean cost for all single changes, from the loads."""
        is_mine = is_level(x, self.num_facilities)
        of_facilities, of_customers = jax.vmap(self._rises, in_axes=(None, None, 0))(x, is_mine, xi)
        toggled = jnp.broadcast_to(jnp.mean(of_facilities, axis=0)[:, None], 2 * (self.num_facilities,))
        rises = jnp.concatenate([toggled, jnp.mean(of_customers, axis=0)], axis=0)
        changes = jnp.where(is_mine, 0, -rises)
        if self.space.has_two_levels:
            changes = jnp.sum(changes, axis=-1)  # the change to the other level
        return Batch(self.psi(self.space.embed(x), xi), changes)

    def _rises(
        self, x: Integer[Array, " n"], is_mine: Bool[Array, "n facilities"], d: Float[Array, " customers"]
    ) -> tuple[Float[Array, " facilities"], Float[Array, "customers facilities"]]:
        """By how much the cost of one scenario rises: each facility toggled, and each customer at each facility."""
        I = self.num_facilities  # noqa: E741
        y, at = x[:I].astype(d.dtype), is_mine[I:].astype(d.dtype)  # (customer, facility): who is whose
        load = d @ at
        room = self.capacity * y

        def bought(load: Float[Array, " facilities"]) -> Float[Array, " facilities"]:
            return self.penalty * jnp.maximum(0, load - room)

        toggled = (1 - 2 * y) * (self.opening + self.penalty * (jnp.maximum(0, load - self.capacity) - load))
        now, d = bought(load), d[:, None]
        arriving = self.transport.T * d + self.penalty[None] * jnp.maximum(0, (load - room)[None] + d) - now[None]
        leaving = jnp.sum(
            at * (self.penalty[None] * jnp.maximum(0, (load - room)[None] - d) - now[None] - self.transport.T * d),
            axis=1,
        )
        return toggled, arriving + leaving[:, None]

    def _cost(self, e: Float[Array, "n facilities"], d: Float[Array, "*batch customers"]) -> Float[Array, "*batch"]:
        open_or_not, at = e[: self.num_facilities], e[self.num_facilities :]
        y = open_or_not[:, 1]
        room = jnp.broadcast_to(self.capacity * y, (*d.shape[:-1], self.num_facilities))
        short = jnp.maximum(0, d @ at - room)
        return self.opening @ y + d @ jnp.sum(at * self.transport.T, axis=1) + short @ self.penalty

    def _demands(self, key: PRNGKeyArray, count: int) -> Float[Array, "count customers"]:
        if self.law == "bernoulli":
            most = 1 + jnp.square(self.spread)
            u = random.uniform(key, count * self.num_customers).reshape(count, -1)
            return jnp.where(u * most[None] < 1, (self.demand * most)[None], 0)
        # A normal number z makes exp(s z - s^2 / 2), which has the mean 1 and the variance exp(s^2) - 1.
        s = jnp.sqrt(jnp.log1p(jnp.square(self.spread)))
        z = random.normal(key, count * self.num_customers).reshape(count, -1)
        return (self.demand * jnp.exp(-jnp.square(s) / 2))[None] * jnp.exp(s[None] * z)


def _checked(name: str, values: Any, size: int) -> Float[Array, "..."]:
    """Numbers, not negative; one number stands for all."""
    values = real_array(name, values)
    if values.ndim == 0:
        values = np.full(size, values)
    if values.shape[-1:] != (size,) or (name != "transport" and values.ndim != 1):
        raise ValueError(f"{name} has {size} numbers here, but its shape is {values.shape}.")
    if (values < 0).any():
        raise ValueError(f"{name} holds finite numbers, none of them negative, but one is {values.min():g}.")
    return jnp.asarray(values, jnp.result_type(float))
