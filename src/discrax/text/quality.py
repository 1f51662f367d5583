"""How good and how different generated sentences are; each is a list of words, and all numbers are in percent.

BLEU-4 (Papineni et al., 2002) of sentences h with references, over a corpus: with c_n(g) how often a sentence has the
n-gram g,

    p_n = sum_h sum_g min(c_n(g in h), most often c_n(g) in a reference of h) / sum_h sum_g c_n(g in h)
    BLEU = exp(min(0, 1 - r / l)) (p_1 p_2 p_3 p_4)^(1/4)

l being the length of all sentences and r that of each one's reference that is nearest in length (the shorter of two).
There is no smoothing: without any common 4-gram it is 0. The numbers are those of `nltk.translate.bleu_score`, which
counts the references anew for every sentence; here thousands of references are counted once.

- `self_bleu`: every sentence with all the others as its references; low where sentences differ (Zhu et al., 2018).
- `corpus_bleu`: every sentence with all sentences of a corpus as its references; high where they read alike.
- `unique_ngrams`: of sentences among themselves, the share of n-grams that occur once; with a corpus, the distinct
  n-grams that it has not, over all n-grams (Wang and Cho, 2019).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from discrax.core import checks
from discrax.core.checks import checked_arguments

Words = Sequence[str]
_ORDER = 4


def ngrams(sentence: Words, n: int) -> list[tuple[str, ...]]:
    """All runs of n words, in their order."""
    return list(zip(*(sentence[i:] for i in range(n)), strict=False))


def _num_ngrams(sentence: Words, n: int) -> int:
    """How many n-grams count as there: a sentence that is too short for any has one that matches nothing."""
    return max(1, len(sentence) - n + 1)


def _check_words(sentences: Any) -> None:
    """A sentence that is not split would be read letter by letter."""
    if not isinstance(sentences, Sequence) or any(
        not isinstance(each, Sequence) or isinstance(each, str) for each in sentences
    ):
        raise TypeError(f"Sentences are lists of words, such as [['a', 'cat']], but got {checks.describe(sentences)}.")


def self_bleu(sentences: Sequence[Words]) -> float:
    """BLEU-4 of each sentence against the rest."""
    _check_words(sentences)
    if len(sentences) < 2:
        raise ValueError(f"Self-BLEU compares sentences with one another, but there is {len(sentences)}.")
    # What the rest has most often: the most often of all, unless this sentence alone has it so often.
    best = [_two_most_often(sentences, n) for n in range(1, _ORDER + 1)]
    matches, totals = [0] * _ORDER, [0] * _ORDER
    for sentence in sentences:
        for n in range(1, _ORDER + 1):
            for gram, count in Counter(ngrams(sentence, n)).items():
                first, second = best[n - 1][gram]
                matches[n - 1] += min(count, second if count == first else first)
            totals[n - 1] += _num_ngrams(sentence, n)
    lengths = Counter(map(len, sentences))
    nearest = sum(_nearest(len(each), (lengths - Counter([len(each)])).keys()) for each in sentences)
    return _bleu(matches, totals, sum(map(len, sentences)), nearest)


def _two_most_often(sentences: Iterable[Words], n: int) -> dict[tuple[str, ...], tuple[int, int]]:
    """For each n-gram how often the sentence that has it most often has it, and how often the next one."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for sentence in sentences:
        for gram, count in Counter(ngrams(sentence, n)).items():
            first, second = found.get(gram, (0, 0))
            found[gram] = (count, first) if count > first else (first, max(second, count))
    return found


def corpus_bleu(sentences: Sequence[Words], corpus: Sequence[Words]) -> float:
    """BLEU-4 of sentences against all sentences of a corpus."""
    _check_words(sentences)
    _check_words(corpus)
    if not sentences or not corpus:
        raise ValueError("BLEU compares sentences with a corpus, but one of the two is empty.")
    matches, totals = [0] * _ORDER, [0] * _ORDER
    for n in range(1, _ORDER + 1):
        most_often = _two_most_often(corpus, n)
        for sentence in sentences:
            for gram, count in Counter(ngrams(sentence, n)).items():
                matches[n - 1] += min(count, most_often.get(gram, (0, 0))[0])
            totals[n - 1] += _num_ngrams(sentence, n)
    lengths = set(map(len, corpus))
    nearest = sum(_nearest(len(each), lengths) for each in sentences)
    return _bleu(matches, totals, sum(map(len, sentences)), nearest)


def _nearest(length: int, lengths: Iterable[int]) -> int:
    return min(lengths, key=lambda other: (abs(other - length), other))


def _bleu(matches: Sequence[int], totals: Sequence[int], length: int, reference_length: int) -> float:
    if min(matches) == 0:
        return 0.0
    log_precisions = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    return 100 * math.exp(min(0.0, 1 - reference_length / length) + sum(log_precisions) / _ORDER)


@checked_arguments
def unique_ngrams(sentences: Sequence[Words], n: int, corpus: Iterable[Words] | None = None) -> float:
    """The share of n-grams that occur once, or with a corpus that of the distinct ones that it has not."""
    _check_words(sentences)
    if checks.whole("n", n) < 1:
        raise ValueError(f"An n-gram has at least one word, but n is {n}.")
    counts = Counter(gram for sentence in sentences for gram in ngrams(sentence, n))
    if not counts:
        raise ValueError(f"None of the {len(sentences)} sentences has {n} words.")
    if corpus is None:
        unique = sum(count == 1 for count in counts.values())
    else:
        known = {gram for sentence in corpus for gram in ngrams(sentence, n)}
        unique = sum(gram not in known for gram in counts)
    return 100 * unique / counts.total()
