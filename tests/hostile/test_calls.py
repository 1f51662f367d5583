"""Hostile calls end in a result or in a sentence.

`make test-slow` runs a sample; `python -m tests.hostile.run` runs many.
Calls are made in a process of their own, without the type checks of the tests: users have none.
"""

import pytest

import discrax as dx
from discrax import cli
from discrax.bench.commands import commands as bench_commands
from hostile import run as hostile_run
from hostile import verdict
from hostile.calls import honest_calls, kinds
from repeats import repeats

LEFT = 0.03  # the share that the last large run left to be mended (docs/reliability.md), and a little more


@pytest.mark.slow
def test_hostile_calls_end_in_a_result_or_a_sentence():
    calls = repeats(30, 60)
    verdicts = hostile_run.run(calls, workers=1, seed=0)
    failures = [
        f"{each['source']}\n    {each['outcome']}: {each['detail']}"
        for each in verdicts
        if each["outcome"] not in hostile_run.GOOD
    ]
    assert len(verdicts) >= calls
    assert len(failures) <= max(1, LEFT * calls), "\n".join([hostile_run.report(verdicts), *failures])


def test_there_are_many_kinds_of_calls():
    assert len({kind.name for kind in kinds()}) >= 300


def test_every_command_is_called():
    called = [honest.function.split() for honest in honest_calls() if honest.is_command]
    assert {words[0] for words in called} == set(cli.COMMANDS)
    assert {words[1] for words in called if words[0] == "stochastic"} == set(cli.STOCHASTIC)
    assert {words[1] for words in called if words[0] == "bench"} == set(bench_commands())


def test_every_public_function_is_called():
    """Whatever a module of the interface exports is in the table, but for types that users read and do not make."""
    called = {honest.function for honest in honest_calls()}
    modules = {"samplers": dx.samplers, "exact": dx.exact, "diagnostics": dx.diagnostics, "learn": dx.learn}
    read_only = {
        "samplers": {"REGISTRY", "WEIGHT_FUNCTIONS", "schedules", "minibatch_gibbs", "pseudo_marginal"},
        "exact": {"CRITICAL_COUPLING", "ChainLaw", "Optimum", "Scaling", "SquareIsing", "Verdict"},
        "diagnostics": {"ScalarDiagnostics", "SiteDiagnostics", "Summary"},
        "learn": {"Trained"},
    }
    for name, module in modules.items():
        missing = {each for each in module.__all__ if f"dx.{name}.{each}" not in called} - read_only[name]
        assert not missing, f"dx.{name}: {missing}"


@pytest.mark.slow
def test_honest_calls_succeed(tmp_path, monkeypatch):
    """Otherwise hostile ones would be refused for another reason than their hostility."""
    refused = hostile_run.honest(tmp_path, every=repeats(15, 3))
    assert not refused, "\n".join(refused)


# --- the judge itself ---


@pytest.mark.parametrize(
    ("source", "must_refuse", "outcome"),
    [
        ("1 + 1", False, "result"),
        ("1 + 1", True, "accepted"),
        ("dx.Binary(shape=0)", True, "sentence"),
        ("[][3]", False, "IndexError"),
        ("np.zeros(3) + np.zeros(4)", False, "ValueError not raised by us"),
        ("sorted([1, 'a'])", False, "TypeError not raised by us"),
        ("command(['solve', 'maxcut', 'missing.txt'])", True, "sentence"),
        ("command(['samplers'])", False, "result"),
    ],
)
def test_the_judge_tells_sentences_from_tracebacks(source, must_refuse, outcome, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert verdict.judge(source, must_refuse).outcome == outcome


def test_the_judge_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(verdict, "SECONDS", 0.2)
    assert verdict.judge("[None for _ in iter(int, 1)]", False).outcome == "out of time"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("num_chains must be at least 1, but got 0.", "sentence"),
        ("Unknown sampler 'pasx'; did you mean 'pas'?)", "sentence"),
        ("bad value", "no sentence"),
        ("Something went wrong while it was being done.", "does not say what came"),
        ("psi cannot be evaluated: TypeError: no such thing", "sentence"),
    ],
)
def test_what_a_sentence_is(message, outcome):
    assert verdict._of_message(message)[0] == outcome
