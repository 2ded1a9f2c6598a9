"""A prompt in Chromium: the pickers take tokens of the list and typed ones, the link keeps them, in both widths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.navigation import TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, expect_link, settled
from tests.tiny import save_causal


@pytest.mark.parametrize("width", [1280, 390])
def test_tokens_are_chosen_or_typed_and_the_link_keeps_them(
    server: Server, open_page: Callable[..., Page], tmp_path: Path, width: int
) -> None:
    model = str(save_causal("llama", tmp_path / "model"))
    query = {"model": model, "method": "occlusion", "text": "The film was good. It was not bad."}
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(query)}", width=width)
    expect(page.get_by_text("The model continues with")).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(page)
    page.get_by_role("combobox", name="Explain").click()
    page.get_by_role("option").nth(2).click()
    expect(page.get_by_text("Explained:")).to_contain_text("rank 2 of", timeout=TIMEOUT_MS)
    contrast = page.get_by_role("combobox", name="Rather than")
    contrast.fill("·film")
    contrast.press("Enter")
    expect(page.get_by_text("Explained:")).to_contain_text("rather than ·film", timeout=TIMEOUT_MS)
    settled(page)
    expect_link(page, "contrast=+film")
    again = open_page(page.url, scheme="dark", width=width)
    expect(again.get_by_text("Explained:")).to_contain_text("rather than ·film", timeout=TIMEOUT_MS)
    expect_fits(again)
