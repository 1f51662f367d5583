"""Chains of a sampler at several places, each place with a temperature (and an instance) of its own.

A place is an instance that is annealed, or a rung of a ladder of temperatures. All places are one compiled program,
and the best state of every chain is kept inside its loop. The kernel of each place is tuned all the time: what is found
is a state, not a law, so tuning need not end.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key, PRNGKeyArray

from discrax.core import random
from discrax.core.devices import Devices, compiled_on
from discrax.core.kernel import Kernel
from discrax.core.observers import Best, BestState
from discrax.core.target import Target, Tempered
from discrax.sampling.auto import default_adapter
from discrax.sampling.checks import chain_keys
from discrax.sampling.run import Run
from discrax.sampling.run_files import fill_leaves, named_leaves
from discrax.solving.turns import GIVES, MOST_TURNS, TAKES, TunedLadder, first_ladder, run_turns

_LEAST_CAPACITY = 8


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
        *keys, self._swap_keys = (chain_keys(each, x.shape[1])[1] for each in _split(key, len(betas) + 1))
        places = zip(keys, targets, betas, codes, strict=True)
        runs = [Run.at(each, Tempered(target, float(beta)), sampler, here) for each, target, beta, here in places]
        run = Run.stack(runs).on(devices)
        self.last_compile_seconds = run.compile_seconds
        self._check_start(np.asarray(run.ensemble.states.log_prob))
        adapter = default_adapter(run.targets[0], run.kernels[0])
        if adapter is not None:
            run = run.begin_tuning([adapter] * len(betas), 10**6)
        best = BestState(run.ensemble.states.x, run.ensemble.states.log_prob)
        self._run = self._with_room(replace(run, ensemble=run.ensemble._replace(observed=(best,))))
        self.num_steps = 0
        self._ladder: TunedLadder | None = None
        self.seconds = time.perf_counter() - begin - self.last_compile_seconds

    @staticmethod
    def _check_start(values: Float[np.ndarray, "places chains"]) -> None:
        if not np.isfinite(values).all():
            raise ValueError(
                "The penalised objective must be a finite number where a search begins, but in the precision of the "
                f"search it is {values[~np.isfinite(values)][0]} for {(~np.isfinite(values)).sum()} of {values.size} "
                "chains; divide the objective by a large number, or pass `init`."
            )

    def anneal(self, betas: Float[np.ndarray, "turns places"], num_steps: int, *, resize: bool) -> None:
        """Turns of so many steps of all chains, each at its temperatures; with `resize` the kernels' capacity follows
        them.
        """
        padded = np.zeros((MOST_TURNS, betas.shape[1]), np.float32)
        padded[: len(betas)] = betas
        self._run_turns(jnp.asarray(padded), len(betas), num_steps, resize)
        self.betas = betas[-1]

    def temper(self, num_turns: int, num_steps: int, *, resize: bool) -> None:
        """As many turns of so many steps, after each of which neighbouring places exchange states."""
        self._ladder = self._run_turns(self._ladder or first_ladder(self.betas), num_turns, num_steps, resize)
        assert self._ladder is not None
        self.betas = np.asarray(self._ladder.betas, np.float64)

    def _run_turns(self, plan: Any, num_turns: int, num_steps: int, resize: bool) -> TunedLadder | None:
        begin, run = time.perf_counter(), self._run.at_temperatures(self.betas)
        run = self._with_room(run) if resize else run
        arguments = (run.keys, self._swap_keys, run.target, run.ensemble, run.adapter, plan, jnp.int32(num_turns))
        settings = {"num_steps": num_steps, "observers": (Best(),), "axes": run.axes}
        program, compile_seconds = compiled_on(run.devices, run_turns, arguments, settings, takes=TAKES, gives=GIVES)
        ensemble, ladder = jax.block_until_ready(program())
        self._run = replace(run, ensemble=ensemble)
        self.last_compile_seconds = compile_seconds or self.last_compile_seconds
        self.seconds += time.perf_counter() - begin - compile_seconds
        self.num_steps += num_turns * num_steps
        return ladder

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
        return run.with_kernels([kernel.with_capacity(capacity) for kernel, _ in pairs])

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that the next turns depend on."""
        about = {"num_steps": self.num_steps, "betas": self.betas.tolist()}
        about["capacity"] = self._run.ensemble.kernel.capacity
        return about, named_leaves((self._run.ensemble, self._ladder))

    def restore(self, about: dict[str, Any], arrays: dict[str, np.ndarray], file: Path) -> None:
        """Goes on from the state of other places, which began as these did."""
        run = self._run
        if about["capacity"] is not None:
            run = run.with_kernels([kernel.with_capacity(about["capacity"]) for kernel in run.kernels])
        begun = (run.ensemble, first_ladder(self.betas))
        ensemble, self._ladder = fill_leaves(begun, arrays, file)
        self._run = replace(run, ensemble=ensemble)
        self.num_steps, self.betas = about["num_steps"], np.asarray(about["betas"], np.float64)

    @property
    def values(self) -> Float[np.ndarray, "places chains"]:
        """Where the chains are now."""
        return np.asarray(self._run.ensemble.states.log_prob, np.float64)

    @property
    def best_values(self) -> Float[np.ndarray, "places chains"]:
        """The best that each chain has met."""
        return np.asarray(self._run.ensemble.observed[0].log_prob, np.float64)

    @property
    def best_states(self) -> Integer[np.ndarray, "places chains n"]:
        """The states of the best values."""
        x = np.asarray(self._run.ensemble.observed[0].x)
        return x.reshape(*x.shape[:2], -1)


@partial(jax.jit, static_argnums=1)
def _split(key: PRNGKeyArray, count: int) -> Key[Array, " count"]:
    return random.split(key, count)
