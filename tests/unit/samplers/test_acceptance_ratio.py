"""The acceptance ratio of every informed sampler against its formula in double precision.

The proposal that a step made (its path and its new state) is read from inside the compiled step; everything else is
computed again in numpy.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, Categorical, Ordinal, Spin, Target, Tempered, samplers
from discrax.core import random
from discrax.core.target import evaluate
from discrax.targets import Quadratic

from ..targets.reference import embed, structure
from .reference import (
    Proposal,
    Spy,
    frozen_mask,
    log_factorised_probability,
    log_path_probability,
    move_weights,
)

NUM = 24
KEYS = random.split(jax.random.key(9), NUM)
FROZEN = {"frozen": np.arange(8) == 3, "frozen_codes": np.ones(8, int)}


def bumpy(e):
    return 0.7 * jnp.sum(jnp.sin(2 * e) * jnp.linspace(-1, 1, e.size).reshape(e.shape)) + 0.1 * jnp.sum(e) ** 2


TARGETS = {
    "spin": lambda: Quadratic(Spin(8), structure("dense", (8,)).coupling, 0.2),
    "binary-frozen": lambda: Tempered(Quadratic(Binary(8, **FROZEN), structure("sparse", (8,)).coupling, 0.3), 0.6),
    "ordinal-gradient": lambda: Target.from_log_prob(bumpy, Ordinal(8, [-1.0, 0.0, 0.5, 2.0])),
    "categorical-frozen": lambda: Quadratic(Categorical(8, 3, **FROZEN), structure("dense diagonal", (8,)).coupling),
}


def beta(target) -> float:
    return float(target.beta) if isinstance(target, Tempered) else 1.0


def ratios(target, x: np.ndarray) -> np.ndarray:
    """Tempered log-ratios at flat codes, by the target's own evaluation (which has tests of its own)."""
    out = eqx.filter_jit(evaluate)(target, jnp.asarray(x, target.space.dtype)).ratios
    return beta(target) * np.asarray(out, np.float64)


def value(target, x: np.ndarray) -> float:
    return float(target.log_prob(target.space.embed(jnp.asarray(x, target.space.dtype))))


def start(target) -> np.ndarray:
    return np.asarray(jax.vmap(target.space.random)(random.split(jax.random.key(4), NUM)))


def proposals(monkeypatch, module: str, kernel, target, proposed_by: str) -> list[Proposal]:
    """What `NUM` independent steps proposed."""
    spy = Spy(monkeypatch, module)
    spy.on("decide", lambda given, _: given[1:])
    if proposed_by == "path":
        spy.on("evaluate_change", lambda given, _: given[3]).on("draw_length", lambda _, out: out)
        spy.on("draw_with_replacement", lambda _, out: out).on("draw_without_replacement", lambda _, out: out[0])
    else:
        spy.on("evaluate", lambda given, _: given[1])
    x = start(target)

    def step(key, x):
        state = kernel.init(target, x)
        spy.seen.clear()  # what `init` did is not of interest
        return kernel.step(key, target, state)

    (_, info), seen = spy.watch(step)(KEYS, jnp.asarray(x))
    change, ratio = (np.asarray(part) for part in seen["decide"][0])
    out = []
    for i in range(NUM):
        if proposed_by == "path":
            (drawn,) = seen.get("draw_with_replacement", []) + seen.get("draw_without_replacement", [])
            path = np.asarray(drawn)[i][: int(seen["draw_length"][0][i])]
            y = np.asarray(seen["evaluate_change"][0])[i]
        else:
            path, y = np.zeros(0, int), np.asarray(seen["evaluate"][0])[i]
        accept_prob = float(info.accept_prob[i])
        out.append(Proposal(x[i].reshape(-1), y.reshape(-1), path, float(change[i]), float(ratio[i]), accept_prob))
    return out


def check(target, steps: list[Proposal], log_proposal_ratio) -> None:
    frozen = frozen_mask(target.space)
    for step in steps:
        change = value(target, step.y) - value(target, step.x)
        expected = log_proposal_ratio(step)
        assert step.log_prob_change == pytest.approx(change, abs=1e-4)
        assert step.log_proposal_ratio == pytest.approx(expected, abs=1e-4)
        assert step.accept_prob == pytest.approx(min(1.0, np.exp(change + expected)), abs=2e-4)
        assert (step.x == step.y)[frozen].all()
    assert len({step.log_prob_change for step in steps}) > NUM / 4  # the steps are not all alike


PATHS = [
    ("spin", "pas", 1.0, "sqrt"),
    ("spin", "pas", 3.0, "ratio"),
    ("binary-frozen", "pas", 4.0, "max"),
    ("ordinal-gradient", "pas", 3.0, "min"),
    ("categorical-frozen", "pas", 2.5, "sqrt"),
    ("binary-frozen", "gwg", 3.0, "sqrt"),
    ("categorical-frozen", "gwg", 3.0, "max"),
]


QUICK = ("pas-spin-ratio", "pas-categorical-frozen-sqrt", "gwg-binary-frozen-sqrt", "pas-ordinal-gradient-min")


def path_case(name: str, sampler: str, length: float, g: str):
    label = f"{sampler}-{name}-{g}"
    return pytest.param(name, sampler, length, g, id=label, marks=() if label in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("name", "sampler", "length", "g"), [path_case(*case) for case in PATHS])
def test_paths(monkeypatch, name, sampler, length, g):
    target = TARGETS[name]()
    replace = sampler == "gwg"
    kernel = getattr(samplers, sampler)(length, balancing=g).prepare(target, tuning=False)[0]
    steps = proposals(monkeypatch, "discrax.samplers.locally_balanced", kernel, target, "path")
    frozen = frozen_mask(target.space)

    def log_proposal_ratio(step: Proposal) -> float:
        changed = np.flatnonzero(step.x != step.y)
        assert set(changed) == set(step.path.tolist())  # every site of the path moved, and no other
        forth, back = (move_weights(g, at, ratios(target, at), frozen) for at in (step.x, step.y))
        return log_path_probability(back, step.path[::-1], step.x, replace=replace) - log_path_probability(
            forth, step.path, step.y, replace=replace
        )

    check(target, steps, log_proposal_ratio)
    lengths = {len(step.path) for step in steps}
    assert len(lengths) > 1 or length == 1


@pytest.mark.parametrize(
    ("name", "step_size", "g"),
    [
        ("spin", 4.0, "sqrt"),
        ("binary-frozen", 0.7, "max"),
        ("ordinal-gradient", 0.5, "ratio"),
        ("categorical-frozen", 2.0, "min"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dmala(monkeypatch, name, step_size, g):
    target = TARGETS[name]()
    space = target.space
    kernel = samplers.dmala(step_size, balancing=g)
    steps = proposals(monkeypatch, "discrax.samplers.factorised", kernel, target, "evaluate")
    every_level = embed(space, np.arange(space.num_levels)).reshape(space.num_levels, -1)
    frozen = frozen_mask(space)

    def log_proposal_ratio(step: Proposal) -> float:
        def log_q(x, y):
            squares = ((every_level[None] - every_level[x][:, None]) ** 2).sum(-1)
            return log_factorised_probability(g, x, ratios(target, x), frozen, squares, step_size, y)

        return log_q(step.y, step.x) - log_q(step.x, step.y)

    check(target, steps, log_proposal_ratio)
    assert np.mean([(step.x != step.y).sum() for step in steps]) > 0.5


@pytest.mark.parametrize("name", ["spin", "categorical-frozen", "ordinal-gradient"])
def test_random_walk_is_symmetric(monkeypatch, name):
    """Its acceptance ratio is that of the probabilities alone, whether the change is local or a full evaluation."""
    target = TARGETS[name]()
    kernel = samplers.rwm(2.0).prepare(target, tuning=False)[0]
    spy = Spy(monkeypatch, "discrax.samplers.random_walk").on("decide", lambda given, _: given[1:])
    x = start(target)

    def step(key, x):
        return kernel.step(key, target, kernel.init(target, x))

    (after, info), seen = spy.watch(step)(KEYS, jnp.asarray(x))
    assert len(seen["decide"][0]) == 1  # no proposal ratio
    moved = np.flatnonzero(np.asarray(info.is_accepted))
    assert len(moved) > 3
    for i in moved:
        change = value(target, np.asarray(after.x)[i]) - value(target, x[i])
        assert float(seen["decide"][0][0][i]) == pytest.approx(change, abs=1e-4)
        assert float(info.accept_prob[i]) == pytest.approx(min(1.0, np.exp(change)), abs=1e-4)
        assert float(after.log_prob[i]) * beta(target) == pytest.approx(value(target, np.asarray(after.x)[i]), abs=1e-4)
        assert (np.asarray(after.x)[i] == x[i])[frozen_mask(target.space)].all()
