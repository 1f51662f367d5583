"""A masked language model from a folder in the format of Hugging Face: config.json, vocab.txt, model.safetensors.

Weights may have any float type and are kept as float32. Pickled files are refused: reading one may run any program.
Whatever is missing or does not fit ends with a sentence.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.checks import checked_arguments
from discrax.text.bert import ACTIVATIONS, Affine, Bert, BertConfig, Head, Layer, Norm
from discrax.text.wordpiece import WordPiece

CONFIG, VOCABULARY, TOKENIZER, WEIGHTS = "config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"
_CONVERT = (
    "with the package transformers, `AutoModelForMaskedLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)` writes "
    f"{WEIGHTS}, and `AutoTokenizer.from_pretrained(FOLDER).save_vocabulary(NEW_FOLDER)` writes {VOCABULARY}"
)


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


@checked_arguments
def read_checkpoint(folder: str | Path) -> MaskedModel:
    """Reads the folder of a masked language model."""
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ValueError(
            f"A checkpoint is a folder with {CONFIG}, {VOCABULARY} and {WEIGHTS}, but {folder} {what}; nothing is "
            "downloaded."
        )
    config = _config(folder / CONFIG)
    tokenizer = _tokenizer(folder)
    if len(tokenizer.vocabulary) != config.vocab_size:
        raise ValueError(
            f"{folder / VOCABULARY} has {len(tokenizer.vocabulary):,} entries, but vocab_size in {CONFIG} is "
            f"{config.vocab_size:,}; they belong to different models, or one of the files is cut off."
        )
    return MaskedModel(_model(Tensors(folder), config), tokenizer)


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds {type(found).__name__}.")
    return found


def _config(path: Path) -> BertConfig:
    if not path.is_file():
        raise ValueError(f"There is no {path}; a checkpoint folder has {CONFIG}, {VOCABULARY} and {WEIGHTS}.")
    found = read_json(path)
    kind = found.get("model_type")
    if kind != "bert":
        raise ValueError(f"{path} is of a model of type {kind!r}; only 'bert' can be read.")
    places = found.get("position_embedding_type", "absolute")
    if places != "absolute":
        raise ValueError(f"{path} has position embeddings of type {places!r}; only 'absolute' can be read.")
    settings = {}
    for each in fields(BertConfig):
        value = found.get(each.name, None if each.default is MISSING else each.default)
        is_right = isinstance(value, str) if each.type is str else isinstance(value, int | float) and value > 0
        if each.type is int:
            is_right = is_right and isinstance(value, int) and not isinstance(value, bool)
        if not is_right:
            wanted = {int: "a whole number above 0", float: "a number above 0", str: "a name"}[each.type]  # pyright: ignore[reportArgumentType]
            raise ValueError(f"{path} should give {each.name} as {wanted}, but has {json.dumps(value)}.")
        settings[each.name] = value
    config = BertConfig(**settings)
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


def _tokenizer(folder: Path) -> WordPiece:
    path, about = folder / VOCABULARY, folder / TOKENIZER
    if not path.is_file():
        raise ValueError(
            f"There is no {path}, the vocabulary with one entry a line; if there is a tokenizer.json instead, "
            f"{_CONVERT}."
        )
    try:
        vocabulary = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    lower_case = read_json(about).get("do_lower_case") if about.is_file() else None
    try:
        return WordPiece([entry.removesuffix("\r") for entry in vocabulary], lower_case)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


class Tensors:
    """The tensors of a file by the names of Hugging Face, each checked when it is taken."""

    def __init__(self, folder: Path):
        self.path = folder / WEIGHTS
        if not self.path.is_file():
            raise ValueError(_no_weights(folder))
        self._arrays = _read(self.path)

    def __contains__(self, name: str) -> bool:
        return self._place(name) is not None

    def _place(self, name: str) -> str | None:
        # An encoder that was saved by itself has no "bert."; older files say gamma and beta.
        short = name.removeprefix("bert.")
        old = [each.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta") for each in (name, short)]
        return next((each for each in (name, short, *old) if each in self._arrays), None)

    def take(self, name: str, *shape: int) -> Float[Array, "..."]:
        place = self._place(name)
        if place is None:
            raise ValueError(f"{self.path} has no tensor {name}, which should have the shape {shape}; {_HEADLESS}.")
        found = self._arrays[place]
        if found.shape != shape:
            raise ValueError(
                f"{self.path}: {place} has the shape {found.shape}, but by {CONFIG} it should have {shape}; the two "
                "files belong to different models."
            )
        if not jnp.issubdtype(found.dtype, jnp.floating):
            raise ValueError(f"{self.path}: {place} should hold floats, but holds {found.dtype}.")
        values = found.astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.path}: {place} holds numbers that are not finite; the file is damaged.")
        return jnp.asarray(values)

    def affine(self, name: str, inputs: int, outputs: int) -> Affine:
        weight = self.take(f"{name}.weight", outputs, inputs)  # stored as outputs by inputs
        return Affine(weight.T, self.take(f"{name}.bias", outputs))

    def norm(self, name: str, hidden: int) -> Norm:
        return Norm(self.take(f"{name}.weight", hidden), self.take(f"{name}.bias", hidden))


_HEADLESS = (
    "a masked language model has an encoder (bert.) and a head (cls.predictions.): save it as one, not as an encoder "
    "or a classifier"
)


def _read(path: Path) -> Mapping[str, np.ndarray]:
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise ImportError(f'{path} is read with safetensors: pip install "discrax[text]".') from error
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is cut off or no safetensors file ({error}); copy it again.") from error


def _no_weights(folder: Path) -> str:
    pickled = sorted(path.name for pattern in ("*.bin", "*.pt", "*.ckpt") for path in folder.glob(pattern))
    if pickled:
        return (
            f"{folder} has its weights in {pickled[0]}, a pickled file, which is not read because it may run any "
            f"program; {_CONVERT}."
        )
    if (folder / f"{WEIGHTS}.index.json").is_file():
        return f"{folder} has its weights in several files; save it as one: {_CONVERT}, with max_shard_size='100GB'."
    return f"There is no {folder / WEIGHTS}; a checkpoint folder has {CONFIG}, {VOCABULARY} and {WEIGHTS}."


def _model(tensors: Tensors, config: BertConfig) -> Bert:
    hidden, of = config.hidden_size, "bert.embeddings"
    words = tensors.take(f"{of}.word_embeddings.weight", config.vocab_size, hidden)
    layers = [_layer(tensors, f"bert.encoder.layer.{i}", config) for i in range(config.num_hidden_layers)]
    return Bert(
        words=words,
        positions=tensors.take(f"{of}.position_embeddings.weight", config.max_position_embeddings, hidden),
        types=tensors.take(f"{of}.token_type_embeddings.weight", config.type_vocab_size, hidden),
        norm=tensors.norm(f"{of}.LayerNorm", hidden),
        layers=jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers),
        head=_head(tensors, config, words),
        config=config,
    )


def _layer(tensors: Tensors, of: str, config: BertConfig) -> Layer:
    hidden, wide = config.hidden_size, config.intermediate_size
    return Layer(
        query=tensors.affine(f"{of}.attention.self.query", hidden, hidden),
        key=tensors.affine(f"{of}.attention.self.key", hidden, hidden),
        value=tensors.affine(f"{of}.attention.self.value", hidden, hidden),
        attended=tensors.affine(f"{of}.attention.output.dense", hidden, hidden),
        attention_norm=tensors.norm(f"{of}.attention.output.LayerNorm", hidden),
        widened=tensors.affine(f"{of}.intermediate.dense", hidden, wide),
        narrowed=tensors.affine(f"{of}.output.dense", wide, hidden),
        output_norm=tensors.norm(f"{of}.output.LayerNorm", hidden),
    )


def _head(tensors: Tensors, config: BertConfig, words: Float[Array, "vocabulary hidden"]) -> Head:
    hidden, of = config.hidden_size, "cls.predictions"
    decoder = None
    if f"{of}.decoder.weight" in tensors:  # often the word embeddings once more
        decoder = tensors.take(f"{of}.decoder.weight", config.vocab_size, hidden)
        decoder = None if bool(jnp.array_equal(decoder, words)) else decoder
    bias = f"{of}.bias" if f"{of}.bias" in tensors else f"{of}.decoder.bias"
    return Head(
        transform=tensors.affine(f"{of}.transform.dense", hidden, hidden),
        norm=tensors.norm(f"{of}.transform.LayerNorm", hidden),
        decoder=decoder,
        bias=tensors.take(bias, config.vocab_size),
    )
