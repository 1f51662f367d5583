"""The long commands and verbs that `kills` kills, each in a folder of its own."""

import contextlib
import json
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .kill_children import PATIENCE, begin, start


@dataclass(frozen=True)
class Program:
    """Something long. `again` goes on after a kill, in the folder that the kill left."""

    name: str
    run: Callable[[], None]
    again: Callable[[], None] | None = None
    prepare: Callable[[Path], None] | None = None  # in the server, once: files that every run finds in its folder


def _command(words: str) -> Callable[[], None]:
    def run() -> None:
        from discrax import cli

        begin()
        sys.argv = ["discrax", *words.split()]
        cli.main()

    return run


def _graph(folder: Path) -> None:
    generator = random.Random(0)
    edges = {(i, generator.randrange(i)) for i in range(1, 800) for _ in range(4)}
    (folder / "graph.txt").write_text("".join(f"{a} {b}\n" for a, b in sorted(edges)))


def _suite(folder: Path) -> None:
    (folder / "suite.py").write_text(_SUITE)


_SUITE = """from discrax.bench import Budget, Cell, Size, call, suite

@suite("tiny/bits", "a sampler on a few bits")
def bits(effort: Size):
    for name in ("RWM-1", "RWM-2", "RWM-3"):
        yield Cell(
            labels=(("task", "bernoulli"), ("N", "100"), ("sampler", name)),
            target=call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=0.25),
            sampler=call("discrax.samplers:rwm", path_length=float(name[-1])),
            adaptation=None,
            budget=Budget(4, 500, 10000),
            is_timed=True,
        )
"""


def _trained(folder: Path) -> None:
    """A finished run of `discrax train`, made by a child so that the server initialises no backend."""
    with contextlib.chdir(folder):
        child = start(_command(f"{_TRAIN} --updates 10 --out trained"))
        status = child.wait(PATIENCE * 4)
        if status != 0:
            raise RuntimeError(f"The model to sample from could not be trained:\n{child.said}")


_TRAIN = "train --model rbm --sampler rwm --steps 5 --batch 20 --buffer 100 --every 10 --save-every 50 --hidden 8"


def _sample() -> None:
    import jax

    import discrax as dx

    target = dx.targets.Ising.lattice((16, 16), 0.3)
    result = _or_nothing(
        lambda: dx.sample(
            jax.random.key(0), target, "pas", num_chains=4, num_warmup=3000, num_samples=6000, chunk_size=200,
            progress=False,
        )
    )  # fmt: skip
    if result is not None:
        _say(is_complete=result.is_complete, num_draws=result.num_draws, summary=str(result.summary()))
        if hasattr(result, "save"):
            result.save("run.nc")


def _solve(search: str) -> Callable[[], None]:
    def run() -> None:
        import jax

        import discrax as dx

        problem = dx.problems.MaxCut("graph.txt")
        solution = _or_nothing(lambda: dx.solve(jax.random.key(0), problem, search, seconds=2, progress=False))
        if solution is not None:
            solution.save("solution.json")
            _say(is_complete=solution.is_complete, objective=solution.objective)

    return run


def _solve_many() -> None:
    import jax

    import discrax as dx

    problems = [dx.problems.MaxCut("graph.txt"), dx.problems.MaxCut("graph.txt")]
    solutions = _or_nothing(lambda: dx.solve_many(jax.random.key(0), problems, seconds=2, progress=False))
    if solutions is not None:
        _say(is_complete=all(each.is_complete for each in solutions), objective=[each.objective for each in solutions])


def _minimise() -> None:
    import jax

    import discrax as dx
    from discrax.solving import minimise_expected

    target = dx.problems.FacilityLocation.simulated(0, 3, 4)
    found = _or_nothing(lambda: minimise_expected(jax.random.key(0), target, "sgdld", num_chains=20, num_steps=5_000))
    if found is not None:
        _say(is_complete=getattr(found, "is_complete", True), cost=found.cost)


def _pcd(resume: bool) -> Callable[[], None]:
    def run() -> None:
        import jax
        import numpy as np

        import discrax as dx

        rng = np.random.default_rng(0)
        rows = rng.integers(0, 2, (100, 16))
        model = dx.targets.RBM(rng.normal(size=(8, 16)) / 10, np.zeros(16), np.zeros(8))
        trained = _or_nothing(
            lambda: dx.learn.pcd(
                jax.random.key(0), model, rows, sampler="rwm", num_steps=5, num_updates=600, batch_size=10,
                buffer_size=20, every=50, save_every=100, out="run", progress=False,
                resume=resume and Path("run", "checkpoints").exists(),
            )
        )  # fmt: skip
        if trained is not None:
            _say(is_complete=trained.stopped is None, num_updates=trained.num_updates)

    return run


def _or_nothing(verb):
    """What a verb returns. One that was interrupted before it had anything says so by a KeyboardInterrupt.

    Signals that come after it are not its concern: a program that wants to keep what it got turns them off.
    """
    begin()
    try:
        return verb()
    except KeyboardInterrupt:
        _say(is_complete=False, nothing=True)
        return None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _say(**facts) -> None:
    print(json.dumps(facts), flush=True)


_BENCH = "bench run suite.py --quick --out bench --workers 1"
_TRAIN_LONG = f"{_TRAIN} --updates 300 --out run"
_SAMPLE_MODEL = "sample --model trained --sampler rwm --chains 20 --warmup 1000 --steps 8000 --snapshots 40"
_SOLVE = "solve maxcut graph.txt --seconds 2 --out solution.json"
_FACILITIES = "stochastic facilities --facilities 3 --customers 4 --steps 2000 --chains 10 --seconds 1"


def _train_again() -> None:
    has_begun = Path("run", "checkpoints").exists()
    _command("train --resume --out run" if has_begun else _TRAIN_LONG)()


PROGRAMS = (
    Program("discrax solve", _command(_SOLVE), prepare=_graph),
    Program("discrax solve --search anneal", _command(f"{_SOLVE} --search anneal --plot plot.png"), prepare=_graph),
    Program("discrax train", _command(_TRAIN_LONG), _train_again),
    Program("discrax bench run", _command(_BENCH), _command(_BENCH), _suite),
    Program("discrax sample", _command(f"{_SAMPLE_MODEL} --out picture.png"), prepare=_trained),
    Program("discrax stochastic law", _command("stochastic law --chains 50 --draws 8000")),
    Program("discrax stochastic regression", _command("stochastic regression --rows 2000 --draws 1500")),
    Program("discrax stochastic facilities", _command(_FACILITIES)),
    Program("discrax stochastic circuit", _command("stochastic circuit --steps 3000")),
    Program("discrax stochastic prompt", _command("stochastic prompt --length 2 --steps 100 --chains 2")),
    Program("dx.sample", _sample),
    Program("dx.solve, site by site", _solve("sites"), prepare=_graph),
    Program("dx.solve, tempering", _solve("temper"), prepare=_graph),
    Program("dx.solve_many", _solve_many, prepare=_graph),
    Program("minimise_expected", _minimise),
    Program("learn.pcd", _pcd(False), _pcd(True)),
)
