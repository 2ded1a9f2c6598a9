"""Values of controls outlive what hides them: sections that close, and popovers that the browser has not drawn yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget

from components.attention.state import SESSIONS
from components.attention.state import key as attention_key
from components.compare.state import SESSIONS as COMPARE_SESSIONS
from components.controls import PERSIST
from components.images.state import WIDGETS as PICTURE_WIDGETS
from components.text.state import WIDGETS as TEXT_WIDGETS
from components.text.state import key as text_key
from tests.app.heads_page import link_of
from tests.app.options import open_options
from tests.app.test_attention_page import TEXT, opened
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

KINDS = (
    "selectbox", "multiselect", "segmented_control", "slider", "toggle", "checkbox", "number_input", "text_area",
)  # fmt: skip
SET_ANEW = ("editing", "flow.step", "scale.", "add.", "change.")
"""In each run, or a draft that stands in no link."""
PAGES = {
    "pages/text.py": (TEXT_WIDGETS, {"open": "browse,questions", "method": "random"}),
    "pages/images.py": (PICTURE_WIDGETS, {"open": "browse,questions", "method": "random", "data": "scenes:count=3"}),
    "pages/compare.py": (COMPARE_SESSIONS["text"].widgets, {"open": "search", "input": "text"}),
    "pages/attention.py": (SESSIONS["text"].widgets, {"open": "switch,flow", "score": "entropy", "input": "text"}),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("vit") / "tiny"))


def drawn(page: AppTest, prefix: str) -> Iterator[tuple[str, str]]:
    """The name of each control of the page, and how long its value is kept."""
    held: Any = page.session_state
    tracker = held._state._state._persist_tracker  # Streamlit tells nobody
    for kind in KINDS:
        for one in page.get(kind):
            if isinstance(one, Widget) and one.key and one.key.startswith(prefix):
                yield one.key.removeprefix(prefix), tracker.scope_of(one.id)


@pytest.mark.parametrize("file", PAGES)
def test_every_control_of_a_link_keeps_its_value(file: str, model: str, vit: str) -> None:
    prefix, link = PAGES[file]
    page = opened(file, model=vit if "images" in file else model, text=TEXT, **link)
    open_options(page, f"{prefix}options")
    assert not page.exception
    scopes = {name: scope for name, scope in drawn(page, prefix) if not name.startswith(SET_ANEW)}
    assert len(scopes) > 8
    assert set(scopes.values()) == {PERSIST}


def test_a_closed_section_loses_nothing_when_something_else_is_chosen(model: str) -> None:
    page = opened(input="text", model=model, text=TEXT, score="entropy")
    page.toggle(attention_key("text", "open.flow")).set_value(True).run()
    page.segmented_control(attention_key("text", "flow.kind")).set_value("gradient").run()
    page.toggle(attention_key("text", "open.flow")).set_value(False).run()
    page.selectbox(attention_key("text", "look.score")).set_value("special").run()
    assert link_of(page)["flow"] == "gradient"
    page.toggle(attention_key("text", "open.flow")).set_value(True).run()
    assert page.segmented_control(attention_key("text", "flow.kind")).value == "gradient"


def test_a_closed_list_of_texts_stays_sorted(model: str) -> None:
    page = opened("pages/text.py", model=model, text=TEXT, method="random")
    page.button(text_key("browse button")).click().run()
    page.selectbox(text_key("browse.sort")).set_value("short").run()
    page.button(text_key("browse button")).click().run()
    open_options(page, text_key("options"))
    page.number_input(text_key("seed")).set_value(4).run()
    assert link_of(page)["sort"] == "short"
