"""Texts as token ids: what a pre-training reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.models.text_classifier import tokenize


@dataclass(frozen=True)
class Lines:
    """Tokenised texts without padding; they have no labels, for what is hidden is the answer."""

    ids: list[list[int]]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labels(self) -> list[float]:
        return [0.0] * len(self)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each text."""
        return [len(row) for row in self.ids]

    def rows(self, indices: Sequence[int]) -> list[list[int]]:
        return [self.ids[i] for i in indices]

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, torch.Tensor]:
        """The whole texts, padded with 0 on the right, nothing hidden."""
        return {"input_ids": padded(self.rows(indices), 0).to(device)}


def read_lines(texts: Sequence[str], tokenizer: Any, max_length: int, end: str | None) -> Lines:
    """Texts of two tokens or more as ids; `end` is put after those of a tokenizer that adds nothing itself."""
    made = tokenize(tokenizer, list(texts), None, max_length)["input_ids"]
    if end is not None:
        made = [[*row[: max_length - 1], tokenizer.convert_tokens_to_ids(end)] for row in made]
    return Lines([row for row in made if len(row) > 1])


def padded(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    """Rows side by side as int64 (rows, longest), filled on the right."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
