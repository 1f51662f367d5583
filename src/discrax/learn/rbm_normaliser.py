"""The normalising constant of a restricted Boltzmann machine, exactly: its smaller layer can be summed over."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.core import checks
from discrax.core.programs import compiled
from discrax.targets.rbm import RBM, CategoricalRBM

_STATES_AT_ONCE, _MOST_STATES = 1 << 12, 1 << 26


def rbm_log_Z(machine: RBM | CategoricalRBM) -> float:  # noqa: N802
    """log Z exactly, as a sum over all states of the smaller layer, at most 2^26 of them (25 units take minutes)."""
    if not isinstance(machine, RBM | CategoricalRBM):
        raise TypeError(f"machine must be an RBM or a CategoricalRBM, but got {checks.describe(machine)}; use `ais`.")
    hidden, sites, levels = machine.hidden_bias.shape[0], machine.space.num_sites, machine.space.num_levels
    over_hidden = hidden * math.log(2) <= sites * math.log(levels)
    num_digits, num_values = (hidden, 2) if over_hidden else (sites, levels)
    if num_digits * math.log(num_values) > math.log(_MOST_STATES) + 1e-9:
        raise ValueError(
            f"The smaller layer has {num_values}^{num_digits} states, but a sum over at most 2^26 is feasible; "
            "use `ais`."
        )
    settings = {"over_hidden": over_hidden, "num_states": num_values**num_digits}
    program, _ = compiled(_log_block_sums, (machine,), settings)
    blocks = np.asarray(program((machine,)), np.float64)
    return float(np.log(np.exp(blocks - blocks.max()).sum()) + blocks.max())


def _log_block_sums(machine: RBM | CategoricalRBM, *, over_hidden: bool, num_states: int) -> Float[Array, " blocks"]:
    """log of the sums of exp(free energy of a layer's state), the states in blocks."""
    W = machine.weights.reshape(machine.hidden_bias.shape[0], -1)
    b = machine.visible_bias.reshape(-1)
    num_digits, num_values = (W.shape[0], 2) if over_hidden else (machine.space.num_sites, machine.space.num_levels)
    powers = jnp.asarray(num_values ** np.arange(num_digits), jnp.int32)

    def value_over_hidden(h):
        # Float32 throughout: the default precision of an accelerator is less.
        logits = b + jnp.matmul(h.astype(W.dtype), W, precision=jax.lax.Precision.HIGHEST)
        if isinstance(machine, RBM):
            visible = jax.nn.softplus(logits)
        else:
            visible = jax.nn.logsumexp(logits.reshape(machine.visible_bias.shape), axis=-1)
        return jnp.dot(machine.hidden_bias, h.astype(W.dtype)) + jnp.sum(visible)

    def value_over_visible(v):
        return machine.log_prob(machine.space.embed(v.reshape(machine.space.shape)))

    def block(first):
        index = first + jnp.arange(min(_STATES_AT_ONCE, num_states), dtype=jnp.int32)
        digits = index[:, None] // powers[None] % num_values
        values = jax.vmap(value_over_hidden if over_hidden else value_over_visible)(digits)
        return jax.nn.logsumexp(jnp.where(index < num_states, values, -jnp.inf))

    return jax.lax.map(block, jnp.arange(0, num_states, _STATES_AT_ONCE, dtype=jnp.int32))
