"""The text tower of CLIP (Radford et al., 2021): what a text looks like, as a direction that images have too.

One text, from its start token to its end token. With word embeddings w of its tokens (length, hidden), and the layers
of `encoder`,

    h = layers(w + positions)
    embedding = norm(h at the end token) P

What follows the end token is seen by nothing that counts, so texts are not padded. A tower is read from a folder in the
format of Hugging Face: config.json, vocab.json and merges.txt or tokenizer.json, model.safetensors.
"""

from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from discrax.core.checks import checked_arguments
from discrax.text.checkpoint import CONFIG, Checkpoint, read_json
from discrax.text.encoder import EncoderConfig, Layer, Norm, encode, normals
from discrax.text.tokens import BytePairs


@dataclass(frozen=True, kw_only=True)
class ClipConfig(EncoderConfig):
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
        hidden = config.hidden_size
        normal = normals(key, 9)
        residual = (2 * hidden * config.num_hidden_layers) ** -0.5
        return ClipText(
            words=normal(0.02, config.vocab_size, hidden),
            positions=normal(0.01, config.max_position_embeddings, hidden),
            layers=Layer.random(normal, config, hidden**-0.5, residual, (2 * hidden) ** -0.5),
            norm=Norm.identity(hidden),
            projection=normal(hidden**-0.5, hidden, config.projection_dim),
            config=config,
        )

    def encode(self, embedded: Float[Array, "length hidden"]) -> Float[Array, " embedding"]:
        """The embedding of a text that is given by its word embeddings, those of the start and end tokens included."""
        length, longest = embedded.shape[0], self.config.max_position_embeddings
        if length > longest:
            raise ValueError(
                f"The tower reads at most {longest} tokens, but with those of start and end the text has {length}."
            )
        h = encode(self.layers, embedded + self.positions[:length], self.config, norm_first=True, causal=True)
        return self.norm(h[-1], self.config.layer_norm_eps) @ self.projection

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
        """The embedding of a text; its length means nothing."""
        tokens = [self.tokenizer.start, *self.tokenizer.tokens(text), self.tokenizer.end]
        return self.tower(jnp.asarray(tokens, jnp.int32))


_LAYER = {
    "attention_norm": "layer_norm1",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "output": "self_attn.out_proj",
    "wide_norm": "layer_norm2",
    "widen": "mlp.fc1",
    "narrow": "mlp.fc2",
}


@checked_arguments
def read_clip(folder: str | Path) -> Clip:
    """Reads the text tower of a folder in which a CLIPModel or a CLIPTextModelWithProjection was saved."""
    found = Checkpoint(
        folder,
        kind="CLIP checkpoint",
        tokens="vocab.json and merges.txt",
        saver="CLIPModel",
        parts="the text tower of CLIP has an encoder (text_model.) and a text_projection: save it as CLIPModel or "
        "CLIPTextModelWithProjection",
    )
    config = _read_config(found)
    tokenizer = BytePairs.read(found)
    found.check_vocabulary(len(tokenizer.vocabulary), config)
    hidden, of = config.hidden_size, "text_model.embeddings"
    tower = ClipText(
        words=found.take(f"{of}.token_embedding.weight", config.vocab_size, hidden),
        positions=found.take(f"{of}.position_embedding.weight", config.max_position_embeddings, hidden),
        layers=found.layers("text_model.encoder.layers", _LAYER, config),
        norm=found.norm("text_model.final_layer_norm", hidden),
        projection=found.take("text_projection.weight", config.projection_dim, hidden).T,
        config=config,
    )
    return Clip(tower, tokenizer)


def _read_config(checkpoint: Checkpoint) -> ClipConfig:
    path = checkpoint.path(CONFIG)
    found = read_json(path)
    kind = found.get("model_type")
    if kind not in ("clip", "clip_text_model"):
        raise ValueError(f"{path} is of a model of type {kind!r}; only 'clip' and 'clip_text_model' can be read.")
    if kind == "clip":  # both towers; what its text_config says of projection_dim is not what was used
        text = found.get("text_config")
        if not isinstance(text, dict):
            raise ValueError(f"{path} should hold the sizes of the text tower in text_config, but has {text!r} there.")
        whole = {name: value for name, value in found.items() if name == "projection_dim"}
        found = {name: value for name, value in text.items() if name != "projection_dim"} | whole
    return checkpoint.settings(ClipConfig, found)
