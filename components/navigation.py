"""The pages: their list and navigation, the heading, and its button that copies the link of the page."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st
from streamlit.navigation.page import Page

from components.styles import ASSETS, asset_sheet
from engine.access import STUDY_ONLY

ROOT = Path(__file__).resolve().parent.parent
VISIT = "frame_visit"
"""Session key: the number of the visit to a page, and the page."""
ICON = ASSETS / "icon.svg"
COPY_LINK = "Copy link"
COPY_ANSWERS = {"copied": "Copied", "failed": "Copy it from the address bar"}


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
    "See, compare and test explanations of transformer classifiers.",
)
TEXT = PageEntry(
    "pages/text.py",
    "Text",
    "Explain a text",
    "Which words does the prediction depend on?",
)
IMAGES = PageEntry(
    "pages/images.py",
    "Images",
    "Explain an image",
    "Which patches does the prediction depend on?",
)
ATTENTION = PageEntry(
    "pages/attention.py",
    "Attention",
    "Explore attention",
    "What does each head attend to, and does it matter?",
)
EVALUATE = PageEntry(
    "pages/evaluate.py",
    "Evaluate",
    "Evaluate methods",
    "Which method can you trust, and on which model?",
)
COMPARE = PageEntry(
    "pages/compare.py",
    "Compare",
    "Compare models and methods",
    "Where do models and methods disagree?",
)
REPRODUCTION = PageEntry(
    "pages/reproduction.py",
    "Reproduction",
    "Claims from papers",
    "Do published claims hold on these models?",
)
RANDOMIZATION = PageEntry(
    "pages/randomization.py",
    "Randomization",
    "Randomize a model",
    "Does the explanation depend on the model?",
)
ADVERSARIAL = PageEntry(
    "pages/adversarial.py",
    "Adversarial",
    "Attack an explanation",
    "Can an explanation be manipulated?",
)
SCAFFOLD = PageEntry(
    "pages/scaffold.py",
    "Scaffold",
    "Teach with explanations",
    "Do explanations help a student predict the model?",
)
STUDY = PageEntry(
    "pages/study.py",
    "Study",
    "Studies",
    "Which explanations help or convince people?",
    organizer=True,
)
RESULTS = PageEntry(
    "pages/study_results.py",
    "Study results",
    "Study results",
    "What did people prefer, and how certain is that?",
    organizer=True,
)
ANNOTATE = PageEntry(
    "pages/annotate.py",
    "Take part",
    "Compare explanations",
    "You see a model's prediction and explanations of it. Which one is best?",
    alone=True,
)
LIBRARY = PageEntry(
    "pages/library.py",
    "Library",
    "Library",
    "Which models, data sets, jobs and results are here?",
)

SECTIONS = {
    "": (HOME, REPRODUCTION, LIBRARY, ANNOTATE),
    "Explain": (TEXT, IMAGES, ATTENTION, COMPARE),
    "Test methods": (EVALUATE, RANDOMIZATION, ADVERSARIAL, SCAFFOLD),
    "Ask people": (STUDY, RESULTS),
}
"""The menus of the navigation; the pages without a menu come first, and the first page is the default."""
PAGES = tuple(entry for entries in SECTIONS.values() for entry in entries)


def navigation() -> tuple[Page, PageEntry]:
    """The requested page and its entry, Home at the root address. A page that stands alone shows no others."""
    if os.environ.get(STUDY_ONLY) == "1":
        root = st.Page(_only_studies, title="Exegesis", default=True)
        return st.navigation([root, _page(ANNOTATE)], position="hidden"), ANNOTATE
    sections = {name: [_page(entry) for entry in entries] for name, entries in SECTIONS.items()}
    sections[""].append(st.Page(_open_home, title=HOME.title, url_path=HOME.url_path, visibility="hidden"))
    page = st.navigation(sections, position="hidden" if _entry_of_address().alone else "top")
    return page, next(entry for entry in PAGES if entry.url_path == (page.url_path or HOME.url_path))


def _only_studies() -> None:
    st.info("This server only serves studies. Open the link that you were given.")


def _open_home() -> None:
    """Answer /home, where Streamlit knows the default page only as /."""
    st.switch_page(HOME.path)


def _page(entry: PageEntry) -> Page:
    if entry is HOME:
        return st.Page(entry.path, title=entry.title, url_path="", default=True)
    visibility: Literal["visible", "hidden"] = "hidden" if entry.alone else "visible"
    return st.Page(entry.path, title=entry.title, url_path=entry.url_path, visibility=visibility)


def _entry_of_address() -> PageEntry:
    """The page of the address; without one, Home."""
    last = urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[-1]
    return next((entry for entry in PAGES if entry.url_path == last), HOME)


def heading(entry: PageEntry) -> None:
    """Draw the title of the page, a button that copies its link, and its question; count the visit.

    A page that stands alone has no such button: a participant's address is not to be passed on.
    """
    number, last = st.session_state.get(VISIT, (0, ""))
    if last != entry.url_path:
        st.session_state[VISIT] = (number + 1, entry.url_path)
    with st.container(key="page_heading"):
        st.title(entry.heading, anchor=False)
        if not entry.alone:
            _copy_button()(key="copy_link", data={"label": COPY_LINK, **COPY_ANSWERS}, width="content")
        st.caption(entry.question)


@cache
def _copy_button() -> Callable[..., object]:
    """The button at the end of the title's line, which takes no room of its own.

    The browser copies its own address, so the link is always that of the current state.
    """
    built: Callable[..., object] = st.components.v2.component(
        "exegesis_copy_link",
        html='<button type="button" class="xc-copy"></button><span class="xc-copied" role="status"></span>',
        css=asset_sheet("copy_link"),
        js=(ASSETS / "copy_link.js").read_text(encoding="utf-8"),
        isolate_styles=False,
    )
    return built


def visit_number() -> int:
    """The number of visits to pages in this session: the same while it stays on one."""
    number, _ = st.session_state.get(VISIT, (0, ""))
    return int(number)
