"""The package as a whole: every public name is there, and nothing is imported before it is used."""

import subprocess
import sys

import pytest

import discrax
import discrax.extend


@pytest.mark.parametrize("name", discrax.__all__)
def test_every_public_name_is_there(name):
    assert getattr(discrax, name) is getattr(discrax, name)
    assert name in dir(discrax)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discrax.nothing


@pytest.mark.parametrize("name", discrax.extend.__all__)
def test_the_names_for_authors_are_those_of_the_package(name):
    found = getattr(discrax.extend, name)
    assert getattr(discrax, name, found) is found


IMPORTED = """
import sys
{0}
print([name for name in ("jax", "equinox", "numpy", "matplotlib", "tyro", "discrax.learn", "discrax.bench")
       if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("statement", "imported"),
    [
        ("import discrax", []),
        ("import discrax.cli", []),
        ("import discrax; discrax.sample, discrax.samplers, discrax.targets", ["jax", "equinox", "numpy"]),
    ],
)
def test_nothing_is_imported_before_it_is_used(statement, imported):
    found = subprocess.run([sys.executable, "-c", IMPORTED.format(statement)], capture_output=True, text=True)
    assert found.stdout.strip() == str(imported), found.stderr
