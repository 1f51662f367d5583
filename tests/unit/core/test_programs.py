"""Programs are kept by what they compute: where they run, what they were built from, and what users' code says now."""

import os
import subprocess
import sys
from collections import OrderedDict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import programs
from discrax.core.closures import capture
from discrax.core.programs import compiled, reads_user_code

from ..helpers import OneFlip


def test_compiled_programs_are_told_apart_by_shape_type_and_settings():
    def scaled(x, *, factor):
        return {"out": x * factor, "note": "static"}

    program, seconds = compiled(scaled, (jnp.arange(3.0),), {"factor": 2})
    assert seconds > 0
    out = program((jnp.arange(3.0),))
    assert (out["out"].tolist(), out["note"]) == ([0, 2, 4], "static")
    assert compiled(scaled, (jnp.ones(3),), {"factor": 2}) == (program, 0.0)
    for arguments, chosen in (
        ((jnp.ones(4),), {"factor": 2}),
        ((jnp.ones(3, jnp.int32),), {"factor": 2}),
        ((jnp.ones(3),), {"factor": 3}),
    ):
        other, seconds = compiled(scaled, arguments, chosen)
        assert other is not program
        assert seconds > 0


def test_the_oldest_program_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(programs, "_programs", OrderedDict())
    monkeypatch.setattr(programs, "_MOST_PROGRAMS", 2)

    def add(x, *, number):
        return x + number

    def seconds(number):
        return compiled(add, (jnp.zeros(()),), {"number": number})[1]

    assert seconds(1) > 0
    assert seconds(2) > 0
    assert seconds(1) == 0  # used again, so younger than 2
    assert seconds(3) > 0
    assert seconds(1) == 0
    assert seconds(2) > 0


WORLD = {"slope": 6.0, "array": np.array([6.0, 0.0, 0.0], np.float32)}


def by_number(e):
    return e[0] * WORLD["slope"]


def by_array(e):
    return jnp.dot(e, WORLD["array"])


def share_of_ones(target, **settings) -> float:
    result = dx.sample(
        jax.random.key(0), target, OneFlip(), num_chains=8, num_warmup=20, num_samples=200, adaptation=None, **settings
    )
    return float(result.mean()[0])


@pytest.fixture
def world():
    """A number and an array that functions read, to be changed under them."""
    WORLD["slope"], WORLD["array"][0] = 6.0, 6.0
    return WORLD


@pytest.mark.parametrize("function", [by_number, by_array])
def test_a_new_target_means_what_its_function_means_now_and_an_old_one_what_it_meant_then(function, world):
    space = dx.Binary(3)
    before = dx.Target.from_log_prob(function, space)
    assert share_of_ones(before) > 0.9
    world["slope"] = -6.0
    world["array"][0] = -6.0
    assert share_of_ones(dx.Target.from_log_prob(function, space)) < 0.1
    assert share_of_ones(before) > 0.9


def test_a_function_that_changed_before_the_first_draw_is_as_it_was_when_the_target_was_built(world):
    target = dx.Target.from_log_prob(by_number, dx.Binary(3))
    world["slope"] = -6.0
    assert share_of_ones(target) > 0.9


class Tilted(dx.Target):
    """A user's class whose method reads a global."""

    space: dx.Space

    def log_prob(self, e):
        return e[0] * WORLD["slope"]


def test_a_class_of_the_users_is_read_anew_by_every_run(world):
    target = Tilted(dx.Binary(3))
    assert share_of_ones(target) > 0.9
    world["slope"] = -6.0
    assert share_of_ones(target) < 0.1


def test_what_is_kept_of_a_draw_is_read_anew_by_every_run(world):
    def scaled(x):
        return x[0] * WORLD["slope"]

    target = dx.targets.Bernoulli(np.full(3, 0.999))

    def kept():
        settings = {"num_chains": 2, "num_warmup": 5, "num_samples": 20, "adaptation": None, "keep": scaled}
        return dx.sample(jax.random.key(0), target, OneFlip(), **settings).kept[:, -1]

    assert (kept() == 6).all()
    world["slope"] = -2.0
    assert (kept() == -2).all()


def test_expectations_are_of_the_functions_as_they_were(world):
    def psi(e, xi):
        return e[0] * WORLD["slope"] + 0 * xi

    target = dx.targets.Expectation(psi, lambda key: jax.random.normal(key) * WORLD["slope"], dx.Binary(2))
    e, step = jnp.ones(2), jnp.zeros((), jnp.int32)
    xi = target.draw(jax.random.key(1), step)
    world["slope"] = 0.0
    assert float(target.psi(e, xi)) == 6
    assert float(target.draw(jax.random.key(1), step)) == float(xi) != 0


def test_the_same_code_is_compiled_once(monkeypatch, world):
    """A second target of the same function is traced, and finds its program by what it computes."""
    target = dx.Target.from_log_prob(by_number, dx.Binary(3))
    share_of_ones(target)
    compiled_anew = []
    monkeypatch.setattr(programs, "_executables", _Spy(programs._executables, compiled_anew.append))
    share_of_ones(dx.Target.from_log_prob(by_number, dx.Binary(3)))
    assert not compiled_anew
    world["slope"] = 5.0
    share_of_ones(dx.Target.from_log_prob(by_number, dx.Binary(3)))
    assert compiled_anew


class _Spy(OrderedDict):
    def __init__(self, known, tell):
        super().__init__(known)
        self.tell = tell

    def __setitem__(self, code, program):
        if hasattr(self, "tell"):
            self.tell(code)
        super().__setitem__(code, program)


def test_arguments_that_are_not_used_keep_their_places():
    """Two programs whose text would be the same, had XLA dropped what they do not use."""
    first = compiled(lambda a, b: a + 1, (jnp.zeros(2), jnp.ones(2)), {})[0]
    second = compiled(lambda a, b: b + 1, (jnp.zeros(2), jnp.ones(2)), {})[0]
    assert first((jnp.zeros(2), jnp.ones(2))).tolist() == [1, 1]
    assert second((jnp.zeros(2), jnp.ones(2))).tolist() == [2, 2]


def test_a_module_is_not_captured_and_keeps_its_parameters():
    linear = eqx.nn.Linear(3, "scalar", key=jax.random.key(0))
    assert capture(linear, jnp.zeros(3)) is linear
    target = dx.Target.from_log_prob(linear, dx.Binary(3))
    assert len(jax.tree.leaves(eqx.filter(target, eqx.is_inexact_array))) == 2


def test_a_captured_function_says_so_where_shapes_or_precision_have_changed():
    target = dx.Target.from_log_prob(by_number, dx.Binary(3))
    with pytest.raises(ValueError, match=r"by_number was traced for arguments float32\[3\].* but got float32\[4\]"):
        target.log_prob(jnp.zeros(4))


def test_user_code_is_read_once_in_a_verb_and_the_verbs_it_calls():
    with reads_user_code():
        outer = programs._reading.get()
        with reads_user_code():
            assert programs._reading.get() == outer != 0
    with reads_user_code():
        assert programs._reading.get() != outer


def test_a_program_runs_where_its_arrays_are():
    """With two devices: made for the first, then asked for on the second, by default and by where an array was put."""
    code = """
import jax, jax.numpy as jnp
from discrax.core.programs import compiled
first, second = jax.devices()
def double(x): return 2 * x
def where(x): return next(iter(compiled(double, (x,), {})[0]((x,)).devices()))
assert where(jnp.ones(3)) == first
assert where(jax.device_put(jnp.ones(3), second)) == second
with jax.default_device(second):
    assert where(jnp.ones(3)) == second
assert where(jnp.ones(3)) == first
"""
    flags = {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | flags, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
