"""A convolutional network with couplings of all pairs of pixels, trained on USPS: the truth that is learnt again.

    log pi(s) = s'J s + b's + network(s) + constant,     s in {-1, +1}^256

Everything begins as in the authors' code: weights and biases of a layer with m inputs uniform within 1 / sqrt(m), J_ij
normal with deviation 0.01 before it is made symmetric, b_i = log(mean of pixel i + 0.01), and chains at independent
pixels with the means of the data. Training has GWG, batches of 50, a buffer that is reshuffled before each pass,
l1 sum |J_ij| and, for the network alone, weight decay that Adam's moments do not see.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.bench.experiments import training
from discrax.bench.papers.enhanced_gradient_mcmc.couplings import Known
from discrax.core.kernel import replaced
from discrax.core.space import Binary
from discrax.core.target import Target
from discrax.learn import models
from discrax.learn.mixing import snapshots
from discrax.learn.networks import ConvNet
from discrax.learn.training import pcd

_L1, _DECAY = 0.01, 1e-4
_HALVES = 2.0  # `NetworkModel` has s'W s / 2 and, for codes e with s = 2 e - 1, c'e: so W = 2 J and c = 2 b


def convolutional(**training_settings: Any) -> Known:
    """The couplings of the trained network, and its samples, from which they are to be learnt again."""
    truth, rows = _trained(**training_settings)

    def untrained(seed: int) -> Target:
        couplings = _HALVES * models.random_couplings(jax.random.key(seed), truth.space.num_sites)
        return replaced(truth, couplings=couplings)

    W = np.asarray(truth.couplings, np.float64)
    return Known((W + W.T) / 2 / _HALVES, rows, untrained, network_couplings, factor=_HALVES)


def network(**training_settings: Any) -> models.NetworkModel:
    """The trained network itself."""
    return _trained(**training_settings)[0]


def _trained(
    num_updates: int, num_steps: int, learning_rate: float, num_reference: int, num_rows: int = 5000, seed: int = 0
) -> tuple[models.NetworkModel, Integer[np.ndarray, "rows height width"]]:
    """The network after `num_updates` of `num_steps` steps of GWG, and its chains after `num_reference` steps more."""
    images = training.image_set("usps")
    untrained_truth = _untrained(np.asarray(images.train), seed)

    def make() -> tuple[Any, Integer[np.ndarray, "rows *shape"]]:
        trained = pcd(
            jax.random.key(seed), untrained_truth, images, sampler="gwg", num_steps=num_steps, num_updates=num_updates,
            batch_size=50, buffer_size=num_rows, reshuffle=True, optimiser=_optimiser(learning_rate), adaptation=None,
            penalty=_penalty, every=max(1, num_updates // 20), progress=False,
        )  # fmt: skip
        training.check_trained(trained)
        (rows,) = snapshots(
            jax.random.key(seed + 1), trained.model, "gwg", num_chains=num_rows, num_steps=num_reference,
            every=num_reference, num_warmup=0, init=trained.buffer[:num_rows], progress=False,
        )  # fmt: skip
        return trained.model, rows.astype(np.int8)

    name = f"convnet-usps-released-{num_updates}-{num_steps}-{learning_rate:g}-{num_reference}-{num_rows}-{seed}"
    return training.keep_in_cache(name, (untrained_truth, np.zeros((num_rows, *images.shape), np.int8)), make)


def _untrained(rows: Integer[np.ndarray, "rows height width"], seed: int) -> models.NetworkModel:
    shape, (for_network, for_pairs) = rows.shape[1:], jax.random.split(jax.random.key(seed), 2)
    bias = _HALVES * np.log(rows.mean(axis=0) + 0.01)
    couplings = _HALVES * models.random_couplings(for_pairs, bias.size)
    return models.NetworkModel(ConvNet(for_network, 1, shape), Binary(shape), bias=bias, couplings=couplings)


@lru_cache(maxsize=4)  # the same object for the same rate, so that programs are shared
def _optimiser(learning_rate: float) -> Any:
    import optax

    def is_network(model: models.NetworkModel) -> Any:
        network = jax.tree.map(lambda _: True, model.network)
        return replaced(jax.tree.map(lambda _: False, model), network=network)

    def is_no_network(model: models.NetworkModel) -> Any:
        return jax.tree.map(lambda flag: not flag, is_network(model))

    adam = optax.adamw(learning_rate, eps=1e-7, weight_decay=_DECAY, mask=is_network)
    return optax.chain(adam, optax.masked(optax.scale(_HALVES), is_no_network))


def _penalty(model: models.NetworkModel) -> Float[Array, ""]:
    return _L1 / _HALVES * jnp.sum(jnp.abs(network_couplings(model)))


def network_couplings(model: models.NetworkModel) -> Array:
    """The part that is learnt again."""
    assert model.couplings is not None
    return model.couplings
