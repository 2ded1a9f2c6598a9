"""The prediction without patches: each operator against a construction by hand, the cache, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.metrics.ablation as ablation
from engine.errors import UsageError
from engine.explain import explain
from engine.metrics.ablation import ablated_predictions
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Request
from tests.oracles.pictures import probabilities_without
from tests.unit.vision.tiny_vit import SIDE, blobs, plain_vit, values_of, vit, vit_folder

pytestmark = pytest.mark.usefixtures("home")

PATCHES = (1, 4, 10)
GONE = tuple(1 + patch for patch in PATCHES)
"""Their positions, after one special token."""


def asked(method: str = "gradient_l2", **other: Any) -> Request:
    return Request(str(vit_folder()), method, blobs(), dtype="float64", **other)


@pytest.mark.parametrize("gone", [GONE, GONE[:1], tuple(range(1, 13))])
def test_each_operator_is_that_of_the_plain_module_for_every_class(gone: tuple[int, ...]) -> None:
    values, patches = values_of(vit(), blobs())[0], [place - 1 for place in gone]
    answers = ablated_predictions(asked(), gone)
    assert [answer.removal for answer in answers] == list(PATCH_OPERATORS)
    whole = probabilities_without(plain_vit(), values, (), "mean", SIDE)
    for answer in answers:
        expected = probabilities_without(plain_vit(), values, patches, answer.removal, SIDE)
        np.testing.assert_allclose(answer.left.probabilities, expected, atol=1e-6)
        np.testing.assert_allclose(answer.whole.probabilities, whole, atol=1e-6)
        assert answer.flipped == (np.argmax(expected) != np.argmax(whole))


def test_one_patch_is_what_occlusion_says() -> None:
    made = explain(asked("occlusion", params={"removal": "blur"}))
    [answer] = ablated_predictions(asked(), [4], ["blur"])
    assert made.scores[4] == pytest.approx(-answer.change, abs=1e-9)


def test_what_is_known_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = ablation.removed
    monkeypatch.setattr(ablation, "removed", lambda *given: seen.append(given[3]) or real(*given))
    first = ablated_predictions(asked(), GONE, ["mean", "drop"])
    again = ablated_predictions(asked(target="dog", seed=3), GONE[::-1])
    assert seen == ["mean", "drop", "zero", "blur"]
    assert [answer.removal for answer in again if answer.cached] == ["mean", "drop"]
    assert first[0].left == again[0].left


def test_operators_of_texts_and_special_tokens_are_refused() -> None:
    with pytest.raises(UsageError, match=r"removal: unknown name 'pad'\. Known: blur, drop, mean, zero"):
        ablated_predictions(asked(), GONE, ["pad"])
    with pytest.raises(UsageError, match=r"tokens: 0 is \[CLS\], a special token, which is never removed\."):
        ablated_predictions(asked(), [0])
    with pytest.raises(UsageError, match=r"tokens: must be positions from 0 to 12, got 13"):
        ablated_predictions(asked(), [13])
