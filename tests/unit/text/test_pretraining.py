"""A model of one's own: what it learns, and that its folder can be read again."""

import jax
import numpy as np
import pytest

from discrax.text import WordPiece, read_checkpoint, train_masked_model, write_checkpoint

_WORDS = ("one", "two", "three", "four", "five", "six")
_SETTINGS = {"vocabulary_size": 64, "hidden_size": 64, "num_layers": 1, "batch_size": 32, "lengths": (16,)}


def counting(count: int, seed: int) -> list[str]:
    """Lines in which every word follows the one before it, six times round: what is masked can be known."""
    first = np.random.default_rng(seed).integers(0, 6, count)
    return [" ".join(_WORDS[(begin + i) % 6] for i in range(36)) for begin in first]


@pytest.mark.slow
def test_what_follows_what_is_learnt():
    found = train_masked_model(
        jax.random.key(0), counting(40, 0), counting(8, 1), num_updates=240, every=80, learning_rate=3e-3, **_SETTINGS
    )
    assert found.updates == [80, 160, 240]
    assert min(found.losses) < 1  # log(6) = 1.79 for one who knows only how often words come
    assert found.losses[0] > min(found.losses)


def test_a_model_that_is_written_can_be_read_again(model, tmp_path):
    write_checkpoint(model, tmp_path / "model")
    again = read_checkpoint(tmp_path / "model")
    assert again.tokenizer.vocabulary == model.tokenizer.vocabulary
    assert again.tokenizer.tokens("The cat sat") == model.tokenizer.tokens("the cat sat")
    assert again.bert.config == model.bert.config
    for mine, read in zip(jax.tree.leaves(model.bert), jax.tree.leaves(again.bert), strict=True):
        np.testing.assert_array_equal(mine, read)


def test_a_vocabulary_is_learnt_from_words():
    tokenizer = WordPiece.train(counting(20, 0), 64)
    assert set(_WORDS) <= set(tokenizer.vocabulary)
    assert tokenizer.join(tokenizer.tokens("One two SIX")) == ["one", "two", "six"]


def test_too_short_a_text_is_a_sentence():
    with pytest.raises(ValueError, match="at least 16 tokens, but this one has 3"):
        train_masked_model(jax.random.key(0), counting(20, 0), ["one two three"], **_SETTINGS)
