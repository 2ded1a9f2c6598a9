"""The Randomization page in Chromium: it opens with a finished check, a stage opens its maps, a phone scrolls them."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from components.navigation import RANDOMIZATION
from components.randomization.stage_maps import LABEL
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import expect_fits

Open = Callable[..., Page]


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    page = open_page(f"{server.url}/{RANDOMIZATION.url_path}?{query}", **more)
    expect(page.get_by_role("region", name=LABEL)).to_be_visible(timeout=TIMEOUT_MS)
    return page


def test_it_opens_with_curves_verdicts_and_the_maps_of_every_stage(server: Server, open_page: Open) -> None:
    page = opened(server, open_page)
    verdicts = page.get_by_role("list", name="Verdicts on reviews-minilm")
    expect(verdicts.get_by_role("listitem")).to_have_count(6)
    maps = page.get_by_role("region", name=LABEL)
    expect(maps.get_by_role("columnheader")).to_have_count(7)
    expect(maps.get_by_role("columnheader").nth(6)).to_contain_text("Blocks 1 to 6 randomized")
    expect(maps.get_by_text(re.compile("^ρ [+−]")).first).to_be_visible()


def test_a_telephone_scrolls_the_maps_and_not_the_page(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "input=image&stage=2", width=390, touch=True)
    maps = page.get_by_role("region", name=LABEL)
    expect(maps.get_by_role("columnheader")).to_have_count(2)
    expect_fits(page)
