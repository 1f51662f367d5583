"""The layers of BERT and of CLIP's text tower, which are those of a transformer's encoder (Vaswani et al., 2017).

For one text h (length, hidden), norm(a) = scale (a - mean) / sqrt(variance + epsilon) + shift, and an activation f,

    attend(h) = (concatenation over heads of softmax(q k' / sqrt(size of a head)) v) O + o,    q, k, v affine in h
    widen(h) = f(h U + u) V + v
    BERT, per layer:  h = norm(h + attend(h)),    h = norm(h + widen(h))
    CLIP, per layer:  h = h + attend(norm(h)),    h = h + widen(norm(h))

CLIP's places see themselves and the places before them only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from discrax.core import random

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "quick_gelu": lambda a: a * jax.nn.sigmoid(1.702 * a),
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_new": partial(jax.nn.gelu, approximate=True),
    "gelu_pytorch_tanh": partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
}


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The sizes of an encoder, named as in a config.json of Hugging Face."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    hidden_act: str
    layer_norm_eps: float


def normals(key: PRNGKeyArray, count: int) -> Callable[..., Float[Array, "..."]]:
    """A function (scale, *shape) that draws normal weights, with another key each of `count` times."""
    keys = iter(random.split(random.as_threefry(key), count))
    return lambda scale, *shape: scale * jax.random.normal(next(keys), shape, jnp.float32)


class Affine(eqx.Module):
    """a -> a weight + bias; with a leading axis, those of all layers."""

    weight: Float[Array, "*layers inputs outputs"]
    bias: Float[Array, "*layers outputs"]

    def __call__(self, a: Float[Array, "*places inputs"]) -> Float[Array, "*places outputs"]:
        product = a @ self.weight
        return product + self.bias.reshape((1,) * (product.ndim - 1) + (-1,))


class Norm(eqx.Module):
    """Layer normalisation over the last axis; with a leading axis, those of all layers."""

    scale: Float[Array, "*layers hidden"]
    shift: Float[Array, "*layers hidden"]

    @staticmethod
    def identity(*shape: int) -> "Norm":
        """Scale 1 and shift 0."""
        return Norm(jnp.ones(shape, jnp.float32), jnp.zeros(shape, jnp.float32))

    def __call__(self, a: Float[Array, "*places hidden"], epsilon: float) -> Float[Array, "*places hidden"]:
        centred = a - jnp.mean(a, axis=-1, keepdims=True)
        unit = centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + epsilon)
        each = (1,) * (a.ndim - 1) + (-1,)
        return unit * self.scale.reshape(each) + self.shift.reshape(each)


class Layer(eqx.Module):
    """One layer, or all layers of an encoder: then their parameters lie in the same arrays, along a leading axis."""

    query: Affine
    key: Affine
    value: Affine
    output: Affine
    attention_norm: Norm
    widen: Affine
    narrow: Affine
    wide_norm: Norm

    @staticmethod
    def random(
        normal: Callable[..., Array], config: EncoderConfig, attention: float, residual: float, wide: float
    ) -> "Layer":
        """Layers that have learnt nothing: `normal(scale, *shape)` draws weights, with one scale for each use."""
        hidden, width, count = config.hidden_size, config.intermediate_size, config.num_hidden_layers

        def affine(inputs: int, outputs: int, scale: float) -> Affine:
            return Affine(normal(scale, count, inputs, outputs), jnp.zeros((count, outputs), jnp.float32))

        seen = {name: affine(hidden, hidden, attention) for name in ("query", "key", "value")}
        return Layer(
            **seen,
            output=affine(hidden, hidden, residual),
            attention_norm=Norm.identity(count, hidden),
            widen=affine(hidden, width, wide),
            narrow=affine(width, hidden, residual),
            wide_norm=Norm.identity(count, hidden),
        )

    def attend(
        self, h: Float[Array, "length hidden"], heads: int, causal: bool, is_seen: Bool[Array, " length"] | None
    ) -> Float[Array, "length hidden"]:
        """What each place takes from the places that it sees."""
        per_head = (h.shape[0], heads, h.shape[1] // heads)
        query, key, value = (each(h).reshape(per_head) for each in (self.query, self.key, self.value))
        scores = jnp.einsum("qhc,khc->hqk", query, key) / per_head[2] ** 0.5
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool))[None], scores, -jnp.inf)
        if is_seen is not None:
            scores = jnp.where(is_seen[None, None, :], scores, -jnp.inf)
        return self.output(jnp.einsum("hqk,khc->qhc", jax.nn.softmax(scores, axis=-1), value).reshape(h.shape))


def encode(
    layers: Layer,
    h: Float[Array, "length hidden"],
    config: EncoderConfig,
    *,
    norm_first: bool,
    causal: bool,
    is_seen: Bool[Array, " length"] | None = None,
) -> Float[Array, "length hidden"]:
    """The output of the last layer; with `norm_first` and `causal` layers are CLIP's, without them BERT's.

    Places that are not to be seen, such as padding, are seen by none.
    """
    epsilon, heads, activation = config.layer_norm_eps, config.num_attention_heads, ACTIVATIONS[config.hidden_act]

    def one_layer(h: Array, layer: Layer) -> tuple[Array, None]:
        if norm_first:
            h = h + layer.attend(layer.attention_norm(h, epsilon), heads, causal, is_seen)
            return h + layer.narrow(activation(layer.widen(layer.wide_norm(h, epsilon)))), None
        h = layer.attention_norm(h + layer.attend(h, heads, causal, is_seen), epsilon)
        return layer.wide_norm(h + layer.narrow(activation(layer.widen(h))), epsilon), None

    return jax.lax.scan(one_layer, h, layers)[0]  # a loop, so that a deep encoder compiles as fast as a shallow one
