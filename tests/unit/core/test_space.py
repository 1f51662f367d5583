"""Spaces against their definitions, for random shapes, levels and frozen sites."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discrax import Binary, Categorical, Ordinal, Spin
from discrax.core.sites import code_dtype

from ..helpers import P_VALUE, brute_force_ratios, chi_square_p_value, one_hot

# Every new shape is a new compilation, so shapes come from a short list and examples are few.
SHAPES = [(1,), (4,), (2, 2), (2, 1, 2)]
few = settings(deadline=None, derandomize=True, max_examples=9)


class Spec(NamedTuple):
    """A space in plain numbers. It is built in the test: what hypothesis draws must not call the type checker."""

    kind: str
    num_levels: int
    mask: np.ndarray  # frozen sites
    codes: np.ndarray  # of the frozen sites
    values: np.ndarray | None  # of the codes; None for one-hot


@st.composite
def specs(draw) -> Spec:
    kind = draw(st.sampled_from(["binary", "spin", "ordinal", "categorical"]))
    shape = draw(st.sampled_from(SHAPES))
    num_levels = draw(st.integers(2, 4)) if kind in ("ordinal", "categorical") else 2
    n = int(np.prod(shape))
    mask = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool).reshape(shape)
    mask.reshape(-1)[draw(st.integers(0, n - 1))] = False  # one site is free
    codes = np.array(draw(st.lists(st.integers(0, num_levels - 1), min_size=n, max_size=n))).reshape(shape)
    gaps = draw(st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=num_levels, max_size=num_levels))
    values = {"binary": np.array([0.0, 1.0]), "spin": np.array([-1.0, 1.0]), "ordinal": np.cumsum(gaps) - 2}
    return Spec(kind, num_levels, mask, codes, values.get(kind))


class Case:
    def __init__(self, spec: Spec):
        self.mask, self.codes, self.values = spec.mask, spec.codes, spec.values
        shape = spec.mask.shape
        frozen = {"frozen": spec.mask, "frozen_codes": spec.codes} if spec.mask.any() else {}
        if spec.kind == "binary":
            self.space = Binary(shape, **frozen)
        elif spec.kind == "spin":
            self.space = Spin(shape, **frozen)
        elif spec.kind == "ordinal":
            self.space = Ordinal(shape, spec.values, **frozen)
        else:
            self.space = Categorical(shape, spec.num_levels, **frozen)

    def embed(self, x) -> np.ndarray:
        return one_hot(x, self.space.num_levels) if self.values is None else self.values[np.asarray(x)]

    def some_states(self, seed: int, num: int = 8) -> np.ndarray:
        states = self.space.enumerate()
        return states[np.random.default_rng(seed).integers(0, len(states), num)]


@few
@given(specs())
def test_enumerate_lists_every_state_once_and_index_finds_it(spec):
    case = Case(spec)
    states = case.space.enumerate()
    num_free = int((~case.mask).sum())
    assert states.shape == (case.space.num_levels**num_free, *case.space.shape)
    assert len(np.unique(states, axis=0)) == len(states)
    assert states.dtype == case.space.dtype
    assert (states[:, case.mask] == case.codes[case.mask]).all()
    np.testing.assert_array_equal(case.space.index(jnp.asarray(states)), np.arange(len(states)))
    assert case.space.log_num_states() == pytest.approx(np.log(len(states)))
    case.space.check(states)


@few
@given(specs(), st.integers(0, 2**31 - 1))
def test_random_states_are_states_and_keep_frozen_codes(spec, seed):
    """With 256 states, a free site misses one of at most 4 levels with probability below 4 * (3/4)^256 = 4e-32."""
    case = Case(spec)
    keys = jax.random.split(jax.random.key(seed), 256)
    x = np.asarray(jax.jit(jax.vmap(case.space.random))(keys))
    assert x.dtype == case.space.dtype
    case.space.check(x)  # inside the space, frozen codes in place
    free = x[:, ~case.mask]
    assert all(len(np.unique(site)) == case.space.num_levels for site in free.T)


@few
@given(specs(), st.integers(0, 1000))
def test_embedding_and_distance_follow_their_definitions(spec, seed):
    case = Case(spec)
    x, y = case.some_states(seed), case.some_states(seed + 1)
    embedded = case.space.embed(jnp.asarray(x))
    assert embedded.dtype == jnp.float32
    np.testing.assert_allclose(embedded, case.embed(x), rtol=1e-6)
    if isinstance(case.space, Ordinal):
        expected = np.abs(case.embed(x[0]) - case.embed(y[0])).sum()
    else:
        expected = (x[0] != y[0]).sum()
    assert float(case.space.distance(jnp.asarray(x[0]), jnp.asarray(y[0]))) == pytest.approx(expected)


@few
@given(specs(), st.integers(0, 1000))
def test_gradient_ratios_are_exact_for_linear_functions(spec, seed):
    case = Case(spec)
    x = case.some_states(seed, 1)[0]
    slope = np.random.default_rng(seed).normal(size=case.embed(x).shape)
    expected = brute_force_ratios(lambda y: (slope * case.embed(y)).sum(), x, case.space.num_levels)
    ratios = case.space.ratios_from_gradient(jnp.asarray(x), jnp.asarray(slope, jnp.float32))
    np.testing.assert_allclose(ratios, expected, atol=1e-5)


@few
@given(specs(), st.integers(0, 1000))
def test_squared_moves_are_squared_distances_of_embeddings(spec, seed):
    case = Case(spec)
    x = case.some_states(seed, 1)[0]
    q = case.space.num_levels
    here = case.embed(x)[..., None, :] if case.values is None else case.embed(x)[..., None]
    there = case.embed(np.arange(q)) if case.values is not None else np.eye(q)
    squares = (there - here) ** 2 if case.values is not None else ((there - here) ** 2).sum(-1)
    moves_away = one_hot(x, q) == 0
    ours = np.asarray(case.space.squared_moves(jnp.asarray(x)), np.float64)
    if q == 2:
        np.testing.assert_allclose(np.broadcast_to(ours, x.shape), squares[moves_away].reshape(x.shape), rtol=1e-5)
    else:
        np.testing.assert_allclose(np.broadcast_to(ours, squares.shape)[moves_away], squares[moves_away], rtol=1e-5)
    every_pair = [
        np.sum((case.embed(np.array(a)) - case.embed(np.array(b))) ** 2) for a in range(q) for b in range(q) if a != b
    ]
    assert float(case.space.smallest_squared_move) == pytest.approx(min(every_pair), rel=1e-5)


@few
@given(specs())
def test_free_sites_are_found_by_their_number(spec):
    case = Case(spec)
    free = np.flatnonzero(~case.mask.reshape(-1))
    assert int(case.space.num_free) == len(free)
    np.testing.assert_array_equal(case.space.free_site(jnp.arange(len(free))), free)


@pytest.mark.parametrize(
    ("num_levels", "dtype"),
    [
        (2, "int8"),
        (128, "int8"),
        (129, "uint8"),
        (256, "uint8"),
        (257, "int16"),
        (2**15, "int16"),
        (2**15 + 1, "uint16"),
        (2**16, "uint16"),
        (2**16 + 1, "int32"),
        (2**31, "int32"),
    ],
)
def test_dtype_is_the_smallest_that_holds_the_codes(num_levels, dtype):
    assert code_dtype(num_levels) == np.dtype(dtype)
    smaller = [
        np.dtype(t) for t in ("int8", "uint8", "int16", "uint16") if np.dtype(t).itemsize < np.dtype(dtype).itemsize
    ]
    assert all(np.iinfo(t).max < num_levels - 1 for t in smaller)


def test_too_many_levels_is_an_error():
    with pytest.raises(ValueError, match=r"at most 2\^31 levels, but num_levels is 2147483649"):
        code_dtype(2**31 + 1)


@pytest.mark.parametrize("num_levels", [2, 3, 200], ids=lambda q: f"{q}-levels")
def test_random_states_are_uniform(num_levels):
    """Chi-square on 40,000 independent sites, p = 1e-6; 200 levels also checks codes above the int8 range."""
    space = Categorical(40_000, num_levels)
    x = np.asarray(space.random(jax.random.key(1)))
    counts = np.bincount(x, minlength=num_levels)
    assert chi_square_p_value(counts, np.full(num_levels, 1 / num_levels)) > P_VALUE


@pytest.mark.parametrize(
    "key", [jax.random.key(3), jax.random.PRNGKey(3), jax.random.key(3, impl="rbg")], ids=["typed", "raw", "rbg"]
)
def test_random_takes_keys_of_every_kind(key):
    x = np.asarray(Binary(64).random(key))
    assert 0 < x.sum() < 64


def test_enumeration_has_a_limit():
    with pytest.raises(ValueError, match=r"at most 1,000 states, but this space has 2\^10"):
        Binary(10).enumerate(limit=1000)
    assert len(Binary(10).enumerate(limit=1024)) == 1024
    mask = np.arange(40) > 2
    assert len(Binary(40, frozen=mask).enumerate()) == 8  # only free sites count


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(3, int), r"Expected a state of shape \(2, 2\), but got an array of shape \(3,\)"),
        (np.zeros((2, 3), int), r"Expected a state of shape \(2, 2\), but got an array of shape \(2, 3\)"),
        (np.zeros((2, 2)), r"integer codes 0..2, but got an array of float64"),
        (np.zeros((2, 2), bool), r"integer codes 0..2, but got an array of bool"),
        (np.full((2, 2), 3), r"Codes must lie in 0..2, but the state holds 3"),
        (np.array([[1, 0], [0, -1]]), r"Codes must lie in 0..2, but the state holds -1"),
        (np.array([[0, 0], [0, 0]]), r"1 frozen sites of the state differ from the space's frozen codes"),
        (np.array([[[1, 0], [0, 0]], [[2, 0], [0, 0]]]), r"1 frozen sites of the state differ"),
    ],
    ids=["rank", "shape", "float", "bool", "above", "below", "frozen", "frozen-in-a-batch"],
)
def test_check_says_what_is_wrong(x, message):
    space = Categorical((2, 2), 3, frozen=np.array([[True, False], [False, False]]), frozen_codes=np.ones((2, 2), int))
    with pytest.raises(ValueError, match=message):
        space.check(x)


def test_check_takes_states_and_batches():
    space = Categorical((2, 2), 3)
    space.check(np.full((2, 2), 2))
    space.check(np.zeros((5, 2, 2), np.uint8))
    space.check(jnp.zeros((4, 5, 2, 2), jnp.int8))


@pytest.mark.parametrize("space", [Binary(3), Spin(3), Ordinal(3, [0.0, 1.0, 3.0]), Categorical(3, 4)])
def test_every_field_is_set(space):
    """A field that is left out reads as its default, but makes another structure: another program, another target."""
    assert {field.name for field in dataclasses.fields(space)} <= set(vars(space))
