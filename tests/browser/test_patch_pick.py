"""Patches of a picture's maps in Chromium: hovering, and pinning by click, stroke, touch and key."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from components.palette import PALETTES
from components.widgets.patch_map import tip
from tests.browser.conftest import Scheme
from tests.browser.patch_seen import (
    BOXES,
    COLUMNS,
    MAPS,
    ROWS,
    Open,
    at_patch,
    clear,
    click,
    expect_held,
    hint,
    hover,
    opened,
    rgb,
    slider,
    the_map,
    view,
)
from tests.browser.server import Server
from tests.browser.waiting import box_of, boxes_of, expect_fits, pixels


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    return parts.page("patch")


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return opened(server, open_page)


def ringed(page: Page, at: int, scheme: Scheme = "light") -> list[bool]:
    """On which cards the patch has a ring in the color of the text."""
    page.mouse.move(1, 1)
    found = []
    for number in range(MAPS):
        seen = pixels(the_map(page, number))
        row, column = divmod(at, COLUMNS)
        top, left = round(row * seen.shape[0] / ROWS), round(column * seen.shape[1] / COLUMNS)
        middle = left + round(seen.shape[1] / COLUMNS / 2)
        edge = seen[max(0, top - 2) : top + 2, middle]
        found.append(bool((np.abs(edge - rgb(PALETTES[scheme].text)).max(axis=1) < 30).any()))
    return found


def test_hovering_says_value_rank_and_place_and_lights_the_patch_everywhere(page: Page) -> None:
    for number, at in [(one, at) for one in (0, 1) for at in range(one, ROWS * COLUMNS, 7)]:
        hover(page, at, number)
        expect(page.get_by_text(tip(view(number), at), exact=True)).to_be_visible()
        middle = at_patch(page, at, number)
        boxes = page.locator(".xg-card [data-g] > .xg-lit").evaluate_all(BOXES)
        assert len(boxes) == MAPS
        left, top, width = boxes[number]
        assert (left + width / 2, top + width / 2) == pytest.approx(middle, abs=1)
        maps = page.locator(".xg-card [data-g]").evaluate_all(BOXES)
        assert {(round(x - left), round(y - top)) for (x, y, _), (left, top, _) in zip(boxes, maps, strict=True)} == {
            (round(boxes[0][0] - maps[0][0]), round(boxes[0][1] - maps[0][1]))
        }
    page.mouse.move(1, 1)
    expect(page.locator(".xg-tip")).to_be_hidden()
    expect_held(page, "nothing", 1)


def test_a_click_pins_a_patch_on_every_card_and_another_frees_it(
    server: Server, open_page: Open, scheme: Scheme
) -> None:
    page = opened(server, open_page, "opacity=100", scheme=scheme)
    assert ringed(page, 20, scheme) == [False] * MAPS
    click(page, 20, 1)
    expect_held(page, "20", 2)
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned row 3, column 5")
    assert ringed(page, 20, scheme) == [True] * MAPS
    click(page, 43)
    expect_held(page, "20,43", 3)
    click(page, 20)
    expect_held(page, "43", 4)
    assert ringed(page, 20, scheme) == [False] * MAPS
    assert ringed(page, 43, scheme) == [True] * MAPS
    expect(hint(page)).to_be_visible()
    clear(page).click()
    expect_held(page, "nothing", 5)
    expect(hint(page)).to_be_visible()


def test_a_fast_stroke_paints_without_gaps_and_one_from_a_pin_frees(page: Page) -> None:
    hover(page, 16)
    page.mouse.down()
    hover(page, 23)
    page.mouse.up()
    expect_held(page, "16,17,18,19,20,21,22,23", 2)
    hover(page, 19)
    page.mouse.down()
    hover(page, 22)
    hover(page, 38)
    page.mouse.up()
    expect_held(page, "16,17,18,23", 3)


def test_a_click_with_shift_pins_the_rectangle_from_the_last_click(page: Page) -> None:
    click(page, 9)
    expect_held(page, "9", 2)
    page.keyboard.down("Shift")
    click(page, 18, 1)
    page.keyboard.up("Shift")
    expect_held(page, "9,10,17,18", 3)
    page.keyboard.press("Escape")
    expect_held(page, "nothing", 4)


def test_a_value_is_beside_its_patch_and_never_over_it_not_even_at_the_top_of_the_window(page: Page) -> None:
    the_map(page).focus()
    for scrolled in ("end", "start"):
        the_map(page).evaluate(f"map => map.scrollIntoView({{ block: '{scrolled}' }})")
        for key in ("Home", "End", "PageDown", "Home", "PageUp"):
            page.keyboard.press(key)
            tooltip, patch = boxes_of(page.locator(".xg-tip"), the_map(page).locator(".xg-lit"))
            is_below = tooltip["y"] >= patch["y"] + patch["height"]
            assert is_below or tooltip["y"] + tooltip["height"] <= patch["y"]
            assert tooltip["x"] >= 0
            assert tooltip["x"] + tooltip["width"] <= 1280
            assert tooltip["y"] >= 0


def test_keys_alone_move_pin_and_clear_and_the_place_is_kept(page: Page) -> None:
    slider(page).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    first = the_map(page)
    expect(first).to_be_focused()
    expect(first).to_have_css("outline-style", "solid")
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    told = page.locator(".xg-unseen[aria-live=polite]")
    expect(told).to_have_text(tip(view(0), COLUMNS))
    page.keyboard.press("Space")
    expect_held(page, f"{COLUMNS}", 2)
    expect(first).to_be_focused()
    expect(told).to_have_text(f"{tip(view(0), COLUMNS)} · pinned")
    for key in ("End", "PageDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect_held(page, f"{COLUMNS},{ROWS * COLUMNS - 1}", 3)
    expect(first).to_be_focused()
    page.keyboard.press("Escape")
    expect_held(page, "nothing", 4)
    expect(first).to_be_focused()


def test_a_pin_while_the_script_runs_interrupts_it_and_is_kept(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, hasty=True)
    page.get_by_role("button", name="Run slowly").click()
    expect(page.get_by_text("Still running")).to_be_visible()
    click(page, 3)
    click(page, 5)
    expect(page.get_by_text("Python holds 3,5 after")).to_be_visible(timeout=15_000)


def test_what_python_holds_wins(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "pins=9,10,11,12")
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned 4 of 64 patches")
    page.get_by_role("button", name="Pin the fourth patch").click()
    expect_held(page, "3", 2)
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_text("Pinned row 1, column 4")


def test_a_finger_pins_and_sees_the_value_and_nothing_is_wider_than_a_phone(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, width=390, height=844, touch=True)
    the_map(page).scroll_into_view_if_needed()
    page.touchscreen.tap(*at_patch(page, 12))
    expect_held(page, "12", 2)
    expect(page.get_by_text(tip(view(0), 12), exact=True)).to_be_visible()
    box = box_of(page.locator(".xg-tip"))
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    expect_fits(page)
    lefts = {round(x) for x, _, _ in page.locator(".xg-card .xg-patches").evaluate_all(BOXES)}
    assert len(lefts) == 2, "two cards side by side"
