"""`discrax solve`: what was found is shown whatever happens to the files it was to be written to."""

import json
import os
import signal
import sys

import pytest

from discrax.cli import main
from discrax.problems.readers import example
from discrax.solving import solver

CLIQUE = ("clique", str(example("petersen.clq")), "--steps", "20", "--chains", "2")


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["discrax", "solve", *map(str, words)])
    main()


def test_the_solution_is_printed_and_written(monkeypatch, capsys, tmp_path):
    run(monkeypatch, *CLIQUE, "--out", tmp_path / "deep" / "found.json", "--plot", tmp_path / "history.png")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "MaxClique(10 nodes, 15 edges): objective 2, feasible"
    assert shown[1].startswith("20 exchanges a node, of 2 chains in ")
    written = json.loads((tmp_path / "deep" / "found.json").read_text())
    assert written["solution"]["size"] == 2
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["found.json"]


def test_the_same_command_goes_on_with_a_folder(monkeypatch, capsys, tmp_path):
    for steps in (20, 20, 50):
        run(monkeypatch, *CLIQUE[:3], steps, *CLIQUE[4:], "--folder", tmp_path)
        assert capsys.readouterr().out.splitlines()[1].startswith(f"{steps} exchanges")
    with pytest.raises(SystemExit, match="is of another one, MaxClique"):
        run(monkeypatch, "mis", *CLIQUE[1:], "--folder", tmp_path)


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_a_path_that_cannot_be_written_is_told_before_the_search(monkeypatch, tmp_path, option):
    def never(*_, **__):
        raise AssertionError

    (tmp_path / "file").write_text("")
    monkeypatch.setattr(solver, "solve", never)
    with pytest.raises(SystemExit, match=r"discrax: .*file cannot be written: it is a file, and a folder was expected"):
        run(monkeypatch, *CLIQUE, option, tmp_path / "file" / "found.png")
    with pytest.raises(SystemExit, match="it is a folder, and a file was expected"):
        run(monkeypatch, *CLIQUE, option, tmp_path)
    if option == "--plot":
        with pytest.raises(SystemExit, match=r"--plot draws .*eps, .*, but got 'history\.docx'"):
            run(monkeypatch, *CLIQUE, option, tmp_path / "history.docx")


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_a_full_disk_leaves_the_solution_on_the_screen(monkeypatch, capsys, tmp_path, option):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *CLIQUE, option, tmp_path / "found.png")
    assert ended.value.code.endswith("found.png cannot be written: no space left on device.")
    shown = capsys.readouterr().out
    assert shown.startswith("MaxClique(10 nodes, 15 edges): objective 2, feasible\n")
    if option == "--out":
        assert json.loads(shown[shown.index("{") :])["objective"] == 2
    assert not list(tmp_path.iterdir())


def test_output_that_nobody_takes_does_not_keep_the_file_from_being_written(monkeypatch, capsys, tmp_path):
    import builtins

    printed = builtins.print

    def broken(*arguments, **options):
        if options.get("file") is None:
            raise BrokenPipeError(32, "Broken pipe")
        printed(*arguments, **options)

    monkeypatch.setattr(builtins, "print", broken)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *CLIQUE, "--out", tmp_path / "found.json")
    assert "discrax: the output cannot be written: Broken pipe." in ended.value.code
    assert json.loads((tmp_path / "found.json").read_text())["objective"] == 2
    assert "objective 2" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_time_loses_nothing(monkeypatch, capsys, tmp_path, number):
    """In the search, and between its end and the printing."""
    whole = solver.solve

    def followed_by_a_signal(*arguments, **settings):
        solution = whole(*arguments, **settings)
        os.kill(os.getpid(), number)
        return solution

    monkeypatch.setattr(solver, "solve", followed_by_a_signal)
    run(monkeypatch, *CLIQUE, "--out", tmp_path / "found.json")
    assert "objective 2, feasible" in capsys.readouterr().out
    assert (tmp_path / "found.json").exists()


def test_a_signal_before_the_search_ends_it(monkeypatch, capsys):
    whole = solver.solve

    def after_a_signal(*arguments, **settings):
        os.kill(os.getpid(), signal.SIGTERM)
        return whole(*arguments, **settings)

    monkeypatch.setattr(solver, "solve", after_a_signal)
    run(monkeypatch, "clique", example("petersen.clq"), "--seconds", "300")
    assert "; interrupted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--seed", str(10**23)], "A seed is a whole number from 0 to 4,294,967,295, but got 1"),
        (["--seed", "-1"], "A seed is a whole number"),
        (["--seconds", "nan"], "seconds must be finite"),
        (["--search", "anneal", "--rungs", "4"], "--rungs is for --search temper, but the search here is anneal"),
        (["--search", "sites", "--sampler", "pas"], "--sampler is for --search anneal and temper, but the search here"),
        (["--search", "population", "--rounds", "2"], "--rounds is for --search sites and anneal, but the search"),
        (["--search", "sites", "--betas", "2", "1"], "0 < hot < cold"),
        (["--search", "sites", "--reheat", "0.5"], "needs num_rounds"),
        (["--chains", str(10**11)], "GiB; use fewer num_chains"),
        (["--penalty", "nan"], "penalty must be finite"),
    ],
)
def test_what_is_wrong_is_a_sentence(monkeypatch, words, sentence):
    with pytest.raises(SystemExit, match=f"discrax: .*{sentence}"):
        run(monkeypatch, "clique", example("petersen.clq"), *words)


def test_the_seconds_of_the_command_count_compilation_in(monkeypatch):
    given = {}

    def recorded(*_, **settings):
        given.update(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(solver, "solve", recorded)
    with pytest.raises(SystemExit, match="interrupted"):
        run(monkeypatch, "clique", example("petersen.clq"), "--seconds", "2")
    assert given["counts_compilation"] is True


def test_formulas_are_read_from_files(monkeypatch, capsys, tmp_path):
    (tmp_path / "f.wcnf").write_text("h 1 2 0\n3 -1 0\n2 -2 0\n")
    run(monkeypatch, "maxsat", tmp_path / "f.wcnf", "--steps", "20", "--out", tmp_path / "found.json")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "MaxSAT(2 variables, 3 clauses, 1 of them hard): objective 3, feasible"
    assert json.loads((tmp_path / "found.json").read_text())["solution"]["literals"] == [-1, 2]
    with pytest.raises(SystemExit, match="belongs to mis, clique and maxsat"):
        run(monkeypatch, "maxcut", tmp_path / "f.wcnf", "--penalty", "3")


def test_the_solution_goes_to_a_pipe(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for words in (["--out", "-"], ["--json"], ["--json", "--quiet"]):
        run(monkeypatch, *CLIQUE, *words)
        assert json.loads(capsys.readouterr().out)["objective"] == 2
    run(monkeypatch, *CLIQUE, "--quiet", "--out", "found.json")
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["found.json"]
