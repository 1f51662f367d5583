"""Infilling by a masked language model, how good what is filled in is, and prompts that suit images."""

from discrax.text.bert import Bert, BertConfig, MaskedModel, read_checkpoint, write_checkpoint
from discrax.text.clip import Clip, ClipText, read_clip
from discrax.text.infilling import Infilled, Infilling, infill
from discrax.text.pretraining import Pretrained, train_masked_model
from discrax.text.prompts import ClipPrompt, PromptTarget, continuous_relaxation, sampled_prompts
from discrax.text.quality import corpus_bleu, self_bleu, unique_ngrams
from discrax.text.tokens import WordPiece

__all__ = [
    "Bert",
    "BertConfig",
    "Clip",
    "ClipPrompt",
    "ClipText",
    "Infilled",
    "Infilling",
    "MaskedModel",
    "Pretrained",
    "PromptTarget",
    "WordPiece",
    "continuous_relaxation",
    "corpus_bleu",
    "infill",
    "read_checkpoint",
    "read_clip",
    "sampled_prompts",
    "self_bleu",
    "train_masked_model",
    "unique_ngrams",
    "write_checkpoint",
]
