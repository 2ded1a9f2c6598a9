"""What a link or a file puts on a page, in Chromium: text as it came, with no request, no link and no picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from components.errors import WORD_JOINER
from components.palette import PALETTES
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.maps import address, rgb
from tests.browser.said_page import SAID
from tests.browser.server import Server

MADE = "a, img, b, i, code, strong, em, del, sup, mark, .katex, [data-testid=stIconMaterial], p span"
"""What Markdown would make of the words."""
NAME = "[a](b) **bold**"
PICTURE, LINK = "![](http://evil.example/x.png)", "[a](http://evil.example)"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def said_server(parts: Server) -> Server:
    """A page that says `SAID` in every way."""
    return parts.page("said")


def words(drawn: Locator) -> list[str]:
    """The texts, without the word joiners that nobody sees."""
    return [text.replace(WORD_JOINER, "") for text in drawn.all_text_contents()]


def test_every_way_of_saying_draws_the_words_as_they_came(said_server: Server, open_page: Open) -> None:
    page = open_page(said_server.url)
    expect(page.get_by_text("That is all")).to_be_visible(timeout=TIMEOUT_MS)
    labels = page.get_by_test_id("stWidgetLabel")
    expect(labels).to_have_count(2 * len(SAID))
    assert words(page.get_by_role("alert")) == SAID
    assert words(page.locator('.xg[role="status"]')) == SAID
    assert words(labels) == [said for said in SAID for _ in range(2)]
    for drawn in (labels, page.get_by_role("alert"), page.locator('.xg[role="status"]')):
        expect(drawn.locator(MADE)).to_have_count(0)


def test_a_link_cannot_put_pictures_and_links_on_the_page(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, gamma=PICTURE, seed=LINK, data=NAME, target=LINK), scheme="dark")
    said = page.get_by_role("alert")
    expect(said).to_have_count(4, timeout=TIMEOUT_MS)
    for name, given in {"gamma": PICTURE, "seed": LINK, "dataset": NAME, "target": LINK}.items():
        expect(said.filter(has_text=f"{name}: ")).to_contain_text(given)
    expect(said.locator(MADE)).to_have_count(0)
    expect(page.locator('a[href*="evil"], img[src*="evil"]')).to_have_count(0)
    expect(said.first.locator("p")).to_have_css("color", rgb(PALETTES["dark"].text))
