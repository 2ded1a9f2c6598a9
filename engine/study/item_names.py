"""The items of a study as an organiser knows them: by a number and the start of the text, with what the model said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import sqlalchemy as sa
from sqlalchemy.orm import defer

from engine.request import Picture
from engine.result import Prediction
from engine.study.database import study_database
from engine.study.freezing import frozen_input, frozen_prediction
from engine.study.tables import Item

MOST_CHARACTERS = 70
CUT = "…"


@dataclass(frozen=True)
class NamedItem:
    """`name`: Item 3, or Practice 1, each counted from 1. `text`: its start, on one line; of a picture nothing."""

    name: str
    text: str
    said: Prediction

    @property
    def title(self) -> str:
        """The name with the start of the text."""
        return f"{self.name}: {self.text}" if self.text else self.name


def named_items(study: int) -> dict[str, NamedItem]:
    """By the place that votes and files name, which counts practice too."""
    with study_database().reading() as session:
        found = sa.select(Item).where(Item.study == study).options(defer(Item.picture)).order_by(Item.place)
        items = session.scalars(found).all()
    counted = {True: count(1), False: count(1)}
    return {str(item.place): _named(item, next(counted[item.practice])) for item in items}


def pictures_of(study: int) -> dict[str, Picture]:
    """The pictures of a study by their items' places; of texts none."""
    with study_database().reading() as session:
        items = session.scalars(sa.select(Item).where(Item.study == study, Item.picture.is_not(None)))
        frozen = {str(item.place): frozen_input(item) for item in items}
    return {place: given for place, given in frozen.items() if isinstance(given, Picture)}


def _named(item: Item, number: int) -> NamedItem:
    text = start_of(item.input) if "text" in item.input else ""
    return NamedItem(f"{'Practice' if item.practice else 'Item'} {number}", text, frozen_prediction(item))


def start_of(given: Mapping[str, str | None]) -> str:
    """The first characters of a text, or of a pair of texts, on one line."""
    parts = (given.get("text"), given.get("text_pair"))
    line = " ".join(" / ".join(text for text in parts if text is not None).split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS].rstrip()}{CUT}"
