"""Second-order information: W, an approximation of the Hessian; a diagonal D that makes W + D positive; its factors."""

from discrax.curvature.diagonal import Diagonal, lambda_shift, smallest_norm, smallest_trace
from discrax.curvature.hessian import Hessian, exact_hessian

__all__ = ["Diagonal", "Hessian", "exact_hessian", "lambda_shift", "smallest_norm", "smallest_trace"]
