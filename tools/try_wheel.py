"""Builds the wheel and tries it in clean virtual environments: `python tools/try_wheel.py [EXTRA ...]`.

Without names: with no extra ("core"), with each extra alone, and with all of them. In each environment `smoke.py` is
run away from the repository. With --lowest the dependencies have the lowest versions that pyproject.toml declares. Exit
code 1 if anything fails. Two environments are tried at a time; what one has compiled the others find.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
NOT_TRIED = ("dev", "peers")  # tools and rivals: what `make test` and `make bench` install


def project() -> dict:
    """What pyproject.toml says of the project."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def extras() -> list[str]:
    """The names of the environments."""
    return ["core", *(name for name in project()["optional-dependencies"] if name not in NOT_TRIED)]


def lowest() -> list[str]:
    """A constraint for every declared dependency: its lower bound, for pip's `--constraint`."""
    table = project()
    declared = [*table["dependencies"], *(each for extra in table["optional-dependencies"].values() for each in extra)]
    return ["==".join(found.groups()) for each in declared if (found := re.match(r"([\w-]+)>=([\d.]+)", each))]


def run(*words: str | Path, cwd: Path, **variables: str) -> str:
    """What a command prints; an error says its last lines."""
    environment = os.environ | variables
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError("\n".join((done.stdout + done.stderr).strip().splitlines()[-15:]))
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, built by way of the source distribution, as an installer without a wheel would."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl"))


def try_extra(extra: str, wheel: Path, python: str, constraints: list[str], folder: Path) -> str:
    """Installs the wheel with an extra in a new environment and runs its smoke test; says how many packages it took."""
    uv = (sys.executable, "-m", "uv")  # as pip, but links what it has fetched before: 3 seconds where pip needs 30
    run(*uv, "venv", "--python", python, folder / "env", cwd=folder)
    (folder / "constraints.txt").write_text("\n".join(constraints))
    inside = folder / "env" / "bin" / "python"
    what = f"discrax{'' if extra == 'core' else f'[{extra}]'} @ {wheel.as_uri()}"
    pip = (*uv, "pip")
    run(*pip, "install", "--python", inside, "--constraint", folder / "constraints.txt", what, cwd=folder)
    run(*pip, "check", "--python", inside, cwd=folder)
    packages = run(*pip, "freeze", "--python", inside, cwd=folder).splitlines()
    compiled = {"JAX_COMPILATION_CACHE_DIR": str(wheel.parent / "compiled"), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    compiled |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    run(inside, "-I", HERE / "smoke.py", extra, cwd=folder, **compiled)
    return f"{len(packages)} packages"


def main() -> int:
    """Tries what the command line asks for; how many environments failed, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", default=extras(), metavar="EXTRA", help=f"of {', '.join(extras())}")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    parser.add_argument("--wheel", type=Path, help="a wheel that is there already")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions that are declared")
    given = parser.parse_args()
    unknown = sorted(set(given.extras) - {*extras(), *NOT_TRIED})
    if unknown:
        parser.error(f"There is no extra {unknown[0]!r}; known: {', '.join(extras())}.")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="try-wheel-") as place:
        wheel = Path(place) / given.wheel.name if given.wheel else build(Path(place))
        if given.wheel:
            shutil.copy(given.wheel, wheel)

        def outcome(extra: str) -> tuple[bool, str]:
            began = time.monotonic()
            with tempfile.TemporaryDirectory(dir=place) as folder:
                try:
                    said = try_extra(extra, wheel, given.python, lowest() if given.lowest else [], Path(folder))
                except RuntimeError as error:
                    return False, f"{extra:>10}  FAILED\n{error}"
            return True, f"{extra:>10}  {time.monotonic() - began:5.0f} s  {said}"

        with ThreadPoolExecutor(2) as pool:
            for works, said in pool.map(outcome, given.extras):
                failed |= not works
                print(said, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
