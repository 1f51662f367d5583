"""What hostile calls are made of when they are honest: small targets, problems, models and files.

`from tests.hostile.scene import *` in an empty folder makes every name that a reported call uses, and the files in the
folder. The generator itself makes each thing when a call first asks for it.
"""

import itertools
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import discrax as dx
import discrax.bench.papers.rules

LIBRARIES = {"dx": dx, "jax": jax, "jnp": jnp, "np": np, "Path": Path}
_MAKERS: dict[str, Callable[[], Any]] = {}
_MADE: dict[str, Any] = {}


def thing(make: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a maker; its name stands for what it makes."""
    _MAKERS[make.__name__] = make
    return make


def get(name: str) -> Any:
    if name not in _MADE:
        _MADE[name] = _MAKERS[name]()
    return _MADE[name]


class Scene(Mapping):
    """The names of things; each is made when it is first looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in _MAKERS:
            raise KeyError(name)
        return get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_MAKERS)

    def __len__(self) -> int:
        return len(_MAKERS)


# --- what is called around the thing under attack: a target is drawn from, a sampler draws ---

TINY = {"num_chains": 2, "num_warmup": 0, "num_samples": 2, "progress": False}


@thing
def drawn():
    """Draws from a target, so that a bad one is not merely built."""

    def draw(target):
        if not isinstance(target, dx.Target) or target.space.num_sites > 100:
            return target
        return dx.sample(get("key"), target, "rwm", adaptation=None, **TINY)

    return draw


@thing
def by_batches():
    """Draws from a target that is seen through mini-batches."""
    return lambda target: dx.sample(get("key"), target, "sgdld", adaptation=None, **TINY)


@thing
def embedded():
    """A state of a space, embedded."""

    def embed(space):
        return space.embed(space.random(get("key"))) if space.num_sites < 10**6 else space

    return embed


@thing
def drawing():
    """Draws by a sampler from the target it suits."""

    def draw(kernel):
        from discrax.core.stochastic import StochasticTarget

        needs = getattr(kernel, "needs", ())
        spaces = getattr(kernel, "spaces", (dx.Space,))
        name = "batches" if StochasticTarget in needs else "spins" if issubclass(dx.Spin, spaces) else "steps_of_values"
        return dx.sample(get("key"), get(name), kernel, **TINY)

    return draw


@thing
def tuning():
    """Draws after a warm-up by an adapter."""

    def tune(adapter):
        target, sampler = get("spins"), "dmala" if isinstance(adapter, dx.AcceptanceRate) else "ab_first"
        if type(adapter).__name__ == "GammaRule":  # tunes what was estimated, not what is known
            target, sampler = get("sums"), "pavg"
        settings = {"num_chains": 2, "num_warmup": 30, "num_samples": 2, "progress": False}
        return dx.sample(get("key"), target, sampler, adaptation=adapter, **settings)

    return tune


@thing
def weighing():
    """Draws by a sampler with a weight function."""
    return lambda balancing: get("drawing")(dx.samplers.gwg(1.0, balancing))


@thing
def solving():
    """Searches a problem for a few sweeps."""

    def search(problem):
        return dx.solve(get("key"), problem, num_steps=4, num_chains=2, progress=False)

    return search


@thing
def first_two():
    """Of a set that is made as it is read."""
    return lambda graphs: list(itertools.islice(graphs, 2))


# --- keys, spaces, targets ---


@thing
def key():
    return jax.random.key(0)


@thing
def bits():
    return dx.Binary(4)


@thing
def square():
    return dx.Binary((2, 2))


@thing
def spins():
    return dx.targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)


@thing
def sums():
    return dx.Target.from_log_prob(get("quadratic"), get("bits"))


@thing
def steps_of_values():
    return dx.targets.Quadratic(dx.Ordinal(4, [-1.0, 0.0, 1.0]), dx.targets.Lattice((4,), 0.5), 0.1)


@thing
def levels():
    return dx.targets.Potts.graph(np.array([[0, 1], [1, 2], [2, 3]]), 3, 0.5, 0.2)


@thing
def machine():
    rng = np.random.default_rng(0)
    return dx.targets.RBM(rng.normal(size=(3, 4)), np.zeros(4), np.zeros(3))


@thing
def chain():
    return dx.targets.FHMM.simulated(0, 4, 2)


@thing
def batches():
    return dx.targets.GaussianBernoulli(batch_size=1)


@thing
def latent():
    return lambda key: jax.random.normal(key, (2,))


@thing
def psi():
    return lambda x, z: jnp.exp(-((x.sum() + z.sum()) ** 2))


@thing
def log_psi():
    return lambda x, z: -((x.sum() + z.sum()) ** 2)


@thing
def log_likelihood():
    return lambda x, row: -((x.sum() - row) ** 2)


@thing
def quadratic():
    return lambda e: 0.1 * e.sum() ** 2


@thing
def parametric():
    return lambda w, e: (w * e).sum()


@thing
def keep_sum():
    return lambda x: x.sum()


@thing
def kernel():
    return dx.samplers.pas()


@thing
def matrix():
    rng = np.random.default_rng(1)
    J = rng.normal(size=(4, 4)) / 3
    return np.triu(J, 1) + np.triu(J, 1).T


@thing
def edges():
    return np.array([[0, 1], [1, 2], [2, 3]])


@thing
def four():
    return np.array([0.1, -0.2, 0.3, 0.4])


@thing
def probabilities():
    return np.array([0.2, 0.3, 0.5, 0.7])


@thing
def mask():
    return np.array([True, False, False, False])


@thing
def state():
    return np.array([0, 1, 0, 1])


@thing
def states():
    return np.array([[0, 1, 0, 1], [1, 1, 0, 0]])


@thing
def four_states():
    return np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0]])


@thing
def rows():
    return np.random.default_rng(2).integers(0, 2, (12, 4))


@thing
def weights34():
    return np.random.default_rng(3).normal(size=(3, 4))


@thing
def weights342():
    return np.random.default_rng(3).normal(size=(3, 4, 3))


@thing
def logits43():
    return np.random.default_rng(4).normal(size=(4, 3))


@thing
def regressors():
    return np.random.default_rng(5).normal(size=(6, 4))


@thing
def outcomes():
    return np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])


@thing
def series():
    return np.random.default_rng(6).normal(size=5)


@thing
def draws():
    return np.random.default_rng(7).normal(size=(2, 20))


@thing
def positive_draws():
    return np.random.default_rng(7).uniform(0.5, 1, size=(2, 20))


@thing
def counts():
    return np.array([250, 250, 250, 250])


@thing
def uniform4():
    return np.full(4, 0.25)


@thing
def result():
    return dx.sample(get("key"), get("spins"), "rwm", num_chains=2, num_warmup=0, num_samples=4, progress=False)


@thing
def sample_into():
    return lambda folder: dx.sample(get("key"), get("spins"), "rwm", adaptation=None, folder=folder, **TINY)


@thing
def square_root():
    return lambda log_ratio: log_ratio / 2


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


# --- hostile things that need a definition ---


@thing
def unhashable():
    """A function that has no hash."""

    class Unhashable:
        __hash__ = None  # pyright: ignore[reportAssignmentType]

        def __call__(self, *arguments):
            return jnp.asarray(arguments[0], float).sum()

    return Unhashable()


__all__ = [*LIBRARIES, *_MAKERS]  # pyright: ignore[reportUnsupportedDunderAll]
for _name in _MAKERS:
    del globals()[_name]  # so that the name is looked up below, and stands for the thing


def __getattr__(name: str) -> Any:
    if name in LIBRARIES:
        return LIBRARIES[name]
    if name in _MAKERS:
        return get(name)
    raise AttributeError(name)
