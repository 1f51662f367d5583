"""Mixed targets: both halves together keep a law that quadrature knows, warm-up tunes both, and one result has both."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.exact import chi_square, total_variation
from discrax.interop.blackjax import from_blackjax, sample_mixed
from discrax.interop.blackjax_mixed import Alternate, alternate
from discrax.interop.blackjax_tuning import windows
from repeats import repeats

GRID = np.linspace(-8, 8, 1601)
EDGES = np.array([-0.8, 0.0, 0.8])
SPACES = {
    "binary": dx.Binary(3),
    "ordinal": dx.Ordinal(2, [0.0, 0.5, 2.0]),
    "categorical": dx.Categorical(2, (2, 3)),
}
BLOCKS = {
    "nuts": lambda: from_blackjax("nuts", step_size=0.7, inverse_mass_matrix=np.ones(1)),
    "hmc": lambda: from_blackjax("hmc", step_size=0.6, inverse_mass_matrix=np.ones(1), num_integration_steps=3),
    "mala": lambda: from_blackjax("mala", step_size=0.5),
}


def random_mixed(space: dx.Space, seed: int = 2, kind: type[dx.Mixed] = dx.Mixed) -> dx.Mixed:
    """One value z, neither Gaussian given the sites nor independent of them."""
    rng, size = np.random.default_rng(seed), space.embed(jnp.zeros(space.shape, space.dtype)).size
    linear, pairs, pull = rng.normal(size=size), 0.3 * rng.normal(size=(size, size)), 1.5 * rng.normal(size=size)

    def log_prob(e, z):
        e = e.reshape(-1)
        return e @ (linear + pairs @ e) + z * (e @ pull) - 0.5 * z**2 - 0.05 * z**4

    return kind(discrete=space, continuous=(), log_prob=log_prob)


def joint_law(target: dx.Mixed) -> np.ndarray:
    """Probabilities of every state and every point of the grid."""
    states, grid = jnp.asarray(target.space.enumerate()), jnp.asarray(GRID, jnp.float32)
    values = jax.vmap(lambda x: jax.vmap(lambda z: target.function(target.space.embed(x), z))(grid))(states)
    law = np.exp(np.asarray(values, np.float64) - np.max(values))
    return law / law.sum()


def cells(target: dx.Mixed, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """State and interval of z as one number."""
    return target.space.index(x) * (len(EDGES) + 1) + np.searchsorted(EDGES, z)


def p_value(kernel: Alternate, target: dx.Mixed, num_chains: int = 20_000, num_steps: int = 6) -> float:
    """Of where chains are that began with draws of the law and made a few steps."""
    law = joint_law(target)
    rng = np.random.default_rng(1)
    places = rng.choice(law.size, num_chains, p=law.reshape(-1))
    x = target.space.enumerate()[places // len(GRID)]
    z = GRID[places % len(GRID)] + (GRID[1] - GRID[0]) * (rng.random(num_chains) - 0.5)

    @jax.jit
    def ends(keys, x, z):
        def one(key, x, z):
            state = kernel.start(target, x, z)
            return jax.lax.scan(
                lambda s, k: (kernel.step(k, target, s)[0], None), state, dx.core.random.split(key, num_steps)
            )[0]

        return jax.vmap(one)(keys, x, z)

    after = ends(dx.core.random.split(jax.random.key(0), num_chains), jnp.asarray(x), jnp.asarray(z, jnp.float32))
    of_cell = np.zeros((len(law), len(EDGES) + 1))
    np.add.at(of_cell.T, np.searchsorted(EDGES, GRID), law.T)
    found = cells(target, np.asarray(after.x), np.asarray(after.cache.z))
    assert (np.asarray(after.x) != x).any()
    assert (np.asarray(after.cache.z) != z.astype(np.float32)).mean() > 0.5
    return chi_square(np.bincount(found, minlength=of_cell.size), of_cell.reshape(-1))


@pytest.mark.parametrize(
    ("space", "sampler", "block", "discrete_steps"),
    [
        ("binary", "pas", "hmc", 1),
        pytest.param("binary", "dmala", "nuts", 1, marks=pytest.mark.slow),
        pytest.param("categorical", "pas", "nuts", 1, marks=pytest.mark.slow),
        pytest.param("ordinal", "gwg", "hmc", 2, marks=pytest.mark.slow),
        pytest.param("ordinal", "gibbs", "mala", 2, marks=pytest.mark.slow),
    ],
)
def test_steps_keep_the_joint_law(space, sampler, block, discrete_steps):
    target = random_mixed(SPACES[space])
    kernel = Alternate(dx.samplers.get_sampler(sampler).build(), BLOCKS[block](), discrete_steps)
    assert p_value(kernel, target) > 1e-4


REFUSED = {
    "dlp_trace",
    "pavg",
    "ab_diagonal",
    "ab_shift",
    "ab_max",
    "ab_trace",
    "swendsen_wang",
    "wolff",
    "sgdld",
    "minibatch_gibbs",
    "pseudo_marginal",
    "local_search",
}


# One of each family; what the others keep of a target is what these keep.
FEW = ("rwm", "gibbs", "hamming_ball", "lb", "pas", "dmala", "dula", "dlmc", "avg", "swap", "gwg_ordinal")


@pytest.mark.slow
@pytest.mark.parametrize("name", repeats(FEW, [name for name in dx.samplers.REGISTRY if name not in REFUSED]))
def test_every_exact_sampler_keeps_the_joint_law_and_no_other_does(name):
    target = random_mixed(SPACES["ordinal" if "ordinal" in name or name == "mh_uniform" else "binary"])
    kernel, _ = alternate(target, name, BLOCKS["hmc"](), 1).prepare(target, tuning=False)
    assert (p_value(kernel, target) > 1e-4) == kernel.is_exact  # DULA is not: a twin of DMALA with one flaw


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_samplers_that_need_more_of_a_target_are_refused(name):
    with pytest.raises(ValueError, match=r"learns the curvature of a target|which Given does not offer"):
        alternate(random_mixed(SPACES["binary"]), name, BLOCKS["hmc"](), 1)


class Stale(Alternate):  # a twin with one flaw: what the sites' kernel keeps is of the values before they moved
    def arrive(self, given, sites):
        return sites


class Deaf(dx.Mixed):  # a twin with one flaw: the values move as if the sites were all 0
    def density(self, x):
        return super().density(jnp.zeros_like(x))


@pytest.mark.slow
def test_the_proof_fails_twins_with_one_flaw():
    target, block = random_mixed(SPACES["binary"]), BLOCKS["hmc"]()
    assert p_value(Stale(dx.samplers.pas(), block, 1), target) < 1e-12
    deaf = random_mixed(SPACES["binary"], kind=Deaf)
    assert p_value(Alternate(dx.samplers.pas(), block, 1), deaf) < 1e-12


def test_a_run_finds_the_marginals_and_tunes_both_halves():
    target = random_mixed(SPACES["binary"])
    block = from_blackjax("hmc", num_integration_steps=3)
    result = sample_mixed(
        jax.random.key(0), target, "pas", block, num_chains=20, num_warmup=400, num_samples=1000, progress=False
    )
    law = joint_law(target)
    counts = np.bincount(target.space.index(result.draws.reshape(-1, 3)), minlength=8)
    assert total_variation(counts / counts.sum(), law.sum(axis=1)) < 0.03
    mean, z = law.sum(axis=0) @ GRID, result.kept["z"]
    assert abs(z.mean() - mean) < 0.05
    assert abs(result.stats["accept_prob"].mean() - 0.574) < 0.1
    assert abs(result.stats["acceptance_rate"].mean() - 0.8) < 0.1
    assert result.stats["diverging"].mean() < 0.01
    assert (result.stats["n_steps"] == 3).all()
    spread = np.sqrt(law.sum(axis=0) @ (GRID - mean) ** 2)
    (inverse_mass,) = np.asarray(result.kernel.block.parameters["inverse_mass_matrix"])
    assert abs(inverse_mass / spread**2 - 1) < 0.2
    assert "path_length = " in str(result.report)
    assert "step_size = " in str(result.report)
    check_arviz(result)


def check_arviz(result: dx.Result) -> None:
    tree = result.to_arviz()
    assert set(tree["posterior"].data_vars) == {"x", "z"}
    np.testing.assert_array_equal(tree["posterior"]["x"], result.draws)
    np.testing.assert_array_equal(tree["posterior"]["z"], result.kept["z"])
    assert {"lp", "accept_prob", "acceptance_rate", "diverging"} <= set(tree["sample_stats"].data_vars)
    assert set(tree["warmup_sample_stats"].dims) == {"chain", "draw"}


def scaled(e, z):
    return -0.5 * (z["near"] ** 2 + jnp.sum((z["far"] / 20.0 - e) ** 2))


@pytest.mark.slow
def test_masses_are_found_by_name_and_results_are_saved(tmp_path):
    target = dx.Mixed(discrete=dx.Binary(2), continuous={"near": (), "far": 2}, log_prob=scaled)
    result = sample_mixed(
        jax.random.key(0), target, "gibbs", num_chains=8, num_warmup=500, num_samples=500, progress=False
    )
    assert {name: value.shape for name, value in result.kept.items()} == {"near": (8, 500), "far": (8, 500, 2)}
    assert result.report.discrete is None  # Gibbs has nothing to tune
    mass = np.asarray(result.kernel.block.parameters["inverse_mass_matrix"])
    leaves = dict(zip(["far", "far", "near"], mass, strict=True))  # dictionaries are sorted by name
    assert 0.7 < leaves["near"] < 1.4
    assert 300 < leaves["far"] < 800  # 400 + 100 from the sites
    again = dx.load(result.save(tmp_path / "mixed.nc"))
    np.testing.assert_array_equal(again.kept["far"], result.kept["far"])
    np.testing.assert_array_equal(again.draws, result.draws)
    on = sample_mixed(
        jax.random.key(1), target, "gibbs", num_warmup=0, num_samples=5, num_chains=8, progress=False,
        init=result.states.x, init_values=result.states.cache.z,
    )  # fmt: skip
    assert not on.warmup_stats


@pytest.mark.slow
def test_what_a_function_keeps_is_that_of_the_draws_and_a_folder_goes_on_as_if_it_had_not_ended(tmp_path):
    pytest.importorskip("zarr")
    target, key = random_mixed(SPACES["binary"]), jax.random.key(3)
    block = from_blackjax("hmc", num_integration_steps=3)
    settings = {"continuous": block, "num_chains": 3, "num_warmup": 60, "progress": False}
    whole = sample_mixed(key, target, num_samples=40, **settings)
    kept = sample_mixed(key, target, num_samples=40, keep=lambda x, z: {"sum": x.sum() * z}, **settings)
    assert kept.draws is None
    np.testing.assert_allclose(kept.kept["sum"], whole.draws.sum(-1) * whole.kept["z"], rtol=1e-5)
    folder = tmp_path / "run"
    assert sample_mixed(key, target, num_samples=20, folder=folder, **settings).num_draws == 20
    longer = sample_mixed(key, target, num_samples=40, folder=folder, **settings)
    np.testing.assert_array_equal(np.asarray(longer.draws), whole.draws)
    np.testing.assert_array_equal(np.asarray(longer.kept["z"]), whole.kept["z"])
    np.testing.assert_array_equal(np.asarray(longer.stats["diverging"]), whole.stats["diverging"])
    np.testing.assert_array_equal(np.asarray(dx.load(folder).kept["z"]), whole.kept["z"])
    for other in ({"discrete_steps": 2}, {"continuous": BLOCKS["mala"]()}, {"init_values": np.float32(1)}):
        with pytest.raises(ValueError, match="must be the one that is asked for, but it has another"):
            sample_mixed(key, target, num_samples=40, folder=folder, **settings | other)


@pytest.mark.slow
def test_what_is_given_is_not_tuned():
    target, block = random_mixed(SPACES["binary"]), BLOCKS["hmc"]()
    result = sample_mixed(
        jax.random.key(0), target, "pas", block, adaptation=None, num_warmup=20, num_samples=20, progress=False
    )
    assert result.report is None
    assert float(result.kernel.discrete.path_length) == 1
    assert result.kernel.block.parameters["step_size"] == np.float32(0.6)


@pytest.mark.slow
def test_a_run_in_double_precision():
    with jax.enable_x64(True):
        target, block = random_mixed(SPACES["binary"]), from_blackjax("hmc", num_integration_steps=3)
        result = sample_mixed(jax.random.key(0), target, "pas", block, num_warmup=100, num_samples=20, progress=False)
        assert result.kept["z"].dtype == np.float64
        assert len(np.unique(result.kept["z"])) > 20


@pytest.mark.parametrize("num_steps", [1, 5, 40, 150, 1000, 1001])
def test_windows_double_and_leave_an_end(num_steps):
    is_slow, is_end = windows(num_steps)
    ends = np.flatnonzero(is_end)
    assert len(is_slow) == num_steps
    assert not is_slow[-1]
    if num_steps < 40:
        assert not is_slow.any()
    if num_steps >= 1000:
        lengths = np.diff([np.flatnonzero(is_slow)[0] - 1, *ends])
        assert lengths[0] == 25
        assert (lengths[1:] >= 2 * lengths[:-1]).all()
        assert is_slow[np.flatnonzero(is_slow)[0] : ends[-1] + 1].all()


def sample_quickly(target, *arguments, **settings):
    return sample_mixed(jax.random.key(0), target, *arguments, num_warmup=0, num_samples=1, progress=False, **settings)


def test_bad_targets_are_sentences(as_a_user):
    space = dx.Binary(3)
    bad = {
        "must return a scalar, but .* it returns shape": {"log_prob": lambda e, z: e * z},
        "log_prob must return a float": {"log_prob": lambda e, z: 1},
        "cannot be evaluated .* but raises": {"log_prob": lambda e: e.sum()},
        "Sizes of a space are whole numbers": {"continuous": "three"},
        "names no values": {"continuous": {}},
        "names other than 'x'": {"continuous": {"x": 3}},
        "must have a gradient in z": {"log_prob": lambda e, z: _without_gradient(z)},
    }
    for said, change in bad.items():
        settings = {"discrete": space, "continuous": (), "log_prob": lambda e, z: e.sum() * z} | change
        with pytest.raises((TypeError, ValueError), match=said):
            dx.Mixed(**settings)
    with pytest.raises(TypeError, match="space must be a discrax space"):
        dx.Mixed(discrete=3, continuous=(), log_prob=lambda e, z: z)


def _without_gradient(z):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), jnp.float32), z)


def test_bad_runs_are_sentences(as_a_user, monkeypatch):
    target = random_mixed(SPACES["binary"])
    pair = dx.Mixed(
        discrete=dx.Binary(3), continuous={"a": 2, "b": ()}, log_prob=lambda e, z: e.sum() * z["b"] - z["a"] @ z["a"]
    )
    with pytest.raises(ValueError, match=r"sample it by discrax\.interop\.blackjax\.sample_mixed"):
        dx.sample(jax.random.key(0), target, "pas", num_samples=1)
    with pytest.raises(TypeError, match=r"target must be a discrax\.Mixed"):
        sample_quickly(target.given(jnp.zeros(())))
    with pytest.raises(ValueError, match=r"z must have shape \(\) or \(4,\), but has shape \(3,\)"):
        sample_quickly(target, init_values=np.zeros(3))
    with pytest.raises(ValueError, match=r"z must be a dictionary of 'a' of shape \(2,\), 'b' of shape \(\), but got"):
        sample_quickly(pair, init_values=np.zeros(2))
    with pytest.raises(ValueError, match=r"init must have shape \(3,\) or \(4, 3\)"):
        sample_quickly(target, init=np.zeros((2, 3), np.int8))
    with pytest.raises(ValueError, match="does not offer"):
        sample_quickly(target, dx.samplers.gibbs(scan="chromatic"))
    with pytest.raises(TypeError, match="continuous must be 'nuts'"):
        sample_quickly(target, "pas", 3)
    with pytest.raises(ValueError, match="keep is 'draws' or a function of the codes and of z, but got 'moments'"):
        sample_quickly(target, keep="moments")
    with pytest.raises(ValueError, match="keep must be a function that JAX can trace, but on codes of shape"):
        sample_quickly(target, keep=lambda x: x)
    walled = dx.Mixed(discrete=dx.Binary(3), continuous=(), log_prob=lambda e, z: jnp.log(e[0]) - z**2)
    assert sample_quickly(walled, "gibbs", BLOCKS["mala"]()).draws[..., 0].all()  # starts are drawn until they can be
    barred = dx.Mixed(discrete=dx.Binary(3), continuous=(), log_prob=lambda e, z: jnp.log(z - 5) + 0 * e.sum())
    with pytest.raises(ValueError, match="log_prob must be finite where a chain starts, but it is nan"):
        sample_quickly(barred)
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r'pip install "discrax\[blackjax\]"'):
        sample_quickly(target)


def test_bad_blocks_are_sentences(as_a_user):
    with pytest.raises(ValueError, match="one of BlackJAX's, such as 'nuts' or 'hmc', but got 'nutz'"):
        from_blackjax("nutz")
    with pytest.raises(TypeError, match=r"such as blackjax\.nuts, but got 3"):
        from_blackjax(3)
    with pytest.raises(ValueError, match="needs num_integration_steps"):
        from_blackjax("hmc")
    with pytest.raises(ValueError, match="takes step_size, inverse_mass_matrix, max_num_doublings, but not steps"):
        from_blackjax("nuts", steps=3)
    with pytest.raises(ValueError, match="starts anew from a position and a log-density"):
        from_blackjax("mclmc")
    with pytest.raises(ValueError, match="rate must be"):
        from_blackjax("nuts", rate=1.5)
