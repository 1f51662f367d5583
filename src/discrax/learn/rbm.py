"""Contrastive divergence for restricted Boltzmann machines: `pcd` with Gibbs sampling by layers.

    h_m ~ Bernoulli(sigmoid(c_m + W_m v)),        v_n ~ sigmoid or softmax of (b + W'h)_n,

for `num_gibbs` rounds, started from the batch (CD-k, Hinton 2002) or from where the last batch's chains ended (PCD,
Tieleman 2008).
"""

import numpy as np
from jaxtyping import Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import checked_arguments, whole
from discrax.core.memory import check_host_memory
from discrax.core.sites import code_dtype
from discrax.learn.frequencies import check_codes, frequencies, integer_rows
from discrax.learn.training import pcd
from discrax.samplers import gibbs
from discrax.targets.rbm import RBM, CategoricalRBM

_COPIES = 6  # of the weights: themselves, their mean, gradient, update, and Adam's two moments


@checked_arguments
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
    progress: bool | None = None,
) -> RBM | CategoricalRBM:
    """Trains an `RBM` (two levels) or a `CategoricalRBM` (more) on integer codes of shape (rows, visible).

    Adam on batches of rows in random order; the rows left over when `batch_size` does not divide them sit out one
    epoch. The visible bias starts at the log-odds of the data (mixed with 2 % of 1/2), the weights uniform in
    +-1/sqrt(visible), the hidden bias at 0. With `persistent` the chains, as many as `batch_size`, start at rows of the
    data and go on from batch to batch. For more (averaged parameters, other samplers, checkpoints) see `pcd`.
    """
    key = random.as_threefry(key)
    counts = {"num_hidden": num_hidden, "num_gibbs": num_gibbs, "batch_size": batch_size, "num_epochs": num_epochs}
    for name, count in counts.items():
        whole(name, count, least=1)
    whole("num_levels", num_levels, least=2)
    rows = integer_rows("data", data)
    if rows.ndim != 2:
        raise ValueError(f"data must have shape (rows, visible), but has shape {rows.shape}; flatten images first.")
    check_codes("data", rows, num_levels, "quantise it or set num_levels")
    rows = rows.astype(code_dtype(num_levels))
    count = num_hidden * rows.shape[1] * (1 if num_levels == 2 else num_levels)
    check_host_memory("Training", f"{count:,} weights", _COPIES * 4 * count, "use fewer hidden units or levels")
    batch_size = min(batch_size, len(rows))
    num_batches = len(rows) // batch_size
    for_weights, for_chains, for_training = random.split(key, 3)
    picks = np.asarray(random.integers(for_chains, batch_size, len(rows)))
    machine = untrained(for_weights, rows, num_hidden, num_levels)
    trained = pcd(
        for_training, machine, rows, sampler=gibbs("layers"), num_steps=num_gibbs, batch_size=batch_size,
        num_updates=num_epochs * num_batches, persistent=persistent, init=rows[picks], learning_rate=learning_rate,
        every=min(num_batches, 100), progress=progress,
    )  # fmt: skip
    if trained.is_interrupted:
        raise KeyboardInterrupt
    if trained.stopped is not None:
        raise ValueError(trained.stopped)
    assert isinstance(trained.model, RBM | CategoricalRBM)
    return trained.model


def untrained(
    key: PRNGKeyArray, rows: Integer[np.ndarray, "rows visible"], num_hidden: int, num_levels: int
) -> RBM | CategoricalRBM:
    """A machine with small random weights and the frequencies of the data."""
    visible = rows.shape[1]
    shape = (num_hidden, visible) if num_levels == 2 else (num_hidden, visible, num_levels)
    uniform = random.uniform(key, int(np.prod(shape))).reshape(shape)
    weights = (2 * uniform - 1) / np.sqrt(visible).item()
    p = frequencies(rows, num_levels)
    if num_levels == 2:
        return RBM(weights, np.log(p) - np.log1p(-p), np.zeros(num_hidden))
    return CategoricalRBM(weights, np.log(p), np.zeros(num_hidden))
