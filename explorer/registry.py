"""Named things that declare themselves: a file dropped into a package joins every list, test and menu."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from explorer.errors import InputError

T = TypeVar("T", bound=Any)


class Registry(Generic[T]):
    """A name -> item table that refuses to overwrite. Items carry their own `name`.

    Args:
        kind: what the items are, for messages.
        package: the package whose modules hold the items; it is imported on first use.
    """

    def __init__(self, kind: str, package: str):
        self.kind = kind
        self.package = package
        self._items: dict[str, T] = {}
        self._discovered = False

    def register(self, item: T) -> T:
        """Class decorator: adds `item` under its `name` and returns it unchanged."""
        if item.name in self._items:
            raise ValueError(f"{self.kind} {item.name!r} is registered twice: {self._items[item.name]} and {item}")
        self._items[item.name] = item
        return item

    def names(self) -> list[str]:
        """All names, sorted."""
        self._discover()
        return sorted(self._items)

    def __getitem__(self, name: str) -> T:
        """The item called `name`.

        Raises:
            InputError: there is none.
        """
        self._discover()
        if name not in self._items:
            known = ", ".join(self.names())
            raise InputError(
                f"no {self.kind} {name!r}; there are: {known}", f"没有名为 {name!r} 的 {self.kind}；可用：{known}"
            )
        return self._items[name]

    def __iter__(self) -> Iterator[T]:
        """The items in order of name."""
        return iter([self._items[name] for name in self.names()])

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
            if not module.name.startswith("_") and module.name not in ("base", "runner", "bench"):
                importlib.import_module(f"{self.package}.{module.name}")
