"""Instances of different size as one program: sites that are added are frozen at 0, and nothing is joined to them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Integer

from discrax.core.space import Binary
from discrax.problems.problem import BinaryQuadratic, Problem
from discrax.targets.coupling import Dense
from discrax.targets.quadratic import Quadratic
from discrax.targets.sparse_coupling import Sparse


def pad(
    problems: Sequence[Problem], init: Sequence[Integer[np.ndarray, "chains _"]]
) -> tuple[list[Quadratic], Integer[np.ndarray, "instances chains size"]]:
    """Targets and first states of one shape: dense matrices if any instance is dense, else neighbour lists."""
    models = []
    for problem in problems:
        if not isinstance(problem.model, BinaryQuadratic):
            raise ValueError(f"{problem!r} has no quadratic form of binary variables, so it cannot share a program.")
        models.append(problem.model)
    size = max(model.num_sites for model in models)
    if any(model.is_dense(len(models)) for model in models):
        couplings: list[Any] = [model.dense(size) for model in models]
    else:
        lists = [Sparse(model.edges, model.weights, (size,)) for model in models]
        degree = max(each.max_degree for each in lists)
        couplings = [each.in_one_block(degree) for each in lists]
    is_padded = any(model.num_sites < size for model in models)
    targets = [_target(model, coupling, size, is_padded) for model, coupling in zip(models, couplings, strict=True)]
    x = np.zeros((len(models), len(init[0]), size), np.int8)
    for i, states in enumerate(init):
        x[i, :, : states.shape[1]] = states
    return targets, x


def _target(model: BinaryQuadratic, coupling: Dense | Sparse, size: int, is_padded: bool) -> Quadratic:
    linear, added = np.zeros(size), np.arange(size) >= model.num_sites
    linear[: model.num_sites] = model.linear
    return Quadratic(Binary(size, frozen=added if is_padded else None), coupling, linear)
