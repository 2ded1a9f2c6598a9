"""SMaT on the Reproduction page in Chromium, in both themes: the paper, verdicts, numbers, the way to the students."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import REPRODUCTION, SCAFFOLD
from components.reproduction.page import PAPER_TITLES
from engine.reproduction.smat import SmatQuery
from engine.reproduction.wording import count_text
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import settled
from tests.unit.reproduction.student_reports import store_report

Open = Callable[..., Page]
CLAIM = "text-smat-baseline"


def test_the_paper_is_chosen_and_its_numbers_lead_to_the_students(
    server: Server, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(server.home))
    made = store_report(SmatQuery())
    page = open_page(f"{server.url}/{REPRODUCTION.url_path}")
    page.get_by_text(PAPER_TITLES["smat"], exact=True).click()
    counts = page.locator(".st-key-reproduction_counts")
    for verdict, number in made.counts.items():
        if number:
            told = re.compile(rf"\b{re.escape(count_text(verdict, number))}$")
            expect(counts.get_by_text(told)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile("paper=smat"))
    page.get_by_text("Text classification").click()
    card = page.locator(f".st-key-claim-{CLAIM}")
    card.get_by_text("Numbers", exact=True).click()
    expect(card.get_by_role("table")).to_contain_text("examples", timeout=TIMEOUT_MS)
    settled(page)
    card.get_by_role("link", name="Students: texts, sparsemax").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(SCAFFOLD.heading, timeout=TIMEOUT_MS)
