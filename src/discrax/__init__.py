"""discrax: sampling in discrete spaces, in JAX.

Nothing is imported before it is used: `discrax.sample` brings what sampling needs, `discrax.text` what text needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers: the same names as below
    from discrax import adaptation, bench, core, curvature, data, diagnostics, exact, extend  # noqa: I001
    from discrax import interop, learn, problems, samplers, sampling, solving, targets, text
    from discrax.adaptation import AcceptanceRate
    from discrax.core.kernel import Info, Kernel, State
    from discrax.core.space import Binary, Categorical, Ordinal, Space, Spin
    from discrax.core.target import Target, Tempered
    from discrax.interop.mixed import Mixed
    from discrax.sampling import Ladder, Result, anneal_population, auto, citation, load, log_normaliser, sample
    from discrax.sampling import scan_temperatures
    from discrax.solving import Solution, searches, solve, solve_many

__version__ = "0.1.0"

__all__ = [
    "AcceptanceRate", "Binary", "Categorical", "Info", "Kernel", "Ladder", "Mixed", "Ordinal", "Result", "Solution",
    "Space", "Spin", "State", "Target", "Tempered", "adaptation", "anneal_population", "auto", "bench", "citation",
    "core", "curvature", "data", "diagnostics", "exact", "extend", "interop", "learn", "load", "log_normaliser",
    "problems", "sample", "samplers", "sampling", "scan_temperatures", "searches", "solve", "solve_many", "solving",
    "targets", "text",
]  # fmt: skip

_HOMES = {
    "AcceptanceRate": "adaptation",
    **dict.fromkeys(("Info", "Kernel", "State"), "core.kernel"),
    **dict.fromkeys(("Binary", "Categorical", "Ordinal", "Space", "Spin"), "core.space"),
    **dict.fromkeys(("Target", "Tempered"), "core.target"),
    "Mixed": "interop.mixed",
    **dict.fromkeys(("Ladder", "Result", "auto", "citation", "load", "sample"), "sampling"),
    **dict.fromkeys(("anneal_population", "log_normaliser", "scan_temperatures"), "sampling"),
    **dict.fromkeys(("Solution", "solve", "solve_many"), "solving"),
}


def __getattr__(name: str) -> Any:
    """A room of the house, or a name that one of its rooms has, imported when it is first asked for."""
    if name == "searches":
        return import_module("discrax.solving.searches")
    if name in _HOMES:
        found = getattr(import_module(f"discrax.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if name in __all__:
        return import_module(f"discrax.{name}")
    raise AttributeError(f"module 'discrax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
