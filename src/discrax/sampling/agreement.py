"""Whether chains agree where log pi cannot tell: the two signs of a magnet are as probable as each other."""

import numpy as np
from jaxtyping import Integer

from discrax.diagnostics.weighted import weighted_rhat

_FEW_LEVELS = 4  # whose shares are compared


def share_rhat(codes: Integer[np.ndarray, "draws chains *shape"], num_levels: int) -> float:
    """R-hat between chains of the share of sites at each of the first levels: the largest."""
    found = [float("nan")]
    for level in range(min(num_levels - 1, _FEW_LEVELS)):
        shares = np.mean(codes == level, axis=tuple(range(2, codes.ndim))).T
        if len(shares) > 1 and np.ptp(shares) > 0:
            rhat = weighted_rhat(shares, np.ones_like(shares))
            found.append(float("inf") if np.isnan(rhat) else float(rhat))
    return float(np.nanmax(found)) if len(found) > 1 else found[0]
