"""Prompts like images: the target against plain numpy, both ways to tune, the command and the suite."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from discrax.bench.execute.cells import run_cell
from discrax.bench.experiments import prompts as bench
from discrax.bench.papers.sgdld.prompts import IMAGES_VARIABLE, VARIABLE, table03
from discrax.bench.plan.cell import Budget
from discrax.bench.plan.printed import find_printed, printed_rows
from discrax.bench.plan.suite import Size
from discrax.bench.report.grid import make_grid
from discrax.core import random
from discrax.core.stochastic import evaluate_batch
from discrax.sampling import sample
from discrax.text.clip import SMALL, ClipText
from discrax.text.commands import tune_prompt
from discrax.text.prompts import (
    ClipPrompt,
    Embedder,
    PromptTarget,
    continuous_relaxation,
    made_up_images,
    prompt_sampler,
    random_prompt,
    sampled_prompts,
    similarities,
)

from ..helpers import Z_SCORE, z_score
from .test_clip import embedded, write_clip

GENERATOR = np.random.default_rng(0)
WORDS = GENERATOR.normal(size=(6, 4)).astype(np.float32)
MATRIX = GENERATOR.normal(size=(3, 4, 5)).astype(np.float32)  # one a place
IMAGES = GENERATOR.normal(size=(7, 5)) + GENERATOR.normal(size=5)


class Linear(Embedder):
    """The words of the places, each by a matrix of its own, added up."""

    table: jax.Array
    matrix: jax.Array

    @property
    def words(self):
        return self.table

    def encode(self, embedded):
        return jnp.einsum("lh,lhd->d", embedded, self.matrix)


LINEAR = Linear(jnp.asarray(WORDS), jnp.asarray(MATRIX))


def target_of(images=IMAGES, **settings) -> PromptTarget:
    return PromptTarget(LINEAR, images, 3, 6, **settings)


@eqx.filter_jit
def value_of(target, x, directions):
    """The mean similarity of a state to some images."""
    return target.psi(target.space.embed(x), directions)


def slow_similarity(tokens, images=IMAGES) -> float:
    embedding = sum(WORDS[token].astype(float) @ MATRIX[i] for i, token in enumerate(tokens))
    return float(np.mean([v @ embedding / np.linalg.norm(v) / np.linalg.norm(embedding) for v in images]))


# --- The target ------------------------------------------------------------------------------------------------------


def test_the_target_is_the_mean_similarity():
    target, x = target_of(), jnp.array([4, 0, 5], jnp.int8)
    found = eqx.filter_jit(lambda target, x: target.log_prob(target.space.embed(x)))(target, x)
    np.testing.assert_allclose(found, slow_similarity([4, 0, 5]), atol=1e-6)
    np.testing.assert_allclose(
        value_of(target, x, target.directions[2:4]), slow_similarity([4, 0, 5], IMAGES[2:4]), atol=1e-6
    )


def test_mini_batches_are_right_in_the_mean():
    target = target_of(batch_size=2)
    x = jnp.array([4, 0, 5], jnp.int8)

    @jax.jit
    def estimates(key):
        draws = jax.vmap(lambda key: target.draw(key, jnp.array(0)))(random.split(key, 5000))
        return jax.vmap(lambda xi: target.psi(target.space.embed(x), xi))(draws)

    psi = estimates(jax.random.key(0))
    assert np.std(psi) > 0.05
    assert z_score(psi, slow_similarity([4, 0, 5])) < Z_SCORE


def test_changes_are_those_of_a_mini_batch():
    target, x = target_of(), jnp.array([4, 0, 5], jnp.int8)
    told = eqx.filter_jit(evaluate_batch)(target, x, target.directions[:1])
    np.testing.assert_allclose(told.here, slow_similarity([4, 0, 5], IMAGES[:1]), atol=1e-6)
    change = slow_similarity([4, 2, 5], IMAGES[:1]) - slow_similarity([4, 0, 5], IMAGES[:1])
    np.testing.assert_allclose(told.changes[1, 2], change, atol=1e-6)


def test_codes_count_the_tokens_that_are_allowed():
    allowed = np.array([False, True, False, True, True, True])
    target = target_of(allowed=allowed, given={1: 4})
    assert target.space.num_levels == 4
    assert target.tokens.tolist() == [1, 3, 4, 5]
    x = target.space.random(jax.random.key(0))
    tokens = np.asarray(target.tokens)[x]
    assert tokens[1] == 4
    np.testing.assert_allclose(value_of(target, x, target.directions), slow_similarity(tokens), atol=1e-6)


@pytest.mark.slow
def test_tuning_keeps_to_what_is_allowed_and_given():
    target = target_of(allowed=np.array([False, True, False, True, True, True]), given={1: 4})
    for found in (
        sampled_prompts(jax.random.key(1), target, num_chains=3, num_steps=20, progress=False),
        continuous_relaxation(jax.random.key(1), target, num_runs=3, num_steps=20),
    ):
        assert set(found.tokens.ravel().tolist()) <= {1, 3, 4, 5}
        assert (found.tokens[:, 1] == 4).all()


def prompt_of(seed: int = 0, config=SMALL) -> ClipPrompt:
    """As `random_prompt` makes it, by numpy, which compiles nothing."""
    generator = np.random.default_rng(seed)

    def draw(path, leaf):
        name = jax.tree_util.keystr(path)
        scale = 0.02 if name in (".words", ".positions") else 0.0 if name.endswith((".bias", ".shift")) else 0.15
        values = generator.normal(scale=scale, size=leaf.shape) if scale else np.zeros(leaf.shape)
        return (np.ones(leaf.shape) if name.endswith(".scale") else values).astype(leaf.dtype)

    shapes = eqx.filter_eval_shape(ClipText.random, jax.random.key(0), config)
    tower = jax.tree_util.tree_map_with_path(draw, shapes)
    return ClipPrompt(tower, config.vocab_size - 2, config.vocab_size - 1)


@pytest.fixture(scope="module")
def prompt():
    return prompt_of()


def test_a_prompt_of_clip_stands_between_start_and_end(prompt):
    tokens = [5, 9, 200]
    expected = embedded(prompt.tower, [SMALL.vocab_size - 2, *tokens, SMALL.vocab_size - 1])
    found = eqx.filter_jit(lambda prompt, e: prompt(e))(prompt, np.eye(SMALL.vocab_size, dtype=np.float32)[tokens])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def largest(jaxpr) -> int:
    """The numbers in the largest array that a program makes."""
    sizes = [variable.aval.size for equation in jaxpr.eqns for variable in equation.outvars]
    inner = [each for equation in jaxpr.eqns for each in jaxprs_in_params(equation.params)]
    return max([*sizes, *map(largest, inner)])


def test_nothing_is_as_large_as_places_by_words_by_hidden():
    length, size, batch = 6, 3000, 50
    config = dataclasses.replace(SMALL, vocab_size=size, hidden_size=16, num_attention_heads=2, projection_dim=8)
    target = PromptTarget(
        prompt_of(config=config), np.ones((60, 8)), length, size, batch_size=batch, allowed=np.arange(size) < size - 2
    )

    def told(x, xi):
        return tuple(evaluate_batch(target, x, xi, exact=False))

    arguments = np.zeros(length, target.space.dtype), np.ones((batch, 8), np.float32)
    assert largest(jax.make_jaxpr(told)(*arguments).jaxpr) == length * size


MISTAKES = {
    "rows": (lambda: target_of(np.ones(5)), r"one a row, but got an array of float64 of shape \(5,\)"),
    "integers": (lambda: target_of(np.ones((2, 5), int)), "one a row, but got an array of int64"),
    "zero": (lambda: target_of(np.eye(4, 5) * [[1], [1], [0], [1]]), "Row 2 of images has no direction"),
    "another model": (lambda: target_of(np.ones((2, 4))), r"shape \(5,\) for a prompt, but those of the images have 4"),
    "batch": (lambda: target_of(batch_size=0), "batch_size is a whole number, at least 1 and below .*, but got 0"),
    "mask": (lambda: target_of(allowed=[1, 2]), r"mask of the 6 tokens, but got int64 of shape \(2,\)"),
    "one token": (lambda: target_of(allowed=np.arange(6) == 3), "two tokens to choose from at least, but 1 are"),
    "place": (lambda: target_of(given={3: 0}), r"places 0\.\.2, but a token was given for place 3"),
    "token": (lambda: target_of(given={0: 6}), "Token 6, given for place 0, is not in the vocabulary"),
    "long": (
        lambda: PromptTarget(prompt_of(), np.ones((2, 32)), 39, 512),
        "at most 40 tokens, but with those of start and end the text has 41",
    ),
    "steps": (lambda: prompt_sampler(0), "num_steps must be at least 1"),
    "relaxed steps": (lambda: continuous_relaxation(jax.random.key(0), target_of(), num_steps=0), "num_steps must be"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_sentences(name):
    make, sentence = MISTAKES[name]
    with pytest.raises(ValueError, match=sentence):
        make()


def test_the_relaxation_needs_word_embeddings():
    target = PromptTarget(lambda e: jnp.sum(e, axis=0)[:5], IMAGES, 3, 6)
    with pytest.raises(TypeError, match="embed_tokens must be an Embedder such as ClipPrompt"):
        continuous_relaxation(jax.random.key(0), target)


# --- Tuning ----------------------------------------------------------------------------------------------------------


def test_sampling_finds_the_best_prompt_of_all():
    target = target_of()
    values = {tuple(x): slow_similarity(x) for x in target.space.enumerate().tolist()}
    best = max(values, key=values.__getitem__)
    found = sampled_prompts(jax.random.key(0), target, num_chains=4, num_steps=400, progress=False)
    assert [tuple(tokens) for tokens in found.tokens.tolist()] == [best] * 4
    np.testing.assert_allclose(found.similarities, values[best], atol=1e-6)


def test_a_signal_keeps_the_best_so_far(monkeypatch):
    drawn, draws = target_of(), np.zeros((2, 5, 3), np.int8)
    draws[1, 3] = [4, 0, 5]

    class Part:
        is_complete, num_draws, seconds, compile_seconds = False, 5, 1.0, 0.0

    Part.draws = draws
    monkeypatch.setattr("discrax.text.prompts.sample", lambda *_, **__: Part())
    found = sampled_prompts(jax.random.key(0), drawn, num_chains=2, num_steps=20, progress=False)
    assert not found.is_complete
    assert found.similarities[1] == pytest.approx(max(slow_similarity([4, 0, 5]), slow_similarity([0, 0, 0])), abs=1e-5)
    Part.num_draws = 0
    with pytest.raises(KeyboardInterrupt):
        sampled_prompts(jax.random.key(0), drawn, num_chains=2, num_steps=20, progress=False)


def test_similarities_are_in_the_order_of_the_states():
    target = target_of()
    states = np.array([[4, 0, 5], [1, 2, 3], [4, 0, 5], [0, 0, 0]], np.int8)
    np.testing.assert_allclose(similarities(target, states)[0], [slow_similarity(x) for x in states], atol=1e-6)


def test_beta_grows_to_300():
    temperature = prompt_sampler(50).temperature
    betas = [1 / float(temperature(jnp.asarray(t, jnp.float32))) for t in (0, 24, 49)]
    np.testing.assert_allclose(betas, [6, 150, 300], rtol=1e-5)
    assert 1 / float(prompt_sampler().temperature(jnp.zeros(()))) == pytest.approx(0.1)


def test_with_a_step_of_one_the_cache_is_of_no_use_and_with_less_it_is():
    """Algorithm 1 leaves every state at once if h = 1: print, which has two numbers for one chain, contradicts it."""

    def draws(h: float, cache: bool, moves: str = "one") -> np.ndarray:
        kernel = prompt_sampler(100, step_size=h, cache=cache, moves=moves)
        settings = {"num_chains": 4, "num_warmup": 0, "num_samples": 100, "adaptation": None, "progress": False}
        return np.asarray(sample(jax.random.key(0), target_of(), kernel, **settings).draws)

    np.testing.assert_array_equal(draws(1.0, True), draws(1.0, False))
    assert (draws(1.0, True)[:, 1:] != draws(1.0, True)[:, :-1]).any(axis=-1).all()
    assert not np.array_equal(draws(0.2, True), draws(0.2, False))
    assert not np.array_equal(draws(1.0, True, "all"), draws(1.0, False, "all"))


def slow_relaxation(x, num_steps: int, rate: float, decay: float) -> tuple[list[int], float]:
    """One run with a single image, in double precision."""
    words, v = WORDS.astype(float), IMAGES[0] / np.linalg.norm(IMAGES[0])
    p = words[x]
    first, second, best = np.zeros_like(p), np.zeros_like(p), ([], -np.inf)
    for t in range(1, num_steps + 1):
        x = [int(np.argmax([word @ row / np.linalg.norm(word) for word in words])) for row in p]
        embedding = sum(words[token] @ MATRIX[i] for i, token in enumerate(x))
        size = np.linalg.norm(embedding)
        cosine = v @ embedding / size
        best = max(best, (x, cosine), key=lambda pair: pair[1])
        gradient = -np.stack([matrix @ (v - cosine * embedding / size) / size for matrix in MATRIX])
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        step = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        p = p - rate * (step + decay * p)
    return best


def test_the_relaxation_is_that_of_plain_numpy():
    target, keys = target_of(IMAGES[:1]), random.split(jax.random.key(5), 4)
    found = continuous_relaxation(jax.random.key(5), target, num_runs=4, num_steps=15, learning_rate=0.05)
    for run, key in enumerate(keys):
        start = np.asarray(target.space.random(random.split(key, 2)[0]))
        tokens, value = slow_relaxation(start, 15, 0.05, 0.1)
        assert found.tokens[run].tolist() == tokens
        np.testing.assert_allclose(found.similarities[run], value, atol=1e-5)
    assert len({tuple(tokens) for tokens in found.tokens.tolist()}) > 1


def test_made_up_images_share_a_style(prompt):
    allowed = np.arange(SMALL.vocab_size) < SMALL.vocab_size - 2
    rows = made_up_images(3, prompt, allowed, count=20, length=8, noise=0.0)
    noisy = made_up_images(3, prompt, allowed, count=20, length=8, noise=2.0)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert np.linalg.norm(noisy - rows, axis=1).mean() == pytest.approx(2, rel=0.15)
    other = made_up_images(4, prompt, allowed, count=20, length=8, noise=0.0)
    assert (rows @ rows.T).mean() > (rows @ other.T).mean() + 0.05


# --- The command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_says_that_the_tower_is_random(capsys):
    tune_prompt(length=3, steps=5, chains=2)
    printed_text = capsys.readouterr().out
    assert "small random tower" in printed_text
    assert "similarity" in printed_text
    prompt, allowed = random_prompt(0)
    assert np.flatnonzero(~allowed).tolist() == [prompt.start, prompt.end] == [510, 511]


@pytest.mark.slow
def test_the_command_prints_words(tmp_path, capsys):
    folder = write_clip(tmp_path / "clip")
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(size=(3, 6)))
    tune_prompt(folder, tmp_path / "images.npy", length=2, steps=5, chains=2)
    printed_text = capsys.readouterr().out
    assert "random tower" not in printed_text
    shown = [line.split("│")[1:3] for line in printed_text.splitlines() if line.startswith("│")]
    values = [float(value) for value, _ in shown]
    assert len(values) == 2
    assert values == sorted(values, reverse=True)
    assert all(set(text.replace(" ", "")) <= set("atcs'") for _, text in shown)


def test_mistakes_of_the_command_are_sentences(tmp_path):
    with pytest.raises(ValueError, match="--images was given without --checkpoint"):
        tune_prompt(images=tmp_path / "images.npy")
    with pytest.raises(ValueError, match="--checkpoint was given without --images"):
        tune_prompt(tmp_path)
    with pytest.raises(ValueError, match=r"There is no file .*nothing\.npy"):
        tune_prompt(tmp_path, tmp_path / "nothing.npy")
    (tmp_path / "text.npy").write_text("1 2 3")
    with pytest.raises(ValueError, match=r"text\.npy is no \.npy file of numbers"):
        tune_prompt(tmp_path, tmp_path / "text.npy")
    np.savez(tmp_path / "several.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="holds several arrays"):
        tune_prompt(tmp_path, tmp_path / "several.npz")


# --- The suite -------------------------------------------------------------------------------------------------------


def test_there_is_a_cell_for_every_printed_number():
    cells = list(table03.cells(Size.PAPER))
    found = [find_printed("sgdld", 3, "clip_similarity", dict(cell.labels)) for cell in cells]
    assert sum(each is not None for each in found) == len(printed_rows("sgdld", 3)) == 12
    assert {cell.budget for cell in cells} == {Budget(10, 0, 3000)}


def test_the_variables_name_model_and_images(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv(IMAGES_VARIABLE, raising=False)
    assert dict(next(iter(table03.cells(Size.QUICK))).target.arguments) == {"length": 4}
    monkeypatch.setenv(VARIABLE, "/a/folder")
    monkeypatch.setenv(IMAGES_VARIABLE, "/some/images.npy")
    arguments = dict(next(iter(table03.cells(Size.QUICK))).target.arguments)
    assert arguments == {"length": 4, "checkpoint": "/a/folder", "images": "/some/images.npy"}


def test_targets_of_a_checkpoint(tmp_path):
    folder = str(write_clip(tmp_path / "clip"))
    np.save(tmp_path / "images.npy", np.eye(6, dtype=np.float32)[:4])
    given = bench.images_in_one_style(3, checkpoint=folder, images=str(tmp_path / "images.npy"))
    np.testing.assert_array_equal(given.directions, np.eye(6)[:4])
    assert given.space.num_levels == 10
    with pytest.raises(ValueError, match="at most 10 tokens"):  # hidden prompts are longer than this tower reads
        bench.images_in_one_style(3, checkpoint=folder)
    with pytest.raises(ValueError, match="without the folder of the CLIP"):
        bench.images_in_one_style(3, images="images.npy")


@pytest.mark.slow
def test_cells_measure_what_is_printed(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(bench, "TOWER", dataclasses.replace(SMALL, vocab_size=50, num_hidden_layers=1))
    rows = []
    for cell in list(table03.cells(Size.QUICK))[:3]:
        rows += run_cell(dataclasses.replace(cell, budget=Budget(2, 0, 10)))
    assert [row["error"] for row in rows if row["status"] != "ok"] == []
    rows = [row | {"labels": json.loads(row["labels"])} for row in rows]
    most = {row["value"] for row in rows if row["metric"] == "largest_possible"}
    assert len(most) == 1
    grid = make_grid(table03.exhibits[0], rows)
    for name, paper in {"SGDLD": 0.4201, "SGDLD-noC": 0.3689, "CR": 0.3957}.items():
        entry = next(line for line in grid.lines if line.head[0] == name).entries[0]
        assert entry.paper == paper
        assert -1 < entry.ours < max(most)
