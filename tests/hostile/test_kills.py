"""A few signals at random times; `python -m tests.hostile.kills --kills 500` sends many, into every long command."""

import signal
from collections import Counter

import pytest

from hostile import kills
from repeats import repeats


@pytest.mark.slow
def test_every_long_program_ends_with_what_it_has():
    """One signal each, in turn, or two; after a SIGKILL training goes on. One server imports the library for all."""
    in_turn = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)  # SIGKILL for `learn.pcd`
    count = repeats(1, 2) * len(kills.PROGRAMS)
    sent = list(kills.run(count, workers=1, seed=0, seconds=6.0, signals=in_turn, in_turn=True))
    assert Counter(kill.program for kill in sent) == {program.name: repeats(1, 2) for program in kills.PROGRAMS}
    wrong = [kill for kill in sent if kill.wrong is not None]
    told = [f"{kill.program}, {kill.signal} after {kill.after:.1f} s: {kill.wrong}\n{kill.said}" for kill in wrong]
    assert not wrong, "\n\n".join(told)


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
