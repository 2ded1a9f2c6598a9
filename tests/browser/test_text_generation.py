"""Generated text in Chromium: on request, with a table that scrolls in its box, kept by the link, in both widths."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import TEXT
from components.text.generation import TABLE_LABEL
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled

PROMPT = "Mary lives in Paris. John lives in Rome. Mary lives in"
LINK = {"model": "tiny-llama", "method": "random", "text": PROMPT, "generated_tokens": "12", "decoding": "sample"}
MAP = "for {} · scale shared by the generated tokens"


@pytest.mark.parametrize("width", [1280, 390])
def test_each_generated_token_has_a_row_and_the_link_keeps_the_chosen_one(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(LINK)}", width=width)
    page.get_by_text("Continue the prompt and explain every token").click()
    table = page.get_by_role("region", name=TABLE_LABEL)
    expect(table.locator("tbody tr")).to_have_count(12, timeout=2 * TIMEOUT_MS)
    expect_fits(page)
    assert table.evaluate("(box) => box.scrollWidth > box.clientWidth") == (width == 390)
    expect(page.get_by_text("Generated (sampled with seed 0):")).to_contain_text("without that sentence, it is")
    expect(page.get_by_role("button", name="Export generated text")).to_be_visible()
    third = page.get_by_role("radio", name=re.compile("^3 "))
    shown = MAP.format(third.inner_text().removeprefix("3 "))
    third.click()
    expect(page.get_by_text(shown)).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    expect_link(page, "generated_step=3")
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_role("region", name=TABLE_LABEL).locator("tbody tr")).to_have_count(12, timeout=2 * TIMEOUT_MS)
    expect(again.get_by_text(shown)).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(again)
