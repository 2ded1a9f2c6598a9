"""The Attention page as a script: texts and pictures on one page, its link, and what it says to bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.attention import page as attention_page
from components.attention.state import KIND, key
from components.inputs import text_choice
from components.state import KINDS
from tests.alerts import errors
from tests.app.heads_page import SECONDS, link_of
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

EMBEDDED = "reviews-minilm"
TEXT = "a good film and a bad end"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("vit") / "tiny"))


def opened(file: str = "pages/attention.py", **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / file), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def of_text(model: str, **query: str) -> AppTest:
    return opened(input="text", model=model, text=TEXT, **query)


def test_a_text_shows_its_prediction_and_the_controls_of_its_heads(model: str) -> None:
    page = of_text(model)
    assert not page.exception
    assert not errors(page)
    assert page.selectbox(key("text", "look.score")).value == "importance"
    open_options(page, key("text", "options"))
    assert page.multiselect(key("text", "look.layers")).options
    assert " matters most for <i>" in "".join(element.proto.body for element in page.get("html"))


def test_a_picture_has_the_same_page_and_its_own_maps(vit: str) -> None:
    page = opened(input="image", model=vit, data="scenes:count=3")
    assert not page.exception
    assert not errors(page)
    assert page.session_state[KIND] == "image"
    assert page.session_state[key("image", "look.detail")] == "overlay"


def test_turning_from_text_to_picture_and_back_loses_nothing(model: str, vit: str) -> None:
    page = of_text(model, head="1.0", score="entropy")
    before = link_of(page)
    page.session_state[KIND] = "image"
    page.run()
    assert not page.exception
    assert link_of(page)["input"] == "image"
    assert "head" not in link_of(page)
    page.session_state[KIND] = "text"
    page.run()
    assert link_of(page) == before


def test_what_is_changed_stands_in_the_link(model: str) -> None:
    page = of_text(model)
    page.selectbox(key("text", "look.score")).set_value("entropy").run()
    assert link_of(page)["score"] == "entropy"
    again = opened(**link_of(page))
    assert again.selectbox(key("text", "look.score")).value == "entropy"
    assert link_of(again) == link_of(page)


def test_another_model_forgets_the_heads_of_the_first(model: str) -> None:
    page = of_text(model, head="1.1", switched="0.1x0")
    assert "switched" in link_of(page)
    page.selectbox(text_choice.key("model")).set_value(EMBEDDED).run()
    assert not page.exception
    assert link_of(page)["model"] == EMBEDDED
    assert not {"head", "switched"} & set(link_of(page))


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_opens_on_what_was_looked_at_last(kind: str, model: str, vit: str) -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    first, query = (
        ("pages/text.py", {"model": model, "text": TEXT, "method": "random"})
        if kind == "text"
        else ("pages/images.py", {"model": vit, "data": "scenes:count=3", "method": "random"})
    )
    page = page.switch_page(first)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    page.query_params.clear()
    page = page.switch_page("pages/attention.py").run()
    assert not page.exception
    assert (link_of(page).get("input", "text"), link_of(page)["model"]) == (kind, query["model"])


def test_an_empty_text_says_what_to_do(model: str) -> None:
    page = opened(input="text", model=model, text=" ")
    assert [box.value for box in page.info] == [
        "Type a text above, or pick an example, to see what the heads attend to."
    ]


def test_a_model_that_is_not_there_is_named() -> None:
    page = opened(input="text", model="no-such-model", text=TEXT)
    assert not page.exception
    assert any("no-such-model" in said for said in errors(page))


def board_of(page: AppTest) -> dict[str, Any]:
    """What the browser is told of the board."""
    found = (json.loads(element.proto.json) for element in page.get("bidi_component") if element.proto.json)
    return next(told for told in found if "causal" in told)


def test_what_takes_long_is_computed_after_the_board_is_there(
    model: str, monkeypatch: pytest.MonkeyPatch, own_home: None
) -> None:
    """The board is drawn without a score first, and with it once every head was switched off."""
    drawn: list[bool] = []
    really = attention_page.board_panel
    monkeypatch.setattr(
        attention_page,
        "board_panel",
        lambda state, reading, scores: (drawn.append(scores is None), really(state, reading, scores)),
    )
    page = of_text(model, score="off")
    assert not page.exception
    assert drawn == [True, False]
    assert board_of(page)["score"]["values"][0][0] is not None
    page.run()
    assert drawn == [True, False, False]
