"""Restricted Boltzmann machines with the hidden units summed out.

    log pi(v) = b'v + sum_m softplus(c_m + W_m v)

v is the embedding of the visible sites: 0 or 1 each (`RBM`), or a one-hot vector each (`CategoricalRBM`). Given v the
hidden unit m is on with probability sigmoid(c_m + W_m v), and given h the sites are independent with logits b + W'h.
"""

import math
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments, real_array
from discrax.core.files import write_whole
from discrax.core.space import Binary, Categorical
from discrax.core.target import Layered

_ARRAYS = ("weights", "visible_bias", "hidden_bias", "shape")


class RBM(Layered):
    """Binary sites: log pi(v) = b'v + sum_m softplus(c_m + W_m v), v in {0, 1}^visible."""

    space: Binary
    weights: Float[Array, "hidden visible"]
    visible_bias: Float[Array, " visible"]
    hidden_bias: Float[Array, " hidden"]

    def __init__(
        self,
        weights: ArrayLike,
        visible_bias: ArrayLike,
        hidden_bias: ArrayLike,
        *,
        shape: int | Sequence[int] | None = None,
    ):
        """`shape` arranges the sites, for example (28, 28); by default they lie in a row."""
        given = {"weights": weights, "visible_bias": visible_bias, "hidden_bias": hidden_bias}
        W, b, c = (_float(name, array) for name, array in given.items())
        if W.ndim != 2:
            raise ValueError(f"weights must have shape (hidden, visible), but has shape {W.shape}.")
        _check_biases(b, W.shape[1:], c, W.shape[:1])
        self.space = Binary(W.shape[1] if shape is None else shape)
        _check_sites(self.space.shape, W.shape[1])
        self.weights, self.visible_bias, self.hidden_bias = W, b, c

    @classmethod
    def pretrained(cls, *, shape: int | Sequence[int] | None = None) -> "RBM":
        """25 hidden units on the 784 pixels of MNIST, shipped with the package in half precision.

        Trained with `discrax.learn.train_rbm` on the 60,000 training images, each pixel 1 with probability value / 255:
        persistent chains, 50 rounds of block Gibbs a batch of 100, 3 epochs, learning rate 1e-3.
        """
        with resources.files("discrax.targets").joinpath("weights", "rbm_mnist.npz").open("rb") as file:
            return cls(**_arrays(file, "rbm_mnist.npz", 2, shape))

    @classmethod
    @checked_arguments
    def load(cls, path: str | Path, *, shape: int | Sequence[int] | None = None) -> "RBM":
        """From a file that `save` wrote; `shape` rearranges the sites."""
        return cls(**_arrays(path, os.fspath(path), 2, shape))

    def save(self, path: str | os.PathLike) -> None:
        """Writes an npz file with the arrays weights, visible_bias, hidden_bias and shape."""
        _save(path, self)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return jnp.dot(self.visible_bias, e.reshape(-1)) + jnp.sum(jax.nn.softplus(self.hidden_logits(e)))

    def hidden_logits(self, e: Float[Array, "..."]) -> Float[Array, " hidden"]:
        return self.hidden_bias + self.weights @ e.reshape(-1)

    def site_logits(self, h: Float[Array, " hidden"]) -> Float[Array, "..."]:
        return (self.visible_bias + h @ self.weights).reshape(self.space.shape)


class CategoricalRBM(Layered):
    """One-hot sites: log pi(v) = sum_n b_n'v_n + sum_m softplus(c_m + sum_n W_mn'v_n)."""

    space: Categorical
    weights: Float[Array, "hidden visible levels"]
    visible_bias: Float[Array, "visible levels"]
    hidden_bias: Float[Array, " hidden"]

    def __init__(
        self,
        weights: ArrayLike,
        visible_bias: ArrayLike,
        hidden_bias: ArrayLike,
        *,
        shape: int | Sequence[int] | None = None,
    ):
        """`shape` arranges the sites, for example (28, 28); by default they lie in a row."""
        given = {"weights": weights, "visible_bias": visible_bias, "hidden_bias": hidden_bias}
        W, b, c = (_float(name, array) for name, array in given.items())
        if W.ndim != 3:
            raise ValueError(f"weights must have shape (hidden, visible, levels), but has shape {W.shape}.")
        _check_biases(b, W.shape[1:], c, W.shape[:1])
        self.space = Categorical(W.shape[1] if shape is None else shape, W.shape[2])
        _check_sites(self.space.shape, W.shape[1])
        self.weights, self.visible_bias, self.hidden_bias = W, b, c

    @classmethod
    def pretrained(cls, *, shape: int | Sequence[int] | None = None) -> "CategoricalRBM":
        """25 hidden units on the 784 pixels of Fashion-MNIST in 4 levels, shipped with the package in half precision.

        Trained with `discrax.learn.train_rbm` on the 60,000 training images, level = value // 64: chains from the data,
        100 rounds of block Gibbs a batch of 100, 4 epochs, learning rate 1e-3. It has many modes (a shirt, a shoe, a
        bag) that chains seldom leave.
        """
        with resources.files("discrax.targets").joinpath("weights", "rbm_fashion_mnist.npz").open("rb") as file:
            return cls(**_arrays(file, "rbm_fashion_mnist.npz", 3, shape))

    @classmethod
    @checked_arguments
    def load(cls, path: str | Path, *, shape: int | Sequence[int] | None = None) -> "CategoricalRBM":
        """From a file that `save` wrote; `shape` rearranges the sites."""
        return cls(**_arrays(path, os.fspath(path), 3, shape))

    def save(self, path: str | os.PathLike) -> None:
        """Writes an npz file with the arrays weights, visible_bias, hidden_bias and shape."""
        _save(path, self)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        linear = jnp.dot(self.visible_bias.reshape(-1), e.reshape(-1))
        return linear + jnp.sum(jax.nn.softplus(self.hidden_logits(e)))

    def hidden_logits(self, e: Float[Array, "..."]) -> Float[Array, " hidden"]:
        return self.hidden_bias + self.weights.reshape(len(self.hidden_bias), -1) @ e.reshape(-1)

    def site_logits(self, h: Float[Array, " hidden"]) -> Float[Array, "..."]:
        logits = self.visible_bias.reshape(-1) + h @ self.weights.reshape(len(self.hidden_bias), -1)
        return logits.reshape(*self.space.shape, self.space.num_levels)


def _float(name: str, array: ArrayLike) -> Array:
    traced = isinstance(array, Tracer)
    return jnp.asarray(array if traced else real_array(name, array), jnp.result_type(float))


def _check_biases(b: Array, visible: tuple[int, ...], c: Array, hidden: tuple[int, ...]) -> None:
    for name, bias, expected in (("visible_bias", b, visible), ("hidden_bias", c, hidden)):
        if bias.shape != expected:
            raise ValueError(f"{name} must have shape {expected} to go with the weights, but has shape {bias.shape}.")


def _check_sites(shape: tuple[int, ...], visible: int) -> None:
    if math.prod(shape) != visible:
        raise ValueError(f"shape must arrange the {visible} visible sites, but {shape} has {math.prod(shape)}.")


def _arrays(file: Any, name: str, num_axes: int, shape: int | Sequence[int] | None) -> dict:
    """The arguments of a machine's constructor from an npz file; `num_axes` is that of its weights."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise type(error)(
            f"{name} must be a file that `save` of an RBM wrote, but it cannot be read: {why}."
        ) from error
    except Exception as error:
        raise ValueError(f"{name} is not an npz file of arrays; `save` of an RBM writes one.") from error
    missing = [key for key in _ARRAYS if key not in arrays]
    if missing:
        raise ValueError(
            f"{name} is not a saved RBM: expected the arrays {', '.join(_ARRAYS)}, but {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing."
        )
    if arrays["weights"].ndim != num_axes:
        right, other = ("RBM", "CategoricalRBM") if num_axes == 2 else ("CategoricalRBM", "RBM")
        raise ValueError(
            f"{name} does not hold a {right}: its weights have shape {arrays['weights'].shape}; try {other}.load."
        )
    return {key: arrays[key] for key in _ARRAYS[:3]} | {"shape": arrays["shape"].tolist() if shape is None else shape}


def _save(path: str | os.PathLike, machine: RBM | CategoricalRBM) -> None:
    arrays = {
        "weights": np.asarray(machine.weights),
        "visible_bias": np.asarray(machine.visible_bias),
        "hidden_bias": np.asarray(machine.hidden_bias),
        "shape": np.array(machine.space.shape),
    }
    # A file object, since numpy adds a suffix to a name that lacks one.
    write_whole(os.fspath(path), lambda file: np.savez_compressed(file, **arrays))  # pyright: ignore[reportArgumentType]
