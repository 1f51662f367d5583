import hashlib

import numpy as np
import pytest

from discrax.data import data_file, data_files, folder, use_data

NAME = "bhoslib/bhoslib_mis.npz"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A small file in a data folder, known by its own checksum."""
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path))
    path = tmp_path / NAME
    path.parent.mkdir()
    np.savez(path, a_e=np.array([[0, 1]]))
    monkeypatch.setitem(folder._SHA256, NAME, hashlib.sha256(path.read_bytes()).hexdigest())
    return path


def test_a_file_is_found_and_checked(path, tmp_path, monkeypatch):
    assert data_file(NAME) == path
    monkeypatch.delenv(folder.VARIABLE)
    assert data_file(NAME, tmp_path) == path
    monkeypatch.setitem(folder._SHA256, NAME, "0" * 64)
    with pytest.raises(ValueError, match=r"should be 0{64}, but is [0-9a-f]{64}; .*hvidberrrg/benchmark-graphs"):
        data_file(NAME, tmp_path)


def test_a_missing_file_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv(folder.VARIABLE, raising=False)
    with pytest.raises(ValueError, match=r"needs the data set gset: pass its folder .*github.com/romank-rudolfovo"):
        data_file("gset/gset.npz")
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(ValueError, match=r"There is no data folder .*absent.*github.com/romank-rudolfovo"):
        data_file("gset/gset.npz")
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match=r"There is no .*gset.npz; expected gset/gset.npz \(.npz: NAME_e"):
        data_file("gset/gset.npz")
    with pytest.raises(ValueError, match=r"no data file 'gset'; known: .*gset/gset.npz"):
        data_file("gset")


def test_use_data_is_for_folders_that_exist(tmp_path, monkeypatch):
    monkeypatch.delenv(folder.VARIABLE, raising=False)
    with pytest.raises(ValueError, match="There is no data folder"):
        use_data(tmp_path / "absent")
    monkeypatch.setenv(folder.VARIABLE, "elsewhere")
    use_data(tmp_path)
    assert folder.data_folder("gset", "anything") == tmp_path.resolve()


def test_every_file_has_a_source_and_a_layout():
    sets = {name.partition("/")[0] for name in folder._SHA256}
    assert sets == set(folder._LAYOUTS) == set(folder.SOURCES)
    assert all(len(checksum) == 64 for checksum in folder._SHA256.values())
    assert data_files("gset") == ["gset/gset.npz", "gset/gset_meta.json"]
    assert data_files("mnist") == ["mnist/mnist.npz"]
