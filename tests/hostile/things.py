"""Things of the scene by name; each is made when it is first asked for."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MAKERS: dict[str, Callable[[], Any]] = {}
_MADE: dict[str, Any] = {}


def thing(make: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a maker; its name stands for what it makes."""
    MAKERS[make.__name__] = make
    return make


def get(name: str) -> Any:
    if name not in _MADE:
        _MADE[name] = MAKERS[name]()
    return _MADE[name]


class Scene(Mapping):
    """The names of things; each is made when it is first looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in MAKERS:
            raise KeyError(name)
        return get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MAKERS)

    def __len__(self) -> int:
        return len(MAKERS)
