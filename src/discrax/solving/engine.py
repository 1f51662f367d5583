"""What every search of the house looks like from outside: an iterator over reports, the last one when it is done."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer


class Report(NamedTuple):
    """Where a search stands. Values are those of the penalised objective, `target.log_prob`: more is better."""

    num_steps: int  # that every chain has made
    fraction: float  # of the budget that is spent
    beta: float  # of the coldest chain
    values: Float[np.ndarray, " chains"]  # now
    best_values: Float[np.ndarray, " chains"]  # of each chain so far
    best_states: Integer[np.ndarray, "chains n"]
