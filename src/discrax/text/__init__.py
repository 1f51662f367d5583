"""Infilling of sentences and sequences by a masked language model, and how good what is filled in is."""

from discrax.text.bert import Bert, BertConfig
from discrax.text.checkpoint import MaskedModel, read_checkpoint
from discrax.text.infilling import Infilled, Infilling, infill
from discrax.text.quality import corpus_bleu, self_bleu, unique_ngrams
from discrax.text.wordpiece import WordPiece

__all__ = [
    "Bert",
    "BertConfig",
    "Infilled",
    "Infilling",
    "MaskedModel",
    "WordPiece",
    "corpus_bleu",
    "infill",
    "read_checkpoint",
    "self_bleu",
    "unique_ngrams",
]
