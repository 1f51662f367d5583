"""Graphs of the computations of five classical image networks, which are cut into parts.

Networks are written out here for the shapes of their layers alone: nothing is computed, so parameters have no values.
Batch normalisation uses the statistics of the batch, as in training. The graph of a training step is that of the loss,
its gradient, and a step of gradient descent.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from discrax.problems.computation import computation_graph
from discrax.problems.graph import Graph


def network_graph(name: str, training: bool = True) -> Graph:
    """The graph of mnist_conv, alexnet, vgg16, resnet50 or inception_v3: of a training step, or of the loss alone."""
    if name not in _NETWORKS:
        raise ValueError(f"The networks are {', '.join(_NETWORKS)}, but got {name!r}.")
    network, image_shape, num_classes = _NETWORKS[name]
    images = jax.ShapeDtypeStruct((8, *image_shape), jnp.float32)
    labels = jax.ShapeDtypeStruct((8, num_classes), jnp.float32)
    shapes: list[jax.ShapeDtypeStruct] = []

    def declare(*shape: int) -> Float[Array, "..."]:
        shapes.append(jax.ShapeDtypeStruct(shape, jnp.float32))
        return jnp.zeros(shape)

    def loss(parameters: Sequence[Array], x: Array, y: Array) -> Array:
        remaining = iter(parameters)
        logits = network(lambda *shape: next(remaining), x)
        return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(logits), axis=-1))

    def step(parameters: Sequence[Array], x: Array, y: Array) -> tuple:
        value, gradient = jax.value_and_grad(loss)(parameters, x, y)
        return value, [parameter - 0.01 * slope for parameter, slope in zip(parameters, gradient, strict=True)]

    with jax.numpy_rank_promotion("allow"):  # a bias is a vector, whatever it is added to
        jax.eval_shape(lambda x: network(declare, x), images)
        return computation_graph(step if training else loss, shapes, images, labels)


# The networks. `parameter(*shape)` hands out the next parameter; images are (batch, height, width, channels).

Parameter = Callable[..., Array]


Sides = int | tuple[int, int]


def _conv(
    parameter: Parameter,
    x: Array,
    channels: int,
    size: Sides,
    stride: int = 1,
    padding: str = "SAME",
    bias: bool = True,
) -> Array:
    height, width = (size, size) if isinstance(size, int) else size
    kernel = parameter(height, width, x.shape[-1], channels)
    layout = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=layout)
    return x + parameter(channels) if bias else x


def _dense(parameter: Parameter, x: Array, features: int) -> Array:
    return x @ parameter(x.shape[-1], features) + parameter(features)


def _batch_norm(parameter: Parameter, x: Array) -> Array:
    mean = jnp.mean(x, axis=(0, 1, 2))
    variance = jnp.mean((x - mean) ** 2, axis=(0, 1, 2))
    scale = parameter(x.shape[-1]) * lax.rsqrt(variance + 1e-5)
    return (x - mean) * scale + parameter(x.shape[-1])


def _max_pool(x: Array, size: int, stride: int, padding: str = "VALID") -> Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)


def _mean_pool(x: Array) -> Array:
    """Of 3 x 3, without shrinking the image."""
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9


def _classify(parameter: Parameter, x: Array, hidden: Sequence[int] = (4096, 4096), num_classes: int = 1000) -> Array:
    x = x.reshape(x.shape[0], -1)
    for features in hidden:
        x = jax.nn.relu(_dense(parameter, x, features))
    return _dense(parameter, x, num_classes)


def _mnist_conv(parameter: Parameter, x: Array) -> Array:
    for channels in (32, 64):
        x = _max_pool(jax.nn.relu(_conv(parameter, x, channels, 5)), 2, 2)
    return _classify(parameter, x, (1024,), 10)


def _alexnet(parameter: Parameter, x: Array) -> Array:
    x = _max_pool(jax.nn.relu(_conv(parameter, x, 96, 11, 4, "VALID")), 3, 2)
    x = _max_pool(jax.nn.relu(_conv(parameter, x, 256, 5)), 3, 2)
    for channels in (384, 384, 256):
        x = jax.nn.relu(_conv(parameter, x, channels, 3))
    return _classify(parameter, _max_pool(x, 3, 2))


def _vgg16(parameter: Parameter, x: Array) -> Array:
    for channels, depth in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(depth):
            x = jax.nn.relu(_conv(parameter, x, channels, 3))
        x = _max_pool(x, 2, 2)
    return _classify(parameter, x)


def _resnet50(parameter: Parameter, x: Array) -> Array:
    def normed(x: Array, channels: int, size: int, stride: int = 1) -> Array:
        return _batch_norm(parameter, _conv(parameter, x, channels, size, stride, bias=False))

    x = _max_pool(jax.nn.relu(normed(x, 64, 7, 2)), 3, 2, "SAME")
    for stage, (channels, depth) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(depth):
            stride = 2 if block == 0 and stage > 0 else 1
            shortcut = normed(x, 4 * channels, 1, stride) if block == 0 else x
            y = jax.nn.relu(normed(x, channels, 1))
            y = jax.nn.relu(normed(y, channels, 3, stride))
            x = jax.nn.relu(normed(y, 4 * channels, 1) + shortcut)
    return _dense(parameter, jnp.mean(x, axis=(1, 2)), 1000)


def _inception_v3(parameter: Parameter, x: Array) -> Array:
    def conv(x: Array, channels: int, size: Sides, stride: int = 1, padding: str = "SAME") -> Array:
        return jax.nn.relu(_batch_norm(parameter, _conv(parameter, x, channels, size, stride, padding, bias=False)))

    def chain(x: Array, *layers: tuple[int, Sides]) -> Array:
        for channels, size in layers:
            x = conv(x, channels, size)
        return x

    join = partial(jnp.concatenate, axis=-1)
    row, column = (1, 7), (7, 1)
    x = conv(conv(conv(x, 32, 3, 2, "VALID"), 32, 3, 1, "VALID"), 64, 3)
    x = conv(conv(_max_pool(x, 3, 2), 80, 1, 1, "VALID"), 192, 3, 1, "VALID")
    x = _max_pool(x, 3, 2)
    for channels in (32, 64, 64):
        fives, threes = chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3))
        x = join([conv(x, 64, 1), fives, threes, conv(_mean_pool(x), channels, 1)])
    threes = conv(chain(x, (64, 1), (96, 3)), 96, 3, 2, "VALID")
    x = join([conv(x, 384, 3, 2, "VALID"), threes, _max_pool(x, 3, 2)])
    for c in (128, 160, 160, 192):
        once = chain(x, (c, 1), (c, row), (192, column))
        twice = chain(x, (c, 1), (c, column), (c, row), (c, column), (192, row))
        x = join([conv(x, 192, 1), once, twice, conv(_mean_pool(x), 192, 1)])
    threes = conv(conv(x, 192, 1), 320, 3, 2, "VALID")
    sevens = conv(chain(x, (192, 1), (192, row), (192, column)), 192, 3, 2, "VALID")
    x = join([threes, sevens, _max_pool(x, 3, 2)])
    for _ in range(2):
        once, twice = conv(x, 384, 1), chain(x, (448, 1), (384, 3))
        split = [conv(branch, 384, size) for branch in (once, twice) for size in ((1, 3), (3, 1))]
        x = join([conv(x, 320, 1), *split, conv(_mean_pool(x), 192, 1)])
    return _dense(parameter, jnp.mean(x, axis=(1, 2)), 1000)


_NETWORKS: dict[str, tuple[Callable[[Parameter, Array], Array], tuple[int, int, int], int]] = {
    "mnist_conv": (_mnist_conv, (28, 28, 1), 10),
    "alexnet": (_alexnet, (227, 227, 3), 1000),
    "vgg16": (_vgg16, (224, 224, 3), 1000),
    "resnet50": (_resnet50, (224, 224, 3), 1000),
    "inception_v3": (_inception_v3, (299, 299, 3), 1000),
}
