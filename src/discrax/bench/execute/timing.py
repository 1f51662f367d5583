"""The seconds of a step, measured apart from the statistics: a tuned kernel and its chains, alone in a program.

A block of steps that is not timed warms up; then the best of `_GROUPS` groups of blocks counts, together about
`_SECONDS` long. Nobody looks at the draws, and compilation is in none of them.
"""

import math

import numpy as np
from jaxtyping import PRNGKeyArray

from discrax.sampling import Result
from discrax.sampling.run import work_per_step
from discrax.sampling.together import run_after

_GROUPS, _SECONDS = 3, 0.3
_WORK = 5e7  # numbers that a block touches, enough for the host's part to be negligible
_FEWEST, _MOST = 4, 300  # steps of a block
_MOST_BLOCKS = 50  # of a group


def seconds_per_step(key: PRNGKeyArray, result: Result, num_done: int) -> float:
    """How long a step of all chains of a result takes, from where they are."""
    run = run_after(key, result, num_done)
    length = int(np.clip(_WORK / work_per_step(result.target, result.num_chains), _FEWEST, _MOST))

    def block() -> float:
        nonlocal run
        chunks = list(run.steps(length, chunk=length))
        run = chunks[-1].run
        return sum(chunk.seconds for chunk in chunks)

    block()
    count = min(_MOST_BLOCKS, math.ceil(_SECONDS / _GROUPS / max(block(), 1e-9)))
    return min(sum(block() for _ in range(count)) for _ in range(_GROUPS)) / (count * length)
