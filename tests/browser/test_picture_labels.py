"""Labels of a zero-shot model in Chromium: typed by keyboard, stored in the address, in both widths and themes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from components.images.results import TYPE_LABELS
from components.navigation import IMAGES
from engine.models.label_prompts import with_prompts
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, settled


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny random CLIP."""
    from tests.unit.vision.tiny_families import save_zero_shot  # here: torch takes seconds to import

    folder: Path = save_zero_shot(tmp_path_factory.mktemp("clip") / "tiny", "clip")
    return str(folder)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_labels_are_typed_and_their_words_are_shown(
    server: Server, open_page: Callable[..., Page], clip: str, width: int, scheme: str
) -> None:
    query = {"model": clip, "data": "scenes:count=3", "method": "occlusion"}
    page = open_page(f"{server.url}/{IMAGES.url_path}?{urlencode(query)}", width=width, scheme=scheme)
    expect(page.get_by_text(TYPE_LABELS)).to_be_visible(timeout=2 * TIMEOUT_MS)
    page.get_by_label("Labels", exact=True).fill("film, good food")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The probabilities are a softmax over the labels given")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_text("Tokens of the prompt that match the picture").click()
    expect(page.get_by_text("The similarity of this prompt with the picture is")).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    assert parse_qs(urlsplit(page.url).query)["model"] == [with_prompts(clip, "film, good food")]
    expect_fits(page)
