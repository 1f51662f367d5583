"""Blocks, exact paths and ordinal moves: exact on every space they take, and a flaw in each is found."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Bool, Float, Integer

import discrax as dx
from discrax.samplers.block_gibbs import BlockGibbs, HammingBall
from discrax.samplers.exact_path import LB, ExactPAS
from discrax.samplers.ordinal import MHUniform, OrdinalGWG
from invariance.exactness import NUM_CHAINS, THRESHOLD, assert_exact, check, invariance_p_value, selected
from invariance.kernels import AnyWeight
from invariance.small_targets import QUADRATIC, SPACES, HardCore, cubic, frozen
from invariance.twins import Textbook
from repeats import repeats

pytestmark = pytest.mark.runs_long

KERNELS = {
    "block-gibbs-2": lambda _: BlockGibbs(2),
    "block-gibbs-3": lambda _: BlockGibbs(3),  # of four sites: the last block is shorter
    "hamming-ball-3-1": lambda _: HammingBall(3, 1),
    "lb": LB,
    "exact-pas-1": lambda weight: ExactPAS(1.0, weight),
    "exact-pas-2.5": lambda weight: ExactPAS(2.5, weight),
    "ordinal-gwg-1": lambda weight: OrdinalGWG(1.0, weight),
    "ordinal-gwg-2.5": lambda weight: OrdinalGWG(2.5, weight),
    "mh-uniform-1": lambda _: MHUniform(1.0),
    "mh-uniform-1.5": lambda _: MHUniform(1.5),
    "walk-by-levels": lambda _: dx.samplers.rwm(1.5, reach=2),
}


def kernel(name: str, weight: str = "sqrt") -> dx.Kernel:
    return KERNELS[name](AnyWeight(weight))


def num_sweeps(name: str, space: str = "") -> int:
    """On two levels one flip a step changes the parity nearly always; moves of all sites at once are often rejected."""
    is_one_flip = name in ("lb", "exact-pas-1") and space in ("binary", "spin")
    return 60 if is_one_flip or name.startswith(("mh-uniform", "walk")) else 12


@cache
def cubic_on(space: str, is_frozen: bool = False) -> dx.Target:
    return cubic(frozen(SPACES[space]) if is_frozen else SPACES[space])


# Neighbours in this list that differ in a weight, a length or a radius alone share a compiled program. Block Gibbs is a
# Hamming ball with another table, and an exact path of length 1 is LB, so each space has one of them.
CUBIC_CASES = [
    ("binary", "block-gibbs-3", "sqrt"),
    *[("spin", *case) for case in (("hamming-ball-3-1", "sqrt"), ("lb", "ratio"), ("lb", "power"))],
    *[("spin", "exact-pas-2.5", weight) for weight in repeats(("sqrt",), ("sqrt", "max"))],
    *[("ordinal", *case) for case in (("block-gibbs-2", "sqrt"), ("exact-pas-1", "power"), ("exact-pas-2.5", "ratio"))],
    *[("ordinal", *case) for case in (("ordinal-gwg-1", "sqrt"), ("ordinal-gwg-2.5", "max"))],
    *[
        ("ordinal", *case)
        for case in (("mh-uniform-1", "sqrt"), ("mh-uniform-1.5", "sqrt"), ("walk-by-levels", "sqrt"))
    ],
    *[("ordinal-two-levels", *case) for case in (("ordinal-gwg-1", "ratio"), ("mh-uniform-1", "sqrt"))],
    *[("categorical", *case) for case in (("hamming-ball-3-1", "sqrt"), ("exact-pas-2.5", "power"))],
]


# With the frozen and the quadratic ones below every sampler and every space occurs.
QUICK = [("spin", "hamming-ball-3-1", "sqrt"), ("spin", "lb", "ratio"), ("ordinal", "mh-uniform-1.5", "sqrt")]
HAD = {(space, name) for space, name, _ in CUBIC_CASES}  # with whatever weight: it is an array of the same program
CUBIC_CASES += [
    (space, name, "sqrt")
    for space in ("binary", "spin", "ordinal", "categorical")
    for name in ("block-gibbs-2", "hamming-ball-3-1", "lb", "exact-pas-2.5")
    if repeats((space, name) not in HAD, (space, name, "sqrt") not in CUBIC_CASES)
]


@pytest.mark.parametrize(("space", "name", "weight"), selected(CUBIC_CASES, lambda *case: case in QUICK))
def test_exact_on_cubic_targets(space, name, weight, key):
    assert_exact(kernel(name, weight), cubic_on(space), key, num_sweeps(name, space))


FROZEN_CASES = [("categorical", "hamming-ball-3-1"), ("binary", "exact-pas-2.5"), ("ordinal", "ordinal-gwg-2.5")]


@pytest.mark.parametrize(("space", "name"), selected(FROZEN_CASES, lambda _, name: name != "hamming-ball-3-1"))
def test_exact_with_frozen_sites(space, name, key):
    assert_exact(kernel(name, "max"), cubic_on(space, is_frozen=True), key)


# Local changes, exact ratios and row updates.
QUADRATIC_CASES = [("ising-graph", "block-gibbs-3"), ("qubo-dense", "exact-pas-2.5"), ("ordinal-dense", "mh-uniform-1")]


@pytest.mark.parametrize(("target", "name"), selected(QUADRATIC_CASES, lambda *case: case == QUADRATIC_CASES[0]))
def test_exact_on_quadratic_targets(target, name, key):
    assert_exact(kernel(name, "ratio"), QUADRATIC[target](), key, num_sweeps(name))


@pytest.mark.slow
def test_exact_at_half_the_inverse_temperature(key):
    assert_exact(kernel("hamming-ball-3-1"), dx.Tempered(cubic_on("binary"), 0.5), key)


@pytest.mark.slow
def test_exact_with_hard_constraints(key):
    """Log-ratios of -inf. (A random start may be impossible, so convergence is not asked for.)"""
    assert invariance_p_value(kernel("exact-pas-2.5"), HardCore(6), key) >= THRESHOLD


# --- twins, exact without their flaw ---


def _value(target: dx.Target, x: Integer[Array, " n"]) -> Float[Array, ""]:
    return target.log_prob(target.space.embed(x))


class Twin(Textbook):
    """One with a flaw of its own."""

    is_flawed: Bool[Array, ""] = eqx.field(converter=jnp.asarray, default=False)


class Ball(Twin):
    """The ball of radius 2 around all sites. The flaw: the distance of u to x is drawn with weights exp(number of
    states at that distance), as released code does.
    """

    def step(self, key, target, state):
        for_centre, for_candidate = jax.random.split(key)
        states = jnp.asarray(target.space.enumerate())

        def distances(x):
            return jnp.sum(states != x[None], axis=1)

        def draw(key, x, logits):
            return states[jax.random.categorical(key, jnp.where(distances(x) <= 2, logits, -jnp.inf))]

        counts = jnp.bincount(distances(state.x), length=states.shape[1] + 1)[distances(state.x)]
        logits = jnp.where(self.is_flawed, counts - jnp.log(counts), 0)
        u = draw(for_centre, state.x, logits)
        y = draw(for_candidate, u, jax.vmap(lambda x: _value(target, x))(states))
        one, zero = jnp.float32(1), jnp.float32(0)
        info = dx.Info(one, jnp.asarray(True), zero, one, one, jnp.asarray(False))
        return dx.State(y, _value(target, y), ()), info


class Balanced(Twin):
    """LB with g = sqrt on two levels. The flaw: Z(x) / Z(y) is left out of the acceptance, so all is accepted."""

    def propose(self, key, target, x):
        def log_weights(x):
            flips = jnp.eye(x.size, dtype=x.dtype) ^ x[None]
            return (jax.vmap(lambda y: _value(target, y))(flips) - _value(target, x)) / 2

        site = jax.random.categorical(key, log_weights(x))
        y = x.at[site].set(1 - x[site])
        totals = jax.nn.logsumexp(log_weights(x)) - jax.nn.logsumexp(log_weights(y))
        change = _value(target, y) - _value(target, x)
        return y, jnp.where(self.is_flawed, 0, totals) - change


class Box(Twin):
    """MH-uniform of radius 1. The flaw: the sizes of the boxes are left out of the acceptance."""

    def propose(self, key, target, x):
        codes = jnp.arange(target.space.num_levels)[None]

        def is_in_box(x):
            return jnp.abs(codes - x[:, None]) <= 1

        y = jax.random.categorical(key, jnp.where(is_in_box(x), 0.0, -jnp.inf), axis=1).astype(x.dtype)
        log_sizes = [jnp.sum(jnp.log(jnp.sum(is_in_box(at), axis=1))) for at in (x, y)]
        return y, jnp.where(self.is_flawed, 0, log_sizes[0] - log_sizes[1])


class Step(Twin):
    """Ordinal GWG of radius 1. The flaw: totals count a move down and one up of every site, on the grid or not."""

    def propose(self, key, target, x):
        grid = target.space.values
        widths = jnp.concatenate([grid[1:2] - grid[:1], jnp.diff(grid), grid[-1:] - grid[-2:-1]])
        top = target.space.num_levels - 1

        def log_weights(x):
            """Of moves down and up, `(n, 2)`, and their total."""
            slopes = jax.grad(target.log_prob)(target.space.embed(x)) / 2
            weights = jnp.stack([-slopes * widths[x], slopes * widths[x + 1]], axis=1)
            on_grid = jnp.where(jnp.stack([x > 0, x < top], axis=1), weights, -jnp.inf)
            return on_grid, jax.nn.logsumexp(jnp.where(self.is_flawed, weights, on_grid))

        weights, total = log_weights(x)
        pick = jax.random.categorical(key, weights.reshape(-1))
        site, is_up = pick // 2, pick % 2
        y = x.at[site].add((2 * is_up - 1).astype(x.dtype))
        back_weights, back_total = log_weights(y)
        return y, back_weights[site, 1 - is_up] - back_total - weights[site, is_up] + total


TWINS = {"ball": ("spin", Ball), "balanced": ("spin", Balanced), "box": ("ordinal", Box), "step": ("ordinal", Step)}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "box" else pytest.mark.slow) for n in TWINS])
def test_a_twin_is_exact_without_its_flaw_only(name, key):
    space, twin = TWINS[name]
    assert_exact(twin(is_flawed=False), cubic_on(space), key)
    # The flaw of the ball is the smallest: it takes the 100,000 chains that `check_kernel` has by default.
    assert not check(twin(is_flawed=True), cubic_on(space), key, num_chains=100_000 if name == "ball" else NUM_CHAINS)
