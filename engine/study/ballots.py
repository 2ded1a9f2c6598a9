"""Ballots as participants see them, and replays for the organizer. A ballot does not reveal any method."""

from __future__ import annotations

import json
import string
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from jaxtyping import Float
from sqlalchemy.orm import Session

from engine.errors import UsageError
from engine.request import Example, Input
from engine.result import Prediction, Token
from engine.study.access import new_token
from engine.study.annotators import UnknownIdentifier, admit, closes_when_over
from engine.study.assignment import ALL, AssignmentPlan, ItemView, next_view, order_methods
from engine.study.counted_votes import CountedVote, counted_votes, method_names
from engine.study.database import study_database
from engine.study.design import BY_RANK, BY_SIGN, PREDICT, Design
from engine.study.items import ItemMap, decode_map, item_input, item_prediction
from engine.study.tables import Annotator, IssuedBallot, Item, ItemExplanation, Study, Vote
from engine.word_units import units

PLACES = string.ascii_uppercase
NO_EXPLANATION = "nothing"
"""The condition of a guess without an explanation."""


@dataclass(frozen=True)
class BallotMap:
    """One explanation under the name of its place.

    `scores`: one a token, from `color_scores`, so that no method is recognized by its scale. `grid`: rows and columns
    of a picture's patches. `truncated`: tokens that did not fit. `colors`: what the scores show, as in `Design`.
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

    `token` identifies the ballot in the answer. `done` of `of` ballots are answered, without practice. In a study of
    guesses people choose from `classes`, the prediction is withheld, and there is one explanation or none. `age`:
    seconds since it was issued.
    """

    token: str
    input: Input
    prediction: Prediction | None
    maps: tuple[BallotMap, ...]
    practice: bool
    done: int
    of: int
    classes: tuple[str, ...] = ()
    age: float = 0.0


@closes_when_over
def next_ballot(participant: int) -> Ballot | None:
    """The first unanswered ballot of this participant, or a new one; None at the end.

    Until the answer it stays the same, on every device.
    """
    with study_database().reading() as session:
        study, annotator = _admit_consented(session, participant, lock=False)
        issued = _unanswered(session, annotator)
        if issued is not None:
            return render_ballot(session, study, annotator, issued)
        if _next_view(session, study, annotator) is None:
            return None
    with study_database().writing() as session:  # only now: asking again waits for nobody's vote
        study, annotator = _admit_consented(session, participant, lock=True)
        issued = _unanswered(session, annotator) or _issue(session, study, annotator)
        return None if issued is None else render_ballot(session, study, annotator, issued)


def find_ballot(session: Session, annotator: Annotator, token: str) -> IssuedBallot:
    """The annotator's ballot of that token. Errors: it was issued to somebody else, or to nobody."""
    query = sa.select(IssuedBallot).where(IssuedBallot.token == token, IssuedBallot.annotator == annotator.id)
    issued = session.scalar(query)
    if issued is None:
        raise UnknownIdentifier("ballot: unknown. Reload the page for the one that is yours.")
    return issued


def assignment_plan(session: Session, study: Study) -> AssignmentPlan:
    """The plan of the study's assignment. Items are named by their places."""
    design = Design.from_json(study.design)
    query = sa.select(Item.place, Item.practice).where(Item.study == study.id).order_by(Item.place)
    rows = session.execute(query).all()
    guessed_with = (NO_EXPLANATION, *map(str, range(len(design.ballot_methods))))
    return AssignmentPlan(
        study=study.token,
        secret=study.secret,
        items=tuple(str(place) for place, practice in rows if not practice),
        practice=tuple(str(place) for place, practice in rows if practice),
        per_annotator=design.items_per_annotator,
        repeats=design.repeats,
        votes_per_item=design.votes_per_item,
        conditions=guessed_with if design.mode == PREDICT else (ALL,),
    )


def render_ballot(session: Session, study: Study, annotator: Annotator, issued: IssuedBallot) -> Ballot:
    """A ballot as its participant sees it."""
    item = session.get_one(Item, issued.item)
    query = sa.select(ItemExplanation).where(ItemExplanation.item == item.id)
    explanations = {row.place: row for row in session.scalars(query)}
    guessing, colors, given = study.design["mode"] == PREDICT, study.design["colors"], item_input(item)
    maps = [decode_map(explanations[place]) for place in issued.order]
    answered = sa.select(sa.func.count()).select_from(IssuedBallot).join(Item, Item.id == IssuedBallot.item)
    answered = answered.where(IssuedBallot.annotator == annotator.id, ~Item.practice, _is_answered())
    return Ballot(
        token=issued.token,
        input=given,
        prediction=None if guessing else item_prediction(item),
        classes=item_prediction(item).labels if guessing else (),
        maps=tuple(
            BallotMap(PLACES[n], one.tokens, color_scores(one, given, colors), one.grid, one.truncated, colors)
            for n, one in enumerate(maps)
        ),
        practice=item.practice,
        done=session.scalars(answered).one(),
        of=assignment_plan(session, study).ballots,
        age=max(0.0, time.time() - issued.at),
    )


def _admit_consented(session: Session, participant: int, lock: bool) -> tuple[Study, Annotator]:
    study, annotator = admit(session, participant, lock)
    if annotator.consented is None:
        raise UnknownIdentifier("participant: has not agreed yet. Read what the study asks, and agree first.")
    return study, annotator


def _unanswered(session: Session, annotator: Annotator) -> IssuedBallot | None:
    query = sa.select(IssuedBallot).where(IssuedBallot.annotator == annotator.id, ~_is_answered())
    return session.scalars(query.order_by(IssuedBallot.id)).first()


def _is_answered() -> sa.ColumnElement[bool]:
    same = (
        Vote.annotator == IssuedBallot.annotator,
        Vote.item == IssuedBallot.item,
        Vote.repeat == IssuedBallot.repeat,
    )
    return sa.exists().where(*same, Vote.superseded_by.is_(None))


def _next_view(session: Session, study: Study, annotator: Annotator) -> ItemView | None:
    query = sa.select(Item.place, IssuedBallot.repeat, Item.practice, IssuedBallot.order)
    query = query.join(IssuedBallot, IssuedBallot.item == Item.id).where(IssuedBallot.annotator == annotator.id)
    views = [
        ItemView(str(place), repeat, practice, _condition(study, order))
        for place, repeat, practice, order in session.execute(query.order_by(IssuedBallot.id))
    ]
    answers = _answer_cells(session, study)
    return next_view(assignment_plan(session, study), annotator.pseudonym, views, answers)


def _answer_cells(session: Session, study: Study) -> dict[tuple[str, str], int]:
    """The number of people who answered each item, by its place, in each condition; "cannot tell" is an answer."""
    order = sa.cast(Vote.order, sa.String) if study.design["mode"] == PREDICT else sa.literal("[]")
    query = sa.select(Item.place, order, sa.func.count()).join(Vote, Vote.item == Item.id)
    query = query.where(Vote.study == study.id, Vote.repeat == 0, Vote.superseded_by.is_(None))
    rows = session.execute(query.group_by(Item.place, order))
    return {(str(place), _condition(study, json.loads(methods))): count for place, methods, count in rows}


def _condition(study: Study, order: Sequence[int]) -> str:
    """The condition of a ballot with that order."""
    if study.design["mode"] != PREDICT:
        return ALL
    return str(order[0]) if order else NO_EXPLANATION


def _issue(session: Session, study: Study, annotator: Annotator) -> IssuedBallot | None:
    """Issue the next ballot, with its order; None if there is none left."""
    view = _next_view(session, study, annotator)
    if view is None:
        return None
    item = session.scalars(sa.select(Item).where(Item.study == study.id, Item.place == int(view.item))).one()
    if view.condition == ALL:
        methods = [str(place) for place in range(len(Design.from_json(study.design).ballot_methods))]
        ordered = order_methods(assignment_plan(session, study), annotator.pseudonym, view, methods)
    else:
        ordered = () if view.condition == NO_EXPLANATION else (view.condition,)
    issued = IssuedBallot(
        study=study.id,
        annotator=annotator.id,
        item=item.id,
        repeat=view.repeat,
        order=[int(place) for place in ordered],
        token=new_token(),
        at=time.time(),
    )
    session.add(issued)
    session.flush()
    return issued


def color_scores(explanation: ItemMap, given: Input, rule: str) -> Float[np.ndarray, "seq"]:
    """The color of each token, from -1 to 1. Special tokens have 0, and all tokens if all scores are equal.

    By rank, the part of rank r among n has (r / n) ** 2, whatever the method; equal scores are ordered at random, but
    always in the same way. What is drawn as one part has its number at its first token.
    """
    scores = np.where([token.special for token in explanation.tokens], 0, explanation.scores)
    if rule == BY_RANK:
        return _color_by_rank(explanation, scores, given)
    largest = np.abs(scores).max(initial=0)
    shares = scores / largest if largest > 0 else scores
    return shares if rule == BY_SIGN else np.abs(shares)


def _color_by_rank(explanation: ItemMap, scores: Float[np.ndarray, "seq"], given: Input) -> Float[np.ndarray, "seq"]:
    if isinstance(given, Example):
        parts = [unit for unit in units(explanation.tokens, scores, given) if not unit.special]
        places, sizes = [unit.tokens[0] for unit in parts], np.array([abs(unit.score) for unit in parts])
    else:
        places = [at for at, token in enumerate(explanation.tokens) if not token.special]
        sizes = np.abs(scores[places])
    colors = np.zeros(len(scores))
    if not len(sizes) or np.ptp(sizes) == 0:
        return colors
    tie_order = np.random.default_rng(zlib.crc32(np.ascontiguousarray(scores).tobytes())).permutation(len(sizes))
    ranks = np.empty(len(sizes))
    ranks[np.lexsort((tie_order, sizes))] = np.arange(1, len(sizes) + 1)
    colors[places] = (ranks / len(sizes)) ** 2
    return colors


@dataclass(frozen=True)
class BallotReplay:
    """A ballot as it was, for the organizer. `methods`: those of its maps. `vote`: the answer that counts, if any."""

    ballot: Ballot
    methods: tuple[str, ...]
    vote: CountedVote | None


def replay_ballot(study: int, annotator: str, item: str, repeat: int = 0) -> BallotReplay:
    """The ballot of the annotator of that pseudonym on that item, which is named by its place.

    Errors: it was not issued, or there is no such study.
    """
    place = int(item) if item.isascii() and item.isdigit() and len(item) < 10 else -1
    query = sa.select(Study, Annotator, IssuedBallot).join(Annotator, Annotator.study == Study.id)
    query = query.join(IssuedBallot, IssuedBallot.annotator == Annotator.id).join(Item, Item.id == IssuedBallot.item)
    which = (Annotator.pseudonym == annotator, Item.place == place, IssuedBallot.repeat == repeat)
    with study_database().reading() as session:
        rows = session.execute(query.where(Study.id == study, *which)).one_or_none()
        if rows is None:
            again = "" if repeat == 0 else " a second time"
            raise UsageError(
                f"seen: {annotator} was not given item {item}{again} in study {study}. Choose one of the results."
            )
        row, who, issued = rows
        names = method_names(Design.from_json(row.design))
        ballot = render_ballot(session, row, who, issued)
    key = (annotator, item, repeat)
    vote = next((vote for vote in counted_votes(study) if (vote.annotator, vote.item, vote.repeat) == key), None)
    return BallotReplay(ballot, tuple(names[place] for place in issued.order), vote)
