"""The page of rules in Chromium: type a rule, see its error at the field, fix it; and the window on the Images page."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import IMAGES, RULES_PAGE
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import boxes_of, expect_fits, expect_link, settled

FEW = {"examples": "24", "method": "gradient_x_input"}
TRUE_FOR = "of 24 texts. The model predicts"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_rule_is_typed_refused_at_its_field_fixed_and_answered(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{RULES_PAGE.url_path}?{urlencode(FEW)}", width=width)
    expect(page.get_by_text(TRUE_FOR)).to_have_count(2, timeout=2 * TIMEOUT_MS)
    expect_fits(page)
    field = page.get_by_role("textbox", name="Rule A")
    field.fill("good -> neutral")
    field.press("Enter")
    error = page.get_by_role("alert")
    expect(error).to_contain_text("character 1: expected a word in quotation marks")
    below, above = boxes_of(error, field)
    assert 0 < below["y"] - above["y"] < 120
    field.fill('"good" or "the" -> neutral')
    field.press("Enter")
    expect(error).to_have_count(0)
    expect(page.get_by_text(TRUE_FOR)).to_have_count(2, timeout=2 * TIMEOUT_MS)
    expect(page.get_by_text("The model predicts neutral for")).to_be_visible()
    settled(page)
    expect_link(page, "rule=")
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_role("textbox", name="Rule A")).to_have_value('"good" or "the" -> neutral')
    expect(again.get_by_text("The model predicts neutral for")).to_be_visible(timeout=2 * TIMEOUT_MS)


def test_the_window_moves_with_the_keyboard_and_its_prediction_follows(
    server: Server, open_page: Callable[..., Page]
) -> None:
    link = {"data": "scenes", "index": "7", "method": "random", "open": "sliding"}
    page = open_page(f"{server.url}/{IMAGES.url_path}?{urlencode(link)}", width=390)
    expect(page.get_by_text("Without the window at row 1, column 1")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect_fits(page)
    slider = page.get_by_role("slider", name="Position")
    slider.press("ArrowRight")
    expect(page.get_by_text("Without the window at row 1, column 2")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("button", name="Largest fall").click()
    expect(page.get_by_text("Without the window at row 5, column 4")).to_be_visible(timeout=TIMEOUT_MS)
