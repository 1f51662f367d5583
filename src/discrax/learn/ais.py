"""Annealed importance sampling: the normalising constant of a target (Neal, 2001).

Between independent sites, p_0 (normalised), and the unnormalised target p_1 lie

    log p_b(x) = (1 - b) log p_0(x) + b log p_1(x),        0 = b_0 < b_1 < .. < b_T = 1.

A chain starts with a draw x of p_0. At temperature t it is weighed where it is, then moved by `steps` steps of a kernel
K that leaves p_{b_t} invariant:

    log w <- log w + (b_t - b_{t-1}) [log p_1(x) - log p_0(x)],        x ~ K_{b_t}(x, .)

The mean of w over chains is an unbiased estimate of Z = sum_x p_1(x); how well the kernels mix decides its variance.
Its logarithm is on average too low, by about half the squared error.

A kernel that is tuned while it runs does not leave p_b invariant. So a pilot with few chains at few temperatures finds
the scale that meets the kernel's acceptance rate there, and the run takes scales interpolated in b. A temperature costs
`steps` evaluations and one more, since what a kernel has cached is of the temperature before.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

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
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel, State, rated_knob, reevaluate, replaced
from discrax.core.programs import compiled, reads_user_code
from discrax.core.target import Target, check_target
from discrax.learn.bridge import AnyBridge, bridge_to
from discrax.samplers import build_kernel
from discrax.sampling.checks import check_run_memory
from discrax.sampling.progress import ProgressBar
from discrax.sampling.run import Run, work_per_step

_KNOTS = np.linspace(0, 1, 21)[1:]  # where the pilot tunes
_PILOT_CHAINS, _PILOT_STEPS = 20, 50
_RESAMPLES = 2000
_FEW = 10  # effective weights
_ROWS_AT_ONCE = 256


class AIS(NamedTuple):
    """An estimate of log Z, with what it rests on."""

    log_Z: float  # noqa: N815
    error: float  # the standard error of log_Z, by the delta method
    interval: tuple[float, float]  # of 95 %, by the bootstrap
    num_effective: float  # (sum w)^2 / sum w^2: how many equal weights would be as good
    log_weights: Float[np.ndarray, " chains"]
    states: Integer[np.ndarray, "chains *shape"]  # where the chains ended: near draws of the target
    acceptance: Float[np.ndarray, " temperatures"]

    @property
    def warning(self) -> str | None:
        """A sentence where the weights are too uneven for the error to be believed."""
        if self.num_effective >= _FEW:
            return None
        return (
            f"Only {self.num_effective:.1f} of {len(self.log_weights)} weights count: log Z is probably larger and the "
            "error underrated; use more temperatures, steps or chains, or a base nearer to the target."
        )

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"log Z = {self.log_Z:.3f} +- {self.error:.3f} (95 %: {low:.3f} to {high:.3f}; {self.num_effective:.1f} of "
            f"{len(self.log_weights)} weights effective; mean acceptance {self.acceptance.mean():.2f})"
        )
        return text if self.warning is None else f"{text}\n{self.warning}"

    def log_likelihood(self, target: Target, rows: ArrayLike) -> tuple[float, float]:
        """The mean of log p(x) over rows of codes, in nats, and its standard error: that of the rows and of log Z."""
        rows = np.asarray(rows)
        target.space.check(rows)
        if rows.ndim != len(target.space.shape) + 1 or len(rows) < 2:
            raise ValueError(
                f"rows must be two or more states, (rows, {', '.join(map(str, target.space.shape))}), "
                f"but have shape {rows.shape}."
            )
        values = log_probs_of(target, rows)
        of_rows = values.std(ddof=1) / math.sqrt(len(values))
        return float(values.mean()) - self.log_Z, math.hypot(of_rows, self.error)


@reads_user_code()
@listening()
def ais(
    key: PRNGKeyArray,
    target: Target,
    *,
    base: ArrayLike | None = None,
    num_chains: int = 100,
    num_temperatures: int = 1000,
    sampler: str | Kernel = "pas",
    steps: int = 1,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    progress: bool | None = None,
) -> AIS:
    """Estimates log Z of a target by annealing `num_chains` chains from independent sites.

    - `base`: the probabilities of the independent sites, of 1 (or +1) for two levels, (*shape), else (*shape, levels);
      uniform by default. The nearer to the target, the better: `frequencies(rows)` makes one from data.
    - `sampler`: a registry name or a kernel. One that has a scale for an acceptance rate is tuned by the pilot; any
      other is used as it is.
    - `steps`: of the sampler at every temperature.
    - `devices`: over which the chains are spread, as in `discrax.sample`; the pilot runs on one.
    """
    key = random.as_threefry(key)
    check_target(target)
    whole("num_chains", num_chains, least=2)
    whole("num_temperatures", num_temperatures, least=1)
    whole("steps", steps, least=1)
    check_run_memory(target.space, "moments", num_chains, num_temperatures, 0)
    found = find_devices(devices, target.space, num_chains, cuts_sites=False)
    bridge = bridge_to(target, base)
    kernel = build_kernel(sampler, bridge)  # checked before anything is drawn
    if not kernel.is_exact:
        raise ValueError(f"{type(kernel).__name__} does not leave its target invariant, so weights would be wrong.")
    for_pilot, for_starts, for_chains = split_key(key, 3)
    keys = split_key(for_chains, num_chains)
    log_weights, acceptance = np.zeros(num_chains), []
    chunk = chunk_length(num_temperatures, work_per_step(bridge, num_chains) * (steps + 1))
    bar = ProgressBar("annealing", num_temperatures, progress)
    with Interrupts() as interrupts:  # a part of the temperatures is no estimate: a signal ends it between chunks
        kernel, scales = _tune(for_pilot, bridge, kernel, min(num_chains, _PILOT_CHAINS))
        run = Run.at(keys, bridge, kernel, _draws(for_starts, bridge, num_chains), found)
        bridge, states = run.target, run.ensemble.states
        _check_start(np.asarray(gather(states.log_prob)))
        with bar:
            for done in range(0, num_temperatures, chunk):
                interrupts.raise_if_requested()
                count = min(chunk, num_temperatures - done)
                arguments = (keys, bridge, kernel, scales, states, jnp.asarray(done, jnp.int32))
                settings = {"count": count, "steps": int(steps), "num_temperatures": int(num_temperatures)}
                takes, gives = (0, None, None, None, 0, None), (0, 0, 1)
                program, _ = compiled_on(found, _anneal, arguments, settings, takes=takes, gives=gives)
                states, gained, accepted = program()
                log_weights += np.asarray(gather(gained), np.float64)  # in double precision from chunk to chunk
                acceptance.append(np.asarray(gather(accepted)).mean(axis=1))
                bar.advance(count, float(acceptance[-1].mean()))
        estimate = _estimate(log_weights, np.asarray(gather(states.x)), np.concatenate(acceptance))
        interrupts.raise_if_requested()
    return estimate


# Compiled: op by op these are slow.
@partial(jax.jit, static_argnums=1)
def split_key(key: PRNGKeyArray, num: int) -> Key[Array, " num"]:
    return random.split(key, num)


@eqx.filter_jit
def _draws(key: PRNGKeyArray, bridge: AnyBridge, num: int) -> Integer[Array, "num *shape"]:
    return jax.vmap(bridge.draw)(random.split(key, num))


# --- The run ---------------------------------------------------------------------------------------------------------


def _tune(
    key: PRNGKeyArray, bridge: AnyBridge, kernel: Kernel, num_chains: int
) -> tuple[Kernel, Float[Array, " knots"] | None]:
    """The kernel with room for all its scales, and their logarithms at the temperatures of the pilot."""
    if rated_knob(kernel, bridge) is None:
        return kernel.prepare(bridge, tuning=False)[0], None

    for_draws, for_knots = split_key(key, 2)
    x, scales = _draws(for_draws, bridge, num_chains), []
    for b, of_knot in zip(_KNOTS, split_key(for_knots, len(_KNOTS)), strict=True):
        here = replaced(bridge, beta=jnp.asarray(b, bridge.beta.dtype))
        run = Run.at(split_key(of_knot, num_chains), here, kernel, x).tune(AcceptanceRate(), _PILOT_STEPS)
        x, kernel = run.ensemble.states.x, run.ensemble.kernel
        scales.append(scale_of(bridge, kernel)[1])
    table = jnp.stack(scales)
    kernel, _ = with_scale(bridge, kernel, jnp.max(table))
    return kernel.prepare(bridge, tuning=False)[0], table


def _anneal(
    keys: Key[Array, " chains"],
    bridge: AnyBridge,
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
    real = bridge.beta.dtype

    def one_temperature(carry, t):
        states, log_weights = carry
        last, b = t.astype(real) / num_temperatures, (t + 1).astype(real) / num_temperatures
        here, tuned = replaced(bridge, beta=b), kernel
        if scales is not None:
            here_scale = jnp.interp(b, jnp.asarray(_KNOTS, real), scales).astype(scales.dtype)
            tuned, _ = with_scale(here, kernel, here_scale)

        def one_chain(key: PRNGKeyArray, state: State) -> tuple[State, Array, Array]:
            gained = (b - last) * bridge.gap(bridge.space.embed(state.x))
            step = lambda state, s: tuned.step(random.fold_in(key, t * steps + s), here, state)  # noqa: E731
            state, infos = jax.lax.scan(step, reevaluate(tuned, here, state), jnp.arange(steps))
            return state, gained, jnp.mean(infos.accept_prob)

        states, gained, accepted = jax.vmap(one_chain)(keys, states)
        return (states, log_weights + gained), accepted

    nothing = jnp.zeros(keys.shape[0], real)
    (states, gained), accepted = jax.lax.scan(one_temperature, (states, nothing), done + jnp.arange(count))
    return states, gained, accepted


def _check_start(values: Float[np.ndarray, " chains"]) -> None:
    if np.isnan(values).any() or np.isposinf(values).any():
        raise ValueError("log_prob is NaN or +inf at a draw of the base; it must be a number or -inf everywhere.")
    if np.isneginf(values).all():
        raise ValueError(
            f"log_prob is -inf at all {len(values)} draws of the base, so nothing can be weighed; give a base whose "
            "draws are allowed, or more chains."
        )


def _estimate(
    log_weights: Float[np.ndarray, " chains"],
    states: Integer[np.ndarray, "chains *shape"],
    acceptance: Float[np.ndarray, " temperatures"],
) -> AIS:
    if np.isnan(log_weights).any() or not np.isfinite(log_weights.max()):
        raise ValueError("The weights are NaN, infinite or all 0: log_prob is not a finite number where chains went.")
    largest = log_weights.max()
    weights = np.exp(log_weights - largest)
    n, mean = len(weights), weights.mean()
    picks = np.random.default_rng(0).integers(0, n, (_RESAMPLES, n))
    resampled = np.log(weights[picks].mean(axis=1).clip(np.finfo(float).tiny)) + largest
    low, high = np.quantile(resampled, [0.025, 0.975])
    log_Z, error = float(np.log(mean) + largest), float(weights.std(ddof=1) / mean / math.sqrt(n))
    num_effective = float(weights.sum() ** 2 / (weights**2).sum())
    return AIS(log_Z, error, (float(low), float(high)), num_effective, log_weights, states, acceptance)


def log_probs_of(target: Target, rows: Integer[np.ndarray, "rows *shape"]) -> Float[np.ndarray, " rows"]:
    """The unnormalised log-probabilities of rows of codes."""
    arguments = (target, jnp.asarray(rows, target.space.dtype))
    program, _ = compiled(_log_probs, arguments, {})
    return np.asarray(program(arguments), np.float64)


def _log_probs(target: Target, rows: Integer[Array, "rows *shape"]) -> Float[Array, " rows"]:
    return jax.lax.map(lambda x: target.log_prob(target.space.embed(x)), rows, batch_size=_ROWS_AT_ONCE)
