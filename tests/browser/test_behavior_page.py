"""The Ask the model page in Chromium: it opens finished, the keyboard changes the task, a phone scrolls no page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import BEHAVIOR
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled

TABLE = "Answers on this example"
FADES = "box => getComputedStyle(box).maskImage !== 'none'"
ANSWER = re.compile(
    r"Asking the model directly, with 16 evaluations per word \(about [\d,]+ per text\), is right for \d+% of \d+ words"
)


@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_finished_and_the_keyboard_changes_the_task(
    server: Server, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page(f"{server.url}/{BEHAVIOR.url_path}", width=width)
    expect(page.get_by_text(ANSWER)).to_be_visible(timeout=TIMEOUT_MS)
    table = page.get_by_role("region", name=TABLE)
    expect(table.get_by_role("columnheader").nth(2)).to_have_text("Ask: 16 evaluations per word")
    expect(table.get_by_text("right:").first).to_be_attached()
    expect_fits(page)
    assert table.evaluate(FADES) == (width == 390), "its edge fades while there are more columns"
    table.evaluate("box => box.scrollTo(box.scrollWidth, 0)")
    page.wait_for_function(f"box => !({FADES})(box)", arg=table.element_handle(), timeout=TIMEOUT_MS)
    table.evaluate("box => box.scrollTo(0, 0)")
    table.focus()
    assert not table.evaluate(FADES), "the mask would cut off the outline of the focus"
    page.get_by_role("radio", name="Local behavior").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("A direct search with about")).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    expect_link(page, "task=recourse")
    expect(table.get_by_role("columnheader").first).to_have_text("Way")
    expect_fits(page)
