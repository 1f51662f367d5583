"""Searches of ours and of others behind one door: the same problem, cores and seconds, and every number checked.

    with Machine(cores=(0, 1)) as machine:
        found = machine.measure("dwave-sa", problem, seconds=10, seed=0)
        found.value, found.seconds          # None and a sentence in found.error where nothing came

A search runs in worker processes that are held to the cores. One that computes on a single thread runs once on each
core with seeds of its own, and the better result counts. The clock runs from the moment when the problem is handed
over until a state has come back: building the peer's own model counts, importing it does not (each worker first runs
a tiny problem), nor does compilation, which ours reports. States of searches that know no constraints are repaired as
ours are, within the clock, and every value is the problem's own objective of a state that the problem itself finds
feasible.

Annealers take the length of a read, not seconds. A quarter of the time each goes into reads of 1,000, 10,000 and
100,000 sweeps, as many as fit, and what is left into one long read: what a user does who does not know the best
length.
"""

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from discrax.problems import MIS, BinaryQuadratic, MaxClique, MaxCut, Problem

LENGTHS = (1_000, 10_000, 100_000)  # sweeps of a read
FIRST_LENGTH = 100  # of the read that measures the speed
GROWTH = 20  # a call does at most so many times the work of those before it, since the measured speed may be off
MOST_DENSE = 12_000  # nodes; searches that make an n x n matrix of a problem are left out beyond it
MOST_LINEAR = 300_000  # edges; of a linear programme
UNTIL: float | None = None  # a value at which ours ends before its time, where a script asks for that
SECONDS_OF_GRACE = 300.0  # after them a search that has not ended is killed


class Found(NamedTuple):
    """What came of a search. `value` is checked; `notes` are the search's own words."""

    state: np.ndarray | None
    value: float | None
    seconds: float  # compilation apart
    cpu_seconds: float
    start_mib: float  # of the workers before the search
    peak_mib: float
    notes: dict[str, Any]
    error: str | None = None


class Peer(NamedTuple):
    """A search: a function (problem, seconds, num_threads, seed) -> (state, notes), and when it can be used."""

    search: Callable[[Problem, float, int, int], tuple[np.ndarray | None, dict[str, Any]]]
    packages: tuple[str, ...]  # to be importable; their distributions are named in VERSIONS
    is_single: bool = False  # it computes on one thread, so it runs once on each core
    takes: Callable[[Problem], bool] = lambda problem: True


def _model(problem: Problem) -> BinaryQuadratic:
    model = problem.model
    if not isinstance(model, BinaryQuadratic):
        raise ValueError(f"{problem} has no quadratic form.")
    return model


def _is_set(problem: Problem) -> bool:
    """Whether it is a set of nodes without conflicts; then the pairs of its model are the conflicts."""
    return isinstance(problem, MIS | MaxClique)


def _num_sites(problem: Problem) -> int:
    return _model(problem).num_sites


# ---------------------------------------------------------------------------------------------------- discrax


def discrax(problem: Problem, seconds: float, num_threads: int, seed: int, search: str | None = None):
    """`discrax.solve` as it is, or with one search by name."""
    import jax

    import discrax as dx

    def is_enough(report: Any) -> bool:
        return until is not None and float(report.best_values.max()) >= until

    until = UNTIL if problem.sense == "max" or UNTIL is None else -UNTIL
    solution = dx.solve(jax.random.key(seed), problem, search, seconds=seconds, callback=is_enough, progress=False)
    best = solution.history.best
    found_at = float(solution.history.seconds[np.argmax(best == best[-1])]) if len(best) else solution.seconds
    notes = {
        "compile_seconds": solution.compile_seconds,
        "how": solution.search,
        "steps": solution.num_steps,
        "found_at": found_at,
        "backend": jax.default_backend(),
    }
    return solution.state, notes


# --------------------------------------------------------------------------------------------------- annealers


def _read_until(sample: Callable[[int, int, int], tuple[np.ndarray, float]], seconds: float, seed: int):
    """Best state of reads of several lengths; `sample` makes of reads, sweeps and a seed a state and its energy."""
    begin = time.perf_counter()
    best, least, found_at, num_reads, most = None, np.inf, 0.0, 0, 0
    call, sweep = 0.0, np.inf  # seconds of a call by itself, and of a sweep
    seeds = np.random.default_rng(seed)

    def run(reads: int, length: int) -> float:
        nonlocal best, least, found_at, num_reads, most
        began = time.perf_counter()
        state, energy = sample(reads, length, int(seeds.integers(2**31 - 1)))
        now = time.perf_counter()
        num_reads, most = num_reads + reads, max(most, reads * length)
        if energy < least:
            best, least, found_at = state, energy, now - begin
        return now - began

    run(1, 1)
    call = run(1, 1)
    sweep = max(run(1, FIRST_LENGTH) - call, 0.01 * call) / FIRST_LENGTH
    for index, length in enumerate(LENGTHS):
        while True:
            left = seconds * (index + 1) / (len(LENGTHS) + 1) - (time.perf_counter() - begin)
            fits = int((left - call) / (sweep * length))
            if fits < 1:
                break
            reads = min(fits, max(1, int(max(0.5, 10 * call) / (sweep * length))), max(1, GROWTH * most // length))
            sweep = max(run(reads, length) - call, 0.01 * call) / (reads * length)
    while True:
        left = seconds - (time.perf_counter() - begin)
        length = min(int(0.97 * (left - call) / sweep), GROWTH * most)
        if length < FIRST_LENGTH or left < 0.03 * seconds:
            return best, {"reads": num_reads, "found_at": found_at}
        sweep = max(run(1, length) - call, 0.01 * call) / length


def _bqm(problem: Problem):
    import dimod

    model = _model(problem)
    i, j = model.edges.T
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        -model.linear, (i, j, -model.weights), -model.offset, dimod.BINARY
    )


def _first(samples) -> tuple[np.ndarray, float]:
    record = samples.record
    place = int(record.energy.argmin())
    state = np.empty(len(samples.variables), np.int8)
    state[np.fromiter(samples.variables, np.int64, len(state))] = record.sample[place]
    return state, float(record.energy[place])


def dwave_sa(problem: Problem, seconds: float, num_threads: int, seed: int):
    """dwave-samplers' simulated annealing with its own range of temperatures."""
    from dwave.samplers import SimulatedAnnealingSampler

    begin = time.perf_counter()
    bqm, sampler, betas = _bqm(problem), SimulatedAnnealingSampler(), None

    def sample(reads: int, length: int, seed: int) -> tuple[np.ndarray, float]:
        nonlocal betas
        samples = sampler.sample(bqm, num_reads=reads, num_sweeps=length, seed=seed, beta_range=betas)
        betas = samples.info["beta_range"]  # found once: on large problems that takes longer than a thousand sweeps
        return _first(samples)

    return _read_until(sample, seconds - (time.perf_counter() - begin), seed)


def dwave_tabu(problem: Problem, seconds: float, num_threads: int, seed: int):
    """dwave-samplers' tabu search: a first call measures what the call itself costs, a second one has the rest."""
    from dwave.samplers import TabuSampler

    begin = time.perf_counter()
    bqm, sampler = _bqm(problem), TabuSampler()
    state, energy = _first(sampler.sample(bqm, timeout=1, seed=seed))
    spent = time.perf_counter() - begin
    left = seconds - 2 * spent
    if left > 0.05 * seconds:
        again, its_energy = _first(sampler.sample(bqm, timeout=int(1000 * left), seed=seed))
        state = again if its_energy < energy else state
    return state, {}


def _openjij(problem: Problem, seconds: float, seed: int, kind: str):
    """Reads on a model that is built once; a call builds it again where it is given another package's."""
    import openjij

    begin = time.perf_counter()
    form, sampler = _model(problem), getattr(openjij, kind)()
    n, m = form.num_sites, len(form.edges)
    linear = dict(enumerate((-form.linear).tolist()))
    pairs = dict(zip(map(tuple, form.edges.tolist()), (-form.weights).tolist(), strict=True))
    is_sparse = m < n * (n - 1) / 4
    model = openjij.BinaryQuadraticModel(linear, pairs, -form.offset, "BINARY", sparse=is_sparse)
    return _read_until(
        lambda reads, length, seed: _first(sampler.sample(model, num_reads=reads, num_sweeps=length, seed=seed)),
        seconds - (time.perf_counter() - begin),
        seed,
    )


def openjij_sa(problem: Problem, seconds: float, num_threads: int, seed: int):
    """OpenJij's simulated annealing with its own range of temperatures."""
    return _openjij(problem, seconds, seed, "SASampler")


def openjij_sqa(problem: Problem, seconds: float, num_threads: int, seed: int):
    """OpenJij's simulated quantum annealing."""
    return _openjij(problem, seconds, seed, "SQASampler")


# ------------------------------------------------------------------------------------------- independent sets


def _kamis(problem: Problem, search: Callable[[Any], Any]):
    from chszlablib import Graph

    model = _model(problem)
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


# ---------------------------------------------------------------------------------------------- exact solvers


def _cliques(form: BinaryQuadratic) -> list[list[int]]:
    """Cliques that cover all edges, greedily: a row a clique says more than a row an edge."""
    adjacent = [0] * form.num_sites  # bit j of number i: whether i and j are joined
    for i, j in form.edges.tolist():
        adjacent[i] |= 1 << j
        adjacent[j] |= 1 << i
    left, cliques = adjacent.copy(), []
    for i, j in form.edges.tolist():
        if not left[i] >> j & 1:
            continue
        clique, common = [i, j], adjacent[i] & adjacent[j]
        while common:
            useful = common & left[i] or common
            node = (useful & -useful).bit_length() - 1
            clique.append(node)
            common &= adjacent[node]
        inside = sum(1 << node for node in clique)
        for node in clique:
            left[node] &= ~inside
        cliques.append(clique)
    return cliques


def cpsat(problem: Problem, seconds: float, num_threads: int, seed: int):
    """OR-tools CP-SAT: at most one of each clique of conflicts, or products of a quadratic form as variables."""
    from ortools.sat.python import cp_model

    begin = time.perf_counter()
    form = _model(problem)
    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in range(form.num_sites)]
    variables, coefficients = list(x), form.linear.tolist()
    for clique in _cliques(form) if _is_set(problem) else ():
        model.add_at_most_one(x[node] for node in clique)
    pairs = () if _is_set(problem) else zip(form.edges.tolist(), form.weights.tolist(), strict=True)
    for (i, j), w in pairs:
        y = model.new_bool_var("")  # x_i x_j
        if w > 0:
            model.add_implication(y, x[i])
            model.add_implication(y, x[j])
        else:
            model.add_bool_or(y, ~x[i], ~x[j])
        variables.append(y)
        coefficients.append(w)
    if all(each == round(each) for each in coefficients):
        coefficients = [round(each) for each in coefficients]
    model.maximize(cp_model.LinearExpr.weighted_sum(variables, coefficients))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.1, seconds - (time.perf_counter() - begin))
    solver.parameters.num_workers = num_threads
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    notes = {"how": solver.status_name(status)}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, notes
    return np.array([solver.boolean_value(each) for each in x], np.int8), notes


def highs(problem: Problem, seconds: float, num_threads: int, seed: int):
    """HiGHS, mixed integer: a row for each clique of conflicts, or products of a quadratic form linearised.

    For y = x_i x_j it takes y <= x_i, y <= x_j where y gains, and y >= x_i + x_j - 1 where it costs.
    """
    import highspy

    begin = time.perf_counter()
    form, infinity = _model(problem), highspy.kHighsInf
    n, m = form.num_sites, len(form.edges)
    i, j = form.edges.T
    cost, num_columns = form.linear, n
    if _is_set(problem):
        cliques = _cliques(form)
        columns = np.concatenate(cliques) if cliques else np.zeros(0, np.int64)
        starts = np.concatenate([[0], np.cumsum(list(map(len, cliques)))])[:-1]
        values, upper = np.ones(len(columns)), np.ones(len(cliques))
    else:
        cost, num_columns = np.concatenate([form.linear, form.weights]), n + m
        up, down, y = form.weights > 0, form.weights <= 0, n + np.arange(m)
        gains = np.concatenate([np.stack([y[up], i[up]], 1), np.stack([y[up], j[up]], 1)])
        costs = np.stack([i[down], j[down], y[down]], axis=1)
        columns = np.concatenate([gains.ravel(), costs.ravel()])
        values = np.concatenate([np.tile([1.0, -1.0], len(gains)), np.tile([1.0, 1.0, -1.0], len(costs))])
        starts = np.concatenate([2 * np.arange(len(gains)), 2 * len(gains) + 3 * np.arange(len(costs))])
        upper = np.concatenate([np.zeros(len(gains)), np.ones(len(costs))])
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = num_columns, len(upper)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(num_columns), np.ones(num_columns)
    lp.row_lower_, lp.row_upper_ = np.full(len(upper), -infinity), upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.append(starts, len(columns)).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.astype(np.int32), values
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n + [highspy.HighsVarType.kContinuous] * (num_columns - n)
    lp.sense_ = highspy.ObjSense.kMaximize
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", num_threads), ("random_seed", seed)):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    solver.setOptionValue("time_limit", max(0.1, seconds - (time.perf_counter() - begin)))
    solver.run()
    notes = {"how": solver.modelStatusToString(solver.getModelStatus())}
    solution = solver.getSolution()
    if not solution.value_valid:
        return None, notes
    return (np.asarray(solution.col_value[:n]) > 0.5).astype(np.int8), notes


# ----------------------------------------------------------------------------------------------------- torch


def bifurcation(problem: Problem, seconds: float, num_threads: int, seed: int):
    """simulated-bifurcation, ballistic and discrete in turn, 4,000 steps of as many agents as the time has room for."""
    import simulated_bifurcation
    import torch

    torch.set_num_threads(num_threads)
    torch.manual_seed(seed)
    begin = time.perf_counter()
    form = _model(problem)
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
    form = _model(problem)
    graph = nx.Graph()
    graph.add_nodes_from(range(form.num_sites))
    graph.add_edges_from(form.edges.tolist())
    its_problem = package.MaximumIndependentSet(graph) if _is_set(problem) else package.MaxCut(graph)
    left = max(0.5, seconds - (time.perf_counter() - begin))
    result = package.solve(its_problem, goal="best", budget=f"{left:.2f}s", device="cpu", seed=seed)
    return np.asarray(result.best_sol.detach().cpu()).reshape(-1)[: form.num_sites].round().astype(np.int8), {}


def _takes_qqa(problem: Problem) -> bool:
    is_plain_cut = isinstance(problem, MaxCut) and (problem.graph.weights == 1).all()
    return (_is_set(problem) or is_plain_cut) and _num_sites(problem) <= MOST_DENSE


def _is_small(problem: Problem) -> bool:
    return _num_sites(problem) <= MOST_DENSE


def _is_linear(problem: Problem) -> bool:
    return len(_model(problem).edges) <= MOST_LINEAR


PEERS = {
    "discrax": Peer(discrax, ()),
    "dwave-sa": Peer(dwave_sa, ("dwave.samplers",), is_single=True),
    "dwave-tabu": Peer(dwave_tabu, ("dwave.samplers",), is_single=True, takes=_is_small),
    "openjij-sa": Peer(openjij_sa, ("openjij",), is_single=True),
    "openjij-sqa": Peer(openjij_sqa, ("openjij",), is_single=True, takes=_is_small),
    "kamis-online": Peer(kamis_online, ("chszlablib",), is_single=True, takes=_is_set),
    "kamis-redumis": Peer(kamis_redumis, ("chszlablib",), is_single=True, takes=_is_set),
    "cp-sat": Peer(cpsat, ("ortools",), takes=_is_linear),
    "highs": Peer(highs, ("highspy",), takes=_is_linear),
    "bifurcation": Peer(bifurcation, ("torch", "simulated_bifurcation"), takes=_is_small),
    "qqa": Peer(qqa, ("torch", "qqa"), takes=_takes_qqa),
}
DISTRIBUTIONS = {
    "discrax": ("jax", "numba"),
    "dwave": ("dwave-samplers",),
    "openjij": ("openjij",),
    "kamis": ("chszlablib",),
    "cp": ("ortools",),
    "highs": ("highspy",),
    "bifurcation": ("simulated-bifurcation", "torch"),
    "qqa": ("qqa", "torch"),
}


def peer(name: str) -> Peer:
    """A search by name; "discrax:NAME" is ours with the search NAME."""
    base, _, search = name.partition(":")
    if base not in PEERS or (search and base != "discrax"):
        raise ValueError(f"There is no search {name!r}; known: {', '.join(PEERS)}, discrax:NAME.")
    if search:
        return Peer(lambda problem, seconds, threads, seed: discrax(problem, seconds, threads, seed, search), ())
    return PEERS[base]


def missing(name: str) -> str | None:
    """What a search needs and this machine does not have."""
    for package in peer(name).packages:
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            return package
    return None


def versions(name: str) -> dict[str, str]:
    """The versions that matter for a search."""
    names = DISTRIBUTIONS[name.partition(":")[0].partition("-")[0]]
    found = {}
    for each in names:
        try:
            found[each] = version(each)
        except PackageNotFoundError:
            found[each] = "none"
    return found


# --------------------------------------------------------------------------------------------------- machine


def _serve(connection, cores: tuple[int, ...]) -> None:
    """A worker: takes (name, problem, seconds, threads, seed, until), gives back a state, or a sentence."""
    global UNTIL
    os.sched_setaffinity(0, cores)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some peers talk
    while True:
        try:
            name, problem, seconds, num_threads, seed, UNTIL = connection.recv()
        except EOFError:
            return
        usage, start = resource.getrusage(resource.RUSAGE_SELF), _resident_mib()
        state, notes, error = None, {}, None
        try:
            state, notes = peer(name).search(problem, seconds, num_threads, seed)
            if state is not None and not bool(problem.is_feasible(state)):
                state, notes = problem.repair(state), notes | {"is_repaired": True}
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
        connection.send((state, notes, error, cpu, start, after.ru_maxrss / 1024))


def _resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Machine:
    """Worker processes on given cores, for each package its own, since two of them may not live in one process.

    They are kept from one search to the next, or with `is_fresh` new for each.
    """

    def __init__(self, cores: tuple[int, ...], *, is_fresh: bool = False):
        os.sched_setaffinity(0, cores)
        self.cores, self._is_fresh = cores, is_fresh
        self._crews: dict[tuple[str, ...], list[Any]] = {}
        self._warm: set[tuple[str, str]] = set()

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_) -> None:
        for packages in list(self._crews):
            self._dismiss(packages)

    def _dismiss(self, packages: tuple[str, ...]) -> None:
        """Ends the workers of a package."""
        for process, connection in self._crews.pop(packages, ()):
            connection.close()
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()
        self._warm = {each for each in self._warm if peer(each[0]).packages != packages}

    def _crew(self, packages: tuple[str, ...], size: int) -> list[Any]:
        context, crew = multiprocessing.get_context("spawn"), self._crews.setdefault(packages, [])
        while len(crew) < size:
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self.cores), daemon=True)
            process.start()
            theirs.close()
            crew.append((process, ours))
        return crew[:size]

    def measure(
        self,
        name: str,
        problem: Problem,
        seconds: float,
        seed: int,
        tiny: Problem | None = None,
        until: float | None = None,
    ) -> Found:
        """One search. `tiny` is a small problem of the same kind, for what must be imported and compiled first; ours
        ends where it finds `until`.
        """
        if self._is_fresh:
            self._dismiss(peer(name).packages)
        kind = (name, type(problem).__name__)
        if tiny is not None and kind not in self._warm:
            self._run(name, tiny, 1.0, seed, None)
            self._warm.add(kind)
        return self._run(name, problem, seconds, seed, until)

    def _run(self, name: str, problem: Problem, seconds: float, seed: int, until: float | None) -> Found:
        how = peer(name)
        crew = self._crew(how.packages, len(self.cores) if how.is_single else 1)
        num_threads = 1 if how.is_single else len(self.cores)
        begin = time.perf_counter()
        for place, (_, connection) in enumerate(crew):
            connection.send((name, problem, seconds, num_threads, len(crew) * seed + place, until))
        answers, error = [], None
        for process, connection in crew:
            try:
                if not connection.poll(max(0.0, seconds + SECONDS_OF_GRACE - (time.perf_counter() - begin))):
                    error = f"It did not end within {seconds + SECONDS_OF_GRACE:g} s."
                    process.kill()
                    continue
                answers.append(connection.recv())
            except (EOFError, ConnectionResetError):
                process.join()
                error = f"It died ({process.exitcode})."
        spent = time.perf_counter() - begin
        if error:
            self._dismiss(how.packages)
        return _judge(problem, answers, spent, error)


def _judge(problem: Problem, answers: list[Any], seconds: float, error: str | None) -> Found:
    """The best of what the workers gave, by the problem's own objective."""
    best, value, notes = None, None, {}
    for state, its_notes, its_error, *_ in answers:
        error, notes = its_error or error, notes or its_notes
        if state is None:
            continue
        state = np.asarray(state)
        if not bool(problem.is_feasible(state)):
            error = "Its state is not feasible."
            continue
        its_value = float(problem.objective(state))
        if value is None or problem.is_better(its_value, value):
            best, value, notes = state, its_value, its_notes
    if best is None and error is None:
        error = f"It found nothing ({notes.get('how', 'no state')})."
    columns = np.array([answer[3:] for answer in answers]).reshape(-1, 3).sum(axis=0)
    cpu, start, peak = columns.tolist()
    return Found(best, value, seconds - notes.get("compile_seconds", 0.0), cpu, start, peak, notes, error)


if __name__ == "__main__":
    for each in PEERS:
        print(each, versions(each), f"left out: there is no {missing(each)}" if missing(each) else "", file=sys.stdout)
