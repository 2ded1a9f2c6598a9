"""Heads switched and scaled in Chromium: by button and by keys, at any width, in both themes, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from components.navigation import ATTENTION
from components.palette import PALETTES
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, settled

TEXT = "the acting is warm and funny"
Open = Callable[..., Page]


def address(server: Server, model: str, **query: str) -> str:
    asked = {"input": "text", "model": model, "text": TEXT, "head": "1.2", "open": "switch", **query}
    return f"{server.url}/{ATTENTION.url_path}?{urlencode(asked)}"


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))


def test_a_head_is_switched_off_scaled_by_keys_and_restored(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model), scheme="dark")
    page.get_by_role("button", name="Switch off head 1.2").click(timeout=TIMEOUT_MS)
    told = page.locator(".xg-beside ~ p", has_text="percentage points")
    expect(told).to_be_visible(timeout=TIMEOUT_MS)
    expect(told).to_have_css("color", rgb(PALETTES["dark"].text))
    expect(page).to_have_url(re.compile(r"switched=1\.2x0(&|$)"))
    expect(page.locator(".xg-pair .xg-versions")).to_contain_text("beforeafter", timeout=TIMEOUT_MS)
    slider = page.get_by_role("slider", name="Scale of head 1.2")
    expect(slider).to_have_value("0")
    slider.focus()
    slider.press("ArrowRight")
    expect(page.get_by_role("button", name="1.2 × 0.1")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile(r"switched=1\.2x0\.1"))
    page.get_by_role("button", name="Restore all heads").click()
    expect(page.get_by_text("No head is changed.")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page).not_to_have_url(re.compile("switched"))
    expect(page.locator(".xg-pair")).to_have_count(0)


def test_a_link_with_a_layer_off_fits_a_phone(server: Server, model: str, open_page: Open) -> None:
    off = ",".join(f"1.{head}x0" for head in range(4))
    page = open_page(address(server, model, switched=off), width=390)
    expect(page.get_by_role("button", name="layer 1 off")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(".xg-pair .xg-col").first).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(page)
    ends = page.locator(".xg-pair .xg-col").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert max(ends) <= 390


def test_the_maps_of_a_picture_tell_and_pin_a_patch_together(server: Server, vit: str, open_page: Open) -> None:
    asked = {"input": "image", "model": vit, "data": "scenes:count=3", "switched": "1.0x0", "open": "switch"}
    page = open_page(f"{server.url}/{ATTENTION.url_path}?{urlencode(asked)}")
    maps = page.locator(".st-key-picture_cards [data-g]")
    expect(maps).to_have_count(2, timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name="Export")).to_be_visible(timeout=TIMEOUT_MS)  # the page is drawn to its end
    settled(page)
    for map in maps.all():
        map.hover()
        expect(page.locator(".xg-tip:visible")).to_have_text(re.compile(r"rank \d+ of 9 · row 2, column 2"))
    maps.last.click()
    pinned = page.get_by_role("status").filter(has_text="Pinned")
    expect(pinned).to_have_text("Pinned row 2, column 2", timeout=TIMEOUT_MS)
    expect(page.get_by_role("button", name="Clear", exact=True)).to_be_visible()


def test_the_agreement_of_heads_is_computed_when_it_is_asked_for(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, view="received"))
    page.get_by_role("button", name="Compare the heads with Integrated gradients").click(timeout=TIMEOUT_MS)
    expect(page.get_by_text(re.compile("Head 1.2, shown above: ρ ="))).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("radio", name="Kernel SHAP").click()
    expect(page.get_by_role("button", name="Compare the heads with Kernel SHAP")).to_be_visible(timeout=TIMEOUT_MS)
