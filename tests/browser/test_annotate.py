"""Taking part in Chromium: by mouse, by keyboard alone, by touch on a phone; pausing, going back, two tabs, the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from components.annotate.page import OVER
from engine.study.database import Annotator, Vote, study_database
from engine.study.studies import close, create, duplicate, open_study
from tests.browser.annotating import (
    AGREE,
    BACK,
    BEGIN,
    HAVE_IT,
    at_item,
    begin,
    button,
    cannot_tell,
    confirm,
    grip,
    heading,
    join,
    link,
    press_until,
    steps,
    store_of,
)
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import FITS, expect_fits
from tests.unit.study.samples import text_design

Open = Callable[..., Page]
GO_ON = "I have taken part before and have a code"


@pytest.fixture(scope="module")
def study(server: Server, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Three items, one of them twice, after one for practice."""
    with store_of(server):
        return open_study(create(text_design(tmp_path_factory.mktemp("study"))).id).id


@pytest.fixture
def own(server: Server, study: int) -> int:
    """The same study for one test alone."""
    with store_of(server):
        return open_study(duplicate(study).id).id


def token_of(server: Server, study: int) -> str:
    from engine.study.studies import find

    with store_of(server):
        return find(study).token


@pytest.fixture
def address(server: Server, own: int) -> str:
    return link(server, token_of(server, own))


@pytest.fixture
def phone(open_page: Open, address: str) -> Page:
    """A small screen that is touched."""
    return open_page(address, width=390, height=844, touch=True)


def votes(server: Server, study: int) -> list[list[int] | None]:
    """The ranks of the votes that count, in their order."""
    with store_of(server), study_database().reading() as session:
        current = sa.select(Vote.ranks).where(Vote.study == study, Vote.superseded_by.is_(None)).order_by(Vote.id)
        return list(session.scalars(current))


def people(server: Server, study: int) -> int:
    with store_of(server), study_database().reading() as session:
        return int(session.scalar(sa.select(sa.func.count()).where(Annotator.study == study)) or 0)


def test_by_mouse_from_the_link_to_the_thanks(server: Server, own: int, address: str, open_page: Open) -> None:
    page = open_page(address)
    code = begin(page)
    assert code not in page.url
    page.get_by_role("button", name="Move B up", exact=True).click()
    confirm(page, "Item 1 of 4")
    expect(page.get_by_text("Your last answer is saved.")).to_be_visible()
    assert votes(server, own) == [[2, 1, 3]]
    page.get_by_role("button", name="Tie C with the one above", exact=True).click()
    confirm(page, "Item 2 of 4")
    for then in ("Item 3 of 4", "Item 4 of 4", "Thank you"):
        cannot_tell(page, then)
    expect(page.get_by_text("p-")).to_be_visible()
    assert votes(server, own) == [[2, 1, 3], [1, 2, 2], None, None, None]


def test_by_keyboard_alone(server: Server, own: int, address: str, open_page: Open) -> None:
    page = open_page(address)
    expect(button(page, AGREE)).to_be_visible(timeout=TIMEOUT_MS)
    for label, then in ((AGREE, "Your code"), ("I have it", "Instructions"), ("Begin", "Practice")):
        press_until(page, label)
        page.keyboard.press("Enter")
        expect(heading(page, then)).to_be_focused(timeout=TIMEOUT_MS)
    at_item(page, "Practice")
    for ranks, then in (("[3, 1, 2]", "Item 1 of 4"), ("[3, 1, 2]", "Item 2 of 4")):
        page.keyboard.press("Tab")
        expect(grip(page, "A")).to_be_focused()
        page.keyboard.press("End")
        expect(steps(page).nth(2)).to_have_accessible_name("3rd of 3: A")
        press_until(page, "Confirm")
        page.keyboard.press("Enter")
        at_item(page, then)
        expect(heading(page, then)).to_be_focused(timeout=TIMEOUT_MS)
        assert str(votes(server, own)[-1]) == ranks
        page.wait_for_function("() => document.querySelector('[data-testid=stMain]').scrollTop === 0")


def test_by_touch_on_a_phone_nothing_is_wider_than_the_screen(phone: Page, server: Server, own: int) -> None:
    button(phone, AGREE).tap()
    for label in ("I have it", "Begin"):
        expect(button(phone, label)).to_be_visible(timeout=TIMEOUT_MS)
        expect_fits(phone)
        button(phone, label).tap()
    at_item(phone, "Practice")
    button(phone, "Move C up").tap()
    button(phone, "Confirm").tap()
    at_item(phone, "Item 1 of 4")
    expect(heading(phone, "Item 1 of 4")).to_be_in_viewport()
    phone.wait_for_function(FITS)
    assert votes(server, own) == [[1, 3, 2]]


def test_the_last_answer_is_taken_back_and_given_anew(server: Server, own: int, address: str, open_page: Open) -> None:
    page = open_page(address)
    begin(page)
    button(page, "Move B up").click()
    confirm(page, "Item 1 of 4")
    button(page, BACK).click()
    at_item(page, "Practice")
    expect(steps(page).nth(0)).to_have_accessible_name("1st of 3: A")
    expect(button(page, "Confirm")).to_be_disabled()
    assert votes(server, own) == []
    cannot_tell(page, "Item 1 of 4")
    assert votes(server, own) == [None]


def test_a_reload_goes_on_in_this_tab_and_a_code_anywhere(
    server: Server, own: int, address: str, open_page: Open
) -> None:
    page = open_page(address)
    code = begin(page)
    cannot_tell(page, "Item 1 of 4")
    shown = page.locator(".xg-asked").inner_text()
    page.reload()
    at_item(page, "Item 1 of 4")
    assert page.locator(".xg-asked").inner_text() == shown
    elsewhere = open_page(address, scheme="dark", width=390, apart=True)
    elsewhere.get_by_text(GO_ON).click(timeout=TIMEOUT_MS)
    elsewhere.get_by_label("Your code").fill(code.upper().replace("-", " "))
    button(elsewhere, "Continue").click()
    at_item(elsewhere, "Item 1 of 4")
    assert elsewhere.locator(".xg-asked").inner_text() == shown
    assert people(server, own) == 1


def test_a_reload_shows_the_code_until_they_have_it_and_then_what_to_do(address: str, open_page: Open) -> None:
    page = open_page(address)
    code = join(page)
    page.reload()
    expect(page.get_by_text(code, exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    button(page, HAVE_IT).click()
    expect(heading(page, "Instructions")).to_be_visible(timeout=TIMEOUT_MS)
    page.wait_for_function(f"() => {HELD}.some(held => held.includes('instructions'))", timeout=TIMEOUT_MS)
    page.reload()
    expect(heading(page, "Instructions")).to_be_visible(timeout=TIMEOUT_MS)
    button(page, BEGIN).click()
    at_item(page, "Practice")


def test_two_tabs_answer_one_ballot_and_the_later_answer_counts(
    server: Server, own: int, address: str, open_page: Open
) -> None:
    first = open_page(address)
    code = begin(first)
    second = open_page(address)
    second.get_by_text(GO_ON).click(timeout=TIMEOUT_MS)
    second.get_by_label("Your code").fill(code)
    button(second, "Continue").click()
    at_item(second, "Practice")
    button(first, "Move B up").click()
    confirm(first, "Item 1 of 4")
    button(second, "Move C up").click()
    confirm(second, "Item 1 of 4")
    assert votes(server, own) == [[1, 3, 2]]


def test_a_study_that_ends_meanwhile_keeps_what_was_confirmed(
    server: Server, own: int, address: str, open_page: Open
) -> None:
    page = open_page(address)
    begin(page)
    button(page, "Move B up").click()
    confirm(page, "Item 1 of 4")
    with store_of(server):
        close(own)
    button(page, "Move C up").click()
    button(page, "Confirm").click()
    expect(page.get_by_text(OVER)).to_have_count(1, timeout=TIMEOUT_MS)  # the board says it too until it is gone
    expect(page.get_by_text("Your last answer came after the study closed and was not saved.")).to_be_visible()
    assert votes(server, own) == [[2, 1, 3]]
    page.reload()
    expect(page.get_by_text(OVER)).to_be_visible(timeout=TIMEOUT_MS)
    expect(button(page, AGREE)).to_have_count(0)


HELD = "Object.values(sessionStorage)"
KEPT = "Object.keys(sessionStorage).filter(name => name.startsWith('exegesis'))"
"""What the tab holds, and by which names of a participant's, in JavaScript; it hears of a step just after it shows."""


def test_who_is_forgotten_is_not_known_after_a_reload(server: Server, own: int, address: str, open_page: Open) -> None:
    page = open_page(address)
    begin(page)
    page.reload()
    at_item(page, "Practice")
    page.get_by_text("Pause", exact=True).click()
    button(page, "Sign out in this tab").click()
    expect(button(page, AGREE)).to_be_visible(timeout=TIMEOUT_MS)
    page.wait_for_function(f"() => !{KEPT}.length", timeout=TIMEOUT_MS)  # the tab hears it just after the button shows
    page.reload()
    expect(button(page, AGREE)).to_be_visible(timeout=TIMEOUT_MS)
    assert page.evaluate(KEPT) == []
    assert people(server, own) == 1
