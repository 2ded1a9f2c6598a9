"""What a participant is shown at one time. Nothing here says which method made an explanation."""

from __future__ import annotations

import string
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from jaxtyping import Float
from sqlalchemy.orm import Session

from engine.request import Input
from engine.result import Prediction, Token
from engine.study.annotators import NotKnown, seat
from engine.study.assignment import Look, Plan, next_look, places
from engine.study.codes import new_token
from engine.study.database import study_database
from engine.study.design import Design
from engine.study.freezing import FrozenMap, frozen_input, frozen_map, frozen_prediction
from engine.study.tables import Annotator, Item, Shown, Study, Vote
from engine.study.tables import Ballot as Given

PLACES = string.ascii_uppercase


@dataclass(frozen=True)
class Map:
    """One explanation under the name of its place.

    `scores`: one a token, as shares of the largest size among those that are ranked, so that no method's scale tells
    it; special tokens have 0. `grid`: rows and columns of a picture's patches. `truncated`: tokens that did not fit.
    """

    place: str
    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    grid: tuple[int, int] | None
    truncated: int


@dataclass(frozen=True)
class Ballot:
    """An input, the model's prediction and the explanations at their places A, B, ....

    `token` names the ballot in the answer. `done` of `of` ballots are answered, practice not counted.
    """

    token: str
    input: Input
    prediction: Prediction
    maps: tuple[Map, ...]
    practice: bool
    done: int
    of: int


def next_ballot(person: int) -> Ballot | None:
    """The first ballot that this participant was given and has not answered, or a new one; None: they are through.

    Asked again before the answer, on this device or another, it is the same.
    """
    with study_database().writing() as session:
        study, annotator = seat(session, person)
        if annotator.consented is None:
            raise NotKnown("participant: has not agreed yet. Read what the study asks, and agree first.")
        given = _unanswered(session, annotator) or _new(session, study, annotator)
        return None if given is None else drawn(session, study, annotator, given)


def given_ballot(session: Session, annotator: Annotator, token: str) -> Given:
    """The ballot of that name. Errors: it was given to somebody else, or to nobody."""
    found = session.scalar(sa.select(Given).where(Given.token == token, Given.annotator == annotator.id))
    if found is None:
        raise NotKnown("ballot: unknown. Reload the page for the one that is yours.")
    return found


def plan_of(session: Session, study: Study) -> Plan:
    """What the assignment of this study depends on. Items are named by their places."""
    design = Design.from_plain(study.design)
    rows = session.execute(
        sa.select(Item.place, Item.practice).where(Item.study == study.id).order_by(Item.place)
    ).all()
    return Plan(
        study=study.token,
        secret=study.secret,
        items=tuple(str(place) for place, practice in rows if not practice),
        practice=tuple(str(place) for place, practice in rows if practice),
        per_annotator=design.items_per_annotator,
        repeats=design.repeats,
        votes_per_item=design.votes_per_item,
    )


def _unanswered(session: Session, annotator: Annotator) -> Given | None:
    open_ballots = sa.select(Given).where(Given.annotator == annotator.id, ~_is_answered())
    return session.scalars(open_ballots.order_by(Given.id)).first()


def _is_answered() -> sa.ColumnElement[bool]:
    same = (Vote.annotator == Given.annotator, Vote.item == Given.item, Vote.repeat == Given.repeat)
    return sa.exists().where(*same, Vote.superseded_by.is_(None))


def _new(session: Session, study: Study, annotator: Annotator) -> Given | None:
    """Gives the next ballot, with its order; None if there is none left."""
    plan = plan_of(session, study)
    look = next_look(plan, annotator.pseudonym, _seen(session, annotator), _answers(session, study))
    if look is None:
        return None
    item = session.scalars(sa.select(Item).where(Item.study == study.id, Item.place == int(look.item))).one()
    methods = [str(place) for place in range(len(Design.from_plain(study.design).shown))]
    order = [int(place) for place in places(plan, annotator.pseudonym, look, methods)]
    given = Given(
        study=study.id,
        annotator=annotator.id,
        item=item.id,
        repeat=look.repeat,
        order=order,
        token=new_token(),
        at=time.time(),
    )
    session.add(given)
    session.flush()
    return given


def _seen(session: Session, annotator: Annotator) -> list[Look]:
    found = sa.select(Item.place, Given.repeat, Item.practice).join(Given, Given.item == Item.id)
    rows = session.execute(found.where(Given.annotator == annotator.id).order_by(Given.id))
    return [Look(str(place), repeat, practice) for place, repeat, practice in rows]


def _answers(session: Session, study: Study) -> dict[str, int]:
    """How many people answered each item, by its place; "cannot tell" is an answer."""
    counted = sa.select(Item.place, sa.func.count()).join(Vote, Vote.item == Item.id)
    mine = counted.where(Vote.study == study.id, Vote.repeat == 0, Vote.superseded_by.is_(None))
    return {str(place): count for place, count in session.execute(mine.group_by(Item.place))}


def drawn(session: Session, study: Study, annotator: Annotator, given: Given) -> Ballot:
    """A ballot as its participant sees it."""
    item = session.get_one(Item, given.item)
    shown = {one.place: one for one in session.scalars(sa.select(Shown).where(Shown.item == item.id))}
    return Ballot(
        token=given.token,
        input=frozen_input(item),
        prediction=frozen_prediction(item),
        maps=_maps([frozen_map(shown[place]) for place in given.order]),
        practice=item.practice,
        done=_done(session, annotator),
        of=plan_of(session, study).looks,
    )


def _maps(shown: Sequence[FrozenMap]) -> tuple[Map, ...]:
    return tuple(Map(PLACES[n], one.tokens, _shares(one), one.grid, one.truncated) for n, one in enumerate(shown))


def _shares(one: FrozenMap) -> Float[np.ndarray, "seq"]:
    """Scores over the largest size among them; all 0 if there is nothing but 0."""
    scores = np.where([token.special for token in one.tokens], 0, one.scores)
    largest = np.abs(scores).max(initial=0)
    return scores / largest if largest > 0 else scores


def _done(session: Session, annotator: Annotator) -> int:
    answered = sa.select(sa.func.count()).select_from(Given).join(Item, Item.id == Given.item)
    return session.scalars(answered.where(Given.annotator == annotator.id, ~Item.practice, _is_answered())).one()
