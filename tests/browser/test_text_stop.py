"""Long work in Chromium: it can be stopped, and a closed page holds nobody up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import TIMEOUT_MS
from tests.browser.maps import QUICK, address, expect_maps, row
from tests.browser.server import Server

Open = Callable[..., Page]
LONG = ", ".join(f"the waiter brought soup number {n}" for n in range(60))
METHODS = ("gradient_x_input", "kernel_shap")


@pytest.fixture(scope="module")
def slow(server: Server, model: str) -> str:
    """The link of a page that computes for minutes."""
    return address(server, model, METHODS, text=LONG, **{"kernel_shap.n_samples": "100000"})


def stop_button(page: Page) -> Locator:
    """The page's own: the frame's header has one too."""
    return page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Stop", exact=True)


def test_stopped_work_says_so_and_goes_on_when_asked(slow: str, open_page: Open) -> None:
    page = open_page(slow, hasty=True)
    stop, line = stop_button(page), page.get_by_text("evaluations").first
    expect(line).to_contain_text("of 100,000", timeout=TIMEOUT_MS)
    stop.click()
    expect(row(page, "kernel_shap")).to_contain_text("Stopped.", timeout=TIMEOUT_MS)
    expect(row(page, "gradient_x_input").locator(".xg-map")).to_be_visible()
    expect(stop).to_have_count(0)
    page.get_by_role("button", name="Go on", exact=True).click()
    expect(row(page, "kernel_shap")).to_contain_text("being computed", timeout=TIMEOUT_MS)
    expect(stop).to_be_visible(timeout=TIMEOUT_MS)


def test_a_closed_page_holds_nobody_up(slow: str, open_page: Open) -> None:
    slow += "&seed=1"  # another computation than the test above, which may have ended
    first = open_page(slow, hasty=True)
    expect(stop_button(first)).to_be_visible(timeout=TIMEOUT_MS)
    expect(row(first, "kernel_shap")).to_contain_text("being computed", timeout=TIMEOUT_MS)
    other = open_page(slow.split("?")[0] + "?text=good+food&method=" + "&method=".join(QUICK), hasty=True)
    expect(other.get_by_text("waiting for the device, place 1 in the queue")).to_be_visible(timeout=TIMEOUT_MS)
    first.close()
    expect_maps(other)
