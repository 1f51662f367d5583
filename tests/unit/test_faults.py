"""One test for each fault that was found in published samplers, so that it is not found in this one.

The Hamming ball sampler, whose auxiliary variable was drawn with counts in place of logits, has no test: there is no
such sampler here. Most tests have a sibling in the file of the module at fault, with more cases.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base.array import array_stats
from scipy.special import expit

import discrax
from discrax import AcceptanceRate, Binary, Categorical, Ordinal, Spin, Target, samplers, targets
from discrax.bench.papers.rules import PaperRate
from discrax.core import random
from discrax.core.kernel import rated_knob, scalar_info
from discrax.core.target import evaluate
from discrax.diagnostics import diagnose, ess

from .helpers import Z_SCORE, OneFlip, z_score
from .samplers.reference import Spy, log_path_probability, move_weights

KEY = jax.random.key(12)


@eqx.filter_jit
def _steps(kernel, target, x, keys):
    state = kernel.init(target, x)
    return jax.vmap(lambda key: kernel.step(key, target, state))(keys)


def steps(kernel, target, x, num: int):
    """One step of `num` independent chains from `x`."""
    return _steps(kernel, target, jnp.asarray(x, target.space.dtype), random.split(KEY, num))


# --- integer states truncate couplings of +-0.5 to 0 ---

PAIR = targets.Ising.graph(np.array([[0, 1]]), 0.5)


@pytest.mark.parametrize(
    "kind", ["graph", "lattice", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("dense", "function"))]
)
def test_couplings_of_a_half_are_not_truncated_in_a_random_walk(kind):
    """From two equal spins every flip costs one nat; a truncated coupling would cost none."""
    target = {
        "graph": lambda: PAIR,
        "lattice": lambda: targets.Ising.lattice((2,), 0.5),
        "dense": lambda: targets.Ising.dense(np.array([[0, 0.5], [0.5, 0]])),
        "function": lambda: Target.from_log_prob(lambda s: s[0] * s[1] / 2, Spin(2)),
    }[kind]()
    _, info = steps(samplers.rwm(), target, [1, 1], 16)
    np.testing.assert_allclose(info.accept_prob, np.exp(-1), rtol=1e-5)


def test_couplings_of_a_half_are_not_truncated_in_gibbs():
    """20,000 redraws from two equal spins: the share that flips is sigmoid(-1), within 4.9 standard errors."""
    _, info = steps(samplers.gibbs(), PAIR, [1, 1], 20_000)
    assert z_score(info.jump, expit(-1)) < Z_SCORE


# --- log q summed over all chains by a wrong broadcast ---


@pytest.mark.parametrize("kernel", [samplers.gwg(), samplers.dmala(2.0)], ids=["gwg", "dmala"])
def test_a_chain_does_not_see_the_others(kernel):
    """A categorical chain alone and among eleven others makes the same step with the same acceptance probability."""
    target = targets.Potts.graph(np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), 3, 0.8)
    x = jax.vmap(target.space.random)(random.split(jax.random.key(1), 12))
    keys = random.split(KEY, 12)

    def together(x, keys):
        return jax.vmap(lambda x, key: kernel.step(key, target, kernel.init(target, x)))(x, keys)

    together = jax.jit(together)
    many = together(x, keys)
    for chain in (0, 7):
        alone = together(x[chain][None], keys[chain][None])
        np.testing.assert_array_equal(alone[0].x[0], many[0].x[chain])
        np.testing.assert_allclose(alone[1].accept_prob[0], many[1].accept_prob[chain], rtol=1e-5)
    assert len(np.unique(many[1].accept_prob)) > 2


# --- the probability of the drawn level is left out ---


def test_a_path_counts_the_probability_of_the_level_it_drew():
    """One site with three levels, p = (0.7, 0.2, 0.1) and g = sqrt: every acceptance probability by hand."""
    p = np.array([0.7, 0.2, 0.1])
    target = targets.Independent(np.log(p)[None])
    proposal = np.sqrt(p[None, :] / p[:, None]) * (1 - np.eye(3))  # w_xc
    proposal /= proposal.sum(axis=1, keepdims=True)
    accept = np.minimum(1, p[None, :] * proposal.T / np.maximum(p[:, None] * proposal, 1e-30))
    for level in range(3):
        after, info = steps(samplers.pas(), target, [level], 400)
        expected = {round(float(accept[level, other]), 4) for other in range(3) if other != level}
        assert {round(float(value), 4) for value in info.accept_prob} == expected
        reached = np.bincount(np.asarray(after.x)[:, 0], minlength=3) / 400
        np.testing.assert_allclose(
            np.delete(reached, level), np.delete(proposal[level] * accept[level], level), atol=0.12
        )


# --- a fixed even path keeps the parity ---


@pytest.mark.parametrize("sampler", ["rwm", "pas"])
def test_an_even_path_length_reaches_both_parities(sampler):
    """All moves are accepted. A chain that changes parity in one step of ten fails to in 300 with probability 2e-14."""
    target = targets.Bernoulli(np.full(6, 0.5))
    result = discrax.sample(
        KEY,
        target,
        getattr(samplers, sampler)(2.0),
        num_chains=20,
        num_warmup=0,
        num_samples=300,
        init=np.zeros(6, int),
    )
    parity = result.draws.sum(-1) % 2
    assert (parity.min(axis=1) == 0).all()
    assert (parity.max(axis=1) == 1).all()


# --- log(1 - p) is NaN where p = 1 ---


@pytest.mark.parametrize("scale", [10.0, 200.0, 1e4, 1e6])
def test_flip_probabilities_of_one_are_not_nan(scale):
    """From the least likely state, DMALA flips every site with probability 1 and is accepted; then it stays there."""
    signs = np.array([1, -1, 1, 1, -1, -1])
    target = targets.Bernoulli(logits=scale * signs)
    settings = {"num_chains": 2, "num_warmup": 0, "num_samples": 20}
    result = discrax.sample(KEY, target, samplers.dmala(), init=(signs < 0).astype(int), **settings)
    for name, stat in result.stats.items():
        assert np.isfinite(np.asarray(stat, float)).all(), name
    assert result.stats["is_accepted"].mean() > 0.9
    np.testing.assert_array_equal(result.draws[:, -1], np.broadcast_to(signs > 0, (2, 6)))


# --- the logarithm of a negative number in the step-size update ---


@pytest.mark.parametrize(
    ("sampler", "rule"), [("dmala", "robust"), ("dmala", "paper"), ("pas", "robust"), ("pas", "paper")]
)
def test_no_acceptance_makes_the_scale_undefined(sampler, rule):
    """2,000 updates with the worst that can come: long runs of 0 and of 1, and both in turns."""
    target = targets.Bernoulli(np.full(50, 0.5))
    kernel = samplers.build_kernel(sampler, target)
    adapter = (PaperRate() if rule == "paper" else AcceptanceRate()).plan(target, kernel, 2000)
    accept_probs = np.concatenate([np.zeros(500), np.ones(500), np.tile([0, 1], 250), np.zeros(500)])
    arrays, static = eqx.partition(kernel, eqx.is_array)
    states = jax.vmap(kernel.init, in_axes=(None, 0))(target, jnp.zeros((1, 50), jnp.int8))

    def update(carry, accept_prob):
        arrays, memory = carry
        info = jax.tree.map(lambda leaf: leaf[None], scalar_info(accept_prob, True, 1, 1, False))
        kernel, memory = adapter.update(target, eqx.combine(arrays, static), memory, states, info)
        return (eqx.filter(kernel, eqx.is_array), memory), rated_knob(kernel, target)[1].value

    start = (arrays, adapter.init(target, kernel))
    (_, memory), path = jax.jit(lambda start, a: jax.lax.scan(update, start, a))(
        start, jnp.asarray(accept_probs, jnp.float32)
    )
    assert np.isfinite(path).all()
    assert (np.asarray(path) > 0).all()
    frozen, _ = adapter.freeze(target, kernel, memory)
    assert np.isfinite(float(rated_knob(frozen, target)[1].value))


# --- the step size goes on adapting while draws are measured ---


def test_the_kernel_is_frozen_while_it_draws(monkeypatch, run_module):
    seen, original = [], run_module.drive

    def drive(*arguments, **settings):
        adapter = settings.get("adapter")
        for chunk in original(*arguments, **settings):
            seen.append((adapter is not None, float(chunk.ensemble.kernel.step_size)))
            yield chunk

    monkeypatch.setattr(run_module, "drive", drive)
    target = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
    result = discrax.sample(KEY, target, "dmala", num_chains=3, num_warmup=20, num_samples=30, chunk_size=10)
    warming = [step_size for adapts, step_size in seen if adapts]
    drawing = [step_size for adapts, step_size in seen if not adapts]
    assert len(warming) == 2
    assert len(set(warming)) == 2  # the test can see a change
    assert drawing == [float(result.kernel.step_size)] * 3
    assert result.report.value == pytest.approx(drawing[0])


# --- path probabilities as log(1 - cumulative sum) in float32 ---


def test_long_paths_keep_their_digits(monkeypatch):
    """120 of 200 sites whose weights span many orders: the float32 ratio is that of double precision to 1e-3 nats."""
    n, length, num = 200, 120, 6
    rng = np.random.default_rng(0)
    target = targets.Bernoulli(logits=rng.normal(scale=16, size=n))
    kernel = samplers.pas(float(length)).prepare(target, tuning=False)[0]
    spy = Spy(monkeypatch, "discrax.samplers.locally_balanced").on("decide", lambda given, _: given[1:])
    spy.on("evaluate_change", lambda given, _: given[3]).on("draw_length", lambda _, out: out)
    spy.on("draw_without_replacement", lambda _, out: out[0])
    x = jax.vmap(target.space.random)(random.split(jax.random.key(3), num))

    def step(key, x):
        return kernel.step(key, target, kernel.init(target, x))

    _, seen = spy.watch(step)(random.split(KEY, num), x)
    errors, naive_errors = [], []
    for i in range(num):
        here, there = np.asarray(x)[i], np.asarray(seen["evaluate_change"][0])[i]
        path = np.asarray(seen["draw_without_replacement"][0])[i][: int(seen["draw_length"][0][i])]
        assert len(path) >= 100
        nobody = np.zeros(n, bool)
        forth, back = (
            move_weights("sqrt", at, np.asarray(evaluate(target, jnp.asarray(at)).ratios, np.float64), nobody)
            for at in (here, there)
        )
        exact = log_path_probability(back, path[::-1], here, replace=False)
        exact -= log_path_probability(forth, path, there, replace=False)
        errors.append(abs(float(seen["decide"][0][1][i]) - exact))
        weights = np.exp(np.logaddexp.reduce(forth, axis=1)).astype(np.float32)
        shares = (weights / weights.sum())[path]
        with np.errstate(invalid="ignore", divide="ignore"):
            naive = np.log(shares) - np.log(np.float32(1) - np.cumsum(shares, dtype=np.float32) + shares)
        naive_errors.append(abs(naive.sum() - log_path_probability(forth, path, there, replace=False)))
    assert max(errors) < 1e-3
    assert not max(naive_errors) < 1  # NaN or far off: the case is hard enough


# --- one accept uniform per coordinate, or one for all chains ---


def test_a_chain_moves_as_a_whole_and_by_its_own_decision():
    """4,000 chains, one step each: the number accepted is within 4.9 standard errors of its expectation."""
    rng = np.random.default_rng(1)
    J = rng.normal(size=(8, 8)) / 2
    target = targets.Ising.dense(np.triu(J, 1) + np.triu(J, 1).T)
    x = rng.integers(0, 2, 8)
    after, info = steps(samplers.dmala(4.0), target, x, 4000)
    p, is_accepted = np.asarray(info.accept_prob, np.float64), np.asarray(info.is_accepted)
    assert 0.1 < p.mean() < 0.9
    assert abs((is_accepted - p).sum()) < Z_SCORE * np.sqrt((p * (1 - p)).sum())
    moved = (np.asarray(after.x) != x).sum(axis=1)
    assert (moved[~is_accepted] == 0).all()
    np.testing.assert_array_equal(moved, info.jump)
    values = jax.vmap(lambda x: target.log_prob(target.space.embed(x)))(after.x)
    np.testing.assert_allclose(after.log_prob, values, atol=1e-4)  # half a move would have another value


# --- the type of a state changes after the first step ---

SPACES = {
    "spin": lambda: Spin(8),
    "ordinal": lambda: Ordinal(8, [0.0, 1.0, 3.0]),
    "categorical": lambda: Categorical(8, 200),
}
KERNELS = {
    "rwm": lambda: samplers.rwm(2.0),
    "gibbs": samplers.gibbs,
    "chromatic": lambda: samplers.gibbs("chromatic"),
    "gwg": lambda: samplers.gwg(2.0),
    "pas": lambda: samplers.pas(2.0),
    "dmala": samplers.dmala,
}


def structure(tree):
    return jax.tree.structure(tree), [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize(
    ("space", "x64"),
    [("spin", False), ("ordinal", False), ("categorical", False), ("spin", True)],
    ids=["spin", "ordinal", "categorical", "spin-float64"],
)
@pytest.mark.parametrize("name", list(KERNELS))
def test_a_step_changes_neither_types_nor_shapes(name, space, x64):
    """Otherwise a loop compiles twice, or not at all. Nothing is compiled here: shapes and types are traced."""
    with jax.enable_x64(x64):
        space = SPACES[space]()
        target = targets.Quadratic(space, targets.Lattice((8,), 0.5), 0.1)
        kernel, x = KERNELS[name](), jnp.zeros(8, space.dtype)
        before = jax.eval_shape(lambda: kernel.init(target, x))
        after, info = jax.eval_shape(lambda: kernel.step(KEY, target, kernel.init(target, x)))
    assert structure(after) == structure(before)
    assert [leaf.shape for leaf in info] == [()] * 6


# --- time is taken around an asynchronous call ---


def test_seconds_are_those_of_finished_work():
    """Heavy steps, compiled before: the run's own clock shows most of the time that passed around it."""
    heavy = jnp.eye(300) * 0.99

    def log_prob(e):
        power = jax.lax.fori_loop(0, 20, lambda _, matrix: matrix @ heavy, heavy * (1 + e.sum()))
        return 1e-6 * power.sum()

    target = Target.from_log_prob(log_prob, Binary(3))
    settings = {"num_chains": 2, "num_warmup": 0, "num_samples": 40}
    discrax.sample(KEY, target, OneFlip(), **settings)
    begin = time.perf_counter()
    result = discrax.sample(KEY, target, OneFlip(), **settings)
    around = time.perf_counter() - begin
    assert 0.4 * around < result.seconds < around  # a clock that does not wait shows a thousandth


# --- a constant chain is reported with full ESS ---


def test_a_constant_chain_does_not_win():
    constant = np.full((4, 500), 3.0)
    assert array_stats.ess(constant, chain_axis=0, draw_axis=1) >= 500  # what others say of it
    assert ess(constant).sum() == 0
    report = diagnose("lp", constant)
    assert (report.ess, report.ess_bulk, report.ess_tail) == (0, 0, 0)
    assert report.rhat is None
