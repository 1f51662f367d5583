"""CLIP's byte-pair tokens: text to tokens and back.

Text is lower-cased and split into words, single digits, runs of signs, and the endings 's 't 're 've 'm 'll 'd. Every
byte of a part (UTF-8) is written as a printable letter, and the last letter of a part gets the suffix </w>. Then, as
long as two neighbours are among the merges, the pair that stands first in their list becomes one. What remains are
entries of the vocabulary. Tokens are joined back by undoing this: </w> is a space.

The special tokens <|startoftext|> and <|endoftext|> are never read from text.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Bool

START, END = "<|startoftext|>", "<|endoftext|>"
_WORD_END = "</w>"
_ENDING = re.compile("'s|'t|'re|'ve|'m|'ll|'d")
_RUN = re.compile("L+|N|S+| ")  # of kinds: letters, a number, signs, a space


def _byte_letters() -> dict[int, str]:
    """Bytes that are printable in Latin-1 stand for themselves, the others for the letters from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


_LETTERS = _byte_letters()
_BYTES = {letter: byte for byte, letter in _LETTERS.items()}


class BytePairs:
    """A vocabulary, entry to token, and the merges in their order."""

    def __init__(self, index: Mapping[str, int], merges: Sequence[tuple[str, str]]):
        if sorted(index.values()) != list(range(len(index))):
            raise ValueError(
                f"A vocabulary of {len(index):,} entries has each of the tokens 0..{len(index) - 1:,} once."
            )
        missing = [entry for entry in (START, END) if entry not in index]
        if missing:
            raise ValueError(f"The vocabulary of CLIP has {' and '.join(missing)}, which this one has not.")
        absent = next((pair for pair in merges if "".join(pair) not in index), None)
        if absent is not None:
            raise ValueError(
                f"The merges make {''.join(absent)!r} of {absent[0]!r} and {absent[1]!r}, which the vocabulary has "
                "not; they belong to different models."
            )
        self.index = dict(index)
        self.vocabulary = tuple(sorted(self.index, key=self.index.__getitem__))
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}

    @property
    def start(self) -> int:
        return self.index[START]

    @property
    def end(self) -> int:
        return self.index[END]

    @property
    def is_word(self) -> Bool[np.ndarray, " vocabulary"]:
        """Which tokens are letters, digits, signs or parts of words: all but the special ones."""
        return np.array([entry not in (START, END) for entry in self.vocabulary])

    def split(self, text: str) -> list[str]:
        """The words, digits and signs of a text."""
        plain = " ".join(unicodedata.normalize("NFC", text).split()).lower()
        kinds = "".join(map(_kind, plain))
        found, place = [], 0
        while place < len(plain):
            match = _ENDING.match(plain, place) or _RUN.match(kinds, place)
            assert match is not None
            found.append(plain[place : match.end()])
            place = match.end()
        return [part for part in found if part != " "]

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without those of its start and end."""
        return [token for part in self.split(text) for token in self._pieces(part)]

    def _pieces(self, part: str) -> list[int]:
        letters = [_LETTERS[byte] for byte in part.encode()]
        symbols = [*letters[:-1], letters[-1] + _WORD_END]
        while True:
            known = [pair for pair in pairwise(symbols) if pair in self._ranks]
            if not known:
                break
            symbols = _merged(symbols, min(known, key=self._ranks.__getitem__))
        unknown = next((symbol for symbol in symbols if symbol not in self.index), None)
        if unknown is not None:
            raise ValueError(f"{part!r} cannot be written in tokens: the vocabulary has no {unknown!r}.")
        return [self.index[symbol] for symbol in symbols]

    def text(self, tokens: Iterable[int]) -> str:
        """What tokens say, without special ones; bytes that make no letter become replacement characters."""
        entries = (self.vocabulary[token] for token in tokens)
        joined = "".join(entry for entry in entries if entry not in (START, END)).replace(_WORD_END, _LETTERS[ord(" ")])
        # Vocabularies made by hand may have letters that stand for no byte.
        raw = b"".join(bytes([_BYTES[sign]]) if sign in _BYTES else sign.encode() for sign in joined)
        return raw.decode(errors="replace").strip()


def _merged(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    """Every occurrence of the pair, from left to right, made one."""
    found: list[str] = []
    place = 0
    while place < len(symbols):
        is_pair = tuple(symbols[place : place + 2]) == pair
        found.append("".join(pair) if is_pair else symbols[place])
        place += 2 if is_pair else 1
    return found


def _kind(sign: str) -> str:
    category = unicodedata.category(sign)[0]
    return category if category in "LN" else " " if sign.isspace() else "S"
