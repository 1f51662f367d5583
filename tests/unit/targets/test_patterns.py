"""No change of a leaf can make the pattern of a coupling untrue: training changes weights, not structure."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.target import evaluate, exact_evaluation
from discrax.targets import Dense, Sparse

from ..helpers import brute_force_ratios

RNG = np.random.default_rng(3)
J = RNG.normal(size=(4, 4))
J = jnp.asarray((J + J.T) / 2, jnp.float32)  # with a diagonal
EDGES = np.array([[0, 1], [1, 2], [2, 3]])

SPACES = [dx.Binary(4), dx.Spin(4), dx.Ordinal(4, [-1.0, 0.5, 2.0])]


def with_matrix(space):
    """Built from zeros, then given couplings and a diagonal."""
    built = dx.targets.Quadratic(space, np.zeros((4, 4)), 0.3)
    return eqx.tree_at(lambda target: target.coupling.matrix, built, J)


def check_ratios(target):
    x = np.array([0, 1, 1, 0], np.int8)
    expected = brute_force_ratios(
        lambda y: float(target.log_prob(target.space.embed(jnp.asarray(y)))), x, target.space.num_levels
    )
    np.testing.assert_allclose(evaluate(target, jnp.asarray(x)).ratios, expected, atol=1e-4)
    np.testing.assert_allclose(exact_evaluation(target, jnp.asarray(x)).ratios, expected, atol=1e-4)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_ratios_are_exact_after_a_matrix_of_zeros_got_a_diagonal(space):
    check_ratios(with_matrix(space))


def test_every_site_of_a_dense_matrix_has_a_colour_of_its_own():
    """Whatever its entries are now: they may change, and a colouring made of zeros would be wrong then."""
    for matrix in (np.zeros((5, 5)), np.eye(5)):
        target = dx.targets.Ising.dense(matrix)
        assert sorted(target.colours().tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kernel", [dx.samplers.gibbs(), dx.samplers.gibbs("chromatic")], ids=["gibbs", "chromatic"])
def test_gibbs_is_exact_after_the_couplings_were_set(kernel):
    target = with_matrix(dx.Binary(4))
    assert dx.exact.check_kernel(kernel, target, num_chains=20_000)


def test_edges_of_weight_zero_are_edges():
    """They share no colour, so that training may give them a weight."""
    target = dx.targets.Ising.graph(EDGES, 0.0)
    colours = target.colours()
    assert (colours[EDGES[:, 0]] != colours[EDGES[:, 1]]).all()


def test_what_pads_the_rows_of_a_sparse_matrix_is_never_read():
    built = Sparse(EDGES, np.ones(3), (4,))
    weights = built.blocks[0].weights
    filled = eqx.tree_at(lambda it: it.blocks[0].weights, built, jnp.where(weights == 0, 7.0, weights))
    assert (filled.blocks[0].weights == 7).any()
    e = jnp.asarray([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_array_equal(filled.product(e), built.product(e))
    sites = jnp.arange(4)
    np.testing.assert_array_equal(filled.neighbours(sites)[1], built.neighbours(sites)[1])
    np.testing.assert_array_equal(filled.among(sites), built.among(sites))


def test_a_loop_of_weight_zero_is_a_diagonal():
    built = Sparse(np.array([[0, 0], [0, 1]]), np.array([0.0, 1.0]), (2,))
    assert built.diagonal() is not None
    assert Dense(np.zeros((2, 2))).diagonal() is not None


def test_colours_are_found_when_they_are_asked_for(monkeypatch):
    """To build a target costs no colouring; a kernel that needs colours is prepared before a program is made."""
    counted = []
    monkeypatch.setattr("discrax.targets.sparse_coupling._colours", lambda *pattern: counted.append(1) or np.arange(4))
    target = dx.targets.Quadratic(dx.Spin(4), Sparse(EDGES, 1.0, (4,)))
    dx.sample(jax.random.key(0), target, "gibbs", num_chains=2, num_warmup=0, num_samples=1)
    assert not counted
    kernel = dx.samplers.gibbs("chromatic")
    result = dx.sample(jax.random.key(0), target, kernel, num_chains=2, num_warmup=0, num_samples=1)
    assert counted
    assert result.kernel.num_colours == 4
    with pytest.raises(ValueError, match=r"pass kernel\.prepare"):
        jax.eval_shape(kernel.step, jax.random.key(0), target, kernel.init(target, jnp.zeros(4, jnp.int8)))


def test_a_kernel_that_was_prepared_for_another_graph_is_prepared_again():
    other = dx.targets.Ising.graph(np.array([[0, 2], [1, 3], [0, 3]]), 0.7)
    kernel = dx.samplers.gibbs("chromatic").prepare(dx.targets.Ising.graph(EDGES, 0.7))[0]
    assert dx.exact.check_kernel(kernel, other, num_chains=20_000)


def test_a_chromatic_sweep_of_many_colours_is_a_sweep():
    """More colours than are unrolled: every site is redrawn once, and the log-probability is kept."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(20, 20)) / 10
    target = dx.targets.Ising.dense((matrix + matrix.T) / 2)
    result = dx.sample(
        jax.random.key(0), target, dx.samplers.gibbs("chromatic"), num_chains=2, num_warmup=0, num_samples=5
    )
    for chain in range(2):
        x = jnp.asarray(result.draws[chain, -1])
        assert result.stats["lp"][chain, -1] == pytest.approx(float(target.log_prob(target.space.embed(x))), abs=1e-3)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: dx.targets.Ising.dense(np.array([[0, np.nan], [np.nan, 0]])),
            "Couplings must be finite, but holds nan",
        ),
        (lambda: dx.targets.Ising.dense(np.array([[0, 1j], [1j, 0]])), "Couplings must be real numbers"),
        (lambda: dx.targets.Ising.lattice((3, 3), "a"), "A coupling must be real numbers, but got 'a'"),
        (lambda: dx.targets.Ising.lattice((3, 3), 1j), "A coupling must be real numbers"),
        (lambda: dx.targets.Ising.lattice((3, 3), np.nan), "A coupling must be finite, but holds nan"),
        (lambda: dx.targets.Ising.lattice((3, 3), 10**400), "A coupling must be numbers that fit a float"),
        (lambda: dx.targets.Ising.lattice((3, 3), 1e300), "A coupling must fit float32, but holds 1e"),
        (lambda: dx.targets.Ising.graph(EDGES, np.inf), "must be finite, but holds inf"),
        (lambda: dx.targets.Ising.lattice((3, 3), 0.1, np.nan), "The field must be finite, but holds nan"),
        (lambda: dx.targets.Quadratic.from_qubo(np.full((2, 2), 1e308)), "Q must fit float32"),
        (lambda: dx.targets.Quadratic(dx.Binary, np.zeros((4, 4))), "but got the class itself"),
    ],
)
def test_numbers_that_are_none_are_refused(build, words, as_a_user):
    with pytest.raises((TypeError, ValueError), match=words):
        build()


def test_parallel_edges_of_a_multigraph_add_up():
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiGraph([(0, 1), (0, 1), (0, 1)])
    target = dx.targets.Ising.graph(graph, 1.0)
    assert float(target.log_prob(jnp.asarray([1.0, 1.0]))) == 3
