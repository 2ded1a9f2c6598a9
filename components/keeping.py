"""What is kept of a page: buttons for files, and the box that says how to cite and repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components.inputs.picture_choice import PictureFocus
from components.looked_at import PICTURE_FILE, TEXT_FILE, from_stdin, picture_file, stdin_file
from engine.request import Example

REPEATS = "This command makes the same numbers"


def file_button(label: str, name: str, kind: str, build: Callable[[], str | bytes], help: str, key: str) -> None:
    """A file to download, built when the button is pressed and not before."""
    st.download_button(label, build, name, kind, key=key, help=help, on_click="ignore", width="content")


def text_button(example: Example, key: str) -> None:
    """The text as a file where the command reads it from one."""
    if from_stdin(example) is not None:
        help = "What the command below reads."
        file_button("Text", TEXT_FILE, "text/plain", lambda: stdin_file(example), help, key)


def picture_button(focus: PictureFocus, key: str) -> None:
    """The picture as a file."""
    help = "The picture as it came, before the model's preprocessing."
    file_button("Picture", PICTURE_FILE, "image/png", lambda: picture_file(focus), help, key)


def how_to_repeat_text(example: Example) -> str:
    """What is said above a command on a text."""
    if from_stdin(example) is None:
        return f"{REPEATS}:"
    return f"{REPEATS}. It reads the text from a file: save {TEXT_FILE} with the button above."


def how_to_repeat_picture(focus: PictureFocus) -> str:
    """What is said above a command on a picture."""
    if not focus.own:
        return f"{REPEATS}:"
    return f"{REPEATS}. It reads the picture from a file: save {PICTURE_FILE} with the button above."


def cite_box(cited: str, commands: Sequence[tuple[str, str]], key: str) -> None:
    """How to cite what is shown, as HTML, and the commands that make it again, a sentence before each."""
    with st.expander("Cite this", key=key):
        st.html(cited)
        for how, command in commands:
            st.caption(how)
            st.code(command, language="bash", wrap_lines=True)
