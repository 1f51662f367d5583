"""Neighbour lists in one block or in several, of graphs of every shape, against a dense matrix."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import sparse
from discrax.core.sparse import block_widths, greedy_colouring
from discrax.problems.generators import barabasi_albert
from discrax.targets import Dense, Lattice, Sparse
from discrax.targets.coupling import as_edges
from discrax.targets.rows import Rows
from repeats import repeats

from .reference import structure

RNG = np.random.default_rng(4)


def star(n: int) -> np.ndarray:
    return np.stack([np.zeros(n - 1, np.int64), np.arange(1, n)], axis=1)


TWICE = star(30)[5:9, ::-1]
LOOPS = np.array([[0, 0], [7, 7], [29, 29], [3, 4], [4, 3], [2, 2], [2, 2]])
GRAPHS = {
    "star with isolated nodes, loops and parallel edges": (np.concatenate([star(30), TWICE, LOOPS]) + 5, 40),
    "barabasi-albert": (barabasi_albert(300, 3).edges, 300),
}
graphs = pytest.mark.parametrize("name", GRAPHS, ids=["star", "barabasi-albert"])


def dense_matrix(edges: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    J = np.zeros((n, n))
    np.add.at(J, tuple(edges.T), weights)
    apart = edges[:, 0] != edges[:, 1]
    np.add.at(J, tuple(edges[apart, ::-1].T), weights[apart])
    return J


def build(edges: np.ndarray, weights: np.ndarray, n: int, monkeypatch, *, in_blocks: bool) -> Sparse:
    monkeypatch.setattr(sparse, "_FEW_NUMBERS", 0 if in_blocks else 10**9)
    coupling = Sparse(edges, weights, (n,))
    assert (len(coupling.blocks) > 1) == in_blocks
    return coupling


def seen(coupling: Sparse, e, levels, sites) -> dict[str, jax.Array]:
    """All that a coupling is asked, in one program."""
    others, weights = coupling.neighbours(sites)
    n = e.shape[0]
    rows = jnp.zeros((len(sites), n)).at[jnp.arange(len(sites))[:, None], others].add(weights)
    diagonal = coupling.diagonal()
    return {
        "product": coupling.product(e),
        "product of levels": coupling.product(levels),
        "rows": rows,
        "among": coupling.among(sites),
        "diagonal": jnp.zeros(n) if diagonal is None else diagonal,
    }


@pytest.mark.parametrize("in_blocks", [False, True], ids=["one-block", "blocks"])
@graphs
def test_every_graph_is_its_matrix(name, in_blocks, monkeypatch):
    edges, n = GRAPHS[name]
    rng = np.random.default_rng(1)
    weights = rng.normal(size=len(edges))
    coupling, J = build(edges, weights, n, monkeypatch, in_blocks=in_blocks), dense_matrix(edges, weights, n)
    e, levels = jnp.asarray(rng.normal(size=n), jnp.float32), jnp.asarray(rng.normal(size=(n, 3)), jnp.float32)
    sites = jnp.asarray(np.append(rng.permutation(n)[:8], 5), jnp.int32)  # 5 is the hub of the star
    expected = {
        "product": J @ e,
        "product of levels": J @ levels,
        "rows": J[sites],
        "among": J[sites][:, sites],
        "diagonal": np.diag(J),
    }
    ours = eqx.filter_jit(seen)(coupling, e, levels, sites)
    for what, value in expected.items():
        np.testing.assert_allclose(ours[what], value, atol=1e-4, err_msg=what)

    first, others, values = coupling.csr()
    again = np.zeros((n, n))
    np.add.at(again, (np.repeat(np.arange(n), np.diff(first)), others), values)
    np.testing.assert_allclose(again, J, atol=1e-5)
    np.testing.assert_allclose(coupling.in_one_block(n).product(e), J @ e, atol=1e-4)
    colours, apart = coupling.colours(), edges[:, 0] != edges[:, 1]
    assert (colours[edges[apart, 0]] != colours[edges[apart, 1]]).all()


@pytest.mark.parametrize("in_blocks", [False, True], ids=["one-block", "blocks"])
def test_what_pads_the_rows_is_never_read(in_blocks, monkeypatch):
    """Whatever training makes of it; a twin that is padded with site 0 reads it."""
    edges, n = GRAPHS["barabasi-albert"]
    coupling = build(edges, np.ones(len(edges)), n, monkeypatch, in_blocks=in_blocks)
    filled = [Rows(block.indices, jnp.where(block.indices == n, 7.0, block.weights)) for block in coupling.blocks]
    assert any((block.weights == 7).any() for block in filled)
    filled = eqx.tree_at(lambda it: it.blocks, coupling, tuple(filled))
    broken = [Rows(jnp.where(block.indices == n, 0, block.indices), block.weights) for block in filled.blocks]
    broken = eqx.tree_at(lambda it: it.blocks, filled, tuple(broken))
    e, sites = jnp.ones(n), jnp.arange(n, dtype=jnp.int32)
    degrees = np.bincount(edges.ravel(), minlength=n)
    np.testing.assert_array_equal(filled.product(e), degrees)
    np.testing.assert_array_equal(filled.neighbours(sites)[1].sum(axis=1), degrees)
    assert not np.array_equal(broken.product(e), degrees)


@pytest.mark.parametrize("space", ["spin", "levels"])
def test_targets_on_blocks_have_the_log_prob_and_ratios_of_a_matrix(space, monkeypatch):
    edges, n = GRAPHS["star with isolated nodes, loops and parallel edges"]
    weights = RNG.normal(size=len(edges))
    coupling = build(edges, weights, n, monkeypatch, in_blocks=True)
    space = dx.Spin(n) if space == "spin" else dx.Categorical(n, 3)
    ours = dx.targets.Quadratic(space, coupling, 0.3)
    reference = dx.targets.Quadratic(space, Dense(dense_matrix(edges, weights, n)), 0.3)
    x = jnp.asarray(RNG.integers(0, space.num_levels, n), space.dtype)
    sites, codes = jnp.asarray([0, 3, 7], jnp.int32), jnp.asarray([1, 0, 1], space.dtype)

    @eqx.filter_jit
    def everything(target):
        at_sites = jax.vmap(lambda site: target.ratios_at(x, site))(sites)
        return target.evaluate(x), target.log_prob(space.embed(x)), target.change(x, sites, codes), at_sites

    for a, b in zip(jax.tree.leaves(everything(ours)), jax.tree.leaves(everything(reference)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    matrices = np.zeros((2, n, n))
    for matrix, target in zip(matrices, (ours, reference), strict=True):
        pairs, values = target.hessian()
        np.add.at(matrix, tuple(pairs.T), values)
    np.testing.assert_allclose(*matrices, atol=1e-5)


def test_blocks_are_few_and_little_is_padded():
    degrees = barabasi_albert(5_000, 4).degrees
    widths = block_widths(degrees, 16)
    table = widths[np.searchsorted(widths, degrees)]
    assert 1 < len(widths) <= 16
    assert degrees.sum() < table.sum() < 1.2 * degrees.sum()
    assert len(degrees) * degrees.max() > 20 * degrees.sum()  # what one width would take
    assert block_widths(np.full(50_000, 8), 16).tolist() == [8]
    assert block_widths(np.array([0, 0, 3, 40]), 16).tolist() == [40]  # it is small


def one_after_another(first, others) -> np.ndarray:
    degrees = np.diff(first)
    colours = np.full(len(degrees), -1)
    for site in np.argsort(-degrees, kind="stable"):
        taken = set(colours[others[first[site] : first[site + 1]]].tolist())  # a loop brings -1
        colours[site] = next(colour for colour in range(len(degrees)) if colour not in taken)
    return colours


@pytest.mark.parametrize("few", [0, 16, 10**9])
@graphs
def test_colours_are_those_of_sites_one_after_another(name, few, monkeypatch):
    monkeypatch.setattr(sparse, "_FEW_SITES", few)
    edges, n = GRAPHS[name]
    first, others, _ = Sparse(edges, 1.0, (n,)).pattern()
    np.testing.assert_array_equal(greedy_colouring(first, others), one_after_another(first, others))


RELABELLED = {
    "blocks": lambda: Sparse(*GRAPHS["barabasi-albert"][:1], 0.7, (300,)),
    "sparse diagonal": lambda: structure("sparse diagonal", (3, 5)).coupling,
    "lattice edges periodic": lambda: structure("lattice edges periodic", (3, 5)).coupling,
    "lattice free": lambda: structure("lattice free", (3, 4)).coupling,
    "dense": lambda: structure("dense", (6,)).coupling,
    "uncoupled": lambda: structure("uncoupled", (6,)).coupling,
}


@pytest.mark.parametrize("name", RELABELLED)
def test_a_plan_in_the_order_of_colours_is_the_same_matrix(name, monkeypatch):
    monkeypatch.setattr(sparse, "_FEW_NUMBERS", 0)
    coupling = RELABELLED[name]()
    colours = coupling.colours().reshape(-1)
    ends = np.cumsum(np.bincount(colours)).tolist()
    plan = coupling.in_order(np.argsort(colours, kind="stable"), ends)
    n, order = len(colours), np.asarray(plan.order)
    assert sorted(order.tolist()) == list(range(n))
    np.testing.assert_array_equal(colours[order], np.sort(colours))
    assert [start for start, _ in plan.spans] == [0, *(stop for _, stop in plan.spans[:-1])]
    assert set(ends) <= {stop for _, stop in plan.spans}
    assert (len(plan.spans) > len(ends)) == (name == "blocks")

    def by_plan(weights, e):  # the weights are traced: a target that is trained has them so
        return jnp.concatenate([rows.product(e[plan.order]) for rows in plan.apply(weights)])[plan.places]

    e = jnp.asarray(np.random.default_rng(2).normal(size=n), jnp.float32)
    ours = jax.jit(by_plan)(2 * coupling.flat_weights(), e)
    np.testing.assert_allclose(ours, 2 * coupling.product(e.reshape(coupling.shape)).reshape(-1), atol=1e-5)


def test_compressed_rows_of_a_lattice_are_its_matrix():
    for name in ("lattice edges free", "lattice periodic"):
        coupling, J = structure(name, (3, 4))
        assert isinstance(coupling, Lattice)
        first, others, weights = coupling.csr()
        ours = np.zeros(J.shape)
        np.add.at(ours, (np.repeat(np.arange(12), np.diff(first)), others), weights)
        np.testing.assert_allclose(ours, J, atol=1e-6)


def test_edges_of_every_kind_of_networkx_graph():
    networkx = pytest.importorskip("networkx")
    some = networkx.Graph()
    some.add_nodes_from("abcd")
    some.add_edge("d", "a", weight=2.0)
    some.add_edge("b", "a")
    edges, weights, n = as_edges(some)
    pairs = sorted((*sorted(edge), weight) for edge, weight in zip(edges.tolist(), weights, strict=True))
    assert (pairs, n) == ([(0, 1, 1.0), (0, 3, 2.0)], 4)
    several = networkx.MultiGraph([(0, 1), (1, 0), (1, 1)])
    edges, weights, _ = as_edges(several)
    assert (sorted(map(sorted, edges.tolist())), weights) == ([[0, 1], [0, 1], [1, 1]], None)
    directed = networkx.DiGraph()
    directed.add_weighted_edges_from([(0, 1, 2.0), (1, 0, 2.0), (2, 0, 3.0), (1, 1, 4.0)])
    edges, weights, _ = as_edges(directed)
    found = sorted((*edge, weight) for edge, weight in zip(edges.tolist(), weights, strict=True))
    assert found == [(0, 1, 2.0), (1, 1, 4.0), (2, 0, 3.0)]
    assert as_edges(networkx.DiGraph())[0].shape == as_edges(networkx.Graph())[0].shape == (0, 2)


@pytest.mark.slow
def test_hundreds_of_thousands_of_nodes_with_hubs():
    """Memory goes with the edges, not with the largest hub; colours and log-probabilities are right."""
    n, strength = repeats(300_000, 1_000_000), 0.05
    most = n * 2**28 / 10**6  # bytes
    edges = barabasi_albert(n, 4).edges
    target = dx.targets.Ising.graph(edges, strength)
    kernel = dx.samplers.dmala(0.3)
    result = dx.sample(jax.random.key(0), target, kernel, num_chains=8, num_warmup=0, num_samples=3, progress=False)
    arrays = jax.tree.leaves(eqx.filter((target, result.states), eqx.is_array))
    assert sum(each.nbytes for each in arrays) < most
    assert n * target.coupling.max_degree * 4 > 4 * most  # what one table of indices would take
    spins = 2 * result.draws[:, -1].astype(np.int32) - 1
    expected = [strength * np.sum(s[edges[:, 0]] * s[edges[:, 1]]) for s in spins]
    np.testing.assert_allclose(result.stats["lp"][:, -1], expected, rtol=1e-4, atol=5)
    assert (result.stats["jump"] > 0).any()
    colours = target.colours()
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert colours.max() < 16
