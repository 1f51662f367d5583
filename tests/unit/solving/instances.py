"""Problems whose best objective is known. They are larger than repair can manage."""

import jax
import jax.numpy as jnp
import numpy as np

import discrax as dx
from discrax.problems import MIS, QUBO, Custom, Graph, MaxClique, MaxCut, Partition
from discrax.problems.generators import rb_model

KEY = jax.random.key(2)
STEPS = {"num_steps": 200, "num_chains": 4}  # few chains: of many first states, repair makes an optimum of one
PLANTED = rb_model(8, 4, 0.25, seed=1, is_planted=True)  # 32 nodes; the largest independent set has 8
_SITE = np.arange(32).reshape(4, 8)
TORUS = Graph.from_edges(
    np.concatenate([np.stack([_SITE, np.roll(_SITE, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
)  # all of its 64 edges can be cut
CHECKERBOARD = (_SITE // 8 + _SITE).ravel() % 2
_SIGNS = 2 * np.random.default_rng(0).integers(0, 2, 32) - 1
_CLIQUES = [5 * part + np.stack(np.triu_indices(5, 1), 1) for part in range(3)]
HIDDEN = np.random.default_rng(1).integers(0, 2, 16)
# A problem, and its best objective.
PROBLEMS = {
    "mis": (MIS(PLANTED), 8),
    "clique": (MaxClique(PLANTED.complement()), 8),
    "maxcut": (MaxCut(TORUS), 64),
    "partition": (Partition(Graph.from_edges(np.concatenate([*_CLIQUES, [[0, 5], [6, 10], [11, 1]]])), 3), 3),
    "qubo": (QUBO(np.zeros(32), TORUS.edges, -_SIGNS[TORUS.edges].prod(1).astype(float), vartype="SPIN"), -64),
    "custom": (Custom(lambda e: -jnp.square(e - HIDDEN).sum(), dx.Binary(16)), 0),
}
PROBLEM, _ = PROBLEMS["mis"]
