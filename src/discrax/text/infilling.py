"""Infilling: words for the masked places of a sentence, drawn from a masked language model.

With the masked places 1 .. m, a state x is a word for each, and

    log pi(x) = sum_i log p(x_i | the sentence filled with x, but place i masked)

where p is the model's distribution at place i: m sentences for one evaluation, side by side. In the embedding e, one
one-hot row a place, place j enters the sentences of all other places as e_j W, W the word embeddings, and place i picks
its own term,

    log pi(e) = sum_i sum_c e_ic log p_i(c | e_j W for j != i)

so that one gradient reaches every word of every place. Where a single place is masked, log pi is linear in e and the
first-order log-ratios are exact.

What is as large as the vocabulary (v words, m places, k chains): e, its gradient, the logits and the log-ratios, each
k m v floats; 12 MB each for 25 chains, 4 places and 30,522 words. There are logits at masked places only. Backwards
through the model, each layer keeps about (9 hidden + 2 intermediate) floats for each of the k m sentences' tokens.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from discrax.core import checks, random
from discrax.core.checks import checked_arguments
from discrax.core.driver import Adapter
from discrax.core.kernel import Kernel
from discrax.core.levels import draw_levels
from discrax.core.programs import compiled, reads_user_code
from discrax.core.space import Categorical
from discrax.core.target import Target
from discrax.curvature.hessian import LARGEST
from discrax.samplers import build_kernel
from discrax.sampling import Result, sample
from discrax.text.bert import Bert, MaskedModel, read_checkpoint
from discrax.text.tokens import END, MASK, START

_LENGTHS = 16  # sentences are padded to a multiple of it
_MOST_LEVELS = 1000  # for samplers that evaluate every level of a site in each step


class Infilling(Target):
    """The words of the masked places of a sentence.

    The sites are the masked places only. The given words are constants of the target: sites that are frozen would mean
    the same and cost as much as free ones. Codes count the words that may be filled in, `words[code]` being the token:
    all but special and unused ones, or, with `all_tokens`, the whole vocabulary.
    """

    bert: Bert
    words: Integer[Array, " levels"]
    embeddings: Float[Array, "levels hidden"]  # of `words`
    tokens: Int[Array, " padded"]  # of the sentence, with [MASK] at the masked places
    length: Int[Array, ""]  # how many of them are the sentence's; the others pad it, so that programs fit several
    places: Int[Array, " sites"]  # in `tokens`
    space: Categorical

    @checked_arguments
    def __init__(self, model: MaskedModel, sentence: str, *, all_tokens: bool = False):
        index = model.tokenizer.index
        tokens = np.array([index[START], *model.tokenizer.tokens(sentence), index[END]], np.int32)
        places = np.flatnonzero(tokens == index[MASK])
        longest = model.bert.config.max_position_embeddings
        if not len(places):
            raise ValueError(f"A sentence to be filled in has a {MASK} for each word that is wanted; got {sentence!r}.")
        if len(tokens) > longest:
            raise ValueError(
                f"The model reads at most {longest} tokens, but with [CLS] and [SEP] the sentence has {len(tokens)}."
            )
        self.bert = model.bert
        self.words, self.embeddings = model.everything if all_tokens else model.words
        padded = min(longest, -(-len(tokens) // _LENGTHS) * _LENGTHS)
        self.tokens = jnp.asarray(np.pad(tokens, (0, padded - len(tokens)), constant_values=index[END]))
        self.length, self.places = jnp.asarray(len(tokens), jnp.int32), jnp.asarray(places, jnp.int32)
        self.space = Categorical(len(places), self.words.shape[0])

    def log_prob(self, e: Float[Array, "sites levels"]) -> Float[Array, ""]:
        given = self.bert.words[self.tokens]  # masked places have the embedding of [MASK]
        here = jnp.arange(len(self.tokens))
        is_at = here[:, None] == self.places[None, :]
        filled = is_at.astype(given.dtype) @ (e.astype(given.dtype) @ self.embeddings)  # each word at its place

        def with_only(place: Int[Array, ""]) -> Float[Array, " hidden"]:
            """What the model makes of a place when that place alone is masked."""
            is_filled = jnp.any(is_at, axis=1) & (here != place)
            return self.bert.encode(jnp.where(is_filled[:, None], filled, given), here < self.length)[place]

        log_p = jax.nn.log_softmax(self.bert.logits(jax.vmap(with_only)(self.places)), axis=-1)
        return jnp.sum(e * log_p[:, self.words].astype(e.dtype))

    def draw(self, key: PRNGKeyArray, num_states: int) -> Integer[Array, "states sites"]:
        """Words drawn from the model with all places masked, each by itself: where chains start."""
        program, _ = compiled(_draw, (random.as_threefry(key), self), {"num_states": num_states})
        return program((random.as_threefry(key), self))

    def fill(self, x: Integer[Any, " sites"]) -> list[int]:
        """The tokens of the sentence with a state's words."""
        tokens = np.array(self.tokens[: int(self.length)])
        tokens[np.asarray(self.places)] = np.asarray(self.words)[np.asarray(x, np.int64)]
        return tokens.tolist()


def _draw(key: PRNGKeyArray, target: Infilling, *, num_states: int) -> Integer[Array, "states sites"]:
    is_seen = jnp.arange(len(target.tokens)) < target.length
    logits = target.bert(target.tokens, target.places, is_seen)[:, target.words]
    bits = jax.vmap(partial(random.words, count=len(target.places)))(random.split(key, num_states))
    return jax.vmap(draw_levels, in_axes=(0, None))(bits, logits).astype(target.space.dtype)


@dataclass(frozen=True)
class Infilled:
    """The most probable of the chains' last states, best first; equal ones are not left out."""

    sentences: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]  # what was filled in
    log_probs: Float[np.ndarray, " top"]
    states: Integer[np.ndarray, "top sites"]
    unknown: tuple[str, ...]  # given words that the model does not know: it reads them as [UNK]
    target: Infilling = field(repr=False)
    run: Result = field(repr=False)  # of all chains

    def as_dict(self) -> dict[str, Any]:
        """What was found, for JSON."""
        rows = zip(self.sentences, self.words, self.log_probs, strict=True)
        found = [{"sentence": text, "words": list(words), "log_prob": float(value)} for text, words, value in rows]
        return {"is_complete": self.run.is_complete, "unknown": list(self.unknown), "filled": found}


@reads_user_code()
@checked_arguments
def infill(
    key: PRNGKeyArray,
    model: MaskedModel | str | Path,
    sentence: str,
    *,
    sampler: str | Kernel = "pas",
    num_chains: int = 25,
    num_steps: int = 50,
    top: int = 5,
    adaptation: Adapter | str | None = "auto",
    all_tokens: bool = False,
    progress: bool | None = None,
) -> Infilled:
    """Fills in the [MASK]s of a sentence.

    Chains start with words drawn from the model with all places masked and make `num_steps` steps, in which the sampler
    is tuned; of their last states the `top` most probable ones are returned.

    - `model`: what `read_checkpoint` returned, or the folder to read.
    - `sampler`: a registry name or a kernel, as for `discrax.sample`.
    - `adaptation`: as for `discrax.sample`; the last step is made with what tuning ended with.
    - `all_tokens`: special and unused tokens may be filled in as well.
    """
    key = random.as_threefry(key)
    _check_request(model, sentence, sampler, num_chains=num_chains, num_steps=num_steps, top=top)
    model = model if isinstance(model, MaskedModel) else read_checkpoint(model)
    target = Infilling(model, sentence, all_tokens=all_tokens)
    kernel = build_kernel(sampler, target)
    check_affordable(kernel, target)
    for_start, for_run = random.split(key, 2)
    run = sample(
        for_run,
        target,
        kernel,
        num_chains=num_chains,
        num_warmup=num_steps - 1,
        num_samples=1,
        init=target.draw(for_start, num_chains),
        adaptation=adaptation,
        progress=progress,
    )
    states, log_probs = np.asarray(run.states.x), np.asarray(run.states.log_prob)
    best = np.argsort(-log_probs, kind="stable")[:top]
    vocabulary = model.tokenizer.vocabulary
    words = np.asarray(target.words)
    return Infilled(
        sentences=tuple(model.tokenizer.text(target.fill(states[i])) for i in best),
        words=tuple(tuple(vocabulary[token] for token in words[states[i].astype(np.int64)]) for i in best),
        log_probs=log_probs[best],
        states=states[best],
        unknown=tuple(model.tokenizer.unknown(sentence)),
        target=target,
        run=run,
    )


def _check_request(model: Any, sentence: Any, sampler: Any, **counts: int) -> None:
    for name, count in counts.items():
        checks.whole(name, count, least=1)
    if not isinstance(sentence, str):
        raise TypeError(f"sentence must be text with a {MASK} in it, but got {checks.describe(sentence)}.")
    if counts["top"] > counts["num_chains"]:
        raise ValueError(f"top is how many of the {counts['num_chains']} chains are returned, but got {counts['top']}.")
    if sampler == "auto":
        raise ValueError(
            "infill takes a sampler by name, such as 'pas'; to choose one would take longer than to fill in."
        )
    if not isinstance(model, MaskedModel | str | Path):
        raise TypeError(f"model must be a folder, or what read_checkpoint made, but got {checks.describe(model)}.")


def check_affordable(kernel: Kernel, target: Infilling) -> None:
    """Samplers that would read a sentence for every word, or keep a matrix of words by words, end with a sentence."""
    sites, levels = target.space.num_sites, target.space.num_levels
    if kernel.evaluates_levels and levels > _MOST_LEVELS:
        raise ValueError(
            f"{type(kernel).__name__} evaluates the model at every one of {levels:,} words of a place in each step; "
            "use a sampler with gradients, such as 'pas', or 'rwm'."
        )
    if not kernel.is_prepared and sites * levels > LARGEST:
        raise ValueError(
            f"{type(kernel).__name__} estimates a matrix with a row for each word of each place, at most {LARGEST:,}, "
            f"but there are {sites * levels:,}; use a sampler of first order, such as 'pas'."
        )
