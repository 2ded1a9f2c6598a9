"""The Adversarial page in Chromium, in both themes: a run that is watched, before and after, and on a telephone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from components.adversarial.example_panel import CURVES
from components.navigation import ADVERSARIAL
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import boxes_of

Open = Callable[..., Page]


def test_pixels_are_attacked_on_request_and_shown_before_and_after(server: Server, vit: str, open_page: Open) -> None:
    query = {"input": "image", "model": vit, "data": "scenes:count=3", "steps": "3"}
    page = open_page(f"{server.url}/{ADVERSARIAL.url_path}?{urlencode(query)}")
    page.get_by_role("button", name="Run the attack").click(timeout=TIMEOUT_MS)
    for title in ("Before", "After, unconstrained", "After, constrained"):
        expect(page.get_by_role("region", name=title, exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("img", name="Difference, magnified")).to_have_count(2)
    expect(page.locator(".stVegaLiteChart")).to_have_count(len(CURVES), timeout=TIMEOUT_MS)
    expect(page.get_by_text("each color (0 to 1)").first).to_be_visible()
    expect(page.get_by_role("button", name="Picture, constrained")).to_be_visible()


def test_the_finished_attack_fits_a_telephone(server: Server, open_page: Open) -> None:
    page = open_page(f"{server.url}/{ADVERSARIAL.url_path}", width=390)
    before, after = (page.get_by_role("region", name=name, exact=True) for name in ("Before", "After, constrained"))
    expect(after).to_be_visible(timeout=TIMEOUT_MS)
    boxes = boxes_of(before, after)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]


def test_a_run_is_watched_and_stopped_in_the_middle(server: Server, model: str, open_page: Open) -> None:
    query = {"model": model, "text": "a slow film with a fine and funny end", "steps": "100000", "learning_rate": "0.5",
             "objective": "constrained"}  # fmt: skip
    page = open_page(f"{server.url}/{ADVERSARIAL.url_path}?{urlencode(query)}", hasty=True)
    page.get_by_role("button", name="Run the attack").click(timeout=TIMEOUT_MS)
    expect(page.get_by_text("of 100,000")).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect(page.locator(".stVegaLiteChart").first).to_be_visible(timeout=2 * TIMEOUT_MS)
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped. Nothing was saved")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("button", name="Go on", exact=True)).to_be_visible()
    expect(page.locator(".stVegaLiteChart")).to_have_count(0)
