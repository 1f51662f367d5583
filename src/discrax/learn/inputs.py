"""What training is given: checked, and made ready for the device."""

import math
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.adaptation import AcceptanceRate
from discrax.core import checks
from discrax.core.driver import Adapter
from discrax.core.extras import import_extra
from discrax.core.kernel import Kernel, rated_knob
from discrax.core.memory import check_host_memory
from discrax.core.target import Target
from discrax.data import Images
from discrax.learn.checkpoints import TrainingFolder
from discrax.learn.frequencies import frequencies, integer_rows, smoothed
from discrax.learn.updates import scan_of, trained_spec
from discrax.samplers import build_kernel
from discrax.sampling.checks import check_gradient


def check_counts(**counts: int) -> None:
    """Counts are positive whole numbers."""
    for name, count in counts.items():  # updates and steps are counted in 32 bits
        checks.whole(name, count, least=1, most=2**62 if name == "buffer_size" else 2**31 - 1)


def rows_of(model: Target, data: ArrayLike | Images) -> tuple[np.ndarray, bool]:
    """The data as an array to be kept on the device, and whether it holds greys."""
    space = model.space
    if isinstance(data, Images):
        rows, is_dynamic = np.asarray(data.train), data.is_dynamic
        if rows.shape[1:] != space.shape and math.prod(rows.shape[1:]) == space.num_sites:
            rows = rows.reshape(len(rows), *space.shape)
    else:
        rows, is_dynamic = integer_rows("data", data), False
    if rows.ndim != len(space.shape) + 1 or rows.shape[1:] != space.shape:
        raise ValueError(f"data must have shape (rows, {', '.join(map(str, space.shape))}), but has {rows.shape}.")
    if not len(rows):
        raise ValueError("data is empty; give at least one row.")
    if is_dynamic and not space.has_two_levels:
        raise ValueError("Images that are binarised anew need a model of two levels; load them with `levels=`.")
    if not is_dynamic:
        space.check(rows)
        rows = rows.astype(space.dtype)
    return rows, is_dynamic


def check_optimiser(optimiser: Any) -> None:
    """An optax transformation, or a sentence."""
    if not callable(getattr(optimiser, "init", None)) or not callable(getattr(optimiser, "update", None)):
        came = checks.describe(optimiser)
        raise TypeError(f"optimiser must be an optax transformation, such as optax.adam(1e-3), but got {came}.")


def check_out(out: Any, resume: bool) -> None:
    """A folder, or None where nothing is to be resumed."""
    if resume and out is None:
        raise ValueError("resume=True needs `out`, the folder of the run that goes on.")
    if not isinstance(out, str | os.PathLike | TrainingFolder | None):
        raise TypeError(f"out must be a folder, but got {checks.describe(out)}.")


def check_functions(model: Target, trains: Any, penalty: Any, refresh: Any) -> None:
    """What users' functions return, before they are compiled into something larger."""
    for name, function in {"trains": trains, "penalty": penalty, "refresh": refresh}.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function, but got {checks.describe(function)}.")
    try:
        spec = trained_spec(model, trains)
    except Exception as error:
        raise ValueError(
            f"trains(model) must return a part of the model, such as model.couplings, but "
            f"raises {checks.in_words(error)}"
        ) from error
    if not any(jax.tree.leaves(spec)):
        raise ValueError(f"There is nothing to train: no array of {type(model).__name__} that is trained holds floats.")
    if penalty is not None:
        try:
            value = eqx.filter_eval_shape(penalty, model)
        except Exception as error:
            raise ValueError(f"penalty(model) cannot be traced: {type(error).__name__}: {error}") from error
        if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(f"penalty(model) must return one float, but returned {value}.")


def first_chains(
    key: PRNGKeyArray,
    model: Target,
    rows: np.ndarray,
    is_dynamic: bool,
    init: ArrayLike | None,
    buffer_size: int,
    batch_size: int,
) -> Integer[Array, "chains *shape"]:
    """Where the chains of the buffer begin: as given, else at independent sites with the frequencies of the data, but
    for what the space holds.
    """
    space, size = model.space, -(-buffer_size // batch_size) * batch_size
    needed = size * space.num_sites * 8 * (1 if space.has_two_levels else space.num_levels)
    if init is None:
        check_host_memory("The chains", f"buffer_size = {buffer_size:,} chains of {space.num_sites:,} sites", needed)
    else:
        given = np.asarray(init)
        space.check(given)
        if given.ndim != len(space.shape) + 1 or len(given) % batch_size:
            raise ValueError(
                f"init must hold a multiple of {batch_size} states (batch_size), but has shape {given.shape}."
            )
        return jnp.asarray(given, space.dtype)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    p = smoothed(rows.mean(axis=0) / 255) if is_dynamic else frequencies(rows, space.num_levels)
    if space.has_two_levels:
        codes = (rng.random((size, *space.shape)) < p).astype(space.dtype)
    else:
        thresholds = np.cumsum(p, axis=-1)[..., :-1]
        codes = (rng.random((size, *space.shape, 1)) > thresholds[None]).sum(axis=-1)
        codes = codes if space.counts is None else np.minimum(codes, space.counts - 1)
    codes = space.hold(codes)
    if space.totals is not None:
        codes = np.array([space.mend(state, rng.random(space.num_sites)) for state in codes])
    return jnp.asarray(codes, space.dtype)


def first_scan(kernel: Kernel, model: Target, buffer: Integer[Array, "chains *shape"]) -> Any:
    """Before any site had its turn."""
    states = eqx.filter_eval_shape(jax.vmap(kernel.init, in_axes=(None, 0)), model, buffer)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), scan_of(states.cache))


def adapter_of(adaptation: str | Adapter | None, kernel: Kernel, model: Target, num_steps: int) -> Adapter | None:
    """The rule by which the sampler follows the model, laid out for so many steps."""
    if adaptation is None:
        return None
    if isinstance(adaptation, str) and adaptation == "auto":
        if rated_knob(kernel, model) is None:
            return None
        adaptation = AcceptanceRate(rule="steady")
    if not isinstance(adaptation, Adapter):
        error = ValueError if isinstance(adaptation, str) else TypeError
        raise error(
            f"adaptation is 'auto', None or a rule of discrax.adaptation, but got {checks.describe(adaptation)}."
        )
    return adaptation.plan(model, kernel, num_steps)


def kernel_of(sampler: str | Kernel, model: Target, refresh: Callable[[Any, Any], Any] | None) -> Kernel:
    """The kernel to train with, checked against the model."""
    kernel = build_kernel(sampler, model)
    check_gradient(model, kernel)
    if refresh is not None:
        kernel = refresh(kernel, model)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"refresh(kernel, model) must return a kernel, but returned {checks.describe(kernel)}.")
    if not kernel.is_prepared:
        raise ValueError(
            f"{type(kernel).__name__} wants a matrix of second derivatives, which changes in training: pass one to the "
            "sampler, such as the covariance of the data, or `refresh`."
        )
    return kernel


@lru_cache(maxsize=64)  # the same object for the same numbers, so that programs are shared
def adam(learning_rate: float, num_warmup: int = 0) -> Any:
    """The default optimiser; its rate grows linearly from 0 over the first `num_warmup` updates, as in the papers."""
    rate = checks.number("learning_rate", learning_rate, above=0)
    optax = import_extra("optax", "Training needs", "learn")
    return optax.adam(optax.schedules.linear_schedule(0.0, rate, num_warmup) if num_warmup else rate)
