"""Requests for explanations: frozen and of plain values, which is all that the cache key depends on."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from engine.errors import UsageError
from engine.heads.scales import PLAIN, HeadScales
from engine.params import Plain

MAX_CHARACTERS = 1_000_000
DTYPES = ("float32", "bfloat16", "float16", "float64")


class Input(ABC):
    """An input of a model. `kind`: the id of its `engine.input_kinds.InputKind`."""

    kind: ClassVar[str]

    @property
    def length(self) -> int:
        """About how long a model takes for it; 0 where all inputs take the same."""
        return 0

    @abstractmethod
    def check_length(self) -> None:
        """Refuse what no model here reads, before a model is loaded. Errors: it is too long."""

    @abstractmethod
    def as_plain(self) -> dict[str, str | None]:
        """Plain values that stand for it in cache keys."""


@dataclass(frozen=True)
class Example(Input):
    """One text, or a pair of texts."""

    kind: ClassVar[str] = "text"
    text: str
    text_pair: str | None = None

    def __post_init__(self) -> None:
        for name in ("text", "text_pair"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise UsageError(f"{name}: must be a text, got {type(value).__name__}.")
            if value is not None and not _encodable(value):
                raise UsageError(f"{name}: holds half a character (a lone surrogate). Write the whole character.")

    @property
    def length(self) -> int:
        """Characters of both texts."""
        return len(self.text) + len(self.text_pair or "")

    def check_length(self) -> None:
        """Refuse what would keep a tokenizer busy for minutes."""
        for name, text in self.as_plain().items():
            if text is not None and len(text) > MAX_CHARACTERS:
                raise UsageError(
                    f"{name}: must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}. "
                    "Cut it to the part that you want explained."
                )

    def as_plain(self) -> dict[str, str | None]:
        return {"text": self.text, "text_pair": self.text_pair}


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Picture(Input):
    """One picture in sRGB, 0 to 255. Two of the same pixels are equal; the digest stands for them in keys."""

    kind: ClassVar[str] = "image"
    pixels: UInt8[np.ndarray, "height width 3"]

    def __post_init__(self) -> None:
        if 0 in self.pixels.shape:
            raise UsageError(f"image: must have at least one pixel, got shape {self.pixels.shape}.")
        self.pixels.setflags(write=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its size and its pixels, as hex."""
        height, width, _ = self.pixels.shape
        return hashlib.sha256(f"{width}x{height}:".encode() + self.pixels.tobytes()).hexdigest()

    def check_length(self) -> None:
        """Nothing to refuse: a picture was made small enough when it was opened."""

    def as_plain(self) -> dict[str, str | None]:
        return plain_picture(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def plain_picture(digest: str) -> dict[str, str | None]:
    """A picture as plain values, known by its digest alone."""
    return {"picture": digest}


@dataclass(frozen=True)
class Request:
    """One explanation. `target` is a class index or label name; None means the predicted class.

    `heads`: the model is explained as if these heads were scaled.
    """

    model: str
    method: str
    example: Input
    params: Mapping[str, Plain] = field(default_factory=dict)
    target: int | str | None = None
    seed: int = 0
    dtype: str = "float32"
    heads: HeadScales = PLAIN
