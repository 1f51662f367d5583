"""Learning an energy model by (persistent) contrastive divergence.

With log pi(x) = f(x; theta) - log Z(theta), the gradient of the mean log-likelihood of the data is

    E_data[ grad f(x) ] - E_model[ grad f(x) ],

and the second mean is estimated from chains that are moved by K steps of a sampler at every update:

    take batch_size rows of the data, in an order that is shuffled anew when all have had their turn
    take batch_size states of the buffer, in turn (or, for plain contrastive divergence, the batch of data itself);
        with `reshuffle` the buffer is put into a new random order before each pass over it
    K steps of the sampler for them at the present theta, its scale following the acceptance rate; write them back
    theta <- optimiser( grad [ mean f(data) - mean f(chains) - penalty(theta) ] )
    average <- d average + (1 - d) theta

(Hinton, 2002; Tieleman, 2008; Du and Mordatch, 2019.) Update t uses the random numbers of `fold_in(key, t)` and the
state before it, and nothing else: a run that was stopped and resumed is the run that was not. Samplers that redraw the
sites in turn go on in the next update with the site after the last: else K steps would redraw the first K for ever.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import checks, random
from discrax.core.devices import bring_home, find_devices
from discrax.core.driver import Adapter
from discrax.core.files import UnusableFile
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.programs import compiled, reads_user_code
from discrax.core.target import Target, check_target
from discrax.data import Images
from discrax.learn import inputs
from discrax.learn.checkpoints import TrainingFolder
from discrax.learn.updates import CURVES, Progress, Settings, run_updates, trained_spec
from discrax.sampling.progress import ProgressBar

_LEAST_GAP = 100.0
_ANSWER = 5.0  # seconds that a signal waits for an answer, where an update takes less


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
        """Whether all updates were made."""
        return self.stopped is None


# Its many parameters are the settings of one experiment, each with a default; there is no smaller set that would do.
@reads_user_code()
@listening()
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
    reshuffle: bool = False,
    optimiser: Any = None,
    learning_rate: float = 1e-3,
    l1: float = 0.0,
    weight_decay: float = 0.0,
    ema: float = 0.999,
    adaptation: str | Adapter | None = "auto",
    trains: Callable[[Any], Any] | None = None,
    penalty: Callable[[Any], Array] | None = None,
    refresh: Callable[[Any, Any], Any] | None = None,
    init: ArrayLike | None = None,
    largest_gap: float | None = None,
    every: int = 100,
    out: str | Path | TrainingFolder | None = None,
    save_every: int = 1000,
    resume: bool = False,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    progress: bool | None = None,
) -> Trained:
    """Trains a model on data by contrastive divergence with persistent chains.

    - `data`: integer codes of shape (rows, *sites), or `discrax.data.Images`; dynamic ones are binarised anew in every
      batch.
    - `sampler`: any name of the registry, or a kernel; it makes `num_steps` steps per update.
    - `buffer_size`: chains, of which `batch_size` move in an update (rounded up to a multiple of it). With too many
      each moves too seldom to follow a network that learns fast, and training diverges. They start from
      `init`, by default at independent sites with the frequencies of the data. With `persistent=False` there is no
      buffer: chains start from the batch (contrastive divergence). The same chains move together in every pass over
      the buffer; with `reshuffle=True` others do, after 1 to 2 buffer_size / batch_size - 1 updates each.
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
    - `devices`: over which the `batch_size` chains of an update are spread, as in `discrax.sample`.

    Training that diverges ends with a sentence in `.stopped` and the last good parameters: when a number is none, or
    when mean log-probabilities of data and chains are more than `largest_gap` apart (by default the logarithm of the
    number of states, at least 100). So does Ctrl-C, SIGTERM, and a disk that is full: what was learnt is returned, and
    the checkpoints that are there stay good.
    """
    key = random.as_threefry(key)
    inputs.check_counts(num_steps=num_steps, num_updates=num_updates, batch_size=batch_size, buffer_size=buffer_size,
                 every=every, save_every=save_every)  # fmt: skip
    for name, flag in (("persistent", persistent), ("reshuffle", reshuffle)):
        checks.yes_or_no(name, flag)
    ema = checks.number("ema, a decay,", ema, least=0, below=1)
    l1, weight_decay = checks.number("l1", l1, least=0), checks.number("weight_decay", weight_decay, least=0)
    optimiser = inputs.adam(learning_rate) if optimiser is None else optimiser
    inputs.check_optimiser(optimiser)
    inputs.check_out(out, resume)
    check_target(model)
    inputs.check_functions(model, trains, penalty, refresh)
    rows, is_dynamic = inputs.rows_of(model, data)
    batch_size = min(batch_size, len(rows))
    kernel = inputs.kernel_of(sampler, model, refresh)
    adapter = inputs.adapter_of(adaptation, kernel, model, num_steps * num_updates)
    settings = Settings(
        batch_size, num_steps, persistent, reshuffle and persistent, is_dynamic, optimiser, ema, l1, weight_decay,
        trains, penalty, refresh,
        find_devices(devices, model.space, batch_size, name="batch_size", cuts_sites=False),
    )  # fmt: skip

    for_buffer, for_updates = random.split(key, 2)
    buffer = inputs.first_chains(for_buffer, model, rows, is_dynamic, init, buffer_size, batch_size)
    parameters, _ = eqx.partition(model, trained_spec(model, trains))
    memory = None if adapter is None else adapter.init(model, kernel)
    kernel, _ = kernel.prepare(model, tuning=True)
    first, order = jnp.zeros((), jnp.int32), jnp.arange(len(rows), dtype=jnp.int32)
    scan, moments = inputs.first_scan(kernel, model, buffer), optimiser.init(parameters)
    state = Progress(first, model, parameters, moments, order, buffer, kernel, memory, scan)
    entropy = model.space.num_sites * math.log(model.space.num_levels)
    gap = max(_LEAST_GAP, entropy) if largest_gap is None else checks.number("largest_gap", largest_gap, above=0)
    plan = Plan(num_updates, every, save_every, gap, progress)
    if out is None or isinstance(out, TrainingFolder):
        opened = nullcontext(out)
    else:
        opened = TrainingFolder(Path(out), key, resume)
    with Interrupts() as interrupts, opened as folder:
        state = folder.restored(state) if folder is not None and resume else state
        return _train(for_updates, state, jnp.asarray(rows), adapter, settings, plan, folder, interrupts)


class Plan(NamedTuple):
    """How long to train, and how often to tell."""

    num_updates: int
    every: int
    save_every: int
    largest_gap: float
    progress: bool | None  # whether to show it


def _train(
    key: PRNGKeyArray,
    state: Progress,
    rows: Array,
    adapter: Adapter | None,
    settings: Settings,
    plan: Plan,
    folder: TrainingFolder | None,
    interrupts: Interrupts,
) -> Trained:
    curves = [] if folder is None else folder.curves()
    stopped, begin = None, time.perf_counter() - (curves[-1]["seconds"] if curves else 0.0)
    at_once = 1  # updates, until it is known how long one takes

    def run(state: Progress, length: int) -> tuple[Progress, dict[str, np.ndarray]]:
        arguments = (key, state, rows, adapter, jnp.asarray(length, jnp.int32))
        if settings.devices is not None:
            arguments = settings.devices.place(arguments)
        program, _ = compiled(run_updates, arguments, {"most": plan.every, "settings": settings})
        after, recorded = bring_home(jax.block_until_ready(program(arguments)))
        return after, {name: np.asarray(values)[:length] for name, values in recorded.items()}

    try:
        with ProgressBar(
            "training", plan.num_updates, plan.progress, done=int(state.update), numbers="compiling"
        ) as bar:
            while int(state.update) < plan.num_updates and not interrupts.requested and stopped is None:
                done = int(state.update)
                if done % plan.every == 0:  # only there, so that training that goes on is what it would have been
                    state = state._replace(kernel=state.kernel.prepare(state.model, tuning=True)[0])
                length = min(plan.every - done % plan.every, plan.num_updates - done)
                after, recorded, stopped, at_once = _in_pieces(
                    run, state, length, at_once, plan.largest_gap, interrupts
                )
                if stopped is None and recorded:
                    state, means = after, {name: float(values.mean()) for name, values in recorded.items()}
                    curves.append({"update": int(state.update), "seconds": time.perf_counter() - begin} | means)
                    bar.show(
                        int(state.update) - done,
                        f"gap {means['gap']:.3g}  acceptance {means['acceptance']:.2f}  jump {means['jump']:.3g}  "
                        f"gradient {means['gradient_norm']:.3g}",
                    )
                    if folder is not None and int(state.update) // plan.save_every != done // plan.save_every:
                        folder.save(state, curves)
        if interrupts.requested:
            stopped = f"Training was interrupted after {int(state.update):,} updates."
        if folder is not None:
            folder.save(state, curves)
            folder.finish()
            stopped = None if stopped is None else f"{stopped} The last good parameters are in {folder.folder}."
    except UnusableFile as error:
        assert folder is not None
        last = folder.last_saved
        kept = "No checkpoint is" if last is None else f"The checkpoint of {last:,} updates is"
        stopped = f"Training was ended after {int(state.update):,} updates, because {error} {kept} in {folder.folder}."
    model, buffer, num_updates = state.model, np.asarray(state.buffer), int(state.update)
    ema = eqx.combine(state.average, eqx.filter(model, trained_spec(model, settings.trains), inverse=True))
    columns = {name: np.array([row[name] for row in curves]) for name in ("update", "seconds", *CURVES)}
    return Trained(model, ema, state.kernel, buffer, columns, num_updates, stopped, interrupts.requested)


def _in_pieces(
    run: Callable[[Progress, int], tuple[Progress, dict[str, np.ndarray]]],
    state: Progress,
    length: int,
    at_once: int,
    largest_gap: float,
    interrupts: Interrupts,
) -> tuple[Progress, dict[str, np.ndarray], str | None, int]:
    """So many updates, and what was recorded, in pieces of `_ANSWER` seconds, between which signals are heard.

    Also why training cannot go on, if so, and how many updates such a piece is.
    """
    parts, stopped, left = [], None, length
    while left > 0 and not interrupts.requested and stopped is None:
        piece, begin = min(left, at_once), time.perf_counter()
        try:
            state, recorded = run(state, piece)
        except KeyboardInterrupt:  # the second signal
            interrupts.requested = True
            break
        stopped = _divergence(recorded, int(state.update) - piece, largest_gap)
        at_once = max(1, int(_ANSWER * piece / (time.perf_counter() - begin)))
        parts.append(recorded)
        left -= piece
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    return state, joined, stopped, at_once


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
