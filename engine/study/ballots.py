"""What a participant is shown at one time. Nothing here says which method made an explanation."""

from __future__ import annotations

import json
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
from engine.study.annotators import NotKnown, notes_the_end, seat
from engine.study.assignment import ALL, Look, Plan, next_look, places
from engine.study.codes import new_token
from engine.study.coloring import colored
from engine.study.database import study_database
from engine.study.design import PREDICT, Design
from engine.study.freezing import FrozenMap, frozen_input, frozen_map, frozen_prediction
from engine.study.tables import Annotator, Item, Shown, Study, Vote
from engine.study.tables import Ballot as Given

PLACES = string.ascii_uppercase
NOTHING = "nothing"
"""The condition of a guess without an explanation."""


@dataclass(frozen=True)
class Map:
    """One explanation under the name of its place.

    `scores`: one a token, as `coloring.colored` makes them, so that no method's scale tells it. `grid`: rows and
    columns of a picture's patches. `truncated`: tokens that did not fit. `colors`: what the scores show, as in
    `Design`.
    """

    place: str
    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    grid: tuple[int, int] | None
    truncated: int
    colors: str


@dataclass(frozen=True)
class Ballot:
    """An input, the model's prediction and the explanations at their places A, B, ....

    `token` names the ballot in the answer. `done` of `of` ballots are answered, practice not counted. In a study of
    guesses `classes` are what people guess from, the prediction is kept back, and there is one explanation or none.
    `age`: seconds since it was given.
    """

    token: str
    input: Input
    prediction: Prediction | None
    maps: tuple[Map, ...]
    practice: bool
    done: int
    of: int
    classes: tuple[str, ...] = ()
    age: float = 0.0


@notes_the_end
def next_ballot(person: int) -> Ballot | None:
    """The first ballot that this participant was given and has not answered, or a new one; None: they are through.

    Asked again before the answer, on this device or another, it is the same.
    """
    with study_database().reading() as session:
        study, annotator = _agreed(session, person, hold=False)
        given = _unanswered(session, annotator)
        if given is not None:
            return drawn(session, study, annotator, given)
        if _next_look(session, study, annotator) is None:
            return None
    with study_database().writing() as session:  # only now: who asks again waits for nobody's vote
        study, annotator = _agreed(session, person, hold=True)
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
        conditions=_conditions(design),
    )


def _conditions(design: Design) -> tuple[str, ...]:
    """In a study of guesses no explanation or one of them, by its place among those that are shown."""
    return (NOTHING, *map(str, range(len(design.shown)))) if design.mode == PREDICT else (ALL,)


def _agreed(session: Session, person: int, hold: bool) -> tuple[Study, Annotator]:
    study, annotator = seat(session, person, hold)
    if annotator.consented is None:
        raise NotKnown("participant: has not agreed yet. Read what the study asks, and agree first.")
    return study, annotator


def _unanswered(session: Session, annotator: Annotator) -> Given | None:
    open_ballots = sa.select(Given).where(Given.annotator == annotator.id, ~_is_answered())
    return session.scalars(open_ballots.order_by(Given.id)).first()


def _is_answered() -> sa.ColumnElement[bool]:
    same = (Vote.annotator == Given.annotator, Vote.item == Given.item, Vote.repeat == Given.repeat)
    return sa.exists().where(*same, Vote.superseded_by.is_(None))


def _next_look(session: Session, study: Study, annotator: Annotator) -> Look | None:
    seen, answers = _seen(session, study, annotator), _answers(session, study)
    return next_look(plan_of(session, study), annotator.pseudonym, seen, answers)


def _new(session: Session, study: Study, annotator: Annotator) -> Given | None:
    """Gives the next ballot, with its order; None if there is none left."""
    look = _next_look(session, study, annotator)
    if look is None:
        return None
    item = session.scalars(sa.select(Item).where(Item.study == study.id, Item.place == int(look.item))).one()
    given = Given(
        study=study.id,
        annotator=annotator.id,
        item=item.id,
        repeat=look.repeat,
        order=_order(session, study, annotator, look),
        token=new_token(),
        at=time.time(),
    )
    session.add(given)
    session.flush()
    return given


def _order(session: Session, study: Study, annotator: Annotator, look: Look) -> list[int]:
    """The methods' places in the design as they stand on the ballot: all of them, or the one or none to guess with."""
    if look.condition != ALL:
        return [] if look.condition == NOTHING else [int(look.condition)]
    methods = [str(place) for place in range(len(Design.from_plain(study.design).shown))]
    return [int(place) for place in places(plan_of(session, study), annotator.pseudonym, look, methods)]


def _condition(study: Study, order: Sequence[int]) -> str:
    """The condition in which that order is shown."""
    if study.design["mode"] != PREDICT:
        return ALL
    return str(order[0]) if order else NOTHING


def _seen(session: Session, study: Study, annotator: Annotator) -> list[Look]:
    found = sa.select(Item.place, Given.repeat, Item.practice, Given.order).join(Given, Given.item == Item.id)
    rows = session.execute(found.where(Given.annotator == annotator.id).order_by(Given.id))
    return [Look(str(place), repeat, practice, _condition(study, order)) for place, repeat, practice, order in rows]


def _answers(session: Session, study: Study) -> dict[tuple[str, str], int]:
    """How many people answered each item, by its place, in each condition; "cannot tell" is an answer."""
    order = sa.cast(Vote.order, sa.String) if study.design["mode"] == PREDICT else sa.literal("[]")
    counted = sa.select(Item.place, order, sa.func.count()).join(Vote, Vote.item == Item.id)
    firsts = counted.where(Vote.study == study.id, Vote.repeat == 0, Vote.superseded_by.is_(None))
    rows = session.execute(firsts.group_by(Item.place, order))
    return {(str(place), _condition(study, json.loads(shown))): count for place, shown, count in rows}


def drawn(session: Session, study: Study, annotator: Annotator, given: Given) -> Ballot:
    """A ballot as its participant sees it."""
    item = session.get_one(Item, given.item)
    shown = {one.place: one for one in session.scalars(sa.select(Shown).where(Shown.item == item.id))}
    guessing, seen = study.design["mode"] == PREDICT, frozen_input(item)
    return Ballot(
        token=given.token,
        input=seen,
        prediction=None if guessing else frozen_prediction(item),
        classes=frozen_prediction(item).labels if guessing else (),
        maps=_maps([frozen_map(shown[place]) for place in given.order], seen, study.design["colors"]),
        practice=item.practice,
        done=_done(session, annotator),
        of=plan_of(session, study).looks,
        age=max(0.0, time.time() - given.at),
    )


def _maps(shown: Sequence[FrozenMap], given: Input, rule: str) -> tuple[Map, ...]:
    return tuple(
        Map(PLACES[n], one.tokens, colored(one, given, rule), one.grid, one.truncated, rule)
        for n, one in enumerate(shown)
    )


def _done(session: Session, annotator: Annotator) -> int:
    answered = sa.select(sa.func.count()).select_from(Given).join(Item, Item.id == Given.item)
    return session.scalars(answered.where(Given.annotator == annotator.id, ~Item.practice, _is_answered())).one()
