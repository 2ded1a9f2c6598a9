"""Browse in Chromium: predictions come by a job, a row shows its example, buttons walk, a narrow window holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from components.navigation import TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of, expect_fits

TEXTS = ("good food", "<script>alert(1)</script> <b>bold</b>", "=1+1", "bad service", "a warm film", "lovely view")
HEADER_PIXELS = ROW_PIXELS = 33
Open = Callable[..., Page]


def data(folder: Path, texts: Sequence[str]) -> str:
    file = folder / "own.jsonl"
    rows = ({"text": text, "label": place % 2} for place, text in enumerate(texts))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def address(server: Server, **query: str) -> str:
    return f"{server.url}/{TEXT.url_path}?{urlencode({'open': 'browse', 'method': 'random', **query})}"


def cells(page: Page, column: int) -> Locator:
    """A column as a screen reader finds it: the grid is a canvas with a table behind it."""
    return page.locator(f'canvas [role="gridcell"][aria-colindex="{column}"]')


def expect_example(page: Page, index: int, text: str) -> None:
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value(str(index), timeout=TIMEOUT_MS)
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(text, timeout=TIMEOUT_MS)


def expect_selected(page: Page, row: int) -> None:
    """`row` from 0; the header is the grid's first."""
    chosen = page.locator('canvas [role="row"][aria-selected="true"]')
    expect(chosen).to_have_count(1, timeout=TIMEOUT_MS)
    expect(chosen).to_have_attribute("aria-rowindex", str(row + 2))


def press_row(page: Page, row: int) -> None:
    """The box before the row; the grid is drawn, so it is found by its place."""
    grid = page.get_by_test_id("stDataFrame").first
    grid.scroll_into_view_if_needed()
    grid.click(position={"x": 17, "y": HEADER_PIXELS + ROW_PIXELS * row + 17})


def test_the_list_is_predicted_and_shows_what_is_chosen_in_it(
    server: Server, model: str, tmp_path: Path, open_page: Open
) -> None:
    own = TEXTS
    page = open_page(address(server, model=model, data=data(tmp_path, own)))
    expect(page.get_by_text("none predicted yet")).to_be_visible(timeout=TIMEOUT_MS)
    press = page.get_by_role("button", name="Predict all 6 examples")
    press.click()
    expect(page.get_by_text("6 examples. Accuracy")).to_be_visible(timeout=TIMEOUT_MS)
    expect(press).to_have_count(0)
    expect(page.get_by_text("1 of 6 in the list")).to_be_visible()
    expect(cells(page, 2)).to_have_text([own[0], own[1], f"'{own[2]}", *own[3:]])
    press_row(page, 3)
    expect_example(page, 3, own[3])
    expect_selected(page, 3)
    page.get_by_role("button", name="Next", exact=True).click()
    expect_example(page, 4, own[4])
    expect_selected(page, 4)
    page.get_by_role("textbox", name="Search").fill("SCRIPT")
    page.get_by_role("textbox", name="Search").press("Enter")
    expect(page.get_by_text("1 listed; the current example is not in the list")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("button", name="Random, filtered").click()
    expect_example(page, 1, own[1])
    expect(page).to_have_url(re.compile(r"[?&]index=1(&|$)"), timeout=TIMEOUT_MS)
    again = open_page(page.url)
    expect_example(again, 1, own[1])
    expect(again.get_by_text("1 of 1 in the list")).to_be_visible(timeout=TIMEOUT_MS)


def test_a_narrow_window_holds_the_list(server: Server, model: str, tmp_path: Path, open_page: Open) -> None:
    page = open_page(address(server, model=model, data=data(tmp_path, TEXTS)), width=390)
    expect(page.get_by_text("1 of 6 in the list")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    expect_fits(page)
    for control in (page.get_by_role("textbox", name="Search"), page.get_by_role("combobox", name="Sort")):
        box = box_of(control)
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
