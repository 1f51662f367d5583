import json
import shutil

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from discrax.text import read_checkpoint

from . import tiny


@pytest.fixture
def folder(checkpoint, tmp_path):
    return shutil.copytree(checkpoint, tmp_path / "copy")


def same(a, b, tolerance=0.0) -> bool:
    import jax

    close = jax.tree.map(lambda x, y: bool(np.allclose(x, y, rtol=0, atol=tolerance)), a, b)
    return all(jax.tree.leaves(close))


def rename(folder, change) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({change(name): array for name, array in tensors.items()}, folder / "model.safetensors")


def test_older_names_and_names_without_a_prefix_are_known(folder, model):
    rename(folder, lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"))
    assert same(read_checkpoint(folder).bert, model.bert)
    rename(folder, lambda name: name.removeprefix("bert."))
    assert same(read_checkpoint(folder).bert, model.bert)
    rename(folder, lambda name: name.replace("cls.predictions.bias", "cls.predictions.decoder.bias"))
    assert same(read_checkpoint(str(folder)).bert, model.bert)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats_are_read_as_float32(folder, model, dtype):
    tensors = load_file(folder / "model.safetensors")
    save_file({name: array.astype(dtype) for name, array in tensors.items()}, folder / "model.safetensors")
    found = read_checkpoint(folder).bert
    assert found.words.dtype == np.float32
    assert same(found, model.bert, 0.02)


def test_the_case_is_what_the_tokenizer_says(folder):
    assert read_checkpoint(folder).tokenizer.lower_case
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert not read_checkpoint(folder).tokenizer.lower_case


def as_tokenizer_json(folder, model: str = "WordPiece", **changes) -> None:
    """tokenizer.json instead of vocab.txt, as transformers writes it: it may cut texts off and pad them, too."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(getattr(tokenizers.models, model)())
    if model == "WordPiece":
        made.model = tokenizers.models.WordPiece({word: i for i, word in enumerate(tiny.VOCABULARY)}, unk_token="[UNK]")
        made.normalizer = tokenizers.normalizers.BertNormalizer(**changes)
        made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 4), ("[CLS]", 3))
    made.enable_truncation(3)
    made.enable_padding(length=30)
    made.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").unlink()


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_tokenizer_json_is_read(folder, model, lowercase):
    as_tokenizer_json(folder, lowercase=lowercase)
    found = read_checkpoint(folder).tokenizer
    assert found.lower_case == lowercase
    assert found.vocabulary == model.tokenizer.vocabulary
    sentence = "the big cats sat on the [MASK]."
    assert found.tokens(sentence) == model.tokenizer.tokens(sentence)
    assert found.unknown("The zebra sat on a mat.") == ["The", "zebra"][lowercase:]


def set_config(**values):
    def change(folder):
        config = json.loads((folder / "config.json").read_text()) | values
        kept = {name: value for name, value in config.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(kept))

    return change


def set_tensor(name, value):
    def change(folder):
        tensors = load_file(folder / "model.safetensors")
        if value is None:
            del tensors[name]
        else:
            tensors[name] = value(tensors[name])
        save_file(tensors, folder / "model.safetensors")

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
    "no config": (remove("config.json"), r"There is no .*config\.json; the folder of a checkpoint has"),
    "config is no JSON": (write("config.json", "{"), r"config\.json is not JSON"),
    "config is a list": (write("config.json", "[]"), "should hold a JSON object, but holds list"),
    "another type": (set_config(model_type="gpt2"), "a model of type 'gpt2'; only 'bert'"),
    "relative positions": (set_config(position_embedding_type="relative_key"), "'relative_key'; only 'absolute'"),
    "no hidden size": (set_config(hidden_size=None), "hidden_size as a whole number above 0, but has null"),
    "layers as text": (set_config(num_hidden_layers="2"), 'num_hidden_layers as a whole number above 0, but has "2"'),
    "no layers": (set_config(num_hidden_layers=0), "num_hidden_layers as a whole number above 0, but has 0"),
    "activation": (set_config(hidden_act="tanhshrink"), "activation 'tanhshrink', which is not among quick_gelu, gelu"),
    "heads": (set_config(num_attention_heads=3), "hidden_size 8, which 3 attention heads cannot share"),
    "no vocabulary": (remove("vocab.txt"), r"There is no .*vocab\.txt; .*, tokenizer\.json \(or vocab\.txt\)"),
    "short vocabulary": (write("vocab.txt", "\n".join(tiny.VOCABULARY[:-1])), "19 entries, but vocab_size .* is 20"),
    "no mask": (write("vocab.txt", "\n".join(tiny.VOCABULARY).replace("[MASK]", "mask")), r"has \[MASK\], which this"),
    "not text": (lambda folder: (folder / "vocab.txt").write_bytes(b"\xff\xfe"), "is not text in UTF-8"),
    "tokens of another kind": (
        lambda folder: as_tokenizer_json(folder, "Unigram"),
        r"tokenizer\.json should cut words by WordPiece, but does so by Unigram",
    ),
    "no tokenizer": (write("tokenizer.json", "{}"), r"tokenizer\.json is not what the package tokenizers writes"),
    "no weights": (remove("model.safetensors"), r"There is no .*model\.safetensors"),
    "pickled weights": (pickled, r"pytorch_model\.bin, a pickled file, .* may run any program; .*save_pretrained"),
    "weights in pieces": (in_pieces, "several files; save it as one"),
    "cut off": (cut_off, r"cut off or no safetensors file .*; copy it again"),
    "no head": (
        set_tensor("cls.predictions.transform.dense.weight", None),
        r"no tensor cls\.predictions\.transform\.dense\.weight, which should have the shape \(8, 8\); a masked",
    ),
    "no second layer": (
        set_tensor("bert.encoder.layer.1.attention.self.key.bias", None),
        r"no tensor bert\.encoder\.layer\.1\.attention\.self\.key\.bias",
    ),
    "wrong shape": (
        set_tensor("bert.encoder.layer.0.output.dense.weight", np.transpose),
        r"layer\.0\.output\.dense\.weight has the shape \(12, 8\), but by config\.json it should have \(8, 12\)",
    ),
    "integers": (
        set_tensor("cls.predictions.bias", lambda array: array.astype(np.int32)),
        r"cls\.predictions\.bias should hold floats, but holds int32",
    ),
    "not a number": (
        set_tensor("cls.predictions.bias", lambda array: array * np.nan),
        r"cls\.predictions\.bias holds numbers that are not finite",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_broken_folder_gets_a_sentence(folder, name):
    breaks, sentence = BROKEN[name]
    breaks(folder)
    with pytest.raises(ValueError, match=sentence):
        read_checkpoint(folder)


def test_a_path_that_is_no_folder_gets_a_sentence(folder):
    with pytest.raises(ValueError, match=r"nowhere does not exist; nothing is downloaded"):
        read_checkpoint(folder / "nowhere")
    with pytest.raises(ValueError, match=r"vocab\.txt is a file"):
        read_checkpoint(folder / "vocab.txt")


@pytest.mark.parametrize("package", ["safetensors", "tokenizers"])
def test_without_a_package_the_extra_is_named(folder, monkeypatch, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "discrax\[text\]"'):
        read_checkpoint(folder)
