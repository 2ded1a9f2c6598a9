"""A study as one file: its design, what people see, and if wanted what they answered; and a study from such a file.

The file is JSON and nothing in it is run, unpacked or named by a path. No secret is in it: neither the join link, nor
codes, nor what draws the orders.
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from cache import key_for
from engine.errors import ExegesisError
from engine.format import size_text
from engine.home import product_version
from engine.study.codes import new_token
from engine.study.database import study_database
from engine.study.design import Design
from engine.study.file_parts import FORMAT, VERSION, Answered, Content, read_content
from engine.study.freezing import FrozenItem, frozen_input, frozen_map
from engine.study.studies import CLOSED, DRAFT, StudyRecord, find, record_of
from engine.study.tables import Annotator, Ballot, Event, Item, Plain, Shown, Study, Vote

LARGEST = 256 * 10**6
"""Bytes of a file; a study of a thousand pictures by six methods has about half as many."""


def export_study(study: int, votes: bool = False) -> bytes:
    """The study as it is. With `votes` also all answers that were not taken back, under pseudonyms.

    Errors: what is stored is damaged, or too large for a file that could be read again.
    """
    record = find(study)
    with study_database().reading() as session:
        content = {
            "design": record.design.as_plain(),
            "opened": record.opened,
            "closed": record.closed,
            "items": [_item(session, item) for item in _items(session, study)],
            "votes": _votes(session, study) if votes else None,
        }
    head = {"format": FORMAT, "version": VERSION, "exegesis": product_version(), "digest": key_for(content)}
    data = json.dumps({**head, "content": content}, ensure_ascii=False, allow_nan=False, indent=1).encode()
    if len(data) > LARGEST:
        raise ExegesisError(
            f"study {study}: its file would have {size_text(len(data))}, and at most {size_text(LARGEST)} can be read "
            "again. Take fewer items."
        )
    return data


def import_study(data: bytes) -> StudyRecord:
    """The study of the file, with a number and a join link of its own.

    With votes it is closed, and its results are those that it had. Without it is a draft that opens with the very
    explanations of the file, whatever models and data are here. Errors: what is wrong with the file; nothing is kept.
    """
    if len(data) > LARGEST:
        raise ExegesisError(f"FILE: must have at most {size_text(LARGEST)}, got {size_text(len(data))}.")
    content = read_content(data)
    with study_database().writing() as session:
        study = _study(session, content)
        items = _keep_items(session, study, content.items)
        _keep_votes(session, study, items, content.votes or ())
        details = {"imported": content.digest}
        session.add(Event(study=study.id, kind="created", details=details, at=time.time()))
        return record_of(study)


def _items(session: Session, study: int) -> Sequence[Item]:
    return session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)).all()


def _item(session: Session, item: Item) -> Plain:
    frozen_input(item)  # a damaged picture is not passed on
    shown = session.scalars(sa.select(Shown).where(Shown.item == item.id).order_by(Shown.place))
    return {
        "practice": item.practice,
        "input": item.input,
        "picture": None if item.picture is None else b64encode(item.picture).decode(),
        "label": item.label,
        "prediction": item.prediction,
        "shown": [_shown(one) for one in shown],
    }


def _shown(one: Shown) -> Plain:
    frozen_map(one)  # nor is a damaged explanation
    return {"body": b64encode(one.body).decode(), "digest": one.digest, "provenance": one.provenance}


def _votes(session: Session, study: int) -> list[Plain]:
    found = sa.select(Vote, Annotator.pseudonym, Item.place).join(Annotator, Annotator.id == Vote.annotator)
    found = found.join(Item, Item.id == Vote.item).where(Vote.study == study, Vote.superseded_by.is_(None))
    names = ("repeat", "order", "ranks", "guess", "seconds", "at")
    return [
        {"annotator": who, "item": place, **{name: getattr(vote, name) for name in names}}
        for vote, who, place in session.execute(found.order_by(Vote.id))
    ]


def _study(session: Session, content: Content) -> Study:
    with_votes = content.votes is not None
    study = Study(
        token=new_token(),
        design=(content.design if with_votes else _with_time(content.design)).as_plain(),
        state=CLOSED if with_votes else DRAFT,
        created=time.time(),
        opened=content.opened if with_votes else None,
        closed=(content.closed or time.time()) if with_votes else None,
    )
    session.add(study)
    session.flush()
    return study


def _with_time(design: Design) -> Design:
    """A draft whose time is over could not open."""
    over = design.closes_at is not None and design.closes_at <= time.time()
    return replace(design, closes_at=None) if over else design


def _keep_items(session: Session, study: Study, items: Sequence[FrozenItem]) -> list[Item]:
    for one in items:
        one.item.study = study.id
    session.add_all([one.item for one in items])
    session.flush()
    for one in items:
        for shown in one.shown:
            shown.item = one.item.id
        session.add_all(one.shown)
    return [one.item for one in items]


def _keep_votes(session: Session, study: Study, items: Sequence[Item], votes: Sequence[Answered]) -> None:
    people: dict[str, Annotator] = {}
    for vote in votes:
        if vote.annotator not in people:
            people[vote.annotator] = _somebody(study, vote)
    session.add_all(people.values())
    session.flush()
    for vote in votes:
        where: dict[str, Any] = {
            "study": study.id,
            "annotator": people[vote.annotator].id,
            "item": items[vote.item].id,
            "repeat": vote.repeat,
            "order": list(vote.order),
            "at": vote.at,
        }
        ranks = None if vote.ranks is None else list(vote.ranks)
        session.add(Ballot(token=new_token(), **where))
        session.add(Vote(token=new_token(), ranks=ranks, guess=vote.guess, seconds=vote.seconds, **where))


def _somebody(study: Study, vote: Answered) -> Annotator:
    """A participant of another place: no code leads to them."""
    nobody_knows = secrets.token_hex(32)
    return Annotator(study=study.id, pseudonym=vote.annotator, code=nobody_knows, joined=vote.at, consented=vote.at)
