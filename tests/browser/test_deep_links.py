"""Every page opens inside the frame by its link, also when that is the first request that a fresh server gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import ADVERSARIAL, ANNOTATE, HOME, PAGES, SECTIONS, TEXT, PageEntry
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server


def link(entry: PageEntry) -> str:
    return "/" if entry is HOME else f"/{entry.url_path}"


FIRST = [(way, entry) for way in ("streamlit", "launcher") for entry in (TEXT, ADVERSARIAL, ANNOTATE)]
"""A plain start and the launcher of `exegesis app`, and a page whose imports a server begins with, one whose imports it
does not, and one without the navigation."""


@pytest.mark.parametrize(("way", "entry"), FIRST, ids=lambda given: getattr(given, "title", given))
def test_a_link_opened_first_shows_the_page_in_its_frame(
    way: str, entry: PageEntry, start_server: Callable[[str], Server], open_page: Callable[..., Page]
) -> None:
    server = start_server(way)
    check_frame(open_page(server.url + link(entry) + "?embed_options=show_padding"), server, entry)
    assert "Traceback" not in server.log


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_each_page_opens_in_its_frame_by_its_link(
    entry: PageEntry, server: Server, open_page: Callable[..., Page]
) -> None:
    check_frame(open_page(server.url + link(entry) + "?embed_options=show_padding"), server, entry)


def check_frame(page: Page, server: Server, entry: PageEntry) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(entry.heading, timeout=TIMEOUT_MS)
    navigation = page.get_by_role("banner").get_by_role("navigation")
    single = [] if entry.alone else [other.title for other in SECTIONS[""] if not other.alone]
    expect(navigation.get_by_role("link")).to_have_text(single)
    menus = [] if entry.alone else [name for name in SECTIONS if name]
    expect(navigation.get_by_role("button")).to_have_text(menus)
    expect(page).to_have_title(f"{entry.title} · Exegesis")
    assert page.url == server.url + link(entry) + "?embed_options=show_padding"


@pytest.mark.parametrize("way", ["streamlit", "launcher"])
def test_the_home_page_opens_by_its_name_too(
    way: str, start_server: Callable[[str], Server], open_page: Callable[..., Page]
) -> None:
    server = start_server(way)
    page = open_page(f"{server.url}/{HOME.url_path}")
    expect(page.get_by_role("heading", level=1)).to_have_text(HOME.heading, timeout=TIMEOUT_MS)
    expect(page.get_by_role("dialog")).to_have_count(0)
