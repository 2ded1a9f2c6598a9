"""Votes that count, in the order of the database: as rankings, as guesses, and without those that the rules exclude."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, combinations

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session, defer

from engine.result import Prediction
from engine.study.annotators import UnknownIdentifier
from engine.study.database import study_database
from engine.study.design import Design, ExclusionRules
from engine.study.items import item_prediction
from engine.study.rankings import Ranking, competition_ranks
from engine.study.tables import Annotator, Event, Item, JsonObject, Study, Vote

WITHOUT = "no explanation"
"""The condition in which people see the input alone; no method has this name."""
EXCLUSION_EVENT = "left out"
"""The kind of the events that log exclusions."""


@dataclass(frozen=True)
class CountedVote:
    """One answer. `order`: the methods from place A on. `ranks`: 1 is best; None: cannot tell, or a guess.

    `at`: the server's clock in seconds since 1970; it stands still where the clock was set back. `item`: its place in
    the study.
    """

    annotator: str
    item: str
    repeat: int
    order: tuple[str, ...]
    ranks: Mapping[str, int] | None
    guess: JsonObject | None
    seconds: float
    at: float

    @property
    def cannot_tell(self) -> bool:
        return self.ranks is None and self.guess is None


def counted_votes(study: int) -> list[CountedVote]:
    """Each participant's last answer to each ballot, without practice and answers that were undone."""
    with study_database().reading() as session:
        row = session.get(Study, study)
        if row is None:
            raise UnknownIdentifier(f"study: there is none with the number {study}.")
        names = method_names(Design.from_json(row.design))
        query = sa.select(Vote, Annotator.pseudonym, Item.place).join(Annotator, Annotator.id == Vote.annotator)
        query = query.join(Item, Item.id == Vote.item).where(Vote.study == study, ~Item.practice)
        rows = session.execute(query.where(Vote.superseded_by.is_(None)).order_by(Vote.id)).all()
    votes = []
    for (vote, annotator, place), at in zip(rows, accumulate((vote.at for vote, _, _ in rows), max), strict=True):
        order = tuple(names[method] for method in vote.order)
        ranks = None
        if vote.ranks is not None:  # in the design's order, so that no table or color depends on the first ballot
            by_name = competition_ranks(dict(zip(order, vote.ranks, strict=True)))
            ranks = {name: by_name[name] for name in names}
        votes.append(CountedVote(annotator, str(place), vote.repeat, order, ranks, vote.guess, vote.seconds, at))
    return votes


def method_names(design: Design) -> tuple[str, ...]:
    """A name for each of `Design.ballot_methods`: the id, with a number if it occurs with other parameters too."""
    ids = [method.id for method in design.ballot_methods]
    return tuple(id if ids.count(id) == 1 else f"{id} {place + 1}" for place, id in enumerate(ids))


def counted_rankings(study: int) -> list[Ranking]:
    """The rankings among the votes that count."""
    return to_rankings(counted_votes(study))


def to_rankings(votes: Sequence[CountedVote]) -> list[Ranking]:
    """The rankings among these votes, without "cannot tell"."""
    return [
        Ranking(vote.annotator, vote.item, vote.ranks, vote.repeat, vote.seconds, vote.at)
        for vote in votes
        if vote.ranks is not None
    ]


@dataclass(frozen=True)
class GuessTarget:
    """The class that the model gave. `correct`: whether it is the true one, where that is known."""

    label: int
    correct: bool | None = None


@dataclass(frozen=True)
class GuessAnswer:
    """One answer. `condition`: the method whose explanation was on the ballot, or `WITHOUT`.

    `label`: the guessed class; `sure`: how sure, from 1 to 5; both None: cannot tell. `seconds`: how long the person
    looked. `repeat` counts how often this person saw this item before.
    """

    annotator: str
    item: str
    condition: str
    label: int | None
    sure: int | None
    target: GuessTarget
    seconds: int | float = 0.0
    repeat: int = 0

    @property
    def right(self) -> bool:
        """Whether it is the model's answer, true or not."""
        return self.label == self.target.label

    @property
    def explained(self) -> bool:
        return self.condition != WITHOUT


def to_guesses(votes: Sequence[CountedVote], targets: Mapping[str, GuessTarget]) -> list[GuessAnswer]:
    """The votes of a study of guesses, with "cannot tell"."""
    answers = []
    for vote in votes:
        condition = vote.order[0] if vote.order else WITHOUT
        label, sure = (vote.guess["label"], vote.guess["sure"]) if vote.guess else (None, None)
        target = targets[vote.item]
        answers.append(
            GuessAnswer(vote.annotator, vote.item, condition, label, sure, target, vote.seconds, vote.repeat)
        )
    return answers


def guess_targets(study: int) -> dict[str, GuessTarget]:
    """The targets by the items' places, without practice."""
    with study_database().reading() as session:
        query = sa.select(Item).where(Item.study == study, ~Item.practice).options(defer(Item.picture))
        return {str(item.place): guess_target(item_prediction(item), item.label) for item in session.scalars(query)}


def guess_target(prediction: Prediction, label: str | None) -> GuessTarget:
    """The target of one item; whether it is true is known where the data set names its class as the model does."""
    names = [name.casefold() for name in prediction.labels]
    known = label is not None and names.count(label.casefold()) == 1
    correct = prediction.label.casefold() == str(label).casefold()
    return GuessTarget(prediction.index, correct if known else None)


@dataclass(frozen=True)
class Exclusion:
    """An answer that a rule excluded or, if `item` is None, all answers of a person.

    `value`: the measured value; `limit`: that of the rule; `votes`: the number of excluded answers.
    """

    rule: str
    annotator: str
    item: str | None
    repeat: int | None
    value: float
    limit: float
    votes: int

    @property
    def reason(self) -> str:
        """The reason in a plain sentence."""
        return _REASONS[self.rule].format(value=self.value, limit=self.limit)


_REASONS = {
    "least_seconds": "The answer took {value:.3g} seconds, less than {limit:.3g}.",
    "least_votes": "Gave {value:.0f} answers that count, fewer than {limit:.0f}.",
    "most_cannot_tell": "Could not tell in {value:.0%} of the answers, more than {limit:.0%}.",
    "least_consistency": "Ranked repeated items with a mean Kendall's tau of {value:.2f}, below {limit:.2f}.",
}


def apply_rules(
    rules: ExclusionRules, votes: Sequence[CountedVote]
) -> tuple[tuple[CountedVote, ...], tuple[Exclusion, ...]]:
    """The remaining votes, in their order, and the exclusions by rule.

    Votes that were too quick are excluded first; people are judged by their remaining votes, by each rule.
    """
    exclusions, by_person = [], defaultdict(list)
    for vote in votes:
        if vote.seconds < rules.least_seconds:
            where = (vote.annotator, vote.item, vote.repeat)
            exclusions.append(Exclusion("least_seconds", *where, vote.seconds, rules.least_seconds, 1))
        else:
            by_person[vote.annotator].append(vote)
    remaining = [vote for vote in votes if vote.seconds >= rules.least_seconds]
    people = [exclusion for own in by_person.values() for exclusion in _exclude_person(rules, own)]
    excluded = {exclusion.annotator for exclusion in people}
    return tuple(vote for vote in remaining if vote.annotator not in excluded), (*exclusions, *people)


def _exclude_person(rules: ExclusionRules, own: Sequence[CountedVote]) -> list[Exclusion]:
    """All rules that exclude this person; none, usually."""
    unsure, most = sum(vote.cannot_tell for vote in own) / len(own), rules.most_cannot_tell
    steady, least = mean_kendalls_tau(own), rules.least_consistency
    broken = {
        "least_votes": (len(own) < rules.least_votes, len(own), rules.least_votes),
        "most_cannot_tell": (most is not None and unsure > most, unsure, most),
        "least_consistency": (steady is not None and least is not None and steady < least, steady, least),
    }
    return [
        Exclusion(rule, own[0].annotator, None, None, float(value or 0), float(limit or 0), len(own))
        for rule, (is_broken, value, limit) in broken.items()
        if is_broken
    ]


def mean_kendalls_tau(votes: Sequence[CountedVote]) -> float | None:
    """The mean tau-b of one person's first and second rankings of the same items; None if nothing was repeated."""
    by_item: dict[str, dict[int, Mapping[str, int]]] = defaultdict(dict)
    for vote in votes:
        if vote.ranks is not None:
            by_item[vote.item][vote.repeat] = vote.ranks
    taus = [_kendalls_tau(ranks[0], ranks[1]) for ranks in by_item.values() if {0, 1} <= ranks.keys()]
    defined = [tau for tau in taus if tau is not None]
    return float(np.mean(defined)) if defined else None


def _kendalls_tau(first: Mapping[str, int], second: Mapping[str, int]) -> float | None:
    """Kendall's tau-b; None if a ranking ties everything and so has no order.

    Equal rankings have exactly 1: by `scipy.stats.kendalltau` some have less, and a rule that asks for 1 would exclude
    them.
    """
    pairs = list(combinations(first, 2))
    one = np.array([np.sign(first[a] - first[b]) for a, b in pairs])
    other = np.array([np.sign(second[a] - second[b]) for a, b in pairs])
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size else None


def log_exclusions(study: int, exclusions: Sequence[Exclusion]) -> None:
    """Write an event for each exclusion that is not in the study's log yet."""
    with study_database().reading() as session:
        if not _unlogged(session, study, exclusions):
            return
    with study_database().writing() as session:
        session.scalars(sa.select(Study.id).where(Study.id == study).with_for_update()).one()
        events = _unlogged(session, study, exclusions)
        session.add_all(Event(study=study, kind=EXCLUSION_EVENT, details=event, at=time.time()) for event in events)


def _unlogged(session: Session, study: int, exclusions: Sequence[Exclusion]) -> list[JsonObject]:
    if not exclusions:
        return []
    query = sa.select(Event.details).where(Event.study == study, Event.kind == EXCLUSION_EVENT)
    logged = session.scalars(query).all()
    return [details for details in map(asdict, exclusions) if details not in logged]
