"""Tests run strictly: shapes and types are checked, rank promotion and warnings are errors."""

import jax
from jaxtyping import install_import_hook

with install_import_hook("discrax", "strict_types.check"):
    import discrax  # noqa: F401

jax.config.update("jax_numpy_rank_promotion", "raise")
