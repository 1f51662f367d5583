import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import targets
from discrax.core.target import log_prob
from discrax.exact import law
from discrax.learn.mixing import mixing_curves, snapshots
from discrax.samplers import dmala, gibbs

ISING = targets.Ising.lattice((3, 3), 0.3, np.linspace(-1, 1, 9).reshape(3, 3))
SETTINGS = {"num_steps": 40, "every": 4, "progress": False}


@pytest.fixture(scope="module")
def curves():
    samplers = {"Langevin": dmala(step_size=1.0), "Gibbs": gibbs()}
    start = np.ones((3, 3), np.int8)
    return mixing_curves(jax.random.key(0), ISING, samplers, init=start, num_chains=300, num_warmup=0, **SETTINGS)


def test_curves_begin_at_the_common_start_and_end_at_the_target(curves):
    assert list(curves) == ["Langevin", "Gibbs"]
    first = float(log_prob(ISING, jnp.ones((3, 3), jnp.int8)))
    states, p = jnp.asarray(ISING.space.enumerate()), law(ISING)
    exact = float(p @ np.asarray(jax.vmap(lambda x: log_prob(ISING, x))(states), np.float64))
    assert abs(exact - first) > 1  # else there would be nothing to see
    for curve in curves.values():
        assert curve.steps.tolist() == list(range(0, 41, 4))
        assert curve.mean[0] == pytest.approx(first, rel=1e-5)
        assert curve.error[0] == pytest.approx(0, abs=1e-6)
        assert abs(curve.mean[-1] - exact) < 4 * curve.error[-1]
    # One site a step is slower than all at once.
    assert abs(curves["Langevin"].mean[2] - exact) < abs(curves["Gibbs"].mean[2] - exact)


@pytest.mark.slow
def test_a_kernel_is_tuned_before_the_run():
    start = np.ones((3, 3), np.int8)
    settings = {"init": start, "num_chains": 100, "num_warmup": 100, **SETTINGS}
    curve = mixing_curves(jax.random.key(0), ISING, {"Langevin": dmala(step_size=0.1)}, **settings)["Langevin"]
    assert curve.acceptance == pytest.approx(0.574, abs=0.1)  # with this step size it would be near 1
    assert curve.mean[0] == pytest.approx(float(log_prob(ISING, jnp.asarray(start))), rel=1e-5)


def test_snapshots():
    starts = np.zeros((20, 3, 3), np.int8)
    shots = snapshots(jax.random.key(1), ISING, gibbs(), num_chains=20, num_warmup=0, init=starts, **SETTINGS)
    assert shots.shape == (10, 20, 3, 3)
    sites_changed = (shots[0] != 0).sum(axis=(1, 2))
    assert 0 < sites_changed.max() <= 4  # four steps of one site each
    assert (shots[1:] != shots[:-1]).any(axis=(1, 2, 3)).all()


def test_mistakes_are_sentences():
    start = np.zeros((3, 3), np.int8)
    with pytest.raises(ValueError, match="at least one sampler"):
        mixing_curves(jax.random.key(0), ISING, {}, init=start, **SETTINGS)
    with pytest.raises(ValueError, match="two chains"):
        mixing_curves(jax.random.key(0), ISING, {"g": "gibbs"}, init=start, num_chains=1, **SETTINGS)
    with pytest.raises(ValueError, match=r"shape \(3, 3\), but got an array of shape \(4,\)"):
        mixing_curves(jax.random.key(0), ISING, {"g": "gibbs"}, init=np.zeros(4, np.int8), **SETTINGS)
    with pytest.raises(ValueError, match="num_steps=5 and every=10"):
        snapshots(jax.random.key(0), ISING, "gibbs", num_steps=5, every=10)
