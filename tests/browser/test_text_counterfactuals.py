"""Counterfactuals in Chromium: asked for by a switch, edited from, drawn anew by the link, in both widths."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link

LINK = {"model": "gpt2-context", "method": "gradient_x_input", "text": "The food was cold and slow."}


@pytest.mark.parametrize("width", [1280, 390])
def test_an_edit_starts_from_a_counterfactual(server: Server, open_page: Callable[..., Page], width: int) -> None:
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(LINK)}", width=width)
    page.get_by_text("Counterfactuals: the fewest changed words").click()
    sentence = page.get_by_text(re.compile("Changing 1 word flips the prediction"))
    expect(sentence).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect_fits(page)
    page.get_by_role("button", name="Edit this", exact=True).first.click()
    expect(page.get_by_text("The predicted class changes from")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("textbox", name="Edited text")).not_to_have_value(LINK["text"])
    expect(page.get_by_text("one scale for both lines")).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(page)
    expect_link(page, "open=counterfactuals", "edit=")
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_text(re.compile("Changing 1 word flips the prediction"))).to_be_visible(timeout=2 * TIMEOUT_MS)
