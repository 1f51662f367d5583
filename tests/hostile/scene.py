"""What hostile calls are made of when they are honest: small targets, problems, models and files.

`from tests.hostile.scene import *` in an empty folder makes every name that a reported call uses, and the files in the
folder. The generator itself makes each thing when a call first asks for it.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import discrax as dx

from . import scene_files as scene_files  # their things are registered
from . import scene_targets as scene_targets
from .things import MAKERS, get

LIBRARIES = {"dx": dx, "jax": jax, "jnp": jnp, "np": np, "Path": Path}
__all__ = [*LIBRARIES, *MAKERS]


def __getattr__(name: str) -> Any:
    if name in MAKERS:
        return get(name)
    raise AttributeError(name)
