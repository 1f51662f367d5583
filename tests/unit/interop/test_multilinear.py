"""The multilinear form: it is the function at every state, and its gradient has the change of every single site."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.target import evaluate, value_and_changes
from discrax.interop.multilinear import Choice, NotMultilinear, Table, multilinear

LEVELS = 3
SHAPE = (2, 3)
SPACE = dx.Categorical(6, LEVELS)
RNG = np.random.default_rng(0)
MEANS, ROWS, PAIRS = RNG.normal(size=LEVELS), RNG.normal(size=(*SHAPE, LEVELS)), RNG.normal(size=(LEVELS, LEVELS))
EDGES = np.array([[0, 1], [1, 5], [2, 3], [4, 5]])
WEIGHTS = RNG.normal(size=6)


def form(function, e):
    values = jnp.broadcast_to(jnp.arange(LEVELS), (*SHAPE, LEVELS))
    return multilinear(function, Table(values, (Choice(np.arange(6).reshape(SHAPE), e.reshape(*SHAPE, LEVELS)),)))


def ends(z):
    return z.reshape(-1)[EDGES[:, 0]], z.reshape(-1)[EDGES[:, 1]]


LINEAR = {
    "index": lambda z: jnp.sum((jnp.asarray(MEANS)[z] - 0.3) ** 2),
    "index of two arrays": lambda z: jnp.sum(jnp.asarray(MEANS)[z] * jnp.exp(-jnp.asarray(PAIRS)[0][z])),
    "row by row": lambda z: jnp.sum(jnp.take_along_axis(jnp.asarray(ROWS), z[..., None], axis=-1)),
    "index beside an index": lambda z: jnp.sum(jnp.asarray(PAIRS)[jnp.arange(2)[:, None], z]),
    "two variables as an index": lambda z: jnp.sum(jnp.asarray(PAIRS)[ends(z)]),
    "where": lambda z: jnp.sum(jnp.where(z == 1, 0.7, 0.1 * z)),
    "neighbours": lambda z: 0.4 * jnp.sum(z[1:] == z[:-1]) + 0.3 * jnp.sum(z[:, 1:] == z[:, :-1]),
    "a ring": lambda z: jnp.sum((z == jnp.roll(z, 1, axis=1)) * 0.5),
    "edges": lambda z: jnp.sum(jnp.abs(jnp.subtract(*ends(z))) * 0.5),
    "one-hot": lambda z: jnp.einsum("ijk,ijk->", jax.nn.one_hot(z, LEVELS), jnp.asarray(ROWS)),
    "a product of matrices": lambda z: jnp.sum(jnp.asarray(PAIRS)[:2, :2] @ (z * 1.0)),
    "counts": lambda z: 0.1 * (z == 2).sum() + 0.2 * jnp.sum(z),
    "a compiled part": lambda z: jnp.sum(jax.jit(lambda z: jnp.cos(z * 1.0))(z.T)),
}
BENT = {
    "a square of a sum": lambda z: jnp.sum(jnp.asarray(WEIGHTS) * z.reshape(-1)) ** 2,
    "a logarithm of a sum": lambda z: jax.nn.logsumexp(z * 0.5),
}


def both(function, x):
    """Value and log-ratios of the form, and of the function itself."""
    target = dx.core.target.FunctionTarget(lambda e: form(function, e), SPACE)
    theirs = lambda x: value_and_changes(lambda x: function(x.reshape(SHAPE)), SPACE, x)  # noqa: E731
    return jax.jit(jax.vmap(lambda x: (evaluate(target, x), theirs(x))))(x)


STATES = jax.vmap(SPACE.random)(jax.random.split(jax.random.key(0), 20)).astype(jnp.int32)


@pytest.mark.parametrize("name", LINEAR)
def test_value_and_every_change_are_exact_where_changes_add_up(name):
    ours, (values, changes) = both(LINEAR[name], STATES)
    np.testing.assert_allclose(ours.log_prob, values, atol=1e-5)
    np.testing.assert_allclose(ours.ratios, changes, atol=2e-5)
    assert np.abs(changes).max() > 0.05


@pytest.mark.parametrize("name", BENT)
def test_the_value_is_exact_and_changes_are_of_first_order_elsewhere(name):
    ours, (values, changes) = both(BENT[name], STATES)
    np.testing.assert_allclose(ours.log_prob, values, rtol=1e-5)
    assert np.abs(ours.ratios - changes).max() > 1e-2
    assert np.corrcoef(np.ravel(ours.ratios), np.ravel(changes))[0, 1] > 0.5


def test_impossible_levels_are_impossible_and_leave_the_others_alone():
    log_probs = jnp.asarray([0.5, 0.0, -jnp.inf])
    states = jnp.asarray([[0, 1, 0, 1, 0, 1], [0, 1, 0, 2, 0, 1]])
    ours, (values, _) = both(lambda z: jnp.sum(log_probs[z]), states)
    np.testing.assert_array_equal(ours.log_prob, values)
    assert np.isneginf(ours.log_prob[1])
    np.testing.assert_allclose(
        ours.ratios[0, :, :2], jnp.where(states[0, :, None] == 0, log_probs[:2] - 0.5, log_probs[:2])
    )
    assert (ours.ratios[0, :, 2] < -1e8).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda z: jnp.sum(jnp.sort(z, axis=None) * jnp.asarray(WEIGHTS)),
        lambda z: jnp.asarray(MEANS)[jnp.sum(z) % LEVELS],
        lambda z: jax.lax.scan(lambda c, a: ((c + a) % 3, jnp.asarray(MEANS)[c]), 0, z.reshape(-1))[1].sum(),
    ],
)
def test_what_has_no_form_is_told(function):
    with pytest.raises(NotMultilinear, match="of integers"):
        form(function, SPACE.embed(STATES[0]))
