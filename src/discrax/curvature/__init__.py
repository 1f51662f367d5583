"""Second-order information: W, an approximation of the Hessian; a diagonal D that makes W + D positive; its factors."""

from discrax.curvature.diagonal import Diagonal, lambda_shift, smallest_norm, smallest_trace
from discrax.curvature.hessian import Hessian

__all__ = ["Diagonal", "Hessian", "lambda_shift", "smallest_norm", "smallest_trace"]
