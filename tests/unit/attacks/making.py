"""Tiny models, and attacks on them that take a moment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from engine.attacks.attack import attack_many
from engine.attacks.plan import AttackRequest
from engine.attacks.result import AttackResult
from engine.attacks.saliency import PointValues, SaliencyMapper
from engine.request import Example, Input
from tests.explaining import checkpoint
from tests.unit.vision.tiny_vit import vit_folder

TEXTS = (
    "the plot never drags",
    "warm and funny but far too long",
    "not worth it although the acting is a quiet triumph",
)


def asked(
    text: str | Input = TEXTS[0], method: str = "gradient_x_input", family: str = "bert", labels: int = 2, **attack: Any
) -> AttackRequest:
    """An attack in double precision on a tiny model; `attack`: its parameters, `params` and `seed` apart."""
    example = Example(text) if isinstance(text, str) else text
    model = str(checkpoint(family, labels) if isinstance(example, Example) else vit_folder())
    own = {name: attack.pop(name) for name in ("params", "seed", "dtype") if name in attack}
    return AttackRequest(model, method, example, attack, **{"dtype": "float64", **own})


def attacked(requests: Sequence[AttackRequest]) -> list[AttackResult]:
    return attack_many(list(requests))


def leaving(monkeypatch: pytest.MonkeyPatch, rows: slice = slice(None)) -> None:
    """Another class is predicted wherever something moved further than a start is drawn."""
    evaluate = SaliencyMapper.evaluate

    def elsewhere(self: SaliencyMapper, delta: torch.Tensor, items: np.ndarray, objective: Any = None) -> PointValues:
        found = evaluate(self, delta, items, objective)
        left = delta.abs().amax((1, 2)) > 2e-3
        left &= torch.from_numpy(np.isin(items, np.arange(len(self.items))[rows]))
        target = torch.nn.functional.one_hot(self.targets[torch.from_numpy(items)], found.logits.shape[1])
        return dataclasses.replace(found, logits=found.logits - 100 * left[:, None] * target)

    monkeypatch.setattr(SaliencyMapper, "evaluate", elsewhere)
