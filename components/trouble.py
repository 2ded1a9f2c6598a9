"""What a person reads when something fails. Nothing of it is Markdown: names in it come from links and files."""

from __future__ import annotations

import logging
import re

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.library_html import note_html, trouble_html
from engine.errors import ExegesisError

LOG = logging.getLogger(__name__)
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
JOINED = re.compile(r"(?<=[:@])|(?<=www)(?=\.)|(?<=[-<>=])(?=[-<>=])", re.IGNORECASE)
"""Between these, Streamlit finds icons, addresses and arrows even where Markdown is escaped."""
WORD_JOINER = "\u2060"


def sentence(error: Exception) -> str:
    """What a person reads. Anything unforeseen also goes to the log, with its traceback."""
    if isinstance(error, ExegesisError):
        return str(error)
    LOG.error("unforeseen failure", exc_info=error)
    return f"This failed unexpectedly ({type(error).__name__}: {error}). The server's log has the details."


def say_error(text: str, place: DeltaGenerator | None = None) -> None:
    """Draws what failed, letter by letter: in `place`, else where the page has come to."""
    (st.html if place is None else place.html)(trouble_html(text))


def say_note(text: str) -> None:
    """Draws what should be read although nothing failed, letter by letter."""
    st.html(note_html(text))


def literal(text: str) -> str:
    """The text as a label shows it letter by letter, on one line: a label is Markdown, and may fetch pictures.

    Word joiners, which nobody sees, stand where an escape is not enough.
    """
    return PUNCTUATION.sub(r"\\\1", JOINED.sub(WORD_JOINER, " ".join(text.split())))
