"""What the strip of patches tells the browser, and that what comes back must fit the grid."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from components.widgets import patch_map
from components.widgets.base import PinEvent
from components.widgets.patch_map import CARDS, OPACITY, on_grid, picker_data, picture_sheet, read_pins
from engine.errors import UsageError

GRID = (2, 3)


def test_the_browser_is_told_plain_values_only() -> None:
    told = picker_data(GRID, (4, 0, 4), 40)
    assert json.loads(json.dumps(told)) == told
    assert told == {"rows": 2, "columns": 3, "opacity": 40, "scope": CARDS, "pinned": [0, 4]}
    assert picker_data(GRID, ())["opacity"] == OPACITY


def test_pins_that_the_grid_has_not_are_left_out() -> None:
    assert on_grid(GRID, (5, 6, 0, -1, 5)) == (0, 5)
    assert on_grid((1, 1), (1, 2)) == ()


def test_what_the_browser_asks_for_is_sorted_and_counted_once() -> None:
    assert read_pins({"pins": [5, 0, 5], "turn": 2}, GRID) == PinEvent((0, 5), 2)
    assert read_pins({"pins": [], "turn": 1}, GRID) == PinEvent((), 1)


@pytest.mark.parametrize("asked", [None, "1", [6], [-1], [1.0], [True], [None], {"0": 1}], ids=repr)
def test_pins_beside_the_grid_are_refused_in_words(asked: object) -> None:
    with pytest.raises(
        UsageError, match=r"^pins: must be numbers of patches from 0 to 5, got .*The pins did not change"
    ):
        read_pins({"pins": asked, "turn": 1}, GRID)


def test_the_style_sheet_reaches_nowhere_and_names_the_cards() -> None:
    sheet = picture_sheet()
    assert CARDS in sheet
    assert "url(" not in sheet
    assert "@import" not in sheet


def page() -> None:
    import streamlit as st

    from components.widgets.patch_map import draw_patch_picker

    def keep(pins: tuple[int, ...]) -> None:
        st.session_state["pins"] = pins

    draw_patch_picker((2, 3), (4, 9), "pick", keep)
    st.text("below")


def test_a_page_with_the_strip_runs_as_a_script_again_and_again() -> None:
    shown = AppTest.from_function(page).run().run()
    assert not shown.exception
    [strip] = shown.get("bidi_component")
    assert json.loads(strip.proto.json)["pinned"] == [4]
    assert [text.value for text in shown.text] == ["below"]


@pytest.mark.parametrize(
    ("sent", "told"),
    [(0, [0]), (40, [40]), (100, [100]), (101, []), (-1, []), (True, []), (40.0, []), ("40", []), (None, [])],
)
def test_only_a_percent_is_taken_for_an_opacity(monkeypatch: pytest.MonkeyPatch, sent: object, told: list[int]) -> None:
    monkeypatch.setattr(patch_map.st, "session_state", {"pick": {"opacity": sent}})
    kept: list[int] = []
    patch_map._take_opacity("pick", kept.append)
    assert kept == told
