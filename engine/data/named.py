"""Data sets that have a name: loaders by name, each entered once, their options and their cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from engine.data.cards import Card, read_card
from engine.errors import UsageError, unknown
from engine.params import parse_assignments

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

    def registered(self, name: str) -> str | None:
        """The set that a name such as `scenes` or `scenes:seed=7` stands for, or None."""
        bare = name.partition(":")[0]
        return bare if bare in self else None

    def names(self) -> tuple[str, ...]:
        """The registered names in order."""
        return tuple(sorted(self))

    def as_entered(self) -> tuple[str, ...]:
        """The same in the order in which they were registered, the usual one first."""
        return tuple(self)

    def card(self, name: str) -> Card:
        """The card of a registered data set."""
        if name not in self:
            raise unknown("dataset", name, self)
        return read_card(name)


def names_in(text: str) -> list[str]:
    """Names between commas, each perhaps with options between commas: `a:seed=1,strength=0.5,b` are two names."""
    found: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if found and ":" in found[-1] and ":" not in part and "=" in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def options_of(name: str) -> dict[str, str]:
    """What stands behind the colon of `scenes:seed=7,count=500`."""
    rest = name.partition(":")[2]
    return parse_assignments(rest.split(",")) if rest else {}


def without_options(name: str, options: Mapping[str, str]) -> None:
    """For sets that have none."""
    if options:
        raise UsageError(f"dataset: {name} takes no options, got {', '.join(options)[:80]}. Write {name} alone.")
