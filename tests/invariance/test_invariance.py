"""Every sampler leaves its target invariant and reaches it, on every space, with every weight function."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Integer

import discrax as dx
from invariance.exactness import THRESHOLD, assert_exact, invariance_p_value, selected
from invariance.kernels import WEIGHTS, AnyWeight, kernel
from invariance.small_targets import QUADRATIC, SPACES, HardCore, cubic, frozen
from repeats import repeats

pytestmark = pytest.mark.runs_long


@cache
def cubic_on(space: str, is_frozen: bool = False) -> dx.Target:
    return cubic(frozen(SPACES[space]) if is_frozen else SPACES[space])


# Log-ratios of first order, on all spaces. Neighbours in this list share a compiled program, and a worker takes
# neighbours. A path of one site is the same program for GWG and PAS, so each space has one of them.
IN_ALL_SPACES = [
    *[("rwm-2.5", "sqrt"), ("gibbs-random", "sqrt"), ("pas-2", "sqrt")],
    *[(name, weight) for name in ("pas-2.5", "gwg-2.5", "dmala") for weight in WEIGHTS],
]
CUBIC_CASES = [
    *[("binary", *case) for case in [*IN_ALL_SPACES, ("gwg-1", "ratio")]],
    *[("spin", *case) for case in [*IN_ALL_SPACES, ("pas-1", "power"), ("gibbs-systematic", "sqrt")]],
    *[("ordinal", *case) for case in [*IN_ALL_SPACES, ("pas-1", "max"), ("rwm-1", "sqrt")]],
    *[("categorical", *case) for case in [*IN_ALL_SPACES, ("gwg-1", "min"), ("gibbs-systematic", "sqrt")]],
    *[("ordinal-two-levels", *case) for case in (("gibbs-random", "sqrt"), ("pas-2.5", "ratio"), ("dmala", "max"))],
    *[("categorical-two-levels", *case) for case in (("rwm-2.5", "sqrt"), ("gwg-2.5", "min"), ("dmala", "power"))],
]


# With the frozen, quadratic and tempered ones below every sampler, space, weight function and structure occurs.
QUICK_CUBIC = [
    *[("binary", "pas-2", "sqrt"), ("binary", "pas-2.5", "ratio"), ("spin", "gwg-2.5", "power")],
    *[("ordinal", "dmala", "max"), ("ordinal-two-levels", "gibbs-random", "sqrt")],
    ("categorical-two-levels", "gwg-2.5", "min"),
]


@pytest.mark.parametrize(("space", "name", "weight"), selected(CUBIC_CASES, lambda *case: case in QUICK_CUBIC))
def test_exact_where_ratios_are_first_order(space, name, weight, key):
    assert_exact(kernel(name, weight), cubic_on(space), key)


@pytest.mark.parametrize("name", dx.samplers.WEIGHT_FUNCTIONS)
@pytest.mark.parametrize("build", [dx.samplers.gwg, dx.samplers.pas, dx.samplers.dmala], ids=["gwg", "pas", "dmala"])
def test_a_name_stands_for_its_weight_function(build, name):
    """What ties the cases above, which choose the weight function by a leaf, to kernels built by name."""
    log_ratio = jnp.linspace(-3, 3, 7)
    by_name = dx.samplers.Power(0.7) if name == "power" else build(balancing=name).balancing
    np.testing.assert_array_equal(by_name(log_ratio), AnyWeight(name)(log_ratio))
    assert float(build(balancing=name).balancing(jnp.float32(0.8))) == pytest.approx(
        {"sqrt": 0.4, "ratio": -np.log1p(np.exp(-0.8)), "min": 0.0, "max": 0.8, "power": 0.4}[name]
    )


FROZEN_CASES = [
    *[("binary", name) for name in ("rwm-2.5", "pas-2.5")],
    *[("spin", name) for name in ("gibbs-random", "gwg-2.5", "dmala")],
    *[("ordinal", name) for name in ("rwm-1", "gibbs-systematic")],
    *[("categorical", name) for name in ("pas-2.5", "dmala")],
]


QUICK_FROZEN = [("ordinal", "gibbs-systematic"), ("categorical", "pas-2.5"), ("binary", "rwm-2.5")]


@pytest.mark.parametrize(("space", "name"), selected(FROZEN_CASES, lambda *case: case in QUICK_FROZEN))
def test_exact_with_frozen_sites(space, name, key):
    assert_exact(kernel(name, "max"), cubic_on(space, is_frozen=True), key)


# Exact ratios, local changes, row updates and colourings.
QUADRATIC_CASES = [
    *[("ising-dense", name) for name in ("gibbs-random", "pas-2.5")],
    *[("ising-graph", name) for name in ("gibbs-chromatic", "gibbs-random")],
    *[("ising-lattice", name) for name in ("rwm-2.5", "gibbs-random", "dmala")],
    *[("ising-periodic", name) for name in ("gibbs-chromatic", "gibbs-systematic")],
    *[("qubo-dense", name) for name in ("rwm-1", "dmala")],
    *[("qubo-sparse", name) for name in ("gibbs-chromatic", "gwg-2.5")],
    *[("potts-lattice", name) for name in ("gibbs-random", "gibbs-chromatic")],
    *[("potts-graph", name) for name in ("rwm-2.5", "pas-2.5")],
    *[("ordinal-dense", name) for name in ("rwm-2.5", "gibbs-random", "dmala")],
    ("ordinal-frozen", "gibbs-chromatic"),
    *[("categorical-dense", name) for name in ("gibbs-random", "gwg-2.5")],
    *[("rows-eight-sites", name) for name in ("rwm-1", "pas-1")],
    ("rows-binary", "gwg-2.5"),
    ("rows-spin", "pas-2.5"),
    ("rows-categorical", "pas-2.5"),
    ("many-frozen", "rwm-2.5"),
]


QUICK_QUADRATIC = [("ising-dense", "pas-2.5"), ("ising-graph", "gibbs-chromatic"), ("potts-lattice", "gibbs-random")]


@pytest.mark.parametrize(("target", "name"), selected(QUADRATIC_CASES, lambda *case: case in QUICK_QUADRATIC))
def test_exact_on_quadratic_targets(target, name, key):
    assert_exact(kernel(name, "ratio"), QUADRATIC[target](), key)


class StartedAt(dx.Kernel):
    """A kernel whose states were made at another inverse temperature than it steps at."""

    kernel: dx.Kernel
    beta: Float[Array, ""]

    def init(self, target: dx.Target, x: Integer[Array, "*shape"]) -> dx.State:
        assert isinstance(target, dx.Tempered)
        return self.kernel.init(dx.Tempered(target.target, self.beta), x)

    def step(self, key, target: dx.Target, state: dx.State) -> tuple[dx.State, dx.Info]:
        return self.kernel.step(key, target, state)


# GWG has the cache of PAS, and how Gibbs chooses its sites changes nothing of a state.
TEMPERED_CASES = [
    *[("cubic", name) for name in ("gibbs-random", "dmala", *repeats((), ("gwg-2.5",)))],
    *[("ising-lattice", name) for name in ("rwm-2.5", *repeats((), ("gibbs-systematic",)))],
    *repeats([], [("potts-graph", name) for name in ("gibbs-chromatic", "dmala")]),
    ("rows-spin", "pas-2.5"),
]


QUICK_TEMPERED = [("cubic", "dmala")]


@pytest.mark.parametrize(("target", "name"), selected(TEMPERED_CASES, lambda *case: case in QUICK_TEMPERED))
def test_exact_at_half_the_inverse_temperature_with_states_made_at_twice(target, name, key):
    """Caches hold untempered values, so a state may be carried from one temperature to another."""
    base = cubic_on("spin") if target == "cubic" else QUADRATIC[target]()
    ready, _ = kernel(name, "ratio").prepare(base, tuning=False)
    assert_exact(StartedAt(ready, jnp.asarray(2.0)), dx.Tempered(base, 0.5), key)


@pytest.mark.slow
def test_exact_with_paths_over_all_sites(key):
    assert_exact(dx.samplers.pas(3.0, AnyWeight("sqrt")), cubic_on("ordinal"), key)


def test_invariant_with_paths_over_all_sites_of_two_levels(key):
    """Nearly every move flips all four sites, so convergence takes too long to ask for."""
    assert invariance_p_value(dx.samplers.pas(4.0), cubic_on("spin"), key) >= THRESHOLD


@pytest.mark.parametrize(
    "name",
    [
        "pas-3.5",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("dmala", "gibbs-random", *repeats((), ("rwm-2.5", "gwg-2.5")))
        ),
    ],
)
def test_exact_with_hard_constraints(name, key):
    """Log-ratios of -inf: fewer sites may be able to move than a path is long. (A random start may be impossible.)"""
    assert invariance_p_value(kernel(name, "sqrt"), HardCore(6), key) >= THRESHOLD
