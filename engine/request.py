"""Requests for explanations: frozen, with plain values, which determine the cache key.

A request names a model, a method, an input (a text, a pair or a picture) and the scaled heads.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, UInt8

from engine.errors import UsageError, not_allowed
from engine.params import Plain

MAX_CHARACTERS = 1_000_000
DTYPES = ("float32", "bfloat16", "float16", "float64")
LARGEST_SCALE = 2.0
"""The largest factor of a head's output: beyond it, a model is far from anything that it was trained for."""
SWITCHED_OFF = 0.0


class Input(ABC):
    """An input of a model. `kind`: the id of its `engine.input_kinds.InputKind`."""

    kind: ClassVar[str]

    @property
    def length(self) -> int:
        """Approximate cost of the input for a model; 0 if all inputs cost the same."""
        return 0

    @abstractmethod
    def check_length(self) -> None:
        """Refuse an input that is too long for any model, before a model is loaded."""

    @abstractmethod
    def as_plain(self) -> dict[str, str | None]:
        """Return plain values that identify the input in cache keys."""


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
    def texts(self) -> tuple[str, ...]:
        """The text, or both of a pair."""
        return (self.text,) if self.text_pair is None else (self.text, self.text_pair)

    @property
    def length(self) -> int:
        """Characters of both texts."""
        return len(self.text) + len(self.text_pair or "")

    def check_length(self) -> None:
        """Refuse a text that would keep a tokenizer busy for minutes."""
        for name in ("text", "text_pair"):
            text = getattr(self, name)
            if text is not None and len(text) > MAX_CHARACTERS:
                raise UsageError(
                    f"{name}: must have at most {MAX_CHARACTERS:,} characters, got {len(text):,}. "
                    "Cut it to the part that you want explained."
                )

    def as_plain(self) -> dict[str, str | None]:
        return {"text": self.text, "text_pair": self.text_pair}


@dataclass(frozen=True)
class Prompt(Example):
    """A text that a causal language model continues, with the next token to explain.

    target: the token, with its leading space; None for the most probable one. contrast: the token that the target is
    compared with ("why *are* rather than *is*?"); None for no contrast. chat: whether the model's chat template is
    applied to the text. of: the original text if this one is an edit, else None; the classes are then the tokens that
    are most probable after the original, so that both have the same classes. response: in a chat, the model's response
    so far, which follows the template; its tokens are features with their own offsets.
    """

    target: str | None = None
    contrast: str | None = None
    chat: bool = False
    of: str | None = None
    response: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text_pair is not None:
            raise UsageError("text_pair: a prompt is one text. Put both texts into it.")
        for name in ("target", "contrast"):
            if getattr(self, name) == "":
                raise UsageError(f"{name}: must be a token, got an empty text. Leave it out for none.")
        if self.target is not None and self.target == self.contrast:
            raise UsageError(
                f"contrast: must differ from the target, got {self.contrast!r} twice. Choose another token."
            )
        if self.response and not self.chat:
            raise UsageError("response: belongs to a chat. Set chat, or put it at the end of the text.")

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, and the model's response if there is one."""
        return (self.text, self.response) if self.response else (self.text,)

    def as_plain(self) -> dict[str, str | None]:
        own = {"prompt": self.text, "target": self.target, "contrast": self.contrast, "chat": str(self.chat)}
        more = {"of": self.of, "response": self.response or None}
        return {**own, **{name: value for name, value in more.items() if value is not None}}


def read_example(fields: Mapping[str, Any]) -> Example:
    """Create a text, a pair or a prompt from the fields of its dataclass, or from its plain values."""
    if "prompt" in fields:
        own = {name: value for name, value in fields.items() if name != "prompt"}
        return Prompt(**{**own, "text": fields["prompt"], "chat": str(fields.get("chat")) == str(True)})
    return Example(**fields) if fields.keys() <= {"text", "text_pair"} else Prompt(**fields)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Picture(Input):
    """One picture in sRGB, 0 to 255. Pictures with the same pixels are equal; cache keys hold their digest."""

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
        """Do nothing: the size of a picture is limited when it is opened."""

    def as_plain(self) -> dict[str, str | None]:
        return plain_picture(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True)
class PicturePrompt(Example):
    """A text, with the picture that a zero-shot model compares it with. Only the text is explained."""

    picture: Picture = field(kw_only=True)

    def as_plain(self) -> dict[str, str | None]:
        return {"label_prompt": self.text, "picture": self.picture.digest}


def plain_picture(digest: str) -> dict[str, str | None]:
    """Return the plain values of a picture, given its digest."""
    return {"picture": digest}


@dataclass(frozen=True)
class HeadScales:
    """Factors of the outputs of attention heads, as (layer, head, scale) counted from 0; other heads have a scale of 1.

    Entries are sorted, and a scale of 1 is dropped, so that equivalent scales compare equal.
    """

    scales: tuple[tuple[int, int, int | float], ...] = ()

    def __post_init__(self) -> None:
        rows = sorted((_number("layer", layer), _number("head", head), _scale(s)) for layer, head, s in self.scales)
        if len({row[:2] for row in rows}) < len(rows):
            raise UsageError("heads: a head is named twice. Give each (layer, head) one scale.")
        object.__setattr__(self, "scales", tuple(row for row in rows if row[2] != 1))

    @classmethod
    def from_mapping(cls, scales: Mapping[tuple[int, int], int | float]) -> HeadScales:
        """Create scales from `{(layer, head): scale}`."""
        return cls(tuple((layer, head, scale) for (layer, head), scale in scales.items()))

    @classmethod
    def off(cls, heads: Iterable[tuple[int, int]]) -> HeadScales:
        """Create scales that switch these heads off."""
        return cls(tuple((layer, head, SWITCHED_OFF) for layer, head in set(heads)))

    def __bool__(self) -> bool:
        return bool(self.scales)

    def as_plain(self) -> list[list[int | float]]:
        return [list(row) for row in self.scales]

    def keyed(self) -> dict[str, list[list[int | float]]]:
        """Return the scales as an entry of a cache key; empty if no head is scaled."""
        return {"heads": self.as_plain()} if self else {}

    def grid(self, layers: int, heads: int) -> Float[np.ndarray, "layer head"]:
        """Return the scale of every head of a model of that size. Errors: a head that such a model does not have."""
        grid = np.ones((layers, heads))
        for layer, head, scale in self.scales:
            if layer >= layers:
                raise not_allowed("heads", f"layers from 0 to {layers - 1} for this model", layer)
            if head >= heads:
                raise not_allowed("heads", f"heads from 0 to {heads - 1} for this model", head)
            grid[layer, head] = scale
        return grid


PLAIN = HeadScales()
"""No scaled heads: the unchanged model."""


def _number(name: str, value: object) -> int:
    if type(value) is not int or value < 0:
        raise not_allowed(f"heads: {name}", "a whole number from 0", value)
    return value


def _scale(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value <= LARGEST_SCALE:  # type: ignore[arg-type, operator]
        raise not_allowed("heads: scale", f"a number from 0 (off) to {LARGEST_SCALE:g}", value)
    return float(value) + 0.0  # type: ignore[arg-type]


@dataclass(frozen=True)
class Request:
    """A request for one explanation. `target`: a class index or label; None means the predicted class.

    `heads`: scales of attention heads with which the model is explained.
    """

    model: str
    method: str
    example: Input
    params: Mapping[str, Plain] = field(default_factory=dict)
    target: int | str | None = None
    seed: int = 0
    dtype: str = "float32"
    heads: HeadScales = PLAIN
