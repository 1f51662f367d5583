"""What the author of a kernel, a target, an adapter or a problem builds on, in one place.

- A kernel: `Kernel` with `init` and `step`; `State`, `Info` and `scalar_info`; `decide` and `select`, the one
  accept/reject; `random`, whose words do not depend on how many are drawn; and to look at a target, `log_prob`,
  `evaluate` (log-ratios of all single-site changes too), `evaluate_change`, `effective_ratios`, `temper`.
- A target: `Target`, or `StochasticTarget` where only estimates can be had, on a `Space`; what it may offer beyond
  `log_prob` is `ExactRatios`, `LocalChanges`, `RatioUpdates`, `Coloured`, `QuadraticForm` or `Layered`, and `offered`
  asks for it.
- An adapter: whatever has the methods of `Adapter`.
- A problem: `Problem`, or nearer to the ground `BinaryProblem`, `BinaryQuadratic`, `Labelling`.

docs/guide.md and docs/solve.md have examples.
"""

from discrax.core import random
from discrax.core.driver import Adapter
from discrax.core.kernel import Info, Kernel, Knob, State, scalar_info, start_state
from discrax.core.metropolis import Decision, decide, select
from discrax.core.space import Binary, Categorical, Ordinal, Space, Spin
from discrax.core.stochastic import StochasticTarget
from discrax.core.target import (
    Coloured,
    Evaluation,
    ExactRatios,
    Layered,
    LocalChanges,
    QuadraticForm,
    RatioUpdates,
    Target,
    Tempered,
    effective_ratios,
    evaluate,
    evaluate_change,
    log_prob,
    offered,
    temper,
)
from discrax.problems.problem import BinaryProblem, BinaryQuadratic, Labelling, Problem

__all__ = [
    "Adapter", "Binary", "BinaryProblem", "BinaryQuadratic", "Categorical", "Coloured", "Decision", "Evaluation",
    "ExactRatios", "Info", "Kernel", "Knob", "Labelling", "Layered", "LocalChanges", "Ordinal", "Problem",
    "QuadraticForm", "RatioUpdates", "Space", "Spin", "State", "StochasticTarget", "Target", "Tempered",
    "decide", "effective_ratios", "evaluate", "evaluate_change", "log_prob", "offered", "random",
    "scalar_info", "select", "start_state", "temper",
]  # fmt: skip
