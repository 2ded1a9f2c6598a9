"""The Flow section as a script: its controls, its link, its maps, and what it says to bad input."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.attention.flow import CAUTION, SCALED
from components.attention.state import key
from components.widgets.flow_graph import default_threshold
from engine.heads.flow import attention_flow
from engine.heads.readings import read_heads
from engine.request import Example, Request
from tests.alerts import errors
from tests.app.heads_page import TEXT, html_of, link_of, opened
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def of_text(model: str, **query: str) -> AppTest:
    page = opened(model=model, **{"open": "flow", **query})
    assert not errors(page)
    return page


def captions(page: AppTest) -> list[str]:
    return [caption.value for caption in page.caption]


def graphs(page: AppTest) -> list[str]:
    """What the browser is told of each graph."""
    return [one.proto.json for one in page.get("bidi_component") if one.proto.component_name.endswith("flow_graph")]


def titles(page: AppTest) -> list[str]:
    """What the maps are called."""
    [maps] = [html for html in html_of(page) if "xg-flow-maps" in html]
    return [part.partition("</p>")[0] for part in maps.split('<p class="xg-title">')[1:]]


def test_the_section_is_drawn_only_where_it_is_open(model: str) -> None:
    page = of_text(model, open="switch")
    assert CAUTION not in captions(page)
    assert not graphs(page)
    assert "Flow" in [heading.value for heading in page.subheader]
    page.toggle(key("text", "open.flow")).set_value(True).run()
    assert not page.exception
    assert CAUTION in captions(page)
    assert len(graphs(page)) == 1
    assert "flow" in link_of(page)["open"]


def test_what_changed_heads_mean_for_the_flow_is_said(model: str) -> None:
    [told] = [said for said in captions(of_text(model, switched="0.1x0")) if said.endswith(SCALED)]
    assert "of the prediction comes from special tokens" in told


def test_the_slider_stands_at_what_reads_well_and_is_in_the_link_once_it_is_moved(model: str) -> None:
    page = of_text(model)
    reading = read_heads(Request(model, "random", Example(TEXT)))
    slider = page.select_slider(key("text", "flow.step"))
    assert slider.value == default_threshold(attention_flow(reading), 0)
    assert "threshold" not in link_of(page)
    slider.set_value(0.2).run()
    assert link_of(page)["threshold"] == "0.2"
    assert page.select_slider(key("text", "flow.step")).value == 0.2
    again = of_text(model, threshold="0.04")
    assert again.select_slider(key("text", "flow.step")).value == 0.04


def test_what_is_set_is_in_the_link_and_in_the_maps(model: str) -> None:
    page = of_text(model)
    assert titles(page)[1] == "Residual 0.5, as in Abnar and Zuidema (chosen)"
    page.slider(key("text", "flow.residual")).set_value(0.2).run()
    page.selectbox(key("text", "flow.start_layer")).set_value(1).run()
    assert not page.exception
    assert {name: link_of(page)[name] for name in ("residual", "start_layer")} == {
        "residual": "0.2",
        "start_layer": "1",
    }
    assert titles(page)[2] == "Residual 0.2, from layer 1 (chosen)"
    page.segmented_control(key("text", "flow.kind")).set_value("gradient").run()
    assert link_of(page)["flow"] == "gradient"
    assert page.slider(key("text", "flow.residual")).disabled
    assert titles(page)[2] == "Gradient-weighted, from layer 1 (chosen)"


def test_a_link_opens_what_was_seen(model: str) -> None:
    page = of_text(model, flow="gradient", residual="0.25", start_layer="1")
    assert page.segmented_control(key("text", "flow.kind")).value == "gradient"
    assert page.slider(key("text", "flow.residual")).value == 0.25
    assert page.selectbox(key("text", "flow.start_layer")).value == 1


def test_a_first_layer_that_the_model_has_not_is_told(model: str) -> None:
    page = opened(model=model, open="flow", start_layer="7")
    said = " ".join(html_of(page))
    assert "start_layer: must be from 0 to 2 for this model, got 7. All layers count." in said
    assert page.selectbox(key("text", "flow.start_layer")).value == 0


def test_where_the_maps_are_read_is_said(model: str, tmp_path: Path) -> None:
    assert any("at \\[CLS\\], which the prediction reads. On the Text" in said for said in captions(of_text(model)))
    pooled = of_text(str(save_checkpoint("t5", tmp_path / "t5")))
    assert any("as “Attention rollout” does" in said for said in captions(pooled))


def test_one_token_and_a_causal_model(tmp_path: Path) -> None:
    page = of_text(str(save_checkpoint("gpt2", tmp_path / "gpt2")), text="a")
    assert any("carry 100.0% of it from the input" in said for said in captions(page))


def test_a_picture_has_the_same_section(tmp_path: Path) -> None:
    page = opened(input="image", model=str(save_vit(tmp_path / "vit")), data="scenes:count=3", open="flow", text="")
    assert CAUTION in captions(page)
    assert len(titles(page)) == 3
