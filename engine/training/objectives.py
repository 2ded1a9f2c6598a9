"""Objectives of pre-training: masked words, masked spans, or the next word.

Random choices use torch's generator, whose state is part of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Int

from engine.training.text_data import pad_rows
from engine.training.tokenizer_training import SENTINELS

HIDDEN_SHARE = 0.15
"""Share of masked tokens (Devlin et al., 2019; Raffel et al., 2020)."""
SPAN_LENGTH = 3
"""Mean number of tokens of a masked span (Raffel et al., 2020)."""
IGNORED = -100
"""Target at positions that are not predicted."""

Rows = Sequence[Sequence[int]]
InputsAndAnswers = tuple[dict[str, torch.Tensor], Int[torch.Tensor, "batch seq"]]
"""Inputs of the model, and the token to predict at each of its outputs, or `IGNORED`."""


@dataclass(frozen=True)
class PretrainingObjective:
    """A pre-training objective: its name with its source, and the function from token ids to inputs and answers."""

    title: str
    make: Callable[[Rows, Any], InputsAndAnswers]


def mask_words(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Select 15% of the tokens; replace 80% of them by the mask token, 10% by a random token, none of the rest."""
    ids, attention = _pad_inputs(rows, tokenizer.pad_token_id)
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    chosen = _choose(~special)
    answers = torch.where(chosen, ids, IGNORED)
    fate = torch.rand(ids.shape)
    anything = torch.randint(len(tokenizer), ids.shape)
    inputs = torch.where(chosen & (fate < 0.8), tokenizer.mask_token_id, ids)
    inputs = torch.where(chosen & (fate >= 0.9), anything, inputs)
    return {"input_ids": inputs, "attention_mask": attention}, answers


def next_words(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Predict the next token at each position."""
    ids, attention = _pad_inputs(rows, tokenizer.pad_token_id)
    answers = torch.full_like(ids, IGNORED)
    answers[:, :-1] = torch.where(attention[:, 1:] == 1, ids[:, 1:], IGNORED)
    return {"input_ids": ids, "attention_mask": attention}, answers


def hide_spans(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Replace random spans by sentinels; the decoder predicts each sentinel followed by its span."""
    sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS))
    end, start = tokenizer.eos_token_id, tokenizer.pad_token_id
    cut = [_cut_spans([i for i in row if i != end], sentinels) for row in rows]
    ids, attention = _pad_inputs([[*left, end] for left, _ in cut], start)
    answers = pad_rows([[*hidden, end] for _, hidden in cut], IGNORED)
    before = pad_rows([[start, *hidden] for _, hidden in cut], start)
    return {"input_ids": ids, "attention_mask": attention, "decoder_input_ids": before}, answers


def _pad_inputs(rows: Rows, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    return pad_rows(rows, pad), pad_rows([[1] * len(row) for row in rows], 0)


def _choose(free: torch.Tensor) -> torch.Tensor:
    """Choose 15% of the free positions of each row, and at least one if there is any."""
    order = torch.rand(free.shape).masked_fill(~free, 2.0)
    count = (free.sum(1, keepdim=True) * HIDDEN_SHARE).round().clamp(min=1)
    return (order.argsort(1).argsort(1) < count) & free


def _cut_spans(row: list[int], sentinels: list[int]) -> tuple[list[int], list[int]]:
    """Cut random spans: (visible tokens, masked tokens), both with sentinels."""
    count = max(1, round(len(row) * HIDDEN_SHARE))
    spans = min(max(1, round(count / SPAN_LENGTH)), len(sentinels))
    hidden_sizes = _random_parts(count, spans)
    # Unlike in T5's code, both outer gaps may be empty, so that the first word can be masked as the last one can.
    gaps = _random_parts(len(row) - count + 2, spans + 1)
    left: list[int] = []
    hidden: list[int] = []
    at = 0
    for number, size in enumerate(hidden_sizes):
        gap = gaps[number] - (number == 0)
        left += [*row[at : at + gap], sentinels[number]]
        hidden += [sentinels[number], *row[at + gap : at + gap + size]]
        at += gap + size
    return [*left, *row[at:]], hidden


def _random_parts(total: int, count: int) -> list[int]:
    """Random composition of `total` into `count` positive integers, uniformly distributed."""
    cuts = sorted((torch.randperm(total - 1)[: count - 1] + 1).tolist())
    ends = [0, *cuts, total]
    return [b - a for a, b in pairwise(ends)]


_MASKED_WORDS = PretrainingObjective("masked words (Devlin et al., 2019)", mask_words)
OBJECTIVES: dict[str, PretrainingObjective] = {
    "bert": _MASKED_WORDS,
    "roberta": _MASKED_WORDS,
    "gpt2": PretrainingObjective("the next word (Radford et al., 2019)", next_words),
    "t5": PretrainingObjective("hidden spans with a throw-away decoder (Raffel et al., 2020)", hide_spans),
}
