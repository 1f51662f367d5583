"""What every row of the registry promises, whatever it samples: the same tests for all of them.

One `Run` per kernel, space and precision is shared by the tests of this file: 200 steps of a few chains that start
from one state of a tempered, partly frozen, non-quadratic target. One program makes them all, and the tests call it
again with other arguments, so that what must be equal is equal bit for bit.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import discrax as dx
from repeats import repeats

NUM_STEPS, NUM_CHAINS = 200, 4
BETA = 0.7

KERNELS: dict[str, Callable[[float], dx.Kernel]] = {  # of a scale
    "rwm": dx.samplers.rwm,
    "gibbs-random": lambda _: dx.samplers.gibbs("random"),
    "gibbs-systematic": lambda _: dx.samplers.gibbs("systematic"),
    "gibbs-chromatic": lambda _: dx.samplers.gibbs("chromatic"),
    "block_gibbs": lambda _: dx.samplers.block_gibbs(2),
    "hamming_ball": lambda _: dx.samplers.hamming_ball(3, 1),
    "lb": lambda _: dx.samplers.lb(),
    "pas_exact": dx.samplers.pas_exact,
    "gwg": dx.samplers.gwg,
    "gwg_ordinal": dx.samplers.gwg_ordinal,
    "mh_uniform": dx.samplers.mh_uniform,
    "pas": dx.samplers.pas,
    "dmala": dx.samplers.dmala,
    "dula": dx.samplers.dula,
    "dlp_trace": lambda scale: dx.samplers.dlp_trace(scale, diagonal=np.linspace(0.5, 2, 6)),
    "dlmc": dx.samplers.dlmc,
    "dlmcf": dx.samplers.dlmcf,
    "avg": dx.samplers.avg,
    "pavg": lambda scale: dx.samplers.pavg(scale, coupling()),
    "ab_first": lambda scale: dx.samplers.ab_first(scale, 0.7),
    "ab_diagonal": lambda scale: dx.samplers.ab_diagonal(scale, 0.7, np.linspace(-1.0, 0.5, 6)),
    "ab_shift": lambda scale: dx.samplers.ab_shift(scale, 0.7, coupling()),
    "ab_max": lambda scale: dx.samplers.ab_max(scale, 0.7, coupling()),
    "ab_trace": lambda scale: dx.samplers.ab_trace(scale, 0.7, coupling()),
    "swap": dx.samplers.swap,
    "swap_uniform": dx.samplers.swap_uniform,
    "swendsen_wang": lambda _: dx.samplers.swendsen_wang(),
    "wolff": lambda _: dx.samplers.wolff(),
    "global_flip": lambda _: dx.samplers.global_flip(),
    "cycle(rwm,dmala)": lambda scale: dx.samplers.cycle(dx.samplers.rwm(scale), dx.samplers.dmala(scale)),
    "mixture(pas,gibbs)": lambda scale: dx.samplers.mixture(
        dx.samplers.pas(scale), dx.samplers.gibbs("systematic"), weights=[1.0, 3.0]
    ),
    "sgdld": lambda scale: dx.samplers.sgdld(min(scale, 0.9)),
    "minibatch_gibbs": lambda _: dx.samplers.minibatch_gibbs(),
    "pseudo_marginal": lambda _: dx.samplers.pseudo_marginal(),
    "local_search": lambda _: dx.samplers.local_search(),
}
FROM_BATCHES = ("sgdld", "minibatch_gibbs", "pseudo_marginal", "local_search")
CACHES_NO_RATIOS = (
    "rwm",
    "mh_uniform",
    "gibbs-random",
    "gibbs-systematic",
    "gibbs-chromatic",
    "block_gibbs",
    "hamming_ball",
    "swap_uniform",
    "swendsen_wang",
    "wolff",
    "global_flip",
    "cycle(rwm,dmala)",
    "mixture(pas,gibbs)",
    "pseudo_marginal",
)
CLUSTERS = ("swendsen_wang", "wolff")
CACHES_RATIOS = tuple(name for name in KERNELS if name not in CACHES_NO_RATIOS)


def coupling() -> np.ndarray:
    """A symmetric matrix for six sites."""
    matrix = 0.3 * np.sin(np.arange(36.0)).reshape(6, 6)
    return matrix + matrix.T


def row_of(kernel: str) -> str:
    return kernel.partition("-")[0]  # gibbs-random and its like


def test_every_row_of_the_registry_is_here():
    assert {row_of(name) for name in KERNELS if "(" not in name} == set(dx.samplers.REGISTRY)


def space_of(space_type: type[dx.Space]) -> dx.Space:
    """Six sites, two of them frozen, on a plane so that a shape with one axis is not taken for granted."""
    mask = np.array([[False, True, False], [False, False, True]])
    clamped = {"frozen": mask, "frozen_codes": mask.astype(int)}
    match space_type.__name__:
        case "Ordinal":
            return dx.Ordinal((2, 3), [-1.0, -0.3, 0.4, 1.2], **clamped)
        case "Categorical":
            return dx.Categorical((2, 3), 3, **clamped)
        case _:
            return space_type((2, 3), **clamped)


class Cubic(eqx.Module):
    weights: Float[Array, "..."]

    def __call__(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        total = jnp.sum(self.weights * e)
        return total + 0.1 * total**3


def target_of(kernel: str, space: dx.Space) -> dx.Target:
    """Neither exact log-ratios nor local changes, unless the kernel cannot do without."""
    if kernel in ("gibbs-chromatic", *CLUSTERS):
        return dx.targets.Quadratic(space, dx.targets.Lattice(space.shape, 0.4), 0.2)
    shape = jax.eval_shape(space.embed, jax.ShapeDtypeStruct(space.shape, space.dtype)).shape
    weights = 0.4 * np.sin(np.arange(np.prod(shape))).reshape(shape)
    cubic = Cubic(jnp.asarray(weights, jnp.result_type(float)))
    if kernel in FROM_BATCHES:
        return dx.targets.Expectation(
            lambda e, noise: cubic(e) + noise * jnp.sum(e), dx.core.random.uniform_scalar, space
        )
    return dx.Target.from_log_prob(cubic, space)


class Walk(NamedTuple):
    states: dx.State  # (steps + 1, chains)
    infos: dx.Info  # (steps, chains)
    log_prob: Float[Array, "steps chains"]  # of the states, afresh
    distance: Float[Array, "steps chains"]  # between consecutive states


class Run:
    def __init__(self, name: str, space: dx.Space, is_quick: bool):
        self.name, self.space, self.kernel, self.is_quick = name, space, KERNELS[name](2.5), is_quick
        self.base = target_of(name, space)
        self.target = dx.Tempered(self.base, BETA)
        self.made = eqx.filter_eval_shape(self.kernel.init, self.target, space.frozen.codes)
        self.carried = None  # what a step makes of it
        self.traces = 0
        self._program = eqx.filter_jit(self._walk)
        self.keys = jax.random.split(jax.random.key(2), (NUM_STEPS, NUM_CHAINS))
        self.first = self.walk(self.keys)
        self.codes = self.first.states.x

    def _walk(self, keys, target, kernel, x, given, is_given) -> Walk:
        self.traces += 1

        def step(key, before):
            after, info = kernel.step(key, target, before)
            self.carried = jax.tree.map(jax.typeof, after)
            return after, (after, info, target.target.log_prob(space.embed(after.x)), space.distance(after.x, before.x))

        space = target.space
        made = jax.vmap(kernel.init, in_axes=(None, 0))(target, x)
        first = jax.tree.map(lambda old, new: jnp.where(is_given, old, new), given, made)
        states, *rest = jax.lax.scan(lambda states, keys: jax.vmap(step)(keys, states), first, keys)[1]
        return Walk(jax.tree.map(lambda *parts: jnp.concatenate([parts[0][None], parts[1]]), first, states), *rest)

    def walk(self, keys, *, x=None, given=None, target=None, kernel=None) -> Walk:
        """All steps, from states made at `x` (that of the frozen codes), or from those `given`."""
        x = np.broadcast_to(self.space.frozen.codes, (NUM_CHAINS, *self.space.shape)) if x is None else x
        nothing = jax.tree.map(lambda leaf: np.zeros((NUM_CHAINS, *leaf.shape), leaf.dtype), self.made)
        target, kernel = target or self.target, kernel or self.kernel
        walk = self._program(keys, target, kernel, x, given or nothing, jnp.asarray(given is not None))
        return jax.tree.map(np.asarray, walk)

    def statistic(self, name: str) -> np.ndarray:
        """(steps, chains)"""
        return getattr(self.first.infos, name)


def at(tree, *place):
    """The leaves of a tree at a place of their leading axes."""
    return jax.tree.map(lambda leaf: leaf[place], tree)


def runs() -> list:
    """Every sampler on every space it takes, in single and on the last of them in double precision.

    `make test` has one run a sampler, on another space each time; `make test-slow` has another of every second one, and
    with DISCRAX_TESTS_REPEATS=full all others.
    """
    out = []
    for number, name in enumerate(KERNELS):
        spaces = dx.samplers.get_sampler(row_of(name)).spaces
        settings = [*[(space, 32) for space in spaces], (spaces[-1], 64)]
        quick = settings[number % len(settings)]
        few = [settings[(number + i) % len(settings)] for i in range(min(2 - number % 2, len(settings)))]
        for space, bits in repeats(few, settings):
            is_quick, name_of_run = (space, bits) == quick, f"{name}-{space.__name__.lower()}-float{bits}"
            marks = () if is_quick else pytest.mark.slow
            out.append(pytest.param((name, space, bits, is_quick), id=name_of_run, marks=marks))
    return out


@pytest.fixture(scope="module", params=runs())
def run(request):
    name, space_type, bits, is_quick = request.param
    with jax.enable_x64(bits == 64):  # stays so for the tests of this run
        yield Run(name, space_of(space_type), is_quick)


def same(a, b) -> None:
    """Two trees are equal bit for bit."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def near(a, b) -> None:
    """Two trees are equal up to rounding."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5 if np.issubdtype(x.dtype, np.floating) else 0)


def kinds(tree) -> list[tuple]:
    return [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in jax.tree.leaves(tree)]


def test_the_state_keeps_its_structure_shapes_and_types(run):
    before, after = run.made, run.carried
    assert jax.tree.structure(after) == jax.tree.structure(before)
    assert kinds(after) == kinds(before)
    assert after.x.shape == run.space.shape
    assert after.x.dtype == run.space.dtype
    assert after.log_prob.dtype == jnp.result_type(float)


def test_every_info_has_the_same_types(run):
    floats = {"accept_prob", "jump", "evals", "log_weight"}
    shape = (NUM_STEPS, NUM_CHAINS)
    expected = [(shape, np.dtype(np.float32 if name in floats else bool)) for name in dx.Info._fields]
    assert [(stat.shape, stat.dtype) for stat in run.first.infos] == expected


def test_statistics_are_in_range(run):
    assert ((run.statistic("accept_prob") >= 0) & (run.statistic("accept_prob") <= 1)).all()
    assert (run.statistic("evals") > 0).all()
    if run.name == "sgdld":  # draws count for different times
        assert np.isfinite(run.statistic("log_weight")).all()
        assert np.ptp(run.statistic("log_weight")) > 0
    else:
        assert (run.statistic("log_weight") == 0).all()
    assert not run.statistic("is_invalid").any()


def test_one_compilation_serves_all_parameters(run):
    scaled = jax.tree.map(lambda leaf: 0.9 * leaf if eqx.is_inexact_array(leaf) else leaf, run.base)
    run.walk(run.keys)
    before = run.traces
    run.walk(run.keys, target=dx.Tempered(scaled, 0.3), kernel=KERNELS[run.name](2.0))
    assert run.traces == before


def test_a_chain_does_not_depend_on_those_beside_it(run):
    chain = 1
    beside_itself = run.walk(jnp.broadcast_to(run.keys[:, chain, None], run.keys.shape))
    same(at(beside_itself, slice(None), chain), at(run.first, slice(None), chain))


ONE_BY_ONE = ("gibbs-systematic", "pas", "dmala", "ab_first")


def test_chains_side_by_side_are_chains_one_by_one(run):
    """Up to rounding: a chain by itself is another program, which adds in another order."""
    if run.is_quick and run.name not in ONE_BY_ONE:
        pytest.skip("takes another program; `make test-slow` has this sampler on other spaces")
    alone = eqx.filter_jit(lambda *arguments: run.kernel.step(*arguments))
    for t in (0, NUM_STEPS - 1):
        for chain in range(NUM_CHAINS):
            after = alone(run.keys[t, chain], run.target, at(run.first.states, t, chain))
            near(after, (at(run.first.states, t + 1, chain), at(run.first.infos, t, chain)))


def test_a_step_is_a_function_of_its_key_and_its_state(run):
    """So that a run goes on from any of its states as it did."""
    t = NUM_STEPS // 2
    again = run.walk(jnp.roll(run.keys, -t, axis=0), given=at(run.first.states, t))
    same(at(again.states, slice(NUM_STEPS - t + 1)), at(run.first.states, slice(t, None)))
    same(at(again.infos, slice(NUM_STEPS - t)), at(run.first.infos, slice(t, None)))
    if run.name != "local_search":  # chance has little to say in a search
        paths = run.codes.swapaxes(0, 1)
        assert len(np.unique(paths.reshape(NUM_CHAINS, -1), axis=0)) == NUM_CHAINS  # and keys differ


def test_what_a_state_carries_is_what_a_fresh_evaluation_gives(run):
    """Untempered, so it holds at every temperature."""
    last = at(run.first.states, -1)
    if run.name in FROM_BATCHES:  # they carry what mini-batches told
        assert (np.asarray(last.cache.count) == NUM_STEPS).all()
        return
    tolerance = 1e-5 if last.log_prob.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(run.first.states.log_prob[1:], run.first.log_prob, rtol=tolerance, atol=tolerance)
    if run.name in CACHES_RATIOS:
        fresh = at(run.walk(run.keys, x=last.x).states, 0)
        np.testing.assert_allclose(last.cache, fresh.cache, rtol=tolerance, atol=tolerance)


def test_frozen_sites_never_move_and_free_ones_do(run):
    codes, mask = run.codes, np.asarray(run.space.frozen.mask)
    assert (codes[..., mask] == np.asarray(run.space.frozen.codes)[mask]).all()
    moves = np.ptp(codes[..., ~mask], axis=(0, 1)) > 0
    assert moves.any() if run.name == "local_search" else moves.all()  # it stops at the first peak
    run.space.check(codes[-1])


def test_the_jump_is_the_distance_between_consecutive_states(run):
    np.testing.assert_allclose(run.statistic("jump"), run.first.distance, rtol=1e-6)
    assert (run.statistic("jump")[~run.statistic("is_accepted")] == 0).all()
    assert (run.statistic("jump") > 0).any()


# Dense targets with many sites update what they carry instead of evaluating it afresh.
TWO_LEVELS = {
    "binary": dx.Binary,
    "spin": dx.Spin,
    "ordinal": lambda n: dx.Ordinal(n, [-0.4, 1.1]),
    "categorical": lambda n: dx.Categorical(n, 2),
}
DENSE_CASES = [
    ("pas", "binary"),
    ("gwg", "spin"),
    *[pytest.param("pas", space, marks=pytest.mark.slow) for space in ("spin", "ordinal", "categorical")],
    *[pytest.param(name, "spin", marks=pytest.mark.slow) for name in ("rwm", "gibbs-random")],
]


@pytest.mark.parametrize(("name", "space"), DENSE_CASES)
def test_what_a_state_carries_does_not_drift_on_a_dense_target(name, space):
    n, kernel = 40, KERNELS[name](2.5)
    matrix = np.sin(np.arange(n * n) ** 1.3).reshape(n, n)
    target = dx.targets.Quadratic(TWO_LEVELS[space](n), 0.05 * (matrix + matrix.T), 0.1)

    @jax.jit
    def walk(keys, x):
        def one_step(state, key):
            return kernel.step(key, target, state)[0], None

        last = jax.lax.scan(one_step, kernel.init(target, x), keys)[0]
        return last, kernel.init(target, last.x), target.log_prob(target.space.embed(last.x))

    start = jnp.zeros(n, target.space.dtype)
    last, fresh, log_prob = walk(jax.random.split(jax.random.key(0), 1000), start)
    assert (np.asarray(last.x) != start).any()
    np.testing.assert_allclose(last.log_prob, log_prob, rtol=1e-4, atol=1e-4)
    if name in CACHES_RATIOS:
        np.testing.assert_allclose(last.cache, fresh.cache, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("name", ["rwm", "pas"])
def test_a_path_over_all_sites_changes_all_of_them(name, n):
    """On a uniform target every proposal is accepted, so the longest jump is the longest path."""
    target, kernel = dx.targets.Bernoulli(logits=np.zeros(n)), KERNELS[name](float(n))

    @jax.jit
    @jax.vmap
    def jump(key):
        return kernel.step(key, target, kernel.init(target, jnp.zeros(n, target.space.dtype)))[1].jump

    assert jump(jax.random.split(jax.random.key(0), 50)).max() == n
