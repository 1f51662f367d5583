"""A small masked language model of one's own, from plain text: for trying things, not in place of BERT.

Every update takes windows of the text that begin where a sentence begins, [CLS] t_1 .. t_k [SEP], all of one of a few
lengths, which take turns. Of the places of a window a share of 0.15 is guessed; of these 0.8 read [MASK], 0.1 a random
word, and 0.1 stay as they are (Devlin et al., 2019). The loss is

    - mean over guessed places of log p(word | window)

and Adam with weight decay follows it, its rate rising for a twentieth of the updates and then falling to 0 as a cosine.
A part of the text that is not learnt from says when to stop: the parameters with the smallest loss there are kept.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import checked_arguments
from discrax.core.extras import import_extra
from discrax.text.bert import Bert, BertConfig, MaskedModel
from discrax.text.tokens import END, MASK, START, WordPiece

LENGTHS = (16, 24, 32, 48)  # of windows, in tokens: a program each
_SHARE_GUESSED, _SHARE_MASKED, _SHARE_RANDOM = 0.15, 0.8, 0.1
_TESTED = 8  # batches of each length that a loss is measured on


class Pretrained(NamedTuple):
    """A model, and how its loss went."""

    model: MaskedModel
    updates: list[int]
    losses: list[float]  # on the text that is not learnt from, in nats a guessed place


class _Text(NamedTuple):
    tokens: Int[Array, " tokens"]
    starts: Int[Array, " sentences"]  # where sentences begin, with a longest window before the end


# As many settings as a training has.
@checked_arguments
def train_masked_model(
    key: PRNGKeyArray,
    lines: Sequence[str],
    held_out: Sequence[str],
    *,
    vocabulary_size: int = 8192,
    hidden_size: int = 256,
    num_layers: int = 4,
    num_updates: int = 10_000,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    every: int = 500,
    lengths: tuple[int, ...] = LENGTHS,
) -> Pretrained:
    """Trains a model on the lines of a text, one sentence or paragraph each; every so many updates it is tested."""
    optax = import_extra("optax", "Models are trained with the package", "text")
    tokenizer = WordPiece.train(lines, vocabulary_size)
    text, other = (_read(tokenizer, each, max(lengths)) for each in (lines, held_out))
    heads = max(1, hidden_size // 64)
    config = BertConfig(
        vocab_size=len(tokenizer.vocabulary),
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_size,
        max_position_embeddings=512,
    )
    key_init, key_train, key_test = random.split(random.as_threefry(key), 3)
    best = bert = Bert.random(key_init, config)
    rate = optax.warmup_cosine_decay_schedule(0.0, learning_rate, max(1, num_updates // 20), num_updates)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, b2=0.98, weight_decay=0.05))
    state = optimiser.init(eqx.filter(bert, eqx.is_array))
    special = tuple(tokenizer.index[each] for each in (START, END, MASK))
    update = eqx.filter_jit(partial(_update, optimiser, special))
    test = eqx.filter_jit(partial(_loss, special=special))
    updates, losses = [], []
    for done in range(0, num_updates, every):
        for part, length in enumerate(lengths):
            count = every // len(lengths) + (part < every % len(lengths))
            keys = random.split(random.fold_in(key_train, done + part), count)
            bert, state = update(bert, state, text, keys, length, batch_size)
        found = [test(bert, key_test, other, length, _TESTED * batch_size) for length in lengths]
        losses.append(float(np.mean(found)))
        updates.append(done + every)
        if losses[-1] == min(losses):
            best = bert
    return Pretrained(MaskedModel(best, tokenizer), updates, losses)


def _read(tokenizer: WordPiece, lines: Sequence[str], longest: int) -> _Text:
    """The tokens of all lines one after another, and the beginnings of lines that a longest window can follow."""
    found = [tokens for tokens in map(tokenizer.tokens, lines) if tokens]
    starts = np.cumsum([0, *map(len, found)])[:-1]
    tokens = np.concatenate(found) if found else np.zeros(0, np.int64)
    starts = starts[starts <= len(tokens) - longest]
    if not len(starts):
        raise ValueError(f"A text to learn from has at least {longest} tokens, but this one has {len(tokens)}.")
    return _Text(jnp.asarray(tokens, jnp.int32), jnp.asarray(starts, jnp.int32))


def _loss(
    bert: Bert, key: PRNGKeyArray, text: _Text, length: int, batch_size: int, special: tuple[int, ...]
) -> Float[Array, ""]:
    """The mean of -log p over the guessed places of a batch of windows."""
    start, end, mask = special
    key_start, key_place, key_kind, key_word = random.split(key, 4)
    first = text.starts[jax.random.randint(key_start, (batch_size,), 0, len(text.starts))]
    words = text.tokens[first[:, None] + jnp.arange(length - 2)[None]]
    windows = jnp.pad(words, ((0, 0), (1, 1)), constant_values=((0, 0), (start, end)))
    num_guessed = max(1, round(_SHARE_GUESSED * (length - 2)))
    places = 1 + jax.lax.top_k(jax.random.uniform(key_place, words.shape), num_guessed)[1]
    answers = jnp.take_along_axis(windows, places, axis=1)
    kind = jax.random.uniform(key_kind, places.shape)
    others = jax.random.randint(key_word, places.shape, 0, bert.config.vocab_size)
    read = jnp.where(kind < _SHARE_MASKED, mask, jnp.where(kind < _SHARE_MASKED + _SHARE_RANDOM, others, answers))
    windows = windows.at[jnp.arange(batch_size)[:, None], places].set(read)
    log_probs = jax.vmap(bert)(windows, places)
    return -jnp.mean(jnp.take_along_axis(log_probs, answers[..., None], axis=-1))


def _update(
    optimiser: Any,
    special: tuple[int, ...],
    bert: Bert,
    state: Any,
    text: _Text,
    keys: PRNGKeyArray,
    length: int,
    batch_size: int,
) -> tuple[Bert, Any]:
    """One update a key."""
    parameters, rest = eqx.partition(bert, eqx.is_array)

    def one(carry: tuple[Any, Any], key: PRNGKeyArray) -> tuple[tuple[Any, Any], None]:
        parameters, state = carry

        def loss(parameters: Any) -> Float[Array, ""]:
            return _loss(eqx.combine(parameters, rest), key, text, length, batch_size, special)

        steps, state = optimiser.update(jax.grad(loss)(parameters), state, parameters)
        return (eqx.apply_updates(parameters, steps), state), None

    (parameters, state), _ = jax.lax.scan(one, (parameters, state), keys)
    return eqx.combine(parameters, rest), state
