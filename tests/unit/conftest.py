"""What the unit tests share."""

import importlib

import jaxtyping
import pytest


@pytest.fixture
def as_a_user():
    """No runtime type checks, as users run: bad input must meet our own sentences, not the type checker's."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def sample_module():
    """The module behind `discrax.sample` (the function hides it from a plain import)."""
    return importlib.import_module("discrax.sampling.sample")


@pytest.fixture
def run_module():
    """The module that drives the loop for everyone."""
    return importlib.import_module("discrax.sampling.run")


@pytest.fixture(autouse=True)
def searches_search(request, monkeypatch):
    """Nothing is reduced: small problems would be solved before a search begins, and its tests would prove nothing."""
    if {"solving", "interop", "problems", "bench"} & set(request.path.parts):
        from discrax.solving import eliminations

        monkeypatch.setattr(eliminations, "_MOST_SECONDS", -1.0)
        monkeypatch.setattr(eliminations, "_MOST_COUNTED", 0)
