import pytest

from discrax.text import WordPiece

from . import tiny


@pytest.fixture(scope="module")
def words():
    return WordPiece(tiny.VOCABULARY)


@pytest.fixture(scope="module")
def letters():
    return WordPiece(tiny.LETTERS)


def named(tokenizer, text) -> list[str]:
    return [tokenizer.vocabulary[token] for token in tokenizer.tokens(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the cats, sat", ["the", "cat", "##s", ",", "sat"]),
        ("The  BIG\tmatster.", ["the", "big", "mat", "##s", "##ter", "."]),
        ("the [MASK] sat on[MASK].", ["the", "[MASK]", "sat", "on", "[MASK]", "."]),
        ("the catx sat", ["the", "[UNK]", "sat"]),  # not "cat" and a rest
        ("the dóg", ["the", "dog"]),
        ("dog's", ["dog", "'", "[UNK]"]),
        ("the" * 40, ["[UNK]"]),
        ("", []),
    ],
)
def test_the_longest_entries_are_taken(words, text, pieces):
    assert named(words, text) == pieces


def test_unknown_words_are_told(words):
    assert words.unknown("the zebra sat on [UNK] catx [MASK].") == ["zebra", "catx"]


def test_words_are_put_together(words):
    tokens = [words.index[word] for word in ("[CLS]", "the", "cat", "##s", ",", "[MASK]", ".", "[SEP]")]
    assert words.join(tokens) == ["the", "cats", ",", "[MASK]", "."]
    assert words.text(tokens) == "the cats, [MASK]."


def test_special_and_unused_tokens_are_no_words(words):
    assert [words.vocabulary[token] for token in words.words] == list(tiny.WORDS)


@pytest.mark.parametrize("text", ["ACD[MASK]E", "A C D [MASK] E"])
def test_a_vocabulary_of_letters_reads_runs_of_them(letters, text):
    assert letters.is_letters
    assert named(letters, text) == ["A", "C", "D", "[MASK]", "E"]
    assert letters.text(letters.tokens(text)) == "ACD[MASK]E"


def test_the_case_is_that_of_the_vocabulary(words, letters):
    assert words.lower_case
    assert not letters.lower_case
    assert letters.unknown("Acd") == ["c", "d"]
    assert WordPiece(tiny.VOCABULARY, lower_case=False).unknown("The cat") == ["The"]


def test_a_vocabulary_without_words_is_refused():
    with pytest.raises(ValueError, match="at least two words that are not special, but this has 1"):
        WordPiece([*tiny.SPECIAL, "a"])
    with pytest.raises(ValueError, match=r"has \[CLS\], \[SEP\], which this one has not"):
        WordPiece(["[UNK]", "[MASK]", "a", "b"])
