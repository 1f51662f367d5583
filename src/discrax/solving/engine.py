"""What every search of the house looks like from outside: an iterator over reports, the last one when it is done."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer


class Report(NamedTuple):
    """Where a search stands. Values are those of the penalised objective, `target.log_prob` and a model's offset: more
    is better. A search of thousands of chains reports the best states of some.
    """

    num_steps: int  # that every chain has made
    fraction: float  # of the budget that is spent
    beta: float  # of the coldest chain
    values: Float[np.ndarray, " chains"]  # now
    best_values: Float[np.ndarray, " reported"]  # of each chain so far
    best_states: Integer[np.ndarray, "reported n"]
    is_proved: bool = False  # that no state has a larger value than the best

    def shift(self, offset: float) -> "Report":
        """With all values larger by an offset."""
        return self._replace(values=self.values + offset, best_values=self.best_values + offset)
