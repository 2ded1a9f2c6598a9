"""Deletion and insertion curves of pictures: against one picture at a time, shared passes, the cache, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import engine.metrics.faithfulness as faithfulness
from engine.errors import UsageError
from engine.explain import explain
from engine.metrics.catalog import PERCENTS
from engine.metrics.faithfulness import WAYS, removal_curves
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Example, Picture, Request
from tests.counted import counted
from tests.explaining import checkpoint
from tests.oracles.pictures import curve_one_by_one
from tests.unit.vision.tiny_vit import SIDE, blobs, plain_vit, values_of, vit, vit_folder

pytestmark = pytest.mark.usefixtures("home")

METHODS = ("gradient_x_input", "gradient_l2", "random")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pictures with holes each call of the engine measured."""
    return counted(monkeypatch, faithfulness, "coalition_quantities", lambda *given: len(given[3]))


def asked(*methods: str, picture: Picture | None = None) -> list[Request]:
    return [Request(str(vit_folder()), method, picture or blobs(), dtype="float64") for method in methods or METHODS]


@pytest.mark.parametrize("removal", PATCH_OPERATORS)
def test_curves_are_those_of_one_picture_at_a_time(removal: str) -> None:
    requests, values = asked(), values_of(vit(), blobs())[0]
    made = [explain(request) for request in requests] * 2
    for one, curve in zip(made, removal_curves(requests, removal, ways=WAYS), strict=True):
        target, insertion = one.provenance.target, curve.way == "insertion"
        expected = curve_one_by_one(plain_vit(), values, one.scores[one.features], removal, SIDE, target, insertion)
        np.testing.assert_allclose(curve.values, expected, atol=1e-6)
        assert curve.values[-1 if insertion else 0] == pytest.approx(one.prediction.probabilities[target], abs=1e-9)


def test_of_each_way_a_curve_a_request_with_the_numbers_that_moved() -> None:
    made = removal_curves(asked("random", "gradient"), ways=WAYS)
    assert [(curve.way, curve.method) for curve in made] == [(way, id) for way in WAYS for id in ("random", "gradient")]
    assert made[0].removed == made[0].moved == (0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12), "12 patches, a half to the even"
    assert made[2].removed == (12, 11, 10, 8, 7, 6, 5, 4, 2, 1, 0)
    assert made[2].moved == made[0].moved
    assert [curve.n for curve in made] == [12] * 4


def test_both_ways_share_their_ends_and_one_call(measured: list[int]) -> None:
    made = removal_curves(asked(), ways=WAYS)
    assert len(measured) == 1
    assert measured[0] <= 2 + 2 * len(METHODS) * (len(PERCENTS) - 2)
    for deleted, inserted in zip(made[:3], made[3:], strict=True):
        assert deleted.values[0] == inserted.values[-1]
        assert deleted.values[-1] == inserted.values[0]


def test_a_map_and_its_reverse_swap_deletion_and_insertion() -> None:
    """What is left when the lowest go first is what insertion of the highest has."""
    [request] = asked("gradient_x_input")
    made = explain(request)
    values, scores = values_of(vit(), blobs())[0], made.scores[made.features]
    [inserted] = removal_curves([request], "zero", ways=["insertion"])
    of_reverse = curve_one_by_one(plain_vit(), values, -scores, "zero", SIDE, made.provenance.target, False)
    np.testing.assert_allclose(inserted.values[::-1], of_reverse, atol=1e-6)


def test_what_is_kept_is_found_by_way_and_operator(measured: list[int]) -> None:
    first = removal_curves(asked(), "blur")
    again = removal_curves(asked(), "blur", ways=WAYS)
    assert [curve.cached for curve in again] == [True] * 3 + [False] * 3
    assert [curve.cached for curve in removal_curves(asked(), "blur", ways=WAYS)] == [True] * 6
    assert not any(curve.cached for curve in removal_curves(asked(), "drop"))
    for one, other in zip(first, again, strict=False):
        np.testing.assert_array_equal(one.values, other.values)
    assert len(measured) == 3


def test_the_first_operator_of_pictures_is_the_usual_one_and_another_picture_has_its_own_curve() -> None:
    [usual], [named] = removal_curves(asked("random")), removal_curves(asked("random"), "mean", unit="patch")
    assert named.cached
    np.testing.assert_array_equal(usual.values, named.values)
    [other] = removal_curves(asked("random", picture=blobs(1)))
    assert not other.cached
    assert not np.allclose(other.values, usual.values)


def test_texts_have_insertion_too_and_stand_beside_pictures() -> None:
    text = Request(str(checkpoint("bert")), "random", Example("good food, bad service"))
    made = removal_curves([text, *asked("random")], ways=WAYS)
    assert [curve.n for curve in made] == [5, 12, 5, 12]
    assert made[0].values[-1] == pytest.approx(made[2].values[0], abs=1e-6)
    assert made[2].removed == (5, 4, 4, 3, 3, 3, 2, 1, 1, 1, 0)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(UsageError, match=r"removal: unknown name 'mask'\. .*Known: blur, drop, mean, zero"):
        removal_curves(asked(), "mask")
    with pytest.raises(UsageError, match=r"unit: unknown name 'word'\. Known: patch"):
        removal_curves(asked(), unit="word")
    with pytest.raises(UsageError, match=r"way: unknown name 'sideways'\. Known: deletion, insertion"):
        removal_curves(asked(), ways=["sideways"])
