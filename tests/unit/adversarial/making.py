"""Attacks made by hand, whose numbers can be worked out on paper."""

from __future__ import annotations

import numpy as np

from engine.attacks.plan import AttackParams
from engine.attacks.result import AttackResult, PictureChange, Trajectory
from engine.params import as_plain
from engine.request import Example
from engine.result import Prediction, Provenance, Token

TEXT = Example("good old film")
TOKENS = (
    Token("[CLS]", 0, 0, -1, True), Token("good", 0, 4, 0, False), Token("old", 5, 8, 0, False),
    Token("film", 9, 13, 0, False), Token("[SEP]", 13, 13, -1, True),
)  # fmt: skip
TRAJECTORY = Trajectory(
    np.array([0, 1, 2]), np.array([-3.0, -1.0, 0.5]), np.array([0.0, 0.0, 1.0]), np.array([0.9, 0.4, 0.8]),
    np.array([True, False, True]),
)  # fmt: skip


def prediction(positive: float) -> Prediction:
    """Of two classes."""
    probabilities = (1 - positive, positive)
    logits = tuple(float(np.log(one)) for one in probabilities)
    return Prediction(("negative", "positive"), logits, probabilities)


def text_attack(objective: str = "unconstrained", positive: float = 0.8, **more: object) -> AttackResult:
    """good 3, old -1, film 1 before; good -1, old 2, film 0.5 after. The first place changes hands."""
    own = {
        "tokens": TOKENS, "before": np.array([0.0, 3.0, -1.0, 1.0, 0.0]), "after": np.array([0.0, -1.0, 2.0, 0.5, 0.0]),
        "order_before": np.array([0, 2, 1]), "order_after": np.array([1, 2, 0]), "prediction": prediction(0.9),
        "prediction_after": prediction(positive),
        "provenance": Provenance("m", "r", "gradient_x_input", 1, {}, 1, "positive", 0, "float32", "cpu"),
        "attack": as_plain(AttackParams(objective=objective, epsilon=2.0)), "relative_epsilon": 7.5, "k": 1,
        "largest": np.array([0.0, 2.0, 0.5, 0.1, 0.0]), "length": np.array([0.0, 3.0, 1.0, 0.2, 0.0]),
        "delta": np.zeros((5, 2), np.float32), "trajectory": TRAJECTORY, "best": 2, "steps": 2, "seconds": 1.0,
        "nearest": ((), (("good", 1.5), ("fine", 2.0)), (("old", 0.5),), (("film", 0.1),), ()),
    }  # fmt: skip
    return AttackResult(**{**own, **more})  # type: ignore[arg-type]


def picture_attack() -> AttackResult:
    """A picture of 2 x 2 patches of a pixel; the first pixel's red grows by 8/255."""
    difference = np.zeros((2, 2, 3))
    difference[0, 0, 0] = 8 / 255
    before = np.full((2, 2, 3), 100, np.uint8)
    after = before + np.rint(255 * difference).astype(np.uint8)
    tokens = tuple(Token(f"row {at // 2 + 1}, column {at % 2 + 1}", 0, 0, 0, False) for at in range(4))
    return text_attack(
        tokens=tokens, before=np.array([4.0, 3.0, 2.0, 1.0]), after=np.array([1.0, 3.0, 2.0, 4.0]),
        order_before=np.array([0, 1, 2, 3]), order_after=np.array([3, 1, 2, 0]), largest=np.array([8 / 255, 0, 0, 0]),
        length=np.array([8 / 255, 0, 0, 0]), delta=np.zeros((4, 3), np.float32), nearest=(),
        attack=as_plain(AttackParams(objective="constrained", place="pixels", epsilon=8 / 255)), grid=(2, 2),
        relative_epsilon=8 / 255, prediction_after=prediction(0.88),
        picture=PictureChange(before, after, difference),
    )  # fmt: skip
