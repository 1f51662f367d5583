"""A `dimod` sampler of polynomials of any order, with the arguments of `DiscraxSampler`; nothing is quadratised.

    from discrax.interop.dimod_poly import DiscraxPolySampler

    samples = DiscraxPolySampler().sample_hubo({("a", "b", "c"): -1.0}, num_reads=10, num_sweeps=1000)

A read returns the best state that its chain met. Ctrl-C and SIGTERM end a search with what it has found.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import dimod
import numpy as np
from dimod.core.polysampler import PolySampler
from dimod.higherorder.polynomial import BinaryPolynomial

from discrax.core.checks import describe, whole
from discrax.core.interrupts import Interrupts
from discrax.core.memory import check_memory
from discrax.problems.polynomial import Polynomial
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.schedules import check_betas
from discrax.solving.sites import search_by_sites

_KINDS = ("linear", "geometric")


class DiscraxPolySampler(PolySampler):
    """Simulated annealing of polynomials, one chain for each read. It has `sample_hising` and `sample_hubo` too."""

    def __init__(self):
        _, *names = inspect.signature(self.sample_poly).parameters  # after the polynomial
        self._parameters = {name: [] for name in names} | {"beta_schedule_type": ["beta_schedule_options"]}

    @property
    def parameters(self) -> dict[str, list[str]]:
        """What `sample_poly` takes, as dimod asks, and which properties say more about it."""
        return self._parameters

    @property
    def properties(self) -> dict[str, Any]:
        """The schedules there are."""
        return {"beta_schedule_options": _KINDS}

    def sample_poly(
        self,
        polynomial: Any,
        beta_range: Sequence[float] | None = None,
        num_reads: int = 1,
        num_sweeps: int = 1000,
        beta_schedule_type: str = "geometric",
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
    ) -> dimod.SampleSet:  # ty: ignore[incompatible-method-override]
        """States of low energy, a read each, in no order. Energies, labels and vartype are those of the polynomial.

        Args:
            polynomial: a `dimod.BinaryPolynomial`.
            beta_range: the first and the last inverse temperature; by default, chosen to suit the weights.
            num_sweeps: visits to every variable in a read.
            beta_schedule_type: "geometric" or "linear".
            seed: the same seed gives the same samples. By default, a random one.
            interrupt_function: asked now and then; once it says True, what has been found so far is returned.
        """
        if not isinstance(polynomial, BinaryPolynomial):
            raise TypeError(f"What to sample is a dimod.BinaryPolynomial, but got {describe(polynomial)}.")
        if beta_schedule_type not in _KINDS:
            raise ValueError(f"beta_schedule_type is one of {', '.join(_KINDS)}, but got {beta_schedule_type!r}.")
        if interrupt_function is not None and not callable(interrupt_function):
            raise TypeError(f"interrupt_function is a function, but got {interrupt_function!r}.")
        betas = None if beta_range is None else check_betas(beta_range, may_be_equal=True)
        whole("num_reads", num_reads, least=1)
        budget = SearchBudget(num_steps=whole("num_sweeps", num_sweeps, least=0))
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        whole("seed", seed, least=0, most=2**32 - 1)
        if not polynomial.variables:
            states, names = np.zeros((num_reads, 0), np.int8), ()
        else:
            problem = Polynomial.from_dimod(polynomial)
            model, names = problem.model, problem.names
            places = 10 * model.num_sites + 8 * model.num_terms
            check_memory(f"{num_reads:,} reads", float(num_reads * places), "use fewer num_reads")
            with Interrupts() as interrupts:

                def is_asked_to_stop() -> bool:
                    asked = interrupt_function is not None and interrupt_function()
                    interrupts.requested = interrupts.requested or asked
                    return interrupts.requested

                *_, last = search_by_sites(
                    model, num_chains=num_reads, seed=seed, init=None, budget=budget, betas=betas, num_rounds=1,
                    schedule=beta_schedule_type, clock=Clock(budget, is_asked_to_stop=is_asked_to_stop),
                )  # fmt: skip
            states = last.best_states
        values = 2 * states - 1 if polynomial.vartype is dimod.SPIN else states
        energies = polynomial.energies((values, names)) if names else np.full(num_reads, polynomial.get((), 0.0))
        return dimod.SampleSet.from_samples((values, names), energy=energies, vartype=polynomial.vartype)
