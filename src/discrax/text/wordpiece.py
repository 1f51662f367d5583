"""WordPiece: sentences to tokens and back.

Text is split at white space and around punctuation; each word is then cut into the longest entries of the vocabulary,
from left to right, where an entry that continues a word begins with "##". A word that cannot be cut is [UNK]. Where
every entry of the vocabulary is a single letter (amino acids), a run of letters is as many words.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Integer

UNKNOWN, START, END, MASK = "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = ("[PAD]", UNKNOWN, START, END, MASK)
_CONTINUES = "##"
_UNUSED = re.compile(r"\[unused\d+\]")
_LONGEST_WORD = 100  # letters; longer ones are unknown, as in the original


class WordPiece:
    """A vocabulary, the word of token i at place i. `lower_case=None` looks whether it has words in upper case."""

    def __init__(self, vocabulary: Sequence[str], lower_case: bool | None = None):
        self.vocabulary = tuple(vocabulary)
        self.index = {word: token for token, word in enumerate(self.vocabulary)}
        missing = [word for word in (UNKNOWN, START, END, MASK) if word not in self.index]
        if missing:
            raise ValueError(f"The vocabulary of a masked model has {', '.join(missing)}, which this one has not.")
        words = [self.vocabulary[token] for token in self.words]
        if len(words) < 2:
            raise ValueError(f"A vocabulary needs at least two words that are not special, but this has {len(words)}.")
        self.is_letters = all(len(word) == 1 for word in words)
        has_upper_case = any(word != word.lower() for word in words)
        self.lower_case = not has_upper_case if lower_case is None else lower_case

    @property
    def words(self) -> Integer[np.ndarray, " words"]:
        """The tokens that are words or parts of words: neither special nor unused."""
        listed = enumerate(self.vocabulary)
        return np.array([t for t, word in listed if word not in SPECIAL and not _UNUSED.fullmatch(word)], np.int32)

    def split(self, text: str) -> list[str]:
        """The words and signs of a text; special tokens stay as they are."""
        found: list[str] = []
        for part in re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text):
            found += [part] if part in SPECIAL else self._split(part)
        return found

    def _split(self, text: str) -> list[str]:
        if self.lower_case:
            plain = unicodedata.normalize("NFD", text.lower())
            text = "".join(sign for sign in plain if unicodedata.category(sign) != "Mn")
        if self.is_letters:
            return [letter for letter in text if not letter.isspace()]
        return "".join(f" {sign} " if _is_punctuation(sign) else sign for sign in text).split()

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without [CLS] and [SEP]."""
        return [token for word in self.split(text) for token in self._pieces(word)]

    def unknown(self, text: str) -> list[str]:
        """The words of a text that are read as [UNK]."""
        return [word for word in self.split(text) if word != UNKNOWN and self._pieces(word) == [self.index[UNKNOWN]]]

    def _pieces(self, word: str) -> list[int]:
        pieces, start = [], 0
        while start < len(word):
            lead = _CONTINUES if start else ""
            ends = range(len(word), start, -1) if len(word) <= _LONGEST_WORD else ()
            end = next((end for end in ends if lead + word[start:end] in self.index), None)
            if end is None:
                return [self.index[UNKNOWN]]
            pieces.append(self.index[lead + word[start:end]])
            start = end
        return pieces

    def joined(self, tokens: Iterable[int]) -> list[str]:
        """The words of tokens: pieces are put together, [CLS] and [SEP] left out."""
        found: list[str] = []
        for word in (self.vocabulary[token] for token in tokens):
            if word.startswith(_CONTINUES) and found:
                found[-1] += word.removeprefix(_CONTINUES)
            elif word not in (START, END):
                found.append(word)
        return found

    def text(self, tokens: Iterable[int]) -> str:
        """A sentence to read: as `joined`, with no space before a sign that ends a clause."""
        words = self.joined(tokens)
        if self.is_letters:
            return "".join(words)
        return re.sub(r" ([.,;:!?])", r"\1", " ".join(words))


def _is_punctuation(sign: str) -> bool:
    # All ASCII signs that are no letters or digits count, such as "$" and "^", which Unicode does not call punctuation.
    is_ascii_sign = sign.isascii() and sign.isprintable() and not sign.isalnum() and not sign.isspace()
    return is_ascii_sign or unicodedata.category(sign).startswith("P")
