"""From text to tokens with character offsets, and to padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from engine.errors import UsageError, panics_told, shown
from engine.late import torch
from engine.models import sandbox
from engine.request import Example
from engine.result import Token


@dataclass(frozen=True, eq=False)
class Encoded:
    """One tokenised example. `truncated` counts the tokens that did not fit into the model."""

    ids: Int[np.ndarray, "seq"]
    types: Int[np.ndarray, "seq"]
    tokens: tuple[Token, ...]
    truncated: int

    @cached_property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.array([t.special for t in self.tokens])

    @cached_property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Positions of the tokens that may be removed and ranked."""
        return np.flatnonzero(~self.special)

    @cached_property
    def key(self) -> bytes:
        """What tells this input from every other of the same model."""
        return self.ids.tobytes() + self.types.tobytes()

    @property
    def grid(self) -> None:
        """A text has none."""
        return None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded examples on a device. `visible` marks the positions that may be attended to.

    `whole` says, without asking the device, that every position of every row is visible.
    """

    ids: Int[torch.Tensor, "batch seq"]
    visible: Bool[torch.Tensor, "batch seq"]
    types: Int[torch.Tensor, "batch seq"]
    lengths: Int[torch.Tensor, "batch"]
    whole: bool


def tokenise(
    tokenizer: Any, text: str | list[str], pair: str | list[str] | None, max_length: int | None = None, **more: Any
) -> Any:
    """What the tokenizer makes of one text or of many, cut to `max_length` from the longer text of a pair.

    Segments are always asked for: not every checkpoint's tokenizer names them by itself.
    """
    sandbox.check_tokenizing(tokenizer.name_or_path, text, pair)
    cut = {} if max_length is None else {"truncation": "longest_first", "max_length": max_length}
    with panics_told(f"tokenizer of {shown(tokenizer.name_or_path)}"):
        return tokenizer(text, pair, return_token_type_ids=True, verbose=False, **cut, **more)


def encode(tokenizer: Any, example: Example, max_length: int) -> Encoded:
    """Tokenise one example, truncating the longer text first. Errors: nothing left to explain, or far too long."""
    example.check_length()
    texts = (example.text, example.text_pair)
    full = out = tokenise(tokenizer, *texts, return_offsets_mapping=True)
    if len(full["input_ids"]) > max_length:
        out = tokenise(tokenizer, *texts, max_length, return_offsets_mapping=True)
    tokens = _tokens(tokenizer, example, out)
    if all(t.special for t in tokens):
        raise UsageError("text: nothing to explain: it holds no token that the model can read. Give at least one word.")
    ids = np.asarray(out["input_ids"], dtype=np.int64)
    types = np.asarray(out.get("token_type_ids") or [0] * len(ids), dtype=np.int64)
    return Encoded(ids, types, tokens, len(full["input_ids"]) - len(ids))


def _tokens(tokenizer: Any, example: Example, out: Any) -> tuple[Token, ...]:
    names = tokenizer.convert_ids_to_tokens(out["input_ids"])
    texts = (example.text, example.text_pair or "")
    made = []
    for name, segment, (start, end) in zip(names, out.sequence_ids(0), out["offset_mapping"], strict=True):
        if segment is None:
            made.append(Token(name, 0, 0, -1, True))
            continue
        start, end = _stripped(texts[segment], start, end)
        made.append(Token(texts[segment][start:end] or name, start, end, segment, False))
    return tuple(made)


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Offsets without surrounding white space: byte-level and Unigram tokenizers count the space before a word."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def collate(examples: Sequence[Encoded], pad_id: int, device: torch.device) -> Batch:
    """Examples side by side, padded on the right."""
    lengths = [len(e) for e in examples]
    shape = (len(examples), max(lengths))
    ids, types = np.full(shape, pad_id, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, example in enumerate(examples):
        ids[row, : len(example)] = example.ids
        types[row, : len(example)] = example.types
    visible = np.arange(shape[1])[None, :] < np.asarray(lengths)[:, None]
    return Batch(
        torch.from_numpy(ids).to(device),
        torch.from_numpy(visible).to(device),
        torch.from_numpy(types).to(device),
        torch.tensor(lengths, device=device),
        bool(visible.all()),
    )
