"""Dense numpy references of couplings and quadratic forms, built site by site."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from discrax import Categorical, Space
from discrax.targets import Coupling, Dense, Lattice, Sparse, Uncoupled

from ..helpers import one_hot


def lattice_matrix(shape, weights, periodic: bool) -> np.ndarray:
    """J of nearest neighbours; `weights[a]` is a number or an array of the weight to the next site along axis a."""
    n = math.prod(shape)
    J = np.zeros((n, n))
    for site in itertools.product(*map(range, shape)):
        for axis, weight in enumerate(weights):
            following = list(site)
            following[axis] += 1
            if following[axis] == shape[axis]:
                if not periodic:
                    continue
                following[axis] = 0
            i, j = np.ravel_multi_index(site, shape), np.ravel_multi_index(following, shape)
            value = weight if np.ndim(weight) == 0 else weight[site]
            J[i, j] += value
            J[j, i] += value
    return J


def symmetric(rng, n: int, *, diagonal: bool) -> np.ndarray:
    J = rng.normal(size=(n, n))
    J = (J + J.T) / 2
    if not diagonal:
        np.fill_diagonal(J, 0)
    return J


class Structure(NamedTuple):
    coupling: Coupling
    matrix: np.ndarray


def structure(name: str, shape: tuple[int, ...]) -> Structure:
    rng, n = np.random.default_rng(5), math.prod(shape)
    if name == "uncoupled":
        return Structure(Uncoupled(shape), np.zeros((n, n)))
    if name.startswith("dense"):
        J = symmetric(rng, n, diagonal=name.endswith("diagonal"))
        return Structure(Dense(J, shape), J)
    if name.startswith("sparse"):
        J = np.where(rng.random((n, n)) < 0.3, rng.normal(size=(n, n)), 0)
        J = np.triu(J, 0 if name.endswith("diagonal") else 1)
        edges = np.argwhere(J)
        return Structure(Sparse(edges, J[tuple(edges.T)], shape), J + np.triu(J, 1).T)
    periodic = name.endswith("periodic")
    if "edges" in name:
        weights = tuple(rng.normal(size=shape) for _ in shape)
    else:
        weights = tuple(float(w) for w in rng.normal(size=len(shape)))
    return Structure(Lattice(shape, weights, periodic), lattice_matrix(shape, weights, periodic))


def embed(space: Space, x: np.ndarray) -> np.ndarray:
    if isinstance(space, Categorical):
        return one_hot(x, space.num_levels)
    return np.asarray(space.values, np.float64)[x]


def quadratic_form(space: Space, J: np.ndarray, b: np.ndarray):
    """x -> e' J e / 2 + b' e in double precision."""

    def log_prob(x: np.ndarray) -> float:
        e = embed(space, x).reshape(len(J), -1)
        return float(0.5 * np.sum(e * (J @ e)) + np.sum(b.reshape(e.shape) * e))

    return log_prob
