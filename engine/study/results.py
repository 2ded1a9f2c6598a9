"""Current results of a study, and their export as tables and JSON: items, votes, ballot orders and ratings.

Results are cached and computed again when the votes change, in the background for pages that follow a study. People
appear under pseudonyms: no code, address or join link is exported.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa

from engine.errors import ExegesisError, UsageError, unknown
from engine.format import time_text
from engine.progress import Report, silent
from engine.request import Example, Prompt, read_example
from engine.result import Prediction
from engine.study.counted_votes import (
    LEFT_OUT_COLUMN,
    RANKS_COLUMN,
    VOTE_COLUMNS,
    WITHOUT,
    CountedVote,
    Exclusion,
    Ranking,
    apply_rules,
    counted_votes,
    first_rankings,
    guess_targets,
    log_exclusions,
    method_names,
    to_guesses,
    to_rankings,
)
from engine.study.database import Annotator, IssuedBallot, Item, Vote, study_database
from engine.study.design import PREDICT, Design
from engine.study.guesses import ConditionSummary, GuessShare, GuessSummary, summarize_guesses
from engine.study.items import item_edit, item_prediction, study_items
from engine.study.ratings import Rating
from engine.study.studies import DRAFT, StudyRecord, find
from engine.study.summary import RankingSummary, summarize_rankings
from engine.substitution import edited

MAX_CACHED = 16
"""Maximum number of studies whose results stay in memory."""
FOREGROUND_ANSWERS = 300
"""Up to this number of answers, a page waits for the results, which takes about a second."""
SAMPLE = 200
"""Number of rankings in the first ratings that a page shows, which take about half a second."""
PAUSE_SECONDS = 1.0
"""Delay of background computations, so that the page is drawn first."""

ExportRow = dict[str, Any]
VotesVersion = tuple[int, int]
"""Number of answers ever received, and number of superseded ones. Both only grow."""
SAMPLED = (-1, 0)
"""Version of results that rate only a sample, which a page shows first."""

_log = logging.getLogger("exegesis.study")


@dataclass(frozen=True)
class Results:
    """The results of a study.

    `votes`: the votes that count, without practice and excluded ones; `cannot_tell` of them neither rank nor guess.
    `answers` and `annotators`: numbers before the exclusions. `summary` (rankings) and `forward` (guesses) are None if
    there is nothing to summarize. `sample`: number of rankings in `summary` if it covers only a random sample for now;
    None if it is complete.
    """

    study: StudyRecord
    answers: int
    annotators: int
    votes: tuple[CountedVote, ...]
    excluded: tuple[Exclusion, ...]
    cannot_tell: int
    summary: RankingSummary | None
    forward: GuessSummary | None = None
    sample: int | None = None


def results(study: int, report: Report = silent) -> Results:
    """Return the current results, cached until the votes or the study change.

    Once the study is over, its exclusions are written to its log. Errors: the study does not exist.
    """
    record = find(study)
    current = _cached_or_computed(record, votes_version(study), report)
    if record.state != DRAFT and not record.takes_votes:
        log_exclusions(study, current.excluded)
    return current


def votes_version(study: int) -> VotesVersion:
    """Return the version of the votes. It is cheap: pages poll it and read `results` after a change."""
    with study_database().reading() as session:
        query = sa.select(sa.func.count(), sa.func.count(Vote.superseded_by)).where(Vote.study == study)
        answers, superseded = session.execute(query).one()
        return answers, superseded


def cached_results(study: int) -> tuple[VotesVersion, Results] | None:
    """Return the last computed results and their version, which may be outdated; None if there are none."""
    with _guard:
        return _cache.get((study_database().address, study))


def placebo_name(design: Design) -> str | None:
    """Return the name of the placebo in the results, or None without a placebo."""
    return method_names(design)[-1] if design.placebo else None


def _compute(record: StudyRecord, sample: int | None = None, report: Report = silent) -> Results:
    """Compute the results. `sample`: maximum number of rankings to rate, drawn by the study's seed; None: all."""
    design, answers = record.design, counted_votes(record.id)
    votes, excluded = apply_rules(design.exclusion, answers)
    rankings, placebo = to_rankings(votes), placebo_name(design)
    if sample is not None:
        rankings = sample_rankings(rankings, sample, design.seed)
    summary = forward = None
    if any(ranking.repeat == 0 for ranking in rankings):
        summary = summarize_rankings(rankings, placebo, design.seed, report=report)
    if design.guessing and any(vote.repeat == 0 for vote in votes):
        guesses = to_guesses(votes, guess_targets(record.id))
        forward = summarize_guesses(guesses, method_names(design), placebo, design.mode)
    return Results(
        study=record,
        answers=len(answers),
        annotators=len({vote.annotator for vote in answers}),
        votes=votes,
        excluded=excluded,
        cannot_tell=sum(vote.cannot_tell for vote in votes),
        summary=summary,
        forward=forward,
        sample=None if sample is None else len(rankings),
    )


def sample_rankings(rankings: Sequence[Ranking], most: int, seed: int) -> list[Ranking]:
    """Draw at most `most` first rankings, person by person, and return them in their original order.

    The votes of a person stay together because intervals are over people; only those of the last person may be cut.
    """
    first = first_rankings(rankings)
    people = sorted({ranking.annotator for ranking in first})
    turn = {people[person]: at for at, person in enumerate(np.random.default_rng(seed).permutation(len(people)))}
    drawn = sorted(range(len(first)), key=lambda place: turn[first[place].annotator])[:most]
    return [first[place] for place in sorted(drawn)]


def _cached_or_computed(record: StudyRecord, version: VotesVersion, report: Report) -> Results:
    """Return the cached results, or compute them after a change. Simultaneous callers share one computation."""
    key = (study_database().address, record.id)
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        cached = _cache.get(key)
        if cached is None or cached[0] != version or cached[1].study.design != record.design:
            current = _compute(record, report=report)
        else:
            current = cached[1] if cached[1].study == record else replace(cached[1], study=record)
        with _guard:
            _cache.pop(key, None)
            _cache[key] = (version, current)
            while len(_cache) > MAX_CACHED:
                _cache.pop(next(iter(_cache)))
    return current


def latest_results(study: int) -> Results:
    """Return the newest available results. Newer ones are computed in the background.

    If many votes have never been rated, the first ratings are those of a sample. Errors: the study does not exist.
    """
    older = _older_results(study)
    return results(study) if older is None else replace(older[1], study=find(study))


def latest_version(study: int) -> VotesVersion:
    """Return the version of `latest_results`. A page that shows another version must be redrawn."""
    older = _older_results(study)
    return votes_version(study) if older is None else older[0]


def rating_progress(study: int) -> float:
    """Return the progress of the background computation, from 0 to 1."""
    return _progress.get(study, 0.0)


def _older_results(study: int) -> tuple[VotesVersion, Results] | None:
    """Start computing newer results and return outdated ones to show meanwhile; None if there is no need."""
    cached, version, record = cached_results(study), votes_version(study), find(study)
    if version[0] <= FOREGROUND_ANSWERS or (cached is not None and cached[0] == version):
        return None
    if cached is None or cached[1].study.design != record.design:
        cached = _cache_first(_compute(record, sample=SAMPLE))
    with _guard:
        if time.monotonic() < _rest_until.get(study, 0.0):
            return cached
        _rest_until[study] = float("inf")
    thread = threading.Timer(PAUSE_SECONDS, _compute_in_background, (study,))
    thread.name, thread.daemon = f"results of study {study}", True
    thread.start()
    return cached


def _cache_first(first: Results) -> tuple[VotesVersion, Results]:
    """Cache the results of a sample unless results of the same design are cached. Returns the cached results."""
    key = (study_database().address, first.study.id)
    with _guard:
        cached = _cache.get(key)
        if cached is None or cached[1].study.design != first.study.design:
            _cache[key] = cached = (SAMPLED, first)
        return cached


def _compute_in_background(study: int) -> None:
    """Compute results, in one thread per study. A pause of the same length follows, to leave the machine to voters."""
    start = time.monotonic()
    try:
        results(study, partial(_note_progress, study))
    except ExegesisError as error:  # the study was deleted or the database fails; the page reports it
        _log.info("results of study %d: %s", study, error)
    finally:
        end = time.monotonic()
        with _guard:
            _rest_until[study] = end + (end - start)
            _progress.pop(study, None)


def _note_progress(study: int, done: int, total: int, label: str) -> None:
    _progress[study] = done / total


def _reset_after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _locks.clear()
    _rest_until.clear()
    _progress.clear()


_guard = threading.Lock()
_locks: dict[tuple[sa.URL, int], threading.Lock] = {}
_cache: dict[tuple[sa.URL, int], tuple[VotesVersion, Results]] = {}
"""In order of use, the most recent last."""
_rest_until: dict[int, float] = {}
"""Earliest start of the next background computation, by study; infinity: one is scheduled or running."""
_progress: dict[int, float] = {}
os.register_at_fork(after_in_child=_reset_after_fork)


def export_rows(study: int, table: str) -> list[ExportRow]:
    """Return the rows of one of `EXPORT_TABLES`. Errors: an unknown table or study."""
    if table not in EXPORT_TABLES:
        raise unknown("table", table, EXPORT_TABLES)
    return EXPORT_TABLES[table](find(study))


def vote_rows(votes: Sequence[Ranking | CountedVote], methods: Sequence[str]) -> list[ExportRow]:
    """Return a row per vote: `VOTE_COLUMNS` and the rank of each method. Ranks are None for "cannot tell".

    Errors: a method has the name of another column.
    """
    if taken := [name for name in methods if name in (*VOTE_COLUMNS, RANKS_COLUMN, LEFT_OUT_COLUMN)]:
        raise UsageError(f"methods: {taken[0]!r} is the name of another column. Rename the method.")
    return [{**_vote_row(vote), **{name: vote.ranks and vote.ranks[name] for name in methods}} for vote in votes]


def _vote_row(vote: Ranking | CountedVote) -> ExportRow:
    return {**{name: getattr(vote, name) for name in VOTE_COLUMNS}, "at": time_text(vote.at)}


def rating_rows(ratings: Sequence[Rating]) -> list[ExportRow]:
    """Return a row per method: skill, interval, first and last rank, and spread over orders of the votes."""
    return [
        {
            "method": rating.method,
            "skill": rating.skill,
            "low": rating.interval[0],
            "high": rating.interval[1],
            "rank": rating.rank,
            "last": rating.last,
            "spread": rating.spread,
        }
        for rating in ratings
    ]


def results_to_json(results: Results) -> ExportRow:
    """Convert all results to JSON values."""
    return {
        "study": results.study.id,
        "title": results.study.design.title,
        "state": results.study.state,
        "mode": results.study.design.mode,
        "answers": results.answers,
        "annotators": results.annotators,
        "cannot_tell": results.cannot_tell,
        "left_out": [{**asdict(exclusion), "reason": exclusion.reason} for exclusion in results.excluded],
        "summary": results.summary and rankings_to_json(results.summary),
        "forward": results.forward and guesses_to_json(results.forward),
    }


def rankings_to_json(summary: RankingSummary) -> ExportRow:
    """Convert the results of rankings to JSON values."""

    def by_method(values: Sequence[float]) -> dict[str, float]:
        return dict(zip(summary.methods, values, strict=True))

    return {
        "votes": summary.votes,
        "annotators": summary.annotators,
        "items": summary.items,
        "ratings": [asdict(rating) for rating in summary.ratings],
        "smat": [asdict(rating) for rating in summary.smat],
        "placebo": summary.placebo,
        "no_better_than_placebo": summary.no_better_than_placebo,
        "wins": dict(zip(summary.methods, map(by_method, summary.wins.tolist()), strict=True)),
        "plackett_luce": {
            "worths": dict(summary.worths),
            "order": summary.worth_order,
            "same_order": summary.same_order,
        },
        "kendalls_w": summary.concordance,
        "kendalls_w_by_chance": summary.concordance_by_chance,
        "krippendorffs_alpha": summary.alpha,
        "self_consistency": summary.consistency and dict(zip(("rho", "pairs"), summary.consistency, strict=True)),
        "seconds": summary.seconds and asdict(summary.seconds),
        "needed": [asdict(pair) for pair in summary.needed],
        "power": [asdict(point) for point in summary.power],
        "course": [by_method(skills) for skills in summary.course.tolist()],
        "by_item": [asdict(group) for group in summary.by_item],
        "by_annotator": [asdict(group) for group in summary.by_annotator],
        "meanings": summary.meanings,
    }


def guesses_to_json(summary: GuessSummary) -> ExportRow:
    """Convert the results of guesses to JSON values."""

    def share(share: GuessShare) -> ExportRow:
        return {"accuracy": share.accuracy, **asdict(share)}

    def levels(shares: Mapping[int, GuessShare]) -> ExportRow:
        return {str(level): share(own) for level, own in shares.items()}

    def condition(one: ConditionSummary) -> ExportRow:
        shares = {"share": one.share and share(one.share), "misled": one.misled and share(one.misled)}
        return {**asdict(one), **shares, "by_sureness": levels(one.by_sureness)}

    return {
        **asdict(summary),
        **({"truthful": summary.obvious} if summary.mode == PREDICT else {}),
        "guesses": summary.guesses,
        "cannot_tell": summary.cannot_tell,
        "conditions": [condition(one) for one in summary.conditions],
        "by_sureness": levels(summary.by_sureness),
        "meanings": summary.meanings,
    }


def _item_rows(study: StudyRecord) -> list[ExportRow]:
    with study_database().reading() as session:
        return [_item_row(item) for item in study_items(session, study.id)]


def _item_row(item: Item) -> ExportRow:
    """Return the export row of an item.

    `picture`: SHA-256 of its size and pixels; only the study file contains the picture itself. `target`, `contrast`:
    for a prompt, the explained next token and the token that it is compared with.
    """
    prediction = item_prediction(item)
    text = read_example(item.input) if item.picture is None else Example("")
    edit = None if item.edit is None else item_edit(item)
    after = Example("") if edit is None else edited(text, [edit.edit])
    return {
        "item": str(item.place),
        "practice": int(item.practice),
        "text": text.text,
        "text_pair": text.text_pair,
        **({"target": text.target, "contrast": text.contrast} if isinstance(text, Prompt) else {}),
        "picture": item.input.get("picture"),
        "label": item.label,
        "predicted": None if prediction.regression else prediction.label,
        "score": prediction.logits[0] if prediction.regression else prediction.probabilities[prediction.index],
        **(
            {}
            if edit is None
            else {
                "edited_text": after.text,
                "edited_text_pair": after.text_pair,
                "edited_predicted": edit.prediction.label,
                "edited_score": edit.prediction.probabilities[edit.prediction.index],
            }
        ),
    }


def _study_vote_rows(study: StudyRecord) -> list[ExportRow]:
    """Return a row per answer, without practice and undone ones, with the first rule that excludes it, if any."""
    votes = counted_votes(study.id)
    rules = _rules_by_vote(apply_rules(study.design.exclusion, votes)[1])
    if study.design.guessing:
        with study_database().reading() as session:
            predictions = {str(item.place): item_prediction(item) for item in study_items(session, study.id)}
        targets = guess_targets(study.id)
        rows = [
            {**_vote_row(vote), **_guess_columns(vote, predictions[vote.item], targets[vote.item].label)}
            for vote in votes
        ]
    else:
        rows = vote_rows(votes, method_names(study.design))
    for row, vote in zip(rows, votes, strict=True):
        by_vote = rules.get((vote.annotator, vote.item, vote.repeat))
        row[LEFT_OUT_COLUMN] = by_vote or rules.get((vote.annotator, None, None))
    return rows


def _guess_columns(vote: CountedVote, prediction: Prediction, answer: int) -> ExportRow:
    """Return the columns of a guess. `answer`: index of the right class."""
    guess = vote.guess or {"label": None, "sure": None}
    return {
        "shown": vote.order[0] if vote.order else WITHOUT,
        "guess": None if guess["label"] is None else prediction.labels[guess["label"]],
        "predicted": prediction.label,
        "answer": prediction.labels[answer],
        "right": None if guess["label"] is None else int(guess["label"] == answer),
        "sure": guess["sure"],
    }


def _rules_by_vote(exclusions: Sequence[Exclusion]) -> dict[tuple[Any, ...], str]:
    """Return the first rule for each excluded vote (annotator, item, repeat) or person (annotator, None, None)."""
    rules: dict[tuple[Any, ...], str] = {}
    for exclusion in exclusions:
        rules.setdefault((exclusion.annotator, exclusion.item, exclusion.repeat), exclusion.rule)
    return rules


def _order_rows(study: StudyRecord) -> list[ExportRow]:
    """Return a row per issued ballot, including unanswered and practice ones, with its methods from place A on."""
    names = method_names(study.design)
    query = sa.select(IssuedBallot, Annotator.pseudonym, Item.place, Item.practice)
    query = query.join(Annotator, Annotator.id == IssuedBallot.annotator).join(Item, Item.id == IssuedBallot.item)
    query = query.where(IssuedBallot.study == study.id).order_by(IssuedBallot.id)
    with study_database().reading() as session:
        rows = session.execute(query).all()
    return [
        {
            "annotator": annotator,
            "item": str(place),
            "repeat": ballot.repeat,
            "practice": int(practice),
            "order": ",".join(names[method] for method in ballot.order),
            "at": time_text(ballot.at),
        }
        for ballot, annotator, place, practice in rows
    ]


def _study_rating_rows(study: StudyRecord) -> list[ExportRow]:
    summary = results(study.id).summary
    return [] if summary is None else rating_rows(summary.ratings)


EXPORT_TABLES: Mapping[str, Callable[[StudyRecord], list[ExportRow]]] = {
    "items": _item_rows,
    "votes": _study_vote_rows,
    "orders": _order_rows,
    "ratings": _study_rating_rows,
}
