"""Cluster moves and kernels made of others: exact on every kind of coupling, and a flaw in each is found."""

from functools import cache
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.samplers.clusters import SwendsenWang, Wolff
from discrax.samplers.composed import Cycle, Mixture, OnSites
from discrax.samplers.global_flip import GlobalFlip
from invariance.exactness import THRESHOLD, assert_exact, invariance_p_value
from invariance.small_targets import SPACES, cubic
from repeats import repeats

pytestmark = pytest.mark.runs_long

RNG = np.random.default_rng(21)
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3), (1, 3)])  # the last of them twice
HELD = np.array([[False, True, False], [False, False, True]])


def strong(*shape: int) -> np.ndarray:
    return RNG.uniform(0.1, 0.9, shape)


def field(*shape: int) -> np.ndarray:
    return 0.4 * RNG.normal(size=shape)


MATRIX = np.triu(strong(5, 5) / 2)
MATRIX = MATRIX + MATRIX.T  # with a diagonal, which couples nobody
FERROMAGNETS = {
    "lattice": dx.targets.Ising.lattice((2, 3), (0.4, strong(2, 3)), field(2, 3)),
    "periodic": dx.targets.Ising.lattice((3, 3), 0.3, periodic=True),
    "graph": dx.targets.Ising.graph(EDGES, strong(7), field(5)),
    "dense": dx.targets.Quadratic(dx.Spin(5), MATRIX, field(5)),
    "binary": dx.targets.Quadratic(dx.Binary(5), 4 * MATRIX, field(5) - 2),
    "two-labels": dx.targets.Potts.graph(EDGES, 2, strong(7), field(5, 2)),
    "potts-lattice": dx.targets.Potts.lattice((2, 2), 3, (0.8, 0.5), field(2, 2, 3)),
    "potts-graph": dx.targets.Potts.graph(EDGES, 3, strong(7)),
    "frozen-spins": dx.targets.Quadratic(
        dx.Spin((2, 3), frozen=HELD, frozen_codes=HELD.astype(int)), dx.targets.Lattice((2, 3), 0.4), 0.2
    ),
    "frozen-labels": dx.targets.Quadratic(
        dx.Categorical((2, 3), 3, frozen=HELD, frozen_codes=2 * HELD), dx.targets.Lattice((2, 3), 0.8), field(2, 3, 3)
    ),
    "mixed-levels": dx.targets.Quadratic(dx.Categorical(4, (2, 3, 4, 2)), dx.targets.Lattice((4,), 0.8), field(4, 4)),
    "uncoupled": dx.targets.Quadratic(dx.Spin(4), np.zeros((4, 4)), field(4)),
}
FERROMAGNETS["half-as-cold"] = dx.Tempered(FERROMAGNETS["frozen-labels"], 0.5)
KERNELS = {"swendsen-wang": SwendsenWang, "wolff": Wolff}
QUICK = [("lattice", "swendsen-wang"), ("graph", "wolff")]
# Which bonds a target has is the business of what both kernels share, so each kind of coupling has one of them. What
# labels a cluster may have is their own: two or more, with fields or without, frozen, of different levels.
CASES = [
    *[(target, name) for target in ("periodic", "potts-lattice", "frozen-spins", "mixed-levels") for name in KERNELS],
    *[(target, "swendsen-wang") for target in ("lattice", "dense", "potts-graph", "frozen-labels")],
    *[(target, "wolff") for target in ("graph", "binary", "two-labels", "half-as-cold", "uncoupled")],
]
CASES += repeats([], [case for case in product(FERROMAGNETS, KERNELS) if case not in CASES])


@pytest.mark.parametrize(
    ("target", "name"), [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in CASES]
)
def test_clusters_keep_the_law(target, name, key):
    """Wolff changes one cluster a step, and flips that one always where there is no field."""
    assert_exact(KERNELS[name](), FERROMAGNETS[target], key, num_sweeps=12 if name == "swendsen-wang" else 40)


# --- kernels made of others ---

S = dx.samplers
MASK = np.array([[True, False, True], [False, True, False]])
COMPOSED = {
    "swendsen-wang-dmala": ("lattice", lambda: S.cycle("swendsen_wang", S.dmala(2.0))),
    "weighted": ("half-as-cold", lambda: S.mixture("wolff", S.pas(2.5), "gibbs", weights=[1, 2, 3])),
    "nested": ("potts-graph", lambda: S.cycle(S.mixture("gibbs", "swendsen_wang"), "global_flip")),
    "blocks-among-frozen": ("frozen-spins", lambda: S.cycle(S.on_sites("gibbs", MASK), S.on_sites("wolff", ~MASK))),
}
COMPOSED |= repeats(
    {},
    {
        "three": ("graph", lambda: S.cycle("wolff", S.pas(2.5), S.gibbs("systematic"))),
        "blocks": ("lattice", lambda: S.cycle(S.on_sites("swendsen_wang", MASK), S.on_sites(S.pas(1.5), ~MASK))),
    },
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "swendsen-wang-dmala" else pytest.mark.slow) for n in COMPOSED],
)
def test_kernels_made_of_others_keep_the_law(name, key):
    target, build = COMPOSED[name]
    assert_exact(build(), FERROMAGNETS[target], key, num_sweeps=30)


@cache
def cubic_on(space: str) -> dx.Target:
    return cubic(SPACES[space])


@pytest.mark.slow
@pytest.mark.parametrize("space", repeats(("spin", "ordinal", "categorical"), SPACES))
def test_a_global_flip_keeps_the_law_of_any_space(space, key):
    """It reaches few states by itself, so convergence is asked of it with another."""
    assert invariance_p_value(GlobalFlip(), cubic_on(space), key) >= THRESHOLD
    if space in repeats(("spin", "categorical"), SPACES):
        assert_exact(S.cycle("global_flip", "gibbs"), cubic_on(space), key, num_sweeps=30)


# --- twins, exact without their flaw ---


class WeakBonds(SwendsenWang):
    """1 - exp(-J) in place of 1 - exp(-2 J)."""

    def open_probability(self, strengths):
        return super().open_probability(strengths / 2)


class NoFields(SwendsenWang):
    """Labels are not weighted by the fields of their cluster."""

    def relabel(self, key, space, x, roots, fields):
        return super().relabel(key, space, x, roots, jnp.zeros_like(fields))


class AlwaysFlips(Wolff):
    """A cluster is flipped whatever its field."""

    def relabel(self, key, space, x, roots, fields):
        return super().relabel(key, space, x, roots, jnp.zeros_like(fields))


class OneKey(Cycle):
    """All parts are given the same key."""

    def keys(self, key):
        return [key for _ in self.kernels]


class Stale(Cycle):
    """Log-ratios are those of the state that a part left, whatever others did since."""

    def arrive(self, part, target, state):
        return state


class ChoosesByState(Mixture):
    """Which kernel is drawn depends on where the chain is."""

    def step(self, key, target, state):
        weights = jnp.where(state.x.reshape(-1)[0] == 0, jnp.array([0.9, 0.1]), jnp.array([0.1, 0.9]))
        return Mixture(self.kernels, weights.astype(jnp.float32)).step(key, target, state)


class MovesByState(OnSites):
    """Which sites are moved depends on their own codes."""

    def seen(self, target, x):
        return OnSites.seen(_with_mask(self, x == 0), target, x)


def _with_mask(kernel: OnSites, mask) -> OnSites:
    return dx.core.kernel.replaced(kernel, moves=mask)


class OneWay(GlobalFlip):
    """Labels are always shifted by one, and the way back is by two."""

    def shift(self, key, num_levels):
        return jnp.asarray(1)


def two_walks(kind: type[Cycle]) -> Cycle:
    return kind((S.rwm(1.0), S.rwm(1.0)))


def half_and_half(kind: type[Mixture]) -> Mixture:
    return kind((S.rwm(1.0), GlobalFlip()), jnp.array([0.5, 0.5]))


TWINS = {
    "weak bonds": ("lattice", WeakBonds, SwendsenWang),
    "no fields": ("lattice", NoFields, SwendsenWang),
    "always flips": ("graph", AlwaysFlips, Wolff),
    "one key": ("lattice", lambda: two_walks(OneKey), lambda: two_walks(Cycle)),
    "stale": ("lattice", *(lambda kind=kind: kind((S.rwm(2.0), S.dmala(2.0))) for kind in (Stale, Cycle))),
    "chooses by state": ("lattice", *(lambda kind=kind: half_and_half(kind) for kind in (ChoosesByState, Mixture))),
    "moves by state": ("lattice", *(lambda kind=kind: kind(S.gibbs(), MASK) for kind in (MovesByState, OnSites))),
    "one way": ("potts-lattice", OneWay, GlobalFlip),
}
SLOW = ("stale", "no fields", "always flips", "chooses by state", "moves by state", "one way")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in TWINS])
def test_a_twin_is_invariant_without_its_flaw_only(name, key):
    target, flawed, sound = TWINS[name]
    assert invariance_p_value(sound(), FERROMAGNETS[target], key) >= THRESHOLD
    assert invariance_p_value(flawed(), FERROMAGNETS[target], key) < THRESHOLD
