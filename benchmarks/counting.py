"""Which rows a transformers module is run on. Needs torch alone: a peer's own environment imports it too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Rows:
    """Lengths of the rows in tokens, padding not counted: of passes forward alone, and of those with a way back."""

    forward: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.forward) + len(self.back)

    @property
    def by_way(self) -> tuple[list[int], list[int]]:
        return self.forward, self.back


@contextlib.contextmanager
def counting(module: torch.nn.Module) -> Iterator[Rows]:
    """Notes every row that the module is called with inside."""
    rows = Rows()

    def note(_module: torch.nn.Module, _args: tuple[Any, ...], given: dict[str, Any]) -> None:
        ids, embeds = given.get("input_ids"), given.get("inputs_embeds")
        read: Any = ids if ids is not None else embeds
        lengths = _lengths(read.shape[:2], given.get("attention_mask"))
        back = torch.is_grad_enabled() and embeds is not None and embeds.requires_grad
        (rows.back if back else rows.forward).extend(lengths)

    handle = module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield rows
    finally:
        handle.remove()


def _lengths(shape: tuple[int, int], mask: torch.Tensor | None) -> list[int]:
    """Of a mask of ones and zeros, or of one that is added to the attention of each query."""
    if mask is None:
        return [shape[1]] * shape[0]
    seen = mask.bool() if mask.dim() == 2 else mask[:, 0, 0] == 0
    return [int(length) for length in seen.sum(1)]
