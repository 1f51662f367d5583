import pytest

from discrax.text import read_checkpoint

from . import tiny


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    return tiny.write_checkpoint(tmp_path_factory.mktemp("bert") / "checkpoint")


@pytest.fixture(scope="session")
def model(checkpoint):
    return read_checkpoint(checkpoint)
