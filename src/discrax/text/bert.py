"""BERT (Devlin et al., 2019), a masked language model: what word may stand where the sentence has a [MASK].

One sentence, without padding. With word embeddings w_t of the tokens t (length, hidden),

    h = norm(w + positions + type)
    per layer:  h = norm(h + attend(h) O + o),    h = norm(h + f(h U + u) V + v)
    attend(h) = concatenation over heads of softmax(q k' / sqrt(size of a head)) v,    q, k, v affine in h
    logits at a place = norm(f(h_place T + t)) D' + d

with f the activation, norm(a) = scale (a - mean) / sqrt(variance + epsilon) + shift, and D the word embeddings again
unless the model has a decoder of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from discrax.core import random

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_new": partial(jax.nn.gelu, approximate=True),
    "gelu_pytorch_tanh": partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a model, named as in a config.json of Hugging Face."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12


class Affine(eqx.Module):
    weight: Float[Array, "*layers inputs outputs"]
    bias: Float[Array, "*layers outputs"]

    def __call__(self, a: Float[Array, "*places inputs"]) -> Float[Array, "*places outputs"]:
        product = a @ self.weight
        return product + self.bias.reshape((1,) * (product.ndim - 1) + (-1,))


class Norm(eqx.Module):
    scale: Float[Array, "*layers hidden"]
    shift: Float[Array, "*layers hidden"]

    def __call__(self, a: Float[Array, "*places hidden"], epsilon: float) -> Float[Array, "*places hidden"]:
        centred = a - jnp.mean(a, axis=-1, keepdims=True)
        unit = centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + epsilon)
        each = (1,) * (a.ndim - 1) + (-1,)
        return unit * self.scale.reshape(each) + self.shift.reshape(each)


class Layer(eqx.Module):
    query: Affine
    key: Affine
    value: Affine
    attended: Affine
    attention_norm: Norm
    widened: Affine
    narrowed: Affine
    output_norm: Norm


class Head(eqx.Module):
    transform: Affine
    norm: Norm
    decoder: Float[Array, "vocabulary hidden"] | None  # None: the word embeddings
    bias: Float[Array, " vocabulary"]


class Bert(eqx.Module):
    """The model. The parameters of all layers lie in the same arrays, along a leading axis."""

    words: Float[Array, "vocabulary hidden"]
    positions: Float[Array, "longest hidden"]
    types: Float[Array, "types hidden"]
    norm: Norm
    layers: Layer
    head: Head
    config: BertConfig = eqx.field(static=True)

    @staticmethod
    def random(key: PRNGKeyArray, config: BertConfig, scale: float = 0.02) -> "Bert":
        """A model that has learnt nothing."""
        hidden, wide, layers = config.hidden_size, config.intermediate_size, (config.num_hidden_layers,)
        keys = iter(random.split(random.as_threefry(key), 10))

        def normal(*shape: int) -> Array:
            return scale * jax.random.normal(next(keys), shape, jnp.float32)

        def affine(inputs: int, outputs: int, stack: tuple[int, ...] = layers) -> Affine:
            return Affine(normal(*stack, inputs, outputs), jnp.zeros((*stack, outputs), jnp.float32))

        def norm(stack: tuple[int, ...] = ()) -> Norm:
            return Norm(jnp.ones((*stack, hidden), jnp.float32), jnp.zeros((*stack, hidden), jnp.float32))

        return Bert(
            words=normal(config.vocab_size, hidden),
            positions=normal(config.max_position_embeddings, hidden),
            types=normal(config.type_vocab_size, hidden),
            norm=norm(),
            layers=Layer(
                query=affine(hidden, hidden),
                key=affine(hidden, hidden),
                value=affine(hidden, hidden),
                attended=affine(hidden, hidden),
                attention_norm=norm(layers),
                widened=affine(hidden, wide),
                narrowed=affine(wide, hidden),
                output_norm=norm(layers),
            ),
            head=Head(affine(hidden, hidden, ()), norm(), None, jnp.zeros(config.vocab_size, jnp.float32)),
            config=config,
        )

    def encode(self, embedded: Float[Array, "length hidden"]) -> Float[Array, "length hidden"]:
        """The last layer's output for a sentence that is given by its word embeddings."""
        places = self.positions[: embedded.shape[0]]
        start = self.norm(embedded + places + self.types[:1].repeat(len(places), axis=0), self.config.layer_norm_eps)
        # A loop, so that a deep model compiles as fast as a shallow one.
        return jax.lax.scan(lambda h, layer: (self._through(layer, h), None), start, self.layers)[0]

    def _through(self, layer: Layer, h: Float[Array, "length hidden"]) -> Float[Array, "length hidden"]:
        epsilon, heads = self.config.layer_norm_eps, self.config.num_attention_heads
        apart = (h.shape[0], heads, h.shape[1] // heads)
        query, key, value = (each(h).reshape(apart) for each in (layer.query, layer.key, layer.value))
        scores = jnp.einsum("qhc,khc->hqk", query, key) / apart[2] ** 0.5
        context = jnp.einsum("hqk,khc->qhc", jax.nn.softmax(scores, axis=-1), value).reshape(h.shape)
        h = layer.attention_norm(h + layer.attended(context), epsilon)
        wide = ACTIVATIONS[self.config.hidden_act](layer.widened(h))
        return layer.output_norm(h + layer.narrowed(wide), epsilon)

    def logits(self, encoded: Float[Array, "*places hidden"]) -> Float[Array, "*places vocabulary"]:
        """Logits of all words, at the given places only."""
        head, words = self.head, self.words if self.head.decoder is None else self.head.decoder
        activated = ACTIVATIONS[self.config.hidden_act](head.transform(encoded))
        product = head.norm(activated, self.config.layer_norm_eps) @ words.T
        return product + head.bias.reshape((1,) * (product.ndim - 1) + (-1,))

    def __call__(
        self, tokens: Int[Array, " length"], places: Int[Array, " places"]
    ) -> Float[Array, "places vocabulary"]:
        """Log-probabilities of all words at some places of a sentence."""
        return jax.nn.log_softmax(self.logits(self.encode(self.words[tokens])[places]), axis=-1)
