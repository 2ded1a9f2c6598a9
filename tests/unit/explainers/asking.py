"""What the tests of `engine.explain` ask for."""

from __future__ import annotations

from typing import Any

from engine.request import Example, Request
from tests.explaining import checkpoint

TEXT = "the plot drags"


def ask(method: str = "gradient_l2", text: str = TEXT, **parts: Any) -> Request:
    pair = parts.pop("text_pair", None)
    return Request(**{"model": str(checkpoint("bert", 3)), "method": method, "example": Example(text, pair), **parts})


def checkpoints() -> None:
    """Written before a test has a home of its own: they stay where they are."""
    for family, labels in (("bert", 3), ("bert", 1), ("gpt2", 3)):
        checkpoint(family, labels)
