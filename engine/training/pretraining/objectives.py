"""What each family learns from plain text: hidden words, hidden spans, or the next word.

All chance comes from torch's generator, whose state a checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Int

from engine.training.pretraining.lines import padded
from engine.training.pretraining.own_tokenizers import SENTINELS

SHARE = 0.15
"""Of the tokens that are hidden (Devlin et al., 2019; Raffel et al., 2020)."""
SPAN = 3
"""Mean tokens of a hidden span (Raffel et al., 2020)."""
IGNORED = -100
"""The answer where none is asked for."""

Rows = Sequence[Sequence[int]]
Task = tuple[dict[str, torch.Tensor], Int[torch.Tensor, "batch seq"]]
"""What the model reads, and the token that it shall name at each of its outputs, or `IGNORED`."""


@dataclass(frozen=True)
class Objective:
    """One way to learn from text: in words with its source, and how a task is made of token ids."""

    told: str
    task: Callable[[Rows, Any], Task]


def masked_words(rows: Rows, tokenizer: Any) -> Task:
    """Hides 15 % of the tokens: four fifths by the mask token, a tenth by any token, a tenth not at all."""
    ids, attention = _inputs(rows, tokenizer.pad_token_id)
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    chosen = _chosen(~special)
    answers = torch.where(chosen, ids, IGNORED)
    fate = torch.rand(ids.shape)
    anything = torch.randint(len(tokenizer), ids.shape)
    read = torch.where(chosen & (fate < 0.8), tokenizer.mask_token_id, ids)
    read = torch.where(chosen & (fate >= 0.9), anything, read)
    return {"input_ids": read, "attention_mask": attention}, answers


def next_word(rows: Rows, tokenizer: Any) -> Task:
    """Each token is asked for where the one before it was read."""
    ids, attention = _inputs(rows, tokenizer.pad_token_id)
    answers = torch.full_like(ids, IGNORED)
    answers[:, :-1] = torch.where(attention[:, 1:] == 1, ids[:, 1:], IGNORED)
    return {"input_ids": ids, "attention_mask": attention}, answers


def hidden_spans(rows: Rows, tokenizer: Any) -> Task:
    """Each hidden span leaves a sentinel; the decoder names the sentinels, each with its span after it."""
    sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS))
    end, start = tokenizer.eos_token_id, tokenizer.pad_token_id
    cut = [_cut([i for i in row if i != end], sentinels) for row in rows]
    ids, attention = _inputs([[*left, end] for left, _ in cut], start)
    answers = padded([[*hidden, end] for _, hidden in cut], IGNORED)
    before = padded([[start, *hidden] for _, hidden in cut], start)
    return {"input_ids": ids, "attention_mask": attention, "decoder_input_ids": before}, answers


def _inputs(rows: Rows, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    return padded(rows, pad), padded([[1] * len(row) for row in rows], 0)


def _chosen(free: torch.Tensor) -> torch.Tensor:
    """15 % of the free places of each row, at least one where there is one."""
    draw = torch.rand(free.shape).masked_fill(~free, 2.0)
    count = (free.sum(1, keepdim=True) * SHARE).round().clamp(min=1)
    return (draw.argsort(1).argsort(1) < count) & free


def _cut(row: list[int], sentinels: list[int]) -> tuple[list[int], list[int]]:
    """What is left of the tokens, and what was hidden, both with the sentinels."""
    count = max(1, round(len(row) * SHARE))
    spans = min(max(1, round(count / SPAN)), len(sentinels))
    hidden_sizes = _parts(count, spans)
    # Unlike in T5's own code the outer gaps may be empty, so that a first word can be hidden as a last one can.
    gaps = _parts(len(row) - count + 2, spans + 1)
    left: list[int] = []
    hidden: list[int] = []
    at = 0
    for number, size in enumerate(hidden_sizes):
        gap = gaps[number] - (number == 0)
        left += [*row[at : at + gap], sentinels[number]]
        hidden += [sentinels[number], *row[at + gap : at + gap + size]]
        at += gap + size
    return [*left, *row[at:]], hidden


def _parts(total: int, count: int) -> list[int]:
    """`total` as a sum of `count` positive whole numbers, each way equally likely."""
    cuts = sorted((torch.randperm(total - 1)[: count - 1] + 1).tolist())
    ends = [0, *cuts, total]
    return [b - a for a, b in pairwise(ends)]


MASKED = Objective("masked words (Devlin et al., 2019)", masked_words)
OBJECTIVES: dict[str, Objective] = {
    "bert": MASKED,
    "roberta": MASKED,
    "gpt2": Objective("the next word (Radford et al., 2019)", next_word),
    "t5": Objective("hidden spans with a throw-away decoder (Raffel et al., 2020)", hidden_spans),
}
