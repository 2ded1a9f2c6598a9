"""The Reproduction page in Chromium, in both themes: verdicts, numbers on demand, and the way to the evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import EVALUATE, REPRODUCTION
from engine.reproduction.claims import declaration, thesis_claims
from engine.reproduction.papers import topics_at
from engine.reproduction.report import VERDICTS
from engine.reproduction.thesis import ThesisQuery
from engine.reproduction.wording import count_text
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import settled
from tests.unit.reproduction.stand_ins import store_report

Open = Callable[..., Page]
CLAIM = declaration().claims[0]


def test_verdicts_lead_to_numbers_and_to_the_evaluation(
    server: Server, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(server.home))
    reports = [store_report(ThesisQuery(topic=topic)) for topic in topics_at("thesis", "embedded")]
    counts_of = {verdict: sum(found.counts[verdict] for found in reports) for verdict in VERDICTS}
    assert sum(counts_of.values()) == len(thesis_claims())
    page = open_page(f"{server.url}/{REPRODUCTION.url_path}")
    counts = page.locator(".st-key-reproduction_counts")
    for verdict, number in counts_of.items():
        told = re.compile(rf"\b{re.escape(count_text(verdict, number))}$")
        expect(counts.get_by_text(told)).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("button", name="holds", exact=True).click()
    expect(page).to_have_url(re.compile("show=holds"))
    cards = page.locator("[class*='st-key-claim-']")
    expect(cards).to_have_count(counts_of["holds"])
    card = page.locator(f".st-key-claim-{CLAIM.id}")
    expect(card.get_by_text(CLAIM.says)).to_be_visible()
    card.get_by_text("Numbers", exact=True).click()
    expect(card.get_by_role("table")).to_contain_text("Integrated gradients")
    expect(page).to_have_url(re.compile(f"claim={CLAIM.id}"))
    settled(page)
    card.get_by_role("link", name="Evaluation: marked, T5 sizes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(EVALUATE.heading, timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile("view=scaling"))
