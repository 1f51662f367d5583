"""Which source files something is made of: a file and, by its import statements, what it uses of the package.

Imports are read, not run. A name that comes from a package (`from discrax.targets import Ising`, or `targets.Ising`
after `from discrax import targets`) leads to the file that defines it, not to all that the package gathers. Of a user's
file also the files beside it count that it imports, and modules of the user's own that Python finds elsewhere, but
nothing that is installed.
"""

import ast
import hashlib
import sysconfig
import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
_NAME = PACKAGE.name
_parsing = threading.Lock()  # Python parses in one thread at a time: "AST constructor recursion depth mismatch"
Use = tuple[str, tuple[str, ...]]  # a module, and names that are looked up in it one after the other


def read(path: Path) -> bytes:
    """The text of a source file; nothing where it is gone."""
    return path.read_bytes() if path.is_file() else b""


def digest(files: Iterable[Path], leave_out: tuple[str, ...] = ()) -> str:
    """A hash of files and of all that they use, but for what begins, in the package, with one of `leave_out`."""
    found, waiting, own = set(), [path.resolve() for path in files], hashlib.sha256()
    of_package: set[Path] = set()
    while waiting:  # the user's files are read anew: they change
        path = waiting.pop()
        if path.is_relative_to(PACKAGE):
            of_package.add(path)
        elif path not in found:
            found.add(path)
            waiting += _used_by(path)
    for path in sorted(found):
        own.update(read(path))
    own.update(_digest_of_package(frozenset(of_package), leave_out).encode())
    return own.hexdigest()


@cache  # what is imported does not change any more
def _digest_of_package(files: frozenset[Path], leave_out: tuple[str, ...]) -> str:
    made = hashlib.sha256()
    for path in sorted(closure(files, leave_out)):
        made.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + read(path) + b"\0")
    return made.hexdigest()


def closure(files: Iterable[Path], leave_out: tuple[str, ...] = ()) -> set[Path]:
    """Files of the package with all that they use; what is left out is not looked into either."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in found and not path.relative_to(PACKAGE).as_posix().startswith(leave_out):
            found.add(path)
            waiting += _used_by(path)
    return found


def file_of(module: str, beside: Path | None = None) -> Path | None:
    """The file of a module of the package, or of the user's own; None for what is installed."""
    first, _, rest = module.partition(".")
    if first == _NAME:
        place = PACKAGE.joinpath(*rest.split(".")) if rest else PACKAGE
    elif beside is None:
        return _found_by_python(module)
    elif beside.is_relative_to(PACKAGE):
        return None
    else:
        place = beside.parent.joinpath(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None if first == _NAME else _found_by_python(module)


_INSTALLED = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


@cache
def _found_by_python(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, AttributeError, ValueError):  # a name in a module, or no module at all
        return None
    path = None if spec is None or not (spec.origin or "").endswith(".py") else Path(str(spec.origin)).resolve()
    return None if path is None or any(map(path.is_relative_to, _INSTALLED)) else path


def definition(module: str, names: tuple[str, ...] = (), beside: Path | None = None) -> Path | None:
    """The file where names are defined that are looked up in a module; None for a package as such, and for others'."""
    path = file_of(module, beside)
    if path is None or path.name != "__init__.py":
        return path
    if not names:
        return None
    first, rest = names[0], names[1:]
    if file_of(f"{module}.{first}", beside) is not None:
        return definition(f"{module}.{first}", rest, beside)
    gathered = _scan(read(path), module)[0].get(first)
    return path if gathered is None else definition(gathered[0], gathered[1] + rest, path)


def _used_by(path: Path) -> list[Path]:
    uses = _scan(read(path), _module_of(path))[1]
    found = (definition(module, names, path) for module, names in uses)
    return [each for each in found if each is not None]


def _module_of(path: Path) -> str:
    """The dotted name of a file of the package; of a user's file its stem."""
    if not path.is_relative_to(PACKAGE):
        return path.stem
    return ".".join((_NAME, *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@lru_cache(maxsize=2048)  # by text
def _scan(text: bytes, module: str) -> tuple[dict[str, Use], frozenset[Use]]:
    """The names that a file's imports bind, and everything that it uses of them."""
    try:
        with _parsing:
            tree = ast.parse(text)
    except SyntaxError:  # said when it is imported
        return {}, frozenset()
    bound: dict[str, Use] = {}
    uses: set[Use] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                uses.add((each.name, ()))
                bound[each.asname or each.name.partition(".")[0]] = (
                    (each.name, ()) if each.asname else (each.name.partition(".")[0], ())
                )
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            bound |= {each.asname or each.name: (base, (each.name,)) for each in node.names}
    for node in ast.walk(tree):
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        if names and isinstance(node, ast.Name) and node.id in bound:
            base, first = bound[node.id]
            uses.add((base, (*first, *names)))
    return bound, frozenset(uses | set(bound.values()))
