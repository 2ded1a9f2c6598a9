"""What every page shares: the list of pages, the guard against a missing frame, the heading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

ROOT = Path(__file__).resolve().parent.parent
ICON = ROOT / "components" / "assets" / "icon.svg"


@dataclass(frozen=True)
class PageEntry:
    """A page: its file relative to the project's root, its name in the navigation, what it answers."""

    file: str
    title: str
    heading: str
    question: str

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
LIBRARY = PageEntry(
    "pages/library.py",
    "Library",
    "Library",
    "What is running, and which models, data sets, results and device does it draw on?",
)

PAGES = (HOME, TEXT, IMAGES, LIBRARY)


def navigation() -> list[st.Page]:
    """The pages in their order; the first one opens at the root address."""
    return [st.Page(entry.path, title=entry.title, url_path=entry.url_path) for entry in PAGES]


def guard() -> None:
    """Runs the page inside the frame even when it is the first request of a fresh server.

    With a `pages` folder beside the main script, Streamlit runs a page on its own until the main script
    has called `st.navigation` once. The launcher switches that off before the server starts; this does
    the same for a plain `streamlit run app.py`.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()


def heading(entry: PageEntry) -> None:
    """The page's title and the question that it answers."""
    st.title(entry.heading, anchor=False)
    st.caption(entry.question)
