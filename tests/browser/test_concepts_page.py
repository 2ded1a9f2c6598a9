"""The Concepts page in Chromium: finished when it opens, and the class that is drawn is in the link."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from components.navigation import CONCEPTS_PAGE
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits

BELOW = """() => {
  const chart = document.querySelector('[data-testid=stVegaLiteChart]');
  const texts = [...chart.querySelectorAll('text')].map((text) => text.getBoundingClientRect().bottom);
  return chart.getBoundingClientRect().bottom - Math.max(...texts);
}"""
MOST_BELOW = 12
"""Pixels between the lowest text of a chart and its end."""


def test_it_opens_finished_with_a_named_concept_and_another_class_is_drawn(
    server: Server, open_page: Callable[..., Page]
) -> None:
    texts = open_page(f"{server.url}/{CONCEPTS_PAGE.url_path}", width=390)
    expect(texts.get_by_text("“praise” raises positive in reviews-minilm at layer 3")).to_be_visible(
        timeout=2 * TIMEOUT_MS
    )
    expect(texts.get_by_text("“restaurants” has no significant effect.")).to_be_visible()
    expect_fits(texts)
    assert texts.evaluate(BELOW) < MOST_BELOW
    page = open_page(f"{server.url}/{CONCEPTS_PAGE.url_path}?input=image", width=390)
    expect(page.get_by_text("“boats” raises boat in scenes-vit at layer 3")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect(page.get_by_role("textbox", name="Concepts: names or data sets")).to_have_value("boats")
    expect_fits(page)
    box = page.get_by_role("combobox", name="Class")
    box.click()
    page.get_by_role("option", name="fish").click()
    expect(page).to_have_url(re.compile("shown=fish"), timeout=TIMEOUT_MS)
