"""Base class of queries about the inside of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cache import key_for
from engine import runtime
from engine.errors import unknown
from engine.models import catalog
from engine.request import DTYPES, Example


@dataclass(frozen=True)
class InsideQuery:
    """A model and its input. dtype: the precision of the model."""

    model: str
    example: Example
    dtype: str = field(default=DTYPES[0], kw_only=True)

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)

    def cache_key(self, kind: str, version: int, **own: Any) -> str:
        """Return the cache key of a result. `own`: plain values. Reads the model's files, never loads it."""
        return key_for(
            {
                "kind": kind, "version": version, "model": [self.model, catalog.revision(self.model)],
                "example": self.example.as_plain(), "dtype": self.dtype, "device": runtime.device_type(), **own,
            }
        )  # fmt: skip
