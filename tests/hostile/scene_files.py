"""Problems, models, modules that are imported late, and files in the folder in which calls are made."""

import json
import signal
import sys
from pathlib import Path

import numpy as np

import discrax as dx

from .things import get, thing

# --- problems ---


@thing
def graph():
    return dx.problems.Graph.from_edges(np.array([[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]))


@thing
def cut():
    return dx.problems.MaxCut(get("graph"))


@thing
def cuts():
    return [get("cut"), dx.problems.MaxCut(np.array([[0, 1], [1, 2], [0, 2]]))]


@thing
def sites():
    return dx.problems.FacilityLocation.simulated(0, 3, 4)


@thing
def site_states():
    return np.zeros((2, *get("sites").space.shape), int)


@thing
def solution():
    return dx.solve(get("key"), get("cut"), num_steps=4, num_chains=2, progress=False)


@thing
def solve_into():
    return lambda folder: dx.solve(get("key"), get("cut"), num_steps=4, num_chains=2, progress=False, folder=folder)


@thing
def searched():
    get("solve_into")("searched")
    return "searched"


@thing
def bqm():
    import dimod

    return dimod.BinaryQuadraticModel({"a": 1.0, "b": -1.0, "c": 0.5}, {("a", "b"): 1.0, ("b", "c"): -2.0}, 0.0, "SPIN")


@thing
def dimod_sample():
    from discrax.interop.dimod import DiscraxSampler

    return DiscraxSampler().sample


@thing
def generators():
    from discrax.problems import generators as module

    return module


@thing
def solving_module():
    import discrax.solving as module

    return module


@thing
def schedules():
    from discrax.samplers import schedules as module

    return module


@thing
def data():
    import discrax.data as module

    return module


@thing
def text():
    import discrax.text as module

    return module


@thing
def bench():
    import discrax.bench as module

    return module


@thing
def bench_run():
    import discrax.bench.execute.run as module

    return module


@thing
def bench_report():
    import discrax.bench.report.write as module

    return module


@thing
def bench_compare():
    import discrax.bench.report.compare as module

    return module


@thing
def bench_executors():
    import discrax.bench.execute.executors as module

    return module


@thing
def quick():
    import discrax.bench

    return discrax.bench.Size.QUICK


@thing
def dimod_module():
    import discrax.interop.dimod as module

    return module


# --- models and text ---


@thing
def tower():
    from discrax.text.prompts import made_up_images, random_prompt

    prompt, allowed = random_prompt(0)
    return prompt, np.asarray(made_up_images(0, prompt, allowed, count=4, length=2, noise=1.0)), allowed


@thing
def embed_tokens():
    return get("tower")[0]


@thing
def embeddings():
    return get("tower")[1]


@thing
def prompts():
    from discrax.text import PromptTarget

    prompt, images, allowed = get("tower")
    return PromptTarget(prompt, images, 2, len(allowed), allowed=allowed)


@thing
def masked():
    from discrax.text import read_checkpoint

    return read_checkpoint(get("checkpoint"))


@thing
def tokens():
    return [["a", "cat", "sat", "on", "it"], ["the", "dog", "sat", "on", "me"]]


# --- files, in the folder in which the calls are made ---


def _file(name: str, content: str | bytes) -> str:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return name


@thing
def graph_file():
    return _file("graph.txt", "0 1\n1 2\n2 3\n0 3\n0 2\n")


@thing
def qubo_file():
    return _file("qubo.coo", "# vartype=BINARY\n0 0 -1.0\n0 1 2.0\n1 1 -1.0\n")


@thing
def empty_file():
    return _file("empty.txt", "")


@thing
def junk_file():
    return _file("junk.bin", bytes(range(256)) * 20)


@thing
def words_file():
    return _file("words.txt", "this is no graph at all\nbut two lines of words\n")


@thing
def cut_file():
    """The header of a graph whose edges were lost."""
    return _file("cut.txt", "800 4694\n")


@thing
def latin_file():
    return _file("latin.txt", "caf\xe9 1\n".encode("latin-1"))


@thing
def folder():
    Path("folder").mkdir(exist_ok=True)
    return "folder"


@thing
def empty_folder():
    Path("empty_folder").mkdir(exist_ok=True)
    return "empty_folder"


@thing
def link_loop():
    path = Path("loop")
    if not path.is_symlink():
        path.symlink_to("loop")
    return "loop"


@thing
def row_file():
    np.save("rows.npy", np.random.default_rng(0).normal(size=(40, 3)))
    return "rows.npy"


@thing
def outcome_file():
    np.save("outcomes.npy", np.random.default_rng(0).integers(0, 2, 40))
    return "outcomes.npy"


@thing
def embeddings_file():
    np.save("embeddings.npy", get("embeddings"))
    return "embeddings.npy"


@thing
def block_of_zeros():
    return lambda start, stop: np.zeros((stop - start, 2))


@thing
def kernel_file():
    return _file(
        "tiny_kernel.py",
        "import discrax as dx\n\n\nclass TwoFlips(dx.samplers.rwm):\n"
        "    def __init__(self):\n        super().__init__(path_length=2.0)\n",
    )


@thing
def checkpoint():
    """A masked language model with random weights."""
    folder = Path(__file__).parents[1]
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    from unit.text.tiny import write_checkpoint

    write_checkpoint(Path("checkpoint"))
    return "checkpoint"


@thing
def suite_file():
    return _file(
        "tiny_suite.py",
        """from discrax.bench import Budget, Cell, Size, call, suite

@suite("tiny/bits", "a sampler on a few bits")
def bits(effort: Size):
    for name in ("RWM-1", "RWM-2"):
        yield Cell(
            labels=(("task", "bernoulli"), ("N", "100"), ("sampler", name)),
            target=call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=0.25),
            sampler=call("discrax.samplers:rwm"),
            adaptation=None,
            budget=Budget(4, 10, 20),
        )
""",
    )


@thing
def bench_folder():
    """A finished run of the tiny suite."""
    import contextlib
    import io

    from discrax.bench.execute.executors import get_executor
    from discrax.bench.execute.run import run_suites
    from discrax.bench.plan.suite import Size

    with contextlib.redirect_stdout(io.StringIO()):
        folder = Path("bench_run")
        executor = get_executor("in-process", workers=1, address=None, folder=folder)
        run_suites((get("suite_file"),), Size.QUICK, out=folder, samplers=(), executor=executor)
    return "bench_run"


TRAIN = (
    "train --model rbm --sampler rwm --steps 1 --updates 4 --batch 10 --buffer 20 --every 2 --save-every 2 --hidden 4"
)


@thing
def trained():
    """A finished run of `discrax train`."""
    if not Path("trained").exists():
        get("command")(f"{TRAIN} --out trained".split())
    return "trained"


@thing
def half_trained():
    """A run whose settings are there and whose checkpoints are not."""
    path = Path("half_trained")
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"model": "rbm"}))
    return "half_trained"


@thing
def command():
    """Runs `discrax ARGUMENTS` in this process."""
    from discrax import cli

    def run(arguments):
        before, on_termination = sys.argv, signal.getsignal(signal.SIGTERM)
        sys.argv = ["discrax", *arguments]
        try:
            cli.main()
        finally:
            sys.argv = before
            signal.signal(signal.SIGTERM, on_termination)

    return run
