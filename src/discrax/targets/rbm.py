"""Restricted Boltzmann machines with the hidden units summed out.

    log pi(v) = b'v + sum_m softplus(c_m + W_m v)

v is the embedding of the visible sites: 0 or 1 each (`RBM`), or a one-hot vector each (`CategoricalRBM`). Given v the
hidden unit m is on with probability sigmoid(c_m + W_m v), and given h the sites are independent with logits b + W'h.
"""

import os
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self

import equinox as eqx
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


class _Machine(Layered):
    """What machines of two and of more levels share; one level axis more, or none, is all they differ in."""

    space: eqx.AbstractVar[Binary | Categorical]
    weights: Float[Array, "hidden visible *levels"]
    visible_bias: Float[Array, "visible *levels"]
    hidden_bias: Float[Array, " hidden"]
    axes: ClassVar[tuple[str, ...]]  # of the weights
    shipped: ClassVar[str]  # the file of `pretrained`

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
        if W.ndim != len(self.axes):
            raise ValueError(f"weights must have shape ({', '.join(self.axes)}), but has shape {W.shape}.")
        for name, bias, expected in (("visible_bias", b, W.shape[1:]), ("hidden_bias", c, W.shape[:1])):
            if bias.shape != expected:
                raise ValueError(
                    f"{name} must have shape {expected} to go with the weights, but has shape {bias.shape}."
                )
        visible = W.shape[1]
        space = Binary if W.ndim == 2 else partial(Categorical, num_levels=W.shape[2])
        self.space = space(visible if shape is None else shape)
        if self.space.num_sites != visible:
            raise ValueError(
                f"shape must arrange the {visible} visible sites, but {self.space.shape} has {self.space.num_sites}."
            )
        self.weights, self.visible_bias, self.hidden_bias = W, b, c

    @classmethod
    def pretrained(cls, *, shape: int | Sequence[int] | None = None) -> Self:
        """A machine that is shipped with the package in half precision."""
        with resources.files("discrax.targets").joinpath("weights", cls.shipped).open("rb") as file:
            return cls(**_arrays(file, cls.shipped, len(cls.axes), shape))

    @classmethod
    @checked_arguments
    def load(cls, path: str | Path, *, shape: int | Sequence[int] | None = None) -> Self:
        """From a file that `save` wrote; `shape` rearranges the sites."""
        return cls(**_arrays(path, os.fspath(path), len(cls.axes), shape))

    def save(self, path: str | os.PathLike) -> None:
        """Writes an npz file with the arrays weights, visible_bias, hidden_bias and shape."""
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name)) for name in _ARRAYS[:3]}
        arrays["shape"] = np.array(self.space.shape)
        # A file object, since numpy adds a suffix to a name that lacks one.
        write_whole(os.fspath(path), lambda file: np.savez_compressed(file, **arrays))

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        linear = jnp.dot(self.visible_bias.reshape(-1), e.reshape(-1))
        return linear + jnp.sum(jax.nn.softplus(self.hidden_logits(e)))

    def hidden_logits(self, e: Float[Array, "..."]) -> Float[Array, " hidden"]:
        return self.hidden_bias + self.weights.reshape(len(self.hidden_bias), -1) @ e.reshape(-1)

    def site_logits(self, h: Float[Array, " hidden"]) -> Float[Array, "..."]:
        logits = self.visible_bias.reshape(-1) + h @ self.weights.reshape(len(self.hidden_bias), -1)
        return logits.reshape(*self.space.shape, *self.visible_bias.shape[1:])


class RBM(_Machine):
    """Binary sites: log pi(v) = b'v + sum_m softplus(c_m + W_m v), v in {0, 1}^visible.

    `pretrained` has 25 hidden units on the 784 pixels of MNIST. It was trained with `discrax.learn.train_rbm` on the
    60,000 training images, each pixel 1 with probability value / 255: persistent chains, 50 rounds of block Gibbs a
    batch of 100, 3 epochs, learning rate 1e-3.
    """

    space: Binary
    axes: ClassVar[tuple[str, ...]] = ("hidden", "visible")
    shipped: ClassVar[str] = "rbm_mnist.npz"
    __init__ = _Machine.__init__


class CategoricalRBM(_Machine):
    """One-hot sites: log pi(v) = sum_n b_n'v_n + sum_m softplus(c_m + sum_n W_mn'v_n).

    `pretrained` has 25 hidden units on the 784 pixels of Fashion-MNIST in 4 levels. It was trained with
    `discrax.learn.train_rbm` on the 60,000 training images, level = value // 64: chains from the data, 100 rounds of
    block Gibbs a batch of 100, 4 epochs, learning rate 1e-3. It has many modes (a shirt, a shoe, a bag) that chains
    seldom leave.
    """

    space: Categorical
    axes: ClassVar[tuple[str, ...]] = ("hidden", "visible", "levels")
    shipped: ClassVar[str] = "rbm_fashion_mnist.npz"
    __init__ = _Machine.__init__


def _float(name: str, array: ArrayLike) -> Array:
    traced = isinstance(array, Tracer)
    return jnp.asarray(array if traced else real_array(name, array), jnp.result_type(float))


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
