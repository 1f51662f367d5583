"""Originals as they are published, each in small, read as what our prepared files have."""

import bz2
import gzip
import io
import tarfile

import numpy as np
import pytest

from discrax.bench.experiments import infilling
from discrax.bench.experiments.data import images as training_images
from discrax.bench.papers.discs import instances, references
from discrax.data import commands, data_arrays, data_file, folder, load_images, originals

PICTURE = np.zeros((28, 28), np.uint8)
PICTURE[2, 5] = 1  # not symmetric: a picture that lies is another one


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A data folder; files in it are not compared with the checksums of the true ones."""
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path))
    monkeypatch.setenv("DISCRAX_CACHE", str(tmp_path / "cache"))
    unknown = tuple(each._replace(checksum="") for each in originals.ORIGINALS)
    monkeypatch.setattr(originals, "ORIGINALS", unknown)

    def make(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    return make


def as_idx(images):
    return b"\0\0\x08\x03" + np.array(images.shape, ">u4").tobytes() + images.tobytes()


def archive_of(texts):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return held.getvalue()


def test_idx_files(place):
    greys = np.stack([PICTURE * 200, 1 - PICTURE])
    place("mnist/train-images-idx3-ubyte.gz").write_bytes(gzip.compress(as_idx(greys)))
    place("mnist/t10k-images-idx3-ubyte").write_bytes(as_idx(greys[:1]))
    found = load_images("dynamic_mnist")
    np.testing.assert_array_equal(found.train, greys)
    np.testing.assert_array_equal(found.test, greys[:1])
    np.testing.assert_array_equal(training_images("mnist"), greys)
    place("mnist/t10k-images-idx3-ubyte").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"originals of mnist in .* cannot be read: .*must begin as an idx file"):
        load_images("dynamic_mnist")


def test_pixels_as_text(place):
    for part, rows in (("train", 3), ("valid", 2), ("test", 1)):
        text = "\n".join([" ".join(map(str, PICTURE.ravel()))] * rows) + "\n"
        place(f"mnist_static/binarized_mnist_{part}.amat").write_text(text)
    found = load_images("mnist")
    assert (len(found.train), len(found.valid), len(found.test)) == (3, 2, 1)
    np.testing.assert_array_equal(found.train[2], PICTURE)


def test_omniglot_with_its_split(place):
    from scipy.io import savemat

    columns = np.stack([PICTURE.T.ravel() * share for share in (1.0, 0.5)], axis=1)
    savemat(place("omniglot28/chardata.mat"), {"data": columns, "testdata": columns[:, :1]})
    found = load_images("omniglot")
    assert (len(found.train), len(found.test)) == (2, 1)
    np.testing.assert_array_equal(found.train[1], PICTURE * 128)


@pytest.mark.parametrize("has_split", [True, False])
def test_silhouettes_with_and_without_a_split(place, monkeypatch, has_split):
    from scipy.io import savemat

    lying = 1 - PICTURE.T.reshape(1, 784)  # the object is 0 in the file
    rows = np.repeat(lying, 3, axis=0)
    name = "caltech101_silhouettes28/caltech101_silhouettes_28"
    if has_split:
        savemat(place(f"{name}_split1.mat"), {"train_data": rows, "val_data": rows[:2], "test_data": rows[:1]})
        found = load_images("caltech")
        assert (len(found.train), len(found.valid), len(found.test)) == (3, 2, 1)
        np.testing.assert_array_equal(found.train[0], PICTURE)
    else:
        savemat(place(f"{name}.mat"), {"X": rows})
        assert data_arrays(f"{name}.npz")["x_bits"].shape == (3, 98)


def test_digits_of_letters(place):
    line = "3 " + " ".join(f"{i + 1}:{value}" for i, value in enumerate([-1.0, 0.25, 1.0])) + "\n"
    place("usps/usps.bz2").write_bytes(bz2.compress(line.encode() * 2))
    place("usps/usps.t.bz2").write_bytes(bz2.compress(line.encode()))
    found = load_images("usps")
    assert found.train[0, 0, :3].tolist() == [0, 1, 1]
    assert (len(found.train), len(found.test)) == (2, 1)
    import h5py

    with h5py.File(place("usps/usps.h5"), "w") as file:
        for part in ("train", "test"):
            file[f"{part}/data"] = np.full((4, 256), 0.6)
    assert (data_arrays("usps/usps.npz")["train_x_milli"] == 1200).all()


def test_graphs_with_weights(place):
    place("gset/G1").write_text("800 2\n1 2 1\n2 800 -1\n")
    found = instances.gset_maxcut(("G1",))
    assert found.problems[0].graph.edges.tolist() == [[0, 1], [1, 799]]
    assert found.problems[0].graph.weights.tolist() == [1, -1]
    assert found.references[0].value == 11624
    with pytest.raises(ValueError, match="The Gset has G1 here, but not G2"):
        instances.gset_maxcut(("G2",))
    for number in range(1, 11):
        place(f"optsicom_torus/sg3dl05{number}000.mc").write_text(f"125 1\n1 2 {number}\n")
    found = instances.optsicom_maxcut()
    assert [int(problem.graph.weights[0]) for problem in found.problems] == list(range(1, 11))
    place("gset/G1").write_text("800 3\n1 2 1\n")
    with pytest.raises(ValueError, match=r"originals of gset .*G1 must have 3 lines `i j weight`"):
        instances.gset_maxcut(("G1",))


def test_formulas_of_satlib(place):
    name = "CBS_k3_n100_m418_b10"
    texts = {f"{name}_{i}.cnf": f"c about\np cnf 4 2\n{i + 1} 2 3 0\n-1 -2 4 0\n%\n0\n" for i in (1, 0)}
    place(f"satlib/{name}.tar.gz").write_bytes(archive_of(texts))
    found = instances.satlib_mis(2)
    assert [each.value for each in found.references] == [2.0, 2.0]
    assert data_arrays(f"satlib/{name}.npz")["clauses"][:, 0, 0].tolist() == [1, 2]  # in the order of their numbers
    for file, text in texts.items():  # beside an archive, one that is unpacked
        place(f"satlib/CBS_other/{file}").write_text(text)
    assert len(instances.satlib_mis(4).problems) == 4
    place(f"satlib/{name}.tar.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="originals of satlib"):
        instances.satlib_mis(1)


def test_ego_networks_of_snap(place):
    texts = {"twitter/20.edges": "7 9\n9 7\n9 8\n", "twitter/100.edges": "5 6\n", "twitter/20.feat": "no"}
    place("twitter_ego/twitter.tar.gz").write_bytes(archive_of(texts))
    found = instances.twitter_clique(2)
    assert [problem.graph.edges.tolist() for problem in found.problems] == [[[0, 1]], [[0, 2], [1, 2]]]
    assert references.clique_number(found.problems[1].graph) == 2


def test_a_file_that_is_not_the_known_one_is_refused(place, monkeypatch):
    known = originals.Original("gset", "G1", "https://example.org/G1", "sha256:" + "0" * 64)
    monkeypatch.setattr(originals, "ORIGINALS", (known,))
    place("gset/G1").write_text("2 1\n1 2 1\n")
    with pytest.raises(ValueError, match=r"G1 is not the known file: its sha256 should be 0{64}, .*example.org/G1"):
        data_arrays("gset/gset.npz")


# --- The command -----------------------------------------------------------------------------------------------------


def test_originals_belong_to_sets_that_have_readers():
    assert {each.of_set for each in originals.ORIGINALS} == set(originals._READERS) <= set(folder.SOURCES)
    lengths = {"sha256": 64, "md5": 32}
    for each in originals.ORIGINALS:
        kind, _, digits = each.checksum.partition(":")
        assert not each.checksum or len(digits) == lengths[kind]


def test_what_is_there_is_listed(place, tmp_path, capsys):
    place("gset/G1").write_text("2 1\n1 2 1\n")
    place("usps/usps.npz").write_bytes(b"")
    states = {stock.of_set: stock.state for stock in commands.take_stock(tmp_path)}
    assert (states["gset"], states["usps"], states["mnist"]) == ("some originals", "prepared", "missing")
    assert {stock.state for stock in commands.take_stock(None)} == {"missing"}
    commands.data(tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    assert "data folder" in said
    assert "some originals" in said


def test_texts_and_antibodies_are_listed(place, tmp_path):
    """What DISCS' tables of text need: the files that they read, and where these can be had."""
    names = infilling._BROWN, infilling._VALIDATION, infilling._TEST, *infilling._SPEECHES
    texts = {f"text/{name}" for name in names}
    model = {f"antiberty_mlm/{name}" for name in ("config.json", "vocab.txt", "model.safetensors")}
    stocks = {stock.of_set: stock for stock in commands.take_stock(None)}
    assert (set(stocks["text"].prepared), set(stocks["antiberty_mlm"].prepared)) == (texts, model)
    assert stocks["antiberty_mlm"].files == "config.json, model.safetensors, vocab.txt"
    for name in texts | model - {"antiberty_mlm/vocab.txt"}:
        place(name).write_bytes(b"")
    states = {stock.of_set: stock.state for stock in commands.take_stock(tmp_path)}
    assert (states["text"], states["antiberty_mlm"]) == ("prepared", "missing")
    with pytest.raises(ValueError, match=r"SHA-256 .* expected text/brown_sentences.txt.xz \(xz files of text, .*nltk"):
        data_file("text/brown_sentences.txt.xz", tmp_path)


def test_downloads_are_checked(tmp_path, monkeypatch):
    source = tmp_path / "there" / "G1"
    source.parent.mkdir()
    source.write_text("2 1\n1 2 1\n")
    digest = originals._digest(source, "md5")
    known = originals.Original("gset", "G1", source.as_uri(), f"md5:{digest}")
    monkeypatch.setattr(commands, "ORIGINALS", (known,))
    (path,) = commands.fetch_originals("gset", tmp_path / "here")
    assert path.read_text() == source.read_text()
    assert commands.fetch_originals("gset", tmp_path / "here") == []
    monkeypatch.setattr(commands, "ORIGINALS", (known._replace(checksum="md5:" + "0" * 32),))
    with pytest.raises(ValueError, match="is not the known file"):
        commands.fetch_originals("gset", tmp_path / "elsewhere")
    assert not list((tmp_path / "elsewhere" / "gset").iterdir())
    monkeypatch.setattr(commands, "ORIGINALS", (known._replace(url=(tmp_path / "nowhere").as_uri()),))
    with pytest.raises(ValueError, match="nowhere could not be fetched"):
        commands.fetch_originals("gset", tmp_path / "elsewhere")
    with pytest.raises(
        ValueError, match=r"Sets that can be downloaded are gset, but not 'bhoslib'; it can be had from"
    ):
        commands.fetch_originals("bhoslib", tmp_path)
