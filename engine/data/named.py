"""Data sets that have a name: loaders by name, each entered once, and their cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from engine.data.cards import Card, read_card
from engine.errors import UsageError, unknown

Loader = TypeVar("Loader")


class Named(dict[str, Loader]):
    """Loaders of one kind of data set by name."""

    def enter(self, name: str) -> Callable[[Loader], Loader]:
        """Registers a loader under a name; a second loader of that name is an error."""

        def keep(loader: Loader) -> Loader:
            if name in self:
                raise UsageError(f"dataset: {name!r} is registered twice.")
            self[name] = loader
            return loader

        return keep

    def names(self) -> tuple[str, ...]:
        """The registered names in order."""
        return tuple(sorted(self))

    def card(self, name: str) -> Card:
        """The card of a registered data set."""
        if name not in self:
            raise unknown("dataset", name, self)
        return read_card(name)
