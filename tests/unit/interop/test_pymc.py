"""Targets from PyMC models have the models' laws, and `DiscraxStep` keeps them."""

import os
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.target import evaluate, exact_evaluation
from discrax.samplers.langevin import DMALA, DULA

with warnings.catch_warnings():  # of PyMC's friends, when they are imported
    warnings.simplefilter("ignore")
    pm = pytest.importorskip("pymc")
    import cloudpickle
    import pytensor.tensor as pt

    from discrax.interop import pairs, pymc_model
    from discrax.interop.pymc import DiscraxStep, from_model, values_of

    pymc_model.backend()

from .five_columns import X, Y, exact_means

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning", "UserWarning")
]


@pytest.fixture(autouse=True)
def as_pytensor_writes():
    """PyTensor's JAX code promotes ranks."""
    with jax.numpy_rank_promotion("allow"):
        yield


def parents_and_indices():
    """Levels of several kinds, laws that depend on other variables, and tables that are read at variables."""
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        a = pm.Bernoulli("a", rng.uniform(size=3))
        b = pm.Categorical("b", rng.dirichlet([1, 1, 1], size=2))
        c = pm.DiscreteUniform("c", -1, 2)
        pm.Bernoulli("d", pm.math.sigmoid(a[0] - c + 0.5))
        means = pt.as_tensor(rng.normal(size=3))[b] + 0.5 * a.sum() + 0.3 * c
        pm.Normal("y", means, 1, observed=rng.normal(size=2))
        pm.Potential("pair", 0.7 * a[1] * a[2] * c)
    return model


def many_supports():
    with pm.Model() as model:
        n = pm.Binomial("n", [2, 4], 0.3)
        pm.BetaBinomial("m", 1, 2, n=2)
        pm.HyperGeometric("h", 6, 4, 4)
        few = pm.Truncated("few", pm.Poisson.dist(1.5), upper=3)
        pm.Poisson("y", 0.5 + n.sum() + few, observed=4)
    return model


def law_by_pymc(model, others=None):
    """The probability of every state, by PyMC's own log-probability at one after another."""
    discrete = [each for each in model.free_RVs if model.rvs_to_values[each] in model.discrete_value_vars]
    block = pymc_model.block_of(model, discrete)
    values, log_prob = block.values(block.space.enumerate()), model.compile_logp()
    found = [
        log_prob({k: v[i] for k, v in values.items()} | (others or {})) for i in range(len(values[block.names[0]]))
    ]
    weights = np.exp(np.array(found) - np.max(found))
    return block, weights / weights.sum()


@pytest.mark.parametrize("make", [parents_and_indices, pytest.param(many_supports, marks=pytest.mark.slow)])
def test_a_target_has_the_law_of_its_model(make):
    _, law = law_by_pymc(make())
    np.testing.assert_allclose(dx.exact.law(from_model(make())), law, atol=1e-6)


@pytest.mark.slow
def test_a_target_without_the_variables_own_laws_has_another(monkeypatch):
    functions, silent = pymc_model._Graphs.functions, lambda *arguments: [jnp.zeros(())]
    monkeypatch.setattr(pymc_model._Graphs, "functions", lambda graphs: [silent] * 4 + functions(graphs)[4:])
    _, law = law_by_pymc(parents_and_indices())
    assert np.abs(dx.exact.law(from_model(parents_and_indices())) - law).max() > 1e-3


def test_gradients_know_own_laws_and_indices_exactly():
    with pm.Model() as model:
        z = pm.Categorical("z", [0.2, 0.0, 0.8], shape=4)
        pm.Normal("y", pt.as_tensor([-1.0, 0.0, 3.0])[z].sum(), 100.0, observed=1.0)
    target, x = from_model(model), jnp.array([0, 2, 2, 0], jnp.int8)
    ratios, exact = evaluate(target, x).ratios, exact_evaluation(target, x).ratios
    np.testing.assert_allclose(ratios, np.clip(exact, -1e6, None), atol=1e-2, rtol=1e-2)


def mixture():
    """Discrete variables beside a continuous one."""
    with pm.Model() as model:
        z = pm.Categorical("z", [0.2, 0.3, 0.5], shape=3)
        on = pm.Bernoulli("on", 0.4)
        mu = pm.Normal("mu", 0, 1, shape=3)
        pm.Normal("y", mu[z] + on, 0.7, observed=[-1.0, 0.5, 1.5])
    return model


class Unadjusted(DULA):
    """A twin with one flaw: it says that it is exact, and accepts everything."""

    is_exact = True


def p_value(sampler):
    """Of where exact draws given `mu` are after a step, against the conditional law by enumeration."""
    model, mu = mixture(), {"mu": np.array([-1.0, 0.2, 1.3])}
    block, law = law_by_pymc(model, mu)
    step = DiscraxStep(model=model, sampler=sampler, num_steps=3, rng=1)
    step.stop_tuning()
    picks, counts = np.random.default_rng(0).choice(len(law), p=law, size=1500), np.zeros(len(law))
    for state in block.space.enumerate()[picks]:
        point, _ = step.step(block.values(state) | mu)
        assert point["mu"] is mu["mu"]
        counts[block.space.index(block.codes(point))] += 1
    return dx.exact.chi_square(counts, law)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["pas", "gibbs"])
def test_a_step_keeps_the_law_given_the_others(sampler):
    assert p_value(sampler) > 1e-3


@pytest.mark.slow
def test_a_step_of_dmala_keeps_the_law_given_the_others():
    assert p_value(DMALA(step_size=1.5)) > 1e-3


@pytest.mark.slow
def test_an_unadjusted_step_does_not():
    assert p_value(Unadjusted(step_size=1.5)) < 1e-6


def test_pm_sample_takes_it_beside_nuts():
    with mixture() as model:
        trace = pm.sample(
            20, tune=30, step=DiscraxStep(), chains=2, cores=1, progressbar=False, compute_convergence_checks=False
        )  # fmt: skip
    assert set(np.unique(trace.posterior["z"])) <= {0, 1, 2}
    assert trace.posterior["z"].values.std(axis=1).max() > 0
    assert trace.posterior["mu"].shape == (2, 20, 3)
    assert DiscraxStep([model["z"]], model=model).vars == [model.rvs_to_values[model["z"]]]


def test_a_step_tunes_freezes_and_travels_to_other_processes():
    model = mixture()
    step = DiscraxStep(model=model, sampler="dmala", num_steps=10, rng=1)
    step = cloudpickle.loads(cloudpickle.dumps(step))
    point = model.initial_point()
    scales = []
    for stops in (False, False, True, True):
        if stops and step.tune:
            step.stop_tuning()
        point, (stats,) = step.step(point)
        scales.append(float(step._memory.log_scale))
        assert stats["tune"] is not stops
    assert scales[0] != scales[1]
    assert scales[2] == scales[3]


def regression(elsewhere=0.0):
    with pm.Model() as model:
        on, slope = pm.Bernoulli("on", 0.3, shape=5), pm.Normal("slope", 0, 1.5, shape=5)
        coin = pm.Bernoulli("coin", 0.4)
        pm.Potential("elsewhere", elsewhere * slope[0] * on[1])
        pm.Normal("y", X @ (on * slope) + 0.3 * coin, 1.0, observed=Y)
    return model


def far_from_exact(step, num_draws=4000):
    """The largest distance of the means of indicators and coin from those of the posterior."""
    point, draws = step.model.initial_point(), []
    for _ in range(num_draws):
        point, (stats,) = step.step(point)
        draws.append([*point["on"], point["coin"]])
        assert stats["pairs_accept"] > 0.99
    return np.abs(np.mean(draws, axis=0) - exact_means()).max()


@pytest.mark.slow
def test_pairs_have_the_posterior_without_nuts():
    step = DiscraxStep(model=regression(), pairs={"on": "slope"}, num_steps=6, rng=1)
    assert [value.name for value in step.vars] == ["on", "slope", "coin"]
    assert far_from_exact(cloudpickle.loads(cloudpickle.dumps(step))) < 0.03


@pytest.mark.slow
def test_pairs_that_keep_their_first_coefficients_have_another(monkeypatch):
    monkeypatch.setattr(pairs, "flip", lambda law, here, *_: pairs.arrive(law, 1 - here.g, here.s, here.field))
    step = DiscraxStep(model=regression(), pairs={"on": "slope"}, num_steps=6, rng=1)
    assert far_from_exact(step, 300) > 0.1


@pytest.mark.slow
def test_another_model_accepts_where_pairs_were_while_it_was_tuned():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(100, 5))
    chances = 1 / (1 + np.exp(-columns @ [2.0, -1.5, 1.0, 0, 0]))
    with pm.Model() as model:
        on, slope = pm.Bernoulli("on", 0.3, shape=5), pm.Normal("slope", 0, 3.0, shape=5)
        pm.Bernoulli("y", logit_p=columns @ (on * slope), observed=rng.random(100) < chances)
    step = DiscraxStep(model=model, pairs={"on": "slope"}, rng=1)
    accepted = []
    for num_tuned in (0, 200):
        step.reset_tuning()
        point = model.initial_point()
        for _ in range(num_tuned):
            point, _ = step.step(point)
        step.stop_tuning()
        stats = []
        for _ in range(200):
            point, (each,) = step.step(point)
            stats.append(each["pairs_accept"])
        accepted.append(np.mean(stats))
    assert accepted[0] < 0.2
    assert accepted[1] > 0.5


@pytest.mark.parametrize(
    ("elsewhere", "given", "sentence"),
    [
        (0.0, {"of": "slope"}, "the discrete sites 'on', 'coin' and the continuous ones 'slope', and got"),
        (0.0, {"coin": "slope"}, r"one coefficient, but 'coin' has the shape \(\) and 'slope' \(5,\)"),
        (1.0, {"on": "slope"}, r"as in on . slope, but the log-density is up to"),
        (0.0, ["on"], "pairs must be {discrete variable: continuous variable}, but got"),
    ],
)
def test_models_without_such_pairs_are_told(elsewhere, given, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        DiscraxStep(model=regression(elsewhere), pairs=given)


def test_competence():
    with mixture() as model:
        pm.Poisson("p", 3)
        found = {each.name: int(DiscraxStep.competence(each, False)) for each in model.value_vars}
    assert found == {"z": 1, "on": 1, "mu": 0, "p": 0}


def test_values_have_the_shapes_of_the_variables():
    model = parents_and_indices()
    found = values_of(model, np.zeros((5, 2, 7), np.int8))
    assert {name: value.shape for name, value in found.items()} == {
        "a": (5, 2, 3), "b": (5, 2, 2), "c": (5, 2), "d": (5, 2)
    }  # fmt: skip
    assert (found["c"] == -1).all()


def model_with(make):
    with pm.Model() as model:
        make()
    return model


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pm.Poisson("k", 2), "k is a Poisson variable, but discrax samples those of finite support"),
        (lambda: pm.Multinomial("k", 4, [0.5, 0.5]), "k is a Multinomial variable"),
        (lambda: pm.Truncated("k", pm.Poisson.dist(2), lower=1), "k has no finite support: give pm.Truncated"),
        (lambda: pm.Binomial("k", pm.Poisson("n", 3, observed=3) * pm.Bernoulli("b", 0.5), 0.5), "must be constant"),
        (lambda: pm.Binomial("k", 0, 0.5), "Every site of k needs at least two values"),
        (lambda: pm.Normal("k"), "The model has no discrete variable that is not observed"),
    ],
)
def test_models_that_cannot_be_sampled_end_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        DiscraxStep(model=model_with(make))


def test_other_bad_input_ends_with_a_sentence():
    model = mixture()
    with pytest.raises(ValueError, match="but mu of the model are continuous; sample it with"):
        from_model(model)
    with pytest.raises(ValueError, match="samples discrete variables of the model that are not observed, but got mu"):
        DiscraxStep([model["mu"]], model=model)
    with pytest.raises(ValueError, match="num_steps"):
        DiscraxStep(model=model, num_steps=0)
    with pytest.raises(ValueError, match="dmala"):
        DiscraxStep(model=model, sampler="dmalla")
    with pytest.raises(ValueError, match="samples the model's own law, but DULA another one"):
        DiscraxStep(model=model, sampler="dula").step(model.initial_point())
    with pytest.raises(TypeError, match=r"model is a pymc.Model, but got"):
        from_model("model")


def test_jax_stays_as_it_was(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    monkeypatch.delitem(sys.modules, "pymc.sampling.jax")
    pymc_model.backend()
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    assert not jax.config.read("jax_enable_x64")
    DiscraxStep(model=mixture(), sampler="gibbs").step(mixture().initial_point())
    assert not jax.config.read("jax_enable_x64")


def test_without_pymc_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    monkeypatch.delitem(sys.modules, "discrax.interop.pymc")
    with pytest.raises(ImportError, match=r'pymc, which is missing: pip install "discrax\[pymc\]"'):
        __import__("discrax.interop.pymc")
