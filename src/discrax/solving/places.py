"""Chains of a sampler at several places, each place with a temperature (and an instance) of its own.

A place is an instance that is annealed, or a rung of a ladder of temperatures. All places are one compiled program,
and the best state of every chain is kept inside its loop. The kernel of each place is tuned all the time: what is found
is a state, not a law, so tuning need not end.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key, PRNGKeyArray

from discrax.core import random
from discrax.core.devices import Devices
from discrax.core.kernel import Kernel, replaced
from discrax.core.observers import Best, BestState
from discrax.core.target import Target, Tempered
from discrax.sampling.auto import default_adapter
from discrax.sampling.checks import chain_keys
from discrax.sampling.run import Run

_LEAST_CAPACITY = 8
_MOST_CROSSINGS = 100.0  # by which the gain of tuning falls: a temperature that moves takes the best scale with it


class Places:
    """`targets`: one for each place, or one for all of them."""

    def __init__(
        self,
        key: PRNGKeyArray,
        targets: Sequence[Target],
        sampler: str | Kernel,
        x: Integer[np.ndarray, "places chains n"],
        betas: Sequence[float] | Float[np.ndarray, " places"],
        devices: Devices | None = None,
    ):
        self.betas = np.asarray(betas, np.float64)
        targets = list(targets) * len(betas) if len(targets) == 1 else list(targets)
        space = targets[0].space
        codes = jnp.asarray(x.reshape(*x.shape[:2], *space.shape), space.dtype)
        begin = time.perf_counter()
        keys = [chain_keys(each, x.shape[1])[1] for each in _split(key, len(betas))]
        places = zip(keys, targets, betas, codes, strict=True)
        runs = [Run.at(each, Tempered(target, float(beta)), sampler, here) for each, target, beta, here in places]
        run = Run.stack(runs).on(devices)
        self.last_compile_seconds = run.compile_seconds
        self._check_start(np.asarray(run.ensemble.states.log_prob))
        adapter = default_adapter(run.targets[0], run.kernels[0])
        if adapter is not None:
            run = run.begin_tuning([adapter] * len(betas), 10**6)
        self._run = self._with_room(run)
        self.num_steps, self.acceptance = 0, 0.0
        self._best = BestState(run.ensemble.states.x, run.ensemble.states.log_prob)
        self.seconds = time.perf_counter() - begin - self.last_compile_seconds

    @staticmethod
    def _check_start(values: Float[np.ndarray, "places chains"]) -> None:
        if not np.isfinite(values).all():
            raise ValueError(
                "The penalised objective must be a finite number where a search begins, but in the precision of the "
                f"search it is {values[~np.isfinite(values)][0]} for {(~np.isfinite(values)).sum()} of {values.size} "
                "chains; divide the objective by a large number, or pass `init`."
            )

    def run(self, num_steps: int, *, resize: bool = True) -> None:
        """So many steps of all chains at the present temperatures; with `resize` the kernels' capacity follows them."""
        begin = time.perf_counter()
        run = self._with_gain(self._run.at_temperatures(self.betas))
        run = self._with_room(run) if resize else run
        for chunk in run.steps(1, thinning=num_steps, observe=(Best(),), chunk=1, resize=False):
            self._run, self.acceptance = chunk.run, chunk.acceptance
            compile_seconds = chunk.compile_seconds * len(self.betas)
            self.last_compile_seconds = compile_seconds or self.last_compile_seconds
            self.seconds += time.perf_counter() - begin - compile_seconds
        self._best = self._run.ensemble.observed[0]
        self.num_steps += num_steps

    @staticmethod
    def _with_gain(run: Run) -> Run:
        memory = run.ensemble.memory
        if not hasattr(memory, "crossings"):
            return run
        memory = memory._replace(crossings=jnp.minimum(memory.crossings, _MOST_CROSSINGS))
        return replace(run, ensemble=run.ensemble._replace(memory=memory))

    @staticmethod
    def _with_room(run: Run) -> Run:
        """Room for paths of twice the present length, and little more: cold paths are short, and room costs time."""
        capacity = run.ensemble.kernel.capacity
        if capacity is None:
            return run
        pairs = list(zip(run.kernels, run.targets, strict=True))
        tight = [kernel.prepare(target, tuning=False)[0].capacity for kernel, target in pairs]
        needed = max(_LEAST_CAPACITY, *(each or 1 for each in tight))  # a path cannot outgrow a capacity of one
        if needed <= capacity <= 4 * needed:
            return run
        capacity = min(2 * needed, run.targets[0].space.num_sites)
        return run.with_kernels([replaced(kernel, capacity=capacity) for kernel, _ in pairs])

    @property
    def values(self) -> Float[np.ndarray, "places chains"]:
        """Where the chains are now."""
        return np.asarray(self._run.ensemble.states.log_prob, np.float64)

    @property
    def best_values(self) -> Float[np.ndarray, "places chains"]:
        """The best that each chain has met."""
        return np.asarray(self._best.log_prob, np.float64)

    @property
    def best_states(self) -> Integer[np.ndarray, "places chains n"]:
        """The states of the best values."""
        x = np.asarray(self._best.x)
        return x.reshape(*x.shape[:2], -1)

    def exchange(self, key: PRNGKeyArray, turn: int) -> Float[np.ndarray, " pairs"]:
        """Metropolis swaps between neighbouring places, chain by chain; the mean probability of each pair."""
        ensemble = self._run.ensemble
        states, rates = _exchange(key, ensemble.states, jnp.asarray(self.betas, jnp.float32), turn)
        self._run = replace(self._run, ensemble=ensemble._replace(states=states))
        return np.asarray(rates).mean(axis=1)  # on the host: however many devices, in one order


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
    return moved, jnp.exp(jnp.minimum(log_ratio, 0))
