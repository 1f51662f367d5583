"""Energies written in Flax, or as a function of parameters: their laws, and that they learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import discrax as dx
from discrax.interop.flax import from_flax, to_flax

SPACE = dx.Binary(6)
E = jnp.zeros(6)


class Linen(linen.Module):
    width: int = 8

    @linen.compact
    def __call__(self, e):
        return linen.Dense(1)(jnp.tanh(linen.Dense(self.width)(e)))


class Nnx(nnx.Module):
    def __init__(self, rngs):
        self.first, self.second = nnx.Linear(6, 8, rngs=rngs), nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, e):
        return self.second(jnp.tanh(self.first(e)))


def plain(params, e):
    return jnp.tanh(e @ params["in"]) @ params["out"]


def make(kind):
    if kind == "linen":
        return from_flax(Linen(), SPACE, Linen().init(jax.random.key(0), E))
    if kind == "nnx":
        return from_flax(Nnx(nnx.Rngs(0)), SPACE)
    generator = np.random.default_rng(0)
    params = {"in": generator.normal(size=(6, 8)).astype(np.float32), "out": np.ones(8, np.float32) / 4}
    return dx.Target.from_apply(plain, params, SPACE)


def cost(target, data):
    """The mean negative log-likelihood, by enumeration."""
    return -np.log(dx.exact.law(target)[SPACE.index(data)]).mean()


@pytest.mark.parametrize("kind", ["linen", "nnx", "plain"])
def test_it_learns_what_it_is_shown(kind):
    generator = np.random.default_rng(1)
    p = np.where(generator.random((2_000, 1)) < 0.5, 0.9, 0.1)  # two clusters: no product law has them
    data = (generator.random((2_000, 6)) < p).astype(np.int8)
    target = make(kind)
    settings = {"num_updates": 400, "num_steps": 3, "buffer_size": 200, "learning_rate": 1e-2, "ema": 0.98}
    trained = dx.learn.pcd(jax.random.key(1), target, data, progress=False, **settings)
    counts = np.bincount(SPACE.index(data), minlength=64) / len(data)
    entropy = -np.sum(counts[counts > 0] * np.log(counts[counts > 0]))
    assert cost(target, data) > entropy + 0.8
    assert cost(trained.ema, data) < entropy + 0.4


def test_what_was_learnt_comes_back():
    linen_target, nnx_target = make("linen"), make("nnx")
    e = SPACE.embed(jnp.array([1, 0, 1, 1, 0, 0], jnp.int8))
    assert Linen().apply(to_flax(linen_target), e)[0] == linen_target.log_prob(e)
    assert to_flax(nnx_target)(e)[0] == nnx_target.log_prob(e)
    twice = jax.tree.map(lambda leaf: 2 * leaf, linen_target)
    assert Linen().apply(to_flax(twice), e)[0] == twice.log_prob(e) != linen_target.log_prob(e)


def test_equal_modules_share_their_programs():
    first, again, wider = (from_flax(Linen(n), SPACE, Linen(n).init(jax.random.key(0), E)) for n in (8, 8, 9))
    assert jax.tree.structure(first) == jax.tree.structure(again) != jax.tree.structure(wider)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: from_flax(Linen(), SPACE), "A linen module needs its variables"),
        (lambda: from_flax(Nnx(nnx.Rngs(0)), SPACE, {}), "An nnx module has its own variables"),
        (lambda: from_flax(abs, SPACE), "model must be a module of flax.linen or flax.nnx, but got"),
        (lambda: to_flax(dx.targets.Bernoulli(np.full(3, 0.5))), "to_flax takes a target that from_flax made"),
        (lambda: dx.Target.from_apply(lambda params, e: e, {}, SPACE), "log_prob must"),
    ],
)
def test_mistakes_are_sentences(call, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()
