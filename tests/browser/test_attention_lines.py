"""Lines between tokens, and a head's map over a picture, in Chromium."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import PALETTES
from components.widgets.attention_board import head_color
from components.widgets.patch_map import PatchMap
from components.widgets.patch_map.png import blended
from engine.heads.scores import received
from tests.browser import detail_page
from tests.browser.conftest import Scheme
from tests.browser.server import Server
from tests.browser.test_attention_detail import HEAD, LAYER, Open, opened, rgb, said, server, values
from tests.browser.waiting import box_of, boxes_of, pixels

__all__ = ["server"]
ROWS, COLUMNS = detail_page.GRID


def token(page: Page, side: str, name: str) -> Locator:
    return page.get_by_role("listbox", name=side).get_by_role("option", name=name, exact=True)


def the_map(page: Page) -> Locator:
    return page.get_by_role("application", name="Map of head 1.7 over the picture")


def received_map() -> np.ndarray:
    """What each patch receives, by hand: the mean over all positions."""
    found: np.ndarray = values("image")[:, 1:].mean(axis=0)
    return found


def patch_at(page: Page, at: int) -> tuple[float, float]:
    box = box_of(the_map(page))
    row, column = divmod(at, COLUMNS)
    return box["x"] + (column + 0.5) * box["width"] / COLUMNS, box["y"] + (row + 0.5) * box["height"] / ROWS


def test_a_token_in_hand_shows_its_lines_alone_with_their_values(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "detail=lines&alone=1")
    token(page, "Queries", "2 actors").hover()
    row = values()[2]
    for at, word in enumerate(detail_page.WORDS):
        told = token(page, "Keys", f"{at} {word}").locator("b")
        if row[at] > 0.015:
            expect(told).not_to_be_empty()
            assert float(told.inner_text()) == pytest.approx(row[at], abs=0.007)
        elif row[at] < 0.005:
            expect(told).to_be_empty()
    best = int(row.argmax())
    expect(said(page)).to_contain_text(f"2 actors attends most to {best} {detail_page.WORDS[best]} about")
    page.mouse.move(1, 1)
    expect(said(page)).to_contain_text("Left: queries.")


def test_of_several_heads_the_mean_stands_beside_a_token(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "detail=lines")
    token(page, "Keys", "9 good").hover()
    column = detail_page.attention("text")[LAYER, :, :, 9].astype(float)
    for at, word in enumerate(detail_page.WORDS):
        told = token(page, "Queries", f"{at} {word}").locator("b")
        if column[:, at].mean() > 0.006:
            expect(told).not_to_be_empty()
            assert float(told.inner_text()) == pytest.approx(column[:, at].mean(), abs=0.007)
    head, row = np.unravel_index(column.argmax(), column.shape)
    expect(said(page)).to_contain_text(f"9 good receives most attention from {row} {detail_page.WORDS[row]} about")
    expect(said(page)).to_contain_text(f"by 1.{head}")


def test_keys_go_through_both_sides(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "detail=lines&alone=1")
    token(page, "Queries", "0 [CLS]").focus()
    page.keyboard.press("ArrowDown")
    expect(token(page, "Queries", "1 the")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(token(page, "Keys", "1 the")).to_be_focused()
    expect(said(page)).to_contain_text("1 the receives most attention from")
    best = int(values()[:, 1].argmax())
    expect(page.locator(".xg-one > [aria-live]")).to_contain_text(f"from {best} {detail_page.WORDS[best]} about")


def test_a_line_has_the_hue_of_its_head_and_the_opacity_of_its_weight(
    server: Server, open_page: Open, scheme: Scheme
) -> None:
    page = opened(server, open_page, "show=one&detail=lines&alone=1", scheme=scheme)
    canvas = page.locator(".xg-lines-sheet > canvas")
    shown = pixels(canvas)
    assert np.abs(shown[10, shown.shape[1] // 2] - rgb(head_color(scheme, HEAD))).max() <= 4, "one token: weight 1"
    many = pixels(opened(server, open_page, "show=one&detail=lines", scheme=scheme).locator(".xg-lines-sheet > canvas"))
    wanted = rgb(PALETTES[scheme].ground).astype(float)
    for head in range(detail_page.HEADS):
        wanted += (rgb(head_color(scheme, head)) - wanted) / detail_page.HEADS
    assert np.abs(many[10, many.shape[1] // 2] - wanted).max() <= 8


def test_words_say_which_lines_are_not_drawn(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "detail=lines")
    expect(page.get_by_text("Lines below 0.01 are not drawn.")).to_be_visible()
    expect(page.get_by_text("divided by 12, the number of heads shown")).to_be_visible()
    expect(page.get_by_text("Scroll to see all tokens")).to_be_hidden()
    for head in range(detail_page.HEADS):
        expect(page.get_by_text(f"1.{head}", exact=True)).to_be_visible()
    long = opened(server, open_page, "show=long&detail=lines")
    long.get_by_role("button", name="All 12 heads").click()
    expect(long.get_by_text("are not drawn; for a selected token")).to_be_visible()
    expect(long.get_by_text("Scroll to see all tokens")).to_be_visible()


def test_the_map_lies_over_the_picture_as_on_the_images_page(server: Server, open_page: Open, scheme: Scheme) -> None:
    page = opened(server, open_page, "show=image&detail=overlay", scheme=scheme)
    page.add_style_tag(content=".xg-one > .xg-patches { width: 256px !important }")
    wanted = blended(detail_page.seen(), PatchMap(received_map().reshape(ROWS, COLUMNS), False, ""), scheme)
    times = 256 / wanted.shape[1]
    shown = pixels(the_map(page))
    for at in range(ROWS * COLUMNS):
        row, column = divmod(at, COLUMNS)
        y, x = ((np.array([row, column]) + 0.5) * detail_page.SIDE * 2).astype(int)
        assert np.abs(shown[y, x] - wanted[int(y / times), int(x / times)].astype(int)).max() <= 12


def test_a_patch_says_its_value_and_a_click_asks_where_it_looks(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=image&detail=overlay")
    found = received_map()
    page.mouse.move(*patch_at(page, 19))
    rank = 1 + int((found > found[19]).sum())
    expect(said(page)).to_have_text(re.compile(rf"^0\.\d+ · rank {rank} of 48 · row 3, column 4$"))
    assert float(said(page).inner_text().split()[0]) == pytest.approx(found[19], rel=0.01)
    page.mouse.click(*patch_at(page, 19))
    expect(page.get_by_text("Asked for 20", exact=True)).to_be_visible()


def test_keys_move_and_enter_asks_and_focus_stays(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=image&detail=overlay")
    the_map(page).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text(f"Asked for {2 + 2 * COLUMNS}", exact=True)).to_be_visible()
    expect(the_map(page)).to_be_focused()
    expect(page.locator(".xg-one > [aria-live]")).to_contain_text("row 3, column 2")


def test_the_patch_that_looks_is_outlined_and_the_token_that_does_is_named(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=image&detail=overlay&view=query&query=20")
    expect(page.get_by_text("Attention from the outlined patch, row 3, column 4.")).to_be_visible()
    ring, whole = boxes_of(page.locator(".xg-looking"), the_map(page))
    assert (ring["x"] - whole["x"]) / ring["width"] == pytest.approx(3, abs=0.05)
    assert (ring["y"] - whole["y"]) / ring["height"] == pytest.approx(2, abs=0.05)
    page.mouse.move(*patch_at(page, 5))
    expect(said(page)).to_contain_text("row 1, column 6")
    looks = received(detail_page.attention("image"), np.arange(1, 1 + ROWS * COLUMNS), 20)[LAYER, HEAD]
    assert float(said(page).inner_text().split()[0]) == pytest.approx(looks[5], rel=0.02, abs=1e-5)
    page = opened(server, open_page, "show=image&detail=overlay&view=query&query=0")
    expect(page.get_by_text("What [CLS] attends to.")).to_be_visible()
    expect(page.locator(".xg-looking")).to_be_hidden()


def test_the_slider_fades_to_the_picture(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=image&detail=overlay")
    over = the_map(page).locator(".xg-over")
    expect(over).to_have_css("opacity", "0.7")
    slider = page.get_by_role("slider", name="Opacity of the map in percent")
    slider.focus()
    page.keyboard.press("Home")
    expect(over).to_have_css("opacity", "0")
