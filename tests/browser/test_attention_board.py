"""The board of heads in Chromium: every pixel of its thumbnails, hovering, locking, isolating, keys, names."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import PALETTES, Side
from engine.heads.readings import HeadReading
from tests.browser.conftest import TIMEOUT_MS, Scheme
from tests.browser.heads_seen import SCORES, THUMBS, cell, enlarged, grid, levels, ramp, rgb, thumbnails
from tests.browser.server import Server
from tests.browser.waiting import box_of, boxes_of, expect_fits
from tests.head_readings import CAUSAL, LARGE, causal_reading, picture_reading, text_reading

Open = Callable[..., Page]
TALL = 1400
"""Pixels: all thumbnails are in sight."""
EXACT = 1
"""Levels of 255 by which the browser's own rounding may differ."""
STEP = 3
"""The same where a value was rounded twice, so that it may lie a step of the scale away."""


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    """The page of the board alone."""
    return parts.page("attention")


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return opened(server, open_page)


@pytest.fixture(scope="module")
def text() -> HeadReading:
    return text_reading()


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    page = open_page(f"{server.url}?{query}", **{"height": TALL, **more})
    expect(page.locator("canvas[data-drawn]")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("after 1 runs")).to_be_visible(timeout=TIMEOUT_MS)
    return page


def expect_held(page: Page, head: str, alone: bool, runs: int | None = None, query: str = "None") -> None:
    """What Python holds, after so many runs if that is asked."""
    wanted = re.escape(f"Python holds {head} alone {alone} query {query} after ") + str(runs or r"\d+")
    expect(page.get_by_text(re.compile(f"^{wanted} runs$"))).to_be_visible(timeout=TIMEOUT_MS)


def facts(page: Page) -> Locator:
    """What is said of the head that is shown closely."""
    return page.get_by_role("region", name="One head").locator("[aria-live]").first


def expect_shown(page: Page, head: str, how: str) -> None:
    layer, place = head.split(".")
    expect(facts(page)).to_have_text(re.compile(rf"^Layer {layer}, head {place}: .* · {how}$"))


def expect_color(page: Page, head: tuple[int, int], share: float, scheme: Scheme, score: str) -> None:
    """The cell of the score map is colored by its share of the largest, a slope by its side."""
    side: Side = "amount" if score == "importance" else "for" if share > 0 else "against"
    wanted = ramp(scheme, np.array(abs(share)), side)
    found = cell(page, f"{head[0]}.{head[1]}").evaluate("cell => getComputedStyle(cell).backgroundColor")
    assert np.abs(np.array(re.findall(r"\d+", found)[:3], dtype=int) - wanted).max() <= EXACT


@pytest.mark.parametrize(("scheme", "scale", "score"), [("light", "own", "importance"), ("dark", "shared", "off")])
def test_every_pixel_of_a_matrix_and_every_score_has_the_color_of_its_value(
    server: Server, open_page: Open, text: HeadReading, scheme: Scheme, scale: str, score: str
) -> None:
    page = opened(server, open_page, f"scale={scale}&score={score}", scheme=scheme)
    found = dict(thumbnails(page))
    assert len(found) == 72
    for head, seen in found.items():
        matrix = text.attention[head]
        shares = levels(matrix, matrix.max()) * (1 if scale == "own" else matrix.max() / text.attention.max())
        wanted = ramp(scheme, enlarged(shares, *seen.shape[:2]))
        assert np.abs(seen - wanted).max() <= EXACT, head
    values = text.scores["importance"] if score == "importance" else text.slope
    for head in ((0, 0), (2, 0), (3, 7), (5, 11)):
        expect_color(page, head, values[head] / np.abs(values).max(), scheme, score)


def test_faint_values_are_strengthened_where_that_is_asked(page: Page, text: HeadReading) -> None:
    page.get_by_role("region", name="All heads").get_by_label("Strengthen faint values").check()
    expect(page.get_by_text("gamma 0.5: half the color at a quarter of it")).to_be_visible()
    for head, seen in thumbnails(page):
        matrix = text.attention[head]
        wanted = ramp("light", enlarged(levels(matrix, matrix.max()), *seen.shape[:2]) ** 0.5)
        assert np.abs(seen - wanted).max() <= EXACT, head


def test_a_thumbnail_with_fewer_pixels_than_cells_shows_the_largest_of_each(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=picture&view=matrix")
    reading = picture_reading()
    found = dict(thumbnails(page))
    assert len(found) == LARGE[0] * LARGE[1]
    for head, seen in found.items():
        matrix = reading.attention[head]
        wanted = ramp("light", enlarged(levels(matrix, matrix.max()), *seen.shape[:2]))
        assert seen.shape[0] < LARGE[2]
        assert np.abs(seen - wanted).max() <= EXACT, head


@pytest.mark.parametrize("query", ["view=received", "query=57"])
def test_the_patches_of_a_picture_are_drawn_as_they_lie_in_it(server: Server, open_page: Open, query: str) -> None:
    page = opened(server, open_page, f"of=picture&{query}")
    reading = picture_reading()
    maps = reading.received(57 if "57" in query else None).reshape(*LARGE[:2], 14, 14)
    for head, seen in thumbnails(page):
        wanted = ramp("light", enlarged(levels(maps[head], maps[head].max()), *seen.shape[:2]))
        assert np.abs(seen - wanted).max() <= STEP, head


def test_where_a_causal_model_may_not_attend_is_hatched_and_never_a_zero(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=causal", scheme="dark")
    masked = [rgb(PALETTES["dark"].special), rgb(PALETTES["dark"].line)]
    reading = causal_reading()
    future = np.isnan(reading.attention[0, 0])
    for head, seen in thumbnails(page):
        matrix = np.nan_to_num(reading.attention[head])
        allowed = ~enlarged(future, *seen.shape[:2]).astype(bool)
        wanted = ramp("dark", enlarged(levels(matrix, matrix.max()), *seen.shape[:2]))
        assert np.abs(seen - wanted)[allowed].max() <= EXACT, head
        near = [np.abs(seen - one).max(-1) <= EXACT for one in masked]
        assert (near[0] | near[1])[~allowed].all(), head
        assert near[1][~allowed].any(), "lines"
    expect(page.get_by_text("masked, because the model reads from left to right")).to_be_visible()
    assert len(CAUSAL) == future.shape[0]


def test_bars_are_as_high_as_what_their_tokens_receive(server: Server, open_page: Open, text: HeadReading) -> None:
    page = opened(server, open_page, "view=received")
    maps = text.received()
    full = ramp("light", np.array(1.0))
    for head, seen in thumbnails(page):
        height, width = seen.shape[:2]
        filled = (np.abs(seen - full).max(-1) <= EXACT).sum(0)
        middles = ((np.arange(10) + 0.4) * width / 10).astype(int)
        wanted = maps[head] / maps[head].max() * height
        assert np.abs(filled[middles] - wanted).max() <= 1, head


def test_each_cell_is_named_and_hovering_shows_its_head_in_both_grids_and_closely_without_a_run(
    page: Page, text: HeadReading
) -> None:
    for name in (SCORES, THUMBS):
        expect(grid(page, name).get_by_role("gridcell")).to_have_count(72)
        expect(grid(page, name).get_by_role("rowheader")).to_have_count(6)
        expect(grid(page, name).get_by_role("columnheader", name="head 11")).to_have_count(1)
        value = f"{text.scores['importance'][3, 7]:.3g}"
        wanted = f"layer 3, head 7: Importance for the class {value} logit, rank "
        expect(grid(page, name).get_by_role("gridcell", name=wanted)).to_have_count(1)
    expect_shown(page, "2.0", "the strongest")
    for grid_name, head in ((SCORES, "1.3"), (THUMBS, "4.9")):
        cell(page, head, grid_name).hover()
        expect_shown(page, head, "click to lock")
        value = text.scores["importance"][tuple(map(int, head.split(".")))]
        expect(facts(page)).to_contain_text(f"class {value:.3g} logit, rank ")
        order = (text.scores["importance"] >= value).sum()
        expect(facts(page)).to_contain_text(f"rank {order} of 72")
        for name in (SCORES, THUMBS):
            expect(cell(page, head, name)).to_have_class(re.compile("xg-lit-head"))
    page.mouse.move(1, 1)
    expect_shown(page, "2.0", "the strongest")
    expect_held(page, "None", False, 1)


def test_a_click_locks_a_head_escape_lets_go_and_double_clicks_isolate_it_and_bring_all_back(page: Page) -> None:
    cell(page, "1.3", THUMBS).click()
    expect_held(page, "(1, 3)", False, 2)
    page.mouse.move(1, 1)
    expect_shown(page, "1.3", "locked")
    expect(cell(page, "1.3")).to_have_attribute("aria-selected", "true")
    cell(page, "5.5").hover()
    expect_shown(page, "5.5", "click to lock")
    page.mouse.move(1, 1)
    expect_shown(page, "1.3", "locked")
    page.keyboard.press("Escape")
    expect_held(page, "None", False, 3)
    expect_shown(page, "2.0", "the strongest")
    cell(page, "1.3").dblclick()
    expect_held(page, "(1, 3)", True)
    expect(page.get_by_role("button", name="Alone", pressed=True)).to_be_visible()
    page.mouse.move(1, 1)
    expect(grid(page, SCORES).locator(".xg-dim")).to_have_count(71)
    cell(page, "1.3").dblclick()
    expect_held(page, "(1, 3)", False)
    expect(grid(page, SCORES).locator(".xg-dim")).to_have_count(0)
    page.get_by_role("button", name="Unlock").click()
    expect_held(page, "None", False)


def test_keys_alone_reach_show_and_lock_a_head(page: Page) -> None:
    for name, runs in ((SCORES, 2), (THUMBS, 3)):
        start = grid(page, name).locator("[tabindex='0']")
        expect(start).to_have_count(1)
        start.focus()
        for press in ("Home", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowRight"):
            page.keyboard.press(press)
        head = page.evaluate("document.activeElement.dataset.head")
        assert head.endswith(".11")
        expect_shown(page, head, "click to lock" if runs == 2 else "locked")
        page.keyboard.press("ArrowLeft" if runs == 3 else "ArrowDown")
        head = page.evaluate("document.activeElement.dataset.head")
        expect_shown(page, head, "click to lock")
        page.keyboard.press("Enter")
        expect_held(page, f"({head.replace('.', ', ')})", False, runs)
        assert page.evaluate("document.activeElement.dataset.head") == head, "the keyboard's place is kept"


def test_by_score_the_largest_comes_first_with_its_name_and_filters_hold(
    server: Server, open_page: Open, text: HeadReading
) -> None:
    page = opened(server, open_page, "order=score&score=off&layers=1,3&heads=0,5,7&switched=3.7x0,1.0x0.5")
    sizes = {f"{layer}.{head}": abs(text.slope[layer, head]) for layer in (1, 3) for head in (0, 5, 7)}
    cells = grid(page, THUMBS).get_by_role("gridcell")
    expect(cells).to_have_count(6)
    expect(grid(page, SCORES).get_by_role("gridcell")).to_have_count(6)
    order = cells.evaluate_all("cells => cells.map(cell => cell.dataset.head)")
    assert order == sorted(sizes, key=lambda name: -sizes[name])
    badges = dict(zip(order, cells.evaluate_all("cells => cells.map(cell => cell.dataset.badge)"), strict=True))
    assert badges == {name: name for name in sizes} | {"3.7": "3.7 off", "1.0": "1.0 ×0.5"}
    expect(cell(page, "3.7", THUMBS)).to_have_accessible_name(re.compile("switched off$"))
    expect(cell(page, "1.0")).to_have_accessible_name(re.compile("scaled by 0.5$"))


def test_a_patch_of_the_picture_that_is_clicked_becomes_the_one_that_looks(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=picture")
    patches = page.get_by_role("application", name=re.compile("over the picture"))
    box = box_of(patches)
    patches.click(position={"x": box["width"] * 2.5 / 14, "y": box["height"] * 3.5 / 14})
    expect_held(page, "None", False, 2, query=str(1 + 3 * 14 + 2))
    expect(page.get_by_text("Attention from “row 4, column 3”", exact=True)).to_be_visible()


def test_one_token_has_a_board_too(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=one")
    full = ramp("light", np.array(1.0))
    for _, seen in thumbnails(page):
        assert np.abs(seen - full).max() <= EXACT


def test_a_long_text_says_what_was_drawn_together(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=long")
    expect(page.get_by_text("512 positions are drawn as 256 x 256 cells")).to_be_visible()


def test_on_a_phone_the_head_stands_under_the_scores_and_a_finger_locks(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, width=390, height=844, touch=True)
    tops = boxes_of(*(page.get_by_role("region", name=name) for name in ("Map of scores", "One head", "All heads")))
    assert tops == sorted(tops, key=lambda box: box["y"])
    expect_fits(page)
    cell(page, "4.4").tap()
    expect_held(page, "(4, 4)", False, 2)
    expect_shown(page, "4.4", "locked")


def test_another_theme_colors_everything_anew(page: Page, text: HeadReading) -> None:
    page.emulate_media(color_scheme="dark")
    matrix, dark = text.attention[1, 2], rgb(PALETTES["dark"].ground)
    expect(page.locator(".stApp")).to_have_css("background-color", f"rgb({', '.join(map(str, dark))})")
    wanted = ramp("dark", enlarged(levels(matrix, matrix.max()), *dict(thumbnails(page))[1, 2].shape[:2]))
    assert np.abs(dict(thumbnails(page))[1, 2] - wanted).max() <= EXACT


def test_a_score_that_no_head_has_is_said_and_hatched(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=causal&score=special")
    expect(page.get_by_text("No head has this score for this input.")).to_be_visible()
    expect(grid(page, SCORES).locator(".xg-none")).to_have_count(72)
    expect_shown(page, "0.0", "the first")
    expect(cell(page, "0.0")).to_have_accessible_name("layer 0, head 0: Attention to special tokens no value")
