"""What a search found, and how: `Solution`."""

import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from discrax.core.files import write_whole
from discrax.problems.problem import Problem
from discrax.solving.history import History


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The best that was found, after repair: `state` has the objective `objective`.

    `states` are all that are as good among the best states of the chains, each once, sorted, `state` among them; at
    most 256. It is feasible unless `is_feasible` says otherwise, which may be so for a `Custom` problem only.
    """

    problem: Problem = field(repr=False)
    objective: float
    is_feasible: bool
    state: Integer[np.ndarray, " n"] = field(repr=False)
    states: Integer[np.ndarray, "states n"] = field(repr=False)
    history: History = field(repr=False)
    seconds: float  # from the first thing to the last, compilation apart unless it was counted
    compile_seconds: float
    num_steps: int
    num_chains: int
    search: str
    sampler: str
    is_complete: bool  # False if it was interrupted
    is_proved: bool = field(default=False, repr=False)  # by the search itself, that nothing is better

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

    @property
    def is_proved_optimal(self) -> bool:
        """Whether nothing is better: the search proved it, or it meets the bound. That it does not says nothing."""
        return self._meets_what_is_known() or (
            self.is_feasible and self.problem.meets_bound(self.objective, self.bound)
        )

    def _meets_what_is_known(self) -> bool:
        """`is_proved_optimal`, without a bound that takes long."""
        if self.is_proved:
            return True
        bound = vars(self)["bound"] if "bound" in vars(self) else self.problem.quick_bound()
        return self.is_feasible and self.problem.meets_bound(self.objective, bound)

    def __repr__(self) -> str:
        parts = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
        parts[2:2] = [f"{len(self.states)} states"] if len(self.states) > 1 else []
        parts[2:2] = ["proved optimal"] if self._meets_what_is_known() else []
        return f"Solution({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """All that JSON takes; an objective that is no number becomes None."""
        return {
            "problem": repr(self.problem),
            "objective": self.objective if np.isfinite(self.objective) else None,
            "is_feasible": self.is_feasible,
            "bound": self.bound,
            "is_proved_optimal": self.is_proved_optimal,
            "distinct_states": len(self.states),
            "solution": self.problem.describe(self.state),
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "steps": self.num_steps,
            "chains": self.num_chains,
            "search": self.search,
            "sampler": self.sampler,
            "is_complete": self.is_complete,
        }

    def to_json(self) -> str:
        """`to_dict` as the text of a file."""
        return json.dumps(self.to_dict(), indent=1) + "\n"

    def save(self, path: str | Path) -> Path:
        """Writes it as JSON; a file that exists is replaced when the new one is whole."""
        return write_whole(path, self.to_json())
