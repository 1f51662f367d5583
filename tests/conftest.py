"""Tests run strictly: shapes and types are checked, rank promotion and warnings are errors."""

import os
import tempfile

import jax
from jaxtyping import install_import_hook

with install_import_hook("discrax", "strict_types.check"):
    from discrax import adaptation, curvature, diagnostics, exact, learn, problems, samplers, solving, targets  # noqa: F401

jax.config.update("jax_numpy_rank_promotion", "raise")

_COMPILED = "DISCRAX_TESTS_COMPILED"


def pytest_configure(config):
    """What one worker has compiled, the other need not: both read and write a folder that lives as long as the run."""
    if _COMPILED not in os.environ:
        config.folder_of_compiled = tempfile.TemporaryDirectory(prefix="discrax-tests-")
        os.environ[_COMPILED] = config.folder_of_compiled.name
    jax.config.update("jax_compilation_cache_dir", os.environ[_COMPILED])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
