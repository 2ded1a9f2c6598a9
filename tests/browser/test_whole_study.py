"""A whole study in Chromium: made by the page, answered by two people in browsers of their own, its results seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from components.numbers import count, plain
from components.results.sections import RANKING_SECTIONS
from engine.registry import all_explainers
from tests.browser.annotating import (
    begin,
    button,
    confirm,
    drag,
    steps,
)
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.organising import LINK, answer, ask, number, press
from tests.browser.server import Server
from tests.browser.waiting import FITS, expect_fits
from tests.unit.study.samples import text_design

Open = Callable[..., Page]
Found = dict[str, Any]
AFTER = ("Item 1 of 3", "Item 2 of 3", "Item 3 of 3", "Thank you")
"""What follows one item for practice, two, and one of them again."""
ANSWERS = 3
"""Of one person; practice does not count."""
SECTIONS = tuple(RANKING_SECTIONS[name][0] for name in ("wins", "agreement"))
MEASURES = {"Kendall's W": "kendalls_w", "Krippendorff's α": "krippendorffs_alpha"}
SMALL = {"Number of items": "2", "Practice items": "1", "Items per person": "2", "Repeated items": "1"}


def test_from_the_design_to_the_results(server: Server, open_page: Open, tmp_path: Path) -> None:
    organizer = open_page(f"{server.url}/study")
    link = opened(organizer, tmp_path)
    press(organizer, "Results")
    expect(organizer.get_by_text("No answers yet")).to_be_visible(timeout=TIMEOUT_MS)
    touched = open_page(link, scheme="dark", width=390, touch=True)
    by_touch(touched)
    expect_answers(organizer, ANSWERS, 1)
    for title in SECTIONS:
        ask(organizer, title)
    pointed = open_page(link, apart=True)
    by_mouse(pointed)
    expect_answers(organizer, 2 * ANSWERS, 2)
    found = results(server, organizer)
    assert (found["answers"], found["annotators"]) == (2 * ANSWERS, 2)
    expect_numbers(organizer, found)
    for page in (organizer, touched, pointed):
        expect_fits(page)
    organizer.set_viewport_size({"width": 390, "height": 900})
    organizer.wait_for_function(FITS)


def opened(page: Page, folder: Path) -> str:
    """SMaT's study of a tiny checkpoint is made and opened; its join link."""
    design = text_design(folder)
    press(page, "New study: SMaT's four methods")
    expect(button(page, "Save draft")).to_be_visible(timeout=TIMEOUT_MS)
    for label, other in (("Model", design.model), ("Data set", design.dataset)):
        box = page.get_by_role("combobox", name=label)
        box.fill(other, timeout=TIMEOUT_MS)
        box.press("Enter")
    for label, value in SMALL.items():
        number(page, label, value)
    press(page, "Save draft")
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=TIMEOUT_MS)
    press(page, "Open study …")
    answer(page, "Open study")
    shown = page.get_by_text(LINK)
    expect(shown).to_be_visible(timeout=2 * TIMEOUT_MS)
    return shown.inner_text()


def by_mouse(page: Page) -> None:
    begin(page)
    for then in AFTER:
        drag(page, "C", before=0)
        expect(steps(page).first).to_have_accessible_name("1st of 5: C")
        confirm(page, then)


def by_touch(page: Page) -> None:
    begin(page)
    for then in AFTER:
        button(page, "Move C up").tap()
        button(page, "Tie D with the one above").tap()
        expect(steps(page).nth(2)).to_have_accessible_name("3rd of 5: B and D, tied")
        confirm(page, then)


def results(server: Server, page: Page) -> Found:
    """What the command says of the study that is on the page."""
    study = page.url.rpartition("study=")[2]
    command = [sys.executable, "-m", "engine.cli", "study", "results", study, "--json"]
    environment = {**os.environ, "EXEGESIS_HOME": str(server.home)}
    said = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120)
    found: Found = json.loads(said.stdout)
    return found


def expect_answers(page: Page, answers: int, people: int) -> None:
    """The page, which nobody loads again, comes to tell of these."""
    came = f"{count(people, 'annotator')}, {count(answers, 'answer')}"
    expect(page.get_by_text(came)).to_be_visible(timeout=TIMEOUT_MS)


def expect_numbers(page: Page, found: Found) -> None:
    """Wins and agreement are those that the command tells."""
    expect_wins(page, found["summary"]["wins"])
    for label, name in MEASURES.items():
        measure = page.get_by_test_id("stMetric").filter(has_text=label)
        expect(measure).to_contain_text(plain(found["summary"][name]), timeout=TIMEOUT_MS)


def expect_wins(page: Page, wins: dict[str, dict[str, float]]) -> None:
    """Every cell of the matrix, by the names of its row and its column."""
    table = page.get_by_role("region", name="Share of votes")
    titles = {all_explainers("text")[id].title: id for id in wins}
    columns = [titles[name] for name in table.locator("thead th").all_inner_texts()[1:]]
    for row in table.locator("tbody tr").all():
        above = titles[row.locator("th").inner_text()]
        told = ["" if below == above else f"{100 * wins[above][below]:.0f}%" for below in columns]
        expect(row.locator("td")).to_have_text(told, timeout=TIMEOUT_MS)
