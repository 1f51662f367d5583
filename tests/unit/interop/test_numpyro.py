"""NumPyro: targets of discrete models are those models, and the kernel's posteriors are the exact ones."""

import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density

import discrax as dx
from discrax.core.target import evaluate, exact_evaluation
from discrax.interop.numpyro import DiscraxGibbs, from_model, values_of
from discrax.interop.numpyro_sites import find_sites
from repeats import repeats

RNG = np.random.default_rng(0)
MEANS, PAIRS, Y = jnp.asarray([-1.0, 0.5, 2.0]), jnp.asarray(RNG.normal(size=(3, 2))), 0.4


@pytest.fixture(autouse=True)
def _ranks_as_numpyro_has_them():
    with jax.numpy_rank_promotion("allow"):
        yield


def discrete_model(y):
    with numpyro.plate("rows", 2):
        z = numpyro.sample("z", dist.Categorical(jnp.array([0.5, 0.3, 0.2])))
    on = numpyro.sample("on", dist.Bernoulli(0.3).expand([2]).to_event(1))
    steps = numpyro.sample("steps", dist.DiscreteUniform(2, 4))
    many = numpyro.sample("many", dist.Binomial(np.array([1, 2]), 0.4))
    numpyro.sample("y", dist.Normal(jnp.sum(MEANS[z]) + 0.3 * steps, 1.0), obs=y)
    numpyro.factor("pairs", jnp.sum(PAIRS[z, on]) + 0.5 * (many[0] == many[1]) - 0.2 * jnp.sum(on * many) ** 2)


def sorted_model(y):
    z = numpyro.sample("z", dist.Categorical(jnp.array([0.5, 0.3, 0.2])).expand([4]))
    numpyro.sample("y", dist.Normal(jnp.sum(jnp.sort(z) * jnp.arange(4.0)), 3.0), obs=y)


@pytest.mark.parametrize("model", [discrete_model, sorted_model])
def test_the_target_of_a_model_is_its_posterior(model):
    target = from_model(model, Y)
    states = jnp.asarray(target.space.enumerate())
    ours = jax.jit(jax.vmap(lambda x: target.log_prob(target.space.embed(x))))(states)
    theirs = jax.jit(jax.vmap(lambda values: log_density(model, (Y,), {}, values)[0]))(values_of(target, states))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    twin = from_model(model, Y + 0.1)  # of other data
    other = jax.jit(jax.vmap(lambda x: twin.log_prob(target.space.embed(x))))(states)
    assert np.abs(other - ours).max() > 1e-2


def test_values_have_the_names_shapes_and_supports_of_the_sites():
    target = from_model(discrete_model, Y)
    states = target.space.enumerate()
    values = values_of(target, jnp.asarray(states))
    shapes = {"many": (2,), "on": (2,), "steps": (), "z": (2,)}
    assert {name: value.shape for name, value in values.items()} == {k: (len(states), *v) for k, v in shapes.items()}
    assert set(np.unique(values["steps"])) == {2, 3, 4}
    assert [set(np.unique(values["many"][:, i])) for i in (0, 1)] == [{0, 1}, {0, 1, 2}]
    assert isinstance(from_model(lambda: numpyro.sample("b", dist.Bernoulli(0.2))).space, dx.Binary)


def test_ratios_are_exact_where_the_model_only_indexes_and_where_it_has_no_gradient():
    def indexing(y):
        with numpyro.plate("rows", 5):
            z = numpyro.sample("z", dist.Categorical(jnp.array([0.5, 0.3, 0.2])))
            numpyro.sample("y", dist.Normal(MEANS[z], 1.0), obs=y)

    for model, data in ((indexing, jnp.arange(5.0)), (sorted_model, Y)):
        target = from_model(model, data)
        plain = dx.core.target.FunctionTarget(target.log_prob, target.space)
        x = jnp.asarray(target.space.enumerate()[7])
        ours, exact = jax.jit(lambda x, t=target, p=plain: (evaluate(t, x).ratios, exact_evaluation(p, x).ratios))(x)
        np.testing.assert_allclose(ours, exact, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "num_steps"), [("pas", 100), ("dmala", 2), ("gibbs", 100)])
def test_samplers_are_exact_on_the_target_of_a_model(sampler, num_steps):
    """From one state DMALA needs 400 steps, so it is asked only to keep the law."""
    target = from_model(discrete_model, Y)
    kernel = dx.samplers.get_sampler(sampler).build()
    verdict = dx.exact.check_kernel(kernel, target, num_chains=10_000, num_convergence_steps=num_steps)
    assert verdict.invariance_p_value > 1e-6
    assert verdict or sampler == "dmala"


# A mixed model, whose continuous site is integrated out on a grid.


def mixed_model(y):
    x = numpyro.sample("x", dist.Normal(0.0, 1.0))
    on = numpyro.sample("on", dist.Bernoulli(0.4).expand([2]).to_event(1))
    z = numpyro.sample("z", dist.Categorical(jnp.array([0.5, 0.3, 0.2])))
    numpyro.sample("y", dist.Normal(jnp.array([1.0, -0.7]) * on * x + MEANS[z], 0.8), obs=y)


DATA = jnp.array([1.2, 0.3])


@cache
def exact_means():
    """Of x, x^2, both indicators and the three levels."""
    points = np.array([(x, *on, z) for x in np.linspace(-6, 6, 601) for on in np.ndindex(2, 2) for z in range(3)])
    x, on, z = points[:, 0], points[:, 1:3], points[:, 3].astype(np.int32)
    values = {"x": jnp.asarray(x, jnp.float32), "on": jnp.asarray(on, jnp.int32), "z": jnp.asarray(z)}
    weight = jax.jit(jax.vmap(lambda v: jnp.exp(log_density(mixed_model, (DATA,), {}, v)[0])))(values)
    return np.average(np.column_stack([x, x**2, on, np.eye(3)[z]]), axis=0, weights=np.asarray(weight, np.float64))


def z_scores(kernel, num_chains=50, num_samples=200):
    mcmc = MCMC(
        kernel,
        num_warmup=150,
        num_samples=num_samples,
        num_chains=num_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1), DATA)
    draws = {name: np.asarray(value) for name, value in mcmc.get_samples(group_by_chain=True).items()}
    columns = [draws["x"], draws["x"] ** 2, *np.moveaxis(draws["on"], -1, 0), *(draws["z"] == k for k in range(3))]
    of_chains = np.stack([column.mean(axis=1) for column in columns], axis=-1)
    errors = of_chains.std(axis=0, ddof=1) / np.sqrt(num_chains)
    return (of_chains.mean(axis=0) - exact_means()) / errors, mcmc


def test_a_mixed_model_has_the_posterior_of_quadrature(capsys):
    scores, mcmc = z_scores(DiscraxGibbs(NUTS(mixed_model), num_steps=3))
    assert np.abs(scores).max() < 4.5
    mcmc.print_summary()
    assert "on[1]" in capsys.readouterr().out


@pytest.mark.slow
def test_a_kernel_that_is_wrong_by_a_little_is_found():
    class Careless(DiscraxGibbs):
        def _target(self, args, kwargs, z):
            right = super()._target(args, kwargs, z)
            return dx.core.target.FunctionTarget(lambda e: 0.8 * right.log_prob(e), right.space)

    scores, _ = z_scores(Careless(NUTS(mixed_model), num_steps=3))
    assert np.abs(scores).max() > 6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Some donated buffers")  # NumPyro gives away what it has, vectorised
@pytest.mark.parametrize("chain_method", ["vectorized", *repeats([], ["sequential", jax.vmap])])
def test_a_discrete_model_has_its_posterior_however_chains_run(chain_method):
    target = from_model(discrete_model, Y)
    law = dx.exact.law(target)
    kernel = DiscraxGibbs(NUTS(discrete_model), num_steps=20)
    mcmc = MCMC(kernel, num_warmup=50, num_samples=800, num_chains=2, chain_method=chain_method, progress_bar=False)
    mcmc.run(jax.random.key(0), Y)
    values = values_of(target, jnp.asarray(target.space.enumerate()))
    for name, draws in mcmc.get_samples().items():
        exact = np.tensordot(law, np.asarray(values[name], np.float64), 1)
        np.testing.assert_allclose(np.asarray(draws).mean(axis=0), exact, atol=0.1)


@pytest.mark.slow
def test_the_scale_is_tuned_in_warm_up_by_all_chains_and_frozen_after_it():
    fields = RNG.normal(size=100)

    def model():
        on = numpyro.sample("on", dist.Bernoulli(0.5).expand([100]).to_event(1))
        shift = numpyro.sample("shift", dist.Normal(0.0, 1.0))
        spins = 2.0 * on - 1
        numpyro.factor("fields", jnp.sum(on * (fields + 0.02 * shift)) + jnp.sum(spins[1:] * spins[:-1]))

    kernel = DiscraxGibbs(NUTS(model), "dmala", num_steps=5)
    mcmc = MCMC(kernel, num_warmup=100, num_samples=200, num_chains=3, chain_method="vectorized", progress_bar=False)
    mcmc.run(jax.random.key(0), extra_fields=("accept_prob", "arrays.step_size"))
    extra = mcmc.get_extra_fields()
    sizes = np.unique(np.asarray(extra["arrays.step_size"]))
    assert len(sizes) == 1
    assert sizes[0] != np.float32(dx.samplers.dmala().step_size)
    assert abs(float(np.mean(extra["accept_prob"])) - 0.574) < 0.06
    assert np.asarray(extra["diverging"]).shape == (600,)


@pytest.mark.slow
def test_ratios_are_from_the_gradient_where_it_tells_and_exact_where_not():
    matrix, y = jnp.asarray(RNG.normal(size=(30, 8))), jnp.asarray(RNG.normal(size=30))

    def regression():
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([8]).to_event(1))
        on = numpyro.sample("on", dist.Bernoulli(0.3).expand([8]).to_event(1))
        numpyro.sample("y", dist.Normal(matrix @ (on * slope), 0.3), obs=y)

    def chosen(model, *args, **settings):
        kernel = DiscraxGibbs(NUTS(model), **settings)
        kernel.init(jax.random.key(0), 10, None, args, {})
        return "gradient" if kernel._has_form else "exact"

    assert chosen(mixed_model, DATA) == "gradient"
    assert chosen(regression) == "exact"
    assert chosen(regression, ratios="gradient") == "gradient"
    with pytest.raises(ValueError, match="ratios='gradient' needs a model with a multilinear form"):
        chosen(sorted_model, Y, ratios="gradient")


def test_sites_that_numpyro_enumerates_are_left_alone():
    def model():
        numpyro.sample("a", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})
        numpyro.sample("b", dist.Bernoulli(0.5))

    sites, others = find_sites(model, (), {})
    assert sites.names == ("b",)
    assert others == ["a"]
    with pytest.raises(ValueError, match="discrete and not enumerated, but 'a' are not"):
        from_model(model)


@pytest.mark.slow
@pytest.mark.parametrize("ratios", ["gradient", "exact"])
def test_sites_that_numpyro_enumerates_are_summed_out_of_what_the_sampler_sees(ratios):
    pytest.importorskip("funsor")
    shares = jnp.array([0.5, 0.3, 0.2])

    def model():
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        with numpyro.plate("rows", 3):
            on = numpyro.sample("on", dist.Bernoulli(0.3))
        k = numpyro.sample("k", dist.Categorical(shares), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(MEANS[k] * x + 0.8 * jnp.sum(on), 0.5), obs=3 * Y)

    kernel = DiscraxGibbs(NUTS(model), num_steps=3, ratios=ratios)
    mcmc = MCMC(kernel, num_warmup=150, num_samples=500, num_chains=30, chain_method="vectorized", progress_bar=False)
    mcmc.run(jax.random.key(0))
    draws = mcmc.get_samples(group_by_chain=True)
    assert set(draws) == {"x", "on"}
    x, many = np.linspace(-6, 6, 2001)[:, None, None], np.arange(4)[:, None]
    off = 3 * Y - np.asarray(MEANS) * x - 0.8 * many
    ways = np.array([1, 3, 3, 1]) * 0.3 ** np.arange(4) * 0.7 ** np.arange(3, -1, -1)
    law = (np.exp(-(x**2) / 2 - 2 * off**2) * np.asarray(shares) * ways[:, None]).sum(axis=-1)
    law /= law.sum()
    exact = np.array([law.sum(axis=0) @ np.arange(4), (law * x[..., 0]).sum(), (law * x[..., 0] ** 2).sum()])
    found = np.asarray(draws["on"]).sum(axis=-1), np.asarray(draws["x"]), np.asarray(draws["x"]) ** 2
    of_chains = np.stack([each.mean(axis=1) for each in found], axis=-1)
    errors = of_chains.std(axis=0, ddof=1) / np.sqrt(30)
    assert np.abs((of_chains.mean(axis=0) - exact) / errors).max() < 4.5
    assert errors.max() < 0.1


def poisson():
    numpyro.sample("count", dist.Poisson(3.0))


def continuous():
    numpyro.sample("x", dist.Normal())


def nested():
    most = numpyro.sample("most", dist.DiscreteUniform(1, 3))
    numpyro.sample("count", dist.Binomial(most, 0.5))


def certain():
    numpyro.sample("one", dist.DiscreteUniform(2, 2))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (poisson, "the support of 'count' .Poisson. is .*; truncate it, as a Categorical"),
        (continuous, "'x' are not; use DiscraxGibbs|discrete sites, but all of its latent sites are continuous"),
        (nested, "The support of the discrete site 'count' must not depend on other sites, but it does; give it"),
        (certain, "two values at least, but one of 'one' has 1; condition"),
    ],
)
def test_models_that_cannot_be_are_told_what_to_do(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_model(model)
    with pytest.raises(ValueError, match=sentence):
        DiscraxGibbs(NUTS(model)).init(jax.random.key(0), 10, None, (), {})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: DiscraxGibbs(mixed_model), "inner must be a kernel of NumPyro with a model, such as NUTS"),
        (lambda: DiscraxGibbs(NUTS(mixed_model), num_steps=0), "num_steps"),
        (lambda: DiscraxGibbs(NUTS(mixed_model), ratios="best"), "ratios must be 'auto', 'gradient', 'exact', but got"),
        (lambda: values_of(dx.targets.Ising.lattice((2, 2)), jnp.zeros(4, int)), "a target that from_model made"),
        (lambda: from_model(lambda: None), "this one has none"),
    ],
)
def test_other_arguments_that_cannot_be_are_told(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


@pytest.mark.parametrize(("sampler", "sentence"), [("dula", "another law"), ("ab_shift", "curvature")])
def test_samplers_that_cannot_be_are_told(sampler, sentence):
    kernel = DiscraxGibbs(NUTS(mixed_model), sampler)
    with pytest.raises(ValueError, match=sentence):
        kernel._prepared(from_model(lambda: numpyro.sample("b", dist.Bernoulli(0.2))))


def test_without_numpyro_the_extra_is_named():
    code = "import sys; sys.modules['numpyro'] = None; import discrax.interop.numpyro"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert 'discrax.interop.numpyro needs numpyro, which is missing: pip install "discrax[numpyro]".' in told
