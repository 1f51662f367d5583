"""BERT (Devlin et al., 2019), a masked language model: what word may stand where the sentence has a [MASK].

One sentence; what pads it is seen by no place. With word embeddings w of the tokens (length, hidden), and the layers
of `encoder`,

    h = layers(norm(w + positions + type))
    logits at a place = norm(f(h_place T + t)) D' + d

with f the activation and D the word embeddings again unless the model has a decoder of its own. A model is read from a
folder in the format of Hugging Face: config.json, vocab.txt or tokenizer.json, model.safetensors.
"""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core.checks import checked_arguments
from discrax.core.files import write_whole
from discrax.text.checkpoint import CONFIG, Checkpoint, read_json, write_tensors
from discrax.text.encoder import ACTIVATIONS, Affine, EncoderConfig, Layer, Norm, encode, normals
from discrax.text.tokens import WordPiece


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderConfig):
    """The sizes of a model, named as in a config.json of Hugging Face."""

    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12


class Head(eqx.Module):
    """From what the encoder makes of a place to the logits of all words."""

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
        hidden, words = config.hidden_size, config.vocab_size
        normal = normals(key, 10)
        return Bert(
            words=normal(scale, words, hidden),
            positions=normal(scale, config.max_position_embeddings, hidden),
            types=normal(scale, config.type_vocab_size, hidden),
            norm=Norm.identity(hidden),
            layers=Layer.random(normal, config, scale, scale, scale),
            head=Head(
                transform=Affine(normal(scale, hidden, hidden), jnp.zeros(hidden, jnp.float32)),
                norm=Norm.identity(hidden),
                decoder=None,
                bias=jnp.zeros(words, jnp.float32),
            ),
            config=config,
        )

    def encode(
        self, embedded: Float[Array, "length hidden"], is_seen: Bool[Array, " length"] | None = None
    ) -> Float[Array, "length hidden"]:
        """The last layer's output for a sentence that is given by its word embeddings; all of it is seen by default."""
        places = self.positions[: embedded.shape[0]]
        start = self.norm(embedded + places + self.types[:1].repeat(len(places), axis=0), self.config.layer_norm_eps)
        return encode(self.layers, start, self.config, norm_first=False, causal=False, is_seen=is_seen)

    def logits(self, encoded: Float[Array, "*places hidden"]) -> Float[Array, "*places vocabulary"]:
        """Logits of all words, at the given places only."""
        head, words = self.head, self.words if self.head.decoder is None else self.head.decoder
        activated = ACTIVATIONS[self.config.hidden_act](head.transform(encoded))
        return Affine(words.T, head.bias)(head.norm(activated, self.config.layer_norm_eps))

    def __call__(
        self,
        tokens: Int[Array, " length"],
        places: Int[Array, " places"],
        is_seen: Bool[Array, " length"] | None = None,
    ) -> Float[Array, "places vocabulary"]:
        """Log-probabilities of all words at some places of a sentence."""
        return jax.nn.log_softmax(self.logits(self.encode(self.words[tokens], is_seen)[places]), axis=-1)


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """A BERT and its tokens. Every target that is made of it shares its arrays."""

    bert: Bert
    tokenizer: WordPiece

    def __post_init__(self) -> None:
        entries, rows = len(self.tokenizer.vocabulary), self.bert.config.vocab_size
        if entries != rows:
            raise ValueError(f"The vocabulary has {entries:,} entries, but the model has {rows:,} words.")

    @cached_property
    def words(self) -> tuple[Integer[Array, " words"], Float[Array, "words hidden"]]:
        """The tokens that are words, and their embeddings."""
        tokens = self.tokenizer.words
        return jnp.asarray(tokens), self.bert.words[tokens]

    @cached_property
    def everything(self) -> tuple[Integer[Array, " words"], Float[Array, "words hidden"]]:
        """All tokens, special ones too, and their embeddings."""
        return jnp.arange(self.bert.config.vocab_size, dtype=jnp.int32), self.bert.words


_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "wide_norm": "output.LayerNorm",
}


@checked_arguments
def read_checkpoint(folder: str | Path) -> MaskedModel:
    """Reads the folder of a masked language model."""
    found = Checkpoint(
        folder,
        kind="checkpoint",
        tokens="vocab.txt",
        saver="AutoModelForMaskedLM",
        parts="a masked language model has an encoder (bert.) and a head (cls.predictions.): save it as one, not as an "
        "encoder or a classifier",
    )
    config = _read_config(found)
    tokenizer = WordPiece.read(found)
    found.check_vocabulary(len(tokenizer.vocabulary), config)
    hidden, of = config.hidden_size, "bert.embeddings"
    words = found.take(f"{of}.word_embeddings.weight", config.vocab_size, hidden)
    bert = Bert(
        words=words,
        positions=found.take(f"{of}.position_embeddings.weight", config.max_position_embeddings, hidden),
        types=found.take(f"{of}.token_type_embeddings.weight", config.type_vocab_size, hidden),
        norm=found.norm(f"{of}.LayerNorm", hidden),
        layers=found.layers("bert.encoder.layer", _LAYER, config),
        head=_read_head(found, config, words),
        config=config,
    )
    return MaskedModel(bert, tokenizer)


def write_checkpoint(model: MaskedModel, folder: str | Path) -> None:
    """Writes a model's folder, as `read_checkpoint` and others that know the format read it."""
    bert, config, folder = model.bert, model.bert.config, Path(folder)
    of, head = "bert.embeddings", "cls.predictions"
    tensors = {
        f"{of}.word_embeddings.weight": bert.words,
        f"{of}.position_embeddings.weight": bert.positions,
        f"{of}.token_type_embeddings.weight": bert.types,
        f"{head}.bias": bert.head.bias,
        f"{head}.decoder.weight": bert.words if bert.head.decoder is None else bert.head.decoder,
        **_parts(f"{of}.LayerNorm", bert.norm),
        **_parts(f"{head}.transform.dense", bert.head.transform),
        **_parts(f"{head}.transform.LayerNorm", bert.head.norm),
    }
    for i in range(config.num_hidden_layers):
        layer = jax.tree.map(lambda leaf, i=i: leaf[i], bert.layers)
        for part, place in _LAYER.items():
            tensors |= _parts(f"bert.encoder.layer.{i}.{place}", getattr(layer, part))
    about = {"model_type": "bert", "architectures": ["BertForMaskedLM"], **asdict(config)}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / CONFIG, json.dumps(about, indent=1))
    model.tokenizer.write(folder)
    write_tensors(folder, tensors)


def _parts(name: str, part: Affine | Norm) -> dict[str, Array]:
    """A layer's two tensors; weights are stored as outputs by inputs."""
    if isinstance(part, Norm):
        return {f"{name}.weight": part.scale, f"{name}.bias": part.shift}
    return {f"{name}.weight": part.weight.T, f"{name}.bias": part.bias}


def _read_config(checkpoint: Checkpoint) -> BertConfig:
    path = checkpoint.path(CONFIG)
    found = read_json(path)
    kind, places = found.get("model_type"), found.get("position_embedding_type", "absolute")
    if kind != "bert":
        raise ValueError(f"{path} is of a model of type {kind!r}; only 'bert' can be read.")
    if places != "absolute":
        raise ValueError(f"{path} has position embeddings of type {places!r}; only 'absolute' can be read.")
    return checkpoint.settings(BertConfig, found)


def _read_head(checkpoint: Checkpoint, config: BertConfig, words: Float[Array, "vocabulary hidden"]) -> Head:
    hidden, of = config.hidden_size, "cls.predictions"
    decoder = None
    if f"{of}.decoder.weight" in checkpoint:  # often the word embeddings once more
        decoder = checkpoint.take(f"{of}.decoder.weight", config.vocab_size, hidden)
        decoder = None if bool(jnp.array_equal(decoder, words)) else decoder
    bias = f"{of}.bias" if f"{of}.bias" in checkpoint else f"{of}.decoder.bias"
    return Head(
        transform=checkpoint.affine(f"{of}.transform.dense", hidden, hidden),
        norm=checkpoint.norm(f"{of}.transform.LayerNorm", hidden),
        decoder=decoder,
        bias=checkpoint.take(bias, config.vocab_size),
    )
