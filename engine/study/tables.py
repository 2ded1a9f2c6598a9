"""Tables of the database: studies, snapshots of their items and explanations, annotators, ballots, votes and events.

Times are the server's, in seconds since 1970 (UTC). Deleting a study deletes all of its rows.
"""

from __future__ import annotations

import secrets
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

JsonObject = dict[str, Any]
_CONSTRAINT_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base class of all tables. Constraints have names, so that a migration can change them."""

    metadata = sa.MetaData(naming_convention=_CONSTRAINT_NAMES)
    type_annotation_map = {  # noqa: RUF012  (SQLAlchemy reads it from the class)
        JsonObject: sa.JSON(none_as_null=True),
        list[int]: sa.JSON(none_as_null=True),
        float: sa.Double(),
    }


class Study(Base):
    """A design and its state. Who knows `token` can join; `secret` draws the orders and never leaves the database."""

    __tablename__ = "studies"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012  (SQLAlchemy reads it from the class)
    id: Mapped[int] = mapped_column(primary_key=True)
    token: Mapped[str] = mapped_column(unique=True)
    secret: Mapped[str] = mapped_column(default=lambda: secrets.token_urlsafe(32))
    design: Mapped[JsonObject]
    state: Mapped[str]
    created: Mapped[float]
    opened: Mapped[float | None]
    closed: Mapped[float | None]


def _study() -> Mapped[int]:
    return mapped_column(sa.ForeignKey("studies.id", ondelete="CASCADE"), index=True)


def _item() -> Mapped[int]:
    return mapped_column(sa.ForeignKey("items.id", ondelete="CASCADE"), index=True)


def _annotator() -> Mapped[int]:
    return mapped_column(sa.ForeignKey("annotators.id", ondelete="CASCADE"), index=True)


class Item(Base):
    """Snapshot of an input and of the model's prediction, taken when the study opened.

    `input`: text and text_pair, or the SHA-256 of the picture whose PNG is in `picture`. `prediction`: labels, logits,
    probabilities, regression. `place` numbers all items of the study from 0, practice items too.
    """

    __tablename__ = "items"
    __table_args__ = (sa.UniqueConstraint("study", "place"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    place: Mapped[int]
    practice: Mapped[bool]
    input: Mapped[JsonObject]
    picture: Mapped[bytes | None]
    label: Mapped[str | None]
    prediction: Mapped[JsonObject]


class ItemExplanation(Base):
    """Snapshot of one explanation of an item. `place`: that of its method in `Design.ballot_methods`.

    `body`: sealed safetensors of the scores and the tokens or the grid; `digest`: SHA-256 of the body.
    """

    __tablename__ = "shown"
    __table_args__ = (sa.UniqueConstraint("item", "place"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[int] = _item()
    place: Mapped[int]
    body: Mapped[bytes]
    provenance: Mapped[JsonObject]
    digest: Mapped[str]


class Annotator(Base):
    """A participant under a pseudonym. `code`: SHA-256 of the code with which they continue elsewhere."""

    __tablename__ = "annotators"
    __table_args__ = (
        sa.UniqueConstraint("study", "pseudonym"),
        sa.UniqueConstraint("study", "code"),
        {"sqlite_autoincrement": True},
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    pseudonym: Mapped[str]
    code: Mapped[str]
    joined: Mapped[float]
    consented: Mapped[float | None]


class IssuedBallot(Base):
    """A ballot issued to an annotator, in this order of ids: the same after a reload and on another device.

    `token`: its only name on the page. `order`: the methods' places in the design, in the order A, B, ....
    """

    __tablename__ = "ballots"
    __table_args__ = (sa.UniqueConstraint("annotator", "item", "repeat"), {"sqlite_autoincrement": True})
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    annotator: Mapped[int] = _annotator()
    item: Mapped[int] = _item()
    repeat: Mapped[int]
    order: Mapped[list[int]]
    token: Mapped[str] = mapped_column(unique=True)
    at: Mapped[float]


class Vote(Base):
    """One answer to a ballot.

    `order`: as on the ballot. `ranks`: a number for each method in that order, 1 is best, equal numbers are ties; none:
    cannot tell. `guess`: the answer in a study of guesses. `token`: chosen by the client, so that a repeated submission
    is stored once. `superseded_by`: the token of the answer, or of the undo, that replaced it. An annotator has at most
    one vote on an item and repeat that is not superseded.
    """

    __tablename__ = "votes"
    __table_args__ = (
        sa.UniqueConstraint("annotator", "token"),
        sa.Index(
            "uq_votes_current",
            "annotator",
            "item",
            "repeat",
            unique=True,
            sqlite_where=sa.text("superseded_by IS NULL"),
            postgresql_where=sa.text("superseded_by IS NULL"),
        ),
        sa.Index(None, "study", "at"),
        {"sqlite_autoincrement": True},
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    annotator: Mapped[int] = _annotator()
    item: Mapped[int] = _item()
    repeat: Mapped[int]
    order: Mapped[list[int]]
    ranks: Mapped[list[int] | None]
    guess: Mapped[JsonObject | None]
    seconds: Mapped[float]
    token: Mapped[str]
    at: Mapped[float]
    superseded_by: Mapped[str | None]


class Event(Base):
    """An event of a study's log: opened, closed, a rule applied, a vote undone."""

    __tablename__ = "events"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012  (SQLAlchemy reads it from the class)
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    kind: Mapped[str]
    details: Mapped[JsonObject]
    at: Mapped[float] = mapped_column(index=True)
