"""The text tower of CLIP (Radford et al., 2021): what a text looks like, as a direction that images have too.

One text, from its start token to its end token. With word embeddings w of its tokens (length, hidden),

    h = w + positions
    per layer:  h = h + attend(norm(h)) O + o,    h = h + f(norm(h) U + u) V + v
    attend(h) = concatenation over heads of softmax(q k' / sqrt(size of a head) + mask) v,    q, k, v affine in h
    embedding = norm(h at the end token) P

where the mask lets each place see itself and the places before it, and f is the activation, by default
f(a) = a sigmoid(1.702 a). What follows the end token is seen by nothing that counts, so texts are not padded.

A tower is read from a folder in the format of Hugging Face: config.json, vocab.json, merges.txt, model.safetensors.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments
from discrax.text import bert
from discrax.text.bert import Affine, Norm
from discrax.text.bpe import BytePairs
from discrax.text.checkpoint import CONFIG, WEIGHTS, Tensors, read_json

VOCABULARY, MERGES = "vocab.json", "merges.txt"
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "quick_gelu": lambda a: a * jax.nn.sigmoid(1.702 * a),
    **bert.ACTIVATIONS,
}
_FILES = f"{CONFIG}, {VOCABULARY}, {MERGES} and {WEIGHTS}"
_CONVERT = (
    "with the package transformers, `CLIPModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)` writes "
    f"{WEIGHTS}, and `CLIPTokenizer.from_pretrained(FOLDER).save_vocabulary(NEW_FOLDER)` writes {VOCABULARY} and "
    f"{MERGES}"
)


@dataclass(frozen=True)
class ClipConfig:
    """The sizes of a tower, named as in a config.json of Hugging Face, which leaves out what has these values."""

    vocab_size: int = 49_408
    hidden_size: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    max_position_embeddings: int = 77
    projection_dim: int = 512
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5


SMALL = ClipConfig(
    vocab_size=512,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=40,
    projection_dim=32,
)


class Layer(eqx.Module):
    attention_norm: Norm
    query: Affine
    key: Affine
    value: Affine
    attended: Affine
    wide_norm: Norm
    widened: Affine
    narrowed: Affine


class ClipText(eqx.Module):
    """The tower. The parameters of all layers lie in the same arrays, along a leading axis."""

    words: Float[Array, "vocabulary hidden"]
    positions: Float[Array, "longest hidden"]
    layers: Layer
    norm: Norm
    projection: Float[Array, "hidden embedding"]
    config: ClipConfig = eqx.field(static=True)

    @staticmethod
    def random(key: PRNGKeyArray, config: ClipConfig = SMALL) -> "ClipText":
        """A tower that has learnt nothing, with the variances from which CLIP was trained."""
        hidden, wide, stack = config.hidden_size, config.intermediate_size, (config.num_hidden_layers,)
        keys = iter(random.split(random.as_threefry(key), 9))
        into_residual = (2 * hidden * config.num_hidden_layers) ** -0.5

        def normal(scale: float, *shape: int) -> Array:
            return scale * jax.random.normal(next(keys), shape, jnp.float32)

        def affine(inputs: int, outputs: int, scale: float) -> Affine:
            return Affine(normal(scale, *stack, inputs, outputs), jnp.zeros((*stack, outputs), jnp.float32))

        def norm(*shape: int) -> Norm:
            return Norm(jnp.ones((*shape, hidden), jnp.float32), jnp.zeros((*shape, hidden), jnp.float32))

        return ClipText(
            words=normal(0.02, config.vocab_size, hidden),
            positions=normal(0.01, config.max_position_embeddings, hidden),
            layers=Layer(
                attention_norm=norm(*stack),
                query=affine(hidden, hidden, hidden**-0.5),
                key=affine(hidden, hidden, hidden**-0.5),
                value=affine(hidden, hidden, hidden**-0.5),
                attended=affine(hidden, hidden, into_residual),
                wide_norm=norm(*stack),
                widened=affine(hidden, wide, (2 * hidden) ** -0.5),
                narrowed=affine(wide, hidden, into_residual),
            ),
            norm=norm(),
            projection=normal(hidden**-0.5, hidden, config.projection_dim),
            config=config,
        )

    def encode(self, embedded: Float[Array, "length hidden"]) -> Float[Array, " embedding"]:
        """The embedding of a text that is given by its word embeddings, those of the start and end tokens included."""
        length = embedded.shape[0]
        if length > self.config.max_position_embeddings:
            raise ValueError(
                f"The tower reads at most {self.config.max_position_embeddings} tokens, but with those of start and "
                f"end the text has {length}."
            )
        # A loop, so that a deep tower compiles as fast as a shallow one.
        through = lambda h, layer: (self._through(layer, h), None)  # noqa: E731
        h = jax.lax.scan(through, embedded + self.positions[:length], self.layers)[0]
        return self.norm(h[-1], self.config.layer_norm_eps) @ self.projection

    def _through(self, layer: Layer, h: Float[Array, "length hidden"]) -> Float[Array, "length hidden"]:
        epsilon, heads, length = self.config.layer_norm_eps, self.config.num_attention_heads, h.shape[0]
        apart = (length, heads, h.shape[1] // heads)
        seen = layer.attention_norm(h, epsilon)
        query, key, value = (each(seen).reshape(apart) for each in (layer.query, layer.key, layer.value))
        scores = jnp.einsum("qhc,khc->hqk", query, key) / apart[2] ** 0.5
        is_before = jnp.tril(jnp.ones((length, length), bool))[None]
        weights = jax.nn.softmax(jnp.where(is_before, scores, -jnp.inf), axis=-1)
        h = h + layer.attended(jnp.einsum("hqk,khc->qhc", weights, value).reshape(h.shape))
        wide = ACTIVATIONS[self.config.hidden_act](layer.widened(layer.wide_norm(h, epsilon)))
        return h + layer.narrowed(wide)

    def __call__(self, tokens: Int[Array, " length"]) -> Float[Array, " embedding"]:
        """The embedding of a text; the first token is that of the start and the last one that of the end."""
        return self.encode(self.words[tokens])


@dataclass(frozen=True, eq=False)
class Clip:
    """A tower and its tokens."""

    tower: ClipText
    tokenizer: BytePairs

    def __post_init__(self) -> None:
        entries, rows = len(self.tokenizer.vocabulary), self.tower.config.vocab_size
        if entries != rows:
            raise ValueError(f"The vocabulary has {entries:,} entries, but the tower has {rows:,} words.")

    def embed(self, text: str) -> Float[Array, " embedding"]:
        tokens = [self.tokenizer.start, *self.tokenizer.tokens(text), self.tokenizer.end]
        return self.tower(jnp.asarray(tokens, jnp.int32))


@checked_arguments
def read_clip(folder: str | Path) -> Clip:
    """Reads the text tower of a folder in which a CLIPModel or a CLIPTextModelWithProjection was saved."""
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ValueError(f"A CLIP checkpoint is a folder with {_FILES}, but {folder} {what}; nothing is downloaded.")
    config = _config(folder / CONFIG)
    tokenizer = _tokenizer(folder)
    if len(tokenizer.vocabulary) != config.vocab_size:
        raise ValueError(
            f"{folder / VOCABULARY} has {len(tokenizer.vocabulary):,} entries, but vocab_size in {CONFIG} is "
            f"{config.vocab_size:,}; they belong to different models, or one of the files is cut off."
        )
    _check_weights(folder)
    tensors = Tensors(folder)
    absent = next((name for name in _names(config) if name not in tensors), None)
    if absent is not None:
        raise ValueError(
            f"{tensors.path} has no tensor {absent}; the text tower of CLIP has an encoder (text_model.) and a "
            "text_projection: save it as CLIPModel or CLIPTextModelWithProjection."
        )
    return Clip(_tower(tensors, config), tokenizer)


def _config(path: Path) -> ClipConfig:
    if not path.is_file():
        raise ValueError(f"There is no {path}; a CLIP checkpoint folder has {_FILES}.")
    found = read_json(path)
    kind = found.get("model_type")
    if kind not in ("clip", "clip_text_model"):
        raise ValueError(f"{path} is of a model of type {kind!r}; only 'clip' and 'clip_text_model' can be read.")
    if kind == "clip":  # both towers; what its text_config says of projection_dim is not what was used
        text = found.get("text_config")
        if not isinstance(text, dict):
            raise ValueError(f"{path} should hold the sizes of the text tower in text_config, but has {text!r} there.")
        found = {name: value for name, value in text.items() if name != "projection_dim"} | {
            name: value for name, value in found.items() if name == "projection_dim"
        }
    config = ClipConfig(**{each.name: _setting(path, found, each) for each in fields(ClipConfig)})
    if config.hidden_act not in ACTIVATIONS:
        raise ValueError(
            f"{path} wants the activation {config.hidden_act!r}, which is not among {', '.join(ACTIVATIONS)}."
        )
    if config.hidden_size % config.num_attention_heads:
        raise ValueError(
            f"{path} has hidden_size {config.hidden_size}, which {config.num_attention_heads} attention heads cannot "
            "share equally."
        )
    return config


def _setting(path: Path, found: dict[str, Any], field: Any) -> Any:
    value = found.get(field.name, field.default)
    kinds = {int: (int,), float: (int, float), str: (str,)}[field.type]
    if isinstance(value, bool) or not isinstance(value, kinds) or (not isinstance(value, str) and value <= 0):
        wanted = {int: "a whole number above 0", float: "a number above 0", str: "a name"}[field.type]
        raise ValueError(f"{path} should give {field.name} as {wanted}, but has {json.dumps(value)}.")
    return value


def _tokenizer(folder: Path) -> BytePairs:
    for name in (VOCABULARY, MERGES):
        if not (folder / name).is_file():
            raise ValueError(f"There is no {folder / name}; if there is a tokenizer.json instead, {_CONVERT}.")
    index = read_json(folder / VOCABULARY)
    odd = next((entry for entry, token in index.items() if type(token) is not int), None)
    if odd is not None:
        raise ValueError(f"{folder / VOCABULARY} should give a token for each entry, but {odd!r} has {index[odd]!r}.")
    try:
        return BytePairs(index, list(_merges(folder / MERGES)))
    except ValueError as error:
        raise ValueError(f"{folder / VOCABULARY}: {error}") from error


def _merges(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    for number, line in enumerate(lines, 1):
        pair = line.split()
        if not pair or (number == 1 and line.startswith("#version")):
            continue
        if len(pair) != 2:
            raise ValueError(f"{path} has two entries a line, but line {number} is {line!r}.")
        yield pair[0], pair[1]


def _check_weights(folder: Path) -> None:
    if (folder / WEIGHTS).is_file():
        return
    pickled = sorted(path.name for pattern in ("*.bin", "*.pt", "*.ckpt") for path in folder.glob(pattern))
    if pickled:
        raise ValueError(
            f"{folder} has its weights in {pickled[0]}, a pickled file, which is not read because it may run any "
            f"program; {_CONVERT}."
        )
    if (folder / f"{WEIGHTS}.index.json").is_file():
        raise ValueError(
            f"{folder} has its weights in several files; save it as one: {_CONVERT}, with max_shard_size='100GB'."
        )
    raise ValueError(f"There is no {folder / WEIGHTS}; a CLIP checkpoint folder has {_FILES}.")


_AFFINE = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "mlp.fc1", "mlp.fc2")
_NORMS = ("layer_norm1", "layer_norm2")
_EMBEDDINGS, _ENCODER = "text_model.embeddings", "text_model.encoder.layers"
_WORDS, _POSITIONS = f"{_EMBEDDINGS}.token_embedding.weight", f"{_EMBEDDINGS}.position_embedding.weight"
_FINAL, _PROJECTION = "text_model.final_layer_norm", "text_projection.weight"


def _names(config: ClipConfig) -> Iterator[str]:
    """All tensors of a tower."""
    yield from (_WORDS, _POSITIONS)
    for i in range(config.num_hidden_layers):
        for name in (*_AFFINE, *_NORMS):
            yield from (f"{_ENCODER}.{i}.{name}.weight", f"{_ENCODER}.{i}.{name}.bias")
    yield from (f"{_FINAL}.weight", f"{_FINAL}.bias", _PROJECTION)


def _tower(tensors: Tensors, config: ClipConfig) -> ClipText:
    hidden = config.hidden_size
    layers = [_layer(tensors, f"{_ENCODER}.{i}", config) for i in range(config.num_hidden_layers)]
    return ClipText(
        words=tensors.take(_WORDS, config.vocab_size, hidden),
        positions=tensors.take(_POSITIONS, config.max_position_embeddings, hidden),
        layers=jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers),
        norm=tensors.norm(_FINAL, hidden),
        projection=tensors.take(_PROJECTION, config.projection_dim, hidden).T,
        config=config,
    )


def _layer(tensors: Tensors, of: str, config: ClipConfig) -> Layer:
    hidden, wide = config.hidden_size, config.intermediate_size
    return Layer(
        attention_norm=tensors.norm(f"{of}.layer_norm1", hidden),
        query=tensors.affine(f"{of}.self_attn.q_proj", hidden, hidden),
        key=tensors.affine(f"{of}.self_attn.k_proj", hidden, hidden),
        value=tensors.affine(f"{of}.self_attn.v_proj", hidden, hidden),
        attended=tensors.affine(f"{of}.self_attn.out_proj", hidden, hidden),
        wide_norm=tensors.norm(f"{of}.layer_norm2", hidden),
        widened=tensors.affine(f"{of}.mlp.fc1", hidden, wide),
        narrowed=tensors.affine(f"{of}.mlp.fc2", wide, hidden),
    )
