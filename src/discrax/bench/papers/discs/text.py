"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling": text infilling.

Four masked words of each of 20 sentences are drawn from a masked language model: 25 chains of 50 steps a sentence, of
whose last states the five most probable ones are kept. The paper's model is BERT-base (uncased) and its corpora are
WikiText-103 and the Toronto BookCorpus. Ours is the model in the folder that the variable DISCRAX_BERT names, else a
small one that is trained here (see `discrax.bench.experiments.infilling`), with sentences of WikiText-2 and the Brown
corpus in their place; beside it a model of antibody sequences, whose letters print has nothing to say about. Special
tokens are not filled in.

Samplers are tuned in every step by the paper's rules. Those that are printed with "-nA" are not: DMALA weighs a move
by exp(-2.5), and the times of DLMC and DLMCf are those in which 500 and 10,000 moves would be made at the rates of the
first state. Block Gibbs and Hamming balls would read a sentence for every word of the vocabulary: print has them not
either. The default size is made for a GPU.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import Row, relabel
from discrax.bench.plan.suite import Figure, Size, Table, figure, suite

VARIABLE = "DISCRAX_BERT"
WEIGHTS = {"sqrt(t)": "sqrt", "t/(t+1)": "ratio"}
INFORMED = {"GWG": "gwg", "DMALA": "dmala", "PAS": "pas", "DLMCf": "dlmcf", "DLMC": "dlmc"}
_MOVES = {"DLMC": 500.0, "DLMCf": 10_000.0}
_FIXED_STEP = 0.4  # of DMALA: moves between one-hot levels have squared length 2, so exp(-2 / (2 * 0.4)) = exp(-2.5)


@dataclass(frozen=True)
class Effort:
    """How much is done at a size."""

    count: int  # sentences
    length: int  # letters that are read of a chain
    chains: int
    steps: int
    top: int


EFFORTS = {
    Size.QUICK: Effort(2, 25, 4, 10, 2),
    Size.DEFAULT: Effort(20, 25, 25, 50, 5),
    Size.PAPER: Effort(20, 122, 25, 50, 5),
}


def _samplers(fixed: bool) -> Iterator[tuple[str, str, Call, Call | None]]:
    """Name, weight function, sampler and how it is tuned; with `fixed` also those that are not."""
    tuned = call("discrax.bench.papers.rules:PaperRate")
    yield "RWM", "", call("discrax.samplers:rwm"), tuned
    for name, sampler in INFORMED.items():
        for shown, weight in WEIGHTS.items():
            if fixed and name == "DMALA":
                yield "DMALA-nA", shown, call("discrax.samplers:dmala", balancing=weight, step_size=_FIXED_STEP), None
            if fixed and name in _MOVES:
                address = "discrax.bench.papers.discs.kernels:TimedAtStart"
                still = call(address, sampler=sampler, moves=_MOVES[name], balancing=weight)
                yield f"{name}-nA", shown, still, None
            yield name, shown, call(f"discrax.samplers:{sampler}", balancing=weight), tuned


def _cells(size: Size, *, fixed: bool) -> Iterator[Cell]:
    effort, module = EFFORTS[size], "discrax.bench.experiments.infilling"
    for task, checkpoint in (("text-infilling", os.environ.get(VARIABLE, "english")), ("antibodies", "antibodies")):
        for name, weight, sampler, adaptation in _samplers(fixed):
            yield Cell(
                labels=(("task", task), ("sampler", name), *((("weight_fn", weight),) if weight else ())),
                target=call(f"{module}:sentences", count=effort.count, length=effort.length, checkpoint=checkpoint),
                sampler=sampler,
                budget=Budget(effort.chains, 0, effort.steps),
                adaptation=adaptation,
                measure=call(f"{module}:infilling", top=effort.top),
                is_timed=True,
            )


def _by_reference(rows: list[Row]) -> list[Row]:
    """What `unique_ngrams_pct REFERENCE N` says in its name, as labels."""
    found = []
    for row in rows:
        metric, *names = row["metric"].split(" ")
        reference, ngram = names if names else ("self", "2")
        if names or row["status"] == "failed":
            found.append(relabel(row, reference=reference, ngram=ngram) | {"metric": metric})
    return found


def _both_corpora(rows: list[Row]) -> list[Row]:
    return [relabel(row, reference="WT103+TBC") for row in rows]


def _exhibits(number: int) -> tuple[Table | Figure, ...]:
    """Print is of another model and other sentences, so nothing is judged."""
    other = "ours: a small model trained on two million words unless DISCRAX_BERT names another; print: BERT"
    ours = f"WT103 is WikiText-2 and TBC is Brown here; {other}"
    shared: dict[str, Any] = {"paper": "discs", "number": number, "compares": False}
    bars: dict[str, Any] = {"panels": ("task",), "hue": ("sampler", "weight_fn"), "logy": False}
    return (
        Table(
            f"Self-BLEU, small where sentences differ ({other})",
            metric="self_bleu", ours="self_bleu", columns=("task",), smaller_is_better=True, **shared,
        ),
        Table(
            f"Unique n-grams in percent ({ours})",
            metric="unique_ngrams_pct", ours="unique_ngrams_pct", columns=("reference", "ngram"),
            derive=_by_reference, **shared,
        ),
        Table(
            f"BLEU against both corpora ({ours})",
            metric="corpus_bleu", ours="corpus_bleu", columns=("reference",), derive=_both_corpora, **shared,
        ),
        Table("Log-probability of what was kept", "", 0, "log_prob", "log_prob", ("task",)),
        Table("Acceptance", "", 0, "acceptance", "acceptance", ("task",)),
        Table("Seconds, compilation included", "", 0, "time_s", "time_s", ("task",)),
        figure("Self-BLEU, small where sentences differ", "bars", metric="self_bleu", ylabel="self-BLEU", **bars),
        figure("Log-probability of what was kept", "bars", metric="log_prob", ylabel="log-probability", **bars),
    )  # fmt: skip


@suite("discs/table02", "text infilling: diversity and quality of what is filled in", *_exhibits(2))
def table02(size: Size) -> Iterator[Cell]:
    yield from _cells(size, fixed=False)


@suite("discs/table09", "text infilling, also with samplers that are not tuned", *_exhibits(9))
def table09(size: Size) -> Iterator[Cell]:
    yield from _cells(size, fixed=True)


ALIASES = {"discs/text": ("discs/table02", "discs/table09")}
