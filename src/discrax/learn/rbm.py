"""Contrastive divergence for restricted Boltzmann machines.

The gradient of the mean log-likelihood is E_data[grad log pi(v)] - E_model[grad log pi(v)], with log pi unnormalised.
The second mean is estimated from chains that alternate between the two layers,

    h_m ~ Bernoulli(sigmoid(c_m + W_m v)),        v_n ~ sigmoid or softmax of (b + W'h)_n,

for `num_gibbs` rounds, started from the batch (CD-k, Hinton 2002) or from where the last batch's chains ended (PCD,
Tieleman 2008).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.levels import draw_levels
from discrax.core.space import code_dtype
from discrax.targets.rbm import RBM, CategoricalRBM

_RARE = 0.01  # frequencies are clipped to [0.01, 0.99] before their logarithm is the first bias


def train_rbm(
    key: PRNGKeyArray,
    data: ArrayLike,
    num_hidden: int,
    *,
    num_levels: int = 2,
    num_gibbs: int = 100,
    batch_size: int = 100,
    num_epochs: int = 1,
    learning_rate: float = 1e-3,
    persistent: bool = False,
    progress: Callable[[int, float], Any] | None = None,
) -> RBM | CategoricalRBM:
    """Trains an `RBM` (two levels) or a `CategoricalRBM` (more) on integer codes of shape (rows, visible).

    Adam on batches of rows in random order; the rows left over when `batch_size` does not divide them sit out one
    epoch. The visible bias starts at the log-odds of the data (clipped to 0.01 .. 0.99), the weights uniform in
    +-1/sqrt(visible), the hidden bias at 0. With `persistent` the chains go on from batch to batch.
    `progress(epoch, gap)` is called after each epoch with the mean of log pi(data) - log pi(chains), which is near 0
    while the chains look like the data.
    """
    try:
        import optax
    except ImportError as error:
        raise ImportError('Training needs optax, which is missing: pip install "discrax[learn]".') from error
    counts = {"num_hidden": num_hidden, "num_gibbs": num_gibbs, "batch_size": batch_size, "num_epochs": num_epochs}
    for name, count in counts.items():
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a positive whole number, but got {count!r}.")
    if not isinstance(num_levels, int | np.integer) or num_levels < 2:
        raise ValueError(f"num_levels must be a whole number of at least 2, but got {num_levels!r}.")
    if not learning_rate > 0:
        raise ValueError(f"learning_rate must be positive, but got {learning_rate}.")
    rows = _codes(data, num_levels)
    batch_size = min(batch_size, len(rows))
    num_batches = len(rows) // batch_size

    for_start, for_chains, for_epochs = random.split(random.as_threefry(key), 3)
    machine = _untrained(for_start, rows, num_hidden, num_levels)
    optimiser = optax.adam(learning_rate)
    memory = optimiser.init(eqx.filter(machine, eqx.is_array))
    picks = random.integers(for_chains, batch_size, len(rows))
    chains = jnp.asarray(rows[np.asarray(picks)])

    def train_batch(carry, inputs):
        machine, memory, chains = carry
        key, batch = inputs
        chains = _alternate(key, machine, chains if persistent else batch, num_gibbs)
        gap, gradient = eqx.filter_value_and_grad(_gap)(machine, batch, chains)
        updates, memory = optimiser.update(jax.tree.map(jnp.negative, gradient), memory)
        return (eqx.apply_updates(machine, updates), memory, chains), gap

    @eqx.filter_jit
    def train_epoch(key, carry, batches):
        carry, gaps = jax.lax.scan(train_batch, carry, (random.split(key, num_batches), batches))
        return carry, jnp.mean(gaps)

    carry = (machine, memory, chains)
    for epoch, key_of_epoch in enumerate(random.split(for_epochs, num_epochs)):
        for_order, for_batches = random.split(key_of_epoch, 2)
        order = np.argsort(np.asarray(random.words(for_order, len(rows))), kind="stable")
        batches = rows[order[: num_batches * batch_size]].reshape(num_batches, batch_size, -1)
        carry, gap = train_epoch(for_batches, carry, jnp.asarray(batches))
        if progress is not None:
            progress(epoch + 1, float(gap))
    return carry[0]


def _codes(data: ArrayLike, num_levels: int) -> Integer[np.ndarray, "rows visible"]:
    rows = np.asarray(data)
    if rows.ndim != 2:
        raise ValueError(f"data must have shape (rows, visible), but has shape {rows.shape}; flatten images first.")
    if rows.size == 0:
        raise ValueError(f"data is empty: its shape is {rows.shape}; give at least one row and one site.")
    if not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"data must hold integer codes 0..{num_levels - 1}, but is an array of {rows.dtype}.")
    low, high = int(rows.min()), int(rows.max())
    if low < 0 or high >= num_levels:
        raise ValueError(
            f"data must hold codes 0..{num_levels - 1}, but they run from {low} to {high}; "
            "quantise it or set num_levels."
        )
    return rows.astype(code_dtype(num_levels))


def _untrained(key: PRNGKeyArray, rows: np.ndarray, num_hidden: int, num_levels: int) -> RBM | CategoricalRBM:
    visible = rows.shape[1]
    shape = (num_hidden, visible) if num_levels == 2 else (num_hidden, visible, num_levels)
    uniform = random.uniform(key, int(np.prod(shape))).reshape(shape)
    weights = (2 * uniform - 1) / np.sqrt(visible).item()
    frequencies = np.stack([np.mean(rows == level, axis=0) for level in range(num_levels)], axis=-1)
    bias = np.log(np.clip(frequencies, _RARE, 1 - _RARE))
    if num_levels == 2:
        return RBM(weights, bias[:, 1] - bias[:, 0], np.zeros(num_hidden))
    return CategoricalRBM(weights, bias, np.zeros(num_hidden))


def _gap(machine: RBM | CategoricalRBM, batch: Array, chains: Array) -> Float[Array, ""]:
    """Mean of log pi over the batch minus that over the chains: its gradient is that of the likelihood."""

    def mean(rows):
        return jnp.mean(jax.vmap(lambda x: machine.log_prob(machine.space.embed(x)))(rows))

    return mean(batch) - mean(chains)


def _alternate(key: PRNGKeyArray, machine: RBM | CategoricalRBM, v: Array, num_rounds: int) -> Integer[Array, "b n"]:
    """`num_rounds` rounds of h given v, then v given h, for a batch of states."""
    (batch_size, visible), hidden = v.shape, machine.hidden_bias.shape[0]
    W, b, c = machine.weights.reshape(hidden, -1), machine.visible_bias.reshape(1, -1), machine.hidden_bias[None]

    def round_trip(v, key):
        words = random.words(key, batch_size * (hidden + visible)).reshape(batch_size, -1)
        e = machine.space.embed(v).reshape(batch_size, -1)
        h = random.to_uniform(words[:, :hidden]) < jax.nn.sigmoid(c + e @ W.T)
        logits = b + h.astype(W.dtype) @ W
        if isinstance(machine, RBM):
            return (random.to_uniform(words[:, hidden:]) < jax.nn.sigmoid(logits)).astype(v.dtype), None
        return draw_levels(words[:, hidden:], logits.reshape(*v.shape, -1)).astype(v.dtype), None

    return jax.lax.scan(round_trip, v, random.split(key, num_rounds))[0]
