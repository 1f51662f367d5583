"""The chains of polynomials that `sites.py` drives."""

import functools

import numpy as np
from jaxtyping import Float, Integer

from discrax.problems.products import Products
from discrax.solving import sites_polynomial as kernels
from discrax.solving.schedules import cold_beta
from discrax.solving.sites_chains import Chains
from discrax.solving.sites_kernels import scatter_labels

SITES_OF_AN_OFFER = 5  # a walk makes one where a sweep visits so many sites: they take about as long
BETA_OF_A_WALK = 1.2  # times the median weight


class PolynomialChains(Chains):
    """Chains of `Products`. Numbers are in units of the weights' common divisor, or of the largest of them.

    With `may_walk`, and where every term is a cost, chains take turns: from restart to restart a chain makes sweeps,
    from a uniform state, or a focused walk from its best one, and of two neighbours one does this and one that.
    """

    def __init__(self, model: Products, num_chains: int, seed: int, *, may_walk: bool = False):
        super().__init__(num_chains, model.num_sites, seed)
        self.model = model
        first, terms, codes = model.by_sites()
        self.unit, dtype = float(np.abs(model.weights).max(initial=0)) or 1.0, np.dtype(np.float64)
        if (model.weights == np.round(model.weights)).all() and np.abs(model.weights).sum() < 2**50:
            self.unit = float(max(1, np.gcd.reduce(model.weights.astype(np.int64), initial=0)))
            if 4 * np.abs(model.weights).sum() / self.unit < 2**31:
                dtype = np.dtype(np.int32)
        self.has_table = dtype == np.int32
        index = np.int32 if len(terms) < 2**31 else np.int64
        self.form = kernels.Form(
            first.astype(index), terms.astype(np.int32), codes, model.start.astype(index),
            model.sites.astype(np.int32), (model.weights / self.unit).astype(dtype), model.surcharges / self.unit,
            model.is_spin,
        )  # fmt: skip
        shape = (num_chains, model.num_terms)
        counts, lone, gains = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(self.states.shape, dtype)
        self.places = kernels.Place(self.states, counts, lone, gains)
        self.turns = np.arange(num_chains)
        self.may_walk = may_walk and model.num_terms > 0 and not model.is_spin and bool((model.weights < 0).all())
        self.bests = kernels.Best(self.values, np.zeros(num_chains), self.best, self.best_values)

    def put(self, states: Integer[np.ndarray, "block n"], low: int, high: int) -> None:
        self.states[low:high] = states
        kernels.set_gains(self.form, self.places, self.bests, low, high)

    def restart(self, low: int, high: int) -> None:
        self.turns[low:high] += 1
        scatter_labels(self.states, 2, self.streams, low, high)
        for chain in range(low, high):
            if self._walks(chain) and np.isfinite(self.best_values[chain]):
                self.states[chain] = self.best[chain]
        self.put(self.states[low:high], low, high)

    def anneal(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        if not self.may_walk:
            self._sweep(betas, low, high)
            return
        num_offers = -(-self.model.num_sites // SITES_OF_AN_OFFER)
        beta = BETA_OF_A_WALK / float(np.median(np.abs(self.form.weights)))
        for chain in range(low, high):
            if self._walks(chain):
                kernels.walk(self.form, self.places, self.bests, self.streams, beta, len(betas), num_offers, chain)
            else:
                self._sweep(betas, chain, chain + 1)

    def _walks(self, chain: int) -> bool:
        return self.may_walk and int(self.turns[chain]) % 2 == 0

    def _sweep(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        betas = self.unit * betas
        kernels.anneal(self.form, self.places, self.bests, self.streams, betas, self.has_table, low, high)

    def polish(self, low: int, high: int) -> None:
        kernels.polish(self.form, self.places, self.bests, low, high)

    def temperatures(self) -> tuple[float, float]:
        pilot = PolynomialChains(self.model, 1, 0)
        pilot.streams = self.pilot_stream
        pilot.restart(0, 1)
        typical = np.sqrt((pilot._gains() ** 2).mean())
        if typical == 0:
            return 1.0, 1.0
        pilot.polish(0, 1)
        return float(1 / typical), cold_beta(pilot._gains(), float(1 / typical))

    def _gains(self) -> Float[np.ndarray, " n"]:
        return self.unit * self.places.gains[0].astype(np.float64)

    def compile(self) -> None:
        _compile(self.has_table)

    def from_codes(self, codes: Integer[np.ndarray, "*chains n"]) -> Integer[np.ndarray, "*chains n"]:
        return np.asarray(codes).astype(np.int8)

    def codes(self, states: Integer[np.ndarray, "chains n"]) -> Integer[np.ndarray, "chains n"]:
        return states.copy()

    def exact_values(self, codes: Integer[np.ndarray, "chains n"]) -> Float[np.ndarray, " chains"]:
        """Less the surcharges, by which states are compared."""
        return self.model.strict().value(codes)

    def current_values(self) -> Float[np.ndarray, " chains"]:
        return self.model.offset + self.unit * self.values


@functools.cache
def _compile(has_table: bool) -> None:
    weights = np.full(1, -1.0) if has_table else np.array([-1.0, -0.5])
    num_terms = len(weights)
    start, sites = 2 * np.arange(num_terms + 1), np.tile(np.arange(2), num_terms)
    chains = PolynomialChains(
        Products(2, start, sites, np.ones(2 * num_terms, np.int8), weights, np.zeros(num_terms)), 2, 0, may_walk=True
    )
    chains.restart(0, 2)
    chains.anneal(np.ones(1), 0, 2)
    chains.polish(0, 2)
