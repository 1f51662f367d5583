"""Searches with a folder: the file of the best so far is whole at any time, and the same call goes on from it."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.files import UnusableFile
from discrax.problems import MIS, Custom, MaxCut, Partition
from discrax.problems.generators import erdos_renyi, rb_model
from discrax.solving import (
    Solution,
    annealing,
    clock,
    folder,
    search,
    searches,
    solve,
    solve_many,
    solver,
    tempering,
)
from discrax.solving.searches import Anneal, Sites, Temper
from repeats import repeats

from ..faulty_files import faulty_files
from .clocks import Hands

KEY = jax.random.key(2)
PROBLEM = MIS(rb_model(8, 4, 0.25, seed=1, is_planted=True))
OTHER = MIS(rb_model(8, 4, 0.25, seed=2, is_planted=True))
SITES = {"num_steps": 400, "search": Sites(num_chains=2)}


@pytest.fixture(autouse=True)
def hands(monkeypatch):
    """Every look at the clock takes a millisecond; reports come, and files are written, after a few looks."""
    hands = Hands(tick=1e-3)
    monkeypatch.setattr(solver, "Clock", hands.make)
    monkeypatch.setattr(clock, "_SECONDS_BETWEEN_REPORTS", 0.01)
    monkeypatch.setattr(clock, "_SHARE_OF_REPORTS", 1.0)
    monkeypatch.setattr(search, "_SECONDS_BETWEEN_FILES", 0.01)
    return hands


class Killed(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


@contextmanager
def dying(monkeypatch, number):
    """The process ends when the n-th file is to be written."""
    left, original = [number], folder.write_npz

    def die(*arguments):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        original(*arguments)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(folder, "write_npz", die)
        yield


def forbid_searching(monkeypatch):
    monkeypatch.setattr(search.SearchRun, "run", lambda *_: pytest.fail("there was nothing to search"))


def test_a_folder_has_the_solution_that_is_returned(tmp_path):
    found, there = solve(KEY, PROBLEM, folder=tmp_path, **SITES), Solution.load(tmp_path, PROBLEM)
    assert found.to_dict() == there.to_dict()
    assert there.is_complete
    np.testing.assert_array_equal(found.history.rows, there.history.rows)
    assert solve(KEY, PROBLEM, **SITES).objective == found.objective


@pytest.mark.parametrize(
    "how", [Sites(num_chains=2), Anneal(num_chains=2, sampler="gibbs"), Anneal(num_chains=2)], ids=str
)
def test_a_search_that_is_killed_goes_on(tmp_path, monkeypatch, how):
    settings = SITES | {"search": how}
    with dying(monkeypatch, 3):
        solve(KEY, PROBLEM, folder=tmp_path, **settings)
    before = Solution.load(tmp_path, PROBLEM)
    assert not before.is_complete
    assert 0 < before.num_steps < 400
    assert before.objective == PROBLEM.objective(before.state)
    assert before.is_feasible
    after = solve(KEY, PROBLEM, folder=tmp_path, **settings)
    assert (after.num_steps, after.is_complete) == (400, True)
    assert after.objective >= before.objective
    assert (np.diff(after.history.num_steps) >= 0).all()
    assert after.seconds > before.seconds


TWO = [MaxCut(erdos_renyi(24, 0.3, seed=1)), MIS(rb_model(8, 4, 0.25, seed=1, is_planted=True))]  # unlike in size
PARTS = [Partition(erdos_renyi(12, 0.4, seed=seed), 3) for seed in (1, 2)]  # a program each


def interrupted(problems, out, how, times, **settings):
    """A call that an error of the user's function ends, as many times; with the steps that it had made."""
    made = []

    def stop(number, report):
        if number == len(problems) - 1:
            left.pop()
        if not left:
            made.append(report.num_steps)
            raise Killed

    for _ in range(times):
        left = list(range(9))
        with pytest.raises(Killed):
            solve_many(KEY, problems, how, folder=out, callback=stop, **settings)
    return made


def same_search(one, other, folders, problems):
    """Whether all that does not depend on the clock is the same, bit for bit."""
    for number, (a, b, problem) in enumerate(zip(one, other, problems, strict=True)):
        assert (a.objective, a.num_steps, a.is_complete) == (b.objective, b.num_steps, b.is_complete)
        np.testing.assert_array_equal(a.state, b.state)
        np.testing.assert_array_equal(a.states, b.states)
        np.testing.assert_array_equal(*(folder.read_best(each, problem, number).states for each in folders))
        rows, again = ({row[1]: row[2:] for row in each.history.rows.tolist()} for each in (a, b))
        common = sorted(set(rows) & set(again))  # a clock says at which steps a search reports
        assert common[-1] == a.num_steps
        np.testing.assert_array_equal([rows[step] for step in common], [again[step] for step in common])


@pytest.mark.parametrize(
    ("how", "problems"),
    [
        pytest.param(Anneal(num_chains=3, sampler="gibbs"), TWO, id="gibbs"),
        *(
            pytest.param(*case, id=name, marks=pytest.mark.slow)
            for name, *case in (
                ("pas", Anneal(num_chains=3, sampler="pas", num_rounds=2, reheat=0.3), TWO),
                ("dmala", Anneal(num_chains=3, sampler="dmala"), PARTS),
                ("tempering", Temper(num_chains=3, num_rungs=3, sampler="pas"), TWO[:1]),
            )
        ),
    ],
)
def test_a_search_of_steps_by_a_sampler_goes_on_as_if_it_had_not_been_killed(
    tmp_path, monkeypatch, hands, how, problems
):
    for module in (annealing, tempering):  # every turn is reported, so that no clock has a say in that
        monkeypatch.setattr(module, "MOST_TURNS", 1)
    monkeypatch.setattr(clock, "_SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr(clock, "_SHARE_OF_REPORTS", np.inf)
    settings = {"num_steps": 103, "folder": tmp_path / "killed"}
    whole = solve_many(KEY, problems, how, **settings | {"folder": tmp_path / "whole"})
    made = interrupted(problems, tmp_path / "killed", how, times=3, num_steps=103)
    assert made[0] < made[1] < made[2] < 103  # each goes on where the one before was
    spent = Solution.load(tmp_path / "killed", problems[-1], len(problems) - 1).seconds
    assert len(list((tmp_path / "killed").glob("chains-*.npz"))) == 1
    hands.time += 100  # between the calls
    found = solve_many(KEY, problems, how, **settings)
    same_search(whole, found, (tmp_path / "whole", tmp_path / "killed"), problems)
    for one, other in zip(whole, found, strict=True):
        assert len(one.history) > 20
        np.testing.assert_array_equal(one.history.rows[:, 1:], other.history.rows[:, 1:])
    assert 0 < spent < found[-1].seconds == pytest.approx(whole[-1].seconds, rel=0.3)
    assert (np.diff(found[-1].history.seconds) > 0).all()
    assert not list(tmp_path.glob("*/chains-*.npz"))


def test_a_signal_ends_a_search_that_then_goes_on_as_if_there_had_been_none(tmp_path, monkeypatch):
    how = {"search": Anneal(num_chains=3, sampler="gibbs"), "num_steps": 900}
    monkeypatch.setattr(annealing, "MOST_TURNS", 4)
    monkeypatch.setattr(search, "_SECONDS_BETWEEN_FILES", 1e9)  # only what a search keeps as it ends
    whole = solve(KEY, TWO[0], folder=tmp_path / "whole", **how)
    part = solve(KEY, TWO[0], folder=tmp_path / "part", callback=lambda report: report.num_steps > 300, **how)
    assert (part.is_complete, 300 < part.num_steps < 900) == (False, True)
    seen = []
    found = solve(KEY, TWO[0], folder=tmp_path / "part", callback=lambda report: seen.append(report.num_steps), **how)
    assert seen[0] > part.num_steps
    same_search([whole], [found], (tmp_path / "whole", tmp_path / "part"), TWO[:1])


def test_another_call_begins_where_chains_were_best(tmp_path, monkeypatch):
    """It leaves nothing of the first one's chains, for it may find what is better."""
    monkeypatch.setattr(annealing, "MOST_TURNS", 4)
    how = Anneal(num_chains=3, sampler="gibbs")
    for other in ({"how": Anneal(num_chains=3, sampler="pas")}, {"num_steps": 1000}):
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        interrupted(TWO[:1], out, how, times=1, num_steps=900)
        before = Solution.load(out, TWO[0])
        settings = {"how": how, "num_steps": 900} | other
        interrupted(TWO[:1], out, times=1, **settings)
        assert not list(out.glob("chains-*.npz"))
        assert Solution.load(out, TWO[0]).objective >= before.objective
    with pytest.raises(ValueError, match=r"must be of the problem that is asked for"):
        solve_many(KEY, TWO[1:], how, num_steps=900, folder=out)


def test_nothing_found_is_lost(tmp_path, monkeypatch):
    """The second part of a search that finds nothing returns what the first had found."""
    found = solve(KEY, PROBLEM, folder=tmp_path, **SITES)
    seen = []

    def idle(self, task):
        seen.append(task.first_states[0])
        return iter(())

    monkeypatch.setattr(searches.Sites, "reports", idle)
    monkeypatch.setattr(PROBLEM.__class__, "repair", lambda self, x: np.zeros_like(x))
    again = solve(KEY, PROBLEM, folder=tmp_path, **SITES | {"num_steps": 500})
    assert again.objective == found.objective
    assert PROBLEM.model.value(seen[0]).max() == pytest.approx(found.objective)


def test_a_finished_search_is_returned_and_a_longer_one_extends_it(tmp_path, monkeypatch):
    first = solve(KEY, PROBLEM, folder=tmp_path, **SITES)
    with monkeypatch.context() as patch:
        forbid_searching(patch)
        assert solve(KEY, PROBLEM, folder=tmp_path, **SITES).to_dict() == first.to_dict()
    longer = solve(KEY, PROBLEM, folder=tmp_path, **SITES | {"num_steps": 500})
    assert (longer.num_steps, longer.is_complete) == (500, True)
    with monkeypatch.context() as patch:
        forbid_searching(patch)
        assert solve(KEY, PROBLEM, folder=tmp_path, **SITES | {"num_steps": 450}).num_steps == 500


def test_seconds_that_were_spent_are_not_spent_again(tmp_path, monkeypatch, hands):
    """Two problems, one after the other: one has its half, the other was killed in the middle of its own."""
    how = Temper(num_chains=2, num_rungs=2, sampler="gibbs")
    settings = {"search": how, "seconds": 2.0, "folder": tmp_path}
    counts, original = [0, 0], folder.write_npz

    def die_in_the_second(path, *arguments):
        counts["best-1" in path.name] += 1
        if counts[1] == 10:
            raise Killed
        original(path, *arguments)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(folder, "write_npz", die_in_the_second)
        solve_many(KEY, [PROBLEM, OTHER], **settings)
    first, second = (Solution.load(tmp_path, problem, i) for i, problem in enumerate((PROBLEM, OTHER)))
    assert (first.is_complete, second.is_complete) == (True, False)
    begin = hands.time
    again = solve_many(KEY, [PROBLEM, OTHER], **settings)
    assert again[0].to_dict() == first.to_dict()
    assert second.seconds < again[1].seconds == pytest.approx(1.0, abs=0.1)
    assert hands.time - begin == pytest.approx(1.0 - second.seconds, abs=0.1)


def test_a_custom_problem_is_known_by_its_code(tmp_path):
    def problem(weight):
        return Custom(lambda e: -weight * jnp.square(e - 1).sum(), dx.Binary(4))

    settings = {"num_steps": 10, "search": Anneal(num_chains=2, sampler="gibbs")}
    found = solve(KEY, problem(1.0), folder=tmp_path, **settings)
    assert Solution.load(tmp_path, problem(1.0)).objective == found.objective
    with pytest.raises(ValueError, match="of another one"):
        Solution.load(tmp_path, problem(2.0))


# --- what goes wrong ---


def test_another_problem_is_refused(tmp_path):
    solve(KEY, PROBLEM, folder=tmp_path, **SITES)
    for other in (OTHER, MaxCut(PROBLEM.graph), MIS(PROBLEM.graph, penalty=2.0)):
        with pytest.raises(ValueError, match=r"must be of the problem that is asked for.*give this one a folder"):
            solve(KEY, other, folder=tmp_path, **SITES)
    assert Solution.load(tmp_path, PROBLEM).is_complete


def test_unusable_folders_are_told(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="must hold a search"):
        Solution.load(tmp_path, PROBLEM)
    with faulty_files(tmp_path, "denied", at=1), pytest.raises(UnusableFile, match="permission denied"):
        solve(KEY, PROBLEM, folder=tmp_path / "search", **SITES)
    writing = pytest.raises(UnusableFile, match=f"process {os.getpid()} .* is writing there")
    with folder.SearchFolder(tmp_path, [PROBLEM], clock.SearchBudget()), writing:
        solve(KEY, PROBLEM, folder=tmp_path, **SITES)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UnusableFile, match="must be empty or hold a search"):
        solve(KEY, PROBLEM, folder=tmp_path, **SITES)
    (tmp_path / "best-0.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"best-0.npz .* cannot be read"):
        solve(KEY, PROBLEM, folder=tmp_path, **SITES)


@pytest.mark.parametrize("how", [SITES["search"], Anneal(num_chains=2, sampler="gibbs")], ids=("sites", "gibbs"))
def test_a_full_disk_is_told_and_what_was_found_is_returned(tmp_path, how):
    settings = SITES | {"search": how}
    with faulty_files(tmp_path / "counted") as faults:
        whole = solve(KEY, PROBLEM, folder=tmp_path / "counted", **settings)
    full = faulty_files(tmp_path / "full", "full", at=int(0.8 * faults.count))
    with full, pytest.warns(UserWarning, match=r"no space left.*goes on"):
        found = solve(KEY, PROBLEM, folder=tmp_path / "full", **settings)
    assert found.is_complete
    assert not Solution.load(tmp_path / "full", PROBLEM).is_complete
    if how is not SITES["search"]:  # when there is room again
        again = solve(KEY, PROBLEM, folder=tmp_path / "full", **settings)
        same_search([whole], [again], (tmp_path / "counted", tmp_path / "full"), [PROBLEM])


CHILD = """
    import sys, jax
    from discrax.problems import MaxCut
    from discrax.problems.generators import erdos_renyi
    from discrax.solving import folder, search, solve
    from discrax.solving.searches import Sites

    search._SECONDS_BETWEEN_FILES = 0.0
    write = folder.write_npz

    def announce(*arguments):
        print("now", flush=True)
        write(*arguments)

    folder.write_npz = announce
    problem = MaxCut(erdos_renyi(200, 0.1, seed=0))
    solve(jax.random.key(0), problem, Sites(num_chains=4), seconds=1.5, folder=sys.argv[1])
"""


@pytest.mark.slow
def test_kills_leave_a_whole_file(tmp_path):
    """SIGKILL in or soon after a write: what is there is read, and never gets worse."""
    count = repeats(3, 15)
    rng, problem, best = random.Random(0), MaxCut(erdos_renyi(200, 0.1, seed=0)), -np.inf
    for kills in range(count + 1):
        command = [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            for _ in range(rng.randrange(1, 5) if kills < count else 10**6):
                if not child.stdout.readline():
                    break
            if kills < count:
                time.sleep(rng.uniform(0, 0.01))
                child.send_signal(signal.SIGKILL)
        assert child.returncode in (0, -signal.SIGKILL)
        if (tmp_path / "best-0.npz").exists():  # the first may have been killed in its first write
            found = Solution.load(tmp_path, problem)
            assert found.objective == problem.objective(found.state)
            assert found.objective >= best
            best = found.objective
    assert found.is_complete
