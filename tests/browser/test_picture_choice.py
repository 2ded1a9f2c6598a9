"""The choice of a picture in Chromium: an upload is seen, a bad one refused; a set is browsed, failure cases first."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Locator, Page, expect

from components.inputs.picture_choice import LAST_PICTURE_STAYS
from engine.request import Picture
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of, expect_fits, settled
from tests.unit.data.test_picture_files import png_header

COUNT = 12
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def model(vit: str) -> str:
    return vit


@pytest.fixture(scope="module")
def choosing(parts: Server) -> Server:
    """A page of the choice and the list alone."""
    return parts.page("pictures")


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def pictures(folder: Path) -> str:
    for i in range(COUNT):
        place = folder / "set" / ("cat", "eel")[i % 2] / f"{i // 2:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(png(noise(i)))
    return str(folder / "set")


def address(server: Server, **query: str) -> str:
    return f"{server.url}?{urlencode(query)}"


def expect_picture(page: Page, pixels: np.ndarray) -> None:
    expect(page.get_by_text(f"digest {Picture(pixels).digest}")).to_be_visible(timeout=TIMEOUT_MS)


def give(page: Page, name: str, data: bytes) -> None:
    file: FilePayload = {"name": name, "mimeType": "image/png", "buffer": data}
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(file)


def small(page: Page) -> Locator:
    return page.get_by_role("group", name="Pictures").get_by_role("button")


def names(page: Page) -> list[str]:
    """What a screen reader says of each small picture."""
    return [str(one) for one in small(page).evaluate_all("all => all.map((one) => one.ariaLabel)")]


def test_an_upload_is_looked_at_and_a_bad_one_is_refused_in_one_sentence(choosing: Server, open_page: Open) -> None:
    page = open_page(choosing.url)
    page.get_by_role("radio", name="Your picture").click(timeout=TIMEOUT_MS)
    expect(page.get_by_text("Showing the data-set example until")).to_be_visible(timeout=TIMEOUT_MS)
    give(page, "mine.png", png(noise(99)))
    expect_picture(page, noise(99))
    expect(page).to_have_url(re.compile(f"picture_sha={Picture(noise(99)).digest}"))
    link = page.url
    give(page, "<img src=x>.png", png(noise(98))[:200])
    alert = page.get_by_role("alert").filter(has_text="is damaged or truncated")
    expect(alert).to_be_visible(timeout=TIMEOUT_MS)
    expect(alert).to_contain_text("<img src=x>.png is damaged")
    expect(alert).to_contain_text(LAST_PICTURE_STAYS)
    for name, data, words in (
        ("zero.png", png_header(0, 0), "zero.png has no pixels (0 x 0)."),
        ("empty.png", b"", "empty.png is empty."),
    ):
        give(page, name, data)
        expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible(timeout=TIMEOUT_MS)
        expect(page.get_by_role("alert")).to_have_count(1)
    expect_picture(page, noise(99))
    expect_picture(open_page(link), noise(99))


def test_a_set_is_predicted_listed_failures_first_and_walked_by_mouse_and_key(
    choosing: Server, model: str, tmp_path: Path, open_page: Open
) -> None:
    data = pictures(tmp_path)
    page = open_page(address(choosing, model=model, data=data, open="browse"))
    expect(small(page)).to_have_count(COUNT, timeout=TIMEOUT_MS)
    expect(small(page).nth(0)).to_have_accessible_name("Picture 0, label cat")
    expect(small(page).nth(0)).to_have_attribute("aria-pressed", "true")
    settled(page)
    assert small(page).locator("img").evaluate_all("all => all.every((one) => one.naturalWidth === 24)")
    small(page).nth(5).click()
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value("5", timeout=TIMEOUT_MS)
    expect(small(page).nth(5)).to_have_attribute("aria-pressed", "true")
    settled(page)
    small(page).nth(5).press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value("6", timeout=TIMEOUT_MS)
    page.get_by_role("button", name=f"Predict all {COUNT} pictures").click()
    expect(page.get_by_text(f"{COUNT} examples. Accuracy")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("combobox", name="Sort").click()
    page.get_by_role("option", name="Failure cases first").click()
    page.wait_for_url(re.compile("sort="), timeout=TIMEOUT_MS)
    settled(page)
    expect(small(page).nth(0)).to_have_accessible_name(re.compile(": wrong$"), timeout=TIMEOUT_MS)
    told = [re.search(r"with ([\d.]+)%: (\w+)$", name) for name in names(page)]
    verdicts = [(one[2], float(one[1])) for one in told if one]
    wrong = [share for verdict, share in verdicts if verdict == "wrong"]
    right = [share for verdict, share in verdicts if verdict == "right"]
    assert verdicts == [*(("wrong", one) for one in sorted(wrong)[::-1]), *(("right", one) for one in sorted(right))]
    assert len(verdicts) == COUNT


def test_a_narrow_window_holds_the_list(choosing: Server, tmp_path: Path, open_page: Open) -> None:
    page = open_page(address(choosing, data=pictures(tmp_path), open="browse"), width=390)
    expect(small(page)).to_have_count(COUNT, timeout=TIMEOUT_MS)
    expect_fits(page)
    for at in (0, COUNT - 1):
        box = box_of(small(page).nth(at))
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
