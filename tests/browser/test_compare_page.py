"""The Compare page in Chromium: columns side by side, a reference, the matrix, the list, on a screen and a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from components.compare.controls import ADD, PIN
from components.compare.maps_html import LABEL
from components.navigation import COMPARE
from tests.browser.conftest import TIMEOUT_MS, Scheme
from tests.browser.server import Server
from tests.browser.waiting import expect_fits
from tests.unit.evaluation.making import REVIEWS, written

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def address(model: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Server], str]:
    folder = tmp_path_factory.mktemp("compare")
    from tests.tiny import save_checkpoint  # see the fixture `model`

    gpt2 = str(save_checkpoint("gpt2", folder / "gpt2"))
    data = written(folder / "reviews.jsonl", REVIEWS)
    columns = [("column", f"gradient_l2@{model}"), ("column", f"occlusion@{gpt2}")]
    asked = urlencode([("input", "text"), ("model", model), ("data", data), ("index", "3"), *columns])
    return lambda server: f"{server.url}/{COMPARE.url_path}?{asked}"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_columns_are_compared_and_disputed_examples_are_found(
    scheme: Scheme, width: int, server: Server, address: Callable[[Server], str], open_page: Open, tmp_path: Path
) -> None:
    # A seed of its own, so that no flow finds the maps of the other.
    page = open_page(f"{address(server)}&seed={width}", scheme=scheme, width=width)
    board = page.get_by_role("region", name=LABEL)
    expect(board.get_by_role("row")).to_have_count(1 + 4, timeout=TIMEOUT_MS)
    expect(board.get_by_role("columnheader").nth(1)).to_contain_text("Gradient L2")
    expect_fits(page)

    page.get_by_role("button", name="Add Random").click()
    expect(board.get_by_role("columnheader")).to_have_count(4, timeout=TIMEOUT_MS)
    page.get_by_role("button", name="A Gradient L2").click()
    page.get_by_role("button", name=PIN).click()
    expect(board.get_by_role("columnheader").nth(2)).to_contain_text("with A: ρ", timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Options").click()
    page.get_by_role("radio", name="Rank changes").click()
    expect(board.get_by_role("columnheader").nth(1)).to_contain_text("reference")
    expect(board.get_by_text("↑").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name=ADD)).to_be_visible()

    page.get_by_text("Examples of the data set, most disagreement first").click()
    page.get_by_role("button", name="Compare the other 5 examples").click(timeout=TIMEOUT_MS)
    expect(page.get_by_text("6 examples. Disagreement is 1 minus")).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(page)
    page.get_by_role("button", name="Random, filtered").click()
    expect(page.get_by_label("Text", exact=True)).not_to_have_value(str(REVIEWS[3]["text"]), timeout=TIMEOUT_MS)
    expect(board.get_by_role("columnheader").nth(2)).to_contain_text("with A", timeout=TIMEOUT_MS)

    with page.expect_download() as saved:
        page.get_by_role("button", name="HTML", exact=True).click()
    file = tmp_path / saved.value.suggested_filename
    saved.value.save_as(file)
    alone = open_page(file.as_uri(), scheme=scheme)
    expect(alone.get_by_role("heading", name="Models and methods compared")).to_be_visible()
    assert alone.locator("script").count() == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_another_text_is_typed_and_its_maps_stand_below_those_of_the_first(
    scheme: Scheme, width: int, server: Server, address: Callable[[Server], str], open_page: Open
) -> None:
    page = open_page(address(server), scheme=scheme, width=width)
    expect(page.get_by_role("region", name=LABEL)).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_text("Compare with another text").click()
    other = page.get_by_label("Other text", exact=True)
    expect(other).to_have_value(str(REVIEWS[3]["text"]), timeout=TIMEOUT_MS)
    other.fill(f"{REVIEWS[3]['text']} yes")
    other.press("Control+Enter")
    expect(page.get_by_role("heading", name="Both texts")).to_be_visible(timeout=TIMEOUT_MS)
    for column in ("Gradient L2", "Occlusion"):
        expect(page.get_by_role("paragraph").filter(has_text=column).filter(has_text=", for ")).to_be_visible(
            timeout=TIMEOUT_MS
        )
    expect(page.get_by_text("percentage points")).to_have_count(2, timeout=TIMEOUT_MS)
    expect_fits(page)
