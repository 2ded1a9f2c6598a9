"""A study as tables: its items, what people answered, what they were shown in which order, and the ratings.

People are pseudonyms: no code, no address and no join link is in any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import unknown
from engine.request import Example
from engine.study.database import study_database
from engine.study.design import PREDICT
from engine.study.exchange import LEFT_OUT, Row, rating_rows, summary_plain, vote_row, vote_rows
from engine.study.exclusion import Exclusion, apply
from engine.study.forward.guesses import WITHOUT
from engine.study.forward.plain import forward_plain
from engine.study.freezing import frozen_prediction
from engine.study.results import Results, results
from engine.study.studies import StudyRecord, find
from engine.study.tables import Annotator, Ballot, Item
from engine.study.tally import Kept, method_names, votes_of


def rows(study: int, table: str) -> list[Row]:
    """One of `TABLES`, a row an item, an answer, a ballot or a method. Errors: an unknown table or study."""
    if table not in TABLES:
        raise unknown("table", table, TABLES)
    return TABLES[table](find(study))


def results_plain(found: Results) -> Row:
    """The results as plain values, the JSON that the command prints."""
    return {
        "study": found.study.id,
        "title": found.study.design.title,
        "state": found.study.state,
        "mode": found.study.design.mode,
        "answers": found.answers,
        "annotators": found.annotators,
        "cannot_tell": found.cannot_tell,
        "left_out": [{**asdict(out), "reason": out.reason} for out in found.excluded],
        "summary": found.summary and summary_plain(found.summary),
        "forward": found.forward and forward_plain(found.forward),
    }


def _items(record: StudyRecord) -> list[Row]:
    with study_database().reading() as session:
        return [_item(item) for item in _all_items(session, record.id)]


def _item(item: Item) -> Row:
    """`picture` is the SHA-256 of its size and pixels; the study file holds the picture itself."""
    said, given = frozen_prediction(item), item.input
    text = Example(**given) if item.picture is None else Example("")
    return {
        "item": str(item.place),
        "practice": int(item.practice),
        "text": text.text,
        "text_pair": text.text_pair,
        "picture": given.get("picture"),
        "label": item.label,
        "predicted": None if said.regression else said.label,
        "score": said.logits[0] if said.regression else said.probabilities[said.index],
    }


def _votes(record: StudyRecord) -> list[Row]:
    """All answers that were not taken back, practice left out; what the rules left out says which rule it was."""
    votes = votes_of(record.id)
    out = _rules(apply(record.design.exclusion, votes)[1])
    if record.design.mode == PREDICT:
        said = _predictions(record.id)
        return [{**vote_row(vote), **_guess(vote, *said[vote.item]), LEFT_OUT: _rule(out, vote)} for vote in votes]
    ranked = vote_rows(votes, method_names(record.design))
    return [{**row, LEFT_OUT: _rule(out, vote)} for row, vote in zip(ranked, votes, strict=True)]


def _guess(vote: Kept, classes: Sequence[str], predicted: str) -> Row:
    guess = vote.guess or {"label": None, "sure": None}
    named = None if guess["label"] is None else classes[guess["label"]]
    right = None if named is None else int(named == predicted)
    shown = vote.order[0] if vote.order else WITHOUT
    return {"shown": shown, "guess": named, "predicted": predicted, "right": right, "sure": guess["sure"]}


def _orders(record: StudyRecord) -> list[Row]:
    """All ballots that were given, answered or not, practice too: the methods from place A on."""
    names = method_names(record.design)
    found = sa.select(Ballot, Annotator.pseudonym, Item.place, Item.practice)
    found = found.join(Annotator, Annotator.id == Ballot.annotator).join(Item, Item.id == Ballot.item)
    with study_database().reading() as session:
        given = session.execute(found.where(Ballot.study == record.id).order_by(Ballot.id)).all()
    return [
        {
            "annotator": who,
            "item": str(place),
            "repeat": ballot.repeat,
            "practice": int(practice),
            "order": ",".join(names[at] for at in ballot.order),
            "at": ballot.at,
        }
        for ballot, who, place, practice in given
    ]


def _ratings(record: StudyRecord) -> list[Row]:
    found = results(record.id).summary
    return [] if found is None else rating_rows(found.ratings)


def _all_items(session: Session, study: int) -> Sequence[Item]:
    return session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)).all()


def _predictions(study: int) -> dict[str, tuple[tuple[str, ...], str]]:
    """The classes and the predicted one, by item."""
    with study_database().reading() as session:
        said = {str(item.place): frozen_prediction(item) for item in _all_items(session, study)}
    return {place: (one.labels, one.label) for place, one in said.items()}


def _rules(excluded: Sequence[Exclusion]) -> dict[tuple[Any, ...], str]:
    """The rule by annotator, item and repeat, or by annotator alone; of several the first."""
    found: dict[tuple[Any, ...], str] = {}
    for out in excluded:
        found.setdefault((out.annotator, out.item, out.repeat), out.rule)
    return found


def _rule(rules: Mapping[tuple[Any, ...], str], vote: Kept) -> str | None:
    one = rules.get((vote.annotator, vote.item, vote.repeat))
    return one or rules.get((vote.annotator, None, None))


TABLES: Mapping[str, Callable[[StudyRecord], list[Row]]] = {
    "items": _items,
    "votes": _votes,
    "orders": _orders,
    "ratings": _ratings,
}
