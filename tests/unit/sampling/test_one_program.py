"""A short run compiles one program of steps: it tunes and draws, whatever is kept of the draws.

That its draws are those of two programs, bit for bit, is in `conformance/test_chunks.py`.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import programs
from discrax.core.driver import run_chunk

TARGET = dx.targets.Ising.lattice((3, 4), coupling=0.2, field=0.1)


@pytest.fixture
def compiled_chunks(monkeypatch):
    """The lengths of chunks for which a program was made in this test."""
    made, make = [], programs._compile

    def spy(function, arrays, static, settings, axes, place):
        if function is run_chunk:
            made.append(settings["num_draws"])
        return make(function, arrays, static, settings, axes, place)

    monkeypatch.setattr(programs, "_compile", spy)
    programs._programs.clear()
    return made


def sample(sampler="dmala", num_warmup=100, num_samples=150, **settings):
    key = jax.random.key(0)
    return dx.sample(
        key, TARGET, sampler, num_chains=3, num_warmup=num_warmup, num_samples=num_samples, progress=False, **settings
    )


@pytest.mark.parametrize("sampler", ["dmala", "pas"])
def test_one_program_tunes_and_draws(compiled_chunks, sampler):
    result = sample(sampler)
    assert compiled_chunks == [50]
    assert result.draws.shape == (3, 150, 3, 4)
    assert result.warmup_stats["lp"].shape == (3, 100)
    assert result.warmup_draws is None


@pytest.mark.parametrize(
    ("settings", "chunks"),
    [
        ({"num_samples": 60}, [100, 60]),  # no common length that is worth a chunk
        ({"thinning": 2}, [100, 150]),
        ({"chunk_size": 25}, [25, 25]),
        ({"keep": "moments"}, [100, 150]),
        ({"num_warmup": 0}, [150]),
        ({"adaptation": None, "sampler": dx.samplers.dmala(2.0)}, [100, 150]),
    ],
)
def test_two_programs_where_one_would_not_do(compiled_chunks, settings, chunks):
    sample(**settings)
    assert compiled_chunks == chunks


def test_the_kernel_is_frozen_while_it_draws():
    result = sample()
    again = dx.sample(
        jax.random.key(0), TARGET, result.kernel, num_chains=3, num_warmup=0, num_samples=10, progress=False
    )
    assert again.kernel.step_size == result.kernel.step_size == pytest.approx(result.reports[-1].value)


def test_another_function_to_keep_is_not_another_program_of_steps(compiled_chunks):
    first = sample(keep=lambda x: x.sum())
    second = sample(keep=lambda x: {"corner": x[0, 0], "row": x[1].astype(jnp.float32)})
    assert compiled_chunks == [50]
    draws = sample().draws
    np.testing.assert_array_equal(first.kept, draws.sum(axis=(2, 3)))
    np.testing.assert_array_equal(second.kept["corner"], draws[:, :, 0, 0])
    np.testing.assert_array_equal(second.kept["row"], draws[:, :, 1].astype(np.float32))


def test_the_program_of_the_pilot_draws(compiled_chunks):
    result = sample(dx.auto(candidates=["dmala", "pas"]))
    assert compiled_chunks == [50, 50]  # one a candidate, and none after the choice
    assert result.reports[0].chosen in ("dmala", "pas")


def test_what_cannot_win_is_not_compiled(compiled_chunks, monkeypatch):
    """A step of Gibbs sampling changes one site, and none is much faster than one that changes many."""
    monkeypatch.setattr(sys.modules["discrax.sampling.auto"], "num_cores", lambda: 1)
    target = dx.targets.Ising.lattice((20, 20), coupling=0.1)
    result = dx.sample(
        jax.random.key(0), target, dx.auto(candidates=["dmala", "gibbs"]), num_warmup=50, num_samples=50, progress=False
    )
    assert result.reports[0].left_out == ("gibbs",)
    assert compiled_chunks == [50]
