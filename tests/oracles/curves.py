"""A removal curve made one text at a time, on the model as transformers has it: ids are replaced by the mask token."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def removal_curve_one_by_one(
    module: Any, ids: list[int], features: list[int], scores: np.ndarray, mask_id: int, target: int
) -> list[float]:
    """m at 0, 10, ..., 100% by masking. The scores of the features must all differ."""
    best_first = sorted(features, key=lambda place: -scores[place])
    values = []
    for tenth in range(11):
        number = max(1, round(tenth * len(features) / 10)) if tenth else 0
        values.append(masked_probability(module, ids, set(best_first[:number]), mask_id, target))
    return values


def masked_probability(module: Any, ids: list[int], gone: set[int], mask_id: int, target: int) -> float:
    """The probability of the class when the tokens at these places are the mask token."""
    shortened = [mask_id if place in gone else token for place, token in enumerate(ids)]
    with torch.no_grad():
        logits = module(input_ids=torch.tensor([shortened])).logits.double()
    return float(torch.softmax(logits, -1)[0, target])
