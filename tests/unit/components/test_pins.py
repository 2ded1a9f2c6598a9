"""What a strip of pins takes from the browser, and that its scripts put nothing foreign into the page."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from components.widgets import base, patch_map, token_map
from components.widgets.base import ASSETS, Pins, parse_pins, receive_pins

SCRIPTS = [ASSETS / "pins.js", *(Path(widget.__path__[0]) / "picker.js" for widget in (token_map, patch_map))]
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
    assert "pins: must be positions of 0 to 4, got [99]. The pins stay as they were." in str(held["pick.said"])


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.parent.name)
def test_no_script_puts_text_into_the_page_as_markup_or_fetches_anything(file: Path) -> None:
    script = file.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment", script)
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|fetch\(|import\(|eval\(", script)
