"""Tiny models, and attacks on them that take a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.attacks.attack import AttackRequest, attack_many
from engine.attacks.result import Attacked
from engine.request import Example, Input
from tests.explaining import checkpoint
from tests.unit.images.making import vit_folder

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


def attacked(requests: Sequence[AttackRequest]) -> list[Attacked]:
    return attack_many(list(requests))
