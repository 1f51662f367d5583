import json

import pytest

from discrax.text.commands import infill_sentence


def test_a_sentence_is_filled_in_printed_and_written(checkpoint, tmp_path, capsys):
    out = tmp_path / "new" / "filled.json"
    infill_sentence("the [MASK] zebra", checkpoint, sampler="rwm", chains=4, steps=1, top=2, out=out)
    printed = capsys.readouterr().out
    written = json.loads(out.read_text())
    assert "read as [UNK]: zebra" in printed
    assert "log probability" in printed
    assert len(written["filled"]) == 2
    assert written["unknown"] == ["zebra"]
    for filled in written["filled"]:
        assert filled["sentence"] in printed
        assert f"{filled['log_prob']:.3f}" in printed
        assert filled["sentence"].replace(filled["words"][0].removeprefix("##"), "").split()[-1] == "[UNK]"


def test_mistakes_are_sentences(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist"):
        infill_sentence("the [MASK]", tmp_path / "nowhere")
    with pytest.raises(OSError, match="it is a folder, and a file was expected"):
        infill_sentence("the [MASK]", checkpoint, out=tmp_path)


def test_the_command_line_reads_its_arguments(checkpoint, capsys):
    tyro = pytest.importorskip("tyro")
    arguments = ["the [MASK] zebra", "--checkpoint", str(checkpoint), "--sampler", "rwm", "--chains", "4"]
    tyro.cli(infill_sentence, args=[*arguments, "--steps", "1", "--top", "2"])
    assert "log probability" in capsys.readouterr().out
