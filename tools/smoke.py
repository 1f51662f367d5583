"""What an installed discrax must be able to do: `python smoke.py EXTRA ...`, each in a folder of its own that is empty.

Without an extra it is the core: importing every public name that needs none, sampling, and searching. This file imports
nothing of the repository, so that it tries what is installed.
"""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

import discrax as dx

KEY = jax.random.key(0)
ISING = dx.targets.Ising.lattice((4, 4), coupling=0.3)
SHORT: dict[str, Any] = {"num_chains": 4, "num_warmup": 40, "num_samples": 100}


def command(*words: str) -> str:
    """What the installed command `discrax` prints."""
    place = Path(sys.executable).with_name("discrax")
    done = subprocess.run([place, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"discrax {' '.join(words)}: {done.stderr}"
    return done.stdout


def core() -> None:
    """Sampling, what comes of it, and a search, with nothing but the four dependencies."""
    assert command("--version").split() == ["discrax", version("discrax")]
    result = dx.sample(KEY, ISING, "pas", **SHORT)
    assert np.asarray(result.draws).shape == (4, 100, 4, 4)
    assert "ess" in str(result.summary()).lower()
    for sampler in ("auto", "gibbs", "dmala", "rwm"):
        assert dx.sample(KEY, ISING, sampler, **SHORT).is_complete
    q = np.array([[-1.0, 2.0], [0.0, -1.0]])
    found = dx.solve(KEY, dx.problems.QUBO(q), dx.searches.Anneal(), num_steps=50)
    assert found.objective == -1
    assert "@" in dx.citation(result)


def rich() -> None:
    """A bar of progress."""
    assert dx.sample(KEY, ISING, "pas", progress=True, **SHORT).is_complete


def arviz() -> None:
    """Draws go to a file and come back, and to ArviZ."""
    result = dx.sample(KEY, ISING, "pas", **SHORT)
    result.save("run.nc")
    assert np.array_equal(dx.load("run.nc").draws, result.draws)
    assert "posterior" in result.to_arviz().children


def plot() -> None:
    """A picture of a search."""
    found = dx.solve(KEY, dx.problems.QUBO(np.eye(3) - 1), dx.searches.Anneal(), num_steps=50)
    found.history.plot("history.png")
    assert Path("history.png").stat().st_size > 1000


def graph() -> None:
    """A graph of networkx is cut."""
    import networkx

    cut = dx.problems.MaxCut(networkx.cycle_graph(6))
    assert dx.solve(KEY, cut, dx.searches.Anneal(), num_steps=200).objective == 6


def curvature() -> None:
    """A sampler whose diagonal comes from a semidefinite program."""
    assert dx.sample(KEY, ISING, "ab_trace", **SHORT).is_complete


def cli() -> None:
    """The commands are there."""
    assert "pas" in command("samplers")
    assert "solve" in command("--help")


def learn() -> None:
    """A Boltzmann machine learns a little of the digits."""
    from discrax.learn.rbm import untrained

    rows = dx.data.load_images("digits").train.reshape(-1, 64).astype(np.int8)
    machine = untrained(KEY, rows, num_hidden=5, num_levels=2)
    trained = dx.learn.pcd(KEY, machine, rows, num_updates=5, buffer_size=40, batch_size=20)
    assert trained.num_updates == 5


def text() -> None:
    """Words are cut, and a small model learns and is kept."""
    lines = ["the cat sat on the mat .", "the dog sat on the cat ."] * 40
    small: dict[str, Any] = {
        "vocabulary_size": 60,
        "hidden_size": 64,
        "num_layers": 1,
        "num_updates": 2,
        "batch_size": 4,
        "every": 1,
        "lengths": (16,),
    }
    dx.text.write_checkpoint(dx.text.train_masked_model(KEY, lines, lines, **small).model, "model")
    assert dx.text.read_checkpoint("model").tokenizer is not None


def solve() -> None:
    """A search site by site, and one of sets on a graph."""
    from discrax.problems.readers import example

    q = -np.eye(12)
    assert dx.solve(KEY, dx.problems.QUBO(q), dx.searches.Sites(), num_steps=20).objective == -12
    petersen = dx.problems.MaxClique(example("petersen.clq"))
    assert dx.solve(KEY, petersen, num_steps=20).objective == 2


def zarr() -> None:
    """A run with a folder."""
    first = dx.sample(KEY, ISING, "pas", folder="run", **SHORT)
    assert np.array_equal(np.asarray(dx.load("run").draws), np.asarray(first.draws))


def dimod() -> None:
    """A sampler for dimod."""
    import dimod as others

    from discrax.interop.dimod import DiscraxSampler

    bqm = others.BinaryQuadraticModel({"a": 1.0, "b": -1.0}, {("a", "b"): 0.5}, 0.0, "BINARY")
    assert DiscraxSampler().sample(bqm, num_reads=2, num_sweeps=50, seed=1).first.energy == -1


def blackjax() -> None:
    """A step in BlackJAX's words."""
    from discrax.interop.blackjax import as_algorithm

    algorithm = as_algorithm("pas", ISING)
    algorithm.step(KEY, algorithm.init(ISING.space.random(KEY)))


def bench() -> None:
    """A cell of a suite, and its page."""
    assert "optimal-scaling/table05" in command("bench", "list")
    words = ["bench", "run", "optimal-scaling/table05", "--quick", "--workers", "1", "--set", "steps=50", "warmup=20"]
    command(*words, "--only", "RWM-1", "N=100", "--out", "run")
    assert "</html>" in Path("run/report.html").read_text()


def ray() -> None:
    """The executor can be made."""
    from discrax.bench.execute.executors import get_executor

    assert get_executor("ray", workers=1, address=None, folder=Path("run"), options={}) is not None


def slurm() -> None:
    """The executor can be made, or says that there is no Slurm here."""
    from discrax.bench.execute.executors import get_executor

    try:
        assert get_executor("slurm", workers=1, address=None, folder=Path("run"), options={}) is not None
    except ValueError as error:
        if "srun" not in str(error):
            raise


def peers() -> None:
    """The solvers and samplers that the benchmark compares with are there."""
    for name in ("thrml", "dwave.samplers", "openjij", "ortools", "highspy", "pymatching"):
        __import__(name)


# What an extra brings of others is tried too.
PARTS = {"cli": ["rich", "arviz", "plot"], "solve": ["graph"], "learn": ["plot"]}
PARTS["bench"] = ["cli", "graph", "curvature", "learn", "text", "solve", "zarr"]
PARTS |= {"ray": ["bench"], "slurm": ["bench"], "all": ["bench", "dimod"], "peers": ["all"]}


def tries(extra: str) -> list[str]:
    """The names of the functions above that an extra must pass, the core's first."""
    found = ["core"]
    for each in [*(name for part in PARTS.get(extra, []) for name in tries(part)), extra]:
        if each in globals() and each not in found:
            found.append(each)
    return found


if __name__ == "__main__":
    import contextlib
    import tempfile

    for wanted in tries(sys.argv[1] if len(sys.argv) > 1 else "core"):
        with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
            globals()[wanted]()
        print(wanted, "works", flush=True)
