"""Infilling as cells: masked sentences are filled in, and what comes out is compared with itself and with corpora.

A cell's target makes the sentences. Its model is a checkpoint folder, or ENGLISH, a small model that is trained here
on the user's texts and kept in the cache folder (five million parameters, two million words: not BERT), or ANTIBODIES,
antiberty_mlm of the data folder, a model of antibody sequences. What is masked depends on the model:

- of words: sentences of 15 to 25 words, half from the last twentieth of the Brown corpus and half from WikiText-2
  (test), neither of which ENGLISH has seen, four inner words of each masked. The corpora of n-grams and BLEU are 5,000
  other sentences of each.
- of letters: the last letters of antibody chains, four inner ones of each masked. One chain is a heavy chain that is
  known; the others are made of it by the model, which redraws a random half of its letters at once. There is no corpus.

All chains of all sentences are run with the cell's sampler, and of every sentence's last states the most probable ones
are kept, equal ones too. In percent, as printed: `self_bleu`, `corpus_bleu`, `unique_ngrams_pct REFERENCE N`.
"""

import lzma
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from discrax.bench.experiments.data import cache_folder
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, Timing, check_complete, experiment, input_of
from discrax.core import random
from discrax.data.folder import SOURCES, data_folder
from discrax.text import (
    Infilling,
    MaskedModel,
    corpus_bleu,
    infill,
    read_checkpoint,
    self_bleu,
    train_masked_model,
    unique_ngrams,
    write_checkpoint,
)
from discrax.text.tokens import MASK

HEAVY_CHAIN = (
    "EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQE"
    "RVTITRDMSTSTAYMELSSLRSEDTAVYYCAAPYCSSISCNDGFDIWGQGTMVTVS"
)
ENGLISH, ANTIBODIES = "english", "antibodies"
NGRAMS = (2, 3)
_NUM_MASKED, _SHORTEST, _LONGEST, _CORPUS_SIZE = 4, 15, 25, 5000
_UNKNOWN = "<unk>"
_SHARE_LEARNT, _SHARE_SEEN = 0.9, 0.95  # of the Brown corpus: learnt from, and seen at all
_BROWN = "brown_sentences.txt.xz"
_VALIDATION, _TEST = "wikitext2_valid.txt.xz", "wikitext2_test.txt.xz"
_SPEECHES = ("inaugural.txt.xz", "state_union.txt.xz")


class Sentences(NamedTuple):
    """A model and the sentences it is to fill in."""

    model: MaskedModel
    masked: tuple[str, ...]
    corpora: dict[str, list[list[str]]]  # by the name that print has for what stands in its place


def sentences(count: int, length: int, checkpoint: str, seed: int = 0) -> Sentences:
    """`count` masked sentences for a model; `length` is how many letters of a chain are read."""
    made = {ENGLISH: english_model, ANTIBODIES: _antibody_model}
    model = read_checkpoint(made[checkpoint]() if checkpoint in made else checkpoint)
    generator = np.random.default_rng(seed)
    if model.tokenizer.is_letters:
        chains = [HEAVY_CHAIN, *(_redraw_letters(model, generator) for _ in range(count - 1))]
        return Sentences(model, tuple(_mask_words(list(chain[-length:]), generator, "") for chain in chains), {})
    masked, corpora = [], {}
    for name, lines, share in (("TBC", _brown(), (count + 1) // 2), ("WT103", _wikitext(_TEST), count // 2)):
        words = [model.tokenizer.split(line) for line in lines]
        unseen = range(0 if name == "WT103" else round(_SHARE_SEEN * len(lines)), len(lines))
        fit = [i for i in unseen if _SHORTEST <= len(words[i]) <= _LONGEST and _UNKNOWN not in lines[i]]
        chosen = set(generator.choice(fit, share, replace=False).tolist())
        masked += [_mask_words(words[i], generator, " ") for i in sorted(chosen)]
        corpora[name] = [each for i, each in enumerate(words) if i not in chosen][:_CORPUS_SIZE]
    return Sentences(model, tuple(masked), corpora)


def _mask_words(words: list[str], generator: np.random.Generator, between: str) -> str:
    inner = generator.choice(np.arange(1, len(words) - 1), _NUM_MASKED, replace=False)
    return between.join(MASK if i in inner else word for i, word in enumerate(words))


def _redraw_letters(model: MaskedModel, generator: np.random.Generator) -> str:
    """The heavy chain with a random half of its letters drawn from the model, all at once."""
    is_redrawn = generator.permutation(len(HEAVY_CHAIN)) < len(HEAVY_CHAIN) // 2
    target = Infilling(model, "".join(np.where(is_redrawn, MASK, list(HEAVY_CHAIN))))
    x = target.draw(jax.random.key(int(generator.integers(2**31))), 1)[0]
    return model.tokenizer.text(target.fill(x))


def english_model(num_updates: int = 10_000, seed: int = 0) -> Path:
    """The folder of a small model trained on the user's texts, from the cache folder where it is there."""
    folder = cache_folder() / f"masked-model-{num_updates}-{seed}"
    if not folder.is_dir():
        brown = _brown()
        learnt, seen = (round(share * len(brown)) for share in (_SHARE_LEARNT, _SHARE_SEEN))
        lines = [*brown[:learnt], *_wikitext(_VALIDATION)]
        lines += [line.strip() for name in _SPEECHES for line in _lines(name) if line.strip()]
        trained = train_masked_model(jax.random.key(seed), lines, brown[learnt:seen], num_updates=num_updates)
        write_checkpoint(trained.model, partial := folder.with_suffix(".part"))
        partial.rename(folder)
    return folder


def _antibody_model() -> Path:
    wanted = f"antiberty_mlm with config.json, vocab.txt and model.safetensors, of {SOURCES['antiberty_mlm']}"
    return data_folder("antiberty_mlm", wanted) / "antiberty_mlm"


def _lines(name: str) -> Iterator[str]:
    wanted = (
        f"text/{name}, an xz file of text, one sentence or paragraph a line; the set can be had from {SOURCES['text']}"
    )
    path = data_folder("text", wanted) / "text" / name
    if not path.is_file():
        raise ValueError(f"There is no {path}; expected {wanted}.")
    with lzma.open(path, "rt", encoding="utf-8", errors="replace") as lines:  # old speeches have a few odd bytes
        yield from lines


def _brown() -> list[str]:
    return [line.strip().replace("``", '"').replace("''", '"') for line in _lines(_BROWN)]


def _wikitext(name: str) -> list[str]:
    """Sentences; the file has paragraphs, in which some signs stand between @."""
    found = []
    for line in _lines(name):
        if line.strip() and not line.strip().startswith("="):
            plain = line.replace(" @-@ ", "-").replace(" @,@ ", ",").replace(" @.@ ", ".")
            found += [f"{sentence.strip()} ." for sentence in plain.strip().removesuffix(" .").split(" . ")]
    return found


@experiment
def infilling(cell: Cell, top: int) -> Measured:
    """Fills in the cell's sentences and keeps the `top` most probable of each."""
    task: Sentences = input_of(cell.target)
    begin = time.perf_counter()
    kept, log_probs, runs = [], [], []
    length = {"num_chains": cell.budget.num_chains, "num_steps": cell.budget.num_samples}
    for i, sentence in enumerate(task.masked):
        key = random.fold_in(jax.random.key(cell.seed), i)
        tuned = {"sampler": cell.sampler(), "adaptation": cell.make_adapter()}
        found = infill(key, task.model, sentence, **tuned, **length, top=top, progress=False)
        check_complete(found.run)
        kept += [task.model.tokenizer.join(found.target.fill(x)) for x in found.states]
        log_probs += found.log_probs.tolist()
        runs.append(found.run)
    numbers = [
        *quality(kept, task),
        Number("log_prob", float(np.mean(log_probs)), float(np.std(log_probs))),
        Number("acceptance", float(np.mean([run.warmup_stats["accept_prob"].mean() for run in runs]))),
        Number("sentences", len(task.masked)),
        Number("time_s", time.perf_counter() - begin),
    ]
    seconds, warmup, compiling = (
        sum(getattr(run, name) for run in runs) for name in ("seconds", "warmup_seconds", "compile_seconds")
    )
    return numbers, Timing(seconds, warmup, compiling)


def quality(kept: list[list[str]], task: Sentences) -> list[Number]:
    """How the sentences differ from one another and from corpora, in percent."""
    numbers = [Number("self_bleu", self_bleu(kept))]
    references: dict[str, list[list[str]] | None] = {"self": None, **task.corpora}
    for name, corpus in references.items():
        numbers += [Number(f"unique_ngrams_pct {name} {n}", unique_ngrams(kept, n, corpus)) for n in NGRAMS]
    if task.corpora:
        everything = [each for corpus in task.corpora.values() for each in corpus]
        numbers.append(Number("corpus_bleu", corpus_bleu(kept, everything)))
    return numbers
