"""What the engine was asked to do, seen from the calls of one of its functions."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def counted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, told: Callable[..., T]) -> list[T]:
    """What `told` makes of the arguments of each call of a module's function, which still runs; it grows with them."""
    seen: list[T] = []
    real = getattr(module, name)

    def counting(*arguments: Any) -> Any:
        seen.append(told(*arguments))
        return real(*arguments)

    monkeypatch.setattr(module, name, counting)
    return seen
