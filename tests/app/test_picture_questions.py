"""Below the maps of a picture: the truth, the prediction without pinned patches, curves of both ways, agreement."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import engine.metrics.faithfulness as faithfulness
from components import ablation
from components.ablation import PICTURE_WORDS
from components.images.results import CHANCE
from components.images.state import key
from engine.registry import explainer
from tests.alerts import errors
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

QUICK = ["gradient_x_input", "attention_mean"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model of 3 x 3 patches."""
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


def opened(model: str, **query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=240)
    for name, value in {"model": model, "method": QUICK, "data": "scenes:count=3", **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def titles(*methods: str) -> set[str]:
    return {explainer(method, "image").title for method in methods}


def html(page: AppTest, holding: str) -> list[str]:
    """What is drawn that holds some HTML; style sheets left out."""
    drawn = [element.proto.body for element in page.get("html")]
    return [unescape(one) for one in drawn if holding in one and "<style>" not in one]


def axes(page: AppTest) -> list[dict[str, Any]]:
    charts = page.get("vega_lite_chart")
    return [json.loads(chart.proto.spec)["layer"][0]["encoding"] for chart in charts]


def captions(page: AppTest) -> list[str]:
    return [caption.value for caption in page.caption]


def test_nothing_is_measured_before_it_is_asked_for(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(faithfulness, "removal_curves", lambda *given, **_: calls.append(given))
    monkeypatch.setattr(ablation, "ablated_predictions", lambda *given: calls.append(given))
    page = opened(model)
    assert not calls
    assert not page.dataframe
    assert PICTURE_WORDS.nothing not in captions(page)


def test_each_map_is_held_against_the_truth_and_a_table_has_them_all(model: str) -> None:
    page = opened(model)
    line = re.compile(
        r"Overlap \d+\.\d%, chance \d+\.\d% \(\d of \d patch(?:es)?\)</p><p[^>]*>Pointing game (hit|missed): "
    )
    assert sum(line.search(card) is not None for card in html(page, "xg-card")) == len(QUICK)
    assert any("the object: the outline covers at least half of" in words for words in captions(page))
    page.toggle(key("open.truth")).set_value(True).run()
    assert not page.exception
    [table] = html(page, CHANCE)
    first, *rest = re.findall(r"<tr><th>([^<]*)</th><td", table)
    assert first == CHANCE
    assert set(rest) == titles(*QUICK)
    assert page.query_params["open"] == "truth"


def test_a_picture_without_a_mask_has_no_truth(model: str) -> None:
    page = opened(model, data="photos")
    assert not html(page, "pointing game")
    assert not [toggle for toggle in page.toggle if toggle.key == key("open.truth")]


def test_pinned_patches_have_the_prediction_without_them_by_every_operator(model: str) -> None:
    [found] = html(opened(model, pin="0,5"), 'class="xg-heading"')
    assert "Without “<bdi>row 1, column 1</bdi>”, “<bdi>row 2, column 3</bdi>”" in found
    assert "2 of 9 patches" in found
    assert all(name in found for name in PICTURE_WORDS.removals.values())
    assert all(title in found for title in titles(*QUICK))
    assert PICTURE_WORDS.nothing in captions(opened(model, pin="99"))


def test_curves_of_both_ways_and_the_agreement_are_drawn(model: str) -> None:
    page = opened(model, open="questions")
    assert [one["x"]["title"] for one in axes(page)] == [
        "share of patches removed, highest score first",
        "share of patches kept, highest score first",
    ]
    for one in axes(page):
        assert set(one["color"]["scale"]["domain"]) == titles(*QUICK, "random")
    assert list(page.dataframe[0].value.columns) == ["Method", "Area, deletion", "Area, insertion"]
    page.selectbox(key("removal")).set_value("blur").run()
    assert not page.exception
    assert not errors(page)
    assert page.query_params["removal"] == "blur"
    page.segmented_control(key("question")).set_value("agreement").run()
    page.segmented_control(key("measure")).set_value("top_k").run()
    [chart] = page.get("plotly_chart")
    assert [row[place] for place, row in enumerate(json.loads(chart.proto.spec)["data"][0]["text"])] == ["100%"] * 2
    assert any("of 9 patches that both maps name" in words for words in captions(page))
