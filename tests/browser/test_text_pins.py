"""Pins on the Text page in Chromium: a click marks every row, answers below, and the link brings it back."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from components.navigation import TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import settled

METHODS = ("gradient_x_input", "attention_mean", "random")
WORDS = "the acting is warm and funny"
RINGED = """position => [...document.querySelectorAll('.st-key-text_rows .xg-map')].every(
    map => getComputedStyle(map.querySelector(`.j${position.toString(32)}`)).boxShadow.includes('inset'))"""

Open = Callable[..., Page]


def expect_pinned(page: Page, text: str, position: int) -> None:
    """The strip names the token, and every row has its ring."""
    strip = page.get_by_role("status").filter(has_text="Pinned")
    expect(strip).to_have_text(f"Pinned {text}", timeout=TIMEOUT_MS)
    expect(page.locator(".st-key-text_rows .xg-map")).to_have_count(len(METHODS), timeout=TIMEOUT_MS)
    page.wait_for_function(RINGED, arg=position)


def test_a_click_pins_a_token_in_every_row_and_the_link_brings_it_back(
    server: Server, model: str, open_page: Open
) -> None:
    pairs = [("model", model), *(("method", method) for method in METHODS), ("text", WORDS)]
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}")
    expect(page.locator(".st-key-text_rows .xg-map")).to_have_count(len(METHODS), timeout=TIMEOUT_MS)
    settled(page)
    hint = page.get_by_text("Click a token in any map to pin it, and again to unpin it.")
    expect(hint).to_be_visible(timeout=TIMEOUT_MS)
    page.locator(".st-key-text_rows .xg-map").last.locator(".j4").click()
    expect_pinned(page, "warm", 4)
    expect(page).to_have_url(re.compile(r"[?&]pin=4(&|$)"))
    expect(page.get_by_role("heading", name="Without “warm”")).to_be_visible(timeout=TIMEOUT_MS)
    expect(hint).to_be_visible()
    expect_pinned(open_page(page.url), "warm", 4)
    page.get_by_text("Pick by keyboard or touch").press("Escape")
    expect(page).not_to_have_url(re.compile("pin="))
    expect(hint).to_be_visible()
