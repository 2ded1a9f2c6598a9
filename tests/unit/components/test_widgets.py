"""Browser components: the pins that they send, their keys, and scripts that put no foreign markup into the page."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as some
from streamlit.components.v2.bidi_component.constants import EVENT_DELIM
from streamlit.testing.v1 import AppTest

from components.widgets import base
from components.widgets.base import Pins, component_key, parse_pins, receive_pins

WIDGETS = Path(base.__file__).parent
SCRIPTS = [WIDGETS / "base.js", *(WIDGETS / f"{kind}_map/picker.js" for kind in ("token", "patch"))]
FIVE = partial(parse_pins, is_pickable=lambda at: 0 <= at < 5, allowed="positions of 0 to 4")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the session holds, as plain values."""
    values: dict[str, object] = {}
    monkeypatch.setattr(base.st, "session_state", values)
    return values


def test_what_was_picked_is_handed_over_and_its_number_is_kept(held: dict[str, object]) -> None:
    got: list[Pins] = []
    held["pick"] = {"picked": {"pins": [2, 1, 2], "turn": 7}}
    receive_pins("pick", FIVE, got.append)
    assert got == [(1, 2)]
    assert held["pick.turn"] == 7, "the browser is told which of its questions was answered"


def test_a_bad_request_changes_nothing_and_is_told_and_answered(held: dict[str, object]) -> None:
    got: list[Pins] = []
    held |= {"pick": {"picked": {"pins": [99], "turn": 8}}, "pick.turn": 7}
    receive_pins("pick", FIVE, got.append)
    assert got == []
    assert held["pick.turn"] == 8
    assert "pins: must be positions of 0 to 4, got [99]. The pins did not change." in str(held["pick.said"])


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.parent.name)
def test_no_script_puts_text_into_the_page_as_markup_or_fetches_anything(file: Path) -> None:
    script = file.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment", script)
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|fetch\(|import\(|eval\(", script)


@given(some.text(alphabet="a_%5F.é", max_size=12))
def test_a_key_is_safe_and_can_be_read_back(key: str) -> None:
    made = component_key(key)
    assert EVENT_DELIM not in f"{made}{EVENT_DELIM[:-1]}"
    assert unquote(made) == key


def test_usual_keys_stay_as_they_are() -> None:
    assert component_key("annotate.board.aB-3_x") == "annotate.board.aB-3_x"


def test_a_picture_of_a_slice_with_two_underscores_can_be_kept() -> None:
    def page() -> None:
        from components.export import png_button

        png_button("PNG", "chart.png", str, "Saves it.", "evaluate.keep.png.label__long")

    assert not AppTest.from_function(page, default_timeout=60).run().exception


def test_a_ballot_with_two_underscores_can_be_answered() -> None:
    def page() -> None:
        from components.annotate.page import board_key
        from components.widgets.ranking import draw_ranking_board

        draw_ranking_board(["<p>one</p>", "<p>two</p>"], board_key("9__f"))

    assert not AppTest.from_function(page, default_timeout=60).run().exception


def test_streamlit_still_refuses_them() -> None:
    """Once it does not, `component_key` is no longer needed."""

    def page() -> None:
        from components.widgets.ranking import draw_ranking_board

        draw_ranking_board(["<p>one</p>", "<p>two</p>"], "board.9__f")

    shown = AppTest.from_function(page, default_timeout=60).run()
    assert [error.value for error in shown.exception]
