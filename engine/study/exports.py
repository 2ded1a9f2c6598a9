"""Studies as tables and JSON: items, votes, ballot orders and ratings.

People are pseudonyms: no code, no address and no join link is exported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from engine.errors import UsageError, unknown
from engine.request import Example
from engine.study.counted_votes import WITHOUT, CountedVote, Exclusion, apply_rules, counted_votes, method_names
from engine.study.database import study_database
from engine.study.design import PREDICT
from engine.study.guesses import ConditionSummary, GuessShare, GuessSummary
from engine.study.items import item_prediction, study_items
from engine.study.rankings import LEFT_OUT_COLUMN, RANKS_COLUMN, VOTE_COLUMNS, Ranking
from engine.study.ratings import Rating
from engine.study.results import Results, results
from engine.study.studies import StudyRecord, find
from engine.study.summary import RankingSummary
from engine.study.tables import Annotator, IssuedBallot, Item

ExportRow = dict[str, Any]


def export_rows(study: int, table: str) -> list[ExportRow]:
    """The rows of one of `EXPORT_TABLES`. Errors: an unknown table or study."""
    if table not in EXPORT_TABLES:
        raise unknown("table", table, EXPORT_TABLES)
    return EXPORT_TABLES[table](find(study))


def vote_rows(votes: Sequence[Ranking | CountedVote], methods: Sequence[str]) -> list[ExportRow]:
    """A row a vote: who, what, when, how long, and the rank of each method; no ranks: cannot tell.

    Errors: a method has the name of a column that every table of votes has.
    """
    if taken := [name for name in methods if name in (*VOTE_COLUMNS, RANKS_COLUMN, LEFT_OUT_COLUMN)]:
        raise UsageError(f"methods: {taken[0]!r} is the name of another column. Rename the method.")
    return [{**_vote_row(vote), **{name: vote.ranks and vote.ranks[name] for name in methods}} for vote in votes]


def _vote_row(vote: Ranking | CountedVote) -> ExportRow:
    return {name: getattr(vote, name) for name in VOTE_COLUMNS}


def rating_rows(ratings: Sequence[Rating]) -> list[ExportRow]:
    """A row a method: skill, ends of the interval, first and last rank, spread over orders of the votes."""
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
    """All results as JSON values, as the command prints them."""
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
    """The results of rankings as JSON values."""

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
    """The results of guesses as JSON values."""

    def share(share: GuessShare) -> ExportRow:
        return {"accuracy": share.accuracy, **asdict(share)}

    def levels(shares: Mapping[int, GuessShare]) -> ExportRow:
        return {str(level): share(own) for level, own in shares.items()}

    def condition(one: ConditionSummary) -> ExportRow:
        return {**asdict(one), "share": one.share and share(one.share), "by_sureness": levels(one.by_sureness)}

    return {
        **asdict(summary),
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
    """`picture`: SHA-256 of its size and pixels; the study file contains the picture itself."""
    prediction = item_prediction(item)
    text = Example(**item.input) if item.picture is None else Example("")
    return {
        "item": str(item.place),
        "practice": int(item.practice),
        "text": text.text,
        "text_pair": text.text_pair,
        "picture": item.input.get("picture"),
        "label": item.label,
        "predicted": None if prediction.regression else prediction.label,
        "score": prediction.logits[0] if prediction.regression else prediction.probabilities[prediction.index],
    }


def _study_vote_rows(study: StudyRecord) -> list[ExportRow]:
    """All answers that were not undone, without practice, with the first rule that excludes each."""
    votes = counted_votes(study.id)
    rules = _rules_by_vote(apply_rules(study.design.exclusion, votes)[1])
    if study.design.mode == PREDICT:
        with study_database().reading() as session:
            predictions = {str(item.place): item_prediction(item) for item in study_items(session, study.id)}
        rows = [
            {**_vote_row(vote), **_guess_columns(vote, predictions[vote.item].labels, predictions[vote.item].label)}
            for vote in votes
        ]
    else:
        rows = vote_rows(votes, method_names(study.design))
    for row, vote in zip(rows, votes, strict=True):
        by_vote = rules.get((vote.annotator, vote.item, vote.repeat))
        row[LEFT_OUT_COLUMN] = by_vote or rules.get((vote.annotator, None, None))
    return rows


def _guess_columns(vote: CountedVote, classes: Sequence[str], predicted: str) -> ExportRow:
    guess = vote.guess or {"label": None, "sure": None}
    guessed = None if guess["label"] is None else classes[guess["label"]]
    right = None if guessed is None else int(guessed == predicted)
    explanation = vote.order[0] if vote.order else WITHOUT
    return {"shown": explanation, "guess": guessed, "predicted": predicted, "right": right, "sure": guess["sure"]}


def _rules_by_vote(exclusions: Sequence[Exclusion]) -> dict[tuple[Any, ...], str]:
    """The first rule by annotator, item and repeat, or by annotator alone."""
    rules: dict[tuple[Any, ...], str] = {}
    for exclusion in exclusions:
        rules.setdefault((exclusion.annotator, exclusion.item, exclusion.repeat), exclusion.rule)
    return rules


def _order_rows(study: StudyRecord) -> list[ExportRow]:
    """All issued ballots, answered or not, practice too: the methods from place A on."""
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
            "at": ballot.at,
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
