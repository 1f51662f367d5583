"""What the author of a kernel, a target, an adapter, an observer, a problem or a search builds on, in one place.

- A kernel: `Kernel` with `init` and `step`; `State`, `Info` and `scalar_info`; `decide` and `select`, the one
  accept/reject; `random`, whose words do not depend on how many are drawn; and to look at a target, `log_prob`,
  `evaluate` (log-ratios of all single-site changes too), `evaluate_change`, `effective_ratios`, `temper`.
- A target: `Target`, or `StochasticTarget` where only estimates can be had, on a `Space`; what it may offer beyond
  `log_prob` is `ExactRatios`, `LocalChanges`, `RatioUpdates`, `Coloured`, `QuadraticForm`, `Layered` or `Bonded`, and
  `offered` asks for it; of one that offers nothing, `exact_evaluation` has the exact log-ratios, by `log_prob` at
  every change. `clusters` finds what the open `Bonds` of a target connect.
- An adapter: whatever has the methods of `Adapter`.
- An observer: `Observer` with `init` and `look`; `Best`, the best state that each chain has seen, is one.
- A problem: `Problem`, or nearer to the ground `BinaryProblem`, `BinaryQuadratic`, `BoundedQuadratic`, `Labelling`.
- A search: `Search`, whose `reports` are given a `Task` and yield `Report`s; chains are run by `Run`.

docs/development.md has an example of most, docs/guide.md and docs/solve.md have more.
"""

from discrax.core import random
from discrax.core.bonds import Bonded, Bonds, clusters
from discrax.core.driver import Adapter
from discrax.core.kernel import Info, Kernel, Knob, State, scalar_info, start_state
from discrax.core.metropolis import Decision, decide, select
from discrax.core.observers import Best, Observer
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
    exact_evaluation,
    log_prob,
    offered,
    temper,
)
from discrax.problems.problem import BinaryProblem, BinaryQuadratic, BoundedQuadratic, Labelling, Problem
from discrax.sampling.run import Run
from discrax.solving.engine import Report
from discrax.solving.protocol import Search, Task

__all__ = [
    "Adapter", "Best", "Binary", "BinaryProblem", "BinaryQuadratic", "Bonded", "Bonds", "BoundedQuadratic",
    "Categorical", "Coloured",
    "Decision", "Evaluation", "ExactRatios", "Info", "Kernel", "Knob", "Labelling", "Layered", "LocalChanges",
    "Observer", "Ordinal", "Problem", "QuadraticForm", "RatioUpdates", "Report", "Run", "Search", "Space", "Spin",
    "State", "StochasticTarget", "Target", "Task", "Tempered", "clusters", "decide", "effective_ratios", "evaluate",
    "evaluate_change",
    "exact_evaluation", "log_prob", "offered", "random", "scalar_info", "select", "start_state", "temper",
]  # fmt: skip
