"""Kernels made of others: by names, tuned one by one, with the statistics of each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.samplers.composed import Cycle, Mixture
from discrax.samplers.registry import name_of
from discrax.sampling.together import sample_together

S = dx.samplers
TARGET = dx.targets.Ising.lattice((6, 6), 0.3, 0.1)
RUN = {"num_chains": 20, "num_warmup": 300, "num_samples": 100, "progress": False}


def test_names_are_parsed():
    kernel = S.get_sampler("cycle( swendsen_wang, mixture(dmala,gibbs), global_flip )").build()
    assert isinstance(kernel, Cycle)
    assert isinstance(kernel.parts[1], Mixture)
    assert name_of(kernel) == "cycle(swendsen_wang,mixture(dmala,gibbs),global_flip)"
    assert S.get_sampler("cycle(rwm,gwg_ordinal)").spaces == (dx.Ordinal,)
    assert S.get_sampler("mixture(swendsen_wang,pas)").spaces == (dx.Binary, dx.Spin, dx.Categorical)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: S.get_sampler("cycle(swendsen_wang,dmalla)"), ValueError, "dmala"),
        (lambda: S.get_sampler("cycle()"), ValueError, "Unknown sampler|unknown|sampler"),
        (lambda: S.cycle("gibbs"), ValueError, "at least two of them, but got 1"),
        (lambda: S.cycle("gibbs", 3), TypeError, "a name or a kernel, but got 3"),
        (lambda: S.cycle("gibbs", S.pas), TypeError, "a name or a kernel"),
        (lambda: S.mixture("gibbs", "sgdld"), ValueError, "sees its target through mini-batches"),
        (lambda: S.mixture("gibbs", "rwm", weights=[1.0]), ValueError, "weights must be 2 positive numbers"),
        (lambda: S.mixture("gibbs", "rwm", weights=[1.0, 0.0]), ValueError, "leave a kernel out"),
        (lambda: S.mixture("gibbs", "rwm", weights=[1.0, np.inf]), ValueError, "weights"),
        (lambda: S.on_sites("gibbs", np.zeros((6, 6), bool)), ValueError, "without a True"),
        (lambda: S.on_sites("gibbs", [0, 1]), ValueError, "boolean mask"),
        (lambda: S.build_kernel(S.on_sites("gibbs", [True, False]), TARGET), ValueError, r"shape \(6, 6\)"),
        (lambda: S.build_kernel("cycle(gibbs,gwg_ordinal)", TARGET), ValueError, "OrdinalGWG takes Ordinal spaces"),
        (lambda: dx.adaptation.OneByOne([None]), TypeError, "one rule or None for each part"),
        (
            lambda: dx.sample(
                jax.random.key(0), TARGET, "cycle(rwm,gibbs)", adaptation=dx.adaptation.OneByOne([dx.AcceptanceRate()])
            ),
            ValueError,
            "has 2 parts and there are 1 rules",
        ),
    ],
)
def test_what_cannot_take_turns_says_why(build, error, words, as_a_user):
    with pytest.raises(error, match=words):
        build()


def test_each_part_is_tuned_to_its_own_rate_and_reported():
    result = dx.sample(jax.random.key(0), TARGET, "cycle(swendsen_wang,pas,rwm)", **RUN)
    rates = {name: result.stats[f"accept_prob[{i}]"].mean() for i, name in enumerate(("swendsen_wang", "pas", "rwm"))}
    assert rates["swendsen_wang"] == 1
    assert abs(rates["pas"] - 0.574) < 0.08
    assert abs(rates["rwm"] - 0.234) < 0.06
    assert abs(result.stats["accept_prob"].mean() - np.mean(list(rates.values()))) < 1e-3
    assert result.stats["jump[0]"].mean() > result.stats["jump[2]"].mean()
    assert "PAS: path_length" in str(result.report)
    assert "RandomWalk: path_length" in str(result.report)
    assert "SwendsenWang" not in str(result.report)  # it has nothing to tune


def test_a_mixture_draws_its_kernels_with_their_weights():
    """Which was drawn is seen by its jump."""
    kernel = S.mixture("global_flip", S.on_sites("gibbs", np.arange(36).reshape(6, 6) == 0), weights=[1, 3])
    free = dx.targets.Ising.lattice((6, 6), 0.0)  # every flip is accepted
    result = dx.sample(jax.random.key(0), free, kernel, **RUN | {"num_warmup": 0})
    assert abs((result.stats["jump"] == 36).mean() - 0.25) < 0.04


def test_other_sites_stay():
    mask = np.arange(36).reshape(6, 6) % 3 == 0
    for inner in ("gibbs", "pas", S.dmala(3.0), "swendsen_wang", S.gibbs("chromatic")):
        kernel = S.on_sites(inner, mask)
        result = dx.sample(jax.random.key(0), TARGET, kernel, num_warmup=0, num_samples=30, adaptation=None)
        moved = (np.asarray(result.draws) != np.asarray(result.draws)[:, :1]).any(axis=(0, 1))
        assert not moved[~mask].any()
        assert moved[mask].any()


@pytest.mark.slow
def test_a_run_in_a_folder_goes_on_and_is_read_again(tmp_path):
    more = RUN | {"num_chains": 4, "num_warmup": 100}
    whole = dx.sample(jax.random.key(0), TARGET, "cycle(swendsen_wang,pas)", **more)
    dx.sample(
        jax.random.key(0), TARGET, "cycle(swendsen_wang,pas)", folder=tmp_path / "run", **more | {"num_samples": 40}
    )
    dx.sample(jax.random.key(0), TARGET, "cycle(swendsen_wang,pas)", folder=tmp_path / "run", **more)
    found = dx.load(tmp_path / "run")
    np.testing.assert_array_equal(np.asarray(found.draws), whole.draws)
    np.testing.assert_allclose(np.asarray(found.stats["accept_prob[1]"]), whole.stats["accept_prob[1]"], rtol=1e-4)
    assert name_of(found.kernel) == "cycle(swendsen_wang,pas)"
    again = dx.load(whole.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(again.stats["jump[0]"], whole.stats["jump[0]"])


@pytest.mark.slow
def test_runs_that_share_a_program_have_their_own_scales():
    targets = [dx.targets.Ising.lattice((6, 6), 0.3, field) for field in (0.1, 1.0)]
    keys = list(jax.random.split(jax.random.key(0), 2))
    settings = {name: RUN[name] for name in ("num_chains", "num_warmup", "num_samples")}
    both = sample_together(keys, targets, ["cycle(pas,gibbs)"] * 2, **settings)
    lengths = [float(result.kernel.parts[0].path_length) for result in both]
    assert lengths[0] != lengths[1]
    assert all(abs(result.stats["accept_prob[0]"].mean() - 0.574) < 0.1 for result in both)


def test_papers_of_all_parts_are_cited():
    assert {"swendsen1987", "zhang2022"} <= set(S.papers.papers_of(S.cycle("swendsen_wang", "dmala")))


def test_a_step_of_a_cycle_is_a_step_of_each():
    kernel, x = S.cycle(S.rwm(1.0), S.gibbs()), jnp.zeros((6, 6), jnp.int8)
    state = kernel.init(TARGET, x)
    key = jax.random.key(3)
    after, _ = kernel.step(key, TARGET, state)
    keys = dx.core.random.split(key, 2)
    middle, _ = S.rwm(1.0).step(keys[0], TARGET, S.rwm(1.0).init(TARGET, x))
    end, _ = S.gibbs().step(keys[1], TARGET, S.gibbs().init(TARGET, middle.x))
    np.testing.assert_array_equal(after.x, end.x)
