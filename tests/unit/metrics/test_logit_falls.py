"""Comprehensiveness and sufficiency of the logit: by hand, one text at a time, from the passes of the probability."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cache.store import Store
from engine.evaluation.evaluate import evaluate
from engine.evaluation.plan import Plan
from engine.explain import explain
from engine.metrics import curves
from engine.metrics.catalog import METRICS
from engine.metrics.curves import RemovalCurve, removal_curves
from engine.metrics.faithfulness import SHARES, Faithfulness, faithfulness
from engine.metrics.ranking import number_of
from engine.metrics.shared_rows import Tally
from engine.request import Example, Request
from tests.explaining import checkpoint, classifier
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

TEXT = "although the plot drags, the ending is warm and funny"
PERCENTS = (0, *SHARES, 100)
LOGITS = ("comprehensiveness_logit", "sufficiency_logit")


def test_they_are_the_means_of_falls_by_hand() -> None:
    removed = tuple(range(6))
    values = np.array([0.999, 0.998, 0.998, 0.997, 0.99, 0.5])
    without = RemovalCurve("a", values, removed, percents=PERCENTS, logits=np.array([9.0, 7.0, 5.0, 4.0, 2.0, 0.0]))
    alone = RemovalCurve(
        "a", values[::-1], removed[::-1], percents=PERCENTS, logits=np.array([0.0, 6.0, 7.0, 8.0, 9.5, 9.0])
    )
    found = Faithfulness(without, alone)
    assert found.comprehensiveness(quantity="logit") == pytest.approx((2 + 4 + 5 + 7) / 4)
    assert found.sufficiency(quantity="logit") == pytest.approx((3 + 2 + 1 - 0.5) / 4)
    assert found.comprehensiveness() == pytest.approx(0.999 - values[1:5].mean()), "of the probability, as before"
    with pytest.raises(ValueError, match=r"this curve has no logits\. Ask for them with logits=True"):
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
    [found] = faithfulness([asked], PERCENTS, logits=True)
    made = explain(asked)
    order = sorted(map(int, made.features), key=lambda place: -made.scores[place])
    whole, counts = logit_without(asked, set(), labels), [number_of(share, len(order)) for share in SHARES]
    without = np.mean([whole - logit_without(asked, set(order[:count]), labels) for count in counts])
    alone = np.mean([whole - logit_without(asked, set(order[count:]), labels) for count in counts])
    assert found.comprehensiveness(quantity="logit") == pytest.approx(without, abs=1e-5)
    assert found.sufficiency(quantity="logit") == pytest.approx(alone, abs=1e-5)
    if labels == 1:
        assert found.comprehensiveness() == found.comprehensiveness(quantity="logit"), "both are the score"


def test_they_cost_no_pass_of_their_own(tmp_path: Path) -> None:
    reviews = written(tmp_path / "reviews.jsonl", REVIEWS)
    both = evaluate(
        [str(checkpoint("bert", 2))], reviews, ["gradient_l2"], ["comprehensiveness", "sufficiency", *LOGITS]
    )
    assert both.asked == len(REVIEWS) * 2 * 2 * len(PERCENTS), "as of the probability alone"
    found = {score.metric: score for score in both.scores if score.method == "gradient_l2"}
    assert {found[id].n for id in LOGITS} == {len(REVIEWS)}
    assert found[LOGITS[0]].value != found["comprehensiveness"].value
    again = evaluate([str(checkpoint("bert", 2))], reviews, ["gradient_l2"], LOGITS)
    assert (again.asked, again.run) == (0, 0), "the curves are there"


def test_curves_from_before_there_were_logits_still_serve_the_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    def put_old(self: Store, key: str, meta: object, arrays: dict[str, np.ndarray]) -> None:
        put(self, key, meta, {name: array for name, array in arrays.items() if name != "logits"})

    put = Store.put
    asked = [request("gradient_x_input")]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", put_old)
        [first] = removal_curves(asked)
    tally = Tally()
    [same] = removal_curves(asked, tally=tally)
    assert (same.cached, same.logits, tally.run) == (True, None, 0)
    [whole] = removal_curves(asked, tally=tally, logits=True)
    assert (whole.cached, tally.run) == (False, len(curves.PERCENTS))
    assert whole.logits is not None
    np.testing.assert_array_equal(whole.values, first.values)
    assert removal_curves(asked, logits=True)[0].cached


def test_they_are_measured_only_where_they_are_named(tmp_path: Path) -> None:
    found = evaluate([str(checkpoint("bert", 2))], written(tmp_path / "r.jsonl", REVIEWS), ["gradient_l2"], examples=2)
    assert "comprehensiveness" in found.plan.metrics
    assert not set(LOGITS) & set(found.plan.metrics)
    assert [Plan(("m",), "d", ("lime",), (id,)).logits for id in ("comprehensiveness", *LOGITS)] == [False, True, True]
    assert {METRICS[id].better for id in LOGITS} == {"high", "low"}
