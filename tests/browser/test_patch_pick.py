"""Maps of a picture in Chromium: colours and edges of every patch, and pinning by click, stroke, touch and key."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from components.palette import PALETTES, colour, step_of
from components.picture.patch_image import blended
from components.picture.patch_map import PatchMap, tip
from tests.browser import patch_page
from tests.browser.conftest import TIMEOUT_MS, Scheme, Watch
from tests.browser.server import Server, running
from tests.project import ROOT

Open = Callable[..., Page]
GRID = ROWS, COLUMNS = patch_page.GRID
MAPS = 4
BOXES = "boxes => boxes.map(box => box.getBoundingClientRect()).map(({ x, y, width }) => [x, y, width])"
LARGE = ".st-key-picture_cards { grid-template-columns: repeat(2, 256px) !important; column-gap: 16px !important }"
"""Each pixel of the picture takes four of the screen."""
EXACT = 1
"""Levels of 255 by which the browser's own rounding may differ."""


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page of four maps and the strip alone."""
    script = str(Path(ROOT, "tests/browser/patch_page.py"))
    with running(tmp_path_factory.mktemp("server"), "streamlit", script) as one:
        yield one


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return opened(server, open_page)


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    page = open_page(f"{server.url}/?{query}", **more)
    expect(hint(page).or_(clear(page))).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("after 1 runs")).to_be_visible(timeout=TIMEOUT_MS)
    return page


def the_map(page: Page, number: int = 0) -> Locator:
    return page.get_by_role("application", name=title(number), exact=True)


def title(number: int) -> str:
    return f"{'Unsigned' if number % 2 else 'Signed'} map {number}"


def hint(page: Page) -> Locator:
    return page.get_by_text("Click a patch to pin it")


def clear(page: Page) -> Locator:
    return page.get_by_role("button", name="Clear", exact=True)


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Opacity of the maps in percent")


def view(number: int) -> PatchMap:
    return patch_page.card(number, signed=number % 2 == 0).view


def at_patch(page: Page, at: int, number: int = 0) -> tuple[float, float]:
    """The middle of a patch on the screen."""
    box = the_map(page, number).bounding_box()
    assert box is not None
    row, column = divmod(at, COLUMNS)
    return box["x"] + (column + 0.5) * box["width"] / COLUMNS, box["y"] + (row + 0.5) * box["height"] / ROWS


def hover(page: Page, at: int, number: int = 0) -> None:
    page.mouse.move(*at_patch(page, at, number))


def click(page: Page, at: int, number: int = 0) -> None:
    page.mouse.click(*at_patch(page, at, number))


def expect_held(page: Page, pins: str, runs: int) -> None:
    expect(page.get_by_text(re.compile(rf"^Python holds {pins} after {runs} runs$"))).to_be_visible(timeout=TIMEOUT_MS)


def pixels(place: Locator) -> np.ndarray:
    """What is seen, as height x width x 3."""
    with Image.open(io.BytesIO(place.screenshot(animations="disabled"))) as file:
        return np.asarray(file.convert("RGB")).astype(int)


def cells(seen: np.ndarray, margin: int) -> Iterator[np.ndarray]:
    """The pixels of each patch but for those within `margin` of its edges, row by row."""
    downs, rights = (np.linspace(0, size, parts + 1) for size, parts in zip(seen.shape[:2], GRID, strict=True))
    for top, bottom in pairwise(downs):
        for left, right in pairwise(rights):
            yield seen[round(top) + margin : round(bottom) - margin, round(left) + margin : round(right) - margin]


def same(shot: np.ndarray, wanted: np.ndarray, levels: int = EXACT) -> bool:
    """Whether a shot is this picture; it has a line more where the place begins between two pixels of the screen."""
    height, width = wanted.shape[:2]
    spare = range(1 + shot.shape[0] - height), range(1 + shot.shape[1] - width)
    cuts = [shot[top : top + height, left : left + width] for top, left in product(*spare)]
    return any(np.abs(cut - wanted).max() <= levels for cut in cuts)


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])


def expected_colours(shown: PatchMap, scheme: Scheme) -> list[np.ndarray]:
    """By the palette alone, patch by patch."""
    sides = ["amount" if not shown.signed else "for" if value > 0 else "against" for value in shown.scores.flat]
    steps = [step_of(value, shown.scale) for value in shown.scores.flat]
    return [rgb(colour(scheme, side, step)) for side, step in zip(sides, steps, strict=True)]


def ringed(page: Page, at: int, scheme: Scheme = "light") -> list[bool]:
    """On which cards the patch has a ring in the colour of the text."""
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


@pytest.mark.parametrize("number", [0, 1])
def test_at_full_opacity_each_patch_has_the_colour_of_its_score_to_its_edges(
    server: Server, open_page: Open, scheme: Scheme, number: int
) -> None:
    page = opened(server, open_page, "opacity=100", scheme=scheme)
    shown = pixels(the_map(page, number))
    for cell, wanted in zip(cells(shown, 1), expected_colours(view(number), scheme), strict=True):
        assert np.abs(cell - wanted).max() <= EXACT


def test_flipped_every_card_is_the_picture_as_the_model_sees_it(page: Page) -> None:
    page.add_style_tag(content=LARGE)
    page.get_by_role("button", name="Picture alone").click()
    expect(page.get_by_role("button", name="Picture alone", pressed=True)).to_be_visible()
    wanted = np.kron(patch_page.seen(), np.ones((4, 4, 1), int))
    for place in (page.get_by_role("img", name="Picture"), *(the_map(page, number) for number in range(MAPS))):
        assert same(pixels(place), wanted)
    expect_held(page, "nothing", 1)


@pytest.mark.parametrize("number", [0, 1])
def test_over_the_picture_a_map_looks_as_in_its_file(
    server: Server, open_page: Open, scheme: Scheme, number: int
) -> None:
    page = opened(server, open_page, scheme=scheme)
    page.add_style_tag(content=LARGE)
    wanted = blended(patch_page.seen(), view(number), scheme).astype(int)
    assert same(pixels(the_map(page, number)), wanted, 3)


def test_holding_f_flips_for_a_moment_and_without_a_run(page: Page) -> None:
    over = the_map(page).locator(".xg-over")
    expect(over).to_have_css("opacity", "0.7")
    hover(page, 9)
    page.keyboard.down("f")
    expect(over).to_have_css("opacity", "0")
    page.keyboard.up("f")
    expect(over).to_have_css("opacity", "0.7")
    page.mouse.move(1, 1)
    page.keyboard.down("f")
    expect(over).to_have_css("opacity", "0.7")
    page.keyboard.up("f")
    expect_held(page, "nothing", 1)


def test_the_slider_acts_at_once_and_is_remembered(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "opacity=40")
    over = the_map(page, 3).locator(".xg-over")
    expect(over).to_have_css("opacity", "0.4")
    expect(slider(page)).to_have_value("40")
    slider(page).focus()
    page.keyboard.press("ArrowRight")
    expect(over).to_have_css("opacity", "0.45")
    expect_held(page, "nothing", 1)
    page.get_by_role("button", name="Run again").click()
    expect_held(page, "nothing", 2)
    expect(over).to_have_css("opacity", "0.45")
    expect(slider(page)).to_have_value("45")


def test_python_learns_of_the_opacity_where_it_asks_and_its_late_answers_move_nothing(
    server: Server, open_page: Open
) -> None:
    page = opened(server, open_page, "asks=1")
    slider(page).focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("Opacity 40", exact=True)).to_be_visible()
    expect(slider(page)).to_have_value("40")
    expect(the_map(page).locator(".xg-over")).to_have_css("opacity", "0.4")


@pytest.mark.parametrize("number", [0, 1])
def test_hovering_says_value_rank_and_place_and_lights_the_patch_everywhere(page: Page, number: int) -> None:
    shown = view(number)
    for at in range(number, ROWS * COLUMNS, 7):
        hover(page, at, number)
        expect(page.get_by_text(tip(shown, at), exact=True)).to_be_visible()
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


def test_a_pin_while_the_script_runs_interrupts_it_and_is_kept(page: Page) -> None:
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


def test_a_finger_pins_and_sees_the_value_and_nothing_is_wider_than_a_phone(
    server: Server, browser: Browser, watch: Watch
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    watch.attach(context)
    page = context.new_page()
    page.goto(server.url)
    expect(hint(page)).to_be_visible(timeout=TIMEOUT_MS)
    the_map(page).scroll_into_view_if_needed()
    page.touchscreen.tap(*at_patch(page, 12))
    expect_held(page, "12", 2)
    box = page.locator(".xg-tip").bounding_box()
    expect(page.get_by_text(tip(view(0), 12), exact=True)).to_be_visible()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    lefts = {round(x) for x, _, _ in page.locator(".xg-card .xg-patches").evaluate_all(BOXES)}
    assert len(lefts) == 2, "two cards side by side"
    context.close()


def test_the_outline_of_the_truth_runs_where_the_mask_ends(server: Server, open_page: Open) -> None:
    plain, outlined = (
        pixels(opened(server, open_page, query).get_by_role("img", name="Picture")) for query in ("", "truth=1")
    )
    changed = np.abs(plain - outlined).max(axis=2) > EXACT
    scale = changed.shape[0] / patch_page.SIDE
    mask = np.kron(patch_page.sun(), np.ones((8, 8), bool))
    edge = np.zeros_like(mask)
    edge[:-1] |= mask[:-1] ^ mask[1:]
    edge[:, :-1] |= mask[:, :-1] ^ mask[:, 1:]
    places = np.argwhere(edge) / 8 * scale
    found = np.argwhere(changed)
    assert len(found) > 100
    distances = np.sqrt(((found[:, None] + 0.5 - places[None]) ** 2).sum(axis=2)).min(axis=1)
    assert distances.max() <= 4
    gaps = np.sqrt(((places[:, None] - found[None] - 0.5) ** 2).sum(axis=2)).min(axis=1)
    assert gaps.max() <= 2, "the line is closed"


def test_every_map_has_a_name_and_says_its_largest_patches(page: Page) -> None:
    for number in range(MAPS):
        expect(the_map(page, number)).to_have_attribute(
            "aria-description", re.compile(r"^8 rows, 8 columns\. Largest: ")
        )
        expect(the_map(page, number)).to_have_attribute("tabindex", "0")
