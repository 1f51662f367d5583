"""The text tower of CLIP against plain numpy, its tokens, and its reader on folders written here."""

import json
import math
import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from discrax.text.clip import SMALL, ClipConfig, ClipText, read_clip
from discrax.text.tokens import BytePairs

SIZES = {
    "vocab_size": 12,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 10,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
}
CONFIG = {"model_type": "clip", "projection_dim": 6, "text_config": SIZES | {"projection_dim": 512}}
# Bytes and their ends first, then what merges make, then the special tokens: the order of CLIP's own vocabulary.
ENTRIES = ["a", "t", "c", "a</w>", "t</w>", "s</w>", "'", "at</w>", "cat</w>", "'s</w>"]
VOCABULARY = {entry: i for i, entry in enumerate([*ENTRIES, "<|startoftext|>", "<|endoftext|>"])}
MERGES = [("a", "t</w>"), ("c", "at</w>"), ("'", "s</w>")]
TOKENS = [10, 8, 9, 0, 3, 11]


def random_tensors(sizes, projection: int, seed: int = 0) -> dict[str, np.ndarray]:
    """By the names of Hugging Face; every bias, scale and shift counts."""
    generator = np.random.default_rng(seed)
    hidden, wide = sizes["hidden_size"], sizes["intermediate_size"]

    def normal(*shape):
        return (0.5 * generator.normal(size=shape)).astype(np.float32)

    made = {
        "logit_scale": np.array(4.6, np.float32),
        "vision_model.embeddings.class_embedding": normal(3),
        "text_model.embeddings.token_embedding.weight": normal(sizes["vocab_size"], hidden),
        "text_model.embeddings.position_embedding.weight": normal(sizes["max_position_embeddings"], hidden),
        "text_projection.weight": normal(projection, hidden),
    }
    norms = ["text_model.final_layer_norm"]
    for i in range(sizes["num_hidden_layers"]):
        of = f"text_model.encoder.layers.{i}"
        affine = {f"self_attn.{name}_proj": (hidden, hidden) for name in ("q", "k", "v", "out")}
        for name, (inputs, outputs) in (affine | {"mlp.fc1": (hidden, wide), "mlp.fc2": (wide, hidden)}).items():
            made[f"{of}.{name}.weight"], made[f"{of}.{name}.bias"] = normal(outputs, inputs), normal(outputs)
        norms += [f"{of}.layer_norm1", f"{of}.layer_norm2"]
    return (
        made | {f"{name}.weight": 1 + normal(hidden) for name in norms} | {f"{n}.bias": normal(hidden) for n in norms}
    )


def write_clip(folder, config=CONFIG, tensors=None, vocabulary=VOCABULARY, merges=MERGES):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, merges)]) + "\n")
    save_file(random_tensors(SIZES, 6) if tensors is None else tensors, folder / "model.safetensors")
    return folder


ACTIVATIONS = {
    "quick_gelu": lambda v: v / (1 + math.exp(-1.702 * v)),
    "gelu": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
}


def slow_embedding(tensors, tokens, sizes) -> np.ndarray:
    """The formulas of the tower, one token and one head at a time, in double precision."""
    t = {name: np.asarray(array, np.float64) for name, array in tensors.items()}
    heads, size = sizes["num_attention_heads"], sizes["hidden_size"] // sizes["num_attention_heads"]

    def affine(name, a):
        return t[f"{name}.weight"] @ a + t[f"{name}.bias"]

    def norm(name, a):
        return (a - a.mean()) / np.sqrt(a.var() + 1e-5) * t[f"{name}.weight"] + t[f"{name}.bias"]

    words, places = (t[f"text_model.embeddings.{name}_embedding.weight"] for name in ("token", "position"))
    h = [words[token] + places[i] for i, token in enumerate(tokens)]
    for i in range(sizes["num_hidden_layers"]):
        of = f"text_model.encoder.layers.{i}"
        q, k, v = ([affine(f"{of}.self_attn.{n}_proj", norm(f"{of}.layer_norm1", a)) for a in h] for n in "qkv")
        out = []
        for place, a in enumerate(h):
            context = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                seen = range(place + 1)
                weights = np.exp([q[place][part] @ k[j][part] / math.sqrt(size) for j in seen])
                context.append(sum(w * v[j][part] for w, j in zip(weights / weights.sum(), seen, strict=True)))
            a = a + affine(f"{of}.self_attn.out_proj", np.concatenate(context))
            wide = affine(f"{of}.mlp.fc1", norm(f"{of}.layer_norm2", a))
            out.append(a + affine(f"{of}.mlp.fc2", np.array([ACTIVATIONS[sizes["hidden_act"]](u) for u in wide])))
        h = out
    return t["text_projection.weight"] @ norm("text_model.final_layer_norm", h[-1])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("clip") / "checkpoint")


@pytest.fixture(scope="module")
def clip(checkpoint):
    return read_clip(checkpoint)


@pytest.fixture
def folder(checkpoint, tmp_path):
    return shutil.copytree(checkpoint, tmp_path / "copy")


@eqx.filter_jit
def _embedding(tower, tokens):
    return tower(tokens)


def embedded(tower, tokens) -> np.ndarray:
    return np.asarray(_embedding(tower, jnp.asarray(tokens, jnp.int32)))


# --- The network -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_tower_is_that_of_plain_numpy(tmp_path, activation):
    sizes = SIZES | {"hidden_act": activation}
    tensors = random_tensors(sizes, 6)
    tower = read_clip(write_clip(tmp_path, CONFIG | {"text_config": sizes}, tensors)).tower
    np.testing.assert_allclose(embedded(tower, TOKENS), slow_embedding(tensors, TOKENS, sizes), atol=3e-5)


def test_one_hot_rows_are_tokens_and_their_gradient_is_the_slope(clip):
    tower, e = clip.tower, jax.nn.one_hot(jnp.array(TOKENS), 12)
    of_rows = jax.jit(jax.value_and_grad(lambda e: tower.encode(e @ tower.words)[0]))
    value, gradient = of_rows(e)
    np.testing.assert_allclose(value, embedded(tower, TOKENS)[0], atol=1e-5)
    step = 1e-2 * np.eye(len(TOKENS), dtype=np.float32)[2][:, None] * np.eye(12, dtype=np.float32)[5][None]
    slope = (of_rows(e + step)[0] - of_rows(e - step)[0]) / 2e-2
    np.testing.assert_allclose(gradient[2, 5], slope, atol=2e-3)


def test_a_random_tower_has_the_shapes_of_one_that_was_read(clip):
    made = eqx.filter_eval_shape(ClipText.random, jax.random.key(0), ClipConfig(**SIZES, projection_dim=6))
    assert made.config == clip.tower.config
    assert jax.tree.map(jnp.shape, made) == jax.tree.map(jnp.shape, clip.tower)


@pytest.mark.slow
def test_texts_of_a_random_tower_differ():
    tower = ClipText.random(jax.random.key(0))
    rows = np.stack([embedded(tower, [510, *words, 511]) for words in ([1, 2, 3, 4], [1, 2, 3, 5], [9, 8, 7, 6])])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    near, far = rows[0] @ rows[1], rows[0] @ rows[2]
    assert far < near < 0.999


def test_a_text_that_is_too_long_gets_a_sentence():
    tower = eqx.filter_eval_shape(ClipText.random, jax.random.key(0))
    with pytest.raises(ValueError, match=f"at most {SMALL.max_position_embeddings} tokens, .* the text has 41"):
        eqx.filter_eval_shape(lambda tower: tower(jnp.zeros(41, jnp.int32)), tower)


# --- Tokens ----------------------------------------------------------------------------------------------------------


def test_text_becomes_tokens_and_text_again(clip):
    tokens = clip.tokenizer.tokens("  CAT's \n Cat a")
    assert [clip.tokenizer.vocabulary[token] for token in tokens] == ["cat</w>", "'s</w>", "cat</w>", "a</w>"]
    assert clip.tokenizer.text([10, *tokens, 11]) == "cat 's cat a"
    assert clip.embed("cat's a").shape == (6,)


def test_the_earliest_merge_comes_first():
    entries = ["a", "b", "c</w>", "ab", "bc</w>", "abc</w>", "<|startoftext|>", "<|endoftext|>"]
    index = {entry: i for i, entry in enumerate(entries)}
    pieces = {
        (("a", "b"), ("b", "c</w>")): ["ab", "c</w>"],
        (("b", "c</w>"), ("a", "b")): ["a", "bc</w>"],
        (("b", "c</w>"), ("a", "b"), ("a", "bc</w>")): ["abc</w>"],
    }
    for merges, expected in pieces.items():
        assert BytePairs(index, merges).tokens("abc") == [index[entry] for entry in expected]


def test_every_occurrence_of_a_pair_is_merged():
    index = {entry: i for i, entry in enumerate(["a", "a</w>", "aa", "<|startoftext|>", "<|endoftext|>"])}
    tokens = BytePairs(index, [("a", "a")]).tokens("aaaaaa")
    assert tokens == [2, 2, 0, 1]  # the last letter carries the end of the word


def test_words_digits_and_signs_are_apart(clip):
    split = clip.tokenizer.split
    assert split("It's 2024, don't!?") == ["it", "'s", "2", "0", "2", "4", ",", "don", "'t", "!?"]
    assert split("''s x² Ⅷ_ naïve 猫") == ["''", "s", "x", "²", "ⅷ", "_", "naïve", "猫"]
    assert split("") == []


def test_letters_outside_ascii_are_bytes():
    letters = "Ã©</w>"  # the two bytes of é, as CLIP writes them
    index = {"Ã": 0, letters[1:]: 1, letters: 2, "<|startoftext|>": 3, "<|endoftext|>": 4}
    assert BytePairs(index, []).tokens("É") == [0, 1]
    pairs = BytePairs(index, [("Ã", letters[1:])])
    assert pairs.tokens("é") == [2]
    assert pairs.text([2, 2]) == "é é"
    assert pairs.text([0]) == "\N{REPLACEMENT CHARACTER}"


def test_special_tokens_are_no_words(clip):
    assert np.flatnonzero(~clip.tokenizer.is_word).tolist() == [10, 11]
    assert clip.tokenizer.split("<|endoftext|>") == ["<|", "endoftext", "|>"]
    with pytest.raises(ValueError, match="'a dog' cannot be written in tokens: the vocabulary has nothing for 'd'"):
        clip.tokenizer.tokens("a dog")


def test_a_tokenizer_json_is_read(folder, clip):
    """Whose special tokens are not read from text either, though transformers would."""
    made = BytePairs(VOCABULARY, MERGES)._tokenizer
    made.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    made.save(str(folder / "tokenizer.json"))
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    found = read_clip(folder).tokenizer
    assert found.vocabulary == clip.tokenizer.vocabulary
    assert found.tokens("CAT's a") == clip.tokenizer.tokens("CAT's a")
    with pytest.raises(ValueError, match="the vocabulary has nothing for '<'"):
        found.tokens("a <|endoftext|>")


# --- The reader ------------------------------------------------------------------------------------------------------


def test_a_text_tower_saved_alone_is_the_same(folder, clip):
    (folder / "config.json").write_text(json.dumps(SIZES | {"model_type": "clip_text_model", "projection_dim": 6}))
    alone = read_clip(str(folder))
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), alone.tower, clip.tower)))


def test_what_a_config_leaves_out_is_the_usual(folder):
    set_text(max_position_embeddings=None, layer_norm_eps=None)(folder)
    tensors = load_file(folder / "model.safetensors")
    name = "text_model.embeddings.position_embedding.weight"
    save_file(tensors | {name: np.ones((77, 8), np.float32)}, folder / "model.safetensors")
    config = read_clip(folder).tower.config
    assert (config.max_position_embeddings, config.layer_norm_eps) == (77, 1e-5)


def set_config(**values):
    def change(folder):
        config = json.loads((folder / "config.json").read_text()) | values
        (folder / "config.json").write_text(json.dumps(config))

    return change


def set_text(**values):
    text = {name: value for name, value in (SIZES | values).items() if value is not None}
    return set_config(text_config=text)


def set_tensor(name, value):
    def change(folder):
        tensors = load_file(folder / "model.safetensors")
        array = tensors.pop(name)
        save_file(tensors if value is None else tensors | {name: value(array)}, folder / "model.safetensors")

    return change


def write(name, text):
    return lambda folder: (folder / name).write_text(text)


def remove(name):
    return lambda folder: (folder / name).unlink()


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def in_pieces(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}")


def cut_off(folder):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


BROKEN = {
    "no config": (remove("config.json"), r"There is no .*config\.json; the folder of a CLIP checkpoint has"),
    "another type": (set_config(model_type="bert"), "a model of type 'bert'; only 'clip' and 'clip_text_model'"),
    "no text tower": (set_config(text_config=None), "sizes of the text tower in text_config, but has None"),
    "layers as text": (set_text(num_hidden_layers="2"), 'num_hidden_layers as a whole number above 0, but has "2"'),
    "no heads": (set_text(num_attention_heads=0), "num_attention_heads as a whole number above 0, but has 0"),
    "half a layer": (set_text(num_hidden_layers=1.5), "num_hidden_layers as a whole number above 0, but has 1.5"),
    "epsilon": (set_text(layer_norm_eps=True), "layer_norm_eps as a number above 0, but has true"),
    "activation": (set_text(hidden_act="mish"), "activation 'mish', which is not among quick_gelu, gelu"),
    "heads": (set_text(num_attention_heads=3), "hidden_size 8, which 3 attention heads cannot share"),
    "no vocabulary": (
        remove("vocab.json"),
        r"There is no .*vocab\.json; .*, tokenizer\.json \(or vocab\.json and merges\.txt\)",
    ),
    "no merges": (remove("merges.txt"), r"There is no .*merges\.txt; .*, tokenizer\.json \(or vocab"),
    "vocabulary of another": (
        write("vocab.json", json.dumps(VOCABULARY | {"dog</w>": 12})),
        r"13 entries, but vocab_size in config\.json is 12",
    ),
    "vocabulary with a gap": (write("vocab.json", json.dumps(VOCABULARY | {"a": 99})), r"the tokens 0\.\.11 once"),
    "vocabulary of names": (write("vocab.json", json.dumps(VOCABULARY | {"a": "b"})), "entry, but 'a' has 'b'"),
    "no end": (
        write("vocab.json", json.dumps(VOCABULARY).replace("<|endoftext|>", "dog")),
        r"has <\|endoftext\|>, which this one has not",
    ),
    "three in a merge": (write("merges.txt", "#version: 0.2\na t</w>\na b c\n"), "line 3 is 'a b c'"),
    "merges of another": (write("merges.txt", "a b\n"), "make 'ab' of 'a' and 'b', which the vocabulary has not"),
    "merges are no text": (lambda folder: (folder / "merges.txt").write_bytes(b"\xff\xfe"), "is not text in UTF-8"),
    "no weights": (remove("model.safetensors"), r"There is no .*model\.safetensors"),
    "pickled weights": (pickled, r"pytorch_model\.bin, a pickled file, .* may run any program; .*CLIPModel"),
    "weights in pieces": (in_pieces, "several files; save it as one: .*CLIPModel"),
    "cut off": (cut_off, r"cut off or no safetensors file .*; copy it again"),
    "no projection": (set_tensor("text_projection.weight", None), r"no tensor text_projection\.weight, .*CLIPModel"),
    "no second layer": (
        set_tensor("text_model.encoder.layers.1.mlp.fc1.bias", None),
        r"no tensor text_model\.encoder\.layers\.1\.mlp\.fc1\.bias",
    ),
    "wrong shape": (
        set_tensor("text_model.encoder.layers.0.mlp.fc2.weight", np.transpose),
        r"fc2\.weight has the shape \(12, 8\), but by config\.json it should have \(8, 12\)",
    ),
    "not a number": (
        set_tensor("text_projection.weight", lambda array: array * np.nan),
        r"text_projection\.weight holds numbers that are not finite",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_gets_a_sentence(folder, name):
    breaks, sentence = BROKEN[name]
    breaks(folder)
    with pytest.raises(ValueError, match=sentence):
        read_clip(folder)


def test_a_path_that_is_no_folder_gets_a_sentence(folder):
    with pytest.raises(ValueError, match=r"nowhere does not exist; nothing is downloaded"):
        read_clip(folder / "nowhere")
    with pytest.raises(ValueError, match=r"vocab\.json is a file"):
        read_clip(folder / "vocab.json")
