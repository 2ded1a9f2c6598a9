"""What the study keeps: studies, their frozen items and explanations, annotators, votes, and what happened.

Times are the server's, in seconds since 1970 (UTC). A deleted study takes all of its rows along.
"""

from __future__ import annotations

import secrets
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Plain = dict[str, Any]
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """All tables of the study. Constraints have names, so that a migration can change them."""

    metadata = sa.MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012  (SQLAlchemy reads it from the class)
        Plain: sa.JSON(none_as_null=True),
        list[int]: sa.JSON(none_as_null=True),
        float: sa.Double(),
    }


def _secret() -> str:
    return secrets.token_urlsafe(32)


class Study(Base):
    """A design and how far it has come. Who knows `token` can join; `secret` draws the orders and nobody is told."""

    __tablename__ = "studies"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012  (SQLAlchemy reads it from the class)
    id: Mapped[int] = mapped_column(primary_key=True)
    token: Mapped[str] = mapped_column(unique=True)
    secret: Mapped[str] = mapped_column(default=_secret)
    design: Mapped[Plain]
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
    """An input as it was when the study opened, with what the model said to it.

    `input`: text and text_pair, or the SHA-256 of a picture whose PNG is in `picture`. `prediction`: labels, logits,
    probabilities, regression. `place` numbers all items of the study from 0, practice items too.
    """

    __tablename__ = "items"
    __table_args__ = (sa.UniqueConstraint("study", "place"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    place: Mapped[int]
    practice: Mapped[bool]
    input: Mapped[Plain]
    picture: Mapped[bytes | None]
    label: Mapped[str | None]
    prediction: Mapped[Plain]


class Shown(Base):
    """One explanation of an item, frozen. `place` is the method's in the design, whose placebo comes last.

    `body` is sealed safetensors of the scores and the tokens or the grid; `digest` is the SHA-256 of the body.
    """

    __tablename__ = "shown"
    __table_args__ = (sa.UniqueConstraint("item", "place"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[int] = _item()
    place: Mapped[int]
    body: Mapped[bytes]
    provenance: Mapped[Plain]
    digest: Mapped[str]


class Annotator(Base):
    """A participant, known by a pseudonym. Of the code that lets them go on elsewhere the SHA-256 is kept."""

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


class Ballot(Base):
    """What an annotator was given to answer, in this order of ids: the same after a reload and on another device.

    `token` is its only name on the page. `order`: the methods' places in the design as they stand at A, B, ....
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

    `order`: the methods' places as they stood on the ballot. `ranks`: a number for each in that order, 1 is best,
    equal numbers are ties; none: cannot tell. `guess`: the answer of a study of guesses. `token` is the client's own,
    so that a submission that comes twice is found once. `superseded_by`: the token of the answer, or of the undo,
    that took its place. An annotator has one vote on an item and repeat that nothing has taken the place of.
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
    guess: Mapped[Plain | None]
    seconds: Mapped[float]
    token: Mapped[str]
    at: Mapped[float]
    superseded_by: Mapped[str | None]


class Event(Base):
    """Something that happened to a study: opened, closed, a rule applied, a vote undone."""

    __tablename__ = "events"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012  (SQLAlchemy reads it from the class)
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    kind: Mapped[str]
    details: Mapped[Plain]
    at: Mapped[float] = mapped_column(index=True)
