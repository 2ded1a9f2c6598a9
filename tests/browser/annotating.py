"""A study that is open on the server of a test, and a participant's way through it in the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, expect

from engine.study.database import ADDRESS, study_database
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server

AGREE, HAVE_IT, BEGIN = "I agree and take part", "I have it", "Begin"
BACK = "Undo my last answer"
CODE = re.compile(r"^[2-9a-z]{4}(-[2-9a-z]{4}){3}$")
ONE_BOARD = "() => document.querySelectorAll('.xg-rank').length === 1"


@contextmanager
def store_of(server: Server) -> Iterator[None]:
    """The study's engine works in the home of the server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXEGESIS_HOME", str(server.home))
        patch.delenv(ADDRESS, raising=False)
        try:
            yield
        finally:
            study_database().close()


def link(server: Server, token: str) -> str:
    return f"{server.url}/annotate?study={token}"


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def heading(page: Page, name: str) -> Locator:
    return page.get_by_role("heading", level=1, name=name, exact=True)


def join(page: Page) -> str:
    """Agrees; the code that is shown."""
    button(page, AGREE).click(timeout=TIMEOUT_MS)
    expect(heading(page, "Your code")).to_be_visible(timeout=TIMEOUT_MS)
    shown = page.get_by_text(CODE)
    expect(shown).to_be_visible(timeout=TIMEOUT_MS)
    return shown.inner_text()


def begin(page: Page, first: str = "Practice") -> str:
    """To the first item; the code."""
    code = join(page)
    button(page, HAVE_IT).click()
    button(page, BEGIN).click(timeout=TIMEOUT_MS)
    at_item(page, first)
    return code


def at_item(page: Page, name: str) -> None:
    """The item of that heading is on the page, and it alone."""
    expect(heading(page, name)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=TIMEOUT_MS)
    page.wait_for_function(ONE_BOARD, timeout=TIMEOUT_MS)


def grip(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=f"Explanation {name},")


def steps(page: Page) -> Locator:
    return page.get_by_role("list", name="Your order, best first").get_by_role("listitem")


def drag(page: Page, name: str, before: int) -> None:
    """Takes a card by its letter and lets it go above the step of that number, counted from 0."""
    page.emulate_media(reduced_motion="reduce")  # where a card is asked for, it is
    grip(page, name).drag_to(steps(page).nth(before), target_position={"x": 40, "y": 4})


def press_until(page: Page, name: str, key: str = "Tab") -> None:
    """Goes on by key until the button of that name has the focus."""
    for _ in range(30):
        if button(page, name).count() and button(page, name).evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{name} is not reached by {key}")


def cards(page: Page) -> list[str]:
    """What the board shows at its places A, B, ...: the markup of each explanation."""
    bodies = page.locator(".xg-rank .xg-ranked")
    shown = {int(one.get_attribute("data-card") or -1): one.locator(".xg-body").inner_html() for one in bodies.all()}
    return [shown[place] for place in sorted(shown)]


def confirm(page: Page, then: str) -> None:
    """Confirms, and waits for the screen with that heading."""
    button(page, "Confirm").click()
    if then == "Thank you":
        expect(heading(page, then)).to_be_visible(timeout=TIMEOUT_MS)
    else:
        at_item(page, then)


def cannot_tell(page: Page, then: str) -> None:
    button(page, "Cannot tell").click()
    confirm(page, then)
