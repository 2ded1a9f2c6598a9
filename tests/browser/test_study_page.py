"""An organizer's way through the Study page: a study is made, opened, sent, closed, copied, put away and deleted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import TIMEOUT_MS
from tests.browser.organising import LINK, answer, number, press
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, settled

NUMBERS = "**/NumberInput.*.js"
TITLE = "Which explanations do people find plausible?"


@pytest.fixture(scope="module")
def server(own_server: Server) -> Server:
    """Of its own: no other study has the title by which a study is found."""
    return own_server


def made(page: Page) -> None:
    """A draft by the preset, of so few items that it opens soon."""
    press(page, "New study: SMaT's four methods")
    number(page, "Number of items", "3")
    number(page, "Items per person", "3")
    press(page, "Save draft")
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=TIMEOUT_MS)


def test_what_is_typed_while_the_form_is_drawn_stays(server: Server, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}/study", hasty=True)
    press(page, "New study: SMaT's four methods")
    title = page.get_by_role("textbox", name="Title")
    title.fill("Typed at once")
    title.press("Tab")
    number(page, "Number of items", "4")
    number(page, "Items per person", "4")
    settled(page)
    numbers = [page.get_by_role("spinbutton", name=name) for name in ("Number of items", "Items per person")]
    expect(title).to_have_value("Typed at once")
    for field in numbers:
        expect(field).to_have_value("4")
    press(page, "Save draft")
    expect(page.get_by_role("heading", name="Typed at once")).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    for field in numbers:
        expect(field).to_have_value("4")


def test_nothing_can_be_typed_before_every_control_is_loaded(server: Server, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}/study", apart=True, hasty=True)
    held: list[Route] = []
    page.route(NUMBERS, lambda route: held.append(route))
    with page.expect_request(NUMBERS):
        press(page, "New study: SMaT's four methods")
    title = page.get_by_role("textbox", name="Title", include_hidden=True)
    expect(title).to_have_count(1)
    expect(page.get_by_text("Loading the form")).to_have_count(0)
    expect(title).not_to_be_visible()
    page.unroute(NUMBERS)  # lets go what is held
    expect(title).to_be_visible()


def test_an_organizer_makes_opens_sends_closes_copies_archives_and_deletes(
    server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/study", width=390)
    made(page)
    expect_fits(page)
    press(page, "Open study …")
    answer(page, "Open study")
    expect(page.get_by_text("Opening:").or_(page.get_by_text("Join link")).first).to_be_visible(timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile("[?&]study=."))
    address = page.url
    page.close()

    page = open_page(address, width=390)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(page.get_by_text("Join link")).to_be_visible(timeout=2 * TIMEOUT_MS)
    shown = page.get_by_text(LINK)
    shown.hover()
    page.get_by_test_id("stCode").get_by_role("button").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert LINK.fullmatch(link)
    assert link == shown.inner_text()
    expect_fits(page)
    visitor = open_page(link, width=390)
    expect(visitor.get_by_text(TITLE).first).to_be_visible(timeout=TIMEOUT_MS)
    expect(visitor.get_by_role("link", name="Library")).to_have_count(0, timeout=TIMEOUT_MS)

    press(page, "Close …")
    answer(page, "Close the study")
    expect(page.get_by_text("The study is closed and accepts no more votes.")).to_be_visible(timeout=TIMEOUT_MS)
    press(page, "Duplicate")
    expect(page.get_by_role("heading", name=f"Copy of {TITLE}")).to_be_visible(timeout=TIMEOUT_MS)
    page.go_back()
    press(page, "Archive")
    expect(page.get_by_text("The study is archived")).to_be_visible(timeout=TIMEOUT_MS)

    press(page, "Delete …")
    sure = page.get_by_role("dialog").get_by_role("button", name="Delete the study", exact=True)
    expect(sure).to_be_disabled(timeout=TIMEOUT_MS)
    page.get_by_label("Type the title to confirm").fill(TITLE)
    page.get_by_label("Type the title to confirm").press("Enter")
    sure.click()
    expect(page.get_by_text("is deleted.")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name=TITLE, exact=True)).to_have_count(0, timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name=f"Copy of {TITLE}").first).to_be_visible(timeout=TIMEOUT_MS)


def test_a_study_file_brings_the_study_back(server: Server, open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page(f"{server.url}/study")
    made(page)
    with page.expect_download() as download:
        press(page, "Study file")
    download.value.save_as(tmp_path / "study.json")
    press(page, "All studies")
    page.get_by_text("Import a study").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "study.json")
    press(page, "Import the study")
    expect(page.get_by_text("Study imported")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name=TITLE)).to_be_visible(timeout=TIMEOUT_MS)
