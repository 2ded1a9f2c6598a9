"""The drawings of one head in Chromium: values, colors and words of a matrix, of lines and of a map over a picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import STEPS, color
from tests.browser import detail_page
from tests.browser.conftest import Scheme
from tests.browser.server import Server
from tests.browser.waiting import PAINTED, box_of, expect_fits, pixels, settled

Open = Callable[..., Page]
LAYER, HEAD = 1, 7
WORDS = detail_page.WORDS
DRAWING = "canvas => canvas.toDataURL()"
CLEAR = 20
"""Levels of 255 between two brightnesses that anybody tells apart."""


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    return parts.page("detail")


def opened(server: Server, open_page: Open, query: str, **more: object) -> Page:
    return settled(open_page(f"{server.url}?{query}", **more))


def said(page: Page) -> Locator:
    return page.locator(".xg-one > .xg-said")


def matrix(page: Page) -> Locator:
    return page.get_by_role("application", name="Attention of head")


def go_to(page: Page, row: int, column: int) -> None:
    """By keys, from the first cell."""
    matrix(page).focus()
    page.keyboard.press("Home")
    for _ in range(row):
        page.keyboard.press("ArrowDown")
    for _ in range(column):
        page.keyboard.press("ArrowRight")


def values(name: str = "text") -> np.ndarray:
    found: np.ndarray = detail_page.attention(name)[LAYER, HEAD].astype(np.float64)
    return found


def printed(value: float) -> str:
    """Three significant digits, as JavaScript writes them."""
    return np.format_float_positional(float(f"{value:.3g}"), trim="-")


def rgb(value: str) -> np.ndarray:
    return np.array([int(value[at : at + 2], 16) for at in (1, 3, 5)])


def cell_colors(shown: np.ndarray, rows: int, columns: int, side: int = 36) -> np.ndarray:
    """The middles of the cells, which end two pixels before the right and lower edge."""
    bottom, right = shown.shape[0] - 2, shown.shape[1] - 2
    ys = bottom - side * (rows - np.arange(rows)) + side // 2
    xs = right - side * (columns - np.arange(columns)) + side // 2
    return shown[np.ix_(ys, xs)]


def cell_at(shown: np.ndarray, row: int, column: int, count: int = 12, side: int = 36) -> np.ndarray:
    """The inner pixels of a cell."""
    top, left = shown.shape[0] - 2 - side * (count - row), shown.shape[1] - 2 - side * (count - column)
    return shown[top + 4 : top + side - 4, left + 4 : left + side - 4]


def stripes(seen: np.ndarray) -> int:
    """How many lines a person sees along the middle row: it is as often clearly darker or lighter than around them.

    However a browser smoothes a line, its brightness leaves that of the ground and comes back.
    """
    brightness = seen[len(seen) // 2].mean(axis=1)
    if np.ptp(brightness) < CLEAR:
        return 0
    side = brightness > (brightness.min() + brightness.max()) / 2
    return int((np.diff(side.astype(int)) != 0).sum()) // 2


def test_the_matrix_says_the_exact_value_and_where_the_row_looks(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "whole=1")
    go_to(page, 2, 9)
    expect(said(page)).to_contain_text(f"2 actors → 9 good: {printed(values()[2, 9])}")
    best = int(values()[2].argmax())
    expect(said(page)).to_contain_text(f"2 actors attends most to {best} {WORDS[best]} ({printed(values()[2, best])})")
    expect(said(page)).to_contain_text("Its row sums to 1.00.")
    expect(page.locator(".xg-one > [aria-live]")).to_contain_text("2 actors → 9 good")


def test_a_value_of_a_byte_is_said_to_be_about_it(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=text")
    go_to(page, 2, 9)
    expect(said(page)).to_contain_text("2 actors → 9 good: about ")
    words = said(page).inner_text().split("about ")[1].split("\n")[0]
    assert float(words) == pytest.approx(values()[2, 9], abs=values().max() / 508 + 0.0005)


def test_hovering_a_cell_says_its_value_and_a_label_its_row(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "whole=1")
    box = box_of(matrix(page))
    right, bottom = box["x"] + box["width"] - 2, box["y"] + box["height"] - 2
    page.mouse.move(right - 36 * 3 + 10, bottom - 36 * 2 + 10)
    expect(said(page)).to_contain_text(f"10 good → 9 good: {printed(values()[10, 9])}")
    page.mouse.move(box["x"] + 5, bottom - 10)
    expect(said(page)).to_contain_text("11 [SEP] attends most to")
    page.mouse.move(1, 1)
    expect(said(page)).to_contain_text("Rows are queries, columns are keys.")


def test_cells_have_the_colors_of_the_palette(server: Server, open_page: Open, scheme: Scheme) -> None:
    page = opened(server, open_page, "whole=1", scheme=scheme)
    shares = values() / values().max()
    near = np.array([[rgb(color(scheme, "amount", round(STEPS * share))) for share in row] for row in shares])
    palette = np.array([rgb(color(scheme, "amount", step)) for step in range(STEPS + 1)])
    step = np.abs(np.diff(palette, axis=0)).max()
    shown = cell_colors(pixels(matrix(page)), 12, 12)
    assert np.abs(shown - near).max() <= step, "colors lie between two steps of the palette"
    at = np.unravel_index(shares.argmax(), shares.shape)
    assert np.abs(shown[at] - rgb(color(scheme, "amount", STEPS))).max() <= 1


def test_where_a_token_may_not_attend_there_is_a_hatch_and_no_number(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=causal&whole=1")
    expect(page.get_by_text("masked", exact=True)).to_be_visible()
    go_to(page, 2, 9)
    expect(said(page)).to_contain_text("2 actors → 9 good: masked")
    expect(said(page)).to_contain_text("Its row sums to 1.00.")
    shown = pixels(matrix(page))
    assert stripes(cell_at(shown, 0, 11)) >= 3, "lines on the ground"
    assert stripes(cell_at(shown, 11, 0)) == 0, "a color alone"
    allowed = opened(server, open_page, "show=text")
    expect(allowed.get_by_text("masked", exact=True)).to_be_hidden()


def test_one_token_is_a_matrix_of_one_cell(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=one&whole=1")
    go_to(page, 1, 1)
    expect(said(page)).to_contain_text("0 good → 0 good: 1")
    expect(page.get_by_role("button", name="Zoom in")).to_be_hidden()


def test_texts_of_a_pair_are_told_apart_and_a_part_is_said_to_be_one(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=pair&between=a_to_b&whole=1")
    go_to(page, 3, 1)
    expect(said(page)).to_contain_text(f"A 3 are → B 13 dull: {printed(values('pair')[3, 13])}")
    part = values("pair")[3, 12:].sum()
    expect(said(page)).to_contain_text(f"Its row sums to {part:.2f} over the tokens shown and to 1 over all.")
    expect(page.get_by_text("A: first text, B: second text")).to_be_visible()


def test_a_long_text_is_shrunk_and_says_so_and_whole_where_it_is_locked(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=long")
    note = page.get_by_text("512 × 512 values are drawn as 256 × 256 cells, each the largest of 2 × 2.")
    expect(note).to_be_visible()
    whole = opened(server, open_page, "show=long&whole=1")
    expect(whole.get_by_text("512 × 512 values are drawn as")).to_be_hidden()
    go_to(whole, 4, 3)
    expect(said(whole)).to_contain_text(f"4 word4 → 3 word3: {printed(values('long')[4, 3])}")


def test_zoom_by_keys_wheel_and_buttons_and_dragging_moves(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=long&whole=1")
    start = pixels(matrix(page))
    page.get_by_role("button", name="Zoom in").click()
    closer = pixels(matrix(page))
    assert (closer != start).any()
    page.get_by_role("button", name="Whole").click()
    assert (pixels(matrix(page)) == start).all()
    matrix(page).focus()
    for key in "+++++++++":
        page.keyboard.press(key)
    under = cell_under(page)
    page.mouse.down()
    page.mouse.move(*middle(page, -78))
    page.mouse.up()
    page.mouse.move(*middle(page, 0))
    row, column = cell_under(page)
    assert (row - under[0], column - under[1]) == (3, 3), "78 pixels are 3 of the largest cells"
    page.keyboard.press("0")
    page.evaluate(PAINTED)
    whole = matrix(page).evaluate(DRAWING)
    page.mouse.wheel(0, -300)
    page.wait_for_function(
        f"([canvas, whole]) => ({DRAWING})(canvas) !== whole", arg=[matrix(page).element_handle(), whole]
    )
    zoomed = pixels(matrix(page))
    page.keyboard.press("0")
    assert (pixels(matrix(page)) != zoomed).any()


def test_faint_values_are_strengthened_and_the_legend_says_how(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "whole=1")
    expect(page.get_by_text("gamma")).to_be_hidden()
    plain = cell_colors(pixels(matrix(page)), 12, 12)
    page.get_by_role("checkbox", name="Strengthen faint values").check()
    half = printed(values().max() / 4)
    expect(page.get_by_text(f"gamma 0.5: half the color at {half}")).to_be_visible()
    shares = values() / values().max()
    strong = cell_colors(pixels(matrix(page)), 12, 12)
    darker = (plain - strong).sum(axis=2)
    assert (darker[(shares > 0.02) & (shares < 0.9)] > 0).all()
    assert np.abs(darker[shares == 1]).max() == 0


def middle(page: Page, aside: float) -> tuple[float, float]:
    box = box_of(matrix(page))
    return box["x"] + 0.6 * box["width"] + aside, box["y"] + 0.6 * box["height"] + aside


def cell_under(page: Page) -> tuple[int, int]:
    """The cell that is said of the middle."""
    page.mouse.move(*middle(page, 1))
    page.mouse.move(*middle(page, 0))
    page.evaluate(PAINTED)
    row, column = said(page).locator("b").inner_text().split(":")[0].split(" → ")
    return int(row.split()[0]), int(column.split()[0])


def test_without_focus_the_wheel_scrolls_the_page(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "show=long", height=500)
    start = matrix(page).evaluate(DRAWING)
    page.mouse.move(*middle(page, 0))
    page.mouse.wheel(0, 200)
    page.mouse.move(1, 1)
    assert matrix(page).evaluate(DRAWING) == start


def test_a_finger_sees_a_value_and_nothing_is_wider_than_a_phone(server: Server, open_page: Open) -> None:
    for query in ("show=sixty&width=350", "show=sixty&width=350&detail=lines", "show=image&width=350&detail=overlay"):
        page = opened(server, open_page, query, width=390, height=844, touch=True)
        expect_fits(page)
    page = opened(server, open_page, "show=sixty&width=350", width=390, height=844, touch=True)
    page.touchscreen.tap(*middle(page, 0))
    expect(said(page)).to_contain_text("→")
