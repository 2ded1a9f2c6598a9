"""The query bar in Chromium: opened by keyboard, a typed question, what was understood, and the page that answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import COMPARE
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, settled

QUESTION = "most important words for negative in example 7 by occlusion"


def type_question(page: Page, question: str) -> None:
    """Open the bar and type a question, all by keyboard."""
    page.locator(".st-key-ask_bar button").focus()
    page.keyboard.press("Enter")
    box = page.get_by_role("combobox", name="Question")
    expect(box).to_be_visible()
    box.focus()
    page.keyboard.type(question)
    expect(page.get_by_role("option").first).to_contain_text(question)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_typed_question_is_understood_and_opens_the_page_that_answers_it(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(server.url, width=width, scheme="dark" if width == 390 else "light")
    settled(page)
    assert page.evaluate("document.activeElement === document.body"), "the bar takes no focus"
    expect_fits(page)
    type_question(page, QUESTION)
    expect(page.get_by_text("Most important features:")).to_be_visible()
    expect(page.get_by_text("exegesis explain --model reviews-minilm --method occlusion")).to_be_visible()
    expect_fits(page)
    page.get_by_role("button", name="Open Text").press("Enter")
    expect(page.get_by_role("heading", name="Explain a text")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect(page.get_by_text("Soup cold, service colder, bill enormous.").first).to_be_visible()
    expect(page.get_by_role("spinbutton", name="Example, 0 to 319")).to_have_value("7")
    page.wait_for_url(lambda url: "index=7" in url and "method=occlusion" in url and "target=negative" in url)


def test_the_shown_page_takes_the_answer_and_what_is_not_understood_offers_others(
    server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/{COMPARE.url_path}")
    settled(page)
    type_question(page, "which method do people prefer")
    expect(page.get_by_text("Not understood. Not known here: 'people', 'prefer'.")).to_be_visible()
    page.get_by_role("button", name="which method is the best").click()
    expect(page.get_by_role("button", name="Open Evaluate")).to_be_visible()
    box = page.get_by_role("combobox", name="Question")
    box.fill("compare gradient and occlusion in example 2")
    box.press("Enter")
    page.get_by_role("button", name="Open Compare").click()
    page.wait_for_url(lambda url: "column=gradient%40reviews-minilm" in url and "index=2" in url)
