"""Original files of data sets, as they are published, read as the arrays of our prepared ones.

A prepared file, SET/NAME.npz, may be missing: where SET holds the originals instead, the same arrays are made of them.
Which files these are, where they can be had and their checksums, as far as they are known, is in originals.csv.

    mnist, fashion_mnist          idx files, gzipped or not
    mnist_static                  Larochelle's .amat, text
    omniglot28                    Burda's chardata.mat, with its own split; greys are rounded to 0..255
    caltech101_silhouettes28      Marlin's .mat, with his split ("split1") or without one
    usps                          LIBSVM's usps.bz2 and usps.t.bz2, or usps.h5
    gset, optsicom_torus          rudy: a line `n m`, then `i j weight` with nodes from 1
    satlib                        NAME.tar.gz of .cnf files, or a folder NAME of them, ordered by their numbers
    twitter_ego                   SNAP's twitter.tar.gz, or a folder twitter with its ID.edges, ordered by name; a
                                  network has the nodes that its edges name, and directions are dropped
"""

import bz2
import csv
import gzip
import hashlib
import re
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

Arrays = dict[str, np.ndarray]


class Original(NamedTuple):
    """A file of an original data set; `url` and `checksum` ("sha256:..." or "md5:...") may be empty: not known."""

    of_set: str
    name: str
    url: str
    checksum: str


ORIGINALS = tuple(
    Original(*row.values())
    for row in csv.DictReader((Path(__file__).parent / "originals.csv").read_text(encoding="utf-8").splitlines())
)


def read_originals(name: str, folder: Path) -> Arrays | None:
    """The arrays of a prepared file, such as "gset/gset.npz", out of the originals in a data folder; None without them.

    A file that is damaged, or not the one whose checksum is known, is a ValueError.
    """
    of_set, _, file = name.partition("/")
    place = folder / of_set
    if of_set not in _READERS or not place.is_dir():
        return None
    for original in ORIGINALS:
        if original.of_set == of_set and (place / original.name).is_file():
            check_original(place / original.name, original)
    try:
        return _READERS[of_set](place, file.removesuffix(".npz"))
    except (ValueError, KeyError, EOFError, OSError, tarfile.TarError) as error:
        raise ValueError(f"The originals of {of_set} in {place} cannot be read: {error}.") from error


def check_original(path: Path, original: Original) -> None:
    """Raises a sentence where a file has not the checksum that is known of it; where none is known, nothing is said."""
    kind, _, wanted = original.checksum.partition(":")
    found = _digest(path, kind) if wanted else ""
    if found != wanted:
        raise ValueError(
            f"{path} is not the known file: its {kind} should be {wanted}, but is {found}; get it anew from "
            f"{original.url}."
        )


@cache
def _digest(path: Path, kind: str) -> str:
    return hashlib.new(kind, path.read_bytes(), usedforsecurity=False).hexdigest()


# --- Images ----------------------------------------------------------------------------------------------------------


def _read_idx_images(place: Path, _: str) -> Arrays | None:
    names = ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte")
    train, test = (_first(place, f"{name}.gz", name) for name in names)
    return None if train is None or test is None else {"train_x": _idx(train), "test_x": _idx(test)}


def _idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """Bytes 0, 0, 8 (bytes follow), the number of axes, their lengths as big-endian words, and the bytes."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{path} must begin as an idx file of bytes, but begins with {data[:4]!r}")
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4).astype(int)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def _read_static_mnist(place: Path, _: str) -> Arrays | None:
    paths = {part: place / f"binarized_mnist_{part}.amat" for part in ("train", "valid", "test")}
    if not all(path.is_file() for path in paths.values()):
        return None
    codes = {part: np.frombuffer(path.read_bytes(), np.uint8) for part, path in paths.items()}
    return {f"{part}_bits": _pack(each[each >= ord("0")] - ord("0")) for part, each in codes.items()}


def _read_omniglot(place: Path, _: str) -> Arrays | None:
    path = _first(place, "chardata.mat")
    if path is None:
        return None
    found = _matlab(path)
    return {f"{part}_x": _greys(found[key]) for part, key in (("train", "data"), ("test", "testdata"))}


def _greys(columns: Float[np.ndarray, "784 rows"]) -> UInt8[np.ndarray, "rows 28 28"]:
    """Pictures that are columns, and whose own columns come first."""
    return np.rint(255 * columns.T.reshape(-1, 28, 28).transpose(0, 2, 1)).astype(np.uint8)


def _read_caltech(place: Path, _: str) -> Arrays | None:
    path = _first(place, "caltech101_silhouettes_28_split1.mat", "caltech101_silhouettes_28.mat")
    if path is None:
        return None
    found = _matlab(path)
    if "X" in found:
        return {"x_bits": _pack(found["X"])}
    return {
        f"{part}_bits": _pack(found[f"{key}_data"])
        for part, key in (("train", "train"), ("valid", "val"), ("test", "test"))
    }


def _read_usps(place: Path, _: str) -> Arrays | None:
    if (place / "usps.h5").is_file():
        import h5py

        with h5py.File(place / "usps.h5") as file:
            parts = {part: np.asarray(file[part]["data"]) for part in ("train", "test")}
        return {f"{part}_x_milli": np.rint(2000 * x).astype(np.int16) for part, x in parts.items()}
    paths = {"train": place / "usps.bz2", "test": place / "usps.t.bz2"}
    if not all(path.is_file() for path in paths.values()):
        return None
    return {f"{part}_x_milli": _libsvm(path) for part, path in paths.items()}


def _libsvm(path: Path) -> np.ndarray:
    """Rows `label place:value ...` of 256 values in -1..1, as whole numbers 0..2000."""
    rows = [line.split()[1:] for line in bz2.decompress(path.read_bytes()).decode().splitlines() if line.strip()]
    values = np.zeros((len(rows), 256))
    for i, row in enumerate(rows):
        places, numbers = zip(*(pair.split(":") for pair in row), strict=True)
        values[i, np.array(places, int) - 1] = np.array(numbers, float)
    return np.rint(1000 * (values + 1)).astype(np.int16)


def _matlab(path: Path) -> Arrays:
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise ImportError("MATLAB files are read by scipy, which is missing: pip install scipy.") from error
    return {name: array for name, array in loadmat(path).items() if isinstance(array, np.ndarray)}


def _pack(pixels: np.ndarray) -> UInt8[np.ndarray, "rows 98"]:
    return np.packbits(np.asarray(pixels, np.uint8).reshape(-1, 784), axis=1)


# --- Graphs and formulas ---------------------------------------------------------------------------------------------


def _read_gset(place: Path, _: str) -> Arrays | None:
    paths = {path.stem: path for path in sorted(place.iterdir()) if re.fullmatch(r"G\d+(\.txt)?", path.name)}
    return {key: array for name, path in paths.items() for key, array in _rudy(name, path).items()} or None


def _read_optsicom(place: Path, _: str) -> Arrays | None:
    """As physics0 .. physics9, in the order of their numbers."""
    paths = [place / f"sg3dl05{number}000.mc" for number in range(1, 11)]
    if not all(path.is_file() for path in paths):
        return None
    return {key: array for i, path in enumerate(paths) for key, array in _rudy(f"physics{i}", path).items()}


def _rudy(name: str, path: Path) -> Arrays:
    num_nodes, num_edges, *rest = path.read_text().split()
    table = np.array(rest, float).reshape(-1, 3)
    edges = table[:, :2].astype(np.int64) - 1
    if len(table) != int(num_edges) or (edges < 0).any() or (edges >= int(num_nodes)).any():
        raise ValueError(f"{path} must have {num_edges} lines `i j weight` with nodes 1..{num_nodes}, but has others")
    return {f"{name}_e": edges, f"{name}_w": table[:, 2]}


def _read_satlib(place: Path, name: str) -> Arrays | None:
    texts = _texts(place, (f"{name}.tar.gz",), name, ".cnf")
    if texts is None:
        return None
    by_number = sorted((int(re.findall(r"\d+", stem)[-1]), text) for stem, text in texts)
    return {
        "clauses": np.stack([_clauses(text) for _, text in by_number]),
        "index": np.array([i for i, _ in by_number]),
    }


def _clauses(text: str) -> Int[np.ndarray, "m k"]:
    """Of as many literals each; what comes after a line that begins with % is no clause."""
    lines = text.split("\n%")[0].splitlines()
    header = next(line.split() for line in lines if line.startswith("p"))
    words = " ".join(line for line in lines if line[:1] not in ("c", "p")).split()
    clauses = np.array(words, int).reshape(int(header[3]), -1)
    if (clauses[:, -1] != 0).any() or (clauses[:, :-1] == 0).any():
        raise ValueError("a formula must have clauses of one length that end with 0, but one has others")
    return clauses[:, :-1]


def _read_twitter(place: Path, _: str) -> Arrays | None:
    texts = _texts(place, ("twitter.tar.gz",), "twitter", ".edges")
    if texts is None:
        return None
    sizes, offset, edges = [], [0], []
    for _, text in sorted(texts):
        ends = np.array(text.split(), np.int64).reshape(-1, 2)
        nodes, places = np.unique(ends, return_inverse=True)
        pairs = np.sort(places.reshape(-1, 2), axis=1)
        pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
        sizes.append(len(nodes))
        offset.append(offset[-1] + len(pairs))
        edges.append(pairs)
    return {"n": np.array(sizes), "offset": np.array(offset), "edges": np.concatenate(edges)}


def _texts(place: Path, archives: tuple[str, ...], folder: str, ending: str) -> list[tuple[str, str]] | None:
    """The stems and texts of all files with an ending, of an archive or of a folder; None where there is neither."""
    path = _first(place, *archives)
    if path is not None:
        return list(_from_archive(path, ending))
    found = sorted((place / folder).rglob(f"*{ending}")) if (place / folder).is_dir() else []
    return [(each.stem, each.read_text()) for each in found] or None


def _from_archive(path: Path, ending: str) -> Iterator[tuple[str, str]]:
    """Read in place: nothing is unpacked."""
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() and member.name.endswith(ending) else None
            if file is not None:
                yield Path(member.name).stem, file.read().decode()


def _first(place: Path, *names: str) -> Path | None:
    """The first of some files that is there."""
    return next((place / name for name in names if (place / name).is_file()), None)


_READERS: dict[str, Callable[[Path, str], Arrays | None]] = {
    "mnist": _read_idx_images,
    "fashion_mnist": _read_idx_images,
    "mnist_static": _read_static_mnist,
    "omniglot28": _read_omniglot,
    "caltech101_silhouettes28": _read_caltech,
    "usps": _read_usps,
    "gset": _read_gset,
    "optsicom_torus": _read_optsicom,
    "satlib": _read_satlib,
    "twitter_ego": _read_twitter,
}
