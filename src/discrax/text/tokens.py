"""Text to tokens and back: BERT's word pieces and CLIP's byte pairs, by the package tokenizers of Hugging Face.

Both are built from the plain files of a model, or read from its tokenizer.json. Nothing is downloaded.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool, Integer

from discrax.core.extras import import_extra
from discrax.core.files import write_whole
from discrax.text.checkpoint import TOKENIZER, Checkpoint, read_json, read_lines

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Made = TypeVar("Made")
UNKNOWN, START, END, MASK = "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = ("[PAD]", UNKNOWN, START, END, MASK)
TEXT_START, TEXT_END = "<|startoftext|>", "<|endoftext|>"
_UNUSED = re.compile(r"\[unused\d+\]")
_LONGEST_WORD = 100  # letters; longer ones are unknown, as in the original
_WORD_END = "</w>"
_PARTS = r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"


def _tokenizers() -> Any:
    return import_extra("tokenizers", "Text is read with the package", "text")


def read_tokenizer(path: Path, kind: str) -> "Tokenizer":
    """The tokenizer of a tokenizer.json, whose model must be of a kind: "WordPiece" or "BPE"."""
    try:
        found = _tokenizers().Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing narrower
        raise ValueError(f"{path} is not what the package tokenizers writes: {error}.") from error
    if type(found.model).__name__ != kind:
        raise ValueError(f"{path} should cut words by {kind}, but does so by {type(found.model).__name__}.")
    found.no_padding()
    found.no_truncation()
    return found


def _of_file(path: Path, make: Callable[[], Made]) -> Made:
    """Makes something of a file, which an error names."""
    try:
        return make()
    except ValueError as error:
        raise error if str(path) in str(error) else ValueError(f"{path}: {error}") from error


def _entries(tokenizer: "Tokenizer") -> tuple[str, ...]:
    """The vocabulary, the entry of token i at place i."""
    index = tokenizer.get_vocab(with_added_tokens=True)
    if sorted(index.values()) != list(range(len(index))):
        raise ValueError(f"A vocabulary of {len(index):,} entries has each of the tokens 0..{len(index) - 1:,} once.")
    return tuple(sorted(index, key=index.__getitem__))


def _split(tokenizer: "Tokenizer", text: str) -> list[str]:
    """The words of a text after normalisation, before they are cut into entries of the vocabulary."""
    assert tokenizer.pre_tokenizer is not None
    plain = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
    return [plain[begin:end] for _, (begin, end) in tokenizer.pre_tokenizer.pre_tokenize_str(plain)]


class WordPiece:
    """BERT's words: a vocabulary, the word of token i at place i, or a tokenizer that has one.

    Text is split at white space and around punctuation; each word is then cut into the longest entries, from left to
    right, where an entry that continues a word begins with "##". A word that cannot be cut is [UNK]. Where every entry
    is a single letter (amino acids), a run of letters is as many words. `lower_case=None` looks whether the vocabulary
    has words in upper case.
    """

    def __init__(self, vocabulary: "Sequence[str] | Tokenizer", lower_case: bool | None = None):
        is_list = isinstance(vocabulary, Sequence)
        self.vocabulary = tuple(vocabulary) if is_list else _entries(vocabulary)
        self.index = {word: token for token, word in enumerate(self.vocabulary)}
        missing = [word for word in (UNKNOWN, START, END, MASK) if word not in self.index]
        if missing:
            raise ValueError(f"The vocabulary of a masked model has {', '.join(missing)}, which this one has not.")
        words = [self.vocabulary[token] for token in self.words]
        if len(words) < 2:
            raise ValueError(f"A vocabulary needs at least two words that are not special, but this has {len(words)}.")
        self.is_letters = all(len(word) == 1 for word in words)
        self._tokenizer = self._build(words, lower_case) if is_list else vocabulary
        if self.is_letters:
            parts = _tokenizers().pre_tokenizers
            every_sign = parts.Split(_tokenizers().Regex("."), "isolated")
            self._tokenizer.pre_tokenizer = parts.Sequence([parts.WhitespaceSplit(), every_sign])

    def _build(self, words: list[str], lower_case: bool | None) -> "Tokenizer":
        package = _tokenizers()
        model = package.models.WordPiece(vocab=self.index, unk_token=UNKNOWN, max_input_chars_per_word=_LONGEST_WORD)
        lower_case = not any(word != word.lower() for word in words) if lower_case is None else lower_case
        tokenizer = package.Tokenizer(model)
        tokenizer.normalizer = package.normalizers.BertNormalizer(lowercase=lower_case)
        tokenizer.pre_tokenizer = package.pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens([word for word in SPECIAL if word in self.index])
        return tokenizer

    @staticmethod
    def read(checkpoint: Checkpoint) -> "WordPiece":
        """Of a model's folder: tokenizer.json, or else vocab.txt, with the case that tokenizer_config.json may tell."""
        path, about = checkpoint.folder / TOKENIZER, checkpoint.folder / "tokenizer_config.json"
        if path.is_file():
            return _of_file(path, lambda: WordPiece(read_tokenizer(path, "WordPiece")))
        listed = checkpoint.path("vocab.txt")
        lower_case = read_json(about).get("do_lower_case") if about.is_file() else None
        return _of_file(listed, lambda: WordPiece(read_lines(listed), lower_case))

    @staticmethod
    def train(lines: Iterable[str], size: int) -> "WordPiece":
        """Learns a vocabulary of at most `size` lower-case entries from the lines of a text."""
        package = _tokenizers()
        tokenizer = package.Tokenizer(package.models.WordPiece(unk_token=UNKNOWN))
        tokenizer.normalizer = package.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = package.pre_tokenizers.BertPreTokenizer()
        trainer = package.trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=list(SPECIAL), show_progress=False, continuing_subword_prefix="##"
        )
        tokenizer.train_from_iterator(lines, trainer)
        return WordPiece(_entries(tokenizer), lower_case=True)

    def write(self, folder: Path) -> None:
        """Writes the tokenizer.json of a model's folder."""
        write_whole(folder / TOKENIZER, self._tokenizer.to_str(pretty=True))

    @property
    def words(self) -> Integer[np.ndarray, " words"]:
        """The tokens that are words or parts of words: neither special nor unused."""
        listed = enumerate(self.vocabulary)
        return np.array([t for t, word in listed if word not in SPECIAL and not _UNUSED.fullmatch(word)], np.int32)

    @property
    def lower_case(self) -> bool:
        """Whether upper case is read as lower case."""
        return _split(self._tokenizer, "A") == ["a"]

    def split(self, text: str) -> list[str]:
        """The words and signs of a text; special tokens stay as they are."""
        parts = re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text)
        return [word for part in parts for word in ([part] if part in SPECIAL else _split(self._tokenizer, part))]

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without [CLS] and [SEP]."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def unknown(self, text: str) -> list[str]:
        """The words of a text that are read as [UNK]."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        read_as = zip(found.tokens, found.offsets, strict=True)
        words = [text[begin:end] for token, (begin, end) in read_as if token == UNKNOWN]
        return [word for word in words if word != UNKNOWN]

    def join(self, tokens: Iterable[int]) -> list[str]:
        """The words of tokens: pieces are put together, [CLS] and [SEP] left out."""
        entries = [self.vocabulary[token] for token in tokens]
        decoder = _tokenizers().decoders.WordPiece(cleanup=False)
        return decoder.decode([entry for entry in entries if entry not in (START, END)]).split()

    def text(self, tokens: Iterable[int]) -> str:
        """A sentence to read: as `join`, with no space before a sign that ends a clause."""
        words = self.join(tokens)
        return "".join(words) if self.is_letters else re.sub(r" ([.,;:!?])", r"\1", " ".join(words))


class BytePairs:
    """CLIP's tokens: a vocabulary, entry to token, and the merges in their order, or a tokenizer that has both.

    Text is lower-cased and split into words, single digits, runs of signs, and the endings 's 't 're 've 'm 'll 'd.
    Every byte of a part (UTF-8) is written as a printable letter, and the last letter of a part gets the suffix </w>.
    Then, as long as two neighbours are among the merges, the pair that stands first in their list becomes one. The
    special tokens <|startoftext|> and <|endoftext|> are never read from text.
    """

    def __init__(self, index: "Mapping[str, int] | Tokenizer", merges: Sequence[tuple[str, str]] = ()):
        self._tokenizer = self._build(index, merges) if isinstance(index, Mapping) else index
        self._tokenizer.encode_special_tokens = True  # as letters
        self.vocabulary = _entries(self._tokenizer)
        self.index = {entry: token for token, entry in enumerate(self.vocabulary)}
        missing = [entry for entry in (TEXT_START, TEXT_END) if entry not in self.index]
        if missing:
            raise ValueError(f"The vocabulary of CLIP has {' and '.join(missing)}, which this one has not.")

    @staticmethod
    def _build(index: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> "Tokenizer":
        package = _tokenizers()
        absent = next((pair for pair in merges if any(each not in index for each in (*pair, "".join(pair)))), None)
        if absent is not None:
            raise ValueError(
                f"The merges make {''.join(absent)!r} of {absent[0]!r} and {absent[1]!r}, which the vocabulary has "
                "not; they belong to different models."
            )
        plain, parts = package.normalizers, package.pre_tokenizers
        model = package.models.BPE(
            vocab=dict(index), merges=list(merges), unk_token=TEXT_END, end_of_word_suffix=_WORD_END
        )
        tokenizer = package.Tokenizer(model)
        one_space = plain.Replace(package.Regex(r"\s+"), " ")
        tokenizer.normalizer = plain.Sequence([plain.NFC(), one_space, plain.Lowercase()])
        words = parts.Split(package.Regex(_PARTS), "removed", invert=True)
        tokenizer.pre_tokenizer = parts.Sequence([words, parts.ByteLevel(add_prefix_space=False, use_regex=False)])
        return tokenizer

    @staticmethod
    def read(checkpoint: Checkpoint) -> "BytePairs":
        """Of a model's folder: tokenizer.json, or else vocab.json and merges.txt."""
        path = checkpoint.folder / TOKENIZER
        if path.is_file():
            return _of_file(path, lambda: BytePairs(read_tokenizer(path, "BPE")))
        listed, merges = checkpoint.path("vocab.json"), _read_merges(checkpoint.path("merges.txt"))
        return _of_file(listed, lambda: BytePairs(_read_index(listed), merges))

    @property
    def start(self) -> int:
        """The token that begins a text."""
        return self.index[TEXT_START]

    @property
    def end(self) -> int:
        """The token that ends a text."""
        return self.index[TEXT_END]

    @property
    def is_word(self) -> Bool[np.ndarray, " vocabulary"]:
        """Which tokens are letters, digits, signs or parts of words: all but the special ones."""
        return np.array([entry not in (TEXT_START, TEXT_END) for entry in self.vocabulary])

    def split(self, text: str) -> list[str]:
        """The words, digits and signs of a text."""
        return _split(self._tokenizer, text)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without those of its start and end."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        unknown = next(
            (text[a:b] for token, (a, b) in zip(found.ids, found.offsets, strict=True) if token == self.end), None
        )
        if unknown is not None:
            raise ValueError(f"{text!r} cannot be written in tokens: the vocabulary has nothing for {unknown!r}.")
        return found.ids

    def text(self, tokens: Iterable[int]) -> str:
        """What tokens say, without special ones; bytes that make no letter become replacement characters."""
        entries = (self.vocabulary[token] for token in tokens)
        said = (
            _tokenizers().decoders.ByteLevel().decode([each for each in entries if each not in (TEXT_START, TEXT_END)])
        )
        return said.replace(_WORD_END, " ").strip()


def _read_index(path: Path) -> dict[str, int]:
    index = read_json(path)
    odd = next((entry for entry, token in index.items() if type(token) is not int), None)
    if odd is not None:
        raise ValueError(f"{path} should give a token for each entry, but {odd!r} has {index[odd]!r}.")
    return index


def _read_merges(path: Path) -> list[tuple[str, str]]:
    found = []
    for number, line in enumerate(read_lines(path), 1):
        pair = line.split()
        if not pair or (number == 1 and line.startswith("#version")):
            continue
        if len(pair) != 2:
            raise ValueError(f"{path} has two entries a line, but line {number} is {line!r}.")
        found.append((pair[0], pair[1]))
    return found
