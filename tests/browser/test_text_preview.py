"""Previews of costly maps in Chromium: then the exact map with the measured error; and the Library."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import IMAGES, LIBRARY, TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits

LINK = {"model": "reviews-minilm", "method": "kernel_shap", "text": "The plot drags, but the ending is warm."}


@pytest.mark.parametrize("width", [1280, 390])
def test_the_exact_map_replaces_its_preview(server: Server, open_page: Callable[..., Page], width: int) -> None:
    query = {**LINK, "seed": str(width)}  # a map of its own, which is not cached yet
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(query)}", width=width)
    expect(page.get_by_text("Its preview was off by")).to_be_visible(timeout=4 * TIMEOUT_MS)
    expect(page.get_by_text("Preview: estimated")).to_have_count(0)
    expect_fits(page)
    library = open_page(f"{server.url}/{LIBRARY.url_path}?section=previews", width=width)
    expect(library.get_by_text("1 pass in place of")).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(library)


def test_the_exact_map_of_a_picture_replaces_its_preview(server: Server, open_page: Callable[..., Page]) -> None:
    query = {"model": "scenes-vit", "data": "scenes", "index": "3", "method": "kernel_shap", "seed": "7"}
    page = open_page(f"{server.url}/{IMAGES.url_path}?{urlencode(query)}", width=390)
    expect(page.get_by_text("Its preview was off by")).to_be_visible(timeout=6 * TIMEOUT_MS)
    expect(page.get_by_text("Preview: estimated")).to_have_count(0)
    expect_fits(page)
