"""What a job was asked to do, read from the list when it is first looked into: it may name 100,000 examples."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class StoredSpec(Mapping[str, Any]):
    """A plain JSON object that is not read before it is needed."""

    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        self._read = read

    @functools.cached_property
    def _values(self) -> dict[str, Any]:
        return self._read()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"StoredSpec({self._values!r})" if "_values" in vars(self) else "StoredSpec(not read yet)"

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A plain dict of its own: what `dataclasses.asdict` makes of a job can be written as JSON."""
        return copy.deepcopy(self._values, memo)
