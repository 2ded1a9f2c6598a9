"""The Layers page in Chromium: finished when it opens, another site by the list, the grid by keyboard, both widths."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import LAYERS
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled

SENTIMENT = {
    "model": "reviews-minilm",
    "text": "The film was wonderful and I loved it.",
    "corrupted": "The film was terrible and I hated it.",
}


@pytest.mark.parametrize("width", [1280, 390])
def test_the_answers_the_grids_and_the_link(server: Server, open_page: Callable[..., Page], width: int) -> None:
    page = open_page(f"{server.url}/{LAYERS.url_path}?{urlencode(SENTIMENT)}", width=width)
    answer = "is first readable by the lens in layer 3: before it, the lens reads"
    expect(page.get_by_text(answer)).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect(page.get_by_text("brings back up to 70% of the difference")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect(page.get_by_role("region", name="Logit lens: layers as rows")).to_be_visible()
    page.get_by_text("Gradient preview", exact=True).click()
    expect(page.get_by_text("(estimated by gradients)")).to_be_visible()
    settled(page)
    expect_link(page, "view=preview")
    grid = page.get_by_role("region", name="Patching: layers as rows, tokens as columns")
    grid.focus()
    expect(grid).to_be_focused()
    expect_fits(page)
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_text("(estimated by gradients)")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect(again.get_by_text("Prediction: positive")).to_be_visible()
