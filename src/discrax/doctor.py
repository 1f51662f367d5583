"""`discrax doctor`: what is installed, what is missing and what it would add, and whether sampling works here.

It needs nothing but the core, so that it can say what else is needed.
"""

import platform
import re
import time
from importlib import metadata
from typing import Any

import discrax
from discrax.voice import Voice

CORE = ("jax", "jaxlib", "equinox", "jaxtyping", "numpy")
EXTRAS = {  # what each adds
    "rich": "progress bars",
    "arviz": "draws in files, and ArviZ",
    "plot": "pictures",
    "graph": "graphs of networkx, sparse matrices, colours of large graphs",
    "curvature": "the diagonals of second-order samplers",
    "cli": "the commands",
    "learn": "training of energy models",
    "text": "masked language models, infilling, prompts",
    "solve": "searches site by site and by sets, compiled for the CPU",
    "blackjax": "BlackJAX's drivers, and mixed models",
    "flax": "energies written in Flax",
    "netket": "a rule for NetKet",
    "numpyro": "models of NumPyro",
    "pgmpy": "networks of pgmpy",
    "pymc": "models of PyMC",
    "zarr": "runs with a folder, which go on where they were killed",
    "dimod": "a sampler for dimod",
    "bench": "the papers' experiments",
    "ray": "the benchmark on a Ray cluster",
    "slurm": "the benchmark on a Slurm cluster",
    "all": "all of these but ray and slurm",
}
_MOST_ERROR = 0.1  # of a probability in the self test; its standard error is below 0.01


def missing_packages() -> dict[str, list[str]]:
    """For every extra, the packages of it that are not installed."""
    missing: dict[str, list[str]] = {extra: [] for extra in EXTRAS}
    for line in metadata.requires("discrax") or []:
        found = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", line)
        if found and found[2] in missing and _version(found[1]) is None:
            missing[found[2]].append(found[1])
    return missing


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def self_test() -> dict[str, Any]:
    """Samples a model whose law is known; how far the draws are from it, and how long it took."""
    import jax
    import numpy as np

    from discrax.sampling import sample
    from discrax.targets import Bernoulli

    began = time.monotonic()
    probs = np.linspace(0.1, 0.9, 9)
    settings: dict[str, Any] = {"num_chains": 20, "num_warmup": 100, "num_samples": 500, "progress": False}
    try:
        result = sample(jax.random.key(0), Bernoulli(probs), "pas", **settings)
        error = float(np.abs(result.mean() - probs).max())
        said = None if error < _MOST_ERROR else f"probabilities are {error:.2g} away from the true ones"
    except Exception as fault:  # whatever it is, it is what a doctor looks for
        error, said = float("nan"), f"{type(fault).__name__}: {fault}"
    return {"passed": said is None, "problem": said, "error": error, "seconds": time.monotonic() - began}


def examine() -> dict[str, Any]:
    """All that `discrax doctor` knows."""
    import jax

    try:
        devices, trouble = [f"{each.platform}: {each.device_kind}" for each in jax.devices()], None
    except RuntimeError as error:  # a driver that does not answer
        devices, trouble = [], str(error)
    tested = self_test()
    return {
        "discrax": discrax.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in CORE},
        "devices": devices,
        "device_problem": trouble,
        "missing": {extra: packages for extra, packages in missing_packages().items() if packages},
        "self_test": tested,
        "is_well": tested["passed"] and trouble is None,
    }


def doctor(voice: Voice = Voice()) -> None:  # noqa: B008
    """Says what is installed and what is missing, and tries whether sampling works here. Exit code 1 if it does not.

    Args:
        voice: What is printed.
    """
    found = examine()
    voice.give(found)
    versions = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    voice.say(f"discrax {found['discrax']}, Python {found['python']} on {found['platform']}\n{versions}")
    voice.say(f"devices: {', '.join(found['devices']) or found['device_problem']}")
    for extra, packages in found["missing"].items():
        voice.say(f"missing: {', '.join(packages)}. pip install 'discrax[{extra}]' adds {EXTRAS[extra]}.")
    if not found["missing"]:
        voice.say("extras: all are there")
    tested = found["self_test"]
    if not found["is_well"]:
        raise SystemExit(f"discrax: the self test failed: {tested['problem'] or found['device_problem']}.")
    within = f"probabilities within {tested['error']:.2g} of the true ones"
    voice.say(f"self test: {tested['seconds']:.1f} s, {within}. All is well.")
