"""A choice that comes while another one is answered, or while a part of the page is refreshed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RUNNING, TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import UNTIL_IT_RUNS

Open = Callable[..., Page]
AT_ONCE = f"""async ([first, second, states, running]) => {{
  first?.click();
  for (const runs of states) await ({UNTIL_IT_RUNS})(running, runs);
  await new Promise((done) => setTimeout(done, 100));
  second.click();
}}"""
"""The second click comes soon after the script has run or not run, in the order of `states`."""


@pytest.fixture
def page(parts: Server, open_page: Open) -> Page:
    return open_page(parts.page("choices").url)


def test_a_choice_during_a_callback_does_not_end_it(page: Page) -> None:
    add, refresh = page.get_by_role("button", name="Add one"), page.get_by_role("switch", name="Refresh")
    page.evaluate(AT_ONCE, [add.element_handle(), refresh.element_handle(), [True], RUNNING])
    expect(page.get_by_text("New", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("Count: 1")).to_be_visible(timeout=TIMEOUT_MS)


def test_another_page_opened_during_a_refresh_is_drawn_from_its_top(page: Page) -> None:
    page.get_by_test_id("stCheckbox").click()
    expect(page.get_by_text("New", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    link = page.get_by_role("link", name="Another page")
    page.evaluate(AT_ONCE, [None, link.element_handle(), [False, True, False], RUNNING])
    expect(page.get_by_text("That is all")).to_be_visible(timeout=TIMEOUT_MS)
