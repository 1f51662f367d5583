"""What networkx is told of the backend when it is imported; so nothing else is imported here."""

from typing import Any

_FUNCTIONS = ("large_clique_size", "max_clique", "maximum_independent_set", "one_exchange")


def backend_info() -> dict[str, Any]:
    """What the documentation of networkx says of this backend."""
    notes = "By a search, not by the approximation that networkx has."
    of_search = {
        "seconds : float, optional (default = 1)": "How long to search at most; less where a bound is met.",
        "num_steps : int, optional": "Sweeps of every chain in place of seconds.",
    }
    return {
        "backend_name": "discrax",
        "project": "discrax",
        "package": "discrax",
        "short_summary": "Independent sets, cliques and cuts by a search.",
        "functions": {name: {"additional_docs": notes, "additional_parameters": of_search} for name in _FUNCTIONS},
    }
