"""What is built: the package alone, with metadata that are true. `tools/try_wheel.py` installs it with every extra."""

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import discrax

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with a wheel and a source distribution; nothing is downloaded for it."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    words = ["-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        yield archive


def of_package(folder: Path) -> set[str]:
    found = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder.parent).as_posix() for path in found}


def test_the_wheel_holds_the_package_and_its_licence_alone(wheel):
    names = set(wheel.namelist())
    assert {name for name in names if ".dist-info/" not in name} == of_package(ROOT / "src" / "discrax")
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_the_source_distribution_has_neither_tests_nor_results(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    asked = {"src", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "PKG-INFO"}
    assert tops - {".gitignore"} == asked


def test_the_metadata_are_true(wheel):
    place = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    about = email.message_from_bytes(wheel.read(place))
    assert about["Version"] == discrax.__version__
    assert about["License-Expression"] == "Apache-2.0"
    needs = [line for line in about.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in needs} == {"jax", "equinox", "jaxtyping", "numpy"}


BLOCKED = """
import sys
from importlib.metadata import packages_distributions

allowed = {"jax", "jaxlib", "equinox", "jaxtyping", "numpy", "ml_dtypes", "opt_einsum", "scipy", "wadler_lindig",
           "typing_extensions", "discrax"}
others = set(packages_distributions()) - allowed - sys.stdlib_module_names
sys.modules.update(dict.fromkeys(others))  # whoever imports one of them is told that there is none
sys.path.insert(0, sys.argv[1])
import jax
import discrax as dx

assert dx.__file__.startswith(sys.argv[1]), dx.__file__
target = dx.targets.Ising.lattice((3, 3), coupling=0.2)
result = dx.sample(jax.random.key(0), target, "gibbs", num_chains=2, num_warmup=0, num_samples=10)
print(result.draws.shape, "tyro" in others)
"""


def test_the_wheel_samples_with_its_four_dependencies_and_what_they_bring(wheel, tmp_path):
    """All other packages are blocked."""
    wheel.extractall(tmp_path)
    done = subprocess.run([sys.executable, "-c", BLOCKED, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "(2, 10, 3, 3) True", done.stderr
