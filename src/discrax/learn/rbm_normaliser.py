"""The normalising constant of a restricted Boltzmann machine, exactly: its smaller layer can be summed over."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from discrax.core import checks
from discrax.core.levels import at_level
from discrax.core.programs import compiled
from discrax.targets.rbm import RBM, CategoricalRBM

_STATES_AT_ONCE, _MOST_STATES = 1 << 12, 1 << 26


def rbm_log_Z(machine: RBM | CategoricalRBM) -> float:  # noqa: N802
    """log Z exactly, as a sum over all states of the smaller layer, at most 2^26 of them (25 units take minutes)."""
    if not isinstance(machine, RBM | CategoricalRBM):
        raise TypeError(f"machine must be an RBM or a CategoricalRBM, but got {checks.describe(machine)}; use `ais`.")
    if machine.space.totals is not None:
        raise ValueError(
            "The totals of the machine's sites are bounded, and a sum over one layer leaves that out; use "
            "log_normaliser(..., method='tempering')."
        )
    hidden, sites, levels = machine.hidden_bias.shape[0], len(_free_sites(machine)), machine.space.num_levels
    over_hidden = hidden * math.log(2) <= sites * math.log(levels)
    num_digits, num_values = (hidden, 2) if over_hidden else (sites, levels)
    if num_digits * math.log(num_values) > math.log(_MOST_STATES) + 1e-9:
        raise ValueError(
            f"The smaller layer has {num_values}^{num_digits} states, but a sum over at most 2^26 is feasible; "
            "use `ais`."
        )
    settings = {"over_hidden": over_hidden, "num_states": num_values**num_digits}
    given = (machine, jnp.asarray(_free_sites(machine), jnp.int32))
    program, _ = compiled(_log_block_sums, given, settings)
    blocks = np.asarray(program(given), np.float64)
    return float(np.log(np.exp(blocks - blocks.max()).sum()) + blocks.max())


def _free_sites(machine: RBM | CategoricalRBM) -> Int[np.ndarray, " free"]:
    frozen = machine.space.frozen
    return np.arange(machine.space.num_sites) if frozen is None else np.flatnonzero(~np.asarray(frozen.mask))


def _log_block_sums(
    machine: RBM | CategoricalRBM, free: Int[Array, " free"], *, over_hidden: bool, num_states: int
) -> Float[Array, " blocks"]:
    """log of the sums of exp(free energy of a layer's state), the states in blocks."""
    W = machine.weights.reshape(machine.hidden_bias.shape[0], -1)
    b = machine.visible_bias.reshape(-1)
    space, frozen = machine.space, machine.space.frozen
    num_digits, num_values = (W.shape[0], 2) if over_hidden else (len(free), space.num_levels)
    powers = jnp.asarray(num_values ** np.arange(num_digits), jnp.int32)

    def value_over_hidden(h):
        # Float32 throughout: the default precision of an accelerator is less.
        logits = b + jnp.matmul(h.astype(W.dtype), W, precision=jax.lax.Precision.HIGHEST)
        if isinstance(machine, RBM):
            visible, levels = jax.nn.softplus(logits), jnp.stack([jnp.zeros_like(logits), logits], axis=-1)
        else:
            levels = logits.reshape(space.num_sites, space.num_levels)
            visible = jax.nn.logsumexp(levels, axis=-1)
        if frozen is not None:
            visible = jnp.where(frozen.mask.reshape(-1), at_level(levels, frozen.codes.reshape(-1)), visible)
        return jnp.dot(machine.hidden_bias, h.astype(W.dtype)) + jnp.sum(visible)

    def value_over_visible(v):
        base = jnp.zeros(space.num_sites, jnp.int32) if frozen is None else frozen.codes.reshape(-1).astype(jnp.int32)
        return machine.log_prob(space.embed(base.at[free].set(v).reshape(space.shape)))

    def block(first):
        index = first + jnp.arange(min(_STATES_AT_ONCE, num_states), dtype=jnp.int32)
        digits = index[:, None] // powers[None] % num_values
        values = jax.vmap(value_over_hidden if over_hidden else value_over_visible)(digits)
        return jax.nn.logsumexp(jnp.where(index < num_states, values, -jnp.inf))

    return jax.lax.map(block, jnp.arange(0, num_states, _STATES_AT_ONCE, dtype=jnp.int32))
