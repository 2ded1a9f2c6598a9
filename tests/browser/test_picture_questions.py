"""Deletion and insertion curves and the table of truth in Chromium, in both themes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from components.images.results import CHANCE
from components.navigation import IMAGES
from components.palette import PALETTES, Theme, contrast
from engine.registry import explainer
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of

METHODS = ("gradient_x_input", "attention_mean", "random")
LEGIBLE = 4.5
"""The contrast that text needs (WCAG 2.2, level AA)."""


@pytest.fixture(scope="module")
def model(vit: str) -> str:
    return vit


def test_both_curves_are_drawn_legibly_and_the_table_of_truth_is_opened(
    scheme: Theme, server: Server, model: str, open_page: Callable[..., Page]
) -> None:
    query = [("model", model), ("data", "scenes:count=3"), ("open", "questions")]
    page = open_page(
        f"{server.url}/{IMAGES.url_path}?{urlencode([*query, *(('method', id) for id in METHODS)])}", scheme=scheme
    )
    charts = page.locator(".stVegaLiteChart")
    expect(charts).to_have_count(2, timeout=TIMEOUT_MS)
    for chart, moved in ((charts.nth(0), "removed"), (charts.nth(1), "kept")):
        title = chart.get_by_text(f"share of patches {moved}, highest score first")
        expect(title).to_be_visible(timeout=TIMEOUT_MS)
        legible(title, scheme)
        for method in METHODS:
            named = chart.get_by_text(explainer(method, "image").title, exact=True)
            expect(named).to_be_visible()
            legible(named, scheme)
    page.get_by_text("Compare all methods with chance").click()
    expect(truth_table(page)).to_be_visible(timeout=TIMEOUT_MS)


def test_the_table_of_truth_fits_a_phone(server: Server, model: str, open_page: Callable[..., Page]) -> None:
    query = [("model", model), ("data", "scenes:count=3"), ("open", "truth")]
    page = open_page(
        f"{server.url}/{IMAGES.url_path}?{urlencode([*query, *(('method', id) for id in METHODS)])}", width=390
    )
    expect(truth_table(page)).to_be_visible(timeout=TIMEOUT_MS)
    box = box_of(truth_table(page))
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def truth_table(page: Page) -> Locator:
    return page.get_by_role("table").filter(has_text=CHANCE)


def legible(text: Locator, scheme: Theme) -> None:
    fill = text.evaluate("node => getComputedStyle(node).fill")
    red, green, blue = (int(part) for part in fill.removeprefix("rgb(").removesuffix(")").split(","))
    assert contrast(f"#{red:02x}{green:02x}{blue:02x}", PALETTES[scheme].ground) >= LEGIBLE, fill
