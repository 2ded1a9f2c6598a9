"""Maps of a picture in Chromium: the colors and edges of every patch, at any opacity, and the picture below them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from components.palette import color, step_of
from components.widgets.patch_map import PatchMap
from components.widgets.patch_map.png import blended
from tests.browser import patch_page
from tests.browser.conftest import Scheme
from tests.browser.patch_seen import (
    GRID,
    MAPS,
    Open,
    expect_held,
    hover,
    opened,
    rgb,
    slider,
    the_map,
    view,
)
from tests.browser.server import Server
from tests.browser.waiting import pixels

LARGE = ".st-key-picture_cards { grid-template-columns: repeat(2, 256px) !important; column-gap: 16px !important }"
"""Each pixel of the picture takes four of the screen."""
EXACT = 1
"""Levels of 255 by which the browser's own rounding may differ."""


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    return parts.page("patch")


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return opened(server, open_page)


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


def expected_colors(shown: PatchMap, scheme: Scheme) -> list[np.ndarray]:
    """By the palette alone, patch by patch."""
    sides = ["amount" if not shown.signed else "for" if value > 0 else "against" for value in shown.scores.flat]
    steps = [step_of(value, shown.scale) for value in shown.scores.flat]
    return [rgb(color(scheme, side, step)) for side, step in zip(sides, steps, strict=True)]


def test_at_full_opacity_each_patch_has_the_color_of_its_score_to_its_edges(
    server: Server, open_page: Open, scheme: Scheme
) -> None:
    page = opened(server, open_page, "opacity=100", scheme=scheme)
    for number in (0, 1):
        shown = pixels(the_map(page, number))
        for cell, wanted in zip(cells(shown, 1), expected_colors(view(number), scheme), strict=True):
            assert np.abs(cell - wanted).max() <= EXACT, number


def test_flipped_every_card_is_the_picture_as_the_model_sees_it(page: Page) -> None:
    page.add_style_tag(content=LARGE)
    page.get_by_role("button", name="Picture alone").click()
    expect(page.get_by_role("button", name="Picture alone", pressed=True)).to_be_visible()
    wanted = np.kron(patch_page.seen(), np.ones((4, 4, 1), int))
    for place in (page.get_by_role("img", name="Picture"), *(the_map(page, number) for number in range(MAPS))):
        assert same(pixels(place), wanted)
    expect_held(page, "nothing", 1)


def test_over_the_picture_a_map_looks_as_in_its_file(server: Server, open_page: Open, scheme: Scheme) -> None:
    page = opened(server, open_page, scheme=scheme)
    page.add_style_tag(content=LARGE)
    for number in (0, 1):
        wanted = blended(patch_page.seen(), view(number), scheme).astype(int)
        assert same(pixels(the_map(page, number)), wanted, 3), number


def test_every_map_says_its_largest_patches_and_holding_f_flips_it_for_a_moment_without_a_run(page: Page) -> None:
    for number in range(MAPS):
        expect(the_map(page, number)).to_have_attribute(
            "aria-description", re.compile(r"^8 rows, 8 columns\. Largest: ")
        )
        expect(the_map(page, number)).to_have_attribute("tabindex", "0")
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
