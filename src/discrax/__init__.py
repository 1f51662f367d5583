"""discrax: sampling in discrete spaces, in JAX."""

from discrax import adaptation, curvature, diagnostics, exact, learn, problems, samplers, targets
from discrax.adaptation import AcceptanceRate
from discrax.core.kernel import Info, Kernel, State
from discrax.core.space import Binary, Categorical, Ordinal, Space, Spin
from discrax.core.target import Target, Tempered
from discrax.sampling import Result, auto, load, sample
from discrax.solving import Solution, solve, solve_many

__version__ = "0.1.0"

__all__ = [
    "AcceptanceRate",
    "Binary",
    "Categorical",
    "Info",
    "Kernel",
    "Ordinal",
    "Result",
    "Solution",
    "Space",
    "Spin",
    "State",
    "Target",
    "Tempered",
    "adaptation",
    "auto",
    "curvature",
    "diagnostics",
    "exact",
    "learn",
    "load",
    "problems",
    "sample",
    "samplers",
    "solve",
    "solve_many",
    "targets",
]
