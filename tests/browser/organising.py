"""An organizer's hands on the pages of studies and of results."""

from __future__ import annotations

import re

from playwright.sync_api import Page

from tests.browser.waiting import PAINTED, settled

LINK = re.compile(r"http://localhost:\d+/annotate\?study=[\w-]{20,}")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def answer(page: Page, name: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def number(page: Page, name: str, value: str) -> None:
    field = page.get_by_role("spinbutton", name=name)
    field.fill(value)
    field.press("Tab")


def ask(page: Page, title: str) -> None:
    """Opens a section of the results by the keyboard."""
    summary = page.locator("summary").filter(has_text=title)
    summary.focus()
    summary.press("Enter")


def choose_first(page: Page, label: str) -> None:
    """Takes the first line of a list. The list closes when the page around it scrolls: that has to be over."""
    settled(page)
    box = page.get_by_role("combobox", name=label)
    box.scroll_into_view_if_needed()
    page.evaluate(PAINTED)
    box.click()
    page.get_by_role("option").first.click()
