"""Removal curves: against one text at a time, by hand, shared passes, the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine.metrics.shared_rows as shared_rows
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain
from engine.metrics.curves import PERCENTS, WAYS, RemovalCurve, removal_curves, without_top
from engine.metrics.shared_rows import Tally
from engine.progress import CancelToken
from engine.request import Example, Request
from tests.counted import counted
from tests.explaining import checkpoint, classifier
from tests.oracles.curves import masked_probability, removal_curve_one_by_one

pytestmark = pytest.mark.usefixtures("home")

TEXT = "although the plot drags, the ending is warm and funny"
METHODS = ("gradient_x_input", "gradient_l2", "random")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many shortened texts each call of the engine measured."""
    return counted(monkeypatch, shared_rows, "coalition_quantities", lambda *given: len(given[3]))


def asked(family: str = "bert", methods: tuple[str, ...] = METHODS, text: str = TEXT, labels: int = 2) -> list[Request]:
    return [Request(str(checkpoint(family, labels)), method, Example(text)) for method in methods]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_curves_are_those_of_one_text_at_a_time(family: str) -> None:
    requests = asked(family, labels=3)
    model = classifier(family, 3, "float32")
    encoded = model.encode(Example(TEXT))
    for request, curve in zip(requests, removal_curves(requests), strict=True):
        made = explain(request)
        expected = removal_curve_one_by_one(
            model.module, encoded.ids.tolist(), encoded.features.tolist(), made.scores, model.mask_id,
            made.provenance.target,
        )  # fmt: skip
        np.testing.assert_allclose(curve.values, expected, atol=1e-5)
        assert curve.method == request.method
        assert curve.values[0] == pytest.approx(made.prediction.probabilities[made.provenance.target], abs=1e-6)
        assert (curve.removed[0], curve.removed[-1]) == (0, len(encoded.features))


@pytest.mark.parametrize(("family", "pieces"), [("bert", 8), ("roberta", 10)])
def test_words_go_as_a_whole(family: str, pieces: int) -> None:
    text = "unbelievably warm and funny"
    places = [range(1, 1 + pieces), *([pieces + number] for number in (1, 2, 3))]
    [request] = asked(family, ("gradient_x_input",), text, 3)
    model, made = classifier(family, 3, "float32"), explain(request)
    words = sorted(places, key=lambda word: -sum(made.scores[place] for place in word))
    [curve] = removal_curves([request], unit="word")
    assert curve.removed == (0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4)
    for value, number in zip(curve.values, curve.removed, strict=True):
        gone = {place for word in words[:number] for place in word}
        expected = masked_probability(
            model.module, model.encode(request.example).ids.tolist(), gone, model.mask_id, made.provenance.target
        )
        assert value == pytest.approx(expected, abs=1e-5)


def test_the_area_by_hand() -> None:
    straight = RemovalCurve("a", np.linspace(1, 0, 11), tuple(range(11)))
    assert straight.area == pytest.approx(0.5)
    drop = RemovalCurve("a", np.array([1.0] + [0.0] * 10), tuple(range(11)))
    assert drop.area == pytest.approx(0.05)


def test_the_first_of_the_order_go_first() -> None:
    kept = without_top(np.array([2, 0, 1]), (0, 1, 3))
    assert kept.tolist() == [[True, True, True], [True, True, False], [False, False, False]]


def test_many_curves_share_their_ends_and_one_call(measured: list[int]) -> None:
    requests = asked()
    made = removal_curves([*requests, requests[0]])
    assert len(measured) == 1
    assert measured[0] <= 2 + len(METHODS) * (len(PERCENTS) - 2)
    assert len({curve.values[0] for curve in made}) == len({curve.values[-1] for curve in made}) == 1
    np.testing.assert_array_equal(made[0].values, made[-1].values)


def test_a_cached_curve_is_not_measured_again_and_a_new_one_alone_is(measured: list[int]) -> None:
    first = removal_curves(asked(methods=METHODS[:2]))
    assert not any(curve.cached for curve in first)
    measured.clear()
    again = removal_curves(asked())
    assert [curve.cached for curve in again] == [True, True, False]
    assert measured == [11]
    for one, other in zip(first, again, strict=False):
        np.testing.assert_array_equal(one.values, other.values)
    measured.clear()
    named = [Request(r.model, r.method, r.example, target="LABEL_0") for r in asked()]
    other = [Request(r.model, r.method, r.example, target="LABEL_1") for r in asked()]
    made = removal_curves([*named, *other])
    assert [c.cached for c in made].count(True) == 3, "one of the two names is the predicted class"


def test_operators_have_their_own_curves() -> None:
    mask, delete = (removal_curves(asked(methods=("random",)), removal)[0] for removal in ("mask", "delete"))
    assert mask.values[0] == pytest.approx(delete.values[0], abs=1e-6)
    assert not np.allclose(mask.values, delete.values)
    assert not delete.cached


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_many_examples_are_those_alone(family: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requests = [*asked(family, text="good food"), *asked(family)]
    together = removal_curves(requests)
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "other"))
    for request, curve in zip(requests, together, strict=True):
        [alone] = removal_curves([request])
        assert not alone.cached
        np.testing.assert_allclose(curve.values, alone.values, atol=1e-5)


def test_a_regression_head_has_its_scores_along_the_curve() -> None:
    [request] = asked(methods=("random",), labels=1)
    [curve] = removal_curves([request])
    assert curve.values[0] == pytest.approx(explain(request).prediction.logits[0], abs=1e-5)


def test_progress_is_reported_and_a_cancelled_curve_stops() -> None:
    seen: list[tuple[int, int]] = []
    removal_curves(asked(), report=lambda done, total, label: seen.append((done, total)))
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1] > 0
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        removal_curves(asked(text="good food"), cancel=token)


def test_wrong_arguments_and_broken_numbers_are_named() -> None:
    with pytest.raises(UsageError, match=r"removal: unknown name 'burn'\. Known: delete, hide, mask"):
        removal_curves(asked(), "burn")
    with pytest.raises(ExegesisError, match=r"removal curve of lime: .* not finite"):
        RemovalCurve("lime", np.full(11, np.nan), tuple(range(11)))
    assert removal_curves([]) == []


def test_other_shares_are_other_curves_and_the_rows_that_they_share_are_counted_once() -> None:
    tally = Tally()
    usual = removal_curves(asked(methods=METHODS[:1]))[0]
    fine = removal_curves(asked(methods=METHODS[:1]), percents=(0, 5, 50, 100), tally=tally)[0]
    assert not fine.cached
    assert fine.percents == (0, 5, 50, 100)
    assert (fine.at(0), fine.at(50), fine.at(100)) == pytest.approx(
        (usual.at(0), usual.at(50), usual.at(100)), abs=1e-6
    )
    assert fine.area == pytest.approx(np.mean(fine.values[:2]) * 0.05 + np.mean(fine.values[1:3]) * 0.45
                                      + np.mean(fine.values[2:]) * 0.5)  # fmt: skip
    assert tally == Tally(4, 4)
    both = removal_curves(asked(methods=METHODS[:1]), ways=WAYS, percents=(0, 50, 100), tally=(ends := Tally()))
    assert ends == Tally(6, 4), "the ends of both ways are the same rows"
    removal_curves(asked(methods=METHODS[:1]), ways=WAYS, percents=(0, 50, 100), tally=(found := Tally()))
    assert found == Tally(0, 0)
    assert both[1].at(100) == both[0].at(0)


@pytest.mark.parametrize("percents", [(), (0, 50), (0, 50, 50, 100), (0, 60, 50, 100), (0, 100, 110)])
def test_shares_rise_from_nothing_to_all(percents: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="percents: must be whole numbers that rise from 0 to 100"):
        removal_curves(asked(), percents=percents)
