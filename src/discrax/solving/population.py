"""Chains of a sampler at several places, each place with a temperature (and an instance) of its own.

A place is an instance that is annealed, or a rung of a ladder of temperatures. All places are one compiled program,
and the best state of every chain is kept inside its loop. The kernel of each place is tuned all the time: what is found
is a state, not a law, so tuning need not end.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key, PRNGKeyArray

from discrax.core import random
from discrax.core.driver import Batched, Best, Ensemble, Recorder, drive, start
from discrax.core.kernel import Kernel, Sized, replaced
from discrax.core.target import Target, Tempered, check_target
from discrax.samplers import build_kernel
from discrax.sampling.auto import default_adapter
from discrax.sampling.checks import chain_keys, check_gradient
from discrax.sampling.together import apart, of_one_size, stacked

_LEAST_CAPACITY = 8
_MOST_CROSSINGS = 100.0  # by which the gain of tuning falls: a temperature that moves takes the best scale with it


class Population:
    """`targets`: one for each place, or one for all of them."""

    def __init__(
        self,
        key: PRNGKeyArray,
        targets: Sequence[Target],
        sampler: str | Kernel,
        x: Integer[np.ndarray, "places chains n"],
        betas: Sequence[float] | Float[np.ndarray, " places"],
    ):
        count = len(betas)
        self._targets = list(targets) * count if len(targets) == 1 else list(targets)
        self._batched: Batched = "one target" if len(targets) == 1 else True
        for target in targets:
            check_target(target)
        kernels: list[Any] = [build_kernel(sampler, target) for target in self._targets]
        check_gradient(self._targets[0], kernels[0])
        adapter = default_adapter(kernels[0])
        adapter = None if adapter is None else adapter.planned(kernels[0], 10**6)
        self._adapters = None if adapter is None else stacked([adapter] * count)
        kernels = self._of_size(kernels)
        self._keys = stacked([chain_keys(k, x.shape[1])[1] for k in _split(key, count)])
        self._base = targets[0] if len(targets) == 1 else stacked(self._targets)
        self.betas = np.asarray(betas, np.float64)
        space = self._targets[0].space
        codes = jnp.asarray(x.reshape(*x.shape[:2], *space.shape), space.dtype)
        begin = time.perf_counter()
        ensemble, self.last_compile_seconds = start(
            self._tempered(), stacked(kernels), codes, Recorder(None), batched=self._batched
        )
        jax.block_until_ready(ensemble.states.log_prob)
        self.seconds = time.perf_counter() - begin - self.last_compile_seconds
        self._check_start(np.asarray(ensemble.states.log_prob))
        if adapter is not None:
            memory = [adapter.init(t, k) for t, k in zip(self._targets, kernels, strict=True)]
            ensemble = ensemble._replace(memory=stacked(memory))
        self.ensemble: Ensemble = ensemble._replace(best=Best(ensemble.states.x, ensemble.states.log_prob))
        self.num_steps, self.acceptance = 0, 0.0

    @staticmethod
    def _check_start(values: Float[np.ndarray, "places chains"]) -> None:
        if not np.isfinite(values).all():
            raise ValueError(
                "The penalised objective must be a finite number where a search begins, but in the precision of the "
                f"search it is {values[~np.isfinite(values)][0]} for {(~np.isfinite(values)).sum()} of {values.size} "
                "chains; divide the objective by a large number, or pass `init`."
            )

    def _tempered(self) -> Tempered:
        one = Tempered(self._targets[0], 1.0)
        return eqx.tree_at(lambda t: (t.target, t.beta), one, (self._base, jnp.asarray(self.betas, one.beta.dtype)))

    def run(self, num_steps: int, *, resize: bool = True) -> None:
        """So many steps of all chains at the present temperatures; with `resize` the kernels' capacity follows them."""
        begin = time.perf_counter()
        for chunk in drive(
            self._keys,
            self._tempered(),
            self._with_gain(self.ensemble),
            1,
            chunk=1,
            thinning=num_steps,
            adapter=self._adapters,
            recorder=Recorder(None),
            resize=self._resized if resize else lambda kernel: kernel,
            batched=self._batched,
        ):
            self.ensemble, self.acceptance = chunk.ensemble, chunk.acceptance
            self.last_compile_seconds = chunk.compile_seconds or self.last_compile_seconds
            self.seconds += time.perf_counter() - begin - chunk.compile_seconds
        self.num_steps += num_steps

    @staticmethod
    def _with_gain(ensemble: Ensemble) -> Ensemble:
        memory = ensemble.memory
        if not hasattr(memory, "crossings"):
            return ensemble
        return ensemble._replace(memory=memory._replace(crossings=jnp.minimum(memory.crossings, _MOST_CROSSINGS)))

    def _resized(self, kernel: Kernel) -> Kernel:
        return stacked(self._of_size(apart(kernel, len(self.betas)))) if isinstance(kernel, Sized) else kernel

    def _of_size(self, kernels: list[Any]) -> list[Any]:
        """Room for paths of twice the present length, and little more: cold paths are short, and room costs time."""
        if not isinstance(kernels[0], Sized):
            return kernels
        tight: list[Any] = of_one_size([k.sized(t, room=False) for k, t in zip(kernels, self._targets, strict=True)])
        if not hasattr(kernels[0], "capacity"):
            return tight
        needed = max(tight[0].capacity, _LEAST_CAPACITY)  # a path cannot outgrow a capacity of one
        if needed <= getattr(kernels[0], "capacity") <= 4 * needed:  # noqa: B009 - not all that are Sized have one
            return kernels
        capacity = min(2 * needed, self._targets[0].space.num_sites)
        return [replaced(kernel, capacity=capacity) for kernel in kernels]

    @property
    def values(self) -> Float[np.ndarray, "places chains"]:
        return np.asarray(self.ensemble.states.log_prob, np.float64)

    @property
    def best_values(self) -> Float[np.ndarray, "places chains"]:
        return np.asarray(self.ensemble.best.log_prob, np.float64)

    @property
    def best_states(self) -> Integer[np.ndarray, "places chains n"]:
        x = np.asarray(self.ensemble.best.x)
        return x.reshape(*x.shape[:2], -1)

    def exchange(self, key: PRNGKeyArray, turn: int) -> Float[np.ndarray, " pairs"]:
        """Metropolis swaps between neighbouring places, chain by chain; the mean probability of each pair."""
        states, rates = _exchange(key, self.ensemble.states, jnp.asarray(self.betas, jnp.float32), turn)
        self.ensemble = self.ensemble._replace(states=states)
        return np.asarray(rates)


@partial(jax.jit, static_argnums=1)
def _split(key: PRNGKeyArray, count: int) -> Key[Array, " count"]:
    return random.split(key, count)


@jax.jit
def _exchange(key: PRNGKeyArray, states: Any, betas: Float[Array, " places"], turn: Array) -> tuple[Any, Array]:
    """States of places (i, i + 1), i of the parity of the turn, change places with probability
    min(1, exp((beta_i - beta_i+1) (value_i+1 - value_i))).
    """
    key = random.fold_in(key, turn)
    places, chains = states.log_prob.shape
    value = states.log_prob.astype(jnp.float32)
    log_ratio = (betas[:-1] - betas[1:])[:, None] * (value[1:] - value[:-1])
    is_pair = (jnp.arange(places - 1) % 2 == turn % 2)[:, None]
    swaps = is_pair & (jnp.log(random.uniform(key, log_ratio.size)).reshape(log_ratio.shape) < log_ratio)
    none = jnp.zeros((1, chains), bool)
    here = jnp.arange(places)[:, None] + jnp.concatenate([swaps, none]) - jnp.concatenate([none, swaps])
    moved = jax.tree.map(lambda leaf: leaf[here, jnp.arange(chains)], states)
    return moved, jnp.mean(jnp.exp(jnp.minimum(log_ratio, 0)), axis=1)
