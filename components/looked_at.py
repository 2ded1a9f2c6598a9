"""What a command looks at: a text or a picture as its arguments, and the file that it reads where those do not do."""

from __future__ import annotations

import io
import shlex
import unicodedata

from components.inputs.link import LONGEST_IN_LINK
from components.inputs.picture_choice import PictureFocus
from engine.request import Example, Input

LONGEST_IN_COMMAND = LONGEST_IN_LINK
TEXT_FILE, PICTURE_FILE = "text.txt", "picture.png"


def text_arguments(example: Example) -> list[str]:
    """The text or the pair; `-` for what is read from standard input."""
    read = from_stdin(example)
    given = ["--text", "-" if read == "text" else example.text]
    if example.text_pair is not None:
        given += ["--text-pair", "-" if read == "text_pair" else example.text_pair]
    return given


def command_line(arguments: list[str], example: Input | None = None) -> str:
    """The command, quoted for a POSIX shell; it reads the example's text from its file where it must."""
    reads = isinstance(example, Example) and from_stdin(example) is not None
    return shlex.join(["exegesis", *arguments]) + (f" < {TEXT_FILE}" if reads else "")


def from_stdin(example: Example) -> str | None:
    """Which text the command reads from standard input: the first that a command line cannot hold well."""
    texts = example.as_plain()
    return next((name for name, text in texts.items() if text is not None and _unfit(text)), None)


def stdin_file(example: Example) -> bytes:
    """What the command is to read, so that it sees the text exactly."""
    text = example.as_plain()[from_stdin(example) or "text"] or ""
    # The command drops one byte order mark and one line end: a text that has its own keeps it.
    return f"\ufeff{text}\r\n".encode()


def picture_arguments(focus: PictureFocus) -> list[str]:
    """The file of an own picture, else its place in the data set."""
    if focus.own:
        return ["--image", PICTURE_FILE]
    split = ["--split", focus.split] if focus.split else []
    return ["--dataset", focus.data, *split, "--index", str(focus.index)]


def picture_file(focus: PictureFocus) -> bytes:
    """The picture as it came, without loss: what the command reads."""
    from PIL import Image

    file = io.BytesIO()
    if focus.picture is not None:
        Image.fromarray(focus.picture.pixels).save(file, "PNG", optimize=True)
    return file.getvalue()


def _unfit(text: str) -> bool:
    """Too long to paste, read as a request for stdin, or holding a character that acts on a terminal."""
    acting = any(unicodedata.category(c) == "Cc" and c != "\n" for c in text)
    return len(text) > LONGEST_IN_COMMAND or text == "-" or acting
