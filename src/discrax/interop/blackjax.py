"""BlackJAX, both ways: our kernels in its drivers, and its kernels as blocks of ours.

    algorithm = as_algorithm("pas", target)  # for blackjax.util.run_inference_algorithm
    inner = as_inner_kernel("pas", target.space)  # for blackjax.tempered_smc and its kin
    result = sample_mixed(key, dx.Mixed(...), "pas", from_blackjax("nuts"))

Positions are the codes of a state. What BlackJAX calls a log-density of them is `log_density(target)`, which takes the
embedding of a state as well, since samplers that follow gradients ask for it there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.extras import import_extra
from discrax.core.kernel import Info, Kernel, State
from discrax.core.space import Space, check_space
from discrax.core.target import FunctionTarget, Target, check_target
from discrax.interop.blackjax_block import Block, from_blackjax
from discrax.interop.blackjax_mixed import sample_mixed
from discrax.samplers import build_kernel
from discrax.sampling.checks import check_gradient, check_law, check_start

__all__ = [
    "AlgorithmState",
    "Block",
    "InnerKernel",
    "as_algorithm",
    "as_inner_kernel",
    "from_blackjax",
    "log_density",
    "sample_mixed",
]


class AlgorithmState(NamedTuple):
    """Where a chain is, in BlackJAX's words. Of a `Tempered` target, `logdensity` is that before tempering."""

    position: Integer[Array, "*shape"]  # codes
    logdensity: Float[Array, ""]
    cache: Any  # of the kernel


class InnerKernel(NamedTuple):
    """What BlackJAX's sequential Monte Carlo asks for, by its names: `tempered_smc(..., **inner._asdict(), ...)`."""

    mcmc_step_fn: Callable[..., tuple[AlgorithmState, Info]]
    mcmc_init_fn: Callable[..., AlgorithmState]


def as_algorithm(kernel: str | Kernel, target: Target) -> Any:
    """A `blackjax.base.SamplingAlgorithm` of a sampler on a target, one chain; `jax.vmap` makes several of it.

    `init` takes codes of the shape of the space, `step` a key and an `AlgorithmState`; what it tells of a step is an
    `Info`. The kernel stays as it is: `discrax.sample(...).kernel` is one that was tuned.
    """
    base = import_extra("blackjax.base", "A sampling algorithm of BlackJAX needs", "blackjax")
    check_target(target)
    ready = build_kernel(kernel, target)
    check_law(target, ready)
    check_gradient(target, ready)
    ready, _ = ready.prepare(target, tuning=False)

    def init(position: Any, rng_key: PRNGKeyArray | None = None) -> AlgorithmState:
        x = _codes(target.space, position)
        state = ready.init(target, x)
        if not isinstance(state.log_prob, Tracer):
            check_start(State(x[None], state.log_prob[None], state.cache), ready)
        return AlgorithmState(*state)

    def step(rng_key: PRNGKeyArray, state: AlgorithmState) -> tuple[AlgorithmState, Info]:
        after, info = ready.step(random.as_threefry(rng_key), target, State(*state))
        return AlgorithmState(*after), info

    return base.SamplingAlgorithm(init, step)


def as_inner_kernel(kernel: str | Kernel, space: Space) -> InnerKernel:
    """The moves of particles in BlackJAX's sequential Monte Carlo: `mcmc_step_fn` and `mcmc_init_fn`.

    Particles are codes of shape (particle, *shape). Log-densities are called with codes by BlackJAX and with embeddings
    by the kernel: `log_density` makes such functions. The knobs of the kernel are names for `mcmc_parameters`.
    """
    check_space(space)
    ready = build_kernel(kernel, FunctionTarget(function=jnp.sum, space=space))
    roomy = ready if ready.capacity is None else ready.with_capacity(space.num_sites)  # knobs come as a step is made

    def init(position: Integer[Array, "*shape"], logdensity_fn: Callable[[Array], Array]) -> AlgorithmState:
        x = _codes(space, position)
        return AlgorithmState(*ready.init(FunctionTarget(function=logdensity_fn, space=space), x))

    def step(
        rng_key: PRNGKeyArray, state: AlgorithmState, logdensity_fn: Callable[[Array], Array], **knobs: Array
    ) -> tuple[AlgorithmState, Info]:
        turned = roomy.with_knobs(**knobs) if knobs else ready
        target = FunctionTarget(function=logdensity_fn, space=space)
        after, info = turned.step(random.as_threefry(rng_key), target, State(*state))
        return AlgorithmState(*after), info

    return InnerKernel(step, init)


def log_density(target: Target) -> Callable[[Array], Float[Array, ""]]:
    """log pi as a function of codes, which are whole numbers, or of their embedding, which are floats."""
    check_target(target)

    def logdensity(position: Array) -> Float[Array, ""]:
        is_embedded = jnp.issubdtype(jnp.result_type(position), jnp.floating)
        return target.log_prob(position if is_embedded else target.space.embed(jnp.asarray(position)))

    return logdensity


def _codes(space: Space, position: Any) -> Integer[Array, "*shape"]:
    """A position as codes of one state; a sentence if it is none."""
    if isinstance(position, Tracer):
        if position.shape != space.shape or not jnp.issubdtype(position.dtype, jnp.integer):
            raise ValueError(
                f"A position holds the codes of one state, whole numbers of shape {space.shape}, but got "
                f"{position.dtype} of shape {position.shape}; use jax.vmap for several chains."
            )
        return position.astype(space.dtype)
    if np.ndim(position) > len(space.shape):
        raise ValueError(
            f"A position is one state, of shape {space.shape}, but got shape {np.shape(position)}; use jax.vmap for "
            "several chains."
        )
    space.check(position)
    return jnp.asarray(position, space.dtype)
