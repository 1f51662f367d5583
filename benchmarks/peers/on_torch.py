"""Searches on torch: simulated bifurcation and quasi-quantum annealing."""

import time

import numpy as np

from discrax.problems import Problem
from peers.forms import is_set, model_of


def bifurcation(problem: Problem, seconds: float, num_threads: int, seed: int):
    """simulated-bifurcation, ballistic and discrete in turn, 4,000 steps of as many agents as the time has room for."""
    import simulated_bifurcation
    import torch

    torch.set_num_threads(num_threads)
    torch.manual_seed(seed)
    begin = time.perf_counter()
    form = model_of(problem)
    Q = np.zeros((form.num_sites, form.num_sites), np.float32)
    Q[tuple(form.edges.T)] = -form.weights
    best, least, rounds, found_at = None, np.inf, 0, 0.0

    def run(agents: int, steps: int) -> float:
        nonlocal best, least, rounds, found_at
        began = time.perf_counter()
        state, energy = simulated_bifurcation.minimize(
            Q, (-form.linear).astype(np.float32), domain="binary", verbose=False, agents=agents, max_steps=steps,
            mode=("ballistic", "discrete")[rounds % 2], early_stopping=False,
        )  # fmt: skip
        now = time.perf_counter()
        rounds += 1
        if float(energy) < least:
            best, least, found_at = state.cpu().numpy().astype(np.int8), float(energy), now - begin
        return now - began

    agents, steps = 128, 4_000
    step = run(agents, 20) / 20
    while agents > 8 and step * steps > 0.4 * seconds:
        agents //= 2
        step = run(agents, 20) / 20
    while (left := seconds - (time.perf_counter() - begin)) > 0.1 * seconds:
        fits = max(20, min(steps, int(left / step)))
        step = run(agents, fits) / fits
    return best, {"reads": rounds, "found_at": found_at}


def qqa(problem: Problem, seconds: float, num_threads: int, seed: int):
    """Quasi-quantum annealing, `qqa.solve`, on independent sets and cuts without weights of either sign."""
    import networkx as nx
    import qqa as package
    import torch

    torch.set_num_threads(num_threads)
    begin = time.perf_counter()
    form = model_of(problem)
    graph = nx.Graph()
    graph.add_nodes_from(range(form.num_sites))
    graph.add_edges_from(form.edges.tolist())
    its_problem = package.MaximumIndependentSet(graph) if is_set(problem) else package.MaxCut(graph)
    left = max(0.5, seconds - (time.perf_counter() - begin))
    result = package.solve(its_problem, goal="best", budget=f"{left:.2f}s", device="cpu", seed=seed)
    return np.asarray(result.best_sol.detach().cpu()).reshape(-1)[: form.num_sites].round().astype(np.int8), {}
