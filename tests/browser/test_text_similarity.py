"""The similarity of a pair in Chromium: asked for by a switch, drawn with lines, kept by the link, in both widths."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled

PAIR = {"model": "nli-minilm", "method": "random", "text": "A man plays a guitar.", "pair": "Somebody makes music."}
ALT = "Lines between the tokens of both texts. The strongest pairs are listed above."
DRAWN = "(picture) => picture.complete && picture.naturalWidth > 0"


@pytest.mark.parametrize("width", [1280, 390])
def test_lines_between_the_texts_are_drawn_on_request_and_by_the_link(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(PAIR)}", width=width)
    page.get_by_text("Words that make both texts similar").click()
    picture = page.get_by_role("img", name=ALT)
    expect(picture).to_be_visible(timeout=2 * TIMEOUT_MS)
    settled(page)
    assert picture.evaluate(DRAWN)
    expect_fits(page)
    expect(page.get_by_text("Their similarity is 0.")).to_contain_text("“guitar” and “music”")
    expect_link(page, "open=similarity")
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_role("img", name=ALT)).to_be_visible(timeout=2 * TIMEOUT_MS)
