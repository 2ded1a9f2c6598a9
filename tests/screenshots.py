"""Retakes the screenshots of the documentation, or only those named: `python -m tests.screenshots [NAME ...]`.

It starts a server with an empty home folder, opens each page in both themes and writes `docs/screenshots/`. The votes
in the study are simulated.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import sqlalchemy as sa
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from components.palette import Theme
from engine.study.database import Study, study_database
from tests.browser import annotating
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server, running
from tests.browser.waiting import settled
from tests.project import ROOT
from tests.unit.study.tastes import poll

FOLDER = ROOT / "docs" / "screenshots"
WIDTH, TIMEOUT_MS = 1280, 240_000
THEMES: tuple[Theme, ...] = ("light", "dark")
PAGES = {
    "home": ("", 1000),
    "text": ("text?index=18&pin=16%2C17", 1100),
    "columns": ("text?layout=aligned&pin=7", 1000),
    "images": ("images", 1100),
    "attention": ("attention", 1100),
    "layers": ("layers", 1250),
    "compare": ("compare", 1000),
    "evaluate": ("evaluate", 1100),
    "behavior": ("behavior", 1100),
    "corpus": ("corpus", 1000),
    "rules": ("rules", 1000),
    "randomization": ("randomization", 1000),
    "adversarial": ("adversarial", 1000),
    "suppressor": ("suppressor", 1000),
    "scaffold": ("scaffold", 1000),
    "reproduction": ("reproduction", 1000),
}
"""Address and height of each page."""
CREATE = ("create", "--preset", "smat", "--model", "reviews-minilm", "--dataset", "reviews")
TITLE = "Which explanations of reviews do people find plausible?"
STRENGTHS = (1.0, 2.0, 1.2, 1.2, -2.0)
"""Of the preset's methods and the placebo, in the order of the design."""
PEOPLE = 12


def save(page: Page, name: str, theme: Theme) -> None:
    """Write the visible part of the page, without loss."""
    file = FOLDER / f"{name}-{theme}.webp"
    Image.open(BytesIO(page.screenshot())).convert("RGB").save(file, lossless=True, method=6, quality=100)
    print(f"{file.name}: {file.stat().st_size:,} bytes", flush=True)


def open_page(browser: Browser, url: str, height: int, theme: Theme) -> Page:
    page = browser.new_context(viewport={"width": WIDTH, "height": height}, color_scheme=theme).new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(url)
    return page


def open_study(home: Path) -> Study:
    """A study of reviews that takes votes; the explanations are real."""
    for arguments in (
        [*CREATE, "--title", TITLE, "--set", "items.count=8", "--set", "items_per_annotator=6"],
        ["open", "1"],
    ):
        command = [sys.executable, "-m", "engine.cli", "study", *arguments]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "EXEGESIS_HOME": str(home)}, check=True)
    with study_database().reading() as session:
        return session.scalars(sa.select(Study)).one()


def take_study(browser: Browser, server: Server, wanted: Callable[[str], bool]) -> None:
    """A participant's screen, and the results of simulated votes."""
    with annotating.store_of(server):
        study = open_study(server.home)
        poll(study, PEOPLE, STRENGTHS)
        for theme in THEMES:
            if wanted("annotate"):
                page = open_page(browser, annotating.link(server, study.token), 960, theme)
                annotating.begin(page)  # it also waits for the explanations; the bar of progress stays
                save(page, "annotate", theme)
            if wanted("results"):
                page = open_page(browser, f"{server.url}/study_results?study={study.id}", 900, theme)
                page.get_by_text("Rating", exact=True).first.wait_for()
                save(settled(page), "results", theme)


def main(*names: str) -> None:
    """Take those of the names, or all."""

    def wanted(name: str) -> bool:
        return not names or name in names

    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, (address, height) in PAGES.items():
            for theme in THEMES if wanted(name) else ():
                page = open_page(browser, f"{server.url}/{address}", height, theme)
                save(settled(page), name, theme)
                page.context.close()
        if wanted("annotate") or wanted("results"):
            take_study(browser, server, wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
