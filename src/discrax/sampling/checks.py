"""Bad input ends here, before the sampler is compiled, with a sentence that says what was expected and what came."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from discrax.adaptation import JumpReport
from discrax.core import random
from discrax.core.checks import describe, in_words, whole
from discrax.core.kernel import Kernel, State
from discrax.core.memory import check_host_memory
from discrax.core.space import Space
from discrax.core.stochastic import (
    Average,
    DataTarget,
    StochasticTarget,
    evaluate_batch,
    has_exact_log_prob,
    log_ratios,
    renewed,
)
from discrax.core.supports import possible_states
from discrax.core.target import ExactRatios, Factored, Target, bare, embedding_of, log_prob, offered
from discrax.samplers.informed import Informed

_MOST_STEPS = 2**32  # the steps of a run are counted in 32 bits
_MOST_STARTS = 100  # draws of a first state, until one is possible
_MOST_FOUND = 16  # first states that are searched for, where most states are impossible
_FEWEST_STEPS = 100  # of all chains together, from which warm-up is judged


def check_counts(num_chains: int, num_warmup: int, num_samples: int, thinning: int, chunk_size: int | None) -> None:
    """Whole numbers, not too small, and fewer steps than can be counted."""
    least = {"num_chains": 1, "num_warmup": 0, "num_samples": 1, "thinning": 1, "chunk_size": 1}
    given = (num_chains, num_warmup, num_samples, thinning, 1 if chunk_size is None else chunk_size)
    for (name, smallest), value in zip(least.items(), given, strict=True):
        whole(name, value, least=smallest, most=2**62)
    steps = num_warmup + num_samples * thinning
    if steps >= _MOST_STEPS:
        raise ValueError(
            f"A run must have fewer than 2^32 steps, but num_warmup + num_samples * thinning is {steps:,}."
        )


def check_keep(keep: Any, space: Space, draw: Any = None) -> None:
    """What is kept must be arrays; `draw` has the shapes and types of what it is made of, codes by default."""
    if isinstance(keep, str) and keep in ("draws", "moments"):
        return
    if not callable(keep):
        raise ValueError(f"keep is 'draws', 'moments' or a function of the codes, but got {describe(keep)}.")
    try:
        kept = _kept(keep, space, draw)
    except Exception as error:
        raise ValueError(
            f"keep must be a function that JAX can trace, but on codes of shape {space.shape} it raises "
            f"{in_words(error)}"
        ) from error
    if not jax.tree.leaves(kept):
        raise ValueError(f"keep must return an array, or a tree of arrays, but it returns {describe(kept)}.")


def _kept(keep: Any, space: Space, draw: Any = None) -> Any:
    codes = jax.ShapeDtypeStruct(space.shape, space.dtype)
    return jax.eval_shape(lambda x: keep(x), codes if draw is None else draw)


def check_run_memory(
    space: Space, keep: Any, num_chains: int, num_samples: int, num_warmup: int, draw: Any = None
) -> None:
    """What a run would keep in memory must fit into the machine's, or it says so before it starts."""
    code = np.dtype(space.dtype).itemsize * space.num_sites
    levels = 1 if space.has_two_levels else space.num_levels
    states = num_chains * space.num_sites * 4 * levels
    per_draw = code if keep == "draws" else 0
    if callable(keep):
        per_draw = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(_kept(keep, space, draw)))
    stats = 0 if keep == "moments" else 32
    needed = states + num_chains * (num_samples * (per_draw + stats) + num_warmup * (code + stats))
    what = f"{num_chains:,} chains x {num_samples:,} draws of {space.num_sites:,} sites"
    check_host_memory("A run", what, needed, "use fewer chains or draws, more thinning, or keep='moments'")


class NothingMovedError(ValueError):
    """Of a kernel that moved no chain in warm-up."""

    def __init__(self, message: str, *, is_idle: bool):
        super().__init__(message)
        self.is_idle = is_idle  # whether nothing was proposed; else everything was rejected


def check_moved(kernel: Kernel, stats: dict[str, np.ndarray], reports: Sequence[Any], has_moved: bool) -> None:
    """A kernel that has not moved a chain in warm-up will not do so later: its draws would be its starts."""
    if not stats or stats["jump"].size < _FEWEST_STEPS:
        return
    chosen = reports[-1] if reports and isinstance(reports[-1], JumpReport) else None
    if (has_moved or stats["jump"].any()) and not (chosen is not None and chosen.jump == 0):
        return
    chains, steps = stats["jump"].shape
    acceptance = float(stats["accept_prob"].mean())
    is_idle = acceptance > 0.5
    why = "nothing was proposed" if is_idle else "everything was rejected"
    how = f" ({chosen})" if chosen is not None else ""
    raise NothingMovedError(
        f"{type(kernel).__name__} must move in warm-up, but none of {chains} chains did in {steps} steps: {why} (mean "
        f"acceptance {acceptance:.2f}){how}. Try another sampler, other starts by `init`, or a longer warm-up; "
        "num_warmup=0 draws with the kernel as it is.",
        is_idle=is_idle,
    )


def gradient_error(target: Target) -> Exception | None:
    """Why gradient samplers cannot have this target; exact ratios serve them as well as a gradient."""
    if offered(target, ExactRatios) is None:
        try:
            jax.eval_shape(jax.grad(bare(target).log_prob), embedding_of(target.space))
        except Exception as error:
            return error
    return None


def check_gradient(target: Target, kernel: Kernel) -> None:
    """A gradient sampler needs a differentiable log-probability, unless it takes exact ratios that the target has."""
    for part in kernel.parts:
        check_gradient(target, part)
    seen = kernel.seen(target) if isinstance(kernel, Informed) else target
    error = gradient_error(seen) if kernel.uses_gradient else None
    if error is not None:
        raise ValueError(
            f"{type(kernel).__name__} needs the gradient of log_prob, which JAX cannot take: "
            f"{in_words(error)} Use a sampler without gradients, such as 'rwm' or 'gibbs'."
        ) from error


def check_law(target: Target, kernel: Kernel) -> None:
    """A kernel that reads `log_prob` needs one that is the target's, not an estimate of it."""
    base = bare(target)
    if has_exact_log_prob(target) or StochasticTarget in kernel.needs:
        return
    why = (
        "its data come block by block, and log_prob is that of one block"
        if isinstance(base, DataTarget)
        else "its log_prob is an estimate from a few mini-batches"
    )
    raise ValueError(
        f"{type(kernel).__name__} needs the exact log_prob of {type(base).__name__}, but {why}; use a sampler of "
        "mini-batches, such as 'sgdld', or give the target what it lacks (all rows at once, or log_prob=...)."
    )


def check_batches(target: Target, kernel: Kernel, keys: Key[Array, " chains"], x: Array) -> None:
    """psi and phi must be numbers where chains start, if the kernel sees the target through mini-batches."""
    base = bare(target)
    if StochasticTarget not in kernel.needs or not isinstance(base, StochasticTarget):
        return
    base = renewed(base)
    assert isinstance(base, StochasticTarget)
    exact = getattr(kernel, "exact", True)
    try:
        here, log_phi, changes = map(np.asarray, _first_batches(base, keys[:8], x[:8], exact))
    except (TypeError, ValueError) as error:
        raise ValueError(f"psi cannot be evaluated on a mini-batch, but raises {in_words(error)}") from error
    what = "log psi" if base.in_logs else "psi"
    if here.ndim != 1:
        raise ValueError(f"psi must return a scalar, but it returns shape {here.shape[1:]}.")
    bad = np.flatnonzero(np.isnan(here) | np.isposinf(here))
    if bad.size:
        raise ValueError(
            f"{what} must be a number where a chain starts, but it is {here[bad[0]]} for {bad.size} of {len(here)} "
            "chains that were tried; look for a logarithm or a division at 0 in psi, or pass `init`."
        )
    bad = np.flatnonzero(~np.isfinite(log_phi))
    if bad.size:
        raise ValueError(
            f"phi must be positive, but at {what} = {here[bad[0]]:.6g} its logarithm is {log_phi[bad[0]]}; a "
            "probability that may be 0 needs psi in logs, and a cost needs phi = exp."
        )
    if np.isnan(changes).any() or np.isposinf(changes).any():
        raise ValueError(
            f"{what} is NaN or infinite at a neighbour of a state where a chain starts; -inf is for changes that are "
            "barred, and every other must be a number."
        )


@eqx.filter_jit
def _first_batches(target: StochasticTarget, keys: Key[Array, " chains"], x: Array, exact: bool):
    def one(key, x):
        batch = evaluate_batch(target, x, target.draw(key, jnp.zeros((), jnp.int32)), exact=exact)
        average = Average(batch.here, batch.changes, jnp.ones((), jnp.float32))
        return batch.here, target.log_phi(batch.here), log_ratios(target, average)

    return jax.vmap(one)(keys, x)


def chain_keys(key: PRNGKeyArray, num_chains: int) -> tuple[PRNGKeyArray, Key[Array, " chains"]]:
    """The key of the initial states, and one key a chain."""
    for_init, for_chains = random.split_on_host(jax.random.key_data(random.as_threefry(key)), 2)
    return random.from_data(for_init), random.from_data(random.split_on_host(for_chains, int(num_chains)))


# Compiled: op by op it is slow on an accelerator.
@eqx.filter_jit
def _random_states(key: PRNGKeyArray, space: Space, num_chains: int) -> Array:
    return jax.vmap(space.random)(random.split(key, num_chains))


def possible_starts(
    key: PRNGKeyArray, target: Target, x: Array, evaluate: Callable[[Array], Array] | None = None
) -> Array:
    """Random starts `x`, of which those that a hard constraint forbids are drawn again a bounded number of times.

    `evaluate` gives the log-probabilities of states, where there is a program that does.
    """
    evaluate = partial(_log_probs, bare(target)) if evaluate is None else evaluate
    factored = offered(target, Factored)
    for attempt in range(_MOST_STARTS):
        is_impossible = np.isneginf(np.asarray(evaluate(x)))
        if not is_impossible.any():
            return x
        if factored is not None:
            return _starts_by_tables(key, factored, len(x))
        again = _random_states(random.fold_in(key, attempt), target.space, len(x))
        x = jnp.where(is_impossible.reshape(-1, *(1,) * len(target.space.shape)), again, x)
    raise ValueError(
        f"Chains must start where log_prob is finite, but after {_MOST_STARTS} draws {int(is_impossible.sum())} of "
        f"{len(x)} random starts still have log_prob = -inf; pass `init` with states of positive probability."
    )


def _starts_by_tables(key: PRNGKeyArray, target: Factored, num_chains: int) -> Array:
    """States that the tables of a target allow, in turn for all chains: few are found, since each takes a search."""
    seed = int(random.words(key, 1)[0])
    found = possible_states(target, seed, min(num_chains, _MOST_FOUND))
    states = found[np.arange(num_chains) % len(found)].reshape(num_chains, *target.space.shape)
    return jnp.asarray(states, target.space.dtype)


@eqx.filter_jit
def _log_probs(target: Target, x: Array) -> Array:
    return jax.vmap(lambda x: log_prob(target, x))(x)


def initial_states(key: PRNGKeyArray, target: Target, num_chains: int, init: Array | np.ndarray | None) -> Array:
    """One state per chain: the given ones, checked, or random ones."""
    space = target.space
    if init is None:
        return _random_states(key, space, int(num_chains))
    try:
        init = np.asarray(init)
    except ValueError as error:
        raise ValueError(f"init must be an array of codes, but numpy says: {error}.") from error
    if np.ndim(init) == len(space.shape):
        space.check(init)
        init = np.broadcast_to(np.asarray(init), (num_chains, *np.shape(init)))
    if np.ndim(init) != len(space.shape) + 1 or np.shape(init)[0] != num_chains:
        raise ValueError(
            f"init must have shape {space.shape} or {(num_chains, *space.shape)}, but has shape {np.shape(init)}."
        )
    space.check(init)
    return jnp.asarray(init, space.dtype)


def check_start(states: State, kernel: Kernel) -> None:
    """Chains must start at finite log-probabilities, with gradients that say something."""
    bad = np.flatnonzero(~np.isfinite(np.asarray(states.log_prob)))
    if bad.size:
        value = float(np.asarray(states.log_prob)[bad[0]])
        raise ValueError(
            f"log_prob must be finite where a chain starts, but it is {value} for {bad.size} of {states.log_prob.size} "
            f"chains (the first is chain {bad[0]}); pass `init` with states of positive probability."
        )
    bad = [np.isnan(leaf) | np.isposinf(leaf) for leaf in map(np.asarray, jax.tree.leaves(states.cache))]
    if kernel.uses_gradient and any(leaf.any() for leaf in bad):
        raise ValueError(
            "The gradient of log_prob is NaN or infinite where a chain starts; look for a square root, a logarithm or "
            "a division at 0, or use a sampler without gradients."
        )
    values, ratios = np.asarray(states.log_prob), [np.asarray(leaf) for leaf in jax.tree.leaves(states.cache)]
    if kernel.uses_gradient and np.ptp(values) > 0 and not any(leaf.any() for leaf in ratios):
        raise ValueError(
            f"{type(kernel).__name__} needs the gradient of log_prob, which is 0 at every site of every chain although "
            "log_prob differs between them; is there a rounding or an integer cast in it? Use a sampler without "
            "gradients, such as 'rwm' or 'gibbs'."
        )
