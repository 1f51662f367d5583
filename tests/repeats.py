"""How often tests repeat what is more of the same: few times, or many with DISCRAX_TESTS_REPEATS=full."""

import os
from typing import Any


def repeats(few: Any, many: Any) -> Any:
    """`many` where all repetitions are asked for, else `few`."""
    return many if os.environ.get("DISCRAX_TESTS_REPEATS") == "full" else few
