"""The Words page in Chromium: finished when it opens, the rate by keyboard, pictures as a grid, in both widths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import WORDS
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of, expect_fits, expect_link


@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_finished_and_the_rate_is_chosen_by_keyboard(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{WORDS.url_path}?by=attn_lrp&among=predicted+positive", width=width)
    answer = page.get_by_text("words matter to reviews-minilm at a false discovery rate of 10%")
    expect(answer).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect_fits(page)
    before = answer.inner_text().partition(" of ")[0]
    rates = page.get_by_role("radiogroup", name="False discovery rate")
    rates.get_by_role("radio", name="10%").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    after = page.get_by_text("words matter to reviews-minilm at a false discovery rate of 20%")
    expect(after).to_be_visible(timeout=TIMEOUT_MS)
    assert int(after.inner_text().partition(" of ")[0]) > int(before), "more words survive at a higher rate"
    expect_link(page, "rate=20")
    pictures = open_page(f"{server.url}/{WORDS.url_path}?input=image", scheme="dark", width=width)
    expect(pictures.get_by_text("patches matter to digits-vit")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect_fits(pictures)
    chart = box_of(pictures.get_by_test_id("stVegaLiteChart"))
    assert chart["width"] < 1.3 * chart["height"], "patches are about square"
    labels = pictures.get_by_role("combobox", name="Data set")
    assert width == 1280 or box_of(labels)["width"] > 200, "a phone shows the label of a data set whole"
