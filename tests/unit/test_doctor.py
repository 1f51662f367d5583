"""`discrax doctor`: what is missing is named, and a sampler that is wrong is found."""

import json
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import discrax
from discrax import cli, doctor
from discrax.voice import Voice

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
WELL = {"passed": True, "problem": None, "error": 0.01, "seconds": 1.0}


def test_every_extra_of_users_says_what_it_adds():
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(declared) - {"dev", "docs", "peers"}


def test_what_is_missing_is_named_with_what_it_would_add(monkeypatch, capsys):
    lines = ["jax>=0.10", "nosuchthing>=1; extra == 'zarr'", "jax; extra == 'plot'", "neverheard; extra == 'dev'"]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    monkeypatch.setattr(doctor, "self_test", lambda: WELL)
    doctor.doctor()
    said = capsys.readouterr().out
    assert "missing: nosuchthing. pip install 'discrax[zarr]' adds runs with a folder" in said
    assert "neverheard" not in said
    assert "plot" not in said
    assert said.startswith(f"discrax {discrax.__version__}, Python 3.")


def test_the_self_test_passes_here():
    tested = doctor.self_test()
    assert tested["passed"], tested
    assert 0 < tested["error"] < 0.1


@pytest.mark.parametrize("fault", ["wrong", "raises"])
def test_a_sampler_that_does_not_work_is_exit_code_1(monkeypatch, capsys, fault):
    class Wrong:
        def mean(self):
            return np.full(9, 0.5)

    def broken(*_, **__):
        if fault == "raises":
            raise RuntimeError("no such kernel image")
        return Wrong()

    monkeypatch.setattr("discrax.sampling.sample", broken)
    monkeypatch.setattr("sys.argv", ["discrax", "doctor", "--json"])
    with pytest.raises(SystemExit, match="discrax: the self test failed: ") as ended:
        cli.main()
    assert {"wrong": "probabilities are 0.4 away", "raises": "RuntimeError: no such kernel image"}[fault] in str(
        ended.value
    )
    found = json.loads(capsys.readouterr().out)
    assert found["is_well"] is False
    assert found["packages"]["jax"]


def test_a_device_that_does_not_answer_is_told(monkeypatch):
    def silent():
        raise RuntimeError("the driver does not answer")

    monkeypatch.setattr("jax.devices", silent)
    monkeypatch.setattr(doctor, "self_test", lambda: WELL)
    with pytest.raises(SystemExit, match="the driver does not answer"):
        doctor.doctor(Voice(quiet=True))


def test_without_the_extra_of_the_command_line_the_doctor_comes_all_the_same(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "tyro", None)
    monkeypatch.setattr(doctor, "self_test", lambda: WELL)
    cli.run(["doctor", "--json"])
    assert json.loads(capsys.readouterr().out)["is_well"] is True
    with pytest.raises(ImportError, match=r"pip install 'discrax\[cli\]'"):
        cli.run(["samplers"])
