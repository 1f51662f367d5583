"""Gibbs sampling by elimination against exact laws, with one block and with several, zeros in the tables or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.supports import num_parts, possible_states, states_of, support_of
from discrax.samplers.elimination import EliminationGibbs
from discrax.samplers.elimination_plan import plan_blocks, single_site_note
from discrax.targets import FactorGraph

LEVELS = (2, 3, 2, 4, 2)
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (2,)]
OR = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]])  # of a, b, c: c = a or b


def ring(seed: int = 0, zeros: float = 0.0, **how) -> FactorGraph:
    rng = np.random.default_rng(seed)
    tables = [rng.gamma(1.0, size=[LEVELS[site] for site in scope]) for scope in RING]
    tables = [np.where(rng.random(table.shape) < zeros, 0, table) for table in tables]
    return FactorGraph(LEVELS, RING, tables, **how)


def check(kernel, target) -> dx.exact.Verdict:
    return dx.exact.check_kernel(kernel, target, num_chains=20_000, num_convergence_steps=40)


@pytest.mark.parametrize(
    ("target", "num_blocks"),
    [
        pytest.param(ring(), 1, marks=pytest.mark.slow),
        (ring(1, zeros=0.3), 1),
        pytest.param(ring(evidence={3: 2}), 1, marks=pytest.mark.slow),
        pytest.param(dx.Tempered(ring(2), 0.5), 1, marks=pytest.mark.slow),
        pytest.param(ring(3), 2, marks=pytest.mark.slow),
        (dx.Tempered(ring(4, evidence={0: 1}), 0.5), 2),
    ],
    ids=["plain", "zeros", "evidence", "tempered", "blocks", "blocks, tempered, evidence"],
)
def test_the_law_is_exact(target, num_blocks):
    kernel, _ = EliminationGibbs(*((1 << 20,) if num_blocks == 1 else (6, 9))).prepare(target)
    assert (len(kernel.blocks) == 1) == (num_blocks == 1)
    verdict = check(kernel, target)
    assert verdict, verdict


class Forgetful(EliminationGibbs):
    """It forgets the table of site 2 alone."""

    def plan_for(self, target):
        plan = super().plan_for(target)
        (block,) = plan.blocks
        steps = [step._replace(inputs=tuple(i for i in step.inputs if i != len(RING) - 1)) for step in block.steps]
        return plan._replace(blocks=(block._replace(steps=tuple(steps)),))


def test_an_elimination_that_forgets_a_table_fails():
    assert not check(Forgetful(), ring())


def test_draws_of_one_block_are_independent():
    result = dx.sample(
        jax.random.key(0), ring(5), dx.samplers.gibbs("elimination"), num_chains=4, num_warmup=0, num_samples=2000
    )
    codes = np.asarray(result.draws, np.float64)
    lagged = [np.corrcoef(codes[:, :-1, i].ravel(), codes[:, 1:, i].ravel())[0, 1] for i in range(len(LEVELS))]
    assert np.abs(lagged).max() < 5 / np.sqrt(8000)


@pytest.mark.parametrize("most", [4, 8, 30, 200])
def test_blocks_hold_every_free_site_and_keep_to_their_size(most):
    rng, side = np.random.default_rng(most), 6
    edges = [(i, i + 1) for i in range(side**2) if (i + 1) % side] + [(i, i + side) for i in range(side**2 - side)]
    grid = FactorGraph([2] * side**2, edges, rng.gamma(1.0, size=(len(edges), 2, 2)), evidence={7: 0})
    plan = plan_blocks(grid, most, most)
    drawn = [step.site for block in plan.blocks for step in block.steps]
    assert {*drawn} == {*range(side**2)} - {7}
    assert max(2 ** (1 + len(step.scope)) for block in plan.blocks for step in block.steps) <= most
    assert plan.is_whole == (most == 200)
    assert plan.is_whole == (not plan.blocks[0].given)


def three(table=OR) -> FactorGraph:
    tables = [[0.7, 0.3], [0.6, 0.4], table, np.arange(1, 17)]
    return FactorGraph([2] * 4, [(0,), (1,), (0, 1, 2), (0, 1, 2, 3)], tables, names="abcd")


def test_a_deterministic_site_is_in_one_block_with_its_parents():
    plan = plan_blocks(three(), 2, 8)
    whole = [{step.site for step in block.steps} >= {0, 1, 2} for block in plan.blocks]
    assert any(whole)
    assert not plan.is_whole
    assert plan.note is None
    assert check(EliminationGibbs(2, 8), three())
    torn = plan_blocks(three(), 2, 4)
    assert torn.note is not None
    assert "Tables with zeros join 3 sites" in torn.note


def test_single_sites_are_told_to_be_stuck_only_where_they_are():
    note = single_site_note(three())
    assert note is not None
    assert "those of a, b, c fall into 2 parts" in note
    assert single_site_note(three(np.array([[[1, 0], [1, 1]], [[1, 1], [1, 1]]]))) is None
    assert single_site_note(three(np.ones((2, 2, 2)))) is None
    assert single_site_note(three().given({"a": 1})) is None  # c must be 1, and b is free
    xor = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    support = support_of(three(xor))
    states = states_of(support, [0, 1, 2])
    assert states is not None
    assert len(states) == 4
    assert num_parts(states) == 4


def test_starts_are_possible_or_there_is_a_sentence():
    many = FactorGraph([2] * 30, [(i, i + 1) for i in range(29)], [np.eye(2)] * 29)
    assert np.ptp(possible_states(many, 0, 5), axis=1).max() == 0
    outcomes = []
    for seed in range(8):
        graph = ring(seed, zeros=0.5)
        values = jax.vmap(lambda x, graph=graph: graph.evaluate(x).log_prob)
        outcomes.append(bool(np.isfinite(values(jnp.asarray(graph.space.enumerate()))).any()))
        if outcomes[-1]:
            assert np.isfinite(values(jnp.asarray(possible_states(graph, seed, 20)))).all()
        else:
            with pytest.raises(ValueError, match="No state has a positive probability"):
                possible_states(graph, seed, 1)
    assert {*outcomes} == {True, False}
    with pytest.raises(ValueError, match="No state has a positive probability"):
        possible_states(FactorGraph([2, 2], [(0, 1), (0, 1)], [np.eye(2), 1 - np.eye(2)]), 0, 1)
    with pytest.raises(ValueError, match="No state has a positive probability"):
        possible_states(three().given({"a": 1, "c": 0}), 0, 1)
