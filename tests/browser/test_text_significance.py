"""Significant words in Chromium: asked for by a switch, the rate chosen by keyboard, in both widths and themes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link

LINK = {"model": "reviews-minilm", "method": "random", "text": "A wonderful film with a weak ending."}


@pytest.mark.parametrize("width", [1280, 390])
def test_the_rate_is_chosen_by_keyboard_and_the_survivors_change(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(LINK)}", width=width)
    page.get_by_text("Words that are statistically significant").click()
    answer = page.get_by_text("significant at a false discovery rate of 10%")
    expect(answer).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect_fits(page)
    before = answer.inner_text().partition(" of ")[0]
    rates = page.get_by_role("radiogroup", name="False discovery rate")
    rates.get_by_role("radio", name="10%").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    after = page.get_by_text("significant at a false discovery rate of 20%")
    expect(after).to_be_visible(timeout=TIMEOUT_MS)
    assert after.inner_text().partition(" of ")[0] != before, "more words survive at a higher rate"
    expect_link(page, "rate=20")
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_text("significant at a false discovery rate of 20%")).to_be_visible(timeout=2 * TIMEOUT_MS)
