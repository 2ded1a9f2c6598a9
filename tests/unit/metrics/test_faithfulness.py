"""Removal curves and their falls: against one text at a time, by hand, shared passes, the cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import engine.metrics.faithfulness as module
from cache.store import Store
from engine import runtime
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.evaluation.experiment import evaluate
from engine.evaluation.plan import EvaluationPlan
from engine.explain import explain
from engine.metrics.catalog import METRICS, PERCENTS, SHARES
from engine.metrics.faithfulness import (
    WAYS,
    Faithfulness,
    RemovalCurve,
    RowCounts,
    SharedRows,
    faithfulness,
    masks_without_top,
    removal_curves,
)
from engine.metrics.ranking import count_of_percent
from engine.progress import CancelToken
from engine.request import Example, Request
from tests.counted import counted
from tests.explaining import checkpoint, classifier
from tests.oracles.curves import masked_probability, removal_curve_one_by_one
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

TEXT = "although the plot drags, the ending is warm and funny"
METHODS = ("gradient_x_input", "gradient_l2", "random")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many shortened texts each call of the engine measured."""
    return counted(monkeypatch, module, "coalition_quantities", lambda *given: len(given[3]))


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
    kept = masks_without_top(np.array([2, 0, 1]), (0, 1, 3))
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
    tally = RowCounts()
    usual = removal_curves(asked(methods=METHODS[:1]))[0]
    fine = removal_curves(asked(methods=METHODS[:1]), percents=(0, 5, 50, 100), tally=tally)[0]
    assert not fine.cached
    assert fine.percents == (0, 5, 50, 100)
    assert (fine.at(0), fine.at(50), fine.at(100)) == pytest.approx(
        (usual.at(0), usual.at(50), usual.at(100)), abs=1e-6
    )
    assert fine.area == pytest.approx(np.mean(fine.values[:2]) * 0.05 + np.mean(fine.values[1:3]) * 0.45
                                      + np.mean(fine.values[2:]) * 0.5)  # fmt: skip
    assert tally == RowCounts(4, 4)
    both = removal_curves(asked(methods=METHODS[:1]), ways=WAYS, percents=(0, 50, 100), tally=(ends := RowCounts()))
    assert ends == RowCounts(6, 4), "the ends of both ways are the same rows"
    removal_curves(asked(methods=METHODS[:1]), ways=WAYS, percents=(0, 50, 100), tally=(found := RowCounts()))
    assert found == RowCounts(0, 0)
    assert both[1].at(100) == both[0].at(0)


@pytest.mark.parametrize("percents", [(), (0, 50), (0, 50, 50, 100), (0, 60, 50, 100), (0, 100, 110)])
def test_shares_rise_from_nothing_to_all(percents: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="percents: must be whole numbers that rise from 0 to 100"):
        removal_curves(asked(), percents=percents)


FEW_PERCENTS = (0, *SHARES, 100)
LOGITS = ("comprehensiveness_logit", "sufficiency_logit")


def test_they_are_the_means_of_falls_by_hand() -> None:
    removed = tuple(range(6))
    values = np.array([0.999, 0.998, 0.998, 0.997, 0.99, 0.5])
    without = RemovalCurve("a", values, removed, percents=FEW_PERCENTS, logits=np.array([9.0, 7.0, 5.0, 4.0, 2.0, 0.0]))
    alone = RemovalCurve(
        "a", values[::-1], removed[::-1], percents=FEW_PERCENTS, logits=np.array([0.0, 6.0, 7.0, 8.0, 9.5, 9.0])
    )
    found = Faithfulness(without, alone)
    assert found.comprehensiveness(quantity="logit") == pytest.approx((2 + 4 + 5 + 7) / 4)
    assert found.sufficiency(quantity="logit") == pytest.approx((3 + 2 + 1 - 0.5) / 4)
    assert found.comprehensiveness() == pytest.approx(0.999 - values[1:5].mean()), "of the probability, as before"
    with pytest.raises(ValueError, match=r"this curve has no logits\. Compute them with logits=True"):
        replace(without, logits=None).at(0, "logit")


def request(method: str, family: str = "bert", labels: int = 3) -> Request:
    return Request(str(checkpoint(family, labels)), method, Example(TEXT))


def logit_without(asked: Request, gone: set[int], labels: int) -> float:
    """Of the explained class, on the model as transformers has it."""
    model = classifier("bert", labels, "float32")
    ids = [
        model.mask_id if place in gone else int(token)
        for place, token in enumerate(model.encode(asked.example).ids.tolist())
    ]
    with torch.no_grad():
        return float(model.module(input_ids=torch.tensor([ids])).logits[0, explain(asked).provenance.target])


@pytest.mark.parametrize("labels", [3, 1], ids=["classes", "regression"])
def test_they_are_those_of_one_text_at_a_time(labels: int) -> None:
    asked = request("gradient_x_input", labels=labels)
    [found] = faithfulness([asked], FEW_PERCENTS, logits=True)
    made = explain(asked)
    order = sorted(map(int, made.features), key=lambda place: -made.scores[place])
    whole, counts = logit_without(asked, set(), labels), [count_of_percent(share, len(order)) for share in SHARES]
    without = np.mean([whole - logit_without(asked, set(order[:count]), labels) for count in counts])
    alone = np.mean([whole - logit_without(asked, set(order[count:]), labels) for count in counts])
    assert found.comprehensiveness(quantity="logit") == pytest.approx(without, abs=1e-5)
    assert found.sufficiency(quantity="logit") == pytest.approx(alone, abs=1e-5)
    if labels == 1:
        assert found.comprehensiveness() == found.comprehensiveness(quantity="logit"), "both are the score"


def test_they_cost_no_pass_of_their_own(tmp_path: Path) -> None:
    reviews = written(tmp_path / "reviews.jsonl", REVIEWS)
    asked, metrics = ([str(checkpoint("bert", 2))], reviews, ["gradient_l2"]), ["comprehensiveness", "sufficiency"]
    both = evaluate(*asked, [*metrics, *LOGITS], second_removal="none")
    assert both.requested_rows == len(REVIEWS) * 2 * 2 * len(FEW_PERCENTS), "as of the probability alone"
    found = {score.metric: score for score in both.scores if score.method == "gradient_l2"}
    assert {found[id].n for id in LOGITS} == {len(REVIEWS)}
    assert found[LOGITS[0]].value != found["comprehensiveness"].value
    again = evaluate(*asked, LOGITS, second_removal="none")
    assert (again.requested_rows, again.evaluated_rows) == (0, 0), "the curves are there"


def test_curves_from_before_there_were_logits_still_serve_the_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    def put_old(self: Store, key: str, meta: object, arrays: dict[str, np.ndarray]) -> None:
        put(self, key, meta, {name: array for name, array in arrays.items() if name != "logits"})

    put = Store.put
    asked = [request("gradient_x_input")]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", put_old)
        [first] = removal_curves(asked)
    tally = RowCounts()
    [same] = removal_curves(asked, tally=tally)
    assert (same.cached, same.logits, tally.evaluated) == (True, None, 0)
    [whole] = removal_curves(asked, tally=tally, logits=True)
    assert (whole.cached, tally.evaluated) == (False, len(PERCENTS))
    assert whole.logits is not None
    np.testing.assert_array_equal(whole.values, first.values)
    assert removal_curves(asked, logits=True)[0].cached


def test_they_are_measured_only_where_they_are_named(tmp_path: Path) -> None:
    found = evaluate([str(checkpoint("bert", 2))], written(tmp_path / "r.jsonl", REVIEWS), ["gradient_l2"], examples=2)
    assert "comprehensiveness" in found.plan.metrics
    assert not set(LOGITS) & set(found.plan.metrics)
    assert [EvaluationPlan(("m",), "d", ("lime",), (id,)).logits for id in ("comprehensiveness", *LOGITS)] == [
        False,
        True,
        True,
    ]
    assert {METRICS[id].better for id in LOGITS} == {"high", "low"}


TEXTS = ("good food", "although the plot drags, the ending is warm and funny", "a quiet triumph", "it never falters")


@pytest.fixture
def small_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "rows_at_once", lambda model, length, **more: max(1, 60 // length))


def lengths_of_passes(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Of each pass, the lengths of its rows."""
    return counted(monkeypatch, module, "coalition_quantities", lambda *given: [len(given[1][i]) for i in given[3]])


@pytest.mark.usefixtures("small_passes")
def test_rows_of_many_examples_are_those_of_one_text_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng = classifier("bert", 3, "float32"), np.random.default_rng(3)
    seen = lengths_of_passes(monkeypatch)
    rows, asked = SharedRows(), []
    for number, text in enumerate(TEXTS):
        encoded = model.encode(Example(text))
        kept = rng.random((5, len(encoded.features))) < 0.5
        asked.append((encoded, number % 3, kept, rows.add(encoded, number % 3, kept)))
    values = rows.values(model, "mask")[:, 0]
    for encoded, target, kept, places in asked:
        for row, place in zip(kept, places, strict=True):
            gone = set(encoded.features[~row].tolist())
            expected = masked_probability(model.module, encoded.ids.tolist(), gone, model.mask_id, target)
            assert values[place] == pytest.approx(expected, abs=1e-5)
    assert [length for one in seen for length in one] == sorted(
        (length for one in seen for length in one), reverse=True
    )
    assert all(len(one) * max(one) <= 60 for one in seen)
    assert len(seen) == 3


def test_a_row_that_is_asked_for_again_is_run_once_and_other_targets_are_other_rows() -> None:
    model, tally = classifier("bert", 3, "float32"), RowCounts()
    rows, encoded = SharedRows(tally), model.encode(Example(TEXTS[0]))
    n = len(encoded.features)
    first = rows.add(encoded, 0, np.array([[True] * n, [False] * n]))
    again = rows.add(model.encode(Example(TEXTS[0])), 0, np.array([[False] * n, [True] * n]))
    other = rows.add(encoded, 1, np.ones((1, n), dtype=bool))
    assert again.tolist() == first.tolist()[::-1]
    assert other[0] not in first
    values = rows.values(model, "mask")[:, 0]
    assert tally == RowCounts(requested=5, evaluated=3)
    assert values[first[0]] + values[other[0]] < 1


def test_short_texts_are_not_padded_to_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", 3, "float32")
    seen = lengths_of_passes(monkeypatch)
    rows, rng = SharedRows(), np.random.default_rng(0)
    for text in TEXTS:
        encoded = model.encode(Example(text))
        rows.add(encoded, 0, rng.random((6, len(encoded.features))) < 0.5)
    monkeypatch.setattr(module, "FEW", 2)
    apart = rows.values(model, "mask")
    lengths = sorted({length for one in seen for length in one})
    assert all(min(one[2:], default=max(one)) >= 0.8 * max(one) for one in seen)
    assert len(seen) > 1 < len(lengths)
    monkeypatch.setattr(module, "FEW", 1000)
    seen.clear()
    np.testing.assert_allclose(rows.values(model, "mask"), apart, atol=1e-6)
    assert len(seen) == 1


def test_nothing_asked_is_nothing_run() -> None:
    assert len(SharedRows().values(classifier("bert"), "mask")) == 0
