"""A few signals at random times; `python -m tests.hostile.kills --kills 500` sends many, into every long command."""

import signal

import pytest

from hostile import kills
from repeats import repeats


@pytest.mark.parametrize(
    ("program", "number"), [("dx.solve, site by site", signal.SIGTERM), ("learn.pcd", signal.SIGKILL)]
)
def test_a_program_ends_with_what_it_has(program, number):
    """Each comes within four seconds of the start; after a SIGKILL training goes on."""
    (kill,) = kills.run(1, workers=1, seed=number, only=program, seconds=4.0, signals=(number,))
    assert kill.wrong is None, f"{kill.wrong}\n{kill.said}"


@pytest.mark.slow
@pytest.mark.parametrize("program", [program.name for program in kills.PROGRAMS])
def test_every_long_program_ends_with_what_it_has(program):
    """One signal each, by turns SIGINT, SIGTERM and SIGKILL; or two at random."""
    turn = [each.name for each in kills.PROGRAMS].index(program)
    signals = repeats((kills.SIGNALS[turn % 3],), kills.SIGNALS)
    for kill in kills.run(repeats(1, 2), workers=1, seed=turn, only=program, seconds=6.0, signals=signals):
        assert kill.wrong is None, f"{kill.signal} after {kill.after:.1f} s: {kill.wrong}\n{kill.said}"


# --- the judge itself ---


@pytest.mark.parametrize(
    ("code", "said", "wrong"),
    [
        (0, "objective 3", None),
        (1, "discrax: interrupted.", None),
        (None, "", "did not end"),
        (-15, "", "died of signal 15"),
        (1, "Traceback (most recent call last):\n", "traceback"),
        (0, "", "without a word"),
    ],
)
def test_how_a_program_may_end(tmp_path, code, said, wrong):
    found = kills.judge_ended(code, said, tmp_path)
    assert (found is None) if wrong is None else wrong in found


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", b'{"a": 1'), ("a.csv", b"a,b\n1\n"), ("a.npz", b"PK"), ("a.npy", b"\x93NUMPY"), ("a.png", b"\x89PNG")],
)
def test_half_a_file_is_found(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert "half written" in kills.judge_files(tmp_path, after_kill=True)


def test_what_a_kill_leaves_beside_a_file_is_no_harm(tmp_path):
    (tmp_path / ".a.json.12.part").write_text("{")
    assert kills.judge_files(tmp_path, after_kill=True) is None
    assert "left" in kills.judge_files(tmp_path, after_kill=False)
