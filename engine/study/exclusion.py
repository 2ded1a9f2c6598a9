"""Which answers the results leave out: the rules of the design, declared before the study opened, and nothing else."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.study.database import study_database
from engine.study.design import ExclusionRules
from engine.study.tables import Event, Plain, Study
from engine.study.tally import Kept

LEFT_OUT = "left out"
"""The kind of the events that say what was."""


@dataclass(frozen=True)
class Exclusion:
    """A rule that left out an answer, or, where `item` is None, all answers of a person.

    `value` is what was found, `limit` what the rule asks for; `votes` is how many answers went.
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
        """In a plain sentence."""
        return _REASONS[self.rule].format(value=self.value, limit=self.limit)


_REASONS = {
    "least_seconds": "The answer took {value:.3g} seconds, less than {limit:.3g}.",
    "least_votes": "Gave {value:.0f} answers that count, fewer than {limit:.0f}.",
    "most_cannot_tell": "Could not tell in {value:.0%} of the answers, more than {limit:.0%}.",
    "least_consistency": "Ranked repeated items with a mean Kendall's tau of {value:.2f}, below {limit:.2f}.",
}


def apply(rules: ExclusionRules, votes: Sequence[Kept]) -> tuple[tuple[Kept, ...], tuple[Exclusion, ...]]:
    """The votes that stay, in their order, and what went by which rule.

    Votes that were too quick go first; people are judged by what stays of theirs, by each rule.
    """
    quick = [_too_quick(rules, vote) for vote in votes]
    rest = [vote for vote, out in zip(votes, quick, strict=True) if out is None]
    people = [out for own in _by_annotator(rest).values() for out in _judged(rules, own)]
    gone = {out.annotator for out in people}
    return tuple(vote for vote in rest if vote.annotator not in gone), (*filter(None, quick), *people)


def log_once(study: int, found: Sequence[Exclusion]) -> None:
    """An event for each exclusion that the study's log does not have yet."""
    with study_database().reading() as session:
        if not _unlogged(session, study, found):
            return
    with study_database().writing() as session:
        session.scalars(sa.select(Study.id).where(Study.id == study).with_for_update()).one()
        new = _unlogged(session, study, found)
        session.add_all([Event(study=study, kind=LEFT_OUT, details=details, at=time.time()) for details in new])


def consistency(votes: Sequence[Kept]) -> float | None:
    """The mean Kendall's tau-b of one person's first and second rankings of the same items; None where it has none."""
    looks: dict[str, dict[int, Mapping[str, int]]] = defaultdict(dict)
    for vote in votes:
        if vote.ranks is not None:
            looks[vote.item][vote.repeat] = vote.ranks
    pairs = [_tau(ranks[0], ranks[1]) for ranks in looks.values() if {0, 1} <= ranks.keys()]
    told = [tau for tau in pairs if tau is not None]
    return float(np.mean(told)) if told else None


def _too_quick(rules: ExclusionRules, vote: Kept) -> Exclusion | None:
    if vote.seconds >= rules.least_seconds:
        return None
    where = (vote.annotator, vote.item, vote.repeat)
    return Exclusion("least_seconds", *where, vote.seconds, rules.least_seconds, 1)


def _judged(rules: ExclusionRules, own: Sequence[Kept]) -> list[Exclusion]:
    """What speaks against this person; nothing, as a rule."""
    unsure = sum(vote.ranks is None and vote.guess is None for vote in own) / len(own)
    steady = consistency(own)
    broken = {
        "least_votes": (len(own) < rules.least_votes, len(own), rules.least_votes),
        "most_cannot_tell": (_above(unsure, rules.most_cannot_tell), unsure, rules.most_cannot_tell),
        "least_consistency": (_below(steady, rules.least_consistency), steady, rules.least_consistency),
    }
    return [
        Exclusion(rule, own[0].annotator, None, None, float(value or 0), float(limit or 0), len(own))
        for rule, (out, value, limit) in broken.items()
        if out
    ]


def _above(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit


def _below(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value < limit


def _tau(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    """Kendall's tau-b; None where a ranking ties everything and so has no order."""
    pairs = list(combinations(one, 2))
    first = np.array([np.sign(one[a] - one[b]) for a, b in pairs])
    second = np.array([np.sign(other[a] - other[b]) for a, b in pairs])
    size = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / size if size else None


def _by_annotator(votes: Sequence[Kept]) -> dict[str, list[Kept]]:
    held: dict[str, list[Kept]] = defaultdict(list)
    for vote in votes:
        held[vote.annotator].append(vote)
    return held


def _unlogged(session: Session, study: int, found: Sequence[Exclusion]) -> list[Plain]:
    events = session.scalars(sa.select(Event).where(Event.study == study, Event.kind == LEFT_OUT)) if found else ()
    known = [event.details for event in events]
    return [details for details in map(asdict, found) if details not in known]
