"""A rule of NetKet's Metropolis samplers that proposes many flips at once, each site's by what the gradient says of it.

    from discrax.interop.netket import InformedRule

    sampler = nk.sampler.MetropolisSampler(hilbert, InformedRule(step_size=1.0), n_chains=16)

The proposal is that of `discrax.samplers.dmala`, with log pi = machine_pow Re log psi: from the gradient of log pi by
the spins, every site flips by itself with log-odds

    l_i(s) = (log-ratio of flipping site i, to first order) / 2 - (squared length of the move) / (2 step_size)

and the sampler accepts by log pi(t) - log pi(s) plus the correction log q(s | t) - log q(t | s) that the rule returns.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from discrax.core import random
from discrax.core.checks import number
from discrax.core.extras import import_extra
from discrax.core.kernel import start_state
from discrax.core.space import Binary, Space, Spin
from discrax.core.target import FunctionTarget
from discrax.samplers.balancing import log_sqrt
from discrax.samplers.factorised import log_proposal_ratio
from discrax.samplers.langevin import langevin_logits

MetropolisRule: Any = import_extra("netket.sampler.rules", "A rule of its samplers needs", "netket").MetropolisRule

__all__ = ["InformedRule"]


class InformedRule(MetropolisRule):
    """Every site flips by itself, with odds from the gradient of log |psi|^2; for spins 1/2 and qubits.

    A larger `step_size` flips more sites at once, of which fewer proposals are accepted; near 0.57 they move most.
    """

    step_size: float

    def __init__(self, step_size: float = 1.0):
        self.step_size = number("step_size", step_size, above=0)

    def transition(
        self, sampler: Any, machine: Any, parameters: Any, state: Any, key: Array, σ: Float[Array, "chains n"]
    ) -> tuple[Float[Array, "chains n"], Float[Array, " chains"]]:
        """Proposed configurations, and log q(s | t) - log q(t | s) of each chain."""
        space = space_of(sampler.hilbert)
        # Some machines insist on an axis of chains.
        target = FunctionTarget(
            function=lambda e: sampler.machine_pow * machine.apply(parameters, e[None])[0].real, space=space
        )
        stiffness = 1 / jnp.asarray(self.step_size)

        def logits(x: Array) -> Array:
            return langevin_logits(target, start_state(target, x), log_sqrt, stiffness)

        def propose(key: Array, x: Array) -> tuple[Array, Array]:
            forth = logits(x)
            flips = random.uniform(key, space.num_sites) < jax.nn.sigmoid(forth)
            y = jnp.where(flips, 1 - x, x)
            return y, log_proposal_ratio(space, x, y, forth, logits(y))

        keys = random.split(random.as_threefry(key), σ.shape[0])
        y, correction = jax.vmap(propose)(keys, (σ > 0).astype(space.dtype))
        return space.embed(y).astype(σ.dtype), correction


def space_of(hilbert: Any) -> Space:
    """Spins as -1 and +1, qubits as 0 and 1; a ValueError that says why a Hilbert space has others."""
    levels = sorted(float(level) for level in getattr(hilbert, "local_states", None) or ())
    kind = {(-1.0, 1.0): Spin, (0.0, 1.0): Binary}.get(tuple(levels))
    if kind is None:
        raise ValueError(f"InformedRule flips spins 1/2 and qubits, but the Hilbert space is {hilbert}.")
    if getattr(hilbert, "constrained", False):
        raise ValueError(f"InformedRule flips sites one by one, which breaks the constraint of {hilbert}.")
    return kind(hilbert.size)
