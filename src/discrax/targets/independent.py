"""Independent sites: quadratic targets without a coupling."""

import numpy as np
from numpy.typing import ArrayLike

from discrax.core import space
from discrax.core.checks import real_array
from discrax.targets.coupling import Uncoupled
from discrax.targets.quadratic import Quadratic


class Bernoulli(Quadratic):
    """x_i = 1 with probability `probs[i]`, or with log-odds `logits[i]`."""

    def __init__(self, probs: ArrayLike | None = None, *, logits: ArrayLike | None = None):
        if (probs is None) == (logits is None):
            raise ValueError("Bernoulli takes either probs or logits: give exactly one of them.")
        if logits is None:
            probs = real_array("probs", probs)
            if not ((probs > 0) & (probs < 1)).all():
                raise ValueError("Bernoulli needs probs strictly between 0 and 1; freeze a site that is certain.")
            logits = np.log(probs) - np.log1p(-probs)
        logits = real_array("logits", logits)
        shape = logits.shape
        Quadratic.__init__(self, space.Binary(shape), Uncoupled(shape), logits)


class Independent(Quadratic):
    """x_i = c with probability proportional to exp(logits[i, c])."""

    def __init__(self, logits: ArrayLike):
        logits = real_array("logits", logits)
        if np.ndim(logits) < 2:
            raise ValueError(
                f"Independent needs logits with site axes and a last axis of levels, but got shape {np.shape(logits)}."
            )
        *shape, num_levels = np.shape(logits)
        Quadratic.__init__(self, space.Categorical(shape, num_levels), Uncoupled(tuple(shape)), logits)
