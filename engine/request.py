"""What is asked: a frozen request of plain values, which is all that the cache key depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import UsageError
from engine.params import Plain

MAX_CHARACTERS = 1_000_000
DTYPES = ("float32", "bfloat16", "float16", "float64")


@dataclass(frozen=True)
class Example:
    """One text, or a pair of texts."""

    text: str
    text_pair: str | None = None

    def __post_init__(self) -> None:
        for name in ("text", "text_pair"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise UsageError(f"{name}: must be a text, got {type(value).__name__}.")
            if value is not None and not _encodable(value):
                raise UsageError(f"{name}: holds half a character (a lone surrogate). Write the whole character.")

    def check_length(self) -> None:
        """Refuses what no model here reads, before a model is loaded or a tokenizer is kept busy for minutes."""
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


@dataclass(frozen=True)
class Request:
    """One explanation. `target` is a class index or label name; None means the predicted class."""

    model: str
    method: str
    example: Example
    params: Mapping[str, Plain] = field(default_factory=dict)
    target: int | str | None = None
    seed: int = 0
    dtype: str = "float32"
