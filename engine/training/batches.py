"""From examples to padded batches of similar length, in an order that depends on seed and epoch only."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from engine.data.examples import LabelledExample
from engine.models.adapters import TextAdapter
from engine.models.text_classifier import tokenize

WINDOW = 50
"""Batches that are sorted by length together: large enough to save padding, small enough to stay random."""


@runtime_checkable
class Examples(Protocol):
    """What the loop trains on: numbered examples of some length, with one label each."""

    @property
    def labels(self) -> list[float]: ...

    @property
    def lengths(self) -> list[int]: ...

    def __len__(self) -> int: ...

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, torch.Tensor]: ...


@dataclass(frozen=True)
class Encoded:
    """A tokenised set: per example its inputs as lists of ids, and one label each."""

    inputs: list[dict[str, list[int]]]
    labels: list[float]
    pad: dict[str, int]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each example."""
        return [len(row["input_ids"]) for row in self.inputs]

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, torch.Tensor]:
        """Right-padded inputs of the examples, each (batch, longest), as int64 on `device`."""
        rows = [self.inputs[i] for i in indices]
        longest = max(len(row["input_ids"]) for row in rows)
        return {
            name: torch.tensor([r[name] + [self.pad[name]] * (longest - len(r[name])) for r in rows], device=device)
            for name in rows[0]
        }


def targets(data: Examples, indices: Sequence[int], regression: bool, device: torch.device) -> torch.Tensor:
    """The labels of the examples: scores as float32, or class indices."""
    dtype = torch.float32 if regression else torch.int64
    return torch.tensor([data.labels[i] for i in indices], device=device).to(dtype)


def encode(examples: Sequence[LabelledExample], tokenizer: Any, max_length: int, adapter: TextAdapter) -> Encoded:
    """Tokenises single texts and pairs as explaining does (an empty second text is none); cuts to `max_length`."""
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if adapter.token_types else [])]
    rows: dict[int, dict[str, list[int]]] = {}
    for paired in (False, True):
        places = [i for i, e in enumerate(examples) if bool(e.text_pair) == paired]
        if places:
            pairs = [examples[i].text_pair or "" for i in places] if paired else None
            made = tokenize(tokenizer, [examples[i].text for i in places], pairs, max_length)
            rows |= {i: {name: made[name][k] for name in names} for k, i in enumerate(places)}
    pad = {"input_ids": tokenizer.pad_token_id, "attention_mask": 0, "token_type_ids": 0}
    return Encoded([rows[i] for i in range(len(examples))], [float(e.label or 0) for e in examples], pad)


def plan(lengths: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch, each index once: shuffled, sorted by length within windows, shuffled again."""
    draw = random.Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    draw.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), batch_size * WINDOW):
        window = sorted(order[start : start + batch_size * WINDOW], key=lambda i: lengths[i])
        batches += [window[i : i + batch_size] for i in range(0, len(window), batch_size)]
    draw.shuffle(batches)
    return batches
