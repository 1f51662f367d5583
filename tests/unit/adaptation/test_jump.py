"""Rules that try values: on a kernel whose jump is a known function of its knobs, they find the best ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import discrax as dx
from discrax.adaptation import JumpProbes
from discrax.bench.papers.rules import GammaRule, PaperProbes, StepSearch
from discrax.core.kernel import Kernel, Knob, State, scalar_info


class Toy(Kernel):
    """Jumps exp(-sum of squared log-distances of its knobs to the best values), without any randomness."""

    width: Float[Array, ""]
    power: Float[Array, ""]
    names: tuple[str, ...] = eqx.field(static=True, default=("width", "power"))

    def init(self, target, x):
        return State(x, jnp.zeros(()), ())

    def step(self, key, target, state):
        jump = jnp.exp(-(jnp.log(self.width / BEST["width"]) ** 2) - 4 * jnp.log(self.power / BEST["power"]) ** 2)
        return state, scalar_info(0.5, True, jump, 1, False)

    def knobs(self, target):
        return {name: Knob(getattr(self, name), 1e-3, 1e3, GRIDS[name]) for name in self.names}


BEST = {"width": 20.0, "power": 0.7}
GRIDS = {"width": (0.1, 1.0, 10.0, 100.0), "power": (0.5, 1.0)}
TARGET = dx.targets.Bernoulli(np.full(3, 0.5))


def tuned(adaptation, *, num_warmup=600, names=("width", "power"), width=0.1):
    kernel = Toy(jnp.float32(width), jnp.float32(0.5), names)
    return dx.sample(
        jax.random.key(0), TARGET, kernel, num_chains=2, num_warmup=num_warmup, num_samples=2, adaptation=adaptation
    )


def test_robust_probes_find_both_knobs_from_a_bad_start():
    result = tuned("auto")
    assert float(result.kernel.width) == pytest.approx(BEST["width"], rel=0.15)
    assert float(result.kernel.power) == pytest.approx(BEST["power"], rel=0.1)
    report = result.report
    assert report.chosen == {"width": float(result.kernel.width), "power": float(result.kernel.power)}
    assert report.num_steps == 600
    assert len(report.tried) == 600 // report.window
    assert report.tried[0][0] == pytest.approx((0.1, 0.5))
    assert {round(values[0], 3) for values, _ in report.tried} >= {0.1, 1.0, 10.0, 100.0}
    assert "probes" in str(report)


@pytest.mark.slow
def test_any_scale_probes_find_the_ridge_beside_the_other_summit():
    """On a rotated Gaussian the jump has a low summit at (infinity, 1) and a high one on a ridge near (2, 0.7)."""
    target = dx.targets.LatticeGaussian.rotation(0, 100, 2.0, centre=10.0)
    result = dx.sample(jax.random.key(0), target, "ab_first", num_chains=10, num_warmup=800, num_samples=50)
    assert float(result.stats["jump"].mean()) > 45  # 31 at (1000, 1), 56 at (2, 0.7)


def test_the_papers_probes_walk_by_a_fifth_and_then_slow_down():
    result = tuned(PaperProbes(window=3), num_warmup=900, width=5.0)
    widths = np.array([values[0] for values, _ in result.report.tried])
    assert widths[:3] == pytest.approx([5.0, 6.0, 4.0])
    assert float(result.kernel.width) == pytest.approx(BEST["width"], rel=0.15)
    assert float(result.kernel.power) == pytest.approx(BEST["power"], rel=0.1)


def test_the_search_takes_five_coarse_and_nine_fine_values():
    coarse = (0.05, 0.5, 5.0, 50.0, 500.0)
    result = tuned(StepSearch(names=("width",), values=coarse, window=10), num_warmup=140)
    values = [values[0] for values, _ in result.report.tried]
    assert values[:5] == pytest.approx(coarse)
    assert values[5:] == pytest.approx([10.0 * k for k in range(1, 10)])
    assert float(result.kernel.width) == pytest.approx(20.0)


def test_the_search_may_pass_the_top_and_takes_neighbours_of_radii():
    high = tuned(StepSearch(("width",), 10, values=(0.002, 0.02, 0.2, 2.0)), num_warmup=130)
    assert [values[0] for values, _ in high.report.tried][4:] == pytest.approx([float(k) for k in range(2, 11)])
    radii = tuned(StepSearch(("width",), 10, values=(1.0, 5.0, 10.0, 15.0, 20.0, 25.0)), num_warmup=150)
    assert [values[0] for values, _ in radii.report.tried][6:] == pytest.approx([float(k) for k in range(16, 25)])


class Multiple(Toy):
    """With a knob gamma, which may be negative."""

    gamma: Float[Array, ""] = eqx.field(default=1.0, converter=jnp.float32)

    def knobs(self, target):
        return {"gamma": Knob(self.gamma, -1e3, 1e3, (1.0,))}

    def step(self, key, target, state):
        return state, scalar_info(0.5, True, jnp.exp(-((self.gamma + 1) ** 2) / 4), 1, False)


def test_gamma_changes_direction_where_the_jump_falls_and_may_change_sign():
    kernel = Multiple(jnp.float32(1), jnp.float32(1), gamma=1.0)
    result = dx.sample(
        jax.random.key(0), TARGET, kernel, num_chains=2, num_warmup=600, num_samples=2, adaptation=GammaRule(window=10)
    )
    gammas = [values[0] for values, _ in result.report.tried]
    assert gammas[:3] == pytest.approx([1.0, 1.25, 1.25 / (1 + 0.25 * 0.99)], rel=1e-4)
    assert float(result.kernel.gamma) == pytest.approx(-1.0, abs=0.4)


@pytest.mark.slow
def test_a_scale_with_an_optimal_rate_can_be_searched_by_jump_too():
    target = dx.targets.Bernoulli(np.random.default_rng(0).uniform(0.2, 0.8, 30))
    result = dx.sample(
        jax.random.key(0), target, "dmala", num_chains=50, num_warmup=280, num_samples=100, adaptation=StepSearch()
    )
    assert 0.4 < float(result.stats["accept_prob"].mean()) < 0.8
    assert set(result.report.chosen) == {"step_size"}


def test_several_rules_share_warm_up():
    result = tuned((StepSearch(("width",), 5, values=(1.0, 10.0, 100.0)), JumpProbes(("power",))), num_warmup=200)
    first, second = result.reports
    assert (first.num_steps, second.num_steps) == (100, 100)
    assert float(result.kernel.width) == pytest.approx(first.chosen["width"])
    assert float(result.kernel.power) == pytest.approx(BEST["power"], rel=0.15)


def test_kernels_without_the_knob_are_named():
    for adaptation, words in [
        (JumpProbes(("height",)), "Toy has no knob 'height', but it has width, power"),
        (GammaRule(), "Toy has no knob 'gamma'"),
        (dx.AcceptanceRate(), "Toy has no scale to tune to a rate"),
    ]:
        with pytest.raises(ValueError, match=words):
            tuned(adaptation)
    with pytest.raises(ValueError, match="has no knob to tune"):
        dx.sample(jax.random.key(0), TARGET, "gibbs", num_samples=2, num_warmup=20, adaptation=JumpProbes())
    with pytest.raises(ValueError, match="rule must be 'robust' or 'steady', but got 'fast'"):
        dx.AcceptanceRate(rule="fast")


class Sleepy(Toy):
    """Proposes nothing while its width is below 30, and is rejected while it is above 3,000."""

    def step(self, key, target, state):
        accept_prob = jnp.where(self.width < 3000, 1.0, 0.0)
        is_moving = (self.width > 30) & (self.width < 3000)
        return state, scalar_info(accept_prob, is_moving, jnp.where(is_moving, 1.0, 0.0), 1, False)

    def knobs(self, target):
        return {"width": Knob(self.width, 1e-3, 1e5, GRIDS["width"])}


@pytest.mark.parametrize(
    "rule",
    [JumpProbes(("width",), window=3), PaperProbes(("width",), window=3)],
    ids=["robust", "paper"],
)
@pytest.mark.parametrize(("width", "grid"), [(0.1, (0.1, 1.0)), (50_000.0, (20_000.0, 50_000.0))], ids=["up", "down"])
def test_where_nothing_moves_acceptance_says_which_way_to_go(rule, width, grid, monkeypatch):
    """All probes jump 0: with acceptance 1 nothing was proposed, and with 0 all was rejected."""
    monkeypatch.setitem(GRIDS, "width", grid)
    kernel = Sleepy(jnp.float32(width), jnp.float32(0.5), ("width",))
    result = dx.sample(jax.random.key(0), TARGET, kernel, num_chains=2, num_warmup=900, num_samples=2, adaptation=rule)
    assert 30 < float(result.kernel.width) < 3000


def test_a_search_whose_values_all_propose_nothing_takes_the_largest():
    kernel = Sleepy(jnp.float32(0.1), jnp.float32(0.5), ("width",))
    search = StepSearch(("width",), 3, values=(0.05, 0.5, 5.0))
    result = dx.sample(jax.random.key(0), TARGET, kernel, num_chains=2, num_warmup=36, num_samples=2, adaptation=search)
    assert float(result.kernel.width) > 5


def test_probes_of_a_path_stay_within_the_sites():
    """Values are clipped as the kernel clips them, and so is the plan; it once froze 2,828 sites on 400."""
    target = dx.targets.Bernoulli(np.full(8, 0.5))
    result = dx.sample(
        jax.random.key(0), target, "pas", num_chains=4, num_warmup=200, num_samples=5, adaptation=JumpProbes()
    )
    assert 1 <= float(result.kernel.path_length) <= 8
    assert all(1 <= values[0] <= 8 for values, _ in result.report.tried)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("gamma", [3.0, -3.0, 0.5, -0.5])
def test_gamma_goes_up_where_it_should_go_up_whatever_its_sign(gamma, sign):
    """The jump grew, so it keeps its direction."""
    rule = GammaRule(window=1)
    limits = jnp.asarray([[-1e3], [1e3]])
    plan = rule.first_plan(jnp.float32([gamma]))._replace(direction=jnp.float32(sign))
    after = rule.judge(plan, jnp.float32(1.0), jnp.asarray(True), limits)
    assert np.sign(float(after.gamma) - gamma) == sign


class _AsPrinted(GammaRule):
    """gamma (1 + delta) is called an increase below -1 too, where it is none."""

    def judge(self, plan, score, goes_up, limits):
        after = super().judge(plan, score, goes_up, limits)
        factor = jnp.where(after.direction > 0, 1 + plan.delta, 1 / (1 + plan.delta))
        return after._replace(gamma=jnp.where(plan.gamma < -1, plan.gamma * factor, after.gamma))


@pytest.mark.parametrize(("rule", "is_found"), [(GammaRule, True), (_AsPrinted, False)])
def test_the_best_gamma_is_found_below_minus_one(rule, is_found):
    """The jump is largest at -3, and gamma begins at 1."""
    limits, rule = jnp.asarray([[-1e3], [1e3]]), rule(window=1)
    plan = rule.first_plan(jnp.float32([1.0]))
    for _ in range(200):
        plan = rule.judge(plan, -jnp.abs(plan.gamma + 3), jnp.asarray(True), limits)
    assert (abs(float(plan.gamma) + 3) < 0.5) == is_found


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: StepSearch(values=()), "values must be two or more positive, increasing numbers"),
        (lambda: StepSearch(values=(1.0, -2.0)), "positive, increasing"),
        (lambda: StepSearch(values=(3.0, 2.0)), "positive, increasing"),
        (lambda: StepSearch(values=(1.0, np.nan)), "values must be finite"),
        (lambda: JumpProbes(window=0), "window must be at least 1, but got 0"),
        (lambda: JumpProbes(names="sigma"), "names must be a tuple of knobs"),
        (lambda: GammaRule(window=2.5), "window must be a whole number, but got 2.5"),
    ],
)
def test_bad_settings_are_sentences(build, words, as_a_user):
    with pytest.raises((TypeError, ValueError), match=words):
        build()
