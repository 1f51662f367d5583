"""The suites of text infilling, on a small model and corpora of a few sentences."""

import dataclasses
import json
import lzma

import numpy as np
import pytest

from discrax.bench.execute.cells import run_cell
from discrax.bench.experiments import infilling
from discrax.bench.papers.discs.text import VARIABLE, table02, table09
from discrax.bench.plan.cell import Budget, call
from discrax.bench.plan.printed import find_printed, printed_rows
from discrax.bench.plan.suite import Size, Table
from discrax.bench.report.grid import make_grid

from . import tiny


def written(path, lines) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress("\n".join(lines).encode()))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Sentences of 16 words each: as long as the small model reads, and all of one length."""
    folder, generator = tmp_path_factory.mktemp("data"), np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(generator.choice(["the", "cat", "dog", "sat", "on", "big"], 15)) + " ."

    brown, wiki = [sentence() for _ in range(60)], [sentence() for _ in range(12)]
    paragraphs = [" = Title = ", "", *(f" {' '.join(wiki[i : i + 3])} " for i in range(0, 12, 3)), " the <unk> sat . "]
    written(folder / "text" / "brown_sentences.txt.xz", brown)
    written(folder / "text" / "wikitext2_test.txt.xz", paragraphs)
    return folder, brown, wiki


def names_of(suite) -> set[tuple[str, str]]:
    return {(cell.label("sampler"), cell.label("weight_fn") or "") for cell in suite.cells(Size.PAPER)}


@pytest.mark.parametrize(("suite", "number"), [(table02, 2), (table09, 9)])
def test_there_is_a_cell_for_every_printed_line(suite, number):
    assert names_of(suite) == {(row["sampler"], row["weight_fn"]) for row in printed_rows("discs", number)}
    for cell in suite.cells(Size.QUICK):
        if cell.label("task") == "antibodies":
            continue
        labels = dict(cell.labels) | {"reference": "WT103", "ngram": "3"}
        assert find_printed("discs", number, "unique_ngrams_pct", labels) is not None
        assert cell.sampler() is not None


def test_the_variable_names_the_model(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert _models() == {"text-infilling": "english", "antibodies": "antibodies"}
    monkeypatch.setenv(VARIABLE, "/a/folder")
    assert _models() == {"text-infilling": "/a/folder", "antibodies": "antibodies"}


def _models() -> dict[str, str]:
    return {cell.label("task"): dict(cell.target.arguments)["checkpoint"] for cell in table02.cells(Size.QUICK)}


def test_sentences_of_a_model_of_words(checkpoint, corpora, monkeypatch):
    folder, brown, wiki = corpora
    monkeypatch.setenv("DISCRAX_DATA", str(folder))
    task = infilling.sentences(4, 25, str(checkpoint))
    assert len(task.masked) == 4
    for masked, source in zip(task.masked, (brown, brown, wiki, wiki), strict=True):
        words = masked.split()
        assert words.count("[MASK]") == 4
        assert "[MASK]" not in (words[0], words[-1])
        whole = [each.split() for each in source]
        same = [all(a in (b, "[MASK]") for a, b in zip(words, each, strict=True)) for each in whole]
        assert sum(same) == 1
        assert whole[same.index(True)] not in [*task.corpora["TBC"], *task.corpora["WT103"]]
    assert len(task.corpora["TBC"]) == 58
    assert len(task.corpora["WT103"]) == 11  # and one with an unknown word, which is not masked


def test_sequences_of_a_model_of_letters(tmp_path):
    vocabulary = (*tiny.SPECIAL, *"ACDEFGHIKLMNPQRSTVWY")
    config = tiny.CONFIG | {"vocab_size": len(vocabulary), "num_hidden_layers": 1, "max_position_embeddings": 130}
    tiny.write_checkpoint(tmp_path, config=config, vocabulary=vocabulary)
    task = infilling.sentences(3, 25, str(tmp_path))
    assert task.corpora == {}
    assert len(set(task.masked)) == 3
    for masked in task.masked:
        tokens = task.model.tokenizer.tokens(masked)
        assert len(tokens) == 25
        assert tokens.count(task.model.tokenizer.index["[MASK]"]) == 4
    known = list(infilling.HEAVY_CHAIN[-25:])
    first = task.model.tokenizer.split(task.masked[0])
    assert all(a in (b, "[MASK]") for a, b in zip(first, known, strict=True))


@pytest.mark.slow
def test_a_cell_measures_what_is_printed(checkpoint, corpora, monkeypatch):
    monkeypatch.setenv("DISCRAX_DATA", str(corpora[0]))
    cell = dataclasses.replace(
        next(iter(table02.cells(Size.QUICK))),
        target=call("discrax.bench.experiments.infilling:sentences", count=2, length=25, checkpoint=str(checkpoint)),
        budget=Budget(3, 0, 2),
    )
    assert cell.label("sampler") == "RWM"
    rows = run_cell(cell)
    assert [row["error"] for row in rows if row["status"] != "ok"] == []
    rows = [row | {"labels": json.loads(row["labels"])} for row in rows]
    values = {row["metric"]: row["value"] for row in rows}
    assert 0 < values["self_bleu"] <= 100
    assert 0 < values["corpus_bleu"] <= 100
    assert 0 <= values["acceptance"] <= 1
    for table in (each for each in table02.exhibits if isinstance(each, Table)):
        grid = make_grid(table, rows)
        line = next(line for line in grid.lines if line.head[0] == "RWM")
        assert all(entry.status == "ok" for entry in line.entries), table.title
    entry = next(line for line in make_grid(table02.exhibits[1], rows).lines if line.head[0] == "RWM").entries[-1]
    assert entry.paper == 26.67  # trigrams against TBC
    assert entry.ours == pytest.approx(values["unique_ngrams_pct TBC 3"])


def test_without_data_there_is_a_sentence(checkpoint, monkeypatch, tmp_path):
    monkeypatch.delenv("DISCRAX_DATA", raising=False)
    monkeypatch.setenv("DISCRAX_CACHE", str(tmp_path))
    for model in (infilling.ENGLISH, infilling.ANTIBODIES):
        with pytest.raises(ValueError, match="DISCRAX_DATA"):
            infilling.sentences(2, 25, model)
    monkeypatch.setenv("DISCRAX_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"There is no .*brown_sentences\.txt\.xz"):
        infilling.sentences(2, 25, str(checkpoint))
