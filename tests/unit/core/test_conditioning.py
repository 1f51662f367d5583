"""The law of the sites that are not known, against enumeration."""

import jax
import numpy as np
import pytest

import discrax as dx

KNOWN = np.array([True, False, False, True])
CODES = np.array([1, 9, -7, 0])  # what stands where nothing is known means nothing


def make(space) -> dx.Target:
    weights = jax.random.normal(jax.random.key(1), (4, 4))
    return dx.Target.from_log_prob(lambda e: e.reshape(4, -1)[:, -1] @ weights @ e.reshape(4, -1)[:, 0], space)


SPACES = [
    dx.Binary(4),
    dx.Spin(4),
    dx.Ordinal(4, [0.0, 0.5, 2.0]),
    dx.Categorical(4, 3),
    dx.Categorical(4, (2, 3, 4, 2)),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_the_law_is_the_conditional_one(space):
    target = make(space)
    states, law = target.space.enumerate(), dx.exact.law(target)
    agree = (states[:, KNOWN] == CODES[KNOWN]).all(axis=1)
    given = target.condition_on(KNOWN, CODES)
    np.testing.assert_array_equal(given.space.enumerate(), states[agree])
    np.testing.assert_allclose(dx.exact.law(given), law[agree] / law[agree].sum(), rtol=2e-5)
    assert target.space.frozen is None  # as it was


def test_what_is_known_adds_up_and_must_not_contradict_itself():
    target = make(dx.Binary(4)).condition_on(KNOWN, CODES)
    more = target.condition_on(np.array([False, True, False, True]), np.array([0, 1, 0, 0]))
    np.testing.assert_array_equal(more.space.enumerate(), [[1, 1, 0, 0], [1, 1, 1, 0]])
    with pytest.raises(ValueError, match=r"Site \[3\] is frozen to code 0 already"):
        target.condition_on(np.arange(4) == 3, np.ones(4, int))


def test_a_target_within_another_is_conditioned_with_it():
    tempered = dx.Tempered(make(dx.Spin(4)), 0.5).condition_on(KNOWN, CODES)
    assert int(tempered.space.num_free) == 2


@pytest.mark.parametrize(
    ("known", "codes", "sentence"),
    [
        (np.ones(4, bool), np.zeros(4, int), "All sites are frozen"),
        (KNOWN[:2], CODES, "known must be a boolean mask of shape"),
        (KNOWN, np.full(4, 2), "codes in 0..1"),
        (KNOWN, np.zeros(4), "codes must hold integer codes"),
        (KNOWN, ["x"] * 4, "codes must hold integer codes"),
        (np.arange(4), CODES, "boolean mask"),
    ],
)
def test_bad_input_is_a_sentence(known, codes, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(dx.Binary(4)).condition_on(known, codes)


def test_bounded_totals_are_refused():
    with pytest.raises(ValueError, match="bounds totals"):
        make(dx.Binary(4, exactly=2)).condition_on(KNOWN, CODES)


def test_a_space_that_is_made_anew_is_refused():
    class Anew(dx.Target):
        @property
        def space(self):
            return dx.Binary(4)

        def log_prob(self, e):
            return e.sum()

    with pytest.raises(TypeError, match="makes its space anew"):
        Anew().condition_on(KNOWN, CODES)
