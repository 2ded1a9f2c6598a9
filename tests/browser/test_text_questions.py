"""Removal curves and agreement in Chromium, in both themes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from components.navigation import TEXT
from components.palette import PALETTES
from engine.registry import explainer
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server

METHODS = ("gradient_x_input", "attention_mean", "random")


def test_curves_and_agreement_are_drawn(server: Server, model: str, open_page: Callable[..., Page]) -> None:
    query = [("model", model), ("text", "the acting is warm and funny"), *(("method", method) for method in METHODS)]
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(query)}", scheme="dark")
    expect(page.locator(".xg-map")).to_have_count(len(METHODS), timeout=TIMEOUT_MS)
    expect(page.locator(".stVegaLiteChart")).to_have_count(0)
    page.get_by_text("Removal curves and agreement of these methods").click()
    chart = page.locator(".stVegaLiteChart")
    expect(chart.get_by_text("share of tokens removed")).to_be_visible(timeout=TIMEOUT_MS)
    for method in METHODS:
        expect(chart.get_by_text(explainer(method).title, exact=True)).to_be_visible()
    page.get_by_role("radio", name="Agreement").click()
    heat = page.locator(".stPlotlyChart")
    expect(heat).to_be_visible(timeout=TIMEOUT_MS)
    cells = heat.locator("text.heatmap-label, .heatmap-label text, g.heatmap-label text")
    expect(cells).to_have_count(len(METHODS) ** 2, timeout=TIMEOUT_MS)
    expect(cells.first).to_have_text("+1.00")
    expect(cells.first).to_have_css("fill", rgb(PALETTES["dark"].text))
    for method in METHODS:
        expect(heat.get_by_text(explainer(method).title, exact=True).first).to_be_visible()


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))
