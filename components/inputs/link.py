"""An input in a link: a text itself or its hash, and a digest that recognizes an example of a changing file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from components.links import Query
from engine.request import Example
from engine.store import load_text, store_text

LONGEST_IN_LINK = 1500
DIGEST_CHARACTERS = 8


def write_text(name: str, text: str) -> Query:
    """A text in a link: itself, or the hash under which this machine stores it."""
    if len(text) <= LONGEST_IN_LINK:
        return {name: [text]}
    return {f"{name}_sha": [store_text(text)]}


def read_text(last: Mapping[str, str], name: str, notes: list[str]) -> str | None:
    """The text of that name in a link; None where the link has none."""
    sha = last.get(f"{name}_sha")
    if sha is None:
        return last.get(name)
    text = load_text(sha)
    if text is None:
        notes.append(
            f"{name}: the link refers to a long text by its hash, which this machine does not have. Paste it again."
        )
    return text or ""


def text_digest(example: Example) -> str:
    """A few hex digits that recognize an example of a file after rows were put before it."""
    content = json.dumps([example.text, example.text_pair])
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_CHARACTERS]
