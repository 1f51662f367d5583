"""The normalising constant of an energy model, by annealed importance sampling (`discrax.log_normaliser`)."""

from collections.abc import Sequence

import jax
from jax.sharding import Mesh
from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core.kernel import Kernel
from discrax.core.target import Target
from discrax.sampling.log_normaliser import log_normaliser
from discrax.sampling.normaliser import Normaliser


def ais(
    key: PRNGKeyArray,
    target: Target,
    *,
    reference: ArrayLike | None = None,
    num_chains: int = 100,
    num_temperatures: int = 1000,
    sampler: str | Kernel = "pas",
    steps: int = 1,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    progress: bool | None = None,
) -> Normaliser:
    """log Z of a target by annealing `num_chains` chains from independent sites.

    `reference` has the probabilities of the independent sites; `frequencies(rows)` makes them from data. It and the
    other settings are those of `discrax.log_normaliser`.
    """
    return log_normaliser(
        key,
        target,
        "annealing",
        reference=reference,
        sampler=sampler,
        num_chains=num_chains,
        num_temperatures=num_temperatures,
        steps=steps,
        devices=devices,
        progress=progress,
    )
