"""Cards: what a data set is, where it comes from, what it is good for. One TOML file each in `cards/`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from engine.errors import unknown

FOLDER = Path(__file__).resolve().parent / "cards"


@dataclass(frozen=True)
class Card:
    """The card of a data set: plain sentences, one a field."""

    title: str
    source: str
    licence: str
    size: str
    made: str
    command: str
    intended_use: str
    limits: str

    def markdown(self) -> str:
        """The card as Markdown: a heading and one line a field."""
        lines = [f"* **{f.name.replace('_', ' ').capitalize()}**: {getattr(self, f.name)}" for f in fields(self)[1:]]
        return "\n".join([f"# {self.title}", "", *lines, ""])


def card_names() -> tuple[str, ...]:
    """The data sets that have a card of their own."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def read_card(name: str) -> Card:
    """The card `cards/<name>.toml`."""
    if name not in card_names():
        raise unknown("card", name, card_names())
    content = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return Card(**{key: " ".join(value.split()) for key, value in content.items()})


def own_card(title: str, source: str, size: str) -> Card:
    """The card of data that the project knows nothing about: a file or a hub data set somebody named."""
    return Card(
        title=title,
        source=source,
        licence="as its source states; not known to Exegesis",
        size=size,
        made="read as it is; nothing was changed but the names of its columns",
        command="none",
        intended_use="whatever the person who named it intends",
        limits="nobody has checked its labels or its rationales here",
    )
