"""Errors and notes as plain text, never as Markdown, since the names in them come from links and files."""

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
"""Positions where Streamlit detects icons, addresses and arrows even in escaped Markdown."""
FETCH = re.compile(r"Fetch it: (exegesis models get )")
WORD_JOINER = "\u2060"


def describe_error(error: Exception) -> str:
    """Return the message of an error. An unexpected error is also logged, with its traceback."""
    if isinstance(error, ExegesisError):
        return FETCH.sub(r"Fetch it on the Library page, or: \1", str(error))
    LOG.error("unexpected failure", exc_info=error)
    return f"This failed unexpectedly ({type(error).__name__}: {error}). The server's log has the details."


def show_error(text: str, place: DeltaGenerator | None = None) -> None:
    """Draw an error as plain text, in `place` or at the end of the page."""
    (st.html if place is None else place.html)(error_html(text))


def show_note(text: str) -> None:
    """Draw a note as plain text, for something that did not fail but should be read."""
    st.html(note_html(text))


def escape_label(text: str) -> str:
    """Return the text on one line, escaped for a label: labels are Markdown, which may fetch pictures.

    Invisible word joiners are inserted where escaping is not enough.
    """
    return PUNCTUATION.sub(r"\\\1", JOINED.sub(WORD_JOINER, " ".join(text.split())))


def error_html(text: str) -> str:
    """HTML of an error; the text is escaped."""
    return f'<div class="xg" role="alert"><p class="xg-error">{escape(text)}</p></div>'


def note_html(text: str) -> str:
    """HTML of a note; the text is escaped."""
    return f'<div class="xg" role="status"><p class="xg-note">{escape(text)}</p></div>'
