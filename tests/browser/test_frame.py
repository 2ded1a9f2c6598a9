"""The frame in both color schemes: our colors, system fonts, nothing from elsewhere, usable when narrow."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from components.navigation import HOME, IMAGES, TEXT, PageEntry
from components.palette import contrast
from engine.registry import explainer
from engine.shipped.gallery import GALLERY, METHODS
from tests.browser.conftest import ENDED, TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import FITS, box_of, boxes_of, expect_fits, settled
from tests.project import ROOT

PAINTED_COLOR = """(node, name) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d"), app = document.querySelector("[data-testid=stApp]");
  for (const color of [getComputedStyle(app).backgroundColor, getComputedStyle(node)[name]]) {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
  }
  const hex = (part) => part.toString(16).padStart(2, "0");
  return "#" + [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(hex).join("");
}"""
"""A color of an element as it is painted over the ground of the page."""


@pytest.fixture(scope="module")
def theme() -> dict[str, Any]:
    return tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))


def test_the_theme_follows_the_system(
    scheme: str, theme: dict[str, Any], server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, scheme=scheme)
    expect(page.get_by_role("heading", level=1)).to_have_text(HOME.heading, timeout=TIMEOUT_MS)
    app = page.get_by_test_id("stApp")
    expect(app).to_have_css("background-color", rgb(theme[scheme]["backgroundColor"]))
    expect(app).to_have_css("color", rgb(theme[scheme]["textColor"]))
    assert app.evaluate("node => getComputedStyle(node).fontFamily").startswith("system-ui")


@pytest.mark.parametrize(
    ("path", "selected"),
    [("library?section=models", "[role=radio][aria-checked=true]"), ("suppressor", "[data-testid=stSliderThumbValue]")],
)
def test_what_is_selected_can_be_read(
    path: str, selected: str, scheme: str, server: Server, open_page: Callable[..., Page]
) -> None:
    page = settled(open_page(f"{server.url}/{path}", scheme=scheme))
    text, ground = (page.locator(selected).first.evaluate(PAINTED_COLOR, name) for name in ("color", "backgroundColor"))
    assert contrast(text, ground) >= 4.5


def test_the_home_page_leads_to_the_text_page(server: Server, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    page.get_by_test_id("stMain").get_by_role("link", name=TEXT.question).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEXT.heading, timeout=TIMEOUT_MS)
    expect(page).to_have_url(f"{server.url}/{TEXT.url_path}")


def test_a_card_of_the_gallery_opens_its_text_with_every_map_from_the_cache(
    server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url)
    piece, cards = GALLERY[0], page.locator(".xg-card")
    expect(cards.locator(".xg-map")).to_have_count(len(GALLERY), timeout=TIMEOUT_MS)
    page.get_by_role("link", name=piece.title).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEXT.heading, timeout=TIMEOUT_MS)
    expect(page.get_by_label("Text", exact=True)).to_have_value(piece.text, timeout=TIMEOUT_MS)
    rows = page.locator(".xg-row").filter(has_text="cached")
    expect(rows).to_have_count(len(METHODS), timeout=TIMEOUT_MS)
    titles = page.locator(".xg-row .xg-title")
    for place, method in enumerate((piece.method, piece.second)):
        expect(titles.nth(place)).to_have_text(explainer(method).title)
    expect(page.get_by_text(piece.see)).to_be_visible()


@pytest.mark.parametrize(("width", "columns"), [(1280, 3), (390, 1)])
def test_the_gallery_stands_in_as_many_columns_as_fit(
    width: int, columns: int, server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, width=width)
    cards = page.locator(".xg-card")
    expect(cards).to_have_count(1 + len(GALLERY), timeout=TIMEOUT_MS)
    questions = page.get_by_test_id("stMain").get_by_role("link", name=TEXT.question)
    *places, below = boxes_of(*cards.all(), questions)
    assert len({round(place["x"]) for place in places}) == columns
    first = places[0]["y"] < below["y"]
    assert first == (columns == 1), "a phone shows the examples before the questions"
    expect_fits(page)


@pytest.mark.parametrize(
    ("entry", "maps", "width", "height", "whole"),
    [
        (TEXT, ".xg-row:has(.xg-map)", 1280, 900, 4),  # the rationale and three methods
        (TEXT, ".xg-map:not(.xg-marks)", 390, 844, 1),
        (IMAGES, ".xg-card [data-g]", 1280, 900, 4),
    ],
)
def test_the_first_maps_are_on_the_first_screen(
    entry: PageEntry, maps: str, width: int, height: int, whole: int, server: Server, open_page: Callable[..., Page]
) -> None:
    page = settled(open_page(f"{server.url}/{entry.url_path}", width=width, height=height))
    last = page.locator(maps).nth(whole - 1)
    expect(last).to_be_visible(timeout=TIMEOUT_MS)
    box = box_of(last)
    assert box["y"] + box["height"] <= height


def test_on_a_phone_most_of_the_first_picture_and_its_map_is_on_the_first_screen(
    server: Server, open_page: Callable[..., Page]
) -> None:
    page = settled(open_page(f"{server.url}/{IMAGES.url_path}", width=390, height=844))
    for found in (page.locator(".xg-patches").first, page.locator(".xg-card [data-g]").first):
        expect(found).to_be_visible(timeout=TIMEOUT_MS)
        box = box_of(found)
        assert (844 - box["y"]) / box["height"] > 0.6


@pytest.mark.parametrize("path", ["library", "attention?input=image&index=3"])
def test_the_link_of_a_page_is_copied_by_keyboard_and_by_mouse(
    path: str, scheme: str, server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/{path}", scheme=scheme, width=390)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.wait_for_function(ENDED)
    button = page.get_by_role("button", name="Copy link")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    expect(button).to_be_focused()  # its own label again
    page.evaluate("navigator.clipboard.writeText('')")
    button.click()
    expect(page.get_by_role("status").get_by_text("Copied")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.wait_for_function(FITS)


def test_the_link_is_copied_without_a_clipboard_as_over_plain_http(
    server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/library")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy link")
    expect(button).to_be_visible()
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    button.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    expect(page.locator("textarea[readonly]")).to_have_count(0)
    page.evaluate("() => { document.execCommand = () => false; }")
    page.get_by_role("button", name=re.compile("Copy link|Copied")).click()
    expect(page.get_by_role("button", name="Copy it from the address bar")).to_be_visible()
