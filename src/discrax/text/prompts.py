"""Prompts whose embedding is like that of given images, found by sampling (Sun et al., 2023; Wen et al., 2023).

A state x is a prompt, a token a place. With u(x) the direction of its embedding by any function of its tokens, such as
the text tower of CLIP, and v_I the direction of image I's embedding,

    sim(x, I) = <u(x), v_I>,    log pi(x) = E_I sim(x, I),    psi(x, xi) = mean of sim(x, I) over a mini-batch xi

and pi^beta is sampled with a beta that grows: the paper's is 0.1 t in step t of 3,000. The function is evaluated at the
one-hot rows e of the tokens, so that one gradient tells the change by every token at every place (`exact=False` of
`sgdld`). What is as large as the vocabulary (v tokens, m places, k chains): e, its gradient and the log-ratios, each
k m v floats.

For comparison, `continuous_relaxation` (Wen et al., 2023): embeddings p of the places, free to move, and their
projections q, the word embeddings in the most similar directions. In every step a mini-batch's gradient is taken at q
and AdamW applies it to p. The best q is kept.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PRNGKeyArray

from discrax.core import checks, random
from discrax.core.checks import checked_arguments, describe
from discrax.core.extras import import_extra
from discrax.core.kernel import Kernel
from discrax.core.programs import compiled, reads_user_code
from discrax.core.seeds import key_of
from discrax.core.space import Categorical
from discrax.core.stochastic import StochasticTarget
from discrax.samplers import schedules, sgdld
from discrax.sampling import sample
from discrax.text.clip import SMALL, Clip, ClipConfig, ClipText

_NUMBERS_AT_ONCE, _MOST_AT_ONCE = 2**24, 256  # of one-hot rows, and states, when similarities are computed
_LAST_BETA = 300.0


class Embedder(eqx.Module):
    """The embedding of a prompt by way of word embeddings: what the continuous relaxation can work with."""

    @property
    @abstractmethod
    def words(self) -> Float[Array, "vocabulary hidden"]:
        """The embeddings of all tokens, before they know of each other."""

    @abstractmethod
    def encode(self, embedded: Float[Array, "length hidden"]) -> Float[Array, " embedding"]:
        """The embedding of a prompt that is given by its word embeddings."""

    def __call__(self, e: Float[Array, "length vocabulary"]) -> Float[Array, " embedding"]:
        """The embedding of a prompt that is given by one-hot rows, or by any mixtures of tokens."""
        return self.encode(e.astype(self.words.dtype) @ self.words)


class ClipPrompt(Embedder):
    """CLIP's embedding of a prompt, which stands between the tokens of start and end."""

    tower: ClipText
    start: int = eqx.field(static=True)
    end: int = eqx.field(static=True)

    @property
    def words(self) -> Float[Array, "vocabulary hidden"]:
        return self.tower.words

    def encode(self, embedded: Float[Array, "length hidden"]) -> Float[Array, " embedding"]:
        words = self.tower.words
        return self.tower.encode(jnp.concatenate([words[self.start][None], embedded, words[self.end][None]]))


class PromptTarget(StochasticTarget):
    """Prompts that are like images; `psi` is the mean similarity to a mini-batch of them.

    - `embed_tokens`: any function of one-hot rows (length, vocabulary) whose value is an embedding like the images'.
    - `images`: their embeddings, one a row, of any length.
    - `batch_size`: images of a mini-batch, drawn with replacement.
    - `allowed`: a mask of the tokens that may be used; codes then count these only. `tokens` says which they are.
    - `given`: tokens that stay, by their places.
    """

    embed_tokens: Callable[[Array], Array]
    directions: Float[Array, "images embedding"]
    tokens: Int[Array, " levels"]
    space: Categorical
    vocabulary: int = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def __init__(
        self,
        embed_tokens: Callable[[Array], Array],
        images: Float[Array | np.ndarray, "images embedding"],
        length: int,
        vocabulary: int,
        *,
        batch_size: int = 1,
        allowed: Any = None,
        given: Mapping[int, int] | None = None,
    ):
        for name, value in {"length": length, "vocabulary": vocabulary, "batch_size": batch_size}.items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**31:
                raise ValueError(f"{name} is a whole number, at least 1 and below 2^31, but got {describe(value)}.")
        self.directions = _directions(images)
        mask = np.ones(vocabulary, bool) if allowed is None else np.asarray(allowed)
        if mask.dtype != np.bool_ or mask.shape != (vocabulary,):
            raise ValueError(
                f"allowed is a boolean mask of the {vocabulary:,} tokens, but got {mask.dtype} of shape {mask.shape}."
            )
        tokens = np.flatnonzero(mask)
        if len(tokens) < 2:
            raise ValueError(f"There must be two tokens to choose from at least, but {len(tokens)} are allowed.")
        self.embed_tokens, self.vocabulary, self.batch_size = embed_tokens, int(vocabulary), int(batch_size)
        self.tokens = jnp.asarray(tokens, jnp.int32)
        self.space = _space(length, tokens, given or {})
        _check_function(embed_tokens, length, vocabulary, self.directions.shape[1])

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Float[Array, "batch embedding"]:
        return self.directions[random.integers(key, self.batch_size, self.directions.shape[0])]

    def psi(self, e: Float[Array, "length levels"], xi: Float[Array, "batch embedding"]) -> Float[Array, ""]:
        return self.similarity(self._embed(e), xi)

    def log_phi(self, mean: Float[Array, "..."]) -> Float[Array, "..."]:
        return mean

    def log_prob(self, e: Float[Array, "length levels"]) -> Float[Array, ""]:
        """The mean similarity to all images."""
        return self.similarity(self._embed(e), self.directions)

    def _embed(self, e: Float[Array, "length levels"]) -> Float[Array, " embedding"]:
        if self.space.num_levels < self.vocabulary:
            e = jnp.zeros((e.shape[0], self.vocabulary), e.dtype).at[:, self.tokens].set(e)
        return self.embed_tokens(e)

    def similarity(
        self, embedding: Float[Array, " embedding"], directions: Float[Array, "images embedding"]
    ) -> Float[Array, ""]:
        """The mean cosine of an embedding with some images."""
        cosine = jnp.dot(embedding, jnp.mean(directions, axis=0)) / jnp.linalg.norm(embedding)
        return cosine.astype(jnp.result_type(float))


def _directions(images: Any) -> Float[Array, "images embedding"]:
    images = np.asarray(images)
    if images.ndim != 2 or not images.size or not np.issubdtype(images.dtype, np.floating):
        raise ValueError(
            f"images are embeddings, one a row, but got an array of {images.dtype} of shape {images.shape}."
        )
    lengths = np.linalg.norm(images.astype(np.float64), axis=1)
    odd = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if odd.size:
        raise ValueError(f"Row {odd[0]} of images has no direction: it is 0 or not finite.")
    return jnp.asarray(images / lengths[:, None], jnp.float32)


def _space(length: int, tokens: Integer[np.ndarray, " levels"], given: Mapping[int, int]) -> Categorical:
    if not given:
        return Categorical(length, len(tokens))
    frozen, codes = np.zeros(length, bool), np.zeros(length, np.int64)
    for place, token in given.items():
        if not 0 <= place < length:
            raise ValueError(f"A prompt has the places 0..{length - 1}, but a token was given for place {place}.")
        if token not in tokens:
            raise ValueError(f"Token {token}, given for place {place}, is not in the vocabulary or not allowed.")
        frozen[place], codes[place] = True, int(np.searchsorted(tokens, token))
    return Categorical(length, len(tokens), frozen=frozen, frozen_codes=codes)


def _check_function(embed_tokens: Any, length: int, vocabulary: int, size: int) -> None:
    if not callable(embed_tokens):
        raise TypeError(f"embed_tokens is a function of one-hot rows, but got a {type(embed_tokens).__name__}.")
    rows = jax.ShapeDtypeStruct((length, vocabulary), jnp.result_type(float))
    try:
        shape = jax.eval_shape(lambda e: embed_tokens(e), rows).shape
    except Exception as error:
        raise ValueError(
            f"embed_tokens cannot be evaluated on one-hot rows of shape {rows.shape}: {type(error).__name__}: {error}"
        ) from error
    if shape != (size,):
        raise ValueError(
            f"embed_tokens gives an embedding of shape {shape} for a prompt, but those of the images have {size} "
            "numbers: they are of different models."
        )


@dataclass(frozen=True, eq=False)
class TunedPrompts:
    """The best prompt of every run."""

    tokens: Integer[np.ndarray, "runs length"]
    similarities: Float[np.ndarray, " runs"]  # means over all images
    seconds: float
    compile_seconds: float
    is_complete: bool = True  # False if it was interrupted: then it is the best so far


def prompt_sampler(num_steps: int = 3000, *, step_size: float = 1.0, cache: bool = True, moves: str = "all") -> Kernel:
    """SGDLD as the paper tunes prompts: one gradient a step, h = 1, and a beta that grows in equal steps to 300.

    Each place moves by itself. If only one of them could (`moves="one"`, the paper's algorithm 1), then with h = 1 one
    would in every step, and there would never be a second mini-batch to average: the cache would be of no use.
    """
    checks.whole("num_steps", num_steps, least=1)
    temperature = schedules.Power(num_steps / _LAST_BETA, 1.0, 1e-30, 1.0)  # 1 / beta_t at t = 1, 2, ...
    return sgdld(step_size, cache=cache, moves=moves, exact=False, temperature=temperature)


@checked_arguments
def sampled_prompts(
    key: PRNGKeyArray,
    target: PromptTarget,
    sampler: str | Kernel | None = None,
    *,
    num_chains: int = 10,
    num_steps: int = 3000,
    progress: bool | None = None,
) -> TunedPrompts:
    """Samples prompts; of all states that a chain has been in, the one most like all images is kept.

    `sampler`: by default `prompt_sampler(num_steps)`. Ctrl-C and SIGTERM return the best so far.
    """
    random.as_threefry(key)
    for name, count in {"num_chains": num_chains, "num_steps": num_steps}.items():
        checks.whole(name, count, least=1)
    sampler = prompt_sampler(num_steps) if sampler is None else sampler
    settings: dict[str, Any] = {"num_chains": num_chains, "num_samples": num_steps, "progress": progress}
    run = sample(key, target, sampler, adaptation=None, num_warmup=0, **settings)
    if not run.num_draws:
        raise KeyboardInterrupt
    assert run.draws is not None
    begin = time.perf_counter()
    values, compile_seconds = similarities(target, run.draws.reshape(-1, target.space.num_sites))
    values = values.reshape(run.draws.shape[:2])
    best = values.argmax(axis=1)
    runs = np.arange(num_chains)
    seconds = run.seconds + time.perf_counter() - begin - compile_seconds
    tokens = np.asarray(target.tokens)[run.draws[runs, best].astype(np.int64)]
    return TunedPrompts(tokens, values[runs, best], seconds, run.compile_seconds + compile_seconds, run.is_complete)


def similarities(
    target: PromptTarget, states: Integer[np.ndarray, "states length"]
) -> tuple[Float[np.ndarray, " states"], float]:
    """The mean similarity of each state to all images, and the seconds of compilation; equal states count once."""
    different, place = np.unique(states, axis=0, return_inverse=True)
    at_once = int(np.clip(_NUMBERS_AT_ONCE // (target.space.num_sites * target.vocabulary), 1, _MOST_AT_ONCE))
    padded = np.resize(different, (-(-len(different) // at_once) * at_once, different.shape[1]))
    blocks = [jnp.asarray(block) for block in np.split(padded, len(padded) // at_once)]
    program, compile_seconds = compiled(_similarities, (target, blocks[0]), {})
    values = np.concatenate([np.asarray(program((target, block))) for block in blocks])
    return values[place.reshape(-1)], compile_seconds


def _similarities(target: PromptTarget, states: Integer[Array, "states length"]) -> Float[Array, " states"]:
    return jax.vmap(lambda x: target.log_prob(target.space.embed(x)))(states)


@reads_user_code()
@checked_arguments
def continuous_relaxation(
    key: PRNGKeyArray,
    target: PromptTarget,
    *,
    num_runs: int = 10,
    num_steps: int = 3000,
    learning_rate: float = 0.1,
    weight_decay: float = 0.1,
) -> TunedPrompts:
    """Optimises the embeddings of the places with gradients at their projections, and keeps the best projection.

    The target's `embed_tokens` must be an `Embedder`. Runs start at the embeddings of random tokens.
    """
    key = random.as_threefry(key)
    if not isinstance(target.embed_tokens, Embedder):
        raise TypeError(
            "The continuous relaxation moves word embeddings, so embed_tokens must be an Embedder such as ClipPrompt, "
            f"but it is a {type(target.embed_tokens).__name__}."
        )
    for name, count in {"num_runs": num_runs, "num_steps": num_steps}.items():
        checks.whole(name, count, least=1)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    weight_decay = checks.number("weight_decay", weight_decay, least=0)
    settings = {"num_steps": num_steps, "learning_rate": learning_rate, "weight_decay": weight_decay}
    arguments = (random.split(key, num_runs), target)
    program, compile_seconds = compiled(_relax, arguments, settings)
    begin = time.perf_counter()
    best, values = jax.tree.map(np.asarray, program(arguments))
    return TunedPrompts(np.asarray(target.tokens)[best], values, time.perf_counter() - begin, compile_seconds)


def _relax(
    keys: Key[Array, " runs"], target: PromptTarget, *, num_steps: int, learning_rate: float, weight_decay: float
) -> tuple[Integer[Array, "runs length"], Float[Array, " runs"]]:
    optax = import_extra("optax", "The continuous relaxation needs", "text")
    embedder: Any = target.embed_tokens
    space, words = target.space, embedder.words[target.tokens]
    word_directions = words / jnp.linalg.norm(words, axis=1, keepdims=True)
    adam = optax.adamw(learning_rate, weight_decay=weight_decay)

    def one_run(key: PRNGKeyArray) -> tuple[Array, Array]:
        for_start, for_batches = random.split(key, 2)

        def one_step(carry: Any, step: Int[Array, ""]) -> tuple[Any, None]:
            p, moments, best, value = carry
            # Which direction of a word is nearest does not depend on how long p is.
            x = jnp.asarray(space.hold(jnp.argmax(p @ word_directions.T, axis=1)))
            xi = target.draw(random.fold_in(for_batches, step), step)

            def loss(q: Float[Array, "length hidden"]) -> tuple[Array, Array]:
                embedding = embedder.encode(q)
                return -target.similarity(embedding, xi), target.similarity(embedding, target.directions)

            gradient, found = jax.grad(loss, has_aux=True)(words[x])
            updates, moments = adam.update(gradient, moments, p)
            best, value = jnp.where(found > value, x, best), jnp.maximum(found, value)
            return (optax.apply_updates(p, updates), moments, best, value), None

        x = space.random(for_start).astype(jnp.int32)
        start = (words[x], adam.init(words[x]), x, jnp.array(-jnp.inf, jnp.result_type(float)))
        return jax.lax.scan(one_step, start, jnp.arange(num_steps, dtype=jnp.int32))[0][2:]

    return jax.vmap(one_run)(keys)


def made_up_images(
    seed: int, prompt: ClipPrompt, allowed: Bool[np.ndarray, " vocabulary"], *, count: int, length: int, noise: float
) -> Float[np.ndarray, "images embedding"]:
    """Images in one style, where there are none: directions of hidden prompts, plus noise of a given mean length.

    The first half of every hidden prompt is the same, the style; the rest is random.
    """
    generator = np.random.default_rng(seed)
    tokens = generator.choice(np.flatnonzero(allowed), (count, length))
    tokens[:, : length // 2] = tokens[0, : length // 2]
    embed = eqx.filter_jit(lambda prompt, tokens: jax.lax.map(lambda x: prompt.encode(prompt.words[x]), tokens))
    hidden = np.asarray(embed(prompt, jnp.asarray(tokens, jnp.int32)))
    hidden = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    return hidden + noise * generator.normal(size=hidden.shape).astype(hidden.dtype) / hidden.shape[1] ** 0.5


def random_prompt(seed: int, config: ClipConfig = SMALL) -> tuple[ClipPrompt, Bool[np.ndarray, " vocabulary"]]:
    """A tower that has learnt nothing, whose last two tokens are those of start and end, and which others there are."""
    size = config.vocab_size
    tower = ClipText.random(key_of(seed), config)
    return ClipPrompt(tower, size - 2, size - 1), np.arange(size) < size - 2


def made_up_target(seed: int, length: int) -> PromptTarget:
    """A small tower that has learnt nothing and 16 made-up images: what there is without a checkpoint."""
    prompt, allowed = random_prompt(seed)
    images = made_up_images(seed, prompt, allowed, count=16, length=length, noise=1.0)
    return PromptTarget(prompt, images, length, len(allowed), allowed=allowed)


def clip_target(clip: Clip, images: Float[Array | np.ndarray, "images embedding"], length: int) -> PromptTarget:
    """Prompts of CLIP's words, whatever tokens are not special, that are like its embeddings of images."""
    allowed = clip.tokenizer.is_word
    prompt = ClipPrompt(clip.tower, clip.tokenizer.start, clip.tokenizer.end)
    return PromptTarget(prompt, images, length, len(allowed), allowed=allowed)


def read_embeddings(path: Path) -> Float[np.ndarray, "images embedding"]:
    """The embeddings of images, one a row, of a .npy file."""
    if not path.is_file():
        raise ValueError(f"There is no file {path}; images are a .npy file of embeddings, one a row.")
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is no .npy file of numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{path} holds several arrays; save the embeddings alone, with numpy.save.")
    return found
