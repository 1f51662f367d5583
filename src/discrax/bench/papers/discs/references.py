"""What ratios are taken to where nobody has published a value: found here, and kept in the cache folder.

The papers divide cuts by what Gurobi found in an hour, which on graphs of more than about 300 nodes is less than the
best. Here annealing site by site looks for the largest cut in a stated number of sweeps; on small graphs HiGHS then
looks for a larger one, and usually proves that there is none: with x_i the side of node i and y_e = 1 where an edge
e = ij is cut,

    max sum_e w_e y_e,   y_ij <= x_i + x_j <= 2 - y_ij,   y_ij + y_jk + y_ik <= 2 in every triangle.

On two cores graphs of up to 40 nodes took it a second, of 64 to 75 nodes 8 to 20, and one of 147 nodes more than a
minute, in which it had proved nothing. Largest cliques of ego networks are found by branch and bound.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence

import jax
import numpy as np

from discrax.bench.experiments.data import cache_folder
from discrax.bench.experiments.optimisation import Reference
from discrax.bench.plan.measure import check_complete
from discrax.core.files import write_whole
from discrax.problems import Graph, MaxCut
from discrax.solving import searches, solve_many

_CHAINS, _SWEEPS = 8, 4000
_MOST_NODES_TO_PROVE = 80
_SECONDS_OF_A_PROOF, _SECONDS_OF_ALL_PROOFS = 60.0, 600.0
_INFEASIBLE = 2  # a status of scipy's


def best_cuts(problems: Sequence[MaxCut]) -> tuple[Reference, ...]:
    """By annealing, 8 chains of 4,000 sweeps; where graphs are small, improved or proved by HiGHS."""
    how = f"cut, {_CHAINS} chains, {_SWEEPS} sweeps, HiGHS {_SECONDS_OF_A_PROOF:g} s to {_MOST_NODES_TO_PROVE} nodes"

    def compute() -> list[Reference]:
        begin = time.perf_counter()
        search = searches.Sites(num_chains=_CHAINS)
        found = solve_many(jax.random.key(0), problems, search, num_steps=_SWEEPS, progress=False)
        check_complete(*found)
        seconds = (time.perf_counter() - begin) / len(problems)
        left, references = _SECONDS_OF_ALL_PROOFS, []
        for problem, solution in zip(problems, found, strict=True):
            one = Reference(solution.objective, seconds, solution.is_proved)
            if left > 0 and not one.is_proved and problem.graph.num_nodes <= _MOST_NODES_TO_PROVE:
                one = prove_cut(problem.graph, one, min(left, _SECONDS_OF_A_PROOF))
                left -= (one.seconds or 0.0) - seconds
            references.append(one)
        return references

    return remember(how, [problem.graph for problem in problems], compute)


def prove_cut(graph: Graph, known: Reference, seconds: float) -> Reference:
    """The known cut, or a larger one, and whether HiGHS proved in so many seconds that none is larger.

    Weights must be whole numbers of at least 1: a larger cut is then larger by 1.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    begin, n, m = time.perf_counter(), graph.num_nodes, graph.num_edges
    if m == 0 or (graph.weights < 1).any() or (graph.weights != np.rint(graph.weights)).any():
        return known
    nodes, edges = graph.edges.tolist(), list(range(n, n + m))
    rows: list[tuple[list[int], Sequence[float], float]] = []  # places, coefficients, what they sum to at most
    for edge, (i, j) in zip(edges, nodes, strict=True):
        rows += [([edge, i, j], [1, -1, -1], 0), ([edge, i, j], [1, 1, 1], 2)]
    rows += [([edges[e] for e in triangle], [1, 1, 1], 2) for triangle in _triangles(graph)]
    rows.append((edges, (-graph.weights).tolist(), -(known.value + 1)))
    start = np.cumsum([0, *(len(places) for places, _, _ in rows)])
    places, coefficients = (np.concatenate([row[k] for row in rows]) for k in (0, 1))
    table = csr_array((coefficients, places, start), shape=(len(rows), n + m))
    limits, most = np.array([row[2] for row in rows]), np.ones(n + m)
    most[np.argmax(graph.degrees)] = 0  # a cut is the same with its sides exchanged
    found = milp(
        np.concatenate([np.zeros(n), -graph.weights]),
        integrality=np.repeat([1, 0], [n, m]),
        bounds=Bounds(np.zeros(n + m), most),
        constraints=LinearConstraint(table, ub=limits),
        options={"time_limit": seconds},
    )
    spent = (known.seconds or 0.0) + time.perf_counter() - begin
    if found.x is None:
        return Reference(known.value, spent, is_proved=found.status == _INFEASIBLE)
    larger = float(MaxCut(graph).objective(np.rint(found.x[:n]).astype(np.int8)))
    return Reference(larger, spent, is_proved=found.status == 0)


def _triangles(graph: Graph) -> list[tuple[int, int, int]]:
    """Three edges each."""
    place = {frozenset(edge): e for e, edge in enumerate(graph.edges.tolist())}
    neighbours: list[set[int]] = [set() for _ in range(graph.num_nodes)]
    for i, j in graph.edges.tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    return [
        (e, place[frozenset((i, k))], place[frozenset((j, k))])
        for e, (i, j) in enumerate(graph.edges.tolist())
        for k in neighbours[i] & neighbours[j]
        if k > max(i, j)
    ]


def largest_cliques(graphs: Sequence[Graph]) -> tuple[Reference, ...]:
    """Exactly, by branch and bound."""

    def compute() -> list[Reference]:
        references = []
        for graph in graphs:
            begin = time.perf_counter()
            size = clique_number(graph)
            references.append(Reference(float(size), time.perf_counter() - begin, is_proved=True))
        return references

    return remember("largest clique, timed", graphs, compute)


def clique_number(graph: Graph) -> int:
    """The size of the largest clique."""
    import networkx as nx

    nodes = nx.Graph()
    nodes.add_nodes_from(range(graph.num_nodes))
    nodes.add_edges_from(graph.edges.tolist())
    return nx.max_weight_clique(nodes, weight=None)[1]


def remember(how: str, graphs: Sequence[Graph], compute: Callable[[], Sequence[Reference]]) -> tuple[Reference, ...]:
    """References of graphs, from the cache where they have been found in this way before."""
    content = hashlib.sha256(how.encode())
    for graph in graphs:
        content.update(f"{graph.num_nodes} ".encode() + graph.edges.tobytes() + graph.weights.tobytes())
    path = cache_folder() / f"references-{content.hexdigest()[:16]}.json"
    if not path.is_file():
        write_whole(path, json.dumps({"how": how, "references": [tuple(each) for each in compute()]}))
    return tuple(Reference(*each) for each in json.loads(path.read_text())["references"])
