"""The Suppressor page in Chromium: the slider by keyboard, the sentence that follows it, the link, both widths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import SUPPRESSOR
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled

SLIDER = "Correlation of the noise"
BROKEN = """(cell, word) => {
  const node = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode(), range = document.createRange();
  const at = node.data.indexOf(word);
  range.setStart(node, at);
  range.setEnd(node, at + word.length);
  return range.getClientRects().length > 1;
}"""
"""Whether a word of a cell stands on two lines."""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_sentence_follows_the_slider_and_the_link_keeps_it(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{SUPPRESSOR.url_path}?correlation=0.05", width=width)
    answer = page.get_by_role("heading", level=3).first
    expect(answer).to_contain_text(
        "At correlation 0.05, 15 of 18 methods credit the suppressor.", timeout=2 * TIMEOUT_MS
    )
    page.get_by_role("slider", name=SLIDER).press("ArrowLeft")
    expect(answer).to_contain_text("At correlation 0.00, none of 18 methods credits the suppressor")
    settled(page)
    expect_link(page, "correlation=0.0")
    expect_fits(page)
    expect(page.get_by_role("table")).to_have_count(2)
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_role("heading", level=3).first).to_contain_text("At correlation 0.00", timeout=2 * TIMEOUT_MS)


def test_a_telephone_shows_whole_words_in_both_tables(server: Server, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}/{SUPPRESSOR.url_path}?correlation=0.8", width=390)
    tables = page.get_by_role("table")
    expect(tables).to_have_count(2, timeout=2 * TIMEOUT_MS)
    settled(page)
    for table in tables.all():
        for words in ("Counterfactual (nearest)", "PatternAttribution", "✗\N{NO-BREAK SPACE}credits"):
            cell = table.get_by_text(words).first
            longest = max(words.split(" "), key=len)
            assert cell.evaluate(BROKEN, longest) is False, words
        assert table.evaluate("node => node.scrollWidth <= node.closest('.xg-scroll').clientWidth"), "nothing is cut"
