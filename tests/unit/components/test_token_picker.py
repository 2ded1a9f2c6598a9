"""Pins between tokens and units, what the browser is told, and that what it sends is checked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from components.styles import DIGITS, STACK
from components.widgets.base import PinEvent, Pins
from components.widgets.token_map import hand_over, picker_data, read_pins, to_tokens, to_units
from engine.errors import UsageError
from engine.request import Example
from engine.word_units import Unit, units
from tests.unit.components.making import explanation

PIECES = r"\w{1,3}|[^\w\s]"
TEXT = "grinning in <script>"


def drawn(kind: str, text: str = TEXT) -> tuple[Unit, ...]:
    example = Example(text)
    made = explanation(example, pieces=PIECES)
    return units(made.tokens, made.scores, example, kind)


TOKENS, WORDS = drawn("token"), drawn("word")


def test_the_example_is_what_the_tests_below_say() -> None:
    assert [unit.text for unit in TOKENS] == ["[CLS]", "gri", "nni", "ng", "in", "<", "scr", "ipt", ">", "[SEP]"]
    assert [unit.text for unit in WORDS] == ["[CLS]", "grinning", "in", "<script>", "[SEP]"]


def test_a_word_is_pinned_when_any_of_its_tokens_is() -> None:
    assert to_units(WORDS, (2,)) == (1,)
    assert to_units(WORDS, (8, 4, 3)) == (1, 2, 3)
    assert to_units(TOKENS, (8, 4, 3)) == (3, 4, 8)


def test_pinning_a_word_pins_all_its_tokens() -> None:
    assert to_tokens(WORDS, (3, 1)) == (1, 2, 3, 5, 6, 7, 8)
    assert to_tokens(TOKENS, (3, 1)) == (1, 3)


@pytest.mark.parametrize("shown", [TOKENS, WORDS], ids=["tokens", "words"])
def test_there_and_back_are_the_same_units(shown: tuple[Unit, ...]) -> None:
    pickable = tuple(at for at, unit in enumerate(shown) if not unit.special)
    assert to_units(shown, to_tokens(shown, pickable)) == pickable
    assert [to_units(shown, to_tokens(shown, [at])) for at in pickable] == [(at,) for at in pickable]


def test_special_tokens_and_tokens_that_the_text_no_longer_has_are_not_pinned() -> None:
    assert to_units(TOKENS, (0, 9, 10, 5000)) == ()


def test_the_browser_is_told_plain_values_only() -> None:
    told = picker_data(WORDS, (2, 4))
    assert json.loads(json.dumps(told)) == told
    assert told == {
        "texts": ["[CLS]", "grinning", "in", "<script>", "[SEP]"],
        "places": [0, 1, 4, 5, 9],
        "special": [0, 4],
        "pinned": [1, 2],
        "direction": "ltr",
        "scope": STACK,
        "digits": DIGITS,
    }


def test_keys_move_in_the_direction_of_the_text() -> None:
    assert picker_data(drawn("word", "שלום עולם"), ())["direction"] == "rtl"


def test_what_the_browser_asks_for_is_sorted_and_counted_once() -> None:
    assert read_pins({"pins": [4, 2, 4], "turn": 3}, TOKENS) == PinEvent((2, 4), 3)
    assert read_pins({"pins": [], "turn": 1}, TOKENS) == PinEvent((), 1)


@pytest.mark.parametrize(
    "pins",
    [None, "1,2", {"0": 1}, [10], [-1], [0], [9], [1.0], [True], ["1"], [[1]], [None]],
    ids=repr,
)
def test_pins_that_do_not_fit_the_text_are_refused_in_words(pins: object) -> None:
    with pytest.raises(UsageError, match=r"^pins: must be positions from 0 to 9 that are not special tokens, got "):
        read_pins({"pins": pins, "turn": 1}, TOKENS)


def test_the_first_token_may_be_pinned_where_it_is_not_special() -> None:
    assert read_pins({"pins": [0, 8], "turn": 1}, (*TOKENS[1:-1], TOKENS[1])) == PinEvent((0, 8), 1)


@pytest.mark.parametrize("turn", [None, 0, -1, 1.5, True, "1"], ids=repr)
def test_a_count_that_is_none_is_refused_in_words(turn: object) -> None:
    with pytest.raises(UsageError, match=r"^turn: must be a whole number from 1, got .*reload the page"):
        read_pins({"pins": [1], "turn": turn}, TOKENS)


@pytest.mark.parametrize("sent", [None, [], "x", 3], ids=repr)
def test_anything_else_is_refused(sent: object) -> None:
    with pytest.raises(UsageError, match=r"got None"):
        read_pins(sent, TOKENS)


def test_a_text_of_special_tokens_alone_has_nothing_to_pin() -> None:
    bare = tuple(replace(unit, special=True) for unit in TOKENS)
    assert picker_data(bare, (1, 2))["pinned"] == []
    with pytest.raises(UsageError, match="pins: must be"):
        read_pins({"pins": [1], "turn": 1}, bare)


def test_a_click_in_a_map_of_words_hands_over_tokens() -> None:
    got: list[Pins] = []
    hand_over(WORDS, got.append, (1, 2))
    assert got == [(1, 2, 3, 4)]


def page() -> None:
    import streamlit as st

    from components.widgets.token_map import draw_token_picker
    from tests.unit.components.test_token_picker import WORDS

    draw_token_picker(WORDS, (4,), "pick", lambda pins: st.session_state.update(pins=pins))
    st.text("below")


def test_a_page_with_the_strip_runs_as_a_script_again_and_again() -> None:
    shown = AppTest.from_function(page).run().run()
    assert not shown.exception
    [strip] = shown.get("bidi_component")
    assert json.loads(strip.proto.json)["pinned"] == [2]
    assert [text.value for text in shown.text] == ["below"]
