"""Pinned tokens on the Text page: in the link, above the maps, gone with the text that they stood in."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from components.inputs import text_choice
from components.text import state as text_state
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint

SECONDS = 120
TEXT = "warm and funny"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def told(page: AppTest) -> list[dict[str, object]]:
    """What the strips of the page tell the browser."""
    assert not page.exception
    found = [json.loads(element.proto.json) for element in page.get("bidi_component")]
    return [one for one in found if "pinned" in one]


def pins(page: AppTest) -> object:
    [strip] = told(page)
    return strip["pinned"]


def test_a_link_pins_its_tokens_again(model: str) -> None:
    page = opened(model=model, method="random", text=TEXT, pin="2,3")
    assert pins(page) == [2, 3]
    assert page.query_params["pin"] == "2,3"
    assert pins(page.run()) == [2, 3]


def test_what_a_click_pins_stands_in_the_link(model: str) -> None:
    page = opened(model=model, method="random", text=TEXT)
    assert pins(page) == []
    page.session_state[text_state.key("pins")] = [1, 3]
    assert pins(page.run()) == [1, 3]
    assert page.query_params["pin"] == "1,3"


def test_a_link_to_special_tokens_or_beyond_the_text_pins_nothing(model: str) -> None:
    assert pins(opened(model=model, method="random", text=TEXT, pin="0,500")) == []


def test_another_text_has_nothing_pinned(model: str) -> None:
    page = opened(model=model, method="random", text=TEXT, pin="2")
    page.text_area(text_choice.key("text")).set_value("dull").run()
    assert pins(page) == []
    assert "pin" not in page.query_params


def test_a_pin_in_a_word_pins_the_word_and_comes_back_with_the_tokens(model: str) -> None:
    page = opened(model=model, method="random", text="unbelievably warm", pin="2")
    before = told(page)
    open_options(page, text_state.key("options"))
    page.segmented_control(text_state.key("unit")).set_value("word").run()
    assert pins(page) == [1]
    page.segmented_control(text_state.key("unit")).set_value("token").run()
    assert told(page) == before


def test_without_a_map_there_is_nothing_to_click(model: str) -> None:
    assert told(opened(model=model, method="none", text=TEXT)) == []
