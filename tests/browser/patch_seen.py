"""The page of four maps of patches in Chromium: where everything is, what is seen of it, and a hand to click with."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from playwright.sync_api import Locator, Page, expect

from components.widgets.patch_map import PatchMap
from tests.browser import patch_page
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of
from tests.project import ROOT

Open = Callable[..., Page]
SCRIPT = str(ROOT / "tests" / "browser" / "patch_page.py")
"""Four maps and the strip alone."""
GRID = ROWS, COLUMNS = patch_page.GRID
MAPS = 4
BOXES = "boxes => boxes.map(box => box.getBoundingClientRect()).map(({ x, y, width }) => [x, y, width])"


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    page = open_page(f"{server.url}?{query}", **more)
    expect(hint(page)).to_be_visible(timeout=TIMEOUT_MS)
    expect(slider(page)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("after 1 runs")).to_be_visible(timeout=TIMEOUT_MS)
    return page


def the_map(page: Page, number: int = 0) -> Locator:
    return page.get_by_role("application", name=title(number), exact=True)


def title(number: int) -> str:
    return f"{'Unsigned' if number % 2 else 'Signed'} map {number}"


def hint(page: Page) -> Locator:
    return page.get_by_text("Click a patch in any map to pin it")


def clear(page: Page) -> Locator:
    return page.get_by_role("button", name="Clear", exact=True)


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Opacity of the maps in percent")


def view(number: int) -> PatchMap:
    return patch_page.card(number, signed=number % 2 == 0).view


def at_patch(page: Page, at: int, number: int = 0) -> tuple[float, float]:
    """The middle of a patch on the screen."""
    box = box_of(the_map(page, number))
    row, column = divmod(at, COLUMNS)
    return box["x"] + (column + 0.5) * box["width"] / COLUMNS, box["y"] + (row + 0.5) * box["height"] / ROWS


def hover(page: Page, at: int, number: int = 0) -> None:
    page.mouse.move(*at_patch(page, at, number))


def click(page: Page, at: int, number: int = 0) -> None:
    """Click a patch; where the map is just being put into the page anew, once it is there and still."""
    found = the_map(page, number)
    width, height = found.evaluate("map => [map.clientWidth, map.clientHeight]")
    row, column = divmod(at, COLUMNS)
    found.click(position={"x": (column + 0.5) * width / COLUMNS, "y": (row + 0.5) * height / ROWS})


def expect_held(page: Page, pins: str, runs: int) -> None:
    expect(page.get_by_text(re.compile(rf"^Python holds {pins} after {runs} runs$"))).to_be_visible(timeout=TIMEOUT_MS)


def rgb(color: str) -> np.ndarray:
    return np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)])
