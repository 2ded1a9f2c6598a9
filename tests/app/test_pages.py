"""Every page runs without an error, alone and inside the frame."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from components.frame import HOME, PAGES, PageEntry
from tests.project import ROOT, name_of, sources

SECONDS = 120


def test_the_navigation_lists_every_page_and_the_first_is_home() -> None:
    files = {name_of(file) for file in sources("pages") if file.stem != "__init__"}
    assert {entry.file for entry in PAGES} == files
    assert PAGES[0] is HOME


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_a_page_runs_and_says_what_it_answers(entry: PageEntry) -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    if entry is not HOME:
        page = page.switch_page(entry.file).run()
    assert not page.exception
    assert [title.value for title in page.title] == [entry.heading]
    assert entry.question in [caption.value for caption in page.caption]


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_a_page_starts_with_the_guard(entry: PageEntry) -> None:
    lines = [line for line in entry.path.read_text(encoding="utf-8").splitlines() if line and line[0].isalpha()]
    first = next(line for line in lines if not line.startswith(("from ", "import ")))
    assert first == "guard()"
