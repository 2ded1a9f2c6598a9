"""Results of a study so far: computed when its votes change and cached, in the background for pages that follow it."""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass, replace

import sqlalchemy as sa

from engine.errors import ExegesisError
from engine.study.counted_votes import (
    CountedVote,
    Exclusion,
    apply_rules,
    counted_votes,
    guess_targets,
    log_exclusions,
    method_names,
    to_guesses,
    to_rankings,
)
from engine.study.database import study_database
from engine.study.design import PREDICT, Design
from engine.study.guesses import GuessSummary, summarize_guesses
from engine.study.studies import DRAFT, StudyRecord, find
from engine.study.summary import RankingSummary, summarize_rankings
from engine.study.tables import Vote

MAX_CACHED = 16
"""Studies whose results stay in memory."""
FOREGROUND_ANSWERS = 300
"""Up to so many answers are rated while the page waits: that takes about a second."""

VotesVersion = tuple[int, int]
"""The number of answers that a study ever received, and how many of them are superseded: both only grow."""

_log = logging.getLogger("exegesis.study")


@dataclass(frozen=True)
class Results:
    """`votes`: those that count, without practice and exclusions; `cannot_tell` of them neither rank nor guess.

    `answers` and `annotators` count before the exclusions. `summary` and `forward` (that of guesses) are None while
    there is nothing to summarize.
    """

    study: StudyRecord
    answers: int
    annotators: int
    votes: tuple[CountedVote, ...]
    excluded: tuple[Exclusion, ...]
    cannot_tell: int
    summary: RankingSummary | None
    forward: GuessSummary | None = None


def results(study: int) -> Results:
    """The current results; the same object again while neither the votes nor the study change.

    Once the study is over, its exclusions are written to its log. Errors: there is no such study.
    """
    record = find(study)
    current = _cached_or_computed(record, votes_version(study))
    if record.state != DRAFT and not record.takes_votes:
        log_exclusions(study, current.excluded)
    return current


def votes_version(study: int) -> VotesVersion:
    """Cheap: a page that polls may ask this first, and `results` if it has changed."""
    with study_database().reading() as session:
        query = sa.select(sa.func.count(), sa.func.count(Vote.superseded_by)).where(Vote.study == study)
        answers, superseded = session.execute(query).one()
        return answers, superseded


def cached_results(study: int) -> tuple[VotesVersion, Results] | None:
    """The results that were computed last, and their version, which may be older than that of the votes."""
    with _guard:
        return _cache.get((study_database().address, study))


def placebo_name(design: Design) -> str | None:
    """The name of the placebo in the results."""
    return method_names(design)[-1] if design.placebo else None


def _compute(record: StudyRecord) -> Results:
    design, answers = record.design, counted_votes(record.id)
    votes, excluded = apply_rules(design.exclusion, answers)
    rankings, placebo = to_rankings(votes), placebo_name(design)
    summary = forward = None
    if any(ranking.repeat == 0 for ranking in rankings):
        summary = summarize_rankings(rankings, placebo, design.seed)
    if design.mode == PREDICT and any(vote.repeat == 0 for vote in votes):
        forward = summarize_guesses(to_guesses(votes, guess_targets(record.id)), method_names(design), placebo)
    return Results(
        study=record,
        answers=len(answers),
        annotators=len({vote.annotator for vote in answers}),
        votes=votes,
        excluded=excluded,
        cannot_tell=sum(vote.cannot_tell for vote in votes),
        summary=summary,
        forward=forward,
    )


def _cached_or_computed(record: StudyRecord, version: VotesVersion) -> Results:
    """The cached results if nothing changed; simultaneous callers wait for one computation."""
    key = (study_database().address, record.id)
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        cached = _cache.get(key)
        if cached is None or cached[0] != version or cached[1].study.design != record.design:
            current = _compute(record)
        else:
            current = cached[1] if cached[1].study == record else replace(cached[1], study=record)
        with _guard:
            _cache.pop(key, None)
            _cache[key] = (version, current)
            while len(_cache) > MAX_CACHED:
                _cache.pop(next(iter(_cache)))
    return current


def latest_results(study: int) -> Results:
    """The newest results without waiting; those of fewer votes while newer ones are computed in the background.

    Waits if none were computed yet. Errors: there is no such study.
    """
    older = _older_results(study)
    return results(study) if older is None else replace(older[1], study=find(study))


def latest_version(study: int) -> VotesVersion:
    """The version of `latest_results`: a page that shows another one draws itself again. Cheap."""
    older = _older_results(study)
    return votes_version(study) if older is None else older[0]


def _older_results(study: int) -> tuple[VotesVersion, Results] | None:
    """Results of fewer votes, if they must do for now; starts the computation of newer ones."""
    cached, version = cached_results(study), votes_version(study)
    if cached is None or cached[0] == version or version[0] <= FOREGROUND_ANSWERS:
        return None
    if cached[1].study.design != find(study).design:
        return None
    with _guard:
        if time.monotonic() < _rest_until.get(study, 0.0):
            return cached
        _rest_until[study] = float("inf")
    name = f"results of study {study}"
    threading.Thread(target=_compute_in_background, args=(study,), name=name, daemon=True).start()
    return cached


def _compute_in_background(study: int) -> None:
    """One thread a study; it then rests as long as it worked, so that voters have the machine for half of the time."""
    start = time.monotonic()
    try:
        results(study)
    except ExegesisError as error:  # deleted meanwhile, or no database: the page itself will say so
        _log.info("results of study %d: %s", study, error)
    finally:
        end = time.monotonic()
        with _guard:
            _rest_until[study] = end + (end - start)


def _reset_after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _locks.clear()
    _rest_until.clear()


_guard = threading.Lock()
_locks: dict[tuple[sa.URL, int], threading.Lock] = {}
_cache: dict[tuple[sa.URL, int], tuple[VotesVersion, Results]] = {}
"""In the order of use, the last one last."""
_rest_until: dict[int, float] = {}
"""When the next background computation may start, by study; infinity: one is running."""
os.register_at_fork(after_in_child=_reset_after_fork)
