"""What tests of searches share: blocks of few steps, and a clock that stands still."""

import pytest

from discrax.solving import annealing, clock, solver

from .clocks import Hands


@pytest.fixture
def in_blocks_of_five_steps(monkeypatch):
    """One program for searches of any length, and few calls of it."""
    monkeypatch.setattr(annealing, "_BLOCKS", 1)
    monkeypatch.setattr(annealing, "_LONGEST_BLOCK", 5)


@pytest.fixture
def hands(monkeypatch):
    """Time stands still, unless a test turns it: how often a search reports does not depend on the machine."""
    hands = Hands()
    monkeypatch.setattr(solver, "Clock", hands.make)
    return hands


@pytest.fixture
def reports_often(monkeypatch, hands):
    """Every look at the clock takes a millisecond, and reports come after twenty looks."""
    hands.tick = 1e-3
    monkeypatch.setattr(clock, "_SECONDS_BETWEEN_REPORTS", 0.02)
    monkeypatch.setattr(clock, "_SHARE_OF_REPORTS", 1.0)
