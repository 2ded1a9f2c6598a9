"""The attacks that their page opens with: the first review, by both objectives."""

from __future__ import annotations

from engine.attacks.attack import AttackRequest, attack_many, key_of
from engine.attacks.params import OBJECTIVES
from engine.data.datasets import load
from engine.params import Plain

MODEL, DATA, METHOD = "reviews-minilm", "reviews", "gradient_x_input"
STEPS = 100
"""As the page has them at first."""


def requests() -> list[AttackRequest]:
    """What is attacked."""
    example = load(DATA)[0].example
    given: list[dict[str, Plain]] = [{"objective": objective, "steps": STEPS} for objective in OBJECTIVES]
    return [AttackRequest(MODEL, METHOD, example, own) for own in given]


def keys() -> tuple[str, ...]:
    """Under which keys they are found."""
    return tuple(key_of(request) for request in requests())


def made() -> tuple[str, ...]:
    """The same, after they were computed where they were not there."""
    attack_many(requests())
    return keys()
