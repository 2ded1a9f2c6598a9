"""Files of the Attention page as Chromium saves them: they open alone, and hold what the page showed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image, ImageColor
from playwright.sync_api import Page, expect
from safetensors.numpy import load_file

from components.attention.page import ALL_FILE
from components.export import PNG_SCALE
from components.navigation import ATTENTION, TEXT
from components.palette import PALETTES, STEPS, color
from components.prediction import HEADS_LINK
from components.svg import WIDTH
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.test_text_keep import rgb, saved

WORDS = "<b>warm</b> film"
TOKENS = 11
LAYERS, HEADS = 3, 4

Open = Callable[..., Page]


def address(server: Server, model: str) -> str:
    pairs = {"input": "text", "model": model, "text": WORDS, "score": "off", "head": "1.2"}
    return f"{server.url}/{ATTENTION.url_path}?{urlencode(pairs)}"


def test_every_file_is_saved_and_opens_alone(server: Server, model: str, open_page: Open, tmp_path: Path) -> None:
    page = open_page(address(server, model))
    expect(page.get_by_role("button", name="HTML", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    labels = ("HTML", "CSV", "JSON", "Matrix", "All attention")
    files = {label: saved(page, label, tmp_path) for label in labels}
    page.close()

    attention = load_file(files["All attention"])["attention"]
    assert files["All attention"].name == ALL_FILE
    assert attention.shape == (LAYERS, HEADS, TOKENS, TOKENS)
    with files["Matrix"].open(encoding="utf-8", newline="") as table:
        header, *rows = csv.reader(table)
    assert files["Matrix"].name == "exegesis-head-1.2.csv"
    assert header[:3] == ["query", "0 [CLS]", "1 <"]
    assert [[float(cell) for cell in row[1:]] for row in rows] == attention[1, 2].astype(float).tolist()
    answer = json.loads(files["JSON"].read_text(encoding="utf-8"))
    with files["CSV"].open(encoding="utf-8", newline="") as table:
        kept = list(csv.DictReader(table))
    assert [row["off"] for row in answer["rows"]] == [float(row["off"]) for row in kept]

    alone = open_page(files["HTML"].as_uri(), scheme="dark")
    expect(alone.locator("body")).to_have_css("background-color", rgb(PALETTES["light"].ground))
    assert alone.locator("script").count() == 0
    assert alone.get_by_text("1 <", exact=True).count() == 2
    assert alone.locator("svg g title").count() == LAYERS * HEADS
    picture = alone.locator("svg image")
    expect(picture).to_have_count(1)
    assert picture.evaluate("image => image.getBBox().width") > 100


def test_the_picture_is_saved_in_pixels_with_the_matrix_in_it(
    server: Server, model: str, open_page: Open, tmp_path: Path
) -> None:
    page = open_page(address(server, model), scheme="dark")
    expect(page.get_by_role("button", name="PNG", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    file = saved(page, "PNG", tmp_path)
    assert file.name == "exegesis-heads.png"
    with Image.open(file) as picture:
        assert picture.width == PNG_SCALE * WIDTH
        pixels = picture.convert("RGB")
    seen = {pixel for _, pixel in pixels.getcolors(pixels.width * pixels.height) or ()}
    # Teal is the matrix alone: the fall when switched off has a sign.
    assert ImageColor.getrgb(color("light", "amount", STEPS)) in seen
    assert pixels.getpixel((0, 0)) == ImageColor.getrgb(PALETTES["light"].ground)


def test_a_click_leads_from_a_prediction_to_its_heads(server: Server, model: str, open_page: Open) -> None:
    pairs = {"model": model, "method": "random", "text": WORDS, "target": "LABEL_0"}
    page = open_page(f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}")
    page.get_by_role("button", name=HEADS_LINK).click(timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name=ATTENTION.heading)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_label("Text", exact=True)).to_have_value(WORDS)
    expect(page.get_by_role("heading", name="Export")).to_be_visible(timeout=TIMEOUT_MS)
