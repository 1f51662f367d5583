"""Tempering: the product law of all rungs is kept, and the target's rung has the target's law."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.exchanges import decide_exchanges
from discrax.core.kernel import Kernel, State, replaced, scalar_info
from discrax.core.target import log_prob
from discrax.sampling.houdayer import couplings_of
from discrax.sampling.ladder import Ladder
from discrax.sampling.tempering import Tempering
from repeats import repeats

pytestmark = pytest.mark.runs_long

BETAS = (0.1, 0.5, 1.0)


def rugged(space, seed=3, strength=1.0):
    """Random fields and couplings, by a plain function."""
    rng, size = np.random.default_rng(seed), int(np.prod(jnp.shape(space.embed(np.zeros(space.shape, space.dtype)))))
    linear, pairs = strength * rng.normal(size=size), strength * rng.normal(size=(size, size))
    return dx.Target.from_log_prob(lambda e: e.reshape(-1) @ (linear + pairs @ e.reshape(-1)), space)


def glass(num_sites=3, seed=0):
    """Random couplings of every other pair, with fields."""
    rng = np.random.default_rng(seed)
    edges = [(i, i + 1) for i in range(num_sites - 1)]
    return dx.targets.Ising.graph(edges, coupling=rng.normal(size=len(edges)), field=rng.normal(size=num_sites))


class OnProduct(Kernel):
    """A ladder as a kernel on the product of the spaces of its replicas."""

    ladder: Tempering
    base: dx.Target

    def init(self, target, x):
        start = self.ladder.init_at(self.base, x.reshape(self.ladder.num_rungs, -1, *self.base.space.shape))
        return State(x, log_prob(target, x), start)

    def step(self, key, target, state):
        after, info = self.ladder.step(key, self.base, state.cache)
        x = after.cache.states.x.reshape(state.x.shape)
        return State(x, log_prob(target, x), after), info


def product(ladder, base):
    """The law of all replicas together."""
    shape, space = (ladder.num_rungs, ladder.num_copies), base.space
    laws = ladder.laws(base)
    options = {"values": space.values} if isinstance(space, dx.Ordinal) else {}
    if isinstance(space, dx.Categorical):
        options = {"num_levels": space.num_levels}
    everything = type(space)((*shape, *space.shape), **options)

    def log_prob_of_all(e):
        e = e.reshape(*shape, *e.shape[2:])
        return sum(law.log_prob(e[k, c]) for k, law in enumerate(laws) for c in range(shape[1]))

    return dx.Target.from_log_prob(log_prob_of_all, everything)


def verdict_on(ladder, base, num_chains=20_000, num_steps=2):
    kernel = OnProduct(ladder, base)
    return dx.exact.check_kernel(kernel, product(ladder, base), num_chains=num_chains, num_steps=num_steps)


class WrongSign(Tempering):
    """A twin that exchanges where it should not."""

    def exchanges(self, key, values, turn):
        return decide_exchanges(key, -self.betas, values, turn)


class Stale(Tempering):
    """A twin that keeps what was cached at another rung: its reference is not seen after exchanges."""

    def step(self, key, target, state):
        after, info = Tempering.step(self, key, target, state)
        kept = after.cache.states._replace(log_prob=state.cache.states.log_prob)
        return after._replace(cache=after.cache._replace(states=kept)), info


def twin(kind, ladder):
    return kind(**{each.name: getattr(ladder, each.name) for each in fields(ladder)})


CASES = {
    "spins by dmala": (dx.samplers.dmala(step_size=1.0), dx.Spin(3), None),
    "levels by pas": (dx.samplers.pas(), dx.Categorical(2, 3), None),
    "values by gibbs": (dx.samplers.gibbs(), dx.Ordinal(2, [0.0, 0.5, 2.0]), None),
    "spins by turns": (dx.samplers.cycle("pas", "global_flip"), dx.Spin(3), None),
    "bits from a reference by gwg": (dx.samplers.gwg(), dx.Binary(3), dx.targets.Bernoulli([0.2, 0.5, 0.9])),
}


@pytest.mark.parametrize(
    "case",
    [
        "spins by dmala",
        *(
            pytest.param(case, marks=pytest.mark.slow)
            for case in [*CASES][1:]
            if case != repeats("values by gibbs", None)
        ),
    ],
)
def test_the_product_law_of_all_rungs_is_kept(case):
    kernel, space, reference = CASES[case]
    base = rugged(space, strength=0.5)
    ladder = Ladder(betas=BETAS, reference=reference).kernel(kernel, base)
    verdict = verdict_on(ladder, base)
    assert verdict, verdict


def test_exchanges_with_the_wrong_sign_fail():
    base = rugged(dx.Spin(3))
    ladder = Ladder(betas=BETAS).kernel(dx.samplers.dmala(), base)
    assert not verdict_on(twin(WrongSign, ladder), base)


@pytest.mark.slow
def test_a_reference_that_is_not_seen_after_exchanges_fails():
    base, reference = rugged(dx.Binary(3)), dx.targets.Bernoulli([0.05, 0.5, 0.95])
    ladder = Ladder(betas=BETAS, reference=reference).kernel(dx.samplers.rwm(), base)
    assert verdict_on(ladder, base)
    assert not verdict_on(twin(Stale, ladder), base)


@pytest.mark.slow
def test_several_steps_between_exchanges_keep_the_law():
    base = rugged(dx.Spin(3))
    ladder = Ladder(betas=BETAS, num_steps=3).kernel(dx.samplers.gibbs(), base)
    assert verdict_on(ladder, base)


@pytest.mark.slow
def test_clusters_are_exchanged_exactly():
    base = glass()
    ladder = Ladder(betas=(0.3, 1.0), clusters=True).kernel(dx.samplers.gibbs(), base)
    verdict = verdict_on(ladder, base, num_chains=60_000)
    assert verdict, verdict
    coupled = couplings_of(base)
    torn = twin(Tempering, ladder)  # clusters of one site each, whatever is coupled
    object.__setattr__(torn, "couplings", replaced(coupled, exist=jnp.zeros_like(coupled.exist)))
    assert not verdict_on(torn, base, num_chains=60_000)


class Still(Kernel):
    """It moves nothing, so that a state says which replica it is."""

    def init(self, target, x):
        return State(x, log_prob(target, x), ())

    def step(self, key, target, state):
        return state, scalar_info(1, True, 0, 0, False)


def test_round_trips_are_counted():
    num_rungs, num_steps = 4, 600
    base = rugged(dx.Binary(2), strength=0.3)
    ladder = Ladder(num_rungs=num_rungs).kernel(Still(), base)
    starts = jnp.asarray(dx.Binary(2).enumerate())[:, None]  # one state a rung: its index is the replica's name

    def step(state, key):
        state, _ = ladder.step(key, base, state)
        return state, (state.cache.states.x[:, 0], state.cache.trips)

    keys = jax.random.split(jax.random.key(1), num_steps)
    _, (x, trips) = jax.lax.scan(step, ladder.init_at(base, starts), keys)
    names = np.asarray(x) @ [2, 1]
    last_end, counted = {3: "target"}, []
    for row in names:
        if last_end.get(int(row[-1])) == "hottest":
            counted.append(1)
        last_end[int(row[-1])] = "target"
        if int(row[0]) in last_end:
            last_end[int(row[0])] = "hottest"
        counted.append(0)
    assert int(trips[-1]) == sum(counted) > 20
    assert sorted(names[-1]) == [0, 1, 2, 3]  # nothing was lost or doubled
    moves = np.abs(np.diff(np.argsort(names, axis=1), axis=0))
    assert moves.max() == 1  # to a neighbour at most


def far_modes():
    """Two modes of a ferromagnet that single-site samplers cross once in exp(40) steps."""
    return dx.targets.Ising.lattice((3, 3), coupling=2.0, field=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", repeats(["gibbs"], ["gibbs", "dmala"]))
def test_the_modes_of_a_target_have_their_weights(sampler):
    target, settings = far_modes(), {"num_chains": 4, "num_warmup": 1000, "num_samples": 4000, "progress": False}
    law, states = dx.exact.law(target), target.space.enumerate()
    exact = np.tensordot(law, states, 1)
    tempered = dx.sample(jax.random.key(0), target, sampler, tempering=dx.Ladder(5), **settings)
    assert np.abs(tempered.draws.mean(axis=(0, 1)) - exact).max() < 0.06
    assert np.abs(tempered.draws.mean(axis=1) - exact).max() < 0.15  # of each chain
    start = np.zeros((3, 3), np.int8)
    alone = dx.sample(jax.random.key(0), target, sampler, init=start, **settings)
    assert np.abs(alone.draws.mean(axis=(0, 1)) - exact).max() > 0.4  # the twin
    assert alone.tempering is None
    assert tempered.summary().notes == ()
    assert tempered.tempering.round_trips.min() > 50


def short(**more):
    settings = {"num_chains": 3, "num_warmup": 200, "num_samples": 150, "progress": False}
    return dx.sample(jax.random.key(0), far_modes(), "gibbs", **settings | more)


def test_a_folder_has_the_same_run(tmp_path):
    ladder = dx.Ladder(4)
    in_memory, stored = (short(tempering=ladder, folder=folder) for folder in (None, tmp_path / "run"))
    np.testing.assert_array_equal(in_memory.draws, np.asarray(stored.draws))
    for result in (stored, dx.load(tmp_path / "run"), short(tempering=ladder, folder=tmp_path / "run")):
        assert result.tempering.log_normaliser == in_memory.tempering.log_normaliser
    with pytest.raises(ValueError, match="tempering"):
        short(tempering=dx.Ladder(5), folder=tmp_path / "run")


def with_lengths(sampler: str, *lengths: float) -> Tempering:
    """A ladder on 40 x 40 spins whose rungs change so many sites a step."""
    target = dx.targets.Ising.lattice((40, 40), coupling=0.4)
    kernel = Ladder(num_rungs=len(lengths)).kernel(dx.samplers.build_kernel(sampler, target), target)
    turned = [each.with_knobs(path_length=jnp.float32(its)) for each, its in zip(kernel.kernels, lengths, strict=True)]
    return kernel.with_kernels(turned, target).prepare(target, tuning=False)[0]


@pytest.mark.parametrize(
    ("sampler", "lengths", "longest"),
    [
        ("pas", (1600, 700, 200), 254),  # what the target's needs: 200 with room
        ("pas", (1600, 30, 2), 98),  # 1600 / 16, which costs nothing
        ("pas", (5, 3, 1), 5),
        ("rwm", (1600, 30, 2), 6),  # a step that does not look at all sites has nothing for free
    ],
)
def test_hot_rungs_have_no_longer_paths_than_the_target_pays_for(sampler, lengths, longest):
    kernel = with_lengths(sampler, *lengths)
    found = [float(each.path_length) for each in kernel.kernels]
    assert found == [min(length, longest) for length in lengths]
    assert kernel.capacity < 1.5 * longest + 8


def test_paths_are_bounded_where_the_program_that_tuned_them_draws():
    target = dx.targets.Ising.lattice((40, 40), coupling=0.4)
    tuned = with_lengths("pas", 200, 90, 20).with_kernels(
        [dx.samplers.pas(length).with_capacity(1024) for length in (900.0, 90.0, 20.0)], target
    )
    frozen = tuned.frozen(target)
    assert [float(each.path_length) for each in frozen.kernels] == [98, 90, 20]
    assert frozen.capacity == 1024
