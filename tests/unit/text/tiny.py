"""A small checkpoint folder with random weights, and the model in plain numpy, one word at a time."""

import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

SPECIAL = ("[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("the", "cat", "dog", "sat", "on", "mat", "a", "big", "##s", "##ter", ".", ",", "run", "'")
VOCABULARY = (*SPECIAL, *WORDS)
LETTERS = (*SPECIAL, *"ACDEFGHIK")
CONFIG = {
    "model_type": "bert",
    "vocab_size": len(VOCABULARY),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}


def random_tensors(config=CONFIG, seed: int = 0, scale: float = 0.5, decoder: bool = False) -> dict[str, np.ndarray]:
    """By the names of Hugging Face; every bias, scale and shift counts."""
    generator = np.random.default_rng(seed)
    hidden, wide, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]

    def normal(*shape):
        return (scale * generator.normal(size=shape)).astype(np.float32)

    made: dict[str, np.ndarray] = {}

    def affine(name, inputs, outputs):
        made[f"{name}.weight"], made[f"{name}.bias"] = normal(outputs, inputs), normal(outputs)

    def norm(name):
        made[f"{name}.weight"], made[f"{name}.bias"] = 1 + normal(hidden), normal(hidden)

    made["bert.embeddings.word_embeddings.weight"] = normal(words, hidden)
    made["bert.embeddings.position_embeddings.weight"] = normal(config["max_position_embeddings"], hidden)
    made["bert.embeddings.token_type_embeddings.weight"] = normal(config["type_vocab_size"], hidden)
    norm("bert.embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        of = f"bert.encoder.layer.{i}"
        for name in ("query", "key", "value"):
            affine(f"{of}.attention.self.{name}", hidden, hidden)
        affine(f"{of}.attention.output.dense", hidden, hidden)
        norm(f"{of}.attention.output.LayerNorm")
        affine(f"{of}.intermediate.dense", hidden, wide)
        affine(f"{of}.output.dense", wide, hidden)
        norm(f"{of}.output.LayerNorm")
    affine("cls.predictions.transform.dense", hidden, hidden)
    norm("cls.predictions.transform.LayerNorm")
    made["cls.predictions.bias"] = normal(words)
    if decoder:
        made["cls.predictions.decoder.weight"] = normal(words, hidden)
    return made


def write_checkpoint(folder: Path, tensors=None, config=CONFIG, vocabulary=VOCABULARY) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    save_file(random_tensors(config) if tensors is None else tensors, folder / "model.safetensors")
    return folder


def gelu(a: np.ndarray) -> np.ndarray:
    return np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in a])


def tanh_gelu(a: np.ndarray) -> np.ndarray:
    return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))


ACTIVATIONS = {"gelu": gelu, "gelu_new": tanh_gelu, "relu": lambda a: np.maximum(a, 0)}


def slow_log_probs(tensors, tokens, place: int, config=CONFIG) -> np.ndarray:
    """log p of every word at a place of a sentence."""
    t = {name: np.asarray(array, np.float64) for name, array in tensors.items()}
    activation, heads = ACTIVATIONS[config["hidden_act"]], config["num_attention_heads"]
    size = config["hidden_size"] // heads

    def affine(name, a):
        return t[f"{name}.weight"] @ a + t[f"{name}.bias"]

    def norm(name, a):
        unit = (a - a.mean()) / np.sqrt(a.var() + config["layer_norm_eps"])
        return unit * t[f"{name}.weight"] + t[f"{name}.bias"]

    of = "bert.embeddings"
    places, kind = t[f"{of}.position_embeddings.weight"], t[f"{of}.token_type_embeddings.weight"][0]
    words = t[f"{of}.word_embeddings.weight"]
    h = [norm(f"{of}.LayerNorm", words[token] + places[i] + kind) for i, token in enumerate(tokens)]
    for i in range(config["num_hidden_layers"]):
        of = f"bert.encoder.layer.{i}"
        q, k, v = ([affine(f"{of}.attention.self.{name}", a) for a in h] for name in ("query", "key", "value"))
        out = []
        for a, query in zip(h, q, strict=True):
            context = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                weights = np.exp([query[part] @ key[part] / math.sqrt(size) for key in k])
                context.append(sum(w * value[part] for w, value in zip(weights / weights.sum(), v, strict=True)))
            attended = affine(f"{of}.attention.output.dense", np.concatenate(context))
            a = norm(f"{of}.attention.output.LayerNorm", a + attended)
            wide = activation(affine(f"{of}.intermediate.dense", a))
            out.append(norm(f"{of}.output.LayerNorm", a + affine(f"{of}.output.dense", wide)))
        h = out
    of = "cls.predictions"
    final = norm(f"{of}.transform.LayerNorm", activation(affine(f"{of}.transform.dense", h[place])))
    logits = t.get(f"{of}.decoder.weight", words) @ final + t[f"{of}.bias"]
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
