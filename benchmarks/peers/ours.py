"""Ours."""

from typing import Any

import numpy as np

from discrax.problems import Problem

UNTIL: float | None = None  # a value at which it ends before its time, where a script asks for that


def discrax(problem: Problem, seconds: float, num_threads: int, seed: int, search: str | None = None):
    """`discrax.solve` as it is, or with one search by name."""
    import jax

    import discrax as dx

    def is_enough(report: Any) -> bool:
        return until is not None and float(report.best_values.max()) >= until

    until = UNTIL if problem.sense == "max" or UNTIL is None else -UNTIL
    solution = dx.solve(jax.random.key(seed), problem, search, seconds=seconds, callback=is_enough, progress=False)
    best = solution.history.best
    found_at = float(solution.history.seconds[np.argmax(best == best[-1])]) if len(best) else solution.seconds
    notes = {
        "compile_seconds": solution.compile_seconds,
        "how": solution.search,
        "steps": solution.num_steps,
        "found_at": found_at,
        "backend": jax.default_backend(),
    }
    return solution.state, notes
