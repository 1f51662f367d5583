"""Learning an energy model by (persistent) contrastive divergence.

With log pi(x) = f(x; theta) - log Z(theta), the gradient of the mean log-likelihood of the data is

    E_data[ grad f(x) ] - E_model[ grad f(x) ],

and the second mean is estimated from chains that are moved by K steps of a sampler at every update:

    take batch_size rows of the data, in an order that is shuffled anew when all have had their turn
    take batch_size states of the buffer, in turn (or, for plain contrastive divergence, the batch of data itself)
    K steps of the sampler for them at the present theta, its scale following the acceptance rate; write them back
    theta <- optimiser( grad [ mean f(data) - mean f(chains) - penalty(theta) ] )
    average <- d average + (1 - d) theta

(Hinton, 2002; Tieleman, 2008; Du and Mordatch, 2019.) Update t uses the random numbers of `fold_in(key, t)` and the
state before it, and nothing else: a run that was stopped and resumed is the run that was not. Samplers that redraw the
sites in turn go on in the next update with the site after the last: else K steps would redraw the first K for ever.
"""

import math
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.adaptation import AcceptanceRate
from discrax.core import checks, random
from discrax.core.driver import Adapter, Ensemble, Recorder, run_chunk
from discrax.core.files import UnusableFile
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel, Sized, Tunable
from discrax.core.memory import check_host_memory
from discrax.core.programs import compiled, reads_user_code
from discrax.core.target import Target, check_target
from discrax.curvature.hessian import Preconditioned
from discrax.data import Images
from discrax.data.images import binarise
from discrax.learn.checkpoints import Run
from discrax.learn.frequencies import frequencies, integer_rows, smoothed
from discrax.learn.models import trained_parts
from discrax.samplers import build_kernel
from discrax.sampling.checks import check_gradient
from discrax.sampling.progress import ProgressBar, wants_progress

_LEAST_GAP = 100.0
CURVES = ("gap", "acceptance", "jump", "gradient_norm")  # of every update


class Progress(NamedTuple):
    """All that one update hands to the next; what a checkpoint holds."""

    update: Int[Array, ""]
    model: Target
    average: Any  # of the trained parameters
    optimiser: Any  # its memory
    order: Int[Array, " rows"]  # in which the data has its turn
    buffer: Integer[Array, "chains *shape"]
    kernel: Kernel
    memory: Any  # the adapter's
    scan: Any  # which site has its turn in each chain, for samplers that redraw them in turn


class Trained(NamedTuple):
    """What training made."""

    model: Target
    ema: Target  # the model with averaged parameters: usually the better one
    kernel: Kernel
    buffer: Integer[np.ndarray, "chains *shape"]  # where the chains are
    curves: dict[str, np.ndarray]  # update, seconds, and the means of CURVES since the last report
    num_updates: int
    stopped: str | None  # why it ended early, in a sentence
    is_interrupted: bool = False  # by Ctrl-C or SIGTERM

    @property
    def is_complete(self) -> bool:
        return self.stopped is None


class Settings(NamedTuple):
    """What an update does, apart from its arrays; equal settings share one program."""

    batch_size: int
    num_steps: int
    is_persistent: bool
    is_dynamic: bool
    optimiser: Any
    ema: float
    l1: float
    weight_decay: float
    trains: Callable[[Any], Any] | None
    penalty: Callable[[Any], Array] | None
    refresh: Callable[[Any, Any], Any] | None


@reads_user_code()
def pcd(
    key: PRNGKeyArray,
    model: Target,
    data: ArrayLike | Images,
    *,
    sampler: str | Kernel = "pas",
    num_steps: int = 20,
    num_updates: int = 1000,
    batch_size: int = 100,
    buffer_size: int = 5000,
    persistent: bool = True,
    optimiser: Any = None,
    learning_rate: float = 1e-3,
    l1: float = 0.0,
    weight_decay: float = 0.0,
    ema: float = 0.999,
    adaptation: str | Adapter | None = "auto",
    trains: Callable[[Any], Any] | None = None,
    penalty: Callable[[Any], Array] | None = None,
    refresh: Callable[[Any, Any], Any] | None = None,
    starts: ArrayLike | None = None,
    largest_gap: float | None = None,
    every: int = 100,
    out: str | Path | Run | None = None,
    save_every: int = 1000,
    resume: bool = False,
    progress: bool | None = None,
) -> Trained:
    """Trains a model on data by contrastive divergence with persistent chains.

    - `data`: integer codes of shape (rows, *sites), or `discrax.data.Images`; dynamic ones are binarised anew in every
      batch.
    - `sampler`: any name of the registry, or a kernel; it makes `num_steps` steps per update.
    - `buffer_size`: chains, of which `batch_size` move in an update (rounded up to a multiple of it). With too many
      each moves too seldom to follow a network that learns fast, and training diverges. They start from
      `starts`, by default at independent sites with the frequencies of the data. With `persistent=False` there is no
      buffer: chains start from the batch (contrastive divergence).
    - `optimiser`: an optax transformation; by default Adam with `learning_rate`.
    - `l1` and `weight_decay` weigh the sums of |theta| and theta^2 / 2 of all trained arrays with two axes or more;
      `penalty(model)` is any other function to be kept small.
    - `ema`: the decay d of the running mean of the parameters, shorter in the beginning.
    - `adaptation`: "auto" lets the sampler's scale follow its best acceptance rate; None leaves it; or a rule of
      `discrax.adaptation`.
    - `trains(model)`: the part that is trained, for example `lambda model: model.couplings`; by default all of it.
    - `refresh(kernel, model)`: the kernel for new parameters, for samplers that hold something of the model.
    - `every`: updates between two reports, and the length of the compiled loop. `out`: a folder for checkpoints,
      curves and pictures, written every `save_every` updates; `resume=True` goes on from the last checkpoint there and
      gives what an undisturbed run would have given, bit for bit. One process at a time writes there.

    Training that diverges ends with a sentence in `.stopped` and the last good parameters: when a number is none, or
    when mean log-probabilities of data and chains are more than `largest_gap` apart (by default the logarithm of the
    number of states, at least 100). So does Ctrl-C, SIGTERM, and a disk that is full: what was learnt is returned, and
    the checkpoints that are there stay good.
    """
    key = random.as_threefry(key)
    _check(num_steps=num_steps, num_updates=num_updates, batch_size=batch_size, buffer_size=buffer_size, every=every,
           save_every=save_every)  # fmt: skip
    ema = checks.number("ema, a decay,", ema, least=0, below=1)
    l1, weight_decay = checks.number("l1", l1, least=0), checks.number("weight_decay", weight_decay, least=0)
    optimiser = _adam(checks.number("learning_rate", learning_rate, above=0)) if optimiser is None else optimiser
    if not callable(getattr(optimiser, "init", None)) or not callable(getattr(optimiser, "update", None)):
        came = checks.describe(optimiser)
        raise TypeError(f"optimiser must be an optax transformation, such as optax.adam(1e-3), but got {came}.")
    for name, function in {"trains": trains, "penalty": penalty, "refresh": refresh}.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function, but got {checks.describe(function)}.")
    if largest_gap is not None and not (isinstance(largest_gap, int | float | np.number) and largest_gap > 0):
        raise ValueError(f"largest_gap must be a number above 0, but got {checks.describe(largest_gap)}.")
    if resume and out is None:
        raise ValueError("resume=True needs `out`, the folder of the run that goes on.")
    if not isinstance(out, str | os.PathLike | Run | None):
        raise TypeError(f"out must be a folder, but got {checks.describe(out)}.")
    check_target(model)
    _check_functions(model, trains, penalty)
    rows, is_dynamic = _rows(model, data)
    batch_size = min(batch_size, len(rows))
    kernel = build_kernel(sampler, model)
    check_gradient(model, kernel)
    if refresh is not None:
        kernel = refresh(kernel, model)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"refresh(kernel, model) must return a kernel, but returned {checks.describe(kernel)}.")
    if isinstance(kernel, Preconditioned) and not kernel.is_prepared:
        raise ValueError(
            f"{type(kernel).__name__} wants a matrix of second derivatives, which changes in training: pass one to the "
            "sampler, such as the covariance of the data, or `refresh`."
        )
    adapter = _adapter(adaptation, kernel, num_steps * num_updates)
    settings = Settings(
        batch_size, num_steps, persistent, is_dynamic, optimiser, ema, l1, weight_decay, trains, penalty, refresh,
    )  # fmt: skip

    for_buffer, for_updates = random.split(key, 2)
    buffer = _first_chains(for_buffer, model, rows, is_dynamic, starts, buffer_size, batch_size)
    parameters, _ = eqx.partition(model, _spec(model, trains))
    state = Progress(
        jnp.zeros((), jnp.int32),
        model,
        parameters,
        settings.optimiser.init(parameters),
        jnp.arange(len(rows), dtype=jnp.int32),
        buffer,
        _sized(kernel, model),
        None if adapter is None else adapter.init(model, kernel),
        _first_scan(_sized(kernel, model), model, buffer),
    )
    entropy = model.space.num_sites * math.log(model.space.num_levels)
    most = max(_LEAST_GAP, entropy) if largest_gap is None else largest_gap
    plan = Plan(num_updates, every, save_every, most, progress)
    opened = nullcontext(out) if out is None or isinstance(out, Run) else Run(Path(out), key, resume)
    with Interrupts() as interrupts, opened as run:
        state = run.restored(state) if run is not None and resume else state
        return _train(for_updates, state, jnp.asarray(rows), adapter, settings, plan, run, interrupts)


class Plan(NamedTuple):
    """How long to train, and how often to tell."""

    num_updates: int
    every: int
    save_every: int
    largest_gap: float
    progress: bool | None


def _train(
    key,
    state: Progress,
    rows: Array,
    adapter,
    settings: Settings,
    plan: Plan,
    run: Run | None,
    interrupts: Interrupts,
) -> Trained:
    num_updates, every = plan.num_updates, plan.every
    curves = [] if run is None else run.curves()
    stopped, begin = None, time.perf_counter() - (curves[-1]["seconds"] if curves else 0.0)
    shown = wants_progress(plan.progress)
    try:
        with ProgressBar("training", num_updates, shown, done=int(state.update), numbers="compiling") as bar:
            while int(state.update) < num_updates and not interrupts.requested:
                length = min(every, num_updates - int(state.update))
                state = state._replace(kernel=_sized(state.kernel, state.model))
                arguments = (key, state, rows, adapter, jnp.asarray(length, jnp.int32))
                try:
                    program, _ = compiled(run_updates, arguments, {"most": every, "settings": settings})
                    after, recorded = jax.block_until_ready(program(arguments))
                except KeyboardInterrupt:  # the second signal
                    interrupts.requested = True
                    break
                recorded = {name: np.asarray(values)[:length] for name, values in recorded.items()}
                stopped = _divergence(recorded, int(state.update), plan.largest_gap)
                if stopped is not None:
                    break
                state, seconds = after, time.perf_counter() - begin
                curves.append(
                    {"update": int(state.update), "seconds": seconds}
                    | {name: float(values.mean()) for name, values in recorded.items()}
                )
                bar.show(length, _numbers(curves[-1]))
                if run is not None and _passes(int(state.update), length, plan.save_every):
                    run.save(state, curves)
        if interrupts.requested:
            stopped = f"Training was interrupted after {int(state.update):,} updates."
        if run is not None:
            run.save(state, curves)
            run.finish()
            if stopped is not None:
                stopped += f" The last good parameters are in {run.folder}."
    except UnusableFile as error:
        assert run is not None
        kept = "No checkpoint is" if run.last_saved is None else f"The checkpoint of {run.last_saved:,} updates is"
        stopped = f"Training was ended after {int(state.update):,} updates, because {error} {kept} in {run.folder}."
    spec = _spec(state.model, settings.trains)
    return Trained(
        state.model,
        eqx.combine(state.average, eqx.filter(state.model, spec, inverse=True)),
        state.kernel,
        np.asarray(state.buffer),
        {name: np.array([row[name] for row in curves]) for name in ("update", "seconds", *CURVES)},
        int(state.update),
        stopped,
        interrupts.requested,
    )


def _numbers(row: dict[str, float]) -> str:
    return (
        f"gap {row['gap']:.3g}  acceptance {row['acceptance']:.2f}  jump {row['jump']:.3g}  "
        f"gradient {row['gradient_norm']:.3g}"
    )


def run_updates(
    key: PRNGKeyArray,
    state: Progress,
    rows: Array,
    adapter: Adapter | None,
    length: Int[Array, ""],
    *,
    most: int,
    settings: Settings,
) -> tuple[Progress, dict[str, Float[Array, " most"]]]:
    """`length` updates, at most `most`, and what was recorded of each."""
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(i, carry):
        arrays, recorded = carry
        state, now = one_update(key, eqx.combine(arrays, static), rows, adapter, settings)
        return eqx.filter(state, eqx.is_array), {name: recorded[name].at[i].set(now[name]) for name in CURVES}

    nothing = {name: jnp.zeros(most, jnp.float32) for name in CURVES}
    arrays, recorded = jax.lax.fori_loop(0, length, body, (arrays, nothing))
    return eqx.combine(arrays, static), recorded


def one_update(
    key: PRNGKeyArray, state: Progress, rows: Array, adapter: Adapter | None, settings: Settings
) -> tuple[Progress, dict[str, Float[Array, ""]]]:
    model, batch_size = state.model, settings.batch_size
    for_rows, for_pixels, for_chains = random.split(random.fold_in(key, state.update), 3)
    turn = jnp.remainder(state.update, rows.shape[0] // batch_size)
    # A pass over the data in random order adds less noise to the parameters than independent batches do.
    order = jax.lax.cond(turn == 0, lambda: _shuffled(for_rows, rows.shape[0]), lambda: state.order)
    batch = rows[jax.lax.dynamic_slice_in_dim(order, turn * batch_size, batch_size)]
    if settings.is_dynamic:
        batch = binarise(for_pixels, batch).astype(model.space.dtype)
    first = jnp.remainder(state.update, state.buffer.shape[0] // batch_size) * batch_size
    x = jax.lax.dynamic_slice_in_dim(state.buffer, first, batch_size) if settings.is_persistent else batch

    states = jax.vmap(state.kernel.init, in_axes=(None, 0))(model, x)
    scan = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, batch_size), state.scan)
    states = states._replace(cache=eqx.combine(scan, states.cache))
    ensemble = Ensemble(jnp.zeros((), jnp.uint32), states, state.kernel, state.memory, None)
    keys = random.split(for_chains, batch_size)
    ensemble, recorded, _ = run_chunk(
        keys, model, ensemble, adapter, num_draws=1, thinning=settings.num_steps, recorder=Recorder(None)
    )
    chains, kernel = ensemble.states.x, ensemble.kernel

    parameters, constants = eqx.partition(model, _spec(model, settings.trains))

    def loss(parameters):
        model = eqx.combine(parameters, constants)
        values = jax.vmap(lambda x: model.log_prob(model.space.embed(x)))(jnp.concatenate([batch, chains]))
        gap = jnp.mean(values[:batch_size]) - jnp.mean(values[batch_size:])
        return _penalties(model, parameters, settings) - gap, gap

    gradient, gap = jax.grad(loss, has_aux=True)(parameters)
    updates, memory = settings.optimiser.update(gradient, state.optimiser, parameters)
    parameters = eqx.apply_updates(parameters, updates)
    model = eqx.combine(parameters, constants)
    # The mean of the first updates would otherwise be mostly the untrained parameters.
    decay = jnp.minimum(settings.ema, (1 + state.update) / (10 + state.update))
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, state.average, parameters)
    if settings.refresh is not None:
        kernel = settings.refresh(kernel, model)
    buffer = state.buffer
    if settings.is_persistent:
        buffer = jax.lax.dynamic_update_slice_in_dim(buffer, chains, first, 0)
    scan = jax.tree.map(
        lambda all_, some: jax.lax.dynamic_update_slice_in_dim(all_, some, first, 0),
        state.scan,
        _scan(ensemble.states.cache),
    )
    squares = [jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradient)]
    now = {
        "gap": gap.astype(jnp.float32),
        "acceptance": jnp.mean(recorded.stats["accept_prob"]),
        "jump": jnp.mean(recorded.stats["jump"]),
        "gradient_norm": jnp.sqrt(sum(squares)).astype(jnp.float32),
    }
    return Progress(state.update + 1, model, average, memory, order, buffer, kernel, ensemble.memory, scan), now


def _shuffled(key: PRNGKeyArray, count: int) -> Int[Array, " rows"]:
    return jnp.argsort(random.words(key, count)).astype(jnp.int32)


def _penalties(model: Target, parameters: Any, settings: Settings) -> Float[Array, ""] | float:
    total = 0.0 if settings.penalty is None else settings.penalty(model)
    matrices = [leaf for leaf in jax.tree.leaves(parameters) if leaf.ndim >= 2]
    if settings.l1:
        total = total + settings.l1 * sum(jnp.sum(jnp.abs(leaf)) for leaf in matrices)
    if settings.weight_decay:
        total = total + settings.weight_decay / 2 * sum(jnp.sum(jnp.square(leaf)) for leaf in matrices)
    return total


def _spec(model: Target, trains: Callable[[Any], Any] | None) -> Any:
    everything = trained_parts(model)
    if trains is None:
        return everything
    nothing = jax.tree.map(lambda _: False, model)
    return eqx.tree_at(trains, nothing, jax.tree.map(eqx.is_inexact_array, trains(model)))


@lru_cache(maxsize=64)  # the same object for the same rate, so that programs are shared
def _adam(learning_rate: float) -> Any:
    try:
        import optax
    except ImportError as error:
        raise ImportError('Training needs optax, which is missing: pip install "discrax[learn]".') from error
    return optax.adam(learning_rate)


def _adapter(adaptation: Any, kernel: Kernel, num_steps: int) -> Adapter | None:
    if adaptation is None:
        return None
    if isinstance(adaptation, str):
        if adaptation != "auto":
            raise ValueError(f"adaptation is 'auto', None or a rule of discrax.adaptation, but got {adaptation!r}.")
        if not isinstance(kernel, Tunable):
            return None
        adaptation = AcceptanceRate(rule="steady")
    if not isinstance(adaptation, Adapter):
        raise TypeError(
            f"adaptation is 'auto', None or a rule of discrax.adaptation, but got {checks.describe(adaptation)}."
        )
    adaptation.check(kernel)
    return adaptation.planned(kernel, num_steps)


def _sized(kernel: Kernel, model: Target) -> Kernel:
    return kernel.sized(model, room=True) if isinstance(kernel, Sized) else kernel


def _check(**counts: int) -> None:
    for name, count in counts.items():
        most = 2**62 if name == "buffer_size" else 2**31 - 1  # updates and steps are counted in 32 bits
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= most:
            raise ValueError(
                f"{name} must be a positive whole number, at most {most}, but got {checks.describe(count)}."
            )


def _rows(model: Target, data: ArrayLike | Images) -> tuple[np.ndarray, bool]:
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


def _check_functions(model: Target, trains: Any, penalty: Any) -> None:
    """What users' functions return, before they are compiled into something larger."""
    try:
        spec = _spec(model, trains)
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


def _first_chains(key, model: Target, rows: np.ndarray, is_dynamic: bool, starts, buffer_size: int, batch_size: int):
    space, size = model.space, -(-buffer_size // batch_size) * batch_size
    needed = size * space.num_sites * 8 * (1 if space.has_two_levels else space.num_levels)
    if starts is None:
        check_host_memory("The chains", f"buffer_size = {buffer_size:,} chains of {space.num_sites:,} sites", needed)
    if starts is not None:
        starts = np.asarray(starts)
        space.check(starts)
        if starts.ndim != len(space.shape) + 1 or len(starts) % batch_size:
            raise ValueError(
                f"starts must hold a multiple of {batch_size} states (batch_size), but has shape {starts.shape}."
            )
        return jnp.asarray(starts, space.dtype)
    seed = np.asarray(jax.random.key_data(key)).tolist()
    rng = np.random.default_rng(seed)
    p = smoothed(rows.mean(axis=0) / 255) if is_dynamic else frequencies(rows, space.num_levels)
    if space.has_two_levels:
        return jnp.asarray(rng.random((size, *space.shape)) < p, space.dtype)
    thresholds = np.cumsum(p, axis=-1)[..., :-1]
    above = rng.random((size, *space.shape, 1)) > thresholds[None]
    return jnp.asarray(above.sum(axis=-1), space.dtype)


def _scan(cache: Any) -> Any:
    """Integers in a cache say which site has its turn; the rest is of the parameters of one update."""
    return eqx.filter(cache, lambda leaf: jnp.issubdtype(leaf.dtype, jnp.integer))


def _first_scan(kernel: Kernel, model: Target, buffer: Array) -> Any:
    states = eqx.filter_eval_shape(jax.vmap(kernel.init, in_axes=(None, 0)), model, buffer)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), _scan(states.cache))


def _divergence(recorded: dict[str, np.ndarray], update: int, most: float) -> str | None:
    """Why training cannot go on, if so."""
    for name in ("gap", "gradient_norm"):
        bad = np.flatnonzero(~np.isfinite(recorded[name]))
        if bad.size:
            return (
                f"Training diverged: {name} is {recorded[name][bad[0]]} at update {update + bad[0] + 1:,}; "
                "try a smaller learning rate, more sampler steps, or weight decay."
            )
    worst = int(np.argmax(np.abs(recorded["gap"])))
    if abs(recorded["gap"][worst]) > most:
        return (
            f"Training diverged: at update {update + worst + 1:,} data and chains differ by "
            f"{recorded['gap'][worst]:.0f} in log-probability, more than {most:.0f}; "
            "try more sampler steps, a smaller learning rate, or weight decay."
        )
    return None


def _passes(update: int, length: int, save_every: int) -> bool:
    """Whether a multiple of `save_every` lies among the last `length` updates."""
    return update // save_every != (update - length) // save_every
