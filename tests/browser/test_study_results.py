"""Results of a study in Chromium: the answer, its charts and tables, live votes, what somebody saw; both themes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from components.navigation import RESULTS
from components.palette import PALETTES, Theme
from components.results.sections import ANSWER_SECTIONS, RANKING_SECTIONS
from engine.study.database import ADDRESS, Study, study_database
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.organising import ask, choose_first
from tests.browser.server import Server
from tests.browser.waiting import expect_fits
from tests.unit.study.polls import open_study
from tests.unit.study.tastes import poll

FIRST_BEST = (3.0, 0.0, 0.0)
PHONE = 390


@pytest.fixture
def study(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """An open study in the server's own database, with votes."""
    monkeypatch.setenv("EXEGESIS_HOME", str(server.home))
    monkeypatch.delenv(ADDRESS, raising=False)
    made = open_study(repeats=2)
    poll(made, 8, FIRST_BEST)
    yield made
    study_database().close()


def opened(open_page: Callable[..., Page], server: Server, study: Study, scheme: Theme, width: int) -> Page:
    page = open_page(f"{server.url}/{RESULTS.url_path}?study={study.id}", scheme=scheme, width=width)
    expect(page.get_by_role("heading", name="Integrated gradients is rated above")).to_be_visible(timeout=TIMEOUT_MS)
    return page


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", PHONE)])
def test_the_answer_and_every_section_fit_and_are_drawn(
    scheme: Theme, width: int, server: Server, study: Study, open_page: Callable[..., Page]
) -> None:
    page = opened(open_page, server, study, scheme, width)
    charts = page.locator(".stVegaLiteChart")
    expect(charts).to_have_count(2, timeout=TIMEOUT_MS)
    for chart in charts.all():
        for words in ("Integrated gradients", "rank 1", "placebo, rank"):
            expect(chart.get_by_text(words).first).to_be_visible(timeout=TIMEOUT_MS)
    for number, title in enumerate(
        [title for title, _ in (*RANKING_SECTIONS.values(), *ANSWER_SECTIONS.values())], start=1
    ):
        ask(page, title)
        expect(page.locator("details[open]")).to_have_count(number, timeout=TIMEOUT_MS)
    expect(page.get_by_role("button", name="Study file")).to_be_visible(timeout=TIMEOUT_MS)
    expect(charts).to_have_count(5, timeout=TIMEOUT_MS)
    cell = page.get_by_role("region", name="Share of votes").locator("td[class^=f]").first
    expect(cell).to_have_css("color", rgb(PALETTES[scheme].text))
    expect_fits(page)


def test_the_page_follows_the_votes_and_what_was_open_stays_open(
    server: Server, study: Study, open_page: Callable[..., Page]
) -> None:
    page = opened(open_page, server, study, "light", 1280)
    expect(page.get_by_text("40 rankings by 8 annotators")).to_be_visible(timeout=TIMEOUT_MS)
    ask(page, "Pairwise comparisons")
    table = page.get_by_role("region", name="Share of votes")
    expect(table).to_be_visible(timeout=TIMEOUT_MS)
    poll(study, 1, FIRST_BEST, seed=1)
    expect(page.get_by_text("45 rankings by 9 annotators")).to_be_visible(timeout=TIMEOUT_MS)
    expect(table).to_be_visible()


def test_what_somebody_saw_is_a_link_away_and_so_are_the_results(
    server: Server, study: Study, open_page: Callable[..., Page]
) -> None:
    page = opened(open_page, server, study, "dark", PHONE)
    ask(page, "Results by annotator")
    expect(page.get_by_role("rowheader").filter(has_text=re.compile("^p-"))).to_have_count(8, timeout=TIMEOUT_MS)
    choose_first(page, "Votes by annotator")
    link = page.get_by_role("link", name="Item").first
    link.click(timeout=TIMEOUT_MS)
    expect(page.get_by_role("heading", name="saw on item")).to_be_visible(timeout=TIMEOUT_MS)
    for place in "ABC":
        expect(page.locator(".xg-title").filter(has_text=re.compile(f"^{place}: "))).to_be_visible()
    page.get_by_role("link", name="Back to the results").click()
    expect(page.get_by_role("heading", name="Integrated gradients is rated above")).to_be_visible(timeout=TIMEOUT_MS)


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))
