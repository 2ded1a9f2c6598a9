"""Counterfactuals of a picture in Chromium: asked for by a switch, drawn, pinned, in both widths."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import IMAGES
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled

LINK = {"model": "scenes-marked-vit", "data": "scenes-marked:count=2", "index": "0", "method": "gradient_x_input"}
DRAWN = "(picture) => picture.complete && picture.naturalWidth > 0"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_patch_that_decides_is_crossed_out_and_pinned(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{IMAGES.url_path}?{urlencode(LINK)}", width=width)
    page.get_by_text("Counterfactuals: the fewest removed patches").click()
    picture = page.get_by_role("img", name="crossed out are row").first
    expect(picture).to_be_visible(timeout=2 * TIMEOUT_MS)
    settled(page)
    assert picture.evaluate(DRAWN)
    expect_fits(page)
    expect(page.get_by_text("Removing 1 of 64 patches flips the prediction")).to_be_visible()
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("heading", name="Without")).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    expect_link(page, "pin=", "open=counterfactuals")
