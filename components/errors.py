"""Errors and notes as plain text: names in them come from links and files, so nothing of them is Markdown."""

from __future__ import annotations

import logging
import re
from html import escape
from typing import TYPE_CHECKING, Any

from components.lazy import st
from engine.errors import ExegesisError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator
else:
    DeltaGenerator = Any

LOG = logging.getLogger(__name__)
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
JOINED = re.compile(r"(?<=[:@])|(?<=www)(?=\.)|(?<=[-<>=])(?=[-<>=])", re.IGNORECASE)
"""Between these, Streamlit finds icons, addresses and arrows even where Markdown is escaped."""
FETCH = re.compile(r"Fetch it: (exegesis models get )")
WORD_JOINER = "\u2060"


def describe_error(error: Exception) -> str:
    """The message of an error. An unforeseen one also goes to the log, with its traceback."""
    if isinstance(error, ExegesisError):
        return FETCH.sub(r"Fetch it on the Library page, or: \1", str(error))
    LOG.error("unexpected failure", exc_info=error)
    return f"This failed unexpectedly ({type(error).__name__}: {error}). The server's log has the details."


def show_error(text: str, place: DeltaGenerator | None = None) -> None:
    """Draw an error letter by letter, in `place` or at the end of the page."""
    (st.html if place is None else place.html)(error_html(text))


def show_note(text: str) -> None:
    """Draw a note letter by letter: nothing failed, but it should be read."""
    st.html(note_html(text))


def escape_label(text: str) -> str:
    """The text on one line for a label, escaped: labels are Markdown, which may fetch pictures.

    Invisible word joiners stand where an escape is not enough.
    """
    return PUNCTUATION.sub(r"\\\1", JOINED.sub(WORD_JOINER, " ".join(text.split())))


def error_html(text: str) -> str:
    """An error as HTML, letter by letter."""
    return f'<div class="xg" role="alert"><p class="xg-error">{escape(text)}</p></div>'


def note_html(text: str) -> str:
    """A note as HTML, letter by letter."""
    return f'<div class="xg" role="status"><p class="xg-note">{escape(text)}</p></div>'
