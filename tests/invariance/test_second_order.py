"""The Langevin, continuous-time and Gaussian auxiliary families are exact on every space they take."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import discrax as dx
from discrax.adaptation.windows import turn
from discrax.core.kernel import replaced
from discrax.curvature.metric import DenseRoot, Edges, Metric, SparseRoot
from discrax.samplers.langevin import total_log_rate
from invariance.exactness import THRESHOLD, assert_exact, check, invariance_p_value, selected
from invariance.kernels import WEIGHTS, AnyWeight
from invariance.small_targets import QUADRATIC, SPACES, cubic, frozen, symmetric
from repeats import repeats

pytestmark = pytest.mark.runs_long

# So many show noise of another covariance, whose flaw is small.
NUM_CHAINS = repeats(40_000, 100_000)


@cache
def cubic_on(space: str, is_frozen: bool = False) -> dx.Target:
    return cubic(frozen(SPACES[space]) if is_frozen else SPACES[space])


def matrix_for(target: dx.Target) -> np.ndarray:
    """Any symmetric matrix will do for exactness."""
    one_hot = isinstance(target.space, dx.Categorical)
    return symmetric(target.space.num_sites * (target.space.num_levels if one_hot else 1), 0.6)


def build(name: str, target: dx.Target, weight: str = "sqrt") -> dx.Kernel:
    g, n = AnyWeight(weight), target.space.num_sites
    match name:
        case "dlmc" | "dlmcf":
            return getattr(dx.samplers, name)(2.0, g)
        case "dlmc-fixed":
            return dx.samplers.dlmc(0.7, g, per_rate=False)
        case "dlp_trace":
            return dx.samplers.dlp_trace(3.0, g, diagonal=np.linspace(0.5, 2, n))
        case "avg":
            return dx.samplers.avg(4.0)
        case "pavg":
            return dx.samplers.pavg(4.0, matrix_for(target), -0.7)
        case "ab_first":
            return dx.samplers.ab_first(3.0, 0.8)
        case _:
            return getattr(dx.samplers, name)(3.0, 0.8, matrix_for(target))


CASES = [
    *[(space, name, "sqrt") for space in SPACES for name in ("dlmc", "dlmcf", "dlp_trace", "avg", "pavg")],
    *[("spin", name, weight) for name in ("dlmc", "dlmcf") for weight in WEIGHTS if weight != "sqrt"],
    *[("categorical", name, weight) for name in ("dlmc", "dlmcf") for weight in ("ratio", "max")],
    ("binary", "dlmc-fixed", "min"),
    *[
        (space, name, "sqrt")
        for space in SPACES
        for name in ("ab_first", "ab_diagonal", "ab_shift", "ab_max", "ab_trace")
    ],
]


# With the frozen and the prepared ones below every sampler occurs (ab_shift and ab_max are ab_trace, another matrix).
QUICK = [("spin", "dlmc", "max"), ("categorical", "ab_trace", "sqrt"), ("ordinal", "ab_first", "sqrt")]


@pytest.mark.parametrize(("space", "name", "weight"), selected(CASES, lambda *case: case in QUICK))
def test_exact_where_ratios_are_first_order(space, name, weight, key):
    target = cubic_on(space)
    assert_exact(build(name, target, weight), target, key, num_chains=NUM_CHAINS)


FROZEN = [("categorical", "dlmcf"), ("ordinal", "ab_trace"), *repeats([], [("spin", "dlmc"), ("categorical", "pavg")])]


@pytest.mark.parametrize(("space", "name"), selected(FROZEN, lambda space, name: name in ("dlmcf", "ab_trace")))
def test_exact_with_frozen_sites(space, name, key):
    target = cubic_on(space, is_frozen=True)
    assert_exact(build(name, target), target, key, num_chains=NUM_CHAINS)


PREPARED = [
    (target, name) for target in ("ising-lattice", "ordinal-dense") for name in ("pavg", "ab_trace", "dlp_trace")
]
QUICK_PREPARED = [("ising-lattice", "pavg"), ("ising-lattice", "dlp_trace")]


@pytest.mark.parametrize(("target", "name"), selected(PREPARED, lambda *case: case in QUICK_PREPARED))
def test_exact_as_prepared_from_a_quadratic_target_at_another_temperature(target, name, key):
    target = QUADRATIC[target]()
    kernel, _ = dx.samplers.get_sampler(name).build().prepare(target, tuning=False)
    if name == "dlp_trace":
        kernel = replaced(kernel, step_size=jnp.float32(3.0))
    else:
        for knob, value in {"sigma": 3.0, "alpha": 0.9, "step_size": 4.0}.items():
            if knob in kernel.knobs(target):
                kernel = turn(target, kernel, (knob,), jnp.float32([value]))
    assert_exact(kernel, dx.Tempered(target, 0.5), key)


def sparse_metrics() -> dict[str, Metric]:
    W = symmetric(4, 0.8)
    off = np.triu(W, 1)
    edges = np.argwhere(off)
    strength = np.abs(W - np.diag(np.diag(W))).sum(axis=1)
    shift = np.full(4, 0.2 - np.linalg.eigvalsh(W)[0])
    L = np.linalg.cholesky(W + np.diag(shift))
    return {
        "edges": Edges.of(edges, off[off != 0], strength + 0.2, strength + 0.2 - np.diag(W)),
        "sparse-root": SparseRoot.of(*np.nonzero(L), L[np.nonzero(L)], shift),
    }


@pytest.mark.parametrize("kind", ["edges", pytest.param("sparse-root", marks=pytest.mark.slow)])
def test_exact_with_sparse_factors(kind, key):
    kernel = replaced(dx.samplers.ab_trace(3.0, 0.8), metric=sparse_metrics()[kind])
    assert_exact(kernel, cubic_on("spin"), key, num_chains=NUM_CHAINS)


class WrongProduct(Metric):
    """A metric whose noise has another covariance than that by which it multiplies."""

    metric: DenseRoot

    @property
    def diagonal(self) -> Float[Array, "*n"]:
        return self.metric.diagonal

    def product(self, z):
        return 0.5 * self.metric.product(z)

    def draw(self, key, shape):
        return self.metric.draw(key, shape)


def test_any_scale_with_noise_of_another_covariance_is_not_exact(key):
    target = cubic_on("spin")
    kernel = build("ab_trace", target)
    flawed = replaced(kernel, metric=WrongProduct(kernel.metric))
    assert not check(flawed, target, key, num_chains=NUM_CHAINS)


class TimeOfTheOtherState(dx.Kernel):
    """DLMC that takes the rate of x for the way back from y, as a shared time would."""

    kernel: dx.Kernel

    def init(self, target, x):
        return self.kernel.init(target, x)

    def step(self, key, target, state):
        time = self.kernel.step_size / jnp.exp(total_log_rate(target, state, self.kernel.balancing))
        kernel = dx.samplers.dlmc(1.0, self.kernel.balancing, per_rate=False)
        return kernel.with_knobs(step_size=time).step(key, target, state)


@pytest.mark.slow
def test_continuous_time_with_the_rate_of_the_other_state_is_not_invariant(key):
    target = cubic_on("spin")
    assert invariance_p_value(TimeOfTheOtherState(build("dlmc", target)), target, key) < THRESHOLD


def test_the_unadjusted_kernel_is_not_exact_and_gets_nearer_with_smaller_steps(key):
    """Which is why `is_exact` is False and the summary says so."""
    target = cubic_on("spin")
    far, near = (
        dx.exact.check_kernel(dx.samplers.dula(step), target, key=key, num_convergence_steps=400) for step in (4.0, 1.0)
    )
    assert not far
    assert far.invariance_p_value < THRESHOLD
    assert near.total_variation < far.total_variation / 2
