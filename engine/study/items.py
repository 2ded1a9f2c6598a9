"""Items of a study as the database holds them, and the names by which an organizer knows them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import sqlalchemy as sa
from jaxtyping import Float
from PIL import Image
from sqlalchemy.orm import Session, defer

from cache.codec import CorruptEntry, decode
from engine.errors import ExegesisError
from engine.request import Example, Input, Picture
from engine.result import Prediction, Token
from engine.serialization import unpack_prediction
from engine.study.database import study_database
from engine.study.tables import Item, ItemExplanation

MAX_CHARACTERS = 70
ELLIPSIS = "…"


@dataclass(frozen=True)
class ItemSnapshot:
    """An item and its explanations, one a method of `Design.ballot_methods`, as rows that are not stored yet."""

    item: Item
    explanations: tuple[ItemExplanation, ...]


@dataclass(frozen=True)
class ItemMap:
    """One explanation as it is drawn, without any sign of how it was made. `grid`: rows and columns of patches."""

    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    grid: tuple[int, int] | None
    truncated: int


@dataclass(frozen=True)
class ItemName:
    """`name`: Item 3, or Practice 1, each counted from 1. `text`: its start, on one line; empty for a picture."""

    name: str
    text: str
    prediction: Prediction

    @property
    def title(self) -> str:
        """The name with the start of the text."""
        return f"{self.name}: {self.text}" if self.text else self.name


def store_items(session: Session, study: int, snapshots: Sequence[ItemSnapshot]) -> None:
    """Add the rows of the items and explanations."""
    for snapshot in snapshots:
        snapshot.item.study = study
    session.add_all([snapshot.item for snapshot in snapshots])
    session.flush()
    for snapshot in snapshots:
        for explanation in snapshot.explanations:
            explanation.item = snapshot.item.id
        session.add_all(snapshot.explanations)


def study_items(session: Session, study: int) -> Sequence[Item]:
    """All items in their order, practice items too."""
    return session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)).all()


def count_items(session: Session, study: int) -> int:
    """The number of stored items, practice items too."""
    return session.scalars(sa.select(sa.func.count()).where(Item.study == study)).one()


def decode_map(explanation: ItemExplanation) -> ItemMap:
    """The stored explanation. Errors: the bytes have changed."""
    try:
        if hashlib.sha256(explanation.body).hexdigest() != explanation.digest:
            raise CorruptEntry("its digest does not fit")
        meta, arrays = decode(explanation.body)
    except CorruptEntry as error:
        raise ExegesisError(
            f"study: explanation {explanation.id} is damaged ({error}). Restore the database."
        ) from error
    grid = tuple(meta["grid"]) if meta["grid"] else None
    return ItemMap(tuple(Token(*token) for token in meta["tokens"]), arrays["scores"], grid, meta["truncated"])


def item_input(item: Item) -> Input:
    """The stored text or picture. Errors: the picture has changed."""
    if item.picture is None:
        return Example(**item.input)
    picture = Picture(np.asarray(Image.open(io.BytesIO(item.picture))))
    if picture.digest != item.input["picture"]:
        raise ExegesisError(f"study: the picture of item {item.id} is damaged. Restore the database.")
    return picture


def item_prediction(item: Item) -> Prediction:
    """The model's prediction when the study opened."""
    return unpack_prediction(item.prediction)


def encode_png(picture: Picture) -> bytes:
    """The pixels and nothing else: no file name, no time, no author."""
    file = io.BytesIO()
    Image.fromarray(picture.pixels).save(file, "PNG")
    return file.getvalue()


def item_names(study: int) -> dict[str, ItemName]:
    """Names by the place in votes and files, which counts practice too."""
    with study_database().reading() as session:
        query = sa.select(Item).where(Item.study == study).options(defer(Item.picture)).order_by(Item.place)
        items = session.scalars(query).all()
    numbers, names = {True: count(1), False: count(1)}, {}
    for item in items:
        name = f"{'Practice' if item.practice else 'Item'} {next(numbers[item.practice])}"
        text = text_start(item.input) if "text" in item.input else ""
        names[str(item.place)] = ItemName(name, text, item_prediction(item))
    return names


def item_pictures(study: int) -> dict[str, Picture]:
    """The pictures of a study by their items' places; empty for texts."""
    with study_database().reading() as session:
        items = session.scalars(sa.select(Item).where(Item.study == study, Item.picture.is_not(None)))
        inputs = {str(item.place): item_input(item) for item in items}
    return {place: picture for place, picture in inputs.items() if isinstance(picture, Picture)}


def text_start(columns: Mapping[str, str | None]) -> str:
    """The first characters of a text, or of a pair of texts, on one line."""
    parts = (columns.get("text"), columns.get("text_pair"))
    line = " ".join(" / ".join(text for text in parts if text is not None).split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[:MAX_CHARACTERS].rstrip()}{ELLIPSIS}"
