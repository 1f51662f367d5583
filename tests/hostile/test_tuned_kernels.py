"""Every registered sampler, tuned by `sample` as a user would, keeps the law of random targets.

The samplers' own tests fix their scales. Here warm-up chooses them, so a tuning that freezes a kernel, sends it to the
end of its range or leaves it with somebody else's curvature is seen: the tuned kernel goes into `check_kernel`.

Samplers that are not exact are left out by `Kernel.is_exact`: `dula`, `sgdld`, `minibatch_gibbs`, `pseudo_marginal` and
`local_search`.
False alarms: a check fails where its p-value is below 1e-6. Targets and keys follow from the names of the cases; none
was chosen by its outcome.
"""

import functools
import zlib
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import discrax as dx
from invariance.twins import Walk
from repeats import repeats

SPACES: dict[str, Callable[[], dx.Space]] = {
    "binary": lambda: dx.Binary(4),
    "spin": lambda: dx.Spin(4),
    "ordinal": lambda: dx.Ordinal(3, [-1.0, -0.3, 0.8]),
    "categorical": lambda: dx.Categorical(3, 3),
}


class PairTables(eqx.Module):
    """A number for every pair of sites and pair of levels, and one for every site and level.

    On one-hot embeddings these are tables; on a grid of values v they are polynomials in v and v^2.
    """

    tables: Float[Array, "m m"]
    fields: Float[Array, " m"]

    def __call__(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        has_powers = e.ndim == 1 and 2 * e.size == self.fields.size
        features = jnp.stack([e, e**2], axis=-1).reshape(-1) if has_powers else e.reshape(-1)
        return features @ self.tables @ features / 2 + self.fields @ features


def _function(space: dx.Space, rng: np.random.Generator, coupling: float, field: float) -> dx.Target:
    of_site = 1 if space.has_two_levels else 2 if isinstance(space, dx.Ordinal) else space.num_levels
    m = space.num_sites * of_site
    tables = np.triu(rng.normal(size=(m, m)), 1) * (1 - np.kron(np.eye(space.num_sites), np.ones((of_site, of_site))))
    made = PairTables(
        jnp.asarray(coupling * (tables + tables.T), jnp.float32), jnp.asarray(field * rng.normal(size=m), jnp.float32)
    )
    return dx.Target.from_log_prob(made, space)


def _pair_tables(space: dx.Space, rng: np.random.Generator) -> dx.Target:
    return _function(space, rng, coupling=0.4, field=0.4)


def _fields(space: dx.Space, rng: np.random.Generator) -> dx.Target:
    return _function(space, rng, coupling=0.0, field=1.0)


def _built_in(space: dx.Space, rng: np.random.Generator) -> dx.Target:
    n = space.num_sites
    J = 0.4 * np.triu(rng.normal(size=(n, n)), 1)
    field = rng.normal(size=(n, space.num_levels) if isinstance(space, dx.Categorical) else n) / 2
    return dx.targets.Quadratic(space, J + J.T, field)


FAMILIES = {"pair-tables": _pair_tables, "fields": _fields, "quadratic": _built_in}


def _seed(name: str) -> int:
    return zlib.crc32(name.encode())


@functools.cache
def random_target(space: str, family: str, number: int) -> dx.Target:
    return FAMILIES[family](SPACES[space](), np.random.default_rng(_seed(f"{space} {family} {number}")))


def tuned_kernel(sampler: str | dx.Kernel, target: dx.Target, key: Array) -> dx.Kernel:
    """As a user gets it, after a warm-up of 64 chains. As many draws: one program tunes and draws."""
    settings = {"num_chains": 64, "num_warmup": 400, "num_samples": 400, "progress": False}
    return dx.sample(key, target, sampler, **settings).kernel


def verdict_of(sampler: str | dx.Kernel, target: dx.Target, key: Array) -> dx.exact.Verdict:
    for_tuning, for_check = jax.random.split(key)
    return check(tuned_kernel(sampler, target, for_tuning), target, for_check)


def check(kernel: dx.Kernel, target: dx.Target, key: Array) -> dx.exact.Verdict:
    return dx.exact.check_kernel(kernel, target, key=key, num_chains=20_000, num_convergence_steps=100)


EXACT = [name for name, row in dx.samplers.REGISTRY.items() if row.build().is_exact]
# Tuned swaps are in tests/invariance/test_totals.py, where there are totals to keep. Clusters want ferromagnets, and
# a flip of all sites reaches two states by itself: both are in tests/invariance/test_clusters.py.
ELSEWHERE = ("swendsen_wang", "wolff", "global_flip", *repeats(("swap", "swap_uniform"), ()))
# Nothing of these is tuned, so tests/invariance has the kernels that a user gets.
ELSEWHERE += repeats(("gibbs", "block_gibbs", "hamming_ball", "lb"), ())
TUNED_HERE = [name for name in EXACT if name not in ELSEWHERE]
QUICK = ("pavg", "categorical", "pair-tables", 0)
PAIRS = [(space, family) for family in FAMILIES for space in SPACES]


def _pairs_of(sampler: str) -> list[tuple[str, str]]:
    """Spaces and families that a sampler takes, from another one on for each; all spaces are in tests/invariance."""
    start = 5 * EXACT.index(sampler)  # 5 and 12 have no common factor
    turned = [PAIRS[(start + i) % len(PAIRS)] for i in range(len(PAIRS))]
    return [pair for pair in turned if dx.samplers.REGISTRY[sampler].fits(random_target(*pair, 0))]


TURNS = [(sampler, *pair, 0) for sampler in TUNED_HERE for pair in _pairs_of(sampler)[: repeats(1, 2)]]
# Where a search of the step once went the wrong way.
AGAIN = [("pavg", "categorical", "pair-tables", number) for number in range(repeats(1, 3))]
CASES = [
    pytest.param(*case, marks=() if case == QUICK else pytest.mark.slow) for case in dict.fromkeys([*TURNS, *AGAIN])
]


@pytest.mark.parametrize(("sampler", "space", "family", "number"), CASES)
def test_a_tuned_sampler_keeps_the_law(sampler, space, family, number):
    key = jax.random.key(_seed(f"{sampler} {space} {family} {number}"))
    verdict = verdict_of(sampler, random_target(space, family, number), key)
    assert verdict, str(verdict)


def test_every_space_and_family_has_its_turn():
    assert {case[0] for case in TURNS} == set(TUNED_HERE)
    assert {case[1] for case in TURNS} == set(SPACES)
    assert {case[2] for case in TURNS} == set(FAMILIES)


def test_what_is_left_out_says_that_it_is_not_exact():
    assert set(dx.samplers.REGISTRY) - set(EXACT) == {
        "dula",
        "sgdld",
        "minibatch_gibbs",
        "pseudo_marginal",
        "local_search",
    }


def test_a_tuning_that_freezes_is_found():
    """The tuned kernel with a scale at which it never moves, where a search that goes the wrong way ends."""
    target, key = random_target("categorical", "pair-tables", 0), jax.random.key(0)
    frozen = eqx.tree_at(lambda kernel: kernel.metric.step_size, tuned_kernel("pavg", target, key), jnp.float32(1e-4))
    verdict = check(frozen, target, key)
    assert not verdict
    assert verdict.convergence_p_value < 1e-6


@pytest.mark.slow
def test_a_wrong_proposal_is_found():
    """The twin has nothing to tune and does not count its jumps, so it draws without a warm-up."""
    target, key = random_target("ordinal", "pair-tables", 0), jax.random.key(0)
    settings = {"num_chains": 64, "num_warmup": 0, "num_samples": 10, "progress": False}
    assert not check(dx.sample(key, target, Walk(flaw="asymmetric"), **settings).kernel, target, key)
