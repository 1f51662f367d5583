"""Annealers and tabu search, of dwave-samplers and OpenJij.

Annealers take the length of a read, not seconds. A quarter of the time each goes into reads of 1,000, 10,000 and
100,000 sweeps, as many as fit, and what is left into one long read: what a user does who does not know the best
length.
"""

import time
from collections.abc import Callable

import numpy as np

from discrax.problems import Problem
from peers.forms import model_of

LENGTHS = (1_000, 10_000, 100_000)  # sweeps of a read
FIRST_LENGTH = 100  # of the read that measures the speed
GROWTH = 20  # a call does at most so many times the work of those before it, since the measured speed may be off


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

    model = model_of(problem)
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
    form, sampler = model_of(problem), getattr(openjij, kind)()
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
