"""Bayesian networks that others made, beside pgmpy: `python benchmarks/interop_factors.py FOLDER [--only NAME ...]`.

FOLDER has `asia.bif.gz` and others, as pgmpy and the bnlearn repository have them. Evidence are three variables without
children, as they are in one draw of the network. Errors are the largest difference of a marginal from pgmpy's exact
elimination. ESS is that of the slowest variable (of the draws' most frequent level) for chains, and
(sum w)^2 / sum w^2 for weighted draws. discrax is timed as a user sees it: a later call, nothing left out but the
compilation, which is told apart. It and likelihood weighting run in turns, three times each, of which the fastest
counts. pgmpy's Gibbs sampler takes no evidence, so it runs without; it is given up after `--patience` seconds. The end
is a table for docs/interop/factor-graphs.md.
"""

import argparse
import gzip
import logging
import signal
import time
import warnings
from pathlib import Path

import jax
import numpy as np

import discrax as dx
from discrax.core.supports import tables_of
from discrax.diagnostics.ess import ess
from discrax.interop.bif import read_bif
from discrax.targets import FactorGraph

NETWORKS = ("asia", "sachs", "child", "alarm", "hailfinder", "win95pts")


def one_draw(graph: FactorGraph, rng: np.random.Generator) -> dict:
    """A state of a Bayesian network, parents first: the last site of a table is its child."""
    tables, state = tables_of(graph), {}
    while len(state) < len(tables):
        for scope, table in tables:
            if scope[-1] not in state and all(parent in state for parent in scope[:-1]):
                weights = np.exp(np.asarray(table[tuple(state[parent] for parent in scope[:-1])], np.float64))
                state[scope[-1]] = int(rng.choice(len(weights), p=weights / weights.sum()))
    return state


def evidence_for(graph: FactorGraph) -> dict:
    """Three variables without children, as they are in one draw: {name: label}."""
    parents = {site for scope in graph.scopes for site in scope[:-1]}
    leaves = [site for site in range(len(graph.names)) if site not in parents][:3]
    state = one_draw(graph, np.random.default_rng(0))
    return {graph.names[site]: graph.labels[site][state[site]] for site in leaves}


def slowest(codes: np.ndarray) -> float:
    """The ESS of the slowest variable of draws (chains, draws, variables), of those whose mode is not nearly sure.

    Of an event that most chains never see an ESS by chains says nothing.
    """
    flat = codes.reshape(-1, codes.shape[-1])
    modes = [np.bincount(column).argmax() for column in flat.T]
    varying = [i for i, column in enumerate(flat.T) if 0.01 < np.mean(column == modes[i]) < 0.99]
    return min(float(np.sum(ess((codes[..., i] == modes[i]).astype(float)))) for i in varying)


def ours(graph: FactorGraph, exact: dict, seed: int) -> dict:
    begin = time.perf_counter()
    result = dx.sample(
        jax.random.key(seed), graph, "auto", num_chains=500, num_warmup=10, num_samples=400, progress=False
    )
    seconds = time.perf_counter() - begin
    found = graph.marginals(result.draws)
    error = max(np.abs(found[name] - exact[name]).max() for name in exact)
    some = np.asarray(result.draws)[:, :, [graph.site(name) for name in exact]]
    assert result.reports[0].chosen == "gibbs, elimination"
    return {"error": error, "ess_per_s": slowest(some) / seconds, "seconds": seconds}


def exact_marginals(model, graph: FactorGraph, evidence: dict) -> dict:
    from pgmpy.inference import VariableElimination

    elimination, exact = VariableElimination(model), {}
    for name in graph.names:
        if name not in evidence:
            answer = elimination.query([name], evidence, show_progress=False)
            order = [answer.state_names[name].index(label) for label in graph.labels[graph.site(name)]]
            exact[name] = np.asarray(answer.values)[order]
    return exact


def likelihood_weighting(model, graph: FactorGraph, evidence: dict, exact: dict, seed: int, size: int = 20_000) -> dict:
    from pgmpy.factors.discrete import State
    from pgmpy.sampling import BayesianModelSampling

    sampler = BayesianModelSampling(model)
    begin = time.perf_counter()
    draws = sampler.likelihood_weighted_sample(
        [State(*each) for each in evidence.items()], size=size, show_progress=False, n_jobs=1, seed=seed
    )
    seconds = time.perf_counter() - begin
    weights = np.asarray(draws["_weight"], np.float64)
    error = 0.0
    for name, probabilities in exact.items():
        labels = np.asarray(draws[name].astype(str))
        found = [weights[labels == label].sum() / weights.sum() for label in graph.labels[graph.site(name)]]
        error = max(error, float(np.abs(found - probabilities).max()))
    return {"error": error, "ess_per_s": weights.sum() ** 2 / np.sum(weights**2) / seconds}


def gibbs_of_pgmpy(model, size: int, patience: int) -> str:
    from pgmpy.sampling import GibbsSampling

    def give_up(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(patience)
    try:
        sampler = GibbsSampling(model)
        begin = time.perf_counter()
        draws = sampler.sample(size=size, seed=0)
        seconds = time.perf_counter() - begin
    except TimeoutError:
        return f"none in {patience} s"
    except ValueError as error:  # a start that is impossible
        return f"fails: {error}"
    finally:
        signal.alarm(0)
    return f"{slowest(np.asarray(draws, np.int64)[None, size // 10 :]) / seconds:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=NETWORKS)
    parser.add_argument("--patience", type=int, default=5)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    from pgmpy.readwrite import BIFReader

    columns = ["network", "variables", "error", "error, weighting", "ESS/s", "ESS/s, weighting", "ratio"]
    columns += ["ESS/s, their Gibbs", "first call", "later"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in args.only:
        path = args.folder / f"{name}.bif.gz"
        graph = read_bif(path)
        evidence = evidence_for(graph)
        model = BIFReader(string=gzip.decompress(path.read_bytes()).decode()).get_model()
        exact = exact_marginals(model, graph, evidence)
        first, mine, weighted = ours(graph.given(evidence), exact, 0), [], []
        for seed in (1, 2, 3):
            mine.append(ours(graph.given(evidence), exact, seed))
            weighted.append(likelihood_weighting(model, graph, evidence, exact, seed))
        theirs = gibbs_of_pgmpy(model, 2000, args.patience)
        errors = [f"{max(each['error'] for each in some):.4f}" for some in (mine, weighted)]
        rates = [max(each["ess_per_s"] for each in some) for some in (mine, weighted)]
        later = min(each["seconds"] for each in mine)
        row = [
            name,
            len(graph.names),
            *errors,
            *(f"{rate:.3g}" for rate in rates),
            f"{rates[0] / rates[1]:.0f}",
            theirs,
        ]
        print(f"| {' | '.join(map(str, row))} | {first['seconds']:.0f} s | {later:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
