"""Adaptation to an acceptance rate, on acceptance curves that are known and on a target."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax
from discrax import AcceptanceRate, samplers, targets
from discrax.adaptation.acceptance import scale_of
from discrax.bench.papers.rules import PaperRate
from discrax.core.kernel import rated_knob, scalar_info
from discrax.samplers.selection import longest

N = 1000
TARGET = targets.Bernoulli(np.full(N, 0.5))
STATES = jax.vmap(samplers.dmala().init, in_axes=(None, 0))(TARGET, jnp.zeros((1, N), jnp.int8))
WANTED = -30 * np.log(0.574)  # the path length at which exp(-R / 30) is 0.574


RULES = {"robust": AcceptanceRate(), "paper": PaperRate(), "steady": AcceptanceRate(rule="steady")}


def exponential(kernel):
    return jnp.exp(-kernel.path_length / 30)


class Constant(eqx.Module):
    """An acceptance that no scale changes."""

    rate: jax.Array = eqx.field(converter=jnp.float32)

    def __call__(self, kernel):
        return self.rate


@eqx.filter_jit
def walk(adapter, kernel, memory, curve, epsilons):
    """One program for all runs of a rule on a curve that are as long."""
    arrays, static = eqx.partition(kernel, eqx.is_array)

    def one(carry, epsilon):
        arrays, memory = carry
        kernel = eqx.combine(arrays, static)
        accept_prob = jnp.clip(curve(kernel) + epsilon, 0, 1)
        info = jax.tree.map(lambda leaf: leaf[None], scalar_info(accept_prob, True, 1, 1, False))
        kernel, memory = adapter.update(TARGET, kernel, memory, STATES, info)
        return (eqx.filter(kernel, eqx.is_array), memory), jnp.exp(scale_of(TARGET, kernel)[1])

    (arrays, memory), scales = jax.lax.scan(one, (arrays, memory), epsilons)
    return eqx.combine(arrays, static), memory, scales


def tune(adapter, kernel, curve, num_steps: int, noise: float = 0.05):
    """Runs the adapter on an acceptance curve with noise; returns the path of the scale and the frozen kernel."""
    adapter = adapter.plan(TARGET, kernel, num_steps)
    epsilons = noise * jax.random.normal(jax.random.key(0), (num_steps,))
    kernel, memory, scales = walk(adapter, kernel, adapter.init(TARGET, kernel), curve, epsilons)
    frozen, report = adapter.freeze(TARGET, kernel, memory)
    return np.asarray(scales), frozen, report


def pas(length: float = 1.0):
    return samplers.pas(length).prepare(TARGET, tuning=True)[0]


@pytest.mark.parametrize(("rule", "start"), [("robust", 1.0), ("robust", 150.0), ("paper", 1.0), ("paper", 40.0)])
def test_both_rules_find_the_wanted_rate(rule, start):
    """From far below and far above, within 15% of the right scale after 300 noisy steps."""
    _, kernel, report = tune(RULES[rule], pas(start), exponential, 300)
    assert float(kernel.path_length) == pytest.approx(WANTED, rel=0.15)
    assert report.reached_rate == pytest.approx(0.574, abs=0.02)


def written_out(
    rule: str, accept_probs: np.ndarray, rate: float, start: float, most: float
) -> tuple[list, float, float]:
    """The scales of a path length, and the averages of their logarithm and of the acceptance, in double precision."""
    scale, crossings, last, mean, mean_rate, path = start, 0, 0.0, 0.0, 0.0, []
    for t, accept_prob in enumerate(accept_probs, start=1):
        error = accept_prob - rate
        crossings += error * last < 0
        factor = np.exp(error / (rate * np.sqrt(1 + crossings)))
        scale = scale + error if rule == "paper" else scale * factor
        scale, last = float(np.clip(scale, 1, most)), error
        share = 5 / (t + 4)  # later steps weigh more, like t^4
        mean += share * (np.log(scale) - mean)
        mean_rate += share * (accept_prob - mean_rate)
        path.append(scale)
    return path, mean, mean_rate


@pytest.mark.parametrize("rule", ["robust", "paper"])
def test_both_rules_are_their_formulas(rule):
    kernel = pas(8.0)
    noise = 0.3 * np.asarray(jax.random.normal(jax.random.key(0), (60,)))
    accept_probs = np.clip(0.6 + noise, 0, 1)
    scales, frozen, report = tune(RULES[rule], kernel, Constant(0.6), 60, noise=0.3)
    path, mean, rate = written_out(rule, accept_probs, 0.574, 8.0, longest(kernel.capacity, N))
    np.testing.assert_allclose(scales, path, rtol=1e-3)
    assert float(frozen.path_length) == pytest.approx(np.exp(mean) if rule == "robust" else path[-1], rel=1e-3)
    assert report.reached_rate == pytest.approx(rate, abs=1e-4)


def test_robust_rule_is_faster_than_the_papers_from_one_site():
    """The paper's rule grows by less than 1 - 0.574 a step, so R = 16 takes it 36 steps at least; ours multiplies."""
    arrival = {}
    for rule in ("robust", "paper"):
        scales, *_ = tune(RULES[rule], pas(), exponential, 300)
        arrival[rule] = int(np.argmax(scales > 0.8 * WANTED))
    assert arrival["paper"] > 30
    assert 0 < arrival["robust"] < arrival["paper"] / 3


def test_robust_rule_freezes_an_average_that_is_steadier_than_the_path():
    scales, kernel, _ = tune(AcceptanceRate(), pas(), exponential, 300, noise=0.2)
    late = np.log(scales[-100:])
    assert abs(float(jnp.log(kernel.path_length)) - np.log(WANTED)) < np.abs(late - np.log(WANTED)).max()
    assert late.std() > 0


def test_paper_rule_freezes_its_last_length():
    scales, kernel, _ = tune(PaperRate(), pas(), exponential, 300)
    assert float(kernel.path_length) == pytest.approx(scales[-1], rel=1e-5)


@pytest.mark.parametrize("rule", ["robust", "paper"])
@pytest.mark.parametrize("rate", [0.0, 1.0], ids=["never-accepted", "always-accepted"])
def test_scale_is_clipped_where_the_rate_cannot_be_reached(rule, rate):
    kernel = pas(5.0)
    scales, frozen, report = tune(RULES[rule], kernel, Constant(rate), 600, noise=0.0)
    most = longest(kernel.capacity, N)
    assert scales[-1] == pytest.approx(1 if rate == 0 else most)
    assert 1 <= float(frozen.path_length) <= most
    assert report.reached_rate == pytest.approx(rate, abs=1e-3)


@pytest.mark.parametrize("rate", [0.0, 1.0], ids=["never-accepted", "always-accepted"])
def test_step_size_stays_a_positive_number_where_the_rate_cannot_be_reached(rate):
    _, frozen, _ = tune(AcceptanceRate(), samplers.dmala(), Constant(rate), 2000, noise=0.0)
    step_size = float(frozen.step_size)
    assert np.isfinite(step_size)
    assert (0 < step_size < 0.05) if rate == 0 else step_size > 100


def test_report_says_what_was_asked_and_reached():
    _, kernel, report = tune(AcceptanceRate(0.3), pas(), exponential, 200)
    assert report.parameter == "path_length"
    assert report.value == pytest.approx(float(kernel.path_length))
    assert report.asked_rate == 0.3
    assert report.reached_rate == pytest.approx(0.3, abs=0.03)
    assert (report.num_steps, report.rule) == (200, "robust")
    text = str(report)
    assert f"path_length = {report.value:.4g}" in text
    assert "asked for acceptance 0.300" in text
    assert f"reached {report.reached_rate:.3f} in 200 steps, robust rule" in text


@pytest.mark.parametrize(
    "kernel", [samplers.rwm(), samplers.gwg(), samplers.pas(), samplers.dmala()], ids=lambda k: type(k).__name__
)
def test_the_kernel_knows_its_own_optimum(kernel):
    expected = 0.234 if isinstance(kernel, samplers.rwm) else 0.574
    assert rated_knob(kernel, TARGET)[1].rate == expected
    assert float(AcceptanceRate().plan(TARGET, kernel, 10).rate) == pytest.approx(expected)
    assert float(AcceptanceRate(0.4).plan(TARGET, kernel, 10).rate) == pytest.approx(0.4)


PROBS = np.random.default_rng(0).uniform(0.15, 0.85, 30)


@pytest.mark.parametrize(
    ("sampler", "adaptation"),
    [
        pytest.param("pas", AcceptanceRate(), marks=pytest.mark.slow),
        pytest.param("rwm", PaperRate(0.4), marks=pytest.mark.slow),
        ("dmala", AcceptanceRate(0.5)),
    ],
    ids=["pas-robust", "rwm-paper", "dmala-robust"],
)
def test_draws_have_the_wanted_rate(sampler, adaptation):
    """Measured after warm-up with 50 chains and 100 draws: a standard error of about 0.01."""
    result = discrax.sample(
        jax.random.key(1),
        targets.Bernoulli(PROBS),
        sampler,
        num_chains=50,
        num_warmup=300,
        num_samples=100,
        adaptation=adaptation,
        keep="moments",
    )
    _, knob = rated_knob(result.kernel, result.target)
    asked = knob.rate if adaptation.rate is None else adaptation.rate
    assert result.report.asked_rate == asked
    assert result.mean_stats["accept_prob"].mean() == pytest.approx(asked, abs=0.05)
    assert result.report.value == pytest.approx(float(knob.value))
    assert result.report.rule == getattr(adaptation, "rule", "paper")


def test_the_papers_rule_for_a_time_counts_expected_moves_and_is_clamped_before_the_logarithm():
    """n <- max(1, tau Z + 3 (A - 0.574)), tau = n / Z; here every rate is 1, so Z = 1000."""
    kernel = samplers.dlmc(0.005, per_rate=False)
    adapter = PaperRate().plan(TARGET, kernel, 10)
    memory = adapter.init(TARGET, kernel)
    info = jax.tree.map(lambda leaf: leaf[None], scalar_info(1.0, True, 1, 1, False))
    faster, memory = adapter.update(TARGET, kernel, memory, STATES, info)
    assert float(faster.step_size) == pytest.approx((5 + 3 * (1 - 0.574)) / N, rel=1e-4)
    rejected = info._replace(accept_prob=jnp.zeros(1))
    for _ in range(5):
        faster, memory = adapter.update(TARGET, faster, memory, STATES, rejected)
    assert float(faster.step_size) == pytest.approx(1 / N, rel=1e-4)
    for tuned in (samplers.dmala(), samplers.dlmcf()):
        PaperRate().plan(TARGET, tuned, 10)
