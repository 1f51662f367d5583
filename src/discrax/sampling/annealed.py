"""Annealed importance sampling: the normalising constant of a target (Neal, 2001).

Between a reference, p_0 (normalised), and the unnormalised target p_1 lie

    log p_b(x) = (1 - b) log p_0(x) + b log p_1(x),        0 = b_0 < b_1 < .. < b_T = 1.

A chain starts with a draw x of p_0. At temperature t it is weighed where it is, then moved by `steps` steps of a kernel
K that leaves p_{b_t} invariant:

    log w <- log w + (b_t - b_{t-1}) [log p_1(x) - log p_0(x)],        x ~ K_{b_t}(x, .)

The mean of w over chains is an unbiased estimate of Z = sum_x p_1(x); how well the kernels mix decides its variance.
Its logarithm is on average too low, by about half the squared error.

A kernel that is tuned while it runs does not leave p_b invariant. So a pilot with few chains at few temperatures finds
the scale that meets the kernel's acceptance rate there, and the run takes scales interpolated in b. From independent
sites a temperature costs `steps` evaluations and one more, since what a kernel has cached is of the temperature before.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Integer, Key, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.adaptation import AcceptanceRate
from discrax.adaptation.acceptance import scale_of, with_scale
from discrax.core import random
from discrax.core.checks import whole
from discrax.core.devices import compiled_on, find_devices, gather
from discrax.core.driver import chunk_length
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel, State, rated_knob
from discrax.core.target import Target, check_target
from discrax.samplers import build_kernel
from discrax.sampling.checks import check_run_memory
from discrax.sampling.normaliser import Normaliser, from_weights
from discrax.sampling.path import Path, default_sampler, path_to
from discrax.sampling.progress import ProgressBar
from discrax.sampling.run import Run, work_per_step

_KNOTS = np.linspace(0, 1, 21)[1:]  # where the pilot tunes
_PILOT_CHAINS, _PILOT_STEPS = 20, 50


def anneal_chains(
    key: PRNGKeyArray,
    target: Target,
    *,
    reference: ArrayLike | Target | None = None,
    sampler: str | Kernel | None = None,
    num_chains: int = 100,
    num_temperatures: int = 1000,
    steps: int = 1,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    progress: bool | None = None,
) -> Normaliser:
    """Anneals `num_chains` chains from draws of the reference, with `steps` steps at every temperature."""
    key = random.as_threefry(key)
    whole("num_chains", num_chains, least=2)
    whole("num_temperatures", num_temperatures, least=1)
    whole("steps", steps, least=1)
    check_run_memory(target.space, "moments", num_chains, num_temperatures, 0)
    found = find_devices(devices, target.space, num_chains, cuts_sites=False)
    path, kernel = begin_path(target, reference, sampler)
    for_pilot, for_starts, for_chains = split_key(key, 3)
    keys = split_key(for_chains, num_chains)
    log_weights, acceptance = np.zeros(num_chains), []
    chunk = chunk_length(num_temperatures, work_per_step(target, num_chains) * (steps + 1))
    bar = ProgressBar("annealing", num_temperatures, progress)
    with Interrupts() as interrupts:  # a part of the temperatures is no estimate: a signal ends it between chunks
        kernel, scales = _tune(for_pilot, path, kernel, min(num_chains, _PILOT_CHAINS))
        states = Run.at(keys, path.end, kernel, draws(for_starts, path, num_chains), found).ensemble.states
        check_gaps(np.asarray(gather(states.log_prob)))
        with bar:
            for done in range(0, num_temperatures, chunk):
                interrupts.raise_if_requested()
                count = min(chunk, num_temperatures - done)
                arguments = (keys, path, kernel, scales, states, jnp.asarray(done, jnp.int32))
                settings = {"count": count, "steps": int(steps), "num_temperatures": int(num_temperatures)}
                takes, gives = (0, None, None, None, 0, None), (0, 0, 1)
                program, _ = compiled_on(found, _anneal, arguments, settings, takes=takes, gives=gives)
                states, gained, accepted = program()
                # In double precision from chunk to chunk; what began at a forbidden state has no weight, ever.
                gained = np.asarray(gather(gained), np.float64)
                log_weights = np.where(np.isneginf(log_weights), -np.inf, log_weights + gained)
                acceptance.append(np.asarray(gather(accepted)).mean(axis=1))
                bar.advance(count, float(acceptance[-1].mean()))
        estimate = from_weights(log_weights, np.asarray(gather(states.x)), np.concatenate(acceptance))
        interrupts.raise_if_requested()
    return estimate


def begin_path(
    target: Target, reference: ArrayLike | Target | None, sampler: str | Kernel | None
) -> tuple[Path, Kernel]:
    """The path to a target and the kernel that is to move along it, checked before anything is drawn."""
    check_target(target)
    path = path_to(target, reference)
    return path, kernel_along(path.end, sampler)


def kernel_along(target: Target, sampler: str | Kernel | None) -> Kernel:
    """The kernel that moves along a path to this target: the one that is named, or one that suits it."""
    kernel = build_kernel(default_sampler(target) if sampler is None else sampler, target)
    if not kernel.is_exact:
        raise ValueError(f"{type(kernel).__name__} does not leave its target invariant, so weights would be wrong.")
    return kernel


# Compiled: op by op these are slow.
@partial(jax.jit, static_argnums=1)
def split_key(key: PRNGKeyArray, num: int) -> Key[Array, " num"]:
    """As many keys."""
    return random.split(key, num)


@eqx.filter_jit
def draws(key: PRNGKeyArray, path: Path, num: int) -> Integer[Array, "num *shape"]:
    """Of the reference."""
    return jax.vmap(path.draw)(random.split(key, num))


# --- The run ---------------------------------------------------------------------------------------------------------


def _tune(
    key: PRNGKeyArray, path: Path, kernel: Kernel, num_chains: int
) -> tuple[Kernel, Float[Array, " knots"] | None]:
    """The kernel with room for all its scales, and their logarithms at the temperatures of the pilot."""
    end = path.end
    if rated_knob(kernel, end) is None:
        return kernel.prepare(end, tuning=False)[0], None

    for_draws, for_knots = split_key(key, 2)
    x, scales = draws(for_draws, path, num_chains), []
    for b, of_knot in zip(_KNOTS, split_key(for_knots, len(_KNOTS)), strict=True):
        here = path.at(jnp.asarray(b, jnp.result_type(float)))
        run = Run.at(split_key(of_knot, num_chains), here, kernel, x).tune(AcceptanceRate(), _PILOT_STEPS)
        x, kernel = run.ensemble.states.x, run.ensemble.kernel
        scales.append(scale_of(end, kernel)[1])
    table = jnp.stack(scales)
    kernel, _ = with_scale(end, kernel, jnp.max(table))
    return kernel.prepare(end, tuning=False)[0], table


def _anneal(
    keys: Key[Array, " chains"],
    path: Path,
    kernel: Kernel,
    scales: Float[Array, " knots"] | None,
    states: State,
    done: Integer[Array, ""],
    *,
    count: int,
    steps: int,
    num_temperatures: int,
    **_: Any,
) -> tuple[State, Float[Array, " chains"], Float[Array, "temperatures chains"]]:
    """The next `count` temperatures: where the chains are then, what their log-weights gained, the acceptance."""
    real = jnp.result_type(float)

    def one_temperature(carry, t):
        states, log_weights = carry
        last, b = t.astype(real) / num_temperatures, (t + 1).astype(real) / num_temperatures
        here, tuned = path.at(b), kernel
        if scales is not None:
            here_scale = jnp.interp(b, jnp.asarray(_KNOTS, real), scales).astype(scales.dtype)
            tuned, _ = with_scale(here, kernel, here_scale)

        def one_chain(key: PRNGKeyArray, state: State) -> tuple[State, Array, Array]:
            gained = (b - last) * path.gap(state)
            step = lambda state, s: tuned.step(random.fold_in(key, t * steps + s), here, state)  # noqa: E731
            state, infos = jax.lax.scan(step, path.carry(tuned, here, state), jnp.arange(steps))
            return state, gained, jnp.mean(infos.accept_prob)

        states, gained, accepted = jax.vmap(one_chain)(keys, states)
        log_weights = jnp.where(jnp.isneginf(log_weights), -jnp.inf, log_weights + gained)
        return (states, log_weights), accepted

    nothing = jnp.zeros(keys.shape[0], real)
    (states, gained), accepted = jax.lax.scan(one_temperature, (states, nothing), done + jnp.arange(count))
    return states, gained, accepted


def check_gaps(values: Float[np.ndarray, "..."]) -> None:
    """A ValueError where log_prob at draws of the reference is of no use."""
    if np.isnan(values).any() or np.isposinf(values).any():
        raise ValueError("log_prob is NaN or +inf at a draw of the reference; it must be a number or -inf everywhere.")
    if np.isneginf(values).all(axis=-1).any():
        raise ValueError(
            f"log_prob is -inf at all {values.shape[-1]} draws of the reference, so nothing can be weighed; give a "
            "reference whose draws are allowed, or more chains or particles."
        )
