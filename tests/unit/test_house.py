"""The house keeps its own rules: documented and typed names, short files, short functions, rooms with a sentence."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import discrax

SOURCE = Path(discrax.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
HERE = Path(__file__).parents[2]
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 400, 60, 10


def functions(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    """Functions and methods with their names, those inside of functions left out."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append((node.name, node))
        elif isinstance(node, ast.ClassDef):
            found += [(f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, ast.FunctionDef)]
    return found


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of code, without the docstring and the signature."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, [given.vararg, given.kwarg])]
    return [each for each in every if each.arg not in ("self", "cls")]


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in FILES}


def test_no_file_is_long():
    others = [path for room in ("tests", "benchmarks", "tools") for path in (HERE / room).rglob("*.py")]
    lines = {str(path): len(path.read_text().splitlines()) for path in [*FILES, *others]}
    assert len(lines) > 300  # of all three rooms
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_no_function_is_long(trees):
    long = {
        f"{name}:{each}": body_lines(function)
        for name, tree in trees.items()
        for each, function in functions(tree)
        if body_lines(function) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_functions_of_many_parameters_give_a_reason(trees):
    """A comment above it, or above its decorators."""
    without = []
    for name, tree in trees.items():
        lines = (SOURCE / name).read_text().splitlines()
        for each, function in functions(tree):
            first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
            if len(parameters(function)) > MOST_PARAMETERS and not lines[first - 2].lstrip().startswith("#"):
                without.append(f"{name}:{each} ({len(parameters(function))})")
    assert without == []


def test_every_parameter_has_a_type(trees):
    untyped = [
        f"{name}:{each}({parameter.arg})"
        for name, tree in trees.items()
        for each, function in functions(tree)
        for parameter in parameters(function)
        if parameter.annotation is None
    ]
    assert untyped == []


def test_every_public_name_has_a_docstring():
    """Its own, or that of the method it implements."""
    without = []
    for module in modules():
        if not module.__doc__:
            without.append(module.__name__)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(thing):
                if not thing.__doc__ or thing.__doc__.startswith(f"{name}("):  # what dataclasses write themselves
                    without.append(f"{module.__name__}.{name}")
                members = [(each, value) for each, value in vars(thing).items() if is_public(each)]
                without += [
                    f"{module.__name__}.{name}.{each}"
                    for each, value in members
                    if (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
                    and not inspect.getdoc(getattr(thing, each))
                    and not _inherited_doc(thing, each)
                ]
            elif inspect.isfunction(thing) and not inspect.getdoc(thing):
                without.append(f"{module.__name__}.{name}")
    assert without == []


def _inherited_doc(cls: type, name: str) -> bool:
    return any(name in vars(base) and inspect.getdoc(vars(base)[name]) for base in cls.__mro__[1:])


def test_every_room_has_a_sentence():
    rooms = [path.parent for path in FILES if path.name == "__init__.py"]
    for room in rooms:
        sentence = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
        assert sentence.rstrip().endswith((".", ":")) or "." in sentence, room


def modules() -> list:
    names = [info.name for info in pkgutil.walk_packages([str(SOURCE)], "discrax.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]
