"""`discrax stochastic`: what the commands print, and what they say to bad input."""

import sys

import numpy as np
import pytest

from discrax.cli import main


def run(monkeypatch, capsys, *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["discrax", "stochastic", *words])
    main()
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_known_law(monkeypatch, capsys):
    told = run(monkeypatch, capsys, "law", "--chains", "50", "--draws", "400", "--step", "0.2")
    assert "1111" in told
    assert float(told.split("total variation ")[1].split()[0]) < 0.1


def test_a_regression_from_files(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", (rng.random(3000) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.float32))
    told = run(
        monkeypatch, capsys, "regression", "--data", str(tmp_path / "X.npy"), "--outcomes", str(tmp_path / "y.npy"),
        "--batch", "50", "--chains", "3", "--draws", "200",
    )  # fmt: skip
    shown = [line.strip("│ ").split() for line in told.splitlines() if line.startswith("│")]
    assert [row[-1] for row in shown if row[0] in ("0", "1", "2")] == ["1.000", "0.000", "0.000"]
    assert "105,000 rows were looked at" in told


@pytest.mark.slow
def test_facilities_and_circuits(monkeypatch, capsys):
    told = run(
        monkeypatch, capsys, "facilities", "--facilities", "4", "--customers", "6", "--steps", "200", "--chains", "5"
    )
    assert all(name in told for name in ("SGDLD", "local search", "HiGHS, 8 scenarios"))
    assert "best of all" in run(monkeypatch, capsys, "circuit")


def test_half_of_the_data(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="--data was given without --outcomes"):
        run(monkeypatch, capsys, "regression", "--data", "X.npy")


def test_facilities_keep_what_was_found_before_a_signal_or_too_late(monkeypatch, capsys):
    from discrax.solving import stochastic
    from discrax.solving.stochastic import StochasticSolution

    def found(*_, **__):
        return StochasticSolution(np.zeros(6, np.int8), 5.0, 0.1, 1.0, 0.0, np.zeros(1), is_complete=ends)

    def too_late(*_, **__):
        raise TimeoutError("HiGHS has found no solution.")

    monkeypatch.setattr(stochastic, "minimise_expected", found)
    monkeypatch.setattr(stochastic, "sample_average", too_late)
    ends = True
    told = run(monkeypatch, capsys, "facilities", "--facilities", "2", "--customers", "4")
    assert "local search" in told
    assert "HiGHS has found no solution." in told
    ends = False
    with pytest.raises(SystemExit, match="discrax: interrupted; the last line is of a search that did not end"):
        run(monkeypatch, capsys, "facilities", "--facilities", "2", "--customers", "4")
    told = capsys.readouterr().out
    assert "SGDLD" in told
    assert "local search" not in told


def test_seeds_are_checked(monkeypatch, capsys):
    for command in ("law", "regression", "facilities", "circuit"):
        with pytest.raises(SystemExit, match="A seed is a whole number from 0 to"):
            run(monkeypatch, capsys, command, "--seed", str(10**23))
