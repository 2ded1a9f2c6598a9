"""The questions below the maps: nothing is computed unasked, failures are said, both answers are drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

import components.questions as questions
import engine.metrics.faithfulness as faithfulness
from components.numbers import plain
from components.text.state import key
from engine.errors import ExegesisError
from engine.registry import explainer
from engine.request import Example, Request
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import save_checkpoint

QUICK = ["gradient_x_input", "attention_mean"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(model: str, methods: list[str], **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=120)
    for name, value in {"model": model, "method": methods, "text": "good food, bad service", **query}.items():
        page.query_params[name] = value
    return page.run()


def lines(page: AppTest) -> set[str]:
    """The methods that have a line in the chart."""
    return set(encoding(page)["color"]["scale"]["domain"])


def encoding(page: AppTest) -> dict[str, Any]:
    [chart] = page.get("vega_lite_chart")
    return json.loads(chart.proto.spec)["layer"][0]["encoding"]


def cells(page: AppTest) -> list[list[str]]:
    [chart] = page.get("plotly_chart")
    return json.loads(chart.proto.spec)["data"][0]["text"]


def arrow_rows(chart: Any) -> list[dict[str, Any]]:
    """What the chart draws."""
    [data] = chart.proto.datasets
    return pa.ipc.open_stream(data.data.data).read_all().to_pylist()


def titles(*methods: str) -> set[str]:
    return {explainer(method).title for method in methods}


def test_nothing_is_measured_before_it_is_asked_for(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    real = faithfulness.removal_curves
    monkeypatch.setattr(faithfulness, "removal_curves", lambda *a, **k: calls.append(a) or real(*a, **k))
    page = opened(model, QUICK)
    assert not page.exception
    assert not calls
    assert not page.get("vega_lite_chart")
    page.toggle(key("open.questions")).set_value(True).run()
    assert not page.exception
    assert len(calls) == 1
    assert lines(page) == titles(*QUICK, "random")


def test_both_answers_are_drawn_and_can_be_changed(model: str) -> None:
    page = opened(model, [*QUICK, "random"])
    page.toggle(key("open.questions")).set_value(True).run()
    assert lines(page) == titles(*QUICK, "random")
    page.segmented_control(key("question")).set_value("agreement").run()
    assert not page.get("vega_lite_chart")
    assert [row[place] for place, row in enumerate(cells(page))] == ["+1.00"] * 3
    page.segmented_control(key("measure")).set_value("top_k").run()
    assert [row[place] for place, row in enumerate(cells(page))] == ["100%"] * 3
    page.segmented_control(key("question")).set_value("curves").run()
    page.selectbox(key("removal")).set_value("delete").run()
    assert not page.exception
    assert not errors(page)
    areas = page.dataframe[0].value["Area under the curve"].tolist()
    assert areas == sorted(areas)
    assert len(areas) == 3


def test_a_method_without_a_map_is_left_out_with_words(model: str) -> None:
    page = opened(model, ["attention_mean", "attention_head", "gradient_l2"], **{"attention_head.layer": "99"})
    page.toggle(key("open.questions")).set_value(True).run()
    assert not page.exception
    assert lines(page) == titles("attention_mean", "gradient_l2", "random")
    said = [caption.value for caption in page.caption]
    assert any("Left out" in words and explainer("attention_head").title in words for words in said)


def test_no_map_at_all_is_said(model: str) -> None:
    page = opened(model, ["attention_head"], open="questions", **{"attention_head.layer": "99"})
    assert not page.exception
    assert any("No method above has a map" in element.value for element in page.info)
    assert not page.get("vega_lite_chart")


def test_why_random_has_no_line_is_said(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: Request) -> None:
        raise ExegesisError(f"no {request.method} today")

    monkeypatch.setattr(questions, "explain", broken)
    page = opened(model, QUICK, open="questions")
    assert not page.exception
    assert lines(page) == titles(*QUICK)
    assert any("no random today" in element.proto.body for element in page.get("html"))


def test_the_question_asked_is_in_the_link_and_the_other_is_not_computed(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(faithfulness, "removal_curves", lambda *given, **_: calls.append(given))
    page = opened(model, QUICK, open="questions", question="agreement")
    assert not page.exception
    assert cells(page)
    assert page.query_params["question"] == "agreement"
    assert not calls


def test_a_flat_map_is_said_to_have_no_order(model: str) -> None:
    page = opened(model, ["gradient", "gradient_l2"], open="questions", question="agreement")
    assert cells(page)[0] == ["none", "none"]
    assert any("No order" in element.proto.body for element in page.get("html"))


def test_one_method_has_curves_but_nothing_to_agree_with(model: str) -> None:
    page = opened(model, ["attention_mean"])
    page.toggle(key("open.questions")).set_value(True).run()
    assert lines(page) == titles("attention_mean", "random")
    page.segmented_control(key("question")).set_value("agreement").run()
    assert any("at least two methods" in element.value for element in page.info)


def test_a_regression_head_has_scores(tmp_path: Path) -> None:
    page = opened(str(save_checkpoint("bert", tmp_path / "score", labels=1)), QUICK)
    page.toggle(key("open.questions")).set_value(True).run()
    assert not page.exception
    assert encoding(page)["y"]["title"].startswith("score")


def test_words_are_removed_and_compared_as_wholes(model: str) -> None:
    page = opened(model, QUICK, unit="word", open="questions", removal="delete")
    assert not page.exception
    [chart] = page.get("vega_lite_chart")
    rows = list(arrow_rows(chart))
    assert {row["removed"] for row in rows} >= {"0 of 4 words", "2 of 4 words", "4 of 4 words"}
    assert page.selectbox(key("removal")).value == "delete"
    page = opened(model, QUICK, unit="word", open="questions", question="agreement", measure="top_k")
    assert any("of 4 words that both maps name" in caption.value for caption in page.caption)


def test_hovering_a_point_tells_what_was_measured(model: str) -> None:
    """The table behind the chart, which the points' tips read, against the engine's curves."""
    page = opened(model, QUICK, open="questions")
    [chart] = page.get("vega_lite_chart")
    tips = {(row["method"], row["share"]): (row["removed"], row["shown"]) for row in arrow_rows(chart)}
    asked = [Request(model, id, Example("good food, bad service")) for id in [*QUICK, "random"]]
    for request, curve in zip(asked, faithfulness.removal_curves(asked), strict=True):
        title = explainer(request.method).title
        for percent, removed, value in zip(faithfulness.PERCENTS, curve.removed, curve.values, strict=True):
            assert tips[title, percent / 100] == (f"{removed} of {curve.removed[-1]} tokens", plain(float(value)))
    point = json.loads(chart.proto.spec)["layer"][1]["encoding"]["tooltip"]
    assert [field["field"] for field in point] == ["method", "removed", "shown"]
