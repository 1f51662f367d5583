"""A model's folder in the format of Hugging Face: config.json, the files of its tokens, model.safetensors.

Weights may have any float type and are kept as float32. Pickled files are refused: reading one may run any program.
Whatever is missing or does not fit ends with a sentence.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.core.extras import import_extra
from discrax.core.files import write_whole
from discrax.text.encoder import ACTIVATIONS, Affine, EncoderConfig, Layer, Norm

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
Config = TypeVar("Config", bound=EncoderConfig)


class Checkpoint:
    """The folder of a model of some kind; tensors are checked when they are taken.

    - `kind`: the model's name in sentences; `tokens`: the files of its vocabulary where there is no tokenizer.json.
    - `saver`: the class of the package transformers that writes such a folder.
    - `parts`: what its weights are, for files that lack some of them.
    """

    def __init__(self, folder: str | Path, *, kind: str, tokens: str, saver: str, parts: str):
        self.folder, self._parts = Path(folder), parts
        self._files = f"{CONFIG}, {TOKENIZER} (or {tokens}) and {WEIGHTS}"
        self._kind = kind
        self._convert = (
            f"with the package transformers, `{saver}.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)` writes "
            f"{WEIGHTS}"
        )
        if not self.folder.is_dir():
            what = "is a file" if self.folder.exists() else "does not exist"
            raise ValueError(f"A {kind} is a folder with {self._files}, but {folder} {what}; nothing is downloaded.")

    def path(self, name: str) -> Path:
        """A file that must be there."""
        if not (self.folder / name).is_file():
            raise ValueError(f"There is no {self.folder / name}; the folder of a {self._kind} has {self._files}.")
        return self.folder / name

    def settings(self, kind: type[Config], found: Mapping[str, Any]) -> Config:
        """The sizes of an encoder from what config.json says of them."""
        path = self.folder / CONFIG
        values = {}
        for each in fields(kind):
            value = values[each.name] = found.get(each.name, None if each.default is MISSING else each.default)
            kinds, wanted = {
                int: (int, "a whole number above 0"),
                float: (int | float, "a number above 0"),
                str: (str, "a name"),
            }[each.type]  # ty: ignore[invalid-argument-type]
            if not isinstance(value, kinds) or isinstance(value, bool) or (not isinstance(value, str) and value <= 0):
                raise ValueError(f"{path} should give {each.name} as {wanted}, but has {json.dumps(value)}.")
        config = kind(**values)
        if config.hidden_act not in ACTIVATIONS:
            raise ValueError(
                f"{path} wants the activation {config.hidden_act!r}, which is not among {', '.join(ACTIVATIONS)}."
            )
        if config.hidden_size % config.num_attention_heads:
            raise ValueError(
                f"{path} has hidden_size {config.hidden_size}, which {config.num_attention_heads} attention heads "
                "cannot share equally."
            )
        return config

    def check_vocabulary(self, num_entries: int, config: EncoderConfig) -> None:
        """Raises an error if the tokens are not those of the model."""
        if num_entries != config.vocab_size:
            raise ValueError(
                f"The vocabulary in {self.folder} has {num_entries:,} entries, but vocab_size in {CONFIG} is "
                f"{config.vocab_size:,}; they belong to different models, or one of the files is cut off."
            )

    @cached_property
    def _arrays(self) -> Mapping[str, np.ndarray]:
        path = self.folder / WEIGHTS
        pickled = sorted(each.name for pattern in ("*.bin", "*.pt", "*.ckpt") for each in self.folder.glob(pattern))
        if not path.is_file() and pickled:
            raise ValueError(
                f"{self.folder} has its weights in {pickled[0]}, a pickled file, which is not read because it may run "
                f"any program; {self._convert}."
            )
        if not path.is_file() and (self.folder / f"{WEIGHTS}.index.json").is_file():
            raise ValueError(
                f"{self.folder} has its weights in several files; save it as one: {self._convert}, with "
                "max_shard_size='100GB'."
            )
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load_file
        except ImportError as error:
            raise ImportError(f'{path} is read with safetensors: pip install "discrax[text]".') from error
        try:
            return load_file(self.path(WEIGHTS))
        except SafetensorError as error:
            raise ValueError(f"{path} is cut off or no safetensors file ({error}); copy it again.") from error

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def _find(self, name: str) -> str | None:
        """The name that a tensor has in the file."""
        # An encoder that was saved by itself has no "bert."; older files say gamma and beta.
        short = name.removeprefix("bert.")
        old = [each.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta") for each in (name, short)]
        return next((each for each in (name, short, *old) if each in self._arrays), None)

    def take(self, name: str, *shape: int) -> Float[Array, "..."]:
        """A tensor by its name, which must have a shape."""
        path, place = self.folder / WEIGHTS, self._find(name)
        if place is None:
            raise ValueError(f"{path} has no tensor {name}, which should have the shape {shape}; {self._parts}.")
        found = self._arrays[place]
        if found.shape != shape:
            raise ValueError(
                f"{path}: {place} has the shape {found.shape}, but by {CONFIG} it should have {shape}; the two "
                "files belong to different models."
            )
        if not jnp.issubdtype(found.dtype, jnp.floating):
            raise ValueError(f"{path}: {place} should hold floats, but holds {found.dtype}.")
        values = found.astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{path}: {place} holds numbers that are not finite; the file is damaged.")
        return jnp.asarray(values)

    def affine(self, name: str, inputs: int, outputs: int) -> Affine:
        """A weight, stored as outputs by inputs, and its bias."""
        return Affine(self.take(f"{name}.weight", outputs, inputs).T, self.take(f"{name}.bias", outputs))

    def norm(self, name: str, hidden: int) -> Norm:
        """The scale and the shift of a layer normalisation."""
        return Norm(self.take(f"{name}.weight", hidden), self.take(f"{name}.bias", hidden))

    def layers(self, name: str, parts: Mapping[str, str], config: EncoderConfig) -> Layer:
        """All layers, those of `name`.0, `name`.1 and so on; `parts` has the names of the fields of a `Layer`."""
        hidden, wide = config.hidden_size, config.intermediate_size
        sizes = {"widen": (hidden, wide), "narrow": (wide, hidden)}

        def read(of: str) -> Layer:
            found: dict[str, Any] = {}
            for part, place in parts.items():
                is_norm = part.endswith("_norm")
                shape = sizes.get(part, (hidden, hidden))
                found[part] = self.norm(f"{of}.{place}", hidden) if is_norm else self.affine(f"{of}.{place}", *shape)
            return Layer(**found)

        layers = [read(f"{name}.{i}") for i in range(config.num_hidden_layers)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)


def write_tensors(folder: Path, tensors: Mapping[str, Array]) -> None:
    """Writes the weights of a model's folder, as float32."""
    save = import_extra("safetensors.numpy", "Weights are written with the package", "text").save
    write_whole(
        folder / WEIGHTS, save({name: np.ascontiguousarray(each, np.float32) for name, each in tensors.items()})
    )


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds {type(found).__name__}.")
    return found


def read_lines(path: Path) -> list[str]:
    """The lines of a text file in UTF-8."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
