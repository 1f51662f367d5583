"""The target against its definition, the samplers against exact probabilities, and what a vocabulary may cost."""

import os
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params
from safetensors.numpy import load_file

import discrax as dx
from discrax.bench.experiments.infilling import HEAVY_CHAIN
from discrax.core import random
from discrax.core.stochastic import StochasticTarget
from discrax.core.target import evaluate, log_prob
from discrax.text import Infilling, MaskedModel, WordPiece, infill, read_checkpoint
from repeats import repeats

from ..helpers import P_VALUE, chi_square_p_value, one_hot
from . import tiny

SENTENCE = "the [MASK] sat on [MASK] mat."
ONE_PLACE = "the [MASK] sat on a mat."


@pytest.fixture(scope="module")
def tensors(checkpoint):
    return load_file(checkpoint / "model.safetensors")


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    """One that compiles faster."""
    config = tiny.CONFIG | {"num_hidden_layers": 1, "hidden_act": "relu"}
    return read_checkpoint(tiny.write_checkpoint(tmp_path_factory.mktemp("small"), config=config))


@pytest.fixture(scope="module")
def large_model(tmp_path_factory):
    """As many words as BERT has, in a small model."""
    vocabulary = [*tiny.SPECIAL, *(f"w{i}" for i in range(30_000))]
    config = tiny.CONFIG | {"num_hidden_layers": 1, "hidden_act": "relu", "vocab_size": len(vocabulary)}
    return read_checkpoint(
        tiny.write_checkpoint(tmp_path_factory.mktemp("large"), config=config, vocabulary=vocabulary)
    )


@eqx.filter_jit  # one program: sentences of one length, and all of their places
def _everywhere(bert, sentences):
    return jax.vmap(lambda tokens: bert(tokens, jnp.arange(len(tokens))))(sentences)


def log_probs(model, sentences) -> np.ndarray:
    """Of all words at all places of two sentences, or of one that is given twice."""
    return np.asarray(_everywhere(model.bert, jnp.asarray(np.broadcast_to(sentences, (2, 9)), jnp.int32)))


LARGE_SENTENCE = "w1 w2 [MASK] w3 [MASK] w4 [MASK] w5 w6 [MASK] w7"


def by_definition(tensors, target: Infilling, x) -> float:
    tokens, places = target.fill(x), np.asarray(target.places)
    total = 0.0
    for place in places:
        with_mask = [tiny.VOCABULARY.index("[MASK]") if i == place else t for i, t in enumerate(tokens)]
        total += tiny.slow_log_probs(tensors, with_mask, place)[tokens[place]]
    return total


def test_log_prob_is_what_the_model_says_of_each_place_alone(model, tensors):
    target = Infilling(model, SENTENCE)
    assert target.space.shape == (2,)
    assert target.space.num_levels == len(tiny.WORDS)
    of_states = jax.jit(jax.vmap(lambda x: log_prob(target, x)))
    states = np.array([[0, 0], [3, 11], [13, 5]], target.space.dtype)
    expected = [by_definition(tensors, target, x) for x in states]
    np.testing.assert_allclose(of_states(states), expected, rtol=1e-5)


def test_all_tokens_may_be_allowed(model, tensors):
    target = Infilling(model, SENTENCE, all_tokens=True)
    x = np.array([1, 19], target.space.dtype)
    assert target.fill(x)[2] == 1
    assert float(jax.jit(lambda x: log_prob(target, x))(x)) == pytest.approx(
        by_definition(tensors, target, x), rel=1e-5
    )


def test_with_one_place_the_gradient_tells_every_change_exactly(small_model):
    target = Infilling(small_model, ONE_PLACE)
    x = jnp.array([4], target.space.dtype)
    found = jax.jit(lambda x: evaluate(target, x))(x)
    values = log_probs(small_model, target.tokens[: target.length])[0, target.places[0], target.words]
    np.testing.assert_allclose(found.ratios[0], values - values[4], atol=1e-5)
    assert np.ptp(values) > 1


def test_the_gradient_reaches_every_word_through_the_other_places(small_model):
    target, x = Infilling(small_model, SENTENCE), np.array([2, 7])
    e = jnp.asarray(one_hot(x, target.space.num_levels), jnp.float32)
    value_and_grad = jax.jit(jax.value_and_grad(target.log_prob))
    gradient = np.asarray(value_and_grad(e)[1])
    masked = np.tile(target.fill(x), (2, 1))
    masked[[0, 1], target.places] = tiny.VOCABULARY.index("[MASK]")
    own_term = log_probs(small_model, masked)[[0, 1], target.places][:, target.words]
    through_the_other = gradient - own_term
    for site in (0, 1):
        level, step = np.abs(through_the_other[site]).argmax(), 1e-2
        up, down = (float(value_and_grad(e.at[site, level].add(sign * step))[0]) for sign in (1, -1))
        error = abs((up - down) / (2 * step) - gradient[site, level])
        assert error < 0.05 * abs(through_the_other[site, level])


def test_starts_are_draws_of_the_model_with_all_places_masked(small_model):
    target = Infilling(small_model, SENTENCE)
    draws = np.asarray(target.draw(jax.random.key(1), 4000))
    log_p = log_probs(small_model, target.tokens[: target.length])[0][np.ix_(target.places, target.words)]
    for site in range(2):
        counts = np.bincount(draws[:, site], minlength=target.space.num_levels)
        likely = np.exp(log_p[site]) > 5e-3
        expected = np.append(np.exp(log_p[site])[likely], np.exp(log_p[site])[~likely].sum())
        assert chi_square_p_value(np.append(counts[likely], counts[~likely].sum()), expected) > P_VALUE


def check_softmax(small_model, target, codes) -> None:
    log_p = log_probs(small_model, target.tokens[: target.length])[0, target.places[0], target.words]
    p = np.exp(log_p) / np.exp(log_p).sum()
    counts = np.bincount(codes, minlength=len(p))
    likely = p > 5e-3
    assert likely.sum() > 3
    counts, p = (np.append(each[likely], each[~likely].sum()) for each in (counts, p))
    assert chi_square_p_value(counts, p) > P_VALUE


def test_one_place_is_sampled_from_the_softmax(small_model):
    target = Infilling(small_model, ONE_PLACE)
    kernel = dx.samplers.build_kernel("gwg", target)

    @jax.jit  # chains and steps in one program
    def last_states(key):
        def one_chain(key):
            first, *later = random.split(key, 13)
            start = kernel.init(target, target.space.random(first))
            steps = jax.lax.scan(lambda state, key: (kernel.step(key, target, state)[0], None), start, jnp.stack(later))
            return steps[0].x

        return jax.vmap(one_chain)(random.split(key, 4000))

    check_softmax(small_model, target, np.asarray(last_states(jax.random.key(2)))[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", repeats(["dlmc"], ["pas", "dlmc"]))
def test_samplers_draw_one_place_from_the_softmax(small_model, sampler):
    target = Infilling(small_model, ONE_PLACE)
    result = dx.sample(jax.random.key(2), target, sampler, num_chains=4000, num_warmup=0, num_samples=12)
    check_softmax(small_model, target, result.draws[:, -1].reshape(-1))


@pytest.mark.slow
def test_infill_returns_the_most_probable_last_states(large_model):
    found = infill(jax.random.key(0), large_model, LARGE_SENTENCE, num_chains=6, num_steps=8, top=3, progress=False)
    values = np.asarray(found.run.states.log_prob)
    assert found.target.space.num_levels == 30_000
    np.testing.assert_array_equal(found.log_probs, np.sort(values)[::-1][:3])
    assert found.run.num_draws == 1
    assert found.run.warmup_stats["lp"].shape == (6, 7)
    for sentence, words, x in zip(found.sentences, found.words, found.states, strict=True):
        assert list(words) == [f"w{code}" for code in x]
        assert sentence == LARGE_SENTENCE.replace("[MASK]", "{}").format(*words)
    assert found.unknown == ()
    assert_recomputed(found)


def assert_recomputed(found):
    recomputed = jax.jit(lambda x: log_prob(found.target, x))(jnp.asarray(found.states[0]))
    assert found.log_probs[0] == pytest.approx(float(recomputed), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", repeats(["dlmc"], ["gwg", "dmala", "dlmc", "dlmcf", "dula", "avg", "rwm"]))
def test_thirty_thousand_words(large_model, sampler):
    found = infill(jax.random.key(0), large_model, LARGE_SENTENCE, sampler=sampler, num_chains=2, num_steps=2, top=1)
    assert_recomputed(found)


FITTING = {
    name: dx.samplers.hamming_ball(block_size=2) if name == "hamming_ball" else row.build()
    for name, row in dx.samplers.REGISTRY.items()
    if dx.Categorical in row.spaces and StochasticTarget not in row.build().needs
}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", repeats(["gwg", "gibbs"], FITTING))
def test_every_sampler_fills_in(small_model, sampler):
    kernel = FITTING[sampler]
    found = infill(jax.random.key(0), small_model, SENTENCE, sampler=kernel, num_chains=4, num_steps=20, top=4)
    assert len(found.sentences) == 4
    assert found.run.warmup_stats["jump"].sum() > 0


def arrays_of(jaxpr):
    """Of a program, and of the programs in it, what is computed."""
    for equation in jaxpr.eqns:
        yield from (out.aval for out in equation.outvars)
        for inner in jaxprs_in_params(equation.params):
            yield from arrays_of(inner)


def test_nothing_is_larger_than_one_row_of_words_a_place(large_model):
    target = Infilling(large_model, LARGE_SENTENCE)
    e = jnp.zeros((4, 30_000), jnp.float32)
    program = jax.make_jaxpr(jax.value_and_grad(target.log_prob))(e).jaxpr
    sizes = [aval.size for aval in arrays_of(program)]
    rows, parameters = 4 * len(large_model.tokenizer.vocabulary), large_model.bert.words.size
    assert max(sizes) <= max(rows, parameters)
    assert len(target.tokens) * 30_000 > parameters  # logits at all places would be larger


@pytest.mark.parametrize("sampler", ["gibbs", "block_gibbs", "hamming_ball", "lb", "pas_exact"])
def test_samplers_that_try_every_word_are_refused_for_large_vocabularies(large_model, sampler):
    with pytest.raises(ValueError, match=r"at every one of 30,000 words .* use a sampler with gradients"):
        infill(jax.random.key(0), large_model, LARGE_SENTENCE, sampler=sampler)


def test_samplers_with_a_matrix_of_words_are_refused(large_model):
    with pytest.raises(ValueError, match="at most 4,000, but there are 120,000; use a sampler of first order"):
        infill(jax.random.key(0), large_model, LARGE_SENTENCE, sampler="pavg")
    with pytest.raises(ValueError, match="DLPTrace estimates a matrix"):
        infill(jax.random.key(0), large_model, LARGE_SENTENCE, sampler="dlp_trace")


@pytest.mark.parametrize(
    ("sentence", "settings", "words"),
    [
        ("the cat sat", {}, r"has a \[MASK\] for each word"),
        ("the [MASK] " + "cat " * 20, {}, "at most 20 tokens, .* has 24"),
        (SENTENCE, {"top": 6, "num_chains": 5}, "top is how many of the 5 chains are returned, but got 6"),
        (SENTENCE, {"num_steps": 0}, "num_steps must be at least 1"),
        (SENTENCE, {"sampler": "auto"}, "takes a sampler by name"),
        (SENTENCE, {"sampler": "gwgg"}, "Did you mean 'gwg'"),
    ],
)
def test_bad_input_is_a_sentence(model, sentence, settings, words):
    with pytest.raises(ValueError, match=words):
        infill(jax.random.key(0), model, sentence, **settings)


def test_a_vocabulary_of_another_size_is_refused(model):
    with pytest.raises(ValueError, match="The vocabulary has 15 entries, but the model has 20 words"):
        MaskedModel(model.bert, WordPiece(tiny.LETTERS))


REAL = Path(os.environ.get("DISCRAX_DATA", "nowhere")) / "antiberty_mlm"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="needs antiberty_mlm in DISCRAX_DATA")


@pytest.fixture(scope="module")
def real_model():
    return read_checkpoint(REAL)


def log_probs_with_one_mask(model, places) -> tuple[np.ndarray, np.ndarray]:
    """Of the heavy chain's letters at some places, each masked alone: log p of all letters, and which it is."""
    tokens = np.array(model.tokenizer.tokens(f"[CLS]{HEAVY_CHAIN}[SEP]"), np.int32)
    mask = model.tokenizer.index["[MASK]"]
    masked = np.where(np.arange(len(tokens))[None] == places[:, None], mask, tokens[None]).astype(np.int32)
    of_sentences = jax.jit(jax.vmap(lambda bert, tokens, place: bert(tokens, place), in_axes=(None, 0, 0)))
    return np.asarray(of_sentences(model.bert, masked, places[:, None]))[:, 0], tokens[places]


@needs_real
def test_the_real_model_knows_most_of_its_chain(real_model):
    log_p, letters = log_probs_with_one_mask(real_model, np.arange(1, 123, 8, dtype=np.int32))
    assert (log_p.argmax(axis=1) == letters).sum() >= 13
    assert -log_p[np.arange(len(letters)), letters].mean() < np.log(20) / 2  # log 20: knowing nothing


@needs_real
@pytest.mark.slow
def test_the_real_model_recovers_what_it_should(real_model):
    log_p, letters = log_probs_with_one_mask(real_model, np.arange(1, 123, dtype=np.int32))
    assert (log_p.argmax(axis=1) == letters).sum() == 113
    assert -log_p[np.arange(len(letters)), letters].mean() == pytest.approx(0.4164, abs=5e-4)


@needs_real
@pytest.mark.slow
def test_the_real_model_fills_in(real_model):
    masked = "[MASK]".join((HEAVY_CHAIN[:5], HEAVY_CHAIN[6:12], HEAVY_CHAIN[13:25]))
    found = infill(jax.random.key(0), real_model, masked, num_chains=4, num_steps=10, top=1)
    assert found.sentences == (HEAVY_CHAIN[:25],)
    assert found.log_probs[0] > -0.5
