"""Clusters are those of scipy on every kind of coupling; what cannot have clusters is refused in a sentence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import discrax as dx
from discrax.core.bonds import Bonds, clusters

RNG = np.random.default_rng(5)


def hubs(n: int) -> np.ndarray:
    """A few sites with many neighbours among many with few: neighbours lie in several blocks."""
    edges = [(i, i + 1) for i in range(n - 1)] + [(hub, i) for hub in range(3) for i in range(5, n, 2)]
    return np.array(edges)


def with_hubs() -> dx.targets.Coupling:
    edges = hubs(2000)
    return dx.targets.Sparse(edges, np.ones(len(edges)), (2000,))


COUPLINGS = {
    "lattice": lambda: dx.targets.Lattice((17, 13), 1.0, periodic=True),
    "free-lattice": lambda: dx.targets.Lattice((5, 7, 4), (1.0, 2.0, RNG.uniform(1, 2, (5, 7, 4)))),
    "line": lambda: dx.targets.Lattice((300,), 1.0),
    "graph": lambda: dx.targets.Sparse(RNG.integers(0, 60, (70, 2)), np.ones(70), (6, 10)),
    "hubs": with_hubs,
    "dense": lambda: dx.targets.Dense(np.ones((20, 20))),
    "one site": lambda: dx.targets.Dense(np.ones((1, 1))),
}


def ends_of(bonds: Bonds, n: int) -> np.ndarray:
    """Found by asking: a bond is open by itself, and the higher of its ends sees the lower."""
    if hasattr(bonds, "ends"):
        return np.asarray(bonds.ends).T
    first = np.arange(n).reshape(bonds.shape)
    return np.concatenate([np.stack([first, np.roll(first, -1, a)], -1).reshape(-1, 2) for a in range(first.ndim)])


@pytest.mark.parametrize("name", COUPLINGS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.55, 1.0])
def test_clusters_are_the_connected_components(name, share):
    coupling = COUPLINGS[name]()
    n, bonds = int(np.prod(coupling.shape)), coupling.bonds()
    exists = np.asarray(coupling.bond_weights(bonds)) > 0
    first, others, _ = coupling.pattern()
    rows = np.repeat(np.arange(n), np.diff(first))
    assert exists.sum() == (rows < others).sum()  # each pair once
    is_open = exists & (RNG.uniform(size=bonds.count) < share)
    found = np.asarray(jax.jit(lambda is_open: clusters(bonds, is_open, n))(jnp.asarray(is_open)))
    ends = ends_of(bonds, n)[is_open]
    count, labels = connected_components(coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(n, n)), directed=False)
    lowest = np.full(count, n)
    np.minimum.at(lowest, labels, np.arange(n))
    np.testing.assert_array_equal(found, lowest[labels])


def test_clusters_of_many_chains_are_those_of_each():
    bonds, n = dx.targets.Lattice((17, 13), 1.0, periodic=True).bonds(), 17 * 13
    is_open = jnp.asarray(RNG.uniform(size=(3, 7, bonds.count)) < 0.5)
    found = jax.jit(jax.vmap(jax.vmap(lambda is_open: clusters(bonds, is_open, n))))(is_open)
    one = jax.jit(lambda is_open: clusters(bonds, is_open, n))
    for at in np.ndindex(3, 7):
        np.testing.assert_array_equal(found[at], one(is_open[at]))
    assert not np.array_equal(found[0, 0], found[2, 6])


def test_graphs_of_their_own_have_their_own_clusters():
    graphs = [dx.targets.Sparse([(0, 1), (1, other)], np.ones(2), (4,)).bonds() for other in (2, 3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *graphs)
    found = jax.vmap(lambda bonds: clusters(bonds, jnp.ones(2, bool), 4))(stacked)
    assert found.tolist() == [[0, 0, 0, 3], [0, 0, 2, 0]]


def test_bonds_and_fields_are_those_of_log_prob():
    """log pi(x) - sum K [x_i = x_j] - sum f_i(x_i) is the same for all x."""
    matrix = np.triu(RNG.uniform(0, 1, (4, 4)))
    for space in (dx.Spin(4), dx.Binary(4), dx.Categorical(4, 2), dx.Categorical(4, 3)):
        size = (4, space.num_levels) if isinstance(space, dx.Categorical) else (4,)
        target = dx.targets.Quadratic(space, matrix + matrix.T, RNG.normal(size=size))
        bonds = target.bonds()
        strengths, fields = np.asarray(target.strengths(bonds)), np.asarray(target.site_fields())
        x = np.asarray(space.enumerate())
        of_sites = fields[None] * x if fields.ndim == 1 else np.take_along_axis(fields[None], x[..., None], 2)[..., 0]
        i, j = np.asarray(bonds.ends)
        rest = jax.vmap(target.log_prob)(space.embed(jnp.asarray(x))) - of_sites.sum(1)
        rest = rest - ((x[:, i] == x[:, j]) * strengths).sum(1)
        assert np.ptp(rest) < 1e-5


@pytest.mark.parametrize("name", ["swendsen_wang", "wolff", "cycle(gibbs,wolff)"])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        (dx.targets.Ising.lattice((3, 3), -0.4), "12 of 12 couplings do not.*parallel tempering.*Houdayer"),
        (dx.targets.Ising.graph(np.array([(0, 1), (1, 2)]), [0.5, -0.1]), "1 of 2 couplings do not"),
        (dx.Tempered(dx.targets.Ising.lattice((3, 3), 0.4), -1.0), "12 of 12 couplings do not"),
        (dx.Target.from_log_prob(jnp.sum, dx.Spin(3)), "needs bonds between sites"),
        (dx.targets.Quadratic(dx.Ordinal(3, [0.0, 1.0, 2.0]), np.ones((3, 3))), "takes Binary or Spin or Categorical"),
    ],
)
def test_what_is_no_ferromagnet_is_refused_before_anything_is_compiled(name, target, words):
    with pytest.raises(ValueError, match=words):
        dx.sample(jax.random.key(0), target, name, num_samples=1)
    assert not dx.samplers.get_sampler(name).fits(target)


def test_couplings_that_become_negative_under_a_kernel_are_counted():
    target = dx.targets.Ising.lattice((3, 3), 0.4)
    kernel, _ = dx.samplers.swendsen_wang().prepare(target)
    state = kernel.init(target, jnp.zeros((3, 3), jnp.int8))
    assert not kernel.step(jax.random.key(0), target, state)[1].is_invalid
    other = eqx.tree_at(lambda each: each.coupling.weights[0], target, jnp.asarray(-0.4))
    assert kernel.step(jax.random.key(0), other, state)[1].is_invalid


def test_a_graph_inside_a_program_needs_a_prepared_kernel():
    target = dx.targets.Ising.graph(np.array([(0, 1), (1, 2)]), 0.5)
    kernel, x = dx.samplers.wolff(), jnp.zeros(3, jnp.int8)
    with pytest.raises(ValueError, match=r"kernel\.prepare\(target\)"):
        jax.jit(lambda target: kernel.step(jax.random.key(0), target, kernel.init(target, x)))(target)


@pytest.mark.slow
def test_below_the_critical_temperature_clusters_cross_where_gibbs_stays():
    target = dx.targets.Ising.lattice((16, 16), 0.6, periodic=True)
    spins = {}
    for name in ("swendsen_wang", "wolff", dx.samplers.gibbs("chromatic")):
        result = dx.sample(jax.random.key(0), target, name, num_chains=4, num_warmup=300, num_samples=300)
        spins[name if isinstance(name, str) else "gibbs"] = np.mean(2.0 * result.draws - 1, axis=(2, 3))
    crossings = {name: (np.diff(np.sign(m), axis=1) != 0).mean() for name, m in spins.items()}
    assert crossings["swendsen_wang"] > 0.4  # each of two signs is as likely
    assert crossings["wolff"] > 0.8  # the large cluster is flipped nearly always
    assert crossings["gibbs"] == 0
