"""What a study found so far, ready to be shown: computed when its votes changed, and kept while they do not."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from engine.study.database import study_database
from engine.study.design import PREDICT, Design
from engine.study.exclusion import Exclusion, apply, log_once
from engine.study.studies import DRAFT, StudyRecord, find
from engine.study.tables import Vote
from engine.study.tally import Kept, as_matches, method_names, votes_of
from engine.study.targets import targets_of

if TYPE_CHECKING:
    from engine.study.forward.summary import ForwardSummary
    from engine.study.ratings.matches import Match
    from engine.study.ratings.summary import Summary

MOST_KEPT = 16
"""Studies whose results are kept in memory."""

Votes = tuple[int, int]
"""How many answers a study was ever given, and how many of them something took the place of: both only grow."""


@dataclass(frozen=True)
class Results:
    """`kept`: the answers that count, practice and exclusions left out; `cannot_tell` of them rank nothing.

    `answers` and `annotators` count what there was before the exclusions. `summary` is None where nothing is ranked.
    """

    study: StudyRecord
    answers: int
    annotators: int
    kept: tuple[Kept, ...]
    excluded: tuple[Exclusion, ...]
    cannot_tell: int
    summary: Summary | None
    forward: ForwardSummary | None = None


def results(study: int) -> Results:
    """The results as they are now; the same object again while neither the votes nor the study changed.

    Once the study is over, what its rules left out is written to its log. Errors: there is no such study.
    """
    record = find(study)
    found = _computed(record, votes_so_far(study))
    if record.state != DRAFT and not record.takes_votes:
        log_once(study, found.excluded)
    return found


def votes_so_far(study: int) -> Votes:
    """Cheap: a page that polls may ask this first, and `results` when the answer is another."""
    with study_database().reading() as session:
        asked = sa.select(sa.func.count(), sa.func.count(Vote.superseded_by)).where(Vote.study == study)
        answers, superseded = session.execute(asked).one()
        return answers, superseded


def known_results(study: int) -> tuple[Votes, Results] | None:
    """The results that were computed last, which may be of fewer votes than there are now, and of which votes."""
    with _guard:
        return _known.get((study_database().address, study))


def placebo_of(design: Design) -> str | None:
    """The name of the placebo in the results."""
    return method_names(design)[-1] if design.placebo else None


def _found(record: StudyRecord) -> Results:
    votes = votes_of(record.id)
    kept, excluded = apply(record.design.exclusion, votes)
    return Results(
        study=record,
        answers=len(votes),
        annotators=len({vote.annotator for vote in votes}),
        kept=kept,
        excluded=excluded,
        cannot_tell=sum(vote.ranks is None and vote.guess is None for vote in kept),
        summary=_summary(record.design, as_matches(kept)),
        forward=_forward(record, kept),
    )


def _summary(design: Design, ranked: Sequence[Match]) -> Summary | None:
    from engine.study.ratings.summary import summary

    rated = any(match.repeat == 0 for match in ranked)
    return summary(ranked, placebo_of(design), design.seed) if rated else None


def _forward(record: StudyRecord, kept: Sequence[Kept]) -> ForwardSummary | None:
    if record.design.mode != PREDICT or not any(vote.repeat == 0 for vote in kept):
        return None
    from engine.study.forward.guesses import as_guesses
    from engine.study.forward.summary import forward_summary

    guesses = as_guesses(kept, targets_of(record.id))
    return forward_summary(guesses, method_names(record.design), placebo_of(record.design))


def _computed(record: StudyRecord, votes: Votes) -> Results:
    """The results kept, if nothing changed; many who ask at once wait for one computation."""
    name = (study_database().address, record.id)
    with _guard:
        lock = _locks.setdefault(name, threading.Lock())
    with lock:
        found = _still(_known.get(name), record, votes) or _found(record)
        with _guard:
            _known.pop(name, None)
            _known[name] = (votes, found)
            while len(_known) > MOST_KEPT:
                _known.pop(next(iter(_known)))
    return found


def _still(known: tuple[Votes, Results] | None, record: StudyRecord, votes: Votes) -> Results | None:
    """What is known, if it is of these votes and this design."""
    if known is None or known[0] != votes or known[1].study.design != record.design:
        return None
    return known[1] if known[1].study == record else replace(known[1], study=record)


def _renew_locks() -> None:
    global _guard
    _guard = threading.Lock()
    _locks.clear()


_guard = threading.Lock()
_locks: dict[tuple[sa.URL, int], threading.Lock] = {}
_known: dict[tuple[sa.URL, int], tuple[Votes, Results]] = {}
"""The one asked for last comes last."""
os.register_at_fork(after_in_child=_renew_locks)
