import math

import numpy as np
import pytest

from discrax.text import corpus_bleu, self_bleu, unique_ngrams

CAT = ["the", "cat", "sat", "on", "the", "mat"]
DOG = ["the", "dog", "sat", "on", "the", "mat"]


def test_bleu_by_hand():
    # Of CAT the reference DOG has 5 of 6 words, 3 of 5 pairs, 2 of 4 triples and 1 of 3 quadruples.
    by_hand = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert corpus_bleu([CAT], [DOG]) == pytest.approx(by_hand)
    assert self_bleu([CAT, DOG]) == pytest.approx(by_hand)


def test_short_sentences_are_punished():
    assert corpus_bleu([CAT[:4]], [CAT]) == pytest.approx(100 * math.exp(1 - 6 / 4))
    assert corpus_bleu([CAT[:4]], [CAT, CAT[:5]]) == pytest.approx(100 * math.exp(1 - 5 / 4))
    assert corpus_bleu([CAT], [CAT, CAT[:4]]) == pytest.approx(100)


def test_too_short_a_sentence_counts_as_one_that_matches_nothing():
    assert corpus_bleu([CAT, CAT[:2]], [CAT, CAT[:3]]) == pytest.approx(
        100 * math.exp(1 - 9 / 8) * (8 / 8 * 6 / 6 * 4 / 5 * 3 / 4) ** 0.25
    )


def test_repeated_words_count_as_often_as_a_reference_has_them():
    many = ["the"] * 6
    assert corpus_bleu([many], [CAT]) == 0  # no pair is right
    assert corpus_bleu([CAT, many], [CAT]) == pytest.approx(100 * (8 / 12 * 5 / 10 * 4 / 8 * 3 / 6) ** 0.25)


def test_equal_sentences_have_the_largest_self_bleu():
    assert self_bleu([CAT, CAT, DOG, DOG]) == pytest.approx(100)


@pytest.mark.slow  # to import nltk takes longer than all the rest
def test_the_numbers_are_those_of_nltk():
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    generator = np.random.default_rng(0)

    def some(count):
        return [generator.choice(list("abcd"), generator.integers(1, 12)).tolist() for _ in range(count)]

    sentences, corpus = some(12), some(30)
    others = [[s for j, s in enumerate(sentences) if j != i] for i in range(len(sentences))]
    assert self_bleu(sentences) == pytest.approx(100 * bleu_score.corpus_bleu(others, sentences))
    expected = bleu_score.corpus_bleu([corpus] * len(sentences), sentences)
    assert corpus_bleu(sentences, corpus) == pytest.approx(100 * expected)


def test_unique_ngrams_by_hand():
    assert unique_ngrams([CAT], 1) == pytest.approx(100 * 4 / 6)  # all but "the"
    assert unique_ngrams([CAT, DOG], 2) == pytest.approx(100 * 4 / 10)  # the cat, cat sat, the dog, dog sat
    assert unique_ngrams([CAT, CAT], 3) == 0


def test_unique_ngrams_against_a_corpus_are_distinct_ones():
    assert unique_ngrams([CAT, CAT], 2, [DOG]) == pytest.approx(100 * 2 / 10)  # the cat, cat sat
    assert unique_ngrams([CAT], 2, [CAT, DOG]) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: self_bleu([CAT]), "compares sentences with one another, but there is 1"),
        (lambda: corpus_bleu([CAT], []), "one of the two is empty"),
        (lambda: unique_ngrams([CAT], 0), "at least one word, but n is 0"),
        (lambda: unique_ngrams([["a"]], 2), "None of the 1 sentences has 2 words"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
