"""Every page runs without an error, alone and inside the frame."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.navigation import HOME, PAGES, PageEntry
from engine.shipped.gallery import GALLERY, PICTURE_METHODS
from tests.project import ROOT, name_of

SECONDS = 120
# What runs models and what draws charts. Their import is left out here: it happens behind the page's back.
HEAVY = ("torch", "transformers", "peft", "scipy", "pandas", "altair")
DRAW_HOME = f"""
import json, sys, threading
from streamlit.testing.v1 import AppTest
from components import compute
compute.import_engine = lambda *_: threading.Thread()
page = AppTest.from_file({str(ROOT / "app.py")!r}, default_timeout={SECONDS}).run()
assert not page.exception
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""

DRAW_IMAGES = f"""
import json, sys, threading
from streamlit.testing.v1 import AppTest
from components import compute
compute.import_engine = lambda *_: threading.Thread()
page = AppTest.from_file({str(ROOT / "pages" / "images.py")!r}, default_timeout={SECONDS}).run()
assert not page.exception
maps = sum("data-v=" in element.proto.body for element in page.get("html"))
print(json.dumps([maps, [name for name in ("torch", "transformers", "peft", "captum") if name in sys.modules]]))
"""


def test_the_navigation_lists_every_page_and_the_first_is_home() -> None:
    files = {name_of(file) for file in (ROOT / "pages").glob("*.py") if file.stem != "__init__"}
    assert {entry.file for entry in PAGES} == files
    assert PAGES[0] is HOME


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_a_caution_is_one_sentence_with_its_source(entry: PageEntry) -> None:
    """None for participants, whom it could sway."""
    if entry.alone:
        assert not entry.caution
    else:
        assert re.fullmatch(
            r"[^.]+ \([A-Z][^()]+, (19|20)\d\d, [A-Z][^()]+\)\.", entry.caution.replace("et al.", "et al")
        )


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_a_page_runs_and_says_what_it_answers(entry: PageEntry) -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    if entry is not HOME:
        page = page.switch_page(entry.file).run()
    assert not page.exception
    assert [title.value for title in page.title] == [entry.heading]
    captions = [caption.value for caption in page.caption]
    assert entry.question in captions
    assert captions[-1] == entry.caution or entry.alone
    names = [component.proto.component_name for component in page.get("bidi_component")]
    assert sum(name.endswith("copy_link") for name in names) == (not entry.alone)


def test_the_home_page_shows_a_map_for_each_piece_of_the_gallery_and_links_to_it() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    links = {link.proto.label.strip("*"): link.proto.query_string for link in page.get("page_link")}
    for piece in GALLERY:
        assert f"model={piece.model}" in links[piece.title]
        assert ("text=" if piece.index is None else f"index={piece.index}") in links[piece.title]
    assert sum('class="xg-map' in html.proto.body for html in page.get("html")) == len(GALLERY)


def test_the_home_page_is_drawn_without_the_libraries_of_models_and_charts() -> None:
    done = subprocess.run([sys.executable, "-c", DRAW_HOME], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_the_images_page_is_drawn_from_the_shipped_results_without_what_runs_models(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRAW_IMAGES], cwd=ROOT, capture_output=True, text=True, timeout=240,
        env={**os.environ, "EXEGESIS_HOME": str(tmp_path), "EXEGESIS_DEVICE": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [len(PICTURE_METHODS), []]
