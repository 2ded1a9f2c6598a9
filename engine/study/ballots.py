"""Ballots: how items are assigned to annotators, what participants see, and replays for the organizer.

Items and the order of explanations are drawn with SHA-256 from the study's secret, so they are the same on every
machine. A ballot does not reveal any method.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
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
from engine.study.counted_votes import CountedVote, counted_votes, method_names
from engine.study.database import Annotator, IssuedBallot, Item, Study, Vote, is_same_ballot, study_database
from engine.study.design import BY_RANK, BY_SIGN, GUESSING, PLACES, PREDICT, Design
from engine.study.items import ItemMap, decode_map, item_edit, item_input, item_prediction
from engine.substitution import Edit
from engine.word_units import units

MIN_APART = 3
"""Minimum number of other items between two views of an item, if the study has enough items."""
ALL = "all"
"""The only condition of a ranking study: the ballot shows every explanation of the item."""
NO_EXPLANATION = "nothing"
"""The condition of a guess without an explanation."""

AnswerCells = Mapping[tuple[str, str], int]
"""Number of people who answered each item in each condition; missing cells count as 0."""


@dataclass(frozen=True)
class ItemView:
    """One person's view of an item. `repeat`: number of earlier views, without practice.

    `condition`: which explanations are on the ballot. A person sees an item and its repeat in the same condition.
    """

    item: str
    repeat: int = 0
    practice: bool = False
    condition: str = ALL


@dataclass(frozen=True)
class AssignmentPlan:
    """The parts of a study that determine the assignment. Because of `secret`, people cannot work out their order.

    `per_annotator`: new items per person. `repeats`: number of these that are shown twice. `votes_per_item`: maximum
    number of answers to an item in one condition; None: no limit. `conditions`: the one with the least content first.
    """

    study: str
    secret: str
    items: tuple[str, ...]
    practice: tuple[str, ...] = ()
    per_annotator: int = 20
    repeats: int = 0
    votes_per_item: int | None = None
    conditions: tuple[str, ...] = (ALL,)

    @property
    def new_items(self) -> int:
        """Number of distinct items that one person sees."""
        return min(self.per_annotator, len(self.items))

    @property
    def repeated_items(self) -> int:
        """Number of items that one person sees twice. At least one is not repeated, so that it can lie in between."""
        return max(0, min(self.repeats, self.new_items - 1))

    @property
    def ballots(self) -> int:
        """Maximum number of ballots of one person, without practice."""
        return self.new_items + self.repeated_items

    @property
    def gap(self) -> int:
        """Minimum number of other views between two views of an item: `MIN_APART`, or less if there is no room."""
        return max(1, min(MIN_APART, self.new_items - self.repeated_items))


def order_methods(plan: AssignmentPlan, annotator: str, view: ItemView, methods: Sequence[str]) -> tuple[str, ...]:
    """Return the methods in the order of places A, B, ..., a permutation drawn by study, annotator, item and repeat.

    It does not depend on the order of `methods`.
    """
    return tuple(sorted(methods, key=lambda method: _draw(plan, "place", annotator, view.item, view.repeat, method)))


def next_view(plan: AssignmentPlan, annotator: str, views: Sequence[ItemView], answers: AnswerCells) -> ItemView | None:
    """Return this person's next view, or None at the end. `views`: earlier views, in order."""
    practiced = {view.item for view in views if view.practice}
    due = next((n for n, item in enumerate(plan.practice) if item not in practiced), None)
    if due is not None:
        # Practice goes through the conditions in turn: the plainest first, the others in a random order per person.
        plainest, *others = plan.conditions
        turns = [plainest, *sorted(others, key=lambda condition: _draw(plan, "practised", annotator, condition))]
        return ItemView(plan.practice[due], practice=True, condition=turns[due % len(turns)])
    first_views = [view for view in views if not view.practice and not view.repeat]
    for step, is_repeat in schedule(plan, annotator):
        if is_repeat and step < len(first_views) and _may_repeat(plan, first_views[step].item, views):
            return dataclasses.replace(first_views[step], repeat=1)
        if not is_repeat and step >= len(first_views):
            new = _next_new_item(plan, annotator, first_views, answers)
            if new is not None:
                return new
    return None


def _may_repeat(plan: AssignmentPlan, item: str, views: Sequence[ItemView]) -> bool:
    """Whether the item is not repeated yet and not among the last `gap` views.

    The schedule does not ensure the gap: items planned in between are skipped once other people have answered them.
    """
    repeated = any(view.item == item and view.repeat for view in views)
    return not repeated and all(view.item != item for view in views[-plan.gap :])


def schedule(plan: AssignmentPlan, annotator: str) -> list[tuple[int, bool]]:
    """Plan a person's views: (n, False) first shows the n-th item, (n, True) repeats it at least `gap` others later."""
    gap = plan.gap
    candidates = range(plan.new_items - gap)
    repeats = sorted(candidates, key=lambda n: _draw(plan, "again", annotator, n))[: plan.repeated_items]
    times = [(n, n, False) for n in range(plan.new_items)]
    times += [(n + gap + int(_draw(plan, "delay", annotator, n), 16) % (gap + 1), n, True) for n in repeats]
    return [(n, repeated) for _, n, repeated in sorted(times, key=lambda step: (step[0], step[2], step[1]))]


def _next_new_item(
    plan: AssignmentPlan, annotator: str, first_views: Sequence[ItemView], answers: AnswerCells
) -> ItemView | None:
    """Return a new item with the fewest answers, in the condition that the person saw least; None if none is left.

    Items with enough answers in a condition are skipped. Conditions are tried in the order of how often this person saw
    them, then how often everybody did, then at random. So a person sees all conditions about equally often, at the end
    and at any time before.
    """
    views_by_condition = Counter(view.condition for view in first_views)
    by_item: Counter[str] = Counter()
    by_condition: Counter[str] = Counter()
    for (item, condition), count in answers.items():
        by_item[item] += count
        by_condition[condition] += count

    def need(condition: str) -> tuple[int, int, str]:
        draw = _draw(plan, "condition", annotator, len(first_views), condition)
        return views_by_condition[condition], by_condition[condition], draw

    viewed = {view.item for view in first_views}
    for condition in sorted(plan.conditions, key=need):
        counts = {item: answers.get((item, condition), 0) for item in plan.items if item not in viewed}
        if plan.votes_per_item is not None:
            counts = {item: count for item, count in counts.items() if count < plan.votes_per_item}
        if counts:
            fewest = min((count, by_item[item]) for item, count in counts.items())
            ties = [item for item, count in counts.items() if (count, by_item[item]) == fewest]
            item = min(ties, key=lambda item: _draw(plan, "item", annotator, item))
            return ItemView(item, condition=condition)
    return None


def _draw(plan: AssignmentPlan, *parts: str | int) -> str:
    """Return a pseudorandom hexadecimal number. JSON separates the parts unambiguously."""
    return hashlib.sha256(json.dumps([plan.secret, plan.study, *parts]).encode()).hexdigest()


@dataclass(frozen=True)
class BallotMap:
    """One explanation, named after its place on the ballot.

    `scores`: one per token, from `color_scores`, so that the scale does not reveal the method. `grid`: rows and columns
    of a picture's patches. `truncated`: number of tokens that did not fit. `colors`: as in `Design`.
    """

    place: str
    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    grid: tuple[int, int] | None
    truncated: int
    colors: str


@dataclass(frozen=True)
class Ballot:
    """An input, the model's prediction, and its explanations at places A, B, ....

    `token` identifies the ballot in the answer. `done` of `of` ballots are answered, without practice. In a study of
    guesses, people choose from `classes`, with one explanation or none; the prediction is withheld if they have to
    guess it. `edit`: the change of a word before the guess. `age`: seconds since the ballot was issued.
    """

    token: str
    input: Input
    prediction: Prediction | None
    maps: tuple[BallotMap, ...]
    practice: bool
    done: int
    of: int
    classes: tuple[str, ...] = ()
    edit: Edit | None = None
    age: float = 0.0


@closes_when_over
def next_ballot(participant: int) -> Ballot | None:
    """Return the participant's first unanswered ballot, or issue a new one; None at the end.

    The ballot stays the same until it is answered, on every device.
    """
    with study_database().reading() as session:
        study, annotator = _admit_consented(session, participant, lock=False)
        issued = _unanswered(session, annotator)
        if issued is not None:
            return render_ballot(session, study, annotator, issued)
        if _next_view(session, study, annotator) is None:
            return None
    with study_database().writing() as session:  # only now, so that rereading a ballot never waits for a vote
        study, annotator = _admit_consented(session, participant, lock=True)
        issued = _unanswered(session, annotator) or _issue(session, study, annotator)
        return None if issued is None else render_ballot(session, study, annotator, issued)


def assignment_plan(session: Session, study: Study) -> AssignmentPlan:
    """Return the assignment plan of a study. Items are named after their places."""
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
        conditions=guessed_with if design.guessing else (ALL,),
    )


def render_ballot(session: Session, study: Study, annotator: Annotator, issued: IssuedBallot) -> Ballot:
    """Return an issued ballot as its participant sees it."""
    item = session.get_one(Item, issued.item)
    mode, colors, given = study.design["mode"], study.design["colors"], item_input(item)
    maps = [decode_map(item.explanations[place]) for place in issued.order]
    answered = sa.select(sa.func.count()).select_from(IssuedBallot).join(Item, Item.id == IssuedBallot.item)
    answered = answered.where(IssuedBallot.annotator == annotator.id, ~Item.practice, _is_answered())
    return Ballot(
        token=issued.token,
        input=given,
        prediction=None if mode == PREDICT else item_prediction(item),
        classes=item_prediction(item).labels if mode in GUESSING else (),
        edit=None if item.edit is None else item_edit(item).edit,
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
        raise UnknownIdentifier("participant: has not consented yet. Consent to the study first.")
    return study, annotator


def _unanswered(session: Session, annotator: Annotator) -> IssuedBallot | None:
    query = sa.select(IssuedBallot).where(IssuedBallot.annotator == annotator.id, ~_is_answered())
    return session.scalars(query.order_by(IssuedBallot.id)).first()


def _is_answered() -> sa.ColumnElement[bool]:
    return sa.exists().where(is_same_ballot(Vote, IssuedBallot), Vote.superseded_by.is_(None))


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
    """Count the people who answered each item (by its place) in each condition. "Cannot tell" is an answer."""
    order = sa.cast(Vote.order, sa.String) if study.design["mode"] in GUESSING else sa.literal("[]")
    query = sa.select(Item.place, order, sa.func.count()).join(Vote, Vote.item == Item.id)
    query = query.where(Vote.study == study.id, Vote.repeat == 0, Vote.superseded_by.is_(None))
    rows = session.execute(query.group_by(Item.place, order))
    return {(str(place), _condition(study, json.loads(methods))): count for place, methods, count in rows}


def _condition(study: Study, order: Sequence[int]) -> str:
    """Return the condition of a ballot with this order of methods."""
    if study.design["mode"] not in GUESSING:
        return ALL
    return str(order[0]) if order else NO_EXPLANATION


def _issue(session: Session, study: Study, annotator: Annotator) -> IssuedBallot | None:
    """Issue the next ballot, with its order of methods; None if none is left."""
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
    """Convert scores to colors from -1 to 1, one per token. Special tokens get 0.

    By rank, the part (word unit or patch) with rank r among n gets (r / n) ** 2, whatever the method. Equal scores are
    ordered at random, but always in the same way; if all are equal, all get 0. A part of several tokens has its color
    at the first one. By size or sign, scores are divided by the largest absolute score.
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
    """An issued ballot, for the organizer. `methods`: one per map. `vote`: the answer that counts, if any."""

    ballot: Ballot
    methods: tuple[str, ...]
    vote: CountedVote | None


def replay_ballot(study: int, annotator: str, item: str, repeat: int = 0) -> BallotReplay:
    """Reproduce the ballot of an annotator (by pseudonym) on an item (by place).

    Errors: this ballot was not issued, or the study does not exist.
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
                f"ballot: item {item} was not shown to {annotator}{again} in study {study}. Choose a listed answer."
            )
        row, person, issued = rows
        names = method_names(Design.from_json(row.design))
        ballot = render_ballot(session, row, person, issued)
    key = (annotator, item, repeat)
    vote = next((vote for vote in counted_votes(study) if (vote.annotator, vote.item, vote.repeat) == key), None)
    return BallotReplay(ballot, tuple(names[place] for place in issued.order), vote)
