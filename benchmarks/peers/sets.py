"""KaMIS through chszlablib."""

from collections.abc import Callable
from typing import Any

import numpy as np

from discrax.problems import Problem
from peers.forms import model_of


def _kamis(problem: Problem, search: Callable[[Any], Any]):
    from chszlablib import Graph

    model = model_of(problem)
    ends = np.concatenate([model.edges, model.edges[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    start = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=model.num_sites))])
    state = np.zeros(model.num_sites, np.int8)
    state[np.asarray(search(Graph.from_csr(start.astype(np.int64), ends[:, 1].astype(np.int32))).vertices)] = 1
    return state, {}


def kamis_online(problem: Problem, seconds: float, num_threads: int, seed: int):
    """KaMIS, OnlineMIS: reductions on the fly and iterated local search."""
    from chszlablib import IndependenceProblems

    return _kamis(
        problem,
        lambda graph: IndependenceProblems.online_mis(graph, time_limit=seconds, seed=seed, ils_iterations=2**31 - 1),
    )


def kamis_redumis(problem: Problem, seconds: float, num_threads: int, seed: int):
    """KaMIS, ReduMIS: reductions and an evolutionary search. It looks at its clock late: see the seconds it took."""
    from chszlablib import IndependenceProblems

    return _kamis(problem, lambda graph: IndependenceProblems.redumis(graph, time_limit=seconds, seed=seed))
