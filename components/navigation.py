"""The pages: their list and navigation, the guard against a missing frame, the heading."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st
from streamlit.navigation.page import Page
from streamlit.runtime.pages_manager import PagesManager

from engine.access import STUDY_ONLY

ROOT = Path(__file__).resolve().parent.parent
VISIT = "frame_visit"
"""Session key: the number of the visit to a page, and the page."""
ICON = ROOT / "components" / "assets" / "icon.svg"


@dataclass(frozen=True)
class PageEntry:
    """A page: its file relative to the project's root, its name in the navigation, the question that it answers.

    `alone`: reached only by a link of its own; it neither is in the navigation nor shows one. `organizer`: the page
    itself asks for the organizer, on every server.
    """

    file: str
    title: str
    heading: str
    question: str
    alone: bool = False
    organizer: bool = False

    @property
    def path(self) -> Path:
        return ROOT / self.file

    @property
    def url_path(self) -> str:
        return self.path.stem


HOME = PageEntry(
    "pages/home.py",
    "Home",
    "Exegesis",
    "See, compare and judge explanations of transformer classifiers.",
)
TEXT = PageEntry(
    "pages/text.py",
    "Text",
    "Explain a text",
    "Which words does the prediction rest on, and do the methods agree?",
)
IMAGES = PageEntry(
    "pages/images.py",
    "Images",
    "Explain a picture",
    "Which patches does the prediction rest on, and do the methods agree?",
)
ATTENTION = PageEntry(
    "pages/attention.py",
    "Attention",
    "See inside: attention",
    "What does each head look at, and does it matter for the prediction?",
)
EVALUATE = PageEntry(
    "pages/evaluate.py",
    "Evaluate",
    "Evaluate methods",
    "Which explanation method deserves trust, on which model?",
)
COMPARE = PageEntry(
    "pages/compare.py",
    "Compare",
    "Compare models and methods",
    "Do models and methods point at the same words or patches, and on which examples do they not?",
)
REPRODUCTION = PageEntry(
    "pages/reproduction.py",
    "Reproduction",
    "Claims of papers",
    "Does what a thesis and the SMaT paper found hold on the models that are here?",
)
RANDOMIZATION = PageEntry(
    "pages/randomization.py",
    "Randomization",
    "Randomize a model",
    "Would an explanation look the same if the model had learned nothing?",
)
ADVERSARIAL = PageEntry(
    "pages/adversarial.py",
    "Adversarial",
    "Attack an explanation",
    "Can an explanation be changed while the model answers as before?",
)
SCAFFOLD = PageEntry(
    "pages/scaffold.py",
    "Scaffold",
    "Explanations that teach",
    "Does seeing an explanation help a student foresee what the model will say?",
)
STUDY = PageEntry(
    "pages/study.py",
    "Study",
    "Studies",
    "Which explanations do people find plausible? Ask them, without telling which method made what.",
    organizer=True,
)
RESULTS = PageEntry(
    "pages/study_results.py",
    "Study results",
    "Study results",
    "What did people prefer, and how sure can one be of it?",
    organizer=True,
)
ANNOTATE = PageEntry(
    "pages/annotate.py",
    "Take part",
    "Compare explanations",
    "You see what a model says, and explanations of it. Which do you find best?",
    alone=True,
)
LIBRARY = PageEntry(
    "pages/library.py",
    "Library",
    "Library",
    "What is running, and which models, data sets, results and device does it draw on?",
)

PAGES = (
    HOME, TEXT, IMAGES, ATTENTION, EVALUATE, COMPARE, REPRODUCTION, RANDOMIZATION, ADVERSARIAL, SCAFFOLD,
    STUDY, RESULTS, LIBRARY, ANNOTATE,
)  # fmt: skip


def navigation() -> tuple[Page, PageEntry]:
    """The requested page and its entry, Home at the root address. A page that stands alone shows no others."""
    if os.environ.get(STUDY_ONLY) == "1":
        root = st.Page(_only_studies, title="Exegesis", default=True)
        return st.navigation([root, _page(ANNOTATE)], position="hidden"), ANNOTATE
    pages = [_page(entry) for entry in PAGES]
    page = st.navigation(pages, position="hidden" if _entry_of_address().alone else "top")
    return page, next(entry for entry in PAGES if entry.url_path == (page.url_path or HOME.url_path))


def _only_studies() -> None:
    st.info("This server only serves studies. Open the link that you were given.")


def _page(entry: PageEntry) -> Page:
    visibility: Literal["visible", "hidden"] = "hidden" if entry.alone else "visible"
    return st.Page(entry.path, title=entry.title, url_path=entry.url_path, visibility=visibility)


def _entry_of_address() -> PageEntry:
    """The page of the address; without one, Home."""
    last = urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[-1]
    return next((entry for entry in PAGES if entry.url_path == last), HOME)


def guard() -> None:
    """Run the page inside the frame even when it is the first request of a fresh server.

    With a `pages` folder beside the main script, Streamlit runs a page on its own until the main script
    has called `st.navigation` once. `server.serve` switches that off before the server starts; this does
    the same for a plain `streamlit run app.py`.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()


def heading(entry: PageEntry) -> None:
    """Draw the title of the page and the question that it answers, and count the visit."""
    number, last = st.session_state.get(VISIT, (0, ""))
    if last != entry.url_path:
        st.session_state[VISIT] = (number + 1, entry.url_path)
    st.title(entry.heading, anchor=False)
    st.caption(entry.question)


def visit_number() -> int:
    """The number of visits to pages in this session: the same while it stays on one."""
    number, _ = st.session_state.get(VISIT, (0, ""))
    return int(number)
