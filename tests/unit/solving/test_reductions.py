"""Reductions are exact: the optimum of a kernel and its offset is that of the graph, and sets lift to sets."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from discrax.problems.generators import barabasi_albert
from discrax.solving.reductions import Kernel, reduce_graph


def random_graph(seed: int, *, is_weighted: bool) -> tuple[int, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    n, density = int(generator.integers(1, 15)), generator.uniform(0.05, 0.6)
    edges = [pair for pair in itertools.combinations(range(n), 2) if generator.random() < density]
    weights = generator.integers(1, 6, n).astype(float) if is_weighted else np.ones(n)
    return n, np.array(edges, np.int64).reshape(-1, 2), weights


def optimum(n: int, edges: np.ndarray, weights: np.ndarray) -> float:
    around = [0] * n
    for i, j in edges.tolist():
        around[i] |= 1 << j
        around[j] |= 1 << i

    @functools.cache
    def best(free: int) -> float:
        if not free:
            return 0.0
        v = free.bit_length() - 1
        rest = free & ~(1 << v)
        return max(best(rest), weights[v] + best(rest & ~around[v]))

    return best((1 << n) - 1)


def some_set(kernel: Kernel, generator: np.random.Generator) -> np.ndarray:
    x = np.zeros(len(kernel.nodes), np.uint8)
    for v in generator.permutation(len(x)):
        x[v] = 1
        if generator.random() < 0.2 or (x[kernel.edges[:, 0]] & x[kernel.edges[:, 1]]).any():
            x[v] = 0
    return x


def assert_exact(seed: int, is_weighted: bool, kernel_of=reduce_graph) -> int:
    n, edges, weights = random_graph(seed, is_weighted=is_weighted)
    kernel = kernel_of(n, edges, weights)
    assert kernel.offset + optimum(len(kernel.nodes), kernel.edges, kernel.weights) == optimum(n, edges, weights)
    x = some_set(kernel, np.random.default_rng(seed))
    lifted = kernel.lift(x)
    assert not (lifted[edges[:, 0]] & lifted[edges[:, 1]]).any()
    assert lifted @ weights == x @ kernel.weights + kernel.offset
    assert (kernel.project(lifted) == x).all()
    return n - len(kernel.nodes)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_optima_and_lifted_sets(is_weighted):
    assert sum(assert_exact(seed, is_weighted) for seed in range(150)) > 500


def without_last_step(*graph):
    kernel = reduce_graph(*graph)
    return dataclasses.replace(kernel, steps=kernel.steps[:-1])


def as_if_of_one_weight(n, edges, weights):
    kernel = reduce_graph(n, edges)
    return dataclasses.replace(kernel, weights=weights[kernel.nodes])


@pytest.mark.parametrize("broken", [without_last_step, as_if_of_one_weight])
def test_broken_reductions_are_found_out(broken):
    def assert_all_exact():
        for seed in range(300):
            assert_exact(seed, True, broken)

    with pytest.raises(AssertionError):
        assert_all_exact()


def test_nothing_is_left_of_trees_and_cycles():
    tree = barabasi_albert(300, 1, 0)
    cycle = np.stack([np.arange(101), (np.arange(101) + 1) % 101], axis=1)
    for n, edges in ((300, tree.edges), (101, np.sort(cycle, axis=1))):
        assert len(reduce_graph(n, edges).nodes) == 0
    assert reduce_graph(101, cycle).offset == 50
    assert reduce_graph(0, np.zeros((0, 2), np.int64)).offset == 0


def test_equal_weights_are_a_unit():
    kernel = reduce_graph(3, np.array([[0, 1], [1, 2]]), np.full(3, 2.5))
    assert kernel.offset == 5
    assert kernel.lift(np.zeros(0, np.uint8)).tolist() == [1, 0, 1]
