"""Pinning tokens in Chromium: by click and by key, shown at once in every map, one run of the script each."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import PALETTES
from components.styles import SYMBOLS
from tests.browser.conftest import TIMEOUT_MS, Scheme
from tests.browser.server import Server
from tests.browser.waiting import box_of, boxes_of

MAPS = ("first", "second")
RINGS = """positions => [...document.querySelectorAll('.st-key-text_rows .xg')].map(map => positions.map(
    position => getComputedStyle(map.querySelector(`.j${position.toString(32)}`)).boxShadow))"""
CLICKS = """positions => {
    const map = document.getElementById('first');
    for (const at of positions)
        map.querySelector(`.j${at.toString(32)}`).dispatchEvent(
            new MouseEvent('click', {bubbles: true, ctrlKey: true}));
}"""

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    """A page of two maps and the strip alone."""
    return parts.page("pick")


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return ready(open_page(server.url))


def ready(page: Page) -> Page:
    expect_held(page, "nothing", 1)
    expect(keys_link(page)).to_be_visible(timeout=TIMEOUT_MS)
    expect(hint(page)).to_be_visible(timeout=TIMEOUT_MS)
    return page


def unit(page: Page, position: int, name: str = "first") -> Locator:
    return page.locator(f"#{name} .j{SYMBOLS[position]}")


def hint(page: Page) -> Locator:
    return page.get_by_text("Click a token in any map to pin it")


def keys_link(page: Page) -> Locator:
    return page.get_by_text("Pick by keyboard or touch")


def toolbar(page: Page) -> Locator:
    return page.get_by_role("toolbar", name="Tokens of the text")


def keys(page: Page) -> Locator:
    """The row of tokens for the keyboard, opened."""
    keys_link(page).click()
    expect(toolbar(page)).to_be_visible()
    return toolbar(page).get_by_role("button")


def expect_held(page: Page, pins: str, runs: int) -> None:
    """Python holds these pins, after so many runs of the script at most: a slow one takes two picks at once."""
    counts = "|".join(str(number) for number in range(min(2, runs), runs + 1))
    said = re.compile(rf"^Python holds {pins} after ({counts}) runs?$")
    expect(page.get_by_text(said)).to_be_visible(timeout=TIMEOUT_MS)


def rings(page: Page, positions: list[int]) -> list[list[str]]:
    """The ring around each unit, by map."""
    found: list[list[str]] = page.evaluate(RINGS, positions)
    return found


def ringed(page: Page, positions: list[int]) -> list[int]:
    """Which of the units are ringed; every map says the same."""
    first, second = (
        [at for at, ring in zip(positions, row, strict=True) if "inset" in ring] for row in rings(page, positions)
    )
    assert first == second
    return first


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))


def test_a_click_pins_or_unpins_a_token_in_every_map_for_one_run_and_clearing_by_key_keeps_the_keyboards_place(
    page: Page,
) -> None:
    unit(page, 5, "second").click()
    expect_held(page, "5", 2)
    assert ringed(page, list(range(10))) == [5]
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned actors")
    expect(hint(page)).to_be_visible()
    unit(page, 1).click()
    expect_held(page, "1,5", 3)
    assert ringed(page, list(range(10))) == [1, 5]
    unit(page, 1, "second").click(delay=600)
    expect_held(page, "5", 4)
    assert ringed(page, list(range(10))) == [5]
    unit(page, 5).click(delay=600)
    expect_held(page, "nothing", 5)
    assert ringed(page, list(range(10))) == []
    expect(hint(page)).to_be_visible()
    unit(page, 5).click(delay=600)
    expect_held(page, "5", 6)
    clear = page.get_by_role("button", name="Clear", exact=True)
    clear.focus()
    page.keyboard.press("Enter")
    expect_held(page, "nothing", 7)
    expect(clear).to_be_hidden()
    expect(keys_link(page)).to_be_focused()


def test_the_ring_is_there_before_the_server_answers_and_legible(
    server: Server, open_page: Open, scheme: Scheme
) -> None:
    page = ready(open_page(server.url, scheme=scheme))
    clicked = "() => { document.querySelector('#second .j5').click(); return (" + RINGS + ")([5]) }"
    for row in page.evaluate(clicked):
        assert rgb(PALETTES[scheme].text) in row[0]
        assert "inset" in row[0]
    expect_held(page, "5", 2)


def test_shift_pins_a_range_and_escape_unpins_all(page: Page) -> None:
    unit(page, 2).click()
    unit(page, 5, "second").click(modifiers=["ControlOrMeta"])
    expect_held(page, "2,5", 3)
    unit(page, 2, "second").click()
    expect_held(page, "5", 4)
    unit(page, 12).click()
    expect_held(page, "5,12", 5)
    unit(page, 15).click(modifiers=["Shift"])
    expect_held(page, "5,12,13,14,15", 6)
    assert page.evaluate("getSelection().toString()") == ""
    page.keyboard.press("Escape")
    expect_held(page, "nothing", 7)
    assert ringed(page, list(range(16))) == []
    unit(page, 3).click()
    expect_held(page, "3", 8)
    page.get_by_role("button", name="Clear", exact=True).click()
    expect_held(page, "nothing", 9)


def test_no_run_is_spent_on_a_special_token_nor_on_text_that_is_selected_by_dragging(page: Page) -> None:
    for position in (0, 16):
        unit(page, position).click()
        unit(page, position).click(modifiers=["Shift"])
    start, end = boxes_of(unit(page, 10), unit(page, 11))
    page.mouse.move(start["x"] + 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] - 2, end["y"] + end["height"] / 2, steps=5)
    page.mouse.up()
    assert "are" in page.evaluate("getSelection().toString()")
    unit(page, 5).click()
    expect_held(page, "5", 2)


def test_clicks_faster_than_the_server_are_all_kept_and_one_interrupts_a_script_that_runs(
    server: Server, open_page: Open
) -> None:
    page = ready(open_page(server.url, hasty=True))
    page.evaluate(CLICKS, [1, 3, 5])
    page.evaluate(CLICKS, [7])
    assert ringed(page, list(range(10))) == [1, 3, 5, 7]
    expect(page.get_by_text("Python holds 1,3,5,7 after")).to_be_visible(timeout=TIMEOUT_MS)
    assert ringed(page, list(range(10))) == [1, 3, 5, 7]
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_text("Python holds nothing after")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("button", name="Run slowly").click()
    expect(page.get_by_text("Still running")).to_be_visible()
    unit(page, 3).click()
    unit(page, 5).click(modifiers=["ControlOrMeta"])
    expect(page.get_by_text("Python holds 3,5 after")).to_be_visible(timeout=15_000)
    assert ringed(page, [3, 4, 5]) == [3, 5]


def test_what_python_holds_wins_and_runs_add_no_listeners(page: Page) -> None:
    unit(page, 5).click()
    expect_held(page, "5", 2)
    page.get_by_role("button", name="Pin the fourth token").click()
    expect_held(page, "4", 3)
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned >")
    page.get_by_role("button", name="Run again").click()
    expect_held(page, "4", 4)
    page.get_by_text("other", exact=True).click()
    expect_held(page, "nothing", 5)
    expect(hint(page)).to_be_visible()
    assert ringed(page, [1, 2, 3]) == []
    unit(page, 3).click()
    expect_held(page, "3", 6)
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned film")


def test_pins_that_are_there_at_the_start_are_shown_and_not_sent_back(server: Server, open_page: Open) -> None:
    page = open_page(f"{server.url}?pin=1")
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned <", timeout=TIMEOUT_MS)
    expect_held(page, "2", 1)
    assert ringed(page, [1, 2, 3]) == [2]


def test_all_tokens_are_one_tab_stop_and_keys_move_and_toggle(page: Page) -> None:
    buttons = keys(page)
    assert [button.get_attribute("tabindex") for button in buttons.all()].count("0") == 1
    page.keyboard.press("Tab")
    expect(buttons.first).to_be_focused()
    expect(buttons.first).to_have_accessible_name("the, index 1")
    for key in ("End", "ArrowRight", "ArrowLeft", "Space"):
        page.keyboard.press(key)
    expect_held(page, "14", 2)
    expect(buttons.nth(13)).to_be_focused()
    expect(buttons.nth(13)).to_have_attribute("aria-pressed", "true")
    for key in ("Home", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect_held(page, "2,14", 3)
    for name in MAPS:
        expect(unit(page, 2, name)).to_have_css("outline-style", "solid")
        expect(unit(page, 2, name)).to_have_css("outline-width", "2px")
        expect(unit(page, 3, name)).to_have_css("outline-width", "0px")
    page.keyboard.press("Escape")
    expect_held(page, "nothing", 4)
    expect(buttons.nth(1)).to_be_focused()
    expect(buttons.nth(1)).to_have_attribute("aria-pressed", "false")


def test_arrows_follow_the_eye_in_a_text_from_right_to_left(page: Page) -> None:
    page.get_by_text("right to left", exact=True).click()
    buttons = keys(page)
    expect(buttons).to_have_count(4)
    page.keyboard.press("Tab")
    before = box_of(buttons.nth(0))
    page.keyboard.press("ArrowLeft")
    expect(buttons.nth(1)).to_be_focused()
    after = box_of(buttons.nth(1))
    assert after["x"] < before["x"]


def test_pins_stay_when_words_are_shown(page: Page) -> None:
    unit(page, 3).click()
    expect_held(page, "3", 2)
    page.get_by_text("word", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned <b>actors</b>")
    assert ringed(page, [1, 2, 3]) == [2]
    unit(page, 4).click(modifiers=["ControlOrMeta"])
    expect_held(page, "2,3,4,5,6,7,8,9,11", 4)


def test_a_text_of_510_tokens_is_pinned_as_one_range(page: Page) -> None:
    page.get_by_text("long", exact=True).click()
    first, last = (page.locator("#first").get_by_text("word", exact=True).nth(at) for at in (0, 509))
    expect(last).to_be_visible(timeout=TIMEOUT_MS)
    first.click()
    last.click(modifiers=["Shift"])
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_contain_text("and 498 more")
    expect_held(page, "1,2,3,.*,509,510", 4)
    assert keys(page).count() == 510
