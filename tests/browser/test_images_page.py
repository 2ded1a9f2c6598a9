"""The Images page in Chromium: a link reopens what is seen, what is done stands in the link, files hold the numbers."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from components.navigation import HOME, IMAGES
from components.palette import PALETTES
from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.registry import explainer
from engine.request import Picture, Request
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.maps import rgb
from tests.browser.server import Server
from tests.browser.waiting import FITS, box_of, go_to, settled

METHODS = ("gradient_x_input", "attention_mean", "random")
SCENES = "scenes:count=3"
GRID = 3
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def model(vit: str) -> str:
    return vit


def address(server: Server, model: str, **query: str) -> str:
    pairs = [("model", model), ("data", SCENES), *(("method", method) for method in METHODS), *query.items()]
    return f"{server.url}/{IMAGES.url_path}?{urlencode(pairs)}"


def the_map(page: Page, method: str) -> Locator:
    return page.get_by_role("application", name=explainer(method, "image").title, exact=True)


def expect_maps(page: Page) -> None:
    for method in METHODS:
        expect(the_map(page, method)).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)


def drawn(page: Page) -> list[str]:
    """What each map shows: its scores and the colors of both themes."""
    return [the_map(page, method).evaluate("map => map.outerHTML") for method in METHODS]


def click_patch(page: Page, method: str, at: int) -> None:
    the_map(page, method).scroll_into_view_if_needed()
    box = box_of(the_map(page, method))
    row, column = divmod(at, GRID)
    page.mouse.click(box["x"] + (column + 0.5) * box["width"] / GRID, box["y"] + (row + 0.5) * box["height"] / GRID)


def opacity_of(page: Page) -> Locator:
    return page.get_by_role("slider", name="Opacity of the maps in percent")


def test_a_link_reopens_pins_methods_class_and_look(server: Server, model: str, open_page: Open) -> None:
    query = {"index": "1", "pin": "4,5", "target": "eel", "opacity": "40", "gamma": "0.5", "seed": "7"}
    page = open_page(address(server, model, **query), scheme="dark")
    expect_maps(page)
    expect(page.get_by_text("row 2, column 2; row 2, column 3")).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("^Without “row 2, column 2”"))).to_be_visible()
    page.get_by_role("button", name="Options", exact=True).click()
    expect(page.get_by_role("combobox", name=re.compile("Explained class"))).to_have_value("eel")
    page.get_by_role("button", name="Options", exact=True).click()
    expect(opacity_of(page)).to_have_value("40")
    expect(the_map(page, "random").locator(".xg-over")).to_have_css("opacity", "0.4")
    expect(page.get_by_text("As the model sees it")).to_have_css("color", rgb(PALETTES["dark"].text))
    again = open_page(page.url, scheme="dark")
    expect_maps(again)
    assert drawn(again) == drawn(page)
    assert again.url == page.url


def test_a_click_pins_in_the_link_and_the_prediction_without_it_is_shown(
    server: Server, model: str, open_page: Open
) -> None:
    page = open_page(address(server, model))
    expect_maps(page)
    click_patch(page, "attention_mean", 4)
    expect(page).to_have_url(re.compile(r"[?&]pin=4(&|$)"), timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name="Without “row 2, column 2”")).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    click_patch(page, "random", 4)
    expect(page).not_to_have_url(re.compile("pin="), timeout=TIMEOUT_MS)


def test_the_opacity_that_is_left_stands_in_the_link(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model))
    expect_maps(page)
    opacity_of(page).focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("opacity=65"), timeout=TIMEOUT_MS)
    settled(page)
    expect(opacity_of(page)).to_have_value("65")
    expect(the_map(page, "random").locator(".xg-over")).to_have_css("opacity", "0.65")


def saved(page: Page, label: str, folder: Path) -> Path:
    with page.expect_download(timeout=TIMEOUT_MS) as download:
        page.get_by_role("button", name=label, exact=True).click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def test_files_hold_the_numbers_of_the_engine(server: Server, model: str, open_page: Open, tmp_path: Path) -> None:
    page = open_page(address(server, model, index="2", pin="8"))
    expect_maps(page)
    picture = Picture(load_images(SCENES)[2].pixels)
    wanted = {method: explain(Request(model, method, picture)).on_grid for method in METHODS}
    with saved(page, "CSV", tmp_path).open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    answers = json.loads(saved(page, "JSON", tmp_path).read_text(encoding="utf-8"))
    for answer, (method, scores) in zip(answers, wanted.items(), strict=True):
        assert (answer["method"], answer["grid"]) == (method, [GRID, GRID])
        np.testing.assert_allclose(answer["scores"], scores.ravel(), rtol=1e-5, atol=1e-9)
        mine = [float(row["score"]) for row in rows if row["method"] == method]
        assert mine == answer["scores"]
    assert [(row["row"], row["column"]) for row in rows if row["pinned"] == "true"] == [("3", "3")] * len(METHODS)


def test_nothing_is_wider_than_the_window(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, pin="0,1,2"), width=390)
    expect_maps(page)
    page.get_by_text("Details").first.click()
    page.wait_for_function(FITS)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function(FITS)


def test_another_page_and_back_keeps_the_picture_and_its_pins(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, index="1", pin="3"))
    expect_maps(page)
    go_to(page, HOME)
    go_to(page, IMAGES)
    expect_maps(page)
    expect(page).to_have_url(re.compile(r"[?&]pin=3(&|$)"))
    expect(page.get_by_role("spinbutton", name=re.compile("^Example"))).to_have_value("1")
