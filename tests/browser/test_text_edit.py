"""Pinned tokens and edited texts in Chromium: typed, aligned column by column, at any width, in both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from components.navigation import TEXT
from components.palette import PALETTES
from engine.removal_operators import OPERATORS
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import settled

METHODS = ("gradient_x_input", "attention_mean", "random")
WORDS = "the acting is warm and funny"
SCRIPT = "<script>alert(1)</script>"
PARTS = """rows => rows.flatMap(row => [...row.querySelectorAll('.xg-col')].map(column => {
    const [above, below] = [...column.children].map(part => part.getBoundingClientRect());
    return [above.left - below.left, above.width - below.width, below.top - above.bottom, below.right];
}))"""

Open = Callable[..., Page]


def address(server: Server, model: str, **query: str) -> str:
    pairs = [("model", model), *(("method", method) for method in METHODS), *query.items()]
    return f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}"


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))


def test_a_pinned_token_is_replaced_and_the_link_keeps_it(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=WORDS, pin="4"), scheme="dark")
    heading = page.get_by_role("heading", name="Without “warm”")
    expect(heading).to_be_visible(timeout=TIMEOUT_MS)
    expect(heading).to_have_css("color", rgb(PALETTES["dark"].text))
    expect(page.get_by_role("cell", name=re.compile(r"^(LABEL_\d)"))).to_have_count(1 + len(OPERATORS))
    field = page.get_by_role("textbox", name="Replace “warm” with")
    field.fill("cold")
    field.press("Enter")
    pairs = page.locator(".xg-pair")
    expect(pairs).to_have_count(len(METHODS), timeout=TIMEOUT_MS)
    expect(pairs.first.locator(".xg-changed").first).to_contain_text("warm")
    expect(page.get_by_role("textbox", name="Edited text")).to_have_value("the acting is cold and funny")
    expect(page).to_have_url(re.compile(r"[?&]edit=the"))
    pairs.first.locator("b").nth(3).hover()
    said = pairs.first.locator("b").nth(3).evaluate("chip => getComputedStyle(chip, '::after').content")
    assert "rank" in said
    page.get_by_role("button", name="Use as the text").click()
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(
        "the acting is cold and funny", timeout=TIMEOUT_MS
    )
    expect(pairs).to_have_count(0, timeout=TIMEOUT_MS)


def test_both_lines_stand_column_by_column_and_nothing_leaves_the_page(
    server: Server, model: str, open_page: Open
) -> None:
    text = f"{WORDS} שלום עולם 好看 " * 4
    query = {"text": text, "edit": f"{SCRIPT} {text}", "pin": "1,2,3", "values": "on"}
    page = open_page(address(server, model, **query), width=390)
    expect(page.locator(".xg-pair")).to_have_count(len(METHODS), timeout=TIMEOUT_MS)
    expect(page.locator(".xg-pair script")).to_have_count(0)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        expect_aligned(settled(page), width)


def expect_aligned(page: Page, width: int) -> None:
    """Each token stands above its own, within the page."""
    for left, wider, below, right in page.locator(".xg-pair").evaluate_all(PARTS):
        assert abs(left) < 1
        assert abs(wider) < 1
        assert below >= -1
        assert right <= width
    tables = page.locator(".xg-table").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert len(tables) == 2
    assert max(tables) <= width
