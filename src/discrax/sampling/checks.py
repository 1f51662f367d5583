"""Bad input ends here, before the sampler is compiled, with a sentence that says what was expected and what came."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Kernel, State
from discrax.core.space import Space
from discrax.core.stochastic import Average, StochasticTarget, evaluate_batch, log_ratios, renewed
from discrax.core.target import ExactRatios, Target, bare, offered


def check_counts(num_chains: int, num_warmup: int, num_samples: int, thinning: int, chunk_size: int | None) -> None:
    least = {"num_chains": 1, "num_warmup": 0, "num_samples": 1, "thinning": 1, "chunk_size": 1}
    given = (num_chains, num_warmup, num_samples, thinning, 1 if chunk_size is None else chunk_size)
    for (name, smallest), value in zip(least.items(), given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be a whole number, but got {value!r}.")
        if value < smallest:
            raise ValueError(f"{name} must be at least {smallest}, but got {value}.")


def _embedding(target: Target) -> jax.ShapeDtypeStruct:
    space = target.space
    return jax.eval_shape(space.embed, jax.ShapeDtypeStruct(space.shape, space.dtype))


def check_target(target: Target) -> None:
    """The log-probability must be a float scalar."""
    if not isinstance(target, Target):
        raise TypeError(
            f"target must be a discrax Target, but got {type(target).__name__}; "
            "wrap a function with discrax.Target.from_log_prob(function, space)."
        )
    base, e = bare(target), _embedding(target)
    where = f"on the embedding of shape {e.shape} of a {type(base.space).__name__} space"
    try:
        value = jax.eval_shape(base.log_prob, e)
    except Exception as error:
        raise ValueError(f"log_prob cannot be evaluated {where}: {type(error).__name__}: {error}") from error
    if not hasattr(value, "shape") or value.shape != ():
        raise ValueError(
            f"log_prob must return a scalar, but {where} it returns shape {getattr(value, 'shape', type(value))}."
        )
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"log_prob must return a float, but {where} it returns {value.dtype}.")


def gradient_error(target: Target) -> Exception | None:
    """Why gradient samplers cannot have this target; exact ratios serve them as well as a gradient."""
    if offered(target, ExactRatios) is None:
        try:
            jax.eval_shape(jax.grad(bare(target).log_prob), _embedding(target))
        except Exception as error:
            return error
    return None


def check_gradient(target: Target, kernel: Kernel) -> None:
    """A gradient sampler needs a differentiable log-probability, unless the target offers exact ratios."""
    error = gradient_error(target) if kernel.uses_gradient else None
    if error is not None:
        raise ValueError(
            f"{type(kernel).__name__} needs the gradient of log_prob, which JAX cannot take: "
            f"{type(error).__name__}: {error} Use a sampler without gradients, such as 'rwm' or 'gibbs'."
        ) from error


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
        raise ValueError(f"psi cannot be evaluated on a mini-batch: {type(error).__name__}: {error}") from error
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
    return _chain_keys(random.as_threefry(key), int(num_chains))


# Compiled: op by op they are slow on an accelerator.
@partial(jax.jit, static_argnums=1)
def _chain_keys(key: PRNGKeyArray, num_chains: int) -> tuple[PRNGKeyArray, Key[Array, " chains"]]:
    for_init, for_chains = random.split(key, 2)
    return for_init, random.split(for_chains, num_chains)


@eqx.filter_jit
def _random_states(key: PRNGKeyArray, space: Space, num_chains: int) -> Array:
    return jax.vmap(space.random)(random.split(key, num_chains))


def initial_states(key: PRNGKeyArray, target: Target, num_chains: int, init: Array | np.ndarray | None) -> Array:
    """One state per chain: the given ones, checked, or random ones."""
    space = target.space
    if init is None:
        return _random_states(key, space, int(num_chains))
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
