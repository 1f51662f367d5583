"""All searches by name, with what they need and what they take."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from discrax.problems import Problem
from peers.annealers import dwave_sa, dwave_tabu, openjij_sa, openjij_sqa
from peers.forms import is_linear, is_set, is_small, takes_qqa
from peers.on_torch import bifurcation, qqa
from peers.ours import discrax
from peers.sets import kamis_online, kamis_redumis
from peers.solvers import cpsat, highs


class Peer(NamedTuple):
    """A search: a function (problem, seconds, num_threads, seed) -> (state, notes), and when it can be used."""

    search: Callable[[Problem, float, int, int], tuple[np.ndarray | None, dict[str, Any]]]
    packages: tuple[str, ...]  # to be importable; their distributions are named in VERSIONS
    is_single: bool = False  # it computes on one thread, so it runs once on each core
    takes: Callable[[Problem], bool] = lambda problem: True


PEERS = {
    "discrax": Peer(discrax, ()),
    "dwave-sa": Peer(dwave_sa, ("dwave.samplers",), is_single=True),
    "dwave-tabu": Peer(dwave_tabu, ("dwave.samplers",), is_single=True, takes=is_small),
    "openjij-sa": Peer(openjij_sa, ("openjij",), is_single=True),
    "openjij-sqa": Peer(openjij_sqa, ("openjij",), is_single=True, takes=is_small),
    "kamis-online": Peer(kamis_online, ("chszlablib",), is_single=True, takes=is_set),
    "kamis-redumis": Peer(kamis_redumis, ("chszlablib",), is_single=True, takes=is_set),
    "cp-sat": Peer(cpsat, ("ortools",), takes=is_linear),
    "highs": Peer(highs, ("highspy",), takes=is_linear),
    "bifurcation": Peer(bifurcation, ("torch", "simulated_bifurcation"), takes=is_small),
    "qqa": Peer(qqa, ("torch", "qqa"), takes=takes_qqa),
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
