"""What every page looks at: one model, one data set, one example. The names are the same in every page's link."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from components.text.open_data import DATA, OpenData
from engine.blob_store import load_text, store_text
from engine.data.datasets import dataset_names
from engine.errors import UsageError
from engine.request import Example

Query = dict[str, list[str]]

NAMES = ("model", "data", "index", "digest", "text", "text_sha", "pair", "pair_sha")
"""The names by which a link holds the focus."""
LONGEST_IN_LINK = 1500
DIGEST_CHARACTERS = 8


@dataclass(frozen=True)
class Focus:
    """`index`: the example's place in the data set, while the texts are still its own."""

    model: str
    text: str
    pair: str | None = None
    index: int | None = None
    data: str = DATA

    @property
    def example(self) -> Example:
        return Example(self.text, self.pair)


def read_focus(last: Mapping[str, str], models: list[str], opened: OpenData, said: list[str]) -> Focus:
    """What a link asks to look at; a sentence is added to `said` for everything in it that is not there."""
    text, pair, index = _texts(last, opened, said)
    focus = Focus(last.get("model", models[0] if models else "").strip(), text, pair, index, last.get("data") or DATA)
    if not opened.trouble and is_another(last, focus, opened):
        said.append(
            f"digest: example {index} of {opened.name} is not the text that the link was made of, because the data set "
            "has changed since. Pins and edits of the link are left out; look for the text in the list."
        )
    return focus


def is_another(last: Mapping[str, str], focus: Focus, opened: OpenData) -> bool:
    """Whether the example is another text than the one that the link was made of, so that its pins mean nothing."""
    if focus.index is None:
        return False
    now = digest(focus.example)
    return last.get("digest", "" if opened.trouble else now) != now


def digest(example: Example) -> str:
    """A few hex digits by which an example of a file is known again after rows were put before it."""
    plain = json.dumps([example.text, example.text_pair])
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGEST_CHARACTERS]


def write_focus(focus: Focus) -> Query:
    """What a link says of it: an example of the data set by its index, own texts in full or by their hash."""
    query: Query = {"model": [focus.model]}
    if focus.index is not None:
        query |= {"data": [focus.data], "index": [str(focus.index)]}
        return query if focus.data in dataset_names() else query | {"digest": [digest(focus.example)]}
    query |= {} if focus.data == DATA else {"data": [focus.data]}
    query |= text_query("text", focus.text)
    return query | ({} if focus.pair is None else text_query("pair", focus.pair))


def text_query(name: str, text: str) -> Query:
    """A text in a link: itself, or the hash under which this machine keeps it."""
    if len(text) <= LONGEST_IN_LINK:
        return {name: [text]}
    return {f"{name}_sha": [store_text(text)]}


def read_text(last: Mapping[str, str], name: str, said: list[str]) -> str | None:
    """The text of that name in a link; None where the link has none."""
    digest = last.get(f"{name}_sha")
    if digest is None:
        return last.get(name)
    found = load_text(digest)
    if found is None:
        said.append(
            f"{name}: the link names a long text by its hash, which this machine no longer has. Paste it again."
        )
    return found or ""


def _texts(last: Mapping[str, str], opened: OpenData, said: list[str]) -> tuple[str, str | None, int | None]:
    text, pair = (read_text(last, name, said) for name in ("text", "pair"))
    if text is not None:
        return text, pair, None
    index = _index(last, opened, said)
    return opened.data[index].text, opened.data[index].text_pair, index


def _index(last: Mapping[str, str], opened: OpenData, said: list[str]) -> int:
    if opened.trouble:  # the place was meant in another data set
        return 0
    given, data = last.get("index", "0"), opened.data
    try:
        data[int(given)]
    except (ValueError, UsageError):
        said.append(
            f"index: must be 0 to {len(data) - 1} in {opened.name}, got {given[:40]!r}. The first example is shown."
        )
        return 0
    return int(given)
