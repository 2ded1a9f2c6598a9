"""Files of the Text page as Chromium saves them: they open, alone, in both themes, and hold what the page showed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

from PIL import Image, ImageColor
from playwright.sync_api import Page, expect

from components.export import PNG_SCALE
from components.navigation import TEXT
from components.palette import PALETTES, STEPS, Theme, color
from components.svg import WIDTH
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server

METHODS = ("gradient_x_input", "attention_mean", "random")
WORDS = "<script>alert(1)</script> is warm, הסרט נהדר 👍🏽"

Open = Callable[..., Page]


def saved(page: Page, label: str, folder: Path) -> Path:
    with page.expect_download(timeout=TIMEOUT_MS) as download:
        page.get_by_role("button", name=label, exact=True).click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def rgb(value: str) -> str:
    return "rgb({}, {}, {})".format(*(int(value[at : at + 2], 16) for at in (1, 3, 5)))


def test_every_file_is_saved_and_opens_alone(server: Server, model: str, open_page: Open, tmp_path: Path) -> None:
    pairs = [("model", model), *(("method", method) for method in METHODS), ("text", WORDS)]
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}")
    expect(page.get_by_role("button", name="HTML", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    shown = page.locator(".xg-row .xg-text").all_text_contents()
    files = {label: saved(page, label, tmp_path) for label in ("HTML", "SVG", "CSV", "JSON")}
    page.close()

    answers = json.loads(files["JSON"].read_text(encoding="utf-8"))
    assert [answer["method"] for answer in answers] == list(METHODS)
    with files["CSV"].open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    for answer in answers:
        scores = [feature["score"] for feature in answer["features"]]
        assert [float(row[answer["method"]]) for row in rows] == scores
    assert ElementTree.parse(files["SVG"]).getroot().tag.endswith("svg")

    themes: tuple[Theme, ...] = ("light", "dark")
    for theme in themes:
        alone = open_page(files["HTML"].as_uri(), scheme=theme)
        assert alone.locator(".xg-row .xg-text").all_text_contents() == shown
        assert alone.locator("script").count() == 0
        ground, text = (PALETTES[theme].ground, PALETTES[theme].text)
        expect(alone.locator("body")).to_have_css("background-color", rgb(ground))
        expect(alone.locator("body")).to_have_css("color", rgb(text))
        picture = open_page(files["SVG"].as_uri(), scheme=theme)
        expect(picture.locator("rect.ground").first).to_have_css("fill", rgb(ground))
        expect(picture.locator("text.text").first).to_have_css("fill", rgb(text))


def test_the_picture_is_saved_in_pixels_and_in_light_colors(
    server: Server, model: str, open_page: Open, tmp_path: Path
) -> None:
    pairs = [("model", model), *(("method", method) for method in METHODS), ("text", WORDS)]
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}", scheme="dark")
    expect(page.get_by_role("button", name="PNG", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    first, again = (saved(page, "PNG", tmp_path), saved(page, "PNG", tmp_path / "again"))
    assert first.name == "exegesis-maps.png"
    assert first.read_bytes() == again.read_bytes()
    with Image.open(first) as picture:
        assert picture.format == "PNG"
        assert picture.width == PNG_SCALE * WIDTH
        pixels = picture.convert("RGB")
    seen = {pixel for _, pixel in pixels.getcolors(pixels.width * pixels.height) or ()}
    assert pixels.getpixel((0, 0)) == ImageColor.getrgb(PALETTES["light"].ground)
    assert {ImageColor.getrgb(color("light", "amount", STEPS)), ImageColor.getrgb(PALETTES["light"].special)} <= seen
