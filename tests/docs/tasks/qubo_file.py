"""A QUBO in a file: its least value, checked by trying everything, and the proof that comes with it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np

import discrax as dx

rng = np.random.default_rng(0)
Q = np.triu(rng.integers(-9, 10, (14, 14))).astype(float)
with TemporaryDirectory() as folder:
    path = Path(folder) / "mine.coo"
    path.write_text("".join(f"{i} {j} {Q[i, j]}\n" for i in range(14) for j in range(i, 14)))
    problem = dx.problems.QUBO(path)
solution = dx.solve(jax.random.key(0), problem, seconds=5)
print(solution)
print(problem.describe(solution.state))

states = (np.arange(2**14)[:, None] >> np.arange(14)) & 1
values = np.einsum("si,ij,sj->s", states, Q, states)
assert solution.objective == values.min()
assert solution.state @ Q @ solution.state == values.min()
assert solution.is_proved_optimal
