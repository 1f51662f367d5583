"""Couplings that are learnt again: J* is known, data are samples of its model, and J is learnt from them.

    J_estimation_error = ||J - J*||_F / sqrt(d), and how far the chains are from the samples

A cell counts in its budget the batch (num_chains), the updates (num_samples) and the sampler's steps per update
(thinning).
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax import samplers, targets
from discrax.bench.experiments import training
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, check_complete, experiment, input_of
from discrax.core.kernel import Kernel, replaced
from discrax.core.space import Spin
from discrax.core.target import Target
from discrax.learn import models, quality
from discrax.sampling import sample

_COMPARED = 5000  # states of the chains and samples that are compared
_SHOWN = 16  # pictures


class Known(NamedTuple):
    """A model whose couplings are known, and samples of it, from which they are to be learnt."""

    couplings: Float[np.ndarray, "d d"]  # J*
    rows: Integer[np.ndarray, "rows *shape"]
    untrained: Callable[[int], Target]  # of a seed
    part: Callable[[Any], Array]  # of a model: what is trained
    factor: float  # part(model) = factor * J


class Following(NamedTuple):
    """A sampler that is made from the data, and may follow the model after each update."""

    kernel: Callable[[Known], Kernel]
    refresh: Callable[[Any, Any], Any] | None = None


@experiment
def estimation(
    cell: Cell, learning_rate: float, l1: float = 0.0, buffer_size: int = 5000, reshuffle: bool = True
) -> Measured:
    """J learnt by persistent contrastive divergence with the cell's sampler; `l1` weighs the sum of all |J_ij|."""
    known: Known = input_of(cell.target)
    sampler, refresh = cell.sampler(), None
    if isinstance(sampler, Following):
        sampler, refresh = sampler.kernel(known), sampler.refresh
    with nullcontext() if refresh is None else _one_thread():
        trained = training.train_cell(
            cell, known.untrained(cell.seed), known.rows, sampler=sampler, refresh=refresh, buffer_size=buffer_size,
            reshuffle=reshuffle, learning_rate=learning_rate * known.factor, l1=l1 / known.factor, trains=known.part,
            largest_gap=1e30,  # samplers that fail are part of the comparison
        )  # fmt: skip
    J = np.asarray(known.part(trained.model), np.float64) / known.factor
    error = float(np.linalg.norm(J - known.couplings) / math.sqrt(len(J)))
    chains, rows = trained.buffer[:_COMPARED], known.rows[:_COMPARED]
    numbers = [
        Number("J_estimation_error", error),
        Number("mmd", quality.mmd(chains, rows)),
        Number("marginal_error", quality.marginal_error(chains, rows)),
        Number("covariance_error", quality.covariance_error(chains, rows)),
    ]
    if chains.ndim == 3:
        numbers += training.pixels(chains[None, :_SHOWN], every=cell.budget.thinning)
    return numbers + training.training_numbers(trained), training.time_training(trained)


def _one_thread() -> AbstractContextManager:
    """With several threads OpenBLAS takes 80 times as long for the eigenvectors of a small matrix as with one."""
    if jax.default_backend() != "cpu":  # it finds them itself
        return nullcontext()
    import scipy.linalg  # noqa: F401  # loads the library whose threads are limited
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    return threadpool_limits(1, user_api="blas")


def ising_lattice(side: int = 10, strength: float = 0.2, num_rows: int = 10_000, seed: int = 0) -> Known:
    """log pi(s) = s'J s on a periodic square lattice, all J_ij of neighbours equal."""
    J = lattice_couplings(side, strength)
    true, num_chains = targets.Ising.dense(2 * J), -(-num_rows // 10)

    def samples() -> Integer[np.ndarray, "rows d"]:
        # Every step is a block Gibbs update of all spins.
        kernel = samplers.pavg(step_size=1000.0, M=2 * J)
        result = sample(
            jax.random.key(seed), true, kernel,
            num_chains=num_chains, num_warmup=500, num_samples=10, thinning=50, adaptation=None, progress=False,
        )  # fmt: skip
        check_complete(result)
        assert result.draws is not None
        return result.draws.reshape(-1, side**2)[:num_rows].astype(np.int8)

    rows = training.keep_in_cache(
        f"ising-rows-{side}-{strength:g}-{num_rows}-{seed}", np.zeros((num_rows, side**2), np.int8), samples
    )

    def untrained(seed: int) -> Target:
        return targets.Ising.dense(2 * np.asarray(models.random_couplings(jax.random.key(seed), side**2)))

    return Known(J, rows, untrained, _ising_matrix, factor=2.0)


def lattice_couplings(side: int, strength: float) -> Float[np.ndarray, "d d"]:
    """J of a periodic square lattice, (side^2, side^2): `strength` between neighbours."""
    J, sites = np.zeros((side**2, side**2)), np.arange(side**2).reshape(side, side)
    for axis in (0, 1):
        neighbours = np.roll(sites, -1, axis)
        J[sites, neighbours] = J[neighbours, sites] = strength
    return J


def _ising_matrix(model: targets.Ising) -> Array:
    return model.coupling.matrix  # ty: ignore[missing-attribute]


# A step size eps for codes 0 and 1 is eps * h^2 for an embedding whose levels are h apart, and a Hessian is W / h^2.


def pavg_of_model(step_size: float = 1000.0) -> Following:
    """PAVG with the Hessian of an Ising model, anew after each update: every step is accepted."""
    return Following(lambda known: samplers.pavg(step_size=step_size, M=np.eye(len(known.couplings))), _follow_ising)


def _follow_ising(kernel: Any, model: targets.Ising) -> Any:
    matrix = _ising_matrix(model)
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    return replaced(kernel, metric=replaced(kernel.metric, values=values, vectors=vectors))


def pavg_of_data(step_size: float) -> Following:
    """PAVG with gamma times the covariance of the data, step size and gamma for codes 0 and 1; gamma begins at 1."""

    def kernel(known: Known) -> Kernel:
        squared = 4 if isinstance(known.untrained(0).space, Spin) else 1
        covariance = np.cov(known.rows.reshape(len(known.rows), -1), rowvar=False)
        return samplers.pavg(step_size=step_size * squared, M=covariance / squared)

    return Following(kernel)
