import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.text import Bert, BertConfig, read_checkpoint

from . import tiny

TOKENS = [3, 6, 7, 5, 10, 5, 4]  # [CLS] the cat [MASK] on [MASK] [SEP]


@eqx.filter_jit
def _log_probs(bert, tokens, places):
    return bert(tokens, places)


def log_probs(model, places) -> np.ndarray:
    return np.asarray(_log_probs(model.bert, jnp.asarray(TOKENS, jnp.int32), jnp.asarray(places, jnp.int32)))


@pytest.mark.parametrize("activation", tiny.ACTIVATIONS)
def test_the_model_is_that_of_plain_numpy(tmp_path, activation):
    config = tiny.CONFIG | {"hidden_act": activation}
    tensors = tiny.random_tensors(config)
    model = read_checkpoint(tiny.write_checkpoint(tmp_path, tensors, config))
    expected = [tiny.slow_log_probs(tensors, TOKENS, place, config) for place in (3, 5)]
    np.testing.assert_allclose(log_probs(model, [3, 5]), expected, atol=2e-5)


def test_a_decoder_of_its_own_is_used(tmp_path):
    tensors = tiny.random_tensors(decoder=True)
    model = read_checkpoint(tiny.write_checkpoint(tmp_path, tensors))
    assert model.bert.head.decoder is not None
    np.testing.assert_allclose(log_probs(model, [3])[0], tiny.slow_log_probs(tensors, TOKENS, 3), atol=2e-5)


def test_a_decoder_that_repeats_the_words_is_not_kept_twice(tmp_path):
    tensors = tiny.random_tensors()
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    assert read_checkpoint(tiny.write_checkpoint(tmp_path, tensors)).bert.head.decoder is None


def test_a_random_model_has_the_shapes_of_one_that_was_read(model):
    config = BertConfig(**{name: value for name, value in tiny.CONFIG.items() if name != "model_type"})
    made = eqx.filter_eval_shape(Bert.random, jax.random.key(0), config)
    assert made.config == model.bert.config
    assert jax.tree.map(jnp.shape, made) == jax.tree.map(jnp.shape, model.bert)
