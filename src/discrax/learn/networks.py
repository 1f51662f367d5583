"""Networks that map an image, (channels, height, width), to a number."""

import math
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from discrax.core import random

Network = TypeVar("Network", bound=eqx.Module)


class ResidualBlock(eqx.Module):
    """swish(shortcut(z) + conv(swish(conv(z)))), 3x3 convolutions; with stride 2 it halves the picture."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    shortcut: eqx.nn.Conv2d | None

    def __init__(self, key: PRNGKeyArray, width: int, stride: int):
        keys = random.split(random.as_threefry(key), 3)
        self.first = eqx.nn.Conv2d(width, width, 3, stride, 1, key=keys[0])
        self.second = eqx.nn.Conv2d(width, width, 3, 1, 1, key=keys[1])
        self.shortcut = None if stride == 1 else eqx.nn.Conv2d(width, width, 3, stride, 1, key=keys[2])

    def __call__(self, z: Float[Array, "width h w"]) -> Float[Array, "width h2 w2"]:
        change = self.second(jax.nn.swish(self.first(z)))
        return jax.nn.swish((z if self.shortcut is None else self.shortcut(z)) + change)


class ResNet(eqx.Module):
    """A 3x3 convolution, residual blocks of which the first two halve the picture, the mean over pixels, a linear map.

    The network of Grathwohl et al. (2021) and Sun et al. (2022): 64 channels, 8 blocks, no normalisation. In their code
    the two shortcuts that halve the picture look at one pixel, here at 3x3.
    """

    stem: eqx.nn.Conv2d
    blocks: list[ResidualBlock]
    head: eqx.nn.Linear

    def __init__(self, key: PRNGKeyArray, channels: int, width: int = 64, num_blocks: int = 8):
        for_stem, for_head, *for_blocks = random.split(random.as_threefry(key), num_blocks + 2)
        self.stem = eqx.nn.Conv2d(channels, width, 3, 1, 1, key=for_stem)
        self.blocks = [ResidualBlock(each, width, 2 if i < 2 else 1) for i, each in enumerate(for_blocks)]
        self.head = eqx.nn.Linear(width, "scalar", key=for_head)

    def __call__(self, image: Float[Array, "channels h w"]) -> Float[Array, ""]:
        z = self.stem(image)
        for block in self.blocks:
            z = block(z)
        return self.head(jnp.mean(z, axis=(1, 2)))


_LAYERS = ((16, 3, 1, 1), (32, 4, 2, 1), (32, 3, 1, 1), (64, 4, 2, 1), (64, 3, 1, 1), (128, 4, 2, 1), (128, 2, 1, 0))


class ConvNet(eqx.Module):
    """Seven convolutions with swish and a linear map: the network of Rhodes and Gutmann (2022) for 16x16 images."""

    layers: list[eqx.nn.Conv2d]
    head: eqx.nn.Linear

    def __init__(self, key: PRNGKeyArray, channels: int, shape: tuple[int, int] = (16, 16)):
        for_head, *for_layers = random.split(random.as_threefry(key), len(_LAYERS) + 1)
        self.layers = []
        for each, (width, size, stride, padding) in zip(for_layers, _LAYERS, strict=True):
            self.layers.append(eqx.nn.Conv2d(channels, width, size, stride, padding, key=each))
            channels = width
        height, width = (side // 8 - 1 for side in shape)
        if min(height, width) < 1:
            raise ValueError(f"The convolutional network needs images of at least 16x16 pixels, but got {shape}.")
        self.head = eqx.nn.Linear(channels * height * width, "scalar", key=for_head)

    def __call__(self, image: Float[Array, "channels h w"]) -> Float[Array, ""]:
        z = image
        for layer in self.layers:
            z = jax.nn.swish(layer(z))
        return self.head(z.reshape(-1))


def initialised(key: PRNGKeyArray, network: type[Network], *arguments: Any, variance: float = 2.0) -> Network:
    """A network with weights of variance `variance` / (inputs of the layer) in convolutions (2: He et al. 2015).

    The usual 1/3 instead of 2, which the papers' code has, leaves nothing of the image after eight blocks: the value
    differs by 3e-5 between images. Adam then moves all weights in step for hundreds of updates until the network wakes,
    faster than any chain follows. With 2 it differs by one or so, and learning begins with the first update.

    Drawn by numpy: JAX would compile a program for every shape, which takes longer than the first updates.
    """
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())

    def is_layer(node) -> bool:
        return isinstance(node, eqx.nn.Conv2d | eqx.nn.Linear)

    def drawn(layer):
        if not is_layer(layer):
            return layer
        bound = 1 / math.sqrt(math.prod(layer.weight.shape[1:]))
        draw = lambda leaf, bound: jnp.asarray(rng.uniform(-bound, bound, leaf.shape), leaf.dtype)  # noqa: E731
        of_weight = math.sqrt(3 * variance) * bound if isinstance(layer, eqx.nn.Conv2d) else bound
        layer = eqx.tree_at(lambda layer: layer.weight, layer, draw(layer.weight, of_weight))
        return eqx.tree_at(lambda layer: layer.bias, layer, draw(layer.bias, bound))

    return jax.tree.map(drawn, eqx.filter_eval_shape(network, key, *arguments), is_leaf=is_layer)
