"""The command line: mistakes are sentences with exit code 1, faults of the program keep their traceback."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import discrax
from discrax import cli
from discrax.bench.commands import commands as bench_commands
from discrax.core import interrupts
from discrax.core.seeds import key_of
from discrax.voice import Voice

HERE = Path(__file__).parent

pytest.importorskip("tyro")


def ends(monkeypatch, *arguments: str):
    """What a command ends with: a sentence, or the number of tyro's own errors."""
    monkeypatch.setattr(sys, "argv", ["discrax", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


MISTAKES = {
    "bench compare /nope /nope2": "/nope does not exist; `discrax bench run SUITE` makes one.",
    "bench report /etc/passwd": "/etc/passwd is a file, and the folder of a run was expected",
    "bench run": "Say which suites to run",
    "bench run nosuite": "There is no suite 'nosuite'",
    "bench run x --quick --paper": "A run is --quick or --paper, not both.",
    "bench run optimal-scaling/table05 --workers 0": "An executor needs at least one worker, got 0.",
    "bench run optimal-scaling/table05 --sampler no.module:x": "There is no module 'no.module'",
    "bench run optimal-scaling/table05 --out /etc/passwd": "/etc/passwd cannot be written: it is a file",
    "bench run optimal-scaling/table05 --data /nope": "There is no data folder /nope.",
    "sample --model /nope": "/nope is not the folder of a run",
    "sample --model /nope --seed -1": "A seed is a whole number from 0 to 4,294,967,295, but got -1.",
    "sample --model /nope --steps 0": "snapshots lies between 1 and the 0 steps",
    "train --data nope": "There is no image set 'nope'",
    "train --seed 100000000000000000000000": "A seed is a whole number from 0 to",
    "train --updates 0": "--updates must be at least 1, but got 0.",
    "train --l1 -1": "--l1 must be at least 0, but got -1.0.",
    "train --weight-decay nan": "--weight-decay must be finite, but holds nan.",
    "train --rate 0": "--rate must be greater than 0, but got 0.0.",
    "train --ema 1": "--ema must be at least 0 and less than 1, but got 1.0.",
    "train --resume --out /nope": "/nope is not the folder of a run",
    "infill [MASK] --checkpoint /nope": "A checkpoint is a folder with config.json",
    "infill [MASK] --checkpoint /nope --seed 4294967296": "A seed is a whole number",
    "infill [MASK] --checkpoint /nope --chains 0": "num_chains must be at least 1, but got 0.",
    "infill [MASK] --checkpoint /nope --out /etc/passwd/x": "/etc/passwd cannot be written: it is a file",
    "stochastic prompt --seed -1": "A seed is a whole number",
    "stochastic prompt --steps 0": "steps must be at least 1, but got 0.",
    "demo --seed -1": "A seed is a whole number",
    "demo --out /etc/passwd": "/etc/passwd cannot be written: it is a file",
    "demo --side 0": "A space needs a shape of positive sizes",
}


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_a_sentence(monkeypatch, tmp_path, line):
    monkeypatch.chdir(tmp_path)
    said = ends(monkeypatch, *line.split())
    assert isinstance(said, str)
    assert said.startswith("discrax: ")
    assert MISTAKES[line] in said
    assert not (tmp_path / "run").exists()


def _raise(error):
    raise error


def test_sentences_are_those_that_this_package_raises(monkeypatch):
    with pytest.raises(ValueError, match="seed") as ours:
        key_of(-1)
    assert cli.sentence(ours.value) == str(ours.value)
    with pytest.raises(ValueError, match="reshape") as of_numpy:
        np.zeros(3).reshape(2)
    assert cli.sentence(of_numpy.value) is None
    for error in (ValueError("of a test"), RuntimeError("what"), AssertionError(), KeyError("x")):
        with pytest.raises(type(error)) as foreign:
            _raise(error)
        assert cli.sentence(foreign.value) is None
    with pytest.raises(OSError, match="No such file") as of_system:
        Path("/nope/file").read_text()
    assert cli.sentence(of_system.value) == "/nope/file: no such file or directory."
    with pytest.raises(MemoryError) as too_much:
        _raise(MemoryError("Unable to allocate 7 TiB"))
    assert cli.sentence(too_much.value) == "there is not enough memory: Unable to allocate 7 TiB."


def test_a_fault_of_the_program_shows_where_it_was_raised(monkeypatch):
    monkeypatch.setattr(cli, "run", lambda arguments: np.zeros(3).reshape(2))
    with pytest.raises(ValueError, match="cannot reshape"):
        cli.main()
    monkeypatch.setattr(cli, "run", lambda arguments: _raise(KeyboardInterrupt))
    assert ends(monkeypatch) == "discrax: interrupted."


WAITING = """
import os, sys, time
from discrax import cli
from discrax.core import interrupts

def run(arguments):
    print("started", flush=True)
    time.sleep(100)

cli.run = run
cli.main()
"""


def test_sigterm_ends_a_command_as_ctrl_c_does():
    command = subprocess.Popen([sys.executable, "-c", WAITING], stdout=-1, stderr=-1, text=True)
    assert command.stdout.readline() == "started\n"
    time.sleep(0.1)
    os.kill(command.pid, signal.SIGTERM)
    _, said = command.communicate(timeout=60)
    assert said.strip() == "discrax: interrupted."
    assert command.returncode == 1


def test_a_signal_that_can_be_raised_to_nobody_is_passed_over(monkeypatch):
    """As when it falls into JAX's callback of the garbage collector; anything else that is lost is told."""
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    lost = [SimpleNamespace(exc_value=error) for error in (KeyboardInterrupt(), ValueError("lost"))]
    monkeypatch.setattr(cli, "run", lambda arguments: [sys.unraisablehook(each) for each in lost])
    cli.main()
    assert told == lost[1:]
    sys.unraisablehook(lost[0])  # after the command all is as before
    assert told == [lost[1], lost[0]]


def test_a_demo_that_is_interrupted_shows_the_samplers_that_had_ended(monkeypatch, tmp_path, capsys):
    begun = []

    def sample_until_the_signal(key, target, sampler, **settings):
        begun.append(sampler)
        if len(begun) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        while len(begun) > 1 and not interrupts._listening[-1].requested:
            time.sleep(0.001)
        stats = {name: np.full((2, 30), 0.5) for name in ("accept_prob", "jump", "evals")}
        draws = np.random.default_rng(0).integers(0, 2, (2, 30, *target.space.shape))
        return SimpleNamespace(draws=draws, stats=stats, seconds=1.0)

    monkeypatch.setattr("discrax.demo.sample", sample_until_the_signal)
    said = ends(monkeypatch, "demo", "--side", "4", "--out", str(tmp_path))
    assert said == "discrax: interrupted; the samplers that are missing were not begun."
    assert 2 <= len(begun) <= 4  # of the three threads, one may have begun a second sampler before the signal
    assert capsys.readouterr().out.count("0.500") == len(begun)
    assert (tmp_path / "ising.png").stat().st_size > 1000


WRONG_USAGE = [
    "nosuch",
    "demo --nosuch",
    "demo --side x",
    "doctor --seed 1",
    "completion ksh",
    "solve",
    "bench nosuch",
]


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_what_cannot_be_read_is_exit_code_2(monkeypatch, line):
    assert ends(monkeypatch, *line.split()) == 2


def test_the_version_is_that_of_the_package(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["discrax", "--version"])
    cli.main()
    assert capsys.readouterr().out == f"discrax {discrax.__version__}\n"


def outcome(monkeypatch, capsys, *arguments: str) -> str:
    """What a command that ends well prints on standard output."""
    monkeypatch.setattr(sys, "argv", ["discrax", *arguments])
    cli.main()
    return capsys.readouterr().out


@pytest.mark.parametrize("line", ["samplers", "data", "bench list"])
def test_lists_are_tables_or_json_or_nothing(monkeypatch, capsys, line):
    assert isinstance(json.loads(outcome(monkeypatch, capsys, *line.split(), "--json")), list)
    assert outcome(monkeypatch, capsys, *line.split(), "--quiet") == ""
    assert "━" in outcome(monkeypatch, capsys, *line.split())


def test_json_stays_json_where_the_rest_is_quiet_and_numbers_are_numbers(capsys):
    Voice(json=True, quiet=True).give({"a": np.arange(2), "b": float("nan"), "c": np.float32(0.5), "d": Path("x")})
    Voice(json=True).say("not this")
    Voice(quiet=True).say("nor this")
    Voice(quiet=True).give({"nor": "this"})
    assert json.loads(capsys.readouterr().out) == {"a": [0, 1], "b": None, "c": 0.5, "d": "x"}


def test_quiet_shows_no_progress_while_the_command_runs(monkeypatch):
    from discrax.sampling.progress import plain_lines

    seen = []
    monkeypatch.setattr(cli, "run", lambda arguments: seen.append(plain_lines(None)))
    for words in (["--quiet"], []):
        monkeypatch.setattr(sys, "argv", ["discrax", "samplers", *words])
        cli.main()
    assert seen[0] is None
    assert seen[1] is not None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_options_of_inner_commands(monkeypatch, capsys, shell):
    monkeypatch.setattr(sys, "argv", ["discrax", "completion", shell])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None)
    written = capsys.readouterr().out
    for word in ("doctor", "--checkpoint", "--retry-failed", "facilities"):
        assert word in written


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("line", ["demo --out -", "train --out -"])
def test_what_is_no_text_does_not_go_to_a_pipe(monkeypatch, tmp_path, line):
    monkeypatch.chdir(tmp_path)
    assert "- cannot be written: what is made here does not go to standard output" in ends(monkeypatch, *line.split())
    assert not list(tmp_path.iterdir())


def test_every_command_can_be_quiet_and_speak_json():
    places = [place for name, (place, _) in cli.COMMANDS.items() if name not in ("bench", "stochastic", "completion")]
    functions = [cli._load(place) for place in (*places, *cli.STOCHASTIC.values())]
    for command in (*functions, *bench_commands().values()):
        assert isinstance(inspect.signature(command).parameters["voice"].default, Voice), command


def test_commands_of_the_benchmark_speak_json_or_nothing(monkeypatch, capsys, tmp_path):
    suite, folder, rows = str(HERE / "bench" / "tiny_suite.py"), str(tmp_path / "run"), str(tmp_path / "rows.parquet")

    def found(*line: str):
        return json.loads(outcome(monkeypatch, capsys, "bench", *line, "--json"))

    run = found("run", suite, "--out", folder)
    assert (run["ok"], run["failed"], run["is_complete"]) == (4, 1, True)
    assert all(Path(page).exists() for page in run["pages"])
    assert found("report", folder) == run["pages"]
    assert found("export", folder, rows) == {"path": rows, "bytes": Path(rows).stat().st_size}
    comparison = found("compare", folder, rows)
    assert comparison["differences"]
    assert comparison["only_a"] == []
    assert found("leaderboard", rows, "--out", str(tmp_path / "ranks"))
    for line in (("report", folder), ("compare", folder, rows), ("leaderboard", rows, "--out", str(tmp_path))):
        assert outcome(monkeypatch, capsys, "bench", *line, "--quiet") == ""
