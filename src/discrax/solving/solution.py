"""What a search found, and how: `Solution`."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from discrax.core.files import write_whole
from discrax.problems.problem import Problem
from discrax.solving.history import History


@dataclass(frozen=True, eq=False)
class Solution:
    """The best that was found, after repair: `state` has the objective `objective`.

    It is feasible unless `is_feasible` says otherwise, which may be so for a `Custom` problem only.
    """

    problem: Problem = field(repr=False)
    objective: float
    is_feasible: bool
    state: Integer[np.ndarray, " n"] = field(repr=False)
    history: History = field(repr=False)
    seconds: float  # from the first thing to the last, compilation apart unless it was counted
    compile_seconds: float
    num_steps: int
    num_chains: int
    method: str
    sampler: str
    is_complete: bool  # False if it was interrupted

    @staticmethod
    def load(folder: str | Path, problem: Problem, number: int = 0) -> "Solution":
        """The best so far of a search with a folder, which may still be going on; `number` is for `solve_many`."""
        from discrax.solving.folder import read_best

        return read_best(folder, problem, number).solution

    @cached_property
    def bound(self) -> float | None:
        """No feasible state is better, where a problem has such a bound; it may take a moment to find."""
        return self.problem.bound()

    @property
    def gap(self) -> float | None:
        """How far from the bound, as a share of it; 0 proves that nothing is better."""
        if self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(abs(self.bound), 1e-300) if self.bound != self.objective else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All that JSON takes; an objective that is no number becomes None."""
        return {
            "problem": repr(self.problem),
            "objective": self.objective if np.isfinite(self.objective) else None,
            "is_feasible": self.is_feasible,
            "bound": self.bound,
            "solution": self.problem.describe(self.state),
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "steps": self.num_steps,
            "chains": self.num_chains,
            "method": self.method,
            "sampler": self.sampler,
            "is_complete": self.is_complete,
        }

    def to_json(self) -> str:
        """`to_dict` as the text of a file."""
        return json.dumps(self.to_dict(), indent=1) + "\n"

    def save(self, path: str | Path) -> Path:
        """Writes it as JSON; a file that exists is replaced when the new one is whole."""
        return write_whole(path, self.to_json())
