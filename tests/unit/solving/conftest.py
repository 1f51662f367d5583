"""What tests of searches share: turns of few steps, and a clock that stands still."""

import pytest

from discrax.solving import annealing, clock, solver

from .clocks import Hands


@pytest.fixture
def in_turns_of_five_steps(monkeypatch):
    """One program for searches of any length."""
    monkeypatch.setattr(annealing, "_TURNS", 1)
    monkeypatch.setattr(annealing, "_LONGEST_TURN", 5)


@pytest.fixture
def hands(monkeypatch):
    """Time stands still, unless a test turns it: how often a search reports does not depend on the machine."""
    hands = Hands()
    monkeypatch.setattr(solver, "Clock", hands.make)
    return hands


@pytest.fixture
def reports_often(monkeypatch, hands):
    """Every look at the clock takes a millisecond, and reports come after twenty looks, one a turn."""
    monkeypatch.setattr(annealing, "MOST_TURNS", 1)
    hands.tick = 1e-3
    monkeypatch.setattr(clock, "_SECONDS_BETWEEN_REPORTS", 0.02)
    monkeypatch.setattr(clock, "_SHARE_OF_REPORTS", 1.0)
