"""`discrax.citation`: BibTeX of what a result rests on."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.samplers.papers import OF_SAMPLERS, PAPERS


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)


@pytest.fixture(scope="module")
def tuned():
    target = dx.targets.Ising.lattice((3, 3), coupling=0.2)
    settings = {"num_chains": 2, "num_warmup": 20, "num_samples": 4, "progress": False}
    return dx.sample(jax.random.key(0), target, "pas", **settings)


def test_every_sampler_has_a_row_and_every_paper_a_user():
    from discrax.sampling import citing

    assert list(OF_SAMPLERS) == list(dx.samplers.REGISTRY)
    others = {citing._OF_TUNING, *citing._OF_TARGETS.values(), *citing._OF_DATA.values()}
    assert {paper for papers in OF_SAMPLERS.values() for paper in papers} | others == set(PAPERS)


@pytest.mark.parametrize("name", PAPERS)
def test_an_entry_is_bibtex(name):
    entry = PAPERS[name].bibtex(name)
    assert entry.count("{") == entry.count("}")
    assert entry.startswith(f"@{PAPERS[name].kind}{{{name},\n  author = {{")
    assert str(PAPERS[name].year) in name  # a key says the year
    assert all(line.endswith("},") for line in entry.splitlines()[1:-1])


def test_a_tuned_run_cites_its_sampler_and_its_tuning(tuned):
    assert keys(dx.citation(tuned)) == ["discrax", "zanella2020", "sun2022path", "sun2022scaling"]
    assert keys(dx.citation(replace(tuned, reports=()))) == ["discrax", "zanella2020", "sun2022path"]
    assert f"version = {{{dx.__version__}}}" in dx.citation("pas")


def test_a_target_that_a_paper_made_up_is_cited_also_where_it_is_tempered(tuned):
    target = dx.targets.CubicIsing(np.zeros((3, 3)), np.array([[0, 1, 2]]), 0.1)
    for each in (target, dx.Tempered(target, 0.5)):
        assert keys(dx.citation(replace(tuned, target=each)))[-1] == "rhodes2022"


def test_the_data_of_a_shipped_machine_are_cited_and_not_of_another(tuned):
    mine = dx.targets.RBM(np.zeros((2, 3)), np.zeros(3), np.zeros(2))
    assert keys(dx.citation(replace(tuned, target=dx.targets.RBM.pretrained())))[-1] == "lecun1998"
    assert keys(dx.citation(replace(tuned, target=mine))) == keys(dx.citation(tuned))


def test_a_result_that_was_loaded_cites_the_same(tuned, tmp_path):
    pytest.importorskip("h5netcdf")
    tuned.save(tmp_path / "run.nc")
    assert dx.citation(dx.load(tmp_path / "run.nc")) == dx.citation(tuned)


def test_kernels_of_other_scans_are_gibbs_and_a_kernel_of_ones_own_is_named():
    for scan in ("random", "systematic", "chromatic", "elimination", "layers"):
        assert keys(dx.citation(dx.samplers.gibbs(scan))) == ["discrax", "geman1984"]

    class Mine(type(dx.samplers.lb())):
        pass

    assert keys(dx.citation(Mine())) == ["discrax"]
    assert "% No paper is known here of the sampler Mine: cite its own." in dx.citation(Mine())


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("thing", "error", "sentence"),
    [
        (None, TypeError, "A citation is of a result, a kernel or the name of a sampler, but got"),
        (dx.samplers.pas, TypeError, "A citation is of a result"),
        ([], TypeError, "A citation is of a result"),
        ("pass", ValueError, "Unknown sampler 'pass'"),
    ],
)
def test_what_cannot_be_cited_is_a_sentence(thing, error, sentence):
    with pytest.raises(error, match=sentence):
        dx.citation(thing)
