"""The progress bar keeps quiet where nobody watches."""

import sys

import jax
import numpy as np
import pytest

import discrax
from discrax import targets
from discrax.sampling import progress
from discrax.sampling.progress import PlainLines, ProgressBar, is_drawn, plain_lines

from ..helpers import OneFlip


class Terminal:
    def isatty(self) -> bool:
        return True


def in_a_terminal(monkeypatch, ci: str | None = None) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)


def test_shown_in_a_terminal(monkeypatch):
    in_a_terminal(monkeypatch)
    assert is_drawn(None)


@pytest.mark.parametrize("has_widgets", [True, False])
def test_a_notebook_without_widgets_has_lines(monkeypatch, has_widgets):
    in_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if has_widgets else None)
    assert is_drawn(True) is has_widgets
    assert (plain_lines(True) is None) is has_widgets
    assert plain_lines(False) is None


def test_not_shown_in_ci(monkeypatch):
    in_a_terminal(monkeypatch, ci="true")
    assert not is_drawn(None)


def test_not_shown_in_a_file(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not is_drawn(None)


@pytest.mark.parametrize("wanted", [True, False])
def test_the_user_has_the_last_word(monkeypatch, wanted):
    in_a_terminal(monkeypatch, ci="true")
    assert is_drawn(wanted) is wanted


@pytest.mark.parametrize("progress", [None, False, True])
def test_sampling_prints_only_what_was_asked_for(capfd, monkeypatch, progress):
    monkeypatch.setenv("CI", "true")
    target = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
    discrax.sample(
        jax.random.key(0),
        target,
        OneFlip(),
        num_chains=3,
        num_warmup=0,
        num_samples=30,
        chunk_size=10,
        progress=progress,
    )
    printed = capfd.readouterr()
    assert printed.out == ""
    if progress:
        assert printed.err.startswith("sampling: 30 of 30, acceptance 0.")
    else:
        assert printed.err == ""


@pytest.mark.parametrize("lacks", ["rich", "terminal"])
def test_lines_where_no_bar_can_be_drawn(capfd, monkeypatch, lacks):
    if lacks == "rich":
        monkeypatch.setattr(progress, "find_spec", lambda name: None)
    with ProgressBar("sampling", 10, progress=True) as bar:
        bar.advance(4, 0.5)
        bar.advance(6, 0.5)
    assert capfd.readouterr().err == "sampling: 10 of 10, acceptance 0.500\n"


@pytest.mark.parametrize("wanted", [None, True])
def test_no_bar_without_rich(monkeypatch, wanted):
    in_a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    assert not is_drawn(wanted)
    assert plain_lines(wanted) is not None


def test_a_plain_line_every_ten_seconds(capfd):
    """Eleven are offered in fifty seconds, five are said."""
    now = [0.0]
    lines = PlainLines(clock=lambda: now[0])
    for t in range(0, 55, 5):
        now[0] = float(t)
        lines.say(lambda: f"{t} s")  # noqa: B023
    assert capfd.readouterr().err.split("\n") == ["10 s", "20 s", "30 s", "40 s", "50 s", ""]


def test_lines_are_said_where_no_bar_is_drawn(capfd, monkeypatch):
    monkeypatch.setenv("CI", "true")
    bar = ProgressBar("sampling", 100, progress=None)
    monkeypatch.setattr(bar._lines, "_last", -1e9)
    bar.advance(40, 0.5)
    bar.advance(40, 0.5)
    assert capfd.readouterr().err == "sampling: 40 of 100, acceptance 0.500\n"
