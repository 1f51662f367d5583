"""`discrax train` and `discrax sample` on scikit-learn's digits."""

import json

import numpy as np
import pytest

from discrax import cli
from discrax.learn.commands import sample_model
from discrax.learn.runs import build_model, load_model

pytest.importorskip("optax")
pytest.importorskip("tyro")
pytest.importorskip("sklearn")
TINY = {"steps": 2, "batch": 20, "buffer": 40, "every": 5, "save_every": 5, "width": 4, "blocks": 2, "hidden": 8}


def train(*flags: str, **options: object) -> None:
    """`discrax train` with these options."""
    given = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    cli.run(["train", *flags, *given])


@pytest.mark.parametrize("model", ["rbm", *(pytest.param(m, marks=pytest.mark.slow) for m in ("resnet", "ising"))])
def test_a_model_is_trained_and_sampled(tmp_path, capsys, model):
    out = tmp_path / "run"
    train(model=model, sampler="rwm", updates=10, out=out, **TINY)
    said = capsys.readouterr().out
    assert "10 updates in" in said
    assert "energy gap" in said
    for name in ("config.json", "curves.csv", "curves.png", "samples/000005.png", "samples/000010.png"):
        assert (out / name).stat().st_size > 100, name
    train("--resume", out=out)  # with the settings of the run, which was complete
    train("--resume", updates=15, out=out)
    said = capsys.readouterr().out
    assert "10 updates in" in said
    assert "15 updates in" in said
    settings = (out / "config.json").read_text()
    assert json.loads(settings)["updates"] == 15  # what it is to have: a run that is killed goes on to that
    with pytest.raises(ValueError, match="already holds a run of 15 updates; go on with it by `resume` "):
        train(model=model, hidden=3, out=out)
    assert (out / "config.json").read_text() == settings
    restored, config = load_model(out)
    assert config["model"] == model
    before = build_model(config)
    changed = [not np.array_equal(a, b) for a, b in zip(_leaves(restored), _leaves(before), strict=True)]
    assert any(changed)
    sample_model(out, sampler="gibbs", chains=4, warmup=0, steps=6, snapshots=2)
    assert "4 chains, 6 steps of gibbs" in capsys.readouterr().out
    assert (out / "samples.png").stat().st_size > 100
    with np.load(out / "samples.npz") as saved:
        assert saved["states"].shape == (4, 2, 8, 8)


def _leaves(model):
    import equinox as eqx
    import jax

    return jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))


@pytest.mark.parametrize("model", ["rbm", "potts"])
@pytest.mark.parametrize("levels", [2, 4])
def test_every_model_has_the_space_of_its_data(model, levels):
    config = {"model": model, "shape": [4, 4], "levels": levels, "seed": 0, "hidden": 3}
    made = build_model(config)
    assert made.space.num_levels == levels
    assert made.space.num_sites == 16


@pytest.mark.usefixtures("as_a_user")
def test_bad_input(tmp_path):
    with pytest.raises(ValueError, match="Unknown sampler 'pass'"):
        train(sampler="pass", out=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match="it has no config"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text(
        json.dumps({"model": "rbm", "shape": [2, 2], "levels": 2, "seed": 0, "hidden": 2})
    )
    with pytest.raises(ValueError, match="There is no checkpoint"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match="There is no model 'gan'; known: rbm"):
        build_model({"model": "gan", "shape": [2, 2], "levels": 2, "seed": 0})
    with pytest.raises(ValueError, match="train potts"):
        build_model({"model": "ising", "shape": [2, 2], "levels": 3, "seed": 0})
    with pytest.raises(ValueError, match="at most 4,000"):
        build_model({"model": "potts", "shape": [28, 28], "levels": 8, "seed": 0})
    with pytest.raises(ValueError, match="between 1 and the 3 steps"):
        sample_model(tmp_path, steps=3, snapshots=5)
