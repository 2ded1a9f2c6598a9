"""A study as tables: what is in them, that they come back, and that nobody is in them."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from engine.errors import ExegesisError, UsageError
from engine.study.access import new_token
from engine.study.annotators import Answer, Guess, confirm, consent, join
from engine.study.ballots import next_ballot
from engine.study.counted_votes import WITHOUT, counted_votes, read_rankings, to_rankings
from engine.study.database import Item, Study, study_database
from engine.study.design import ExclusionRules
from engine.study.results import EXPORT_TABLES, export_rows, results, results_to_json
from engine.table_io import to_csv, to_json
from tests.unit.study.polls import METHODS, agreed, answer, open_study
from tests.unit.study.quick import rate_quickly

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    rate_quickly(monkeypatch)


def voted(study: Study, *ranks: int, seconds: float = 9.0) -> str:
    person = agreed(study.token)
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot, *ranks, seconds=seconds))
    return person.pseudonym


def cannot_tell(study: Study) -> str:
    person = agreed(study.token)
    ballot = next_ballot(person.id)
    assert ballot is not None
    confirm(person.id, Answer(ballot.token, new_token(), None, 9.0))
    return person.pseudonym


def cells(table: list[dict[str, Any]]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(table))))


def test_items_are_told_with_what_the_model_said() -> None:
    first, second, *_ = export_rows(open_study(items=2).id, "items")
    assert first == {
        "item": "0",
        "practice": 1,
        "text": "Text 0.",
        "text_pair": None,
        "picture": None,
        "label": None,
        "predicted": "good",
        "score": 0.73,
    }
    assert (second["item"], second["practice"]) == ("1", 0)


def test_votes_come_back_with_what_was_not_told_and_left_out(tmp_path: Path) -> None:
    study = open_study(practice=0, exclusion=ExclusionRules(least_seconds=2.0))
    one, quick, unsure = voted(study, 1, 2, 3), voted(study, 3, 1, 1, seconds=0.5), cannot_tell(study)
    table = cells(export_rows(study.id, "votes"))
    assert list(table[0]) == ["annotator", "item", "repeat", "seconds", "at", *METHODS, "left_out"]
    told = {row["annotator"]: row for row in table}
    assert [told[unsure][method] for method in METHODS] == ["", "", ""]
    assert [told[who]["left_out"] for who in (one, quick, unsure)] == ["", "least_seconds", ""]
    file = tmp_path / "votes.csv"
    file.write_text(to_csv(export_rows(study.id, "votes")))
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", row["at"]) for row in table)
    rankings = to_rankings(results(study.id).votes)
    read = read_rankings(file)
    assert [one.at for one in read] == pytest.approx([one.at for one in rankings], abs=1e-6)
    assert [replace(one, at=was.at) for one, was in zip(read, rankings, strict=True)] == rankings


def test_who_is_left_out_is_told_in_each_of_their_votes() -> None:
    study = open_study(practice=0, exclusion=ExclusionRules(least_votes=2))
    stays, few = voted(study), cannot_tell(study)
    assert {(row["annotator"], row["left_out"]) for row in export_rows(study.id, "votes")} == {
        (stays, None),
        (few, "least_votes"),
    }


def test_orders_are_those_of_the_ballots_answered_or_not() -> None:
    study = open_study(practice=1)
    who = voted(study)
    waiting = agreed(study.token)
    assert next_ballot(waiting.id) is not None
    table = export_rows(study.id, "orders")
    assert [row["practice"] for row in table] == [1, 0, 0, 0, 0, 0, 0, 1]
    told = {(row["annotator"], row["item"], row["repeat"]): row["order"] for row in table}
    for vote in counted_votes(study.id):
        assert told[who, vote.item, vote.repeat] == ",".join(vote.order)
    assert table[-1]["annotator"] == waiting.pseudonym


def test_ratings_are_those_of_the_results() -> None:
    study = open_study()
    assert export_rows(study.id, "ratings") == []
    voted(study)
    found = results(study.id).summary
    assert found is not None
    assert [(row["method"], row["skill"]) for row in export_rows(study.id, "ratings")] == [
        (rating.method, rating.skill) for rating in found.ratings
    ]


def test_guesses_are_told_with_the_answer_that_was_right() -> None:
    study = open_study(items=4, practice=0, mode="predict", items_per_annotator=4, repeats=0)
    person = agreed(study.token)
    given = [Guess(1, 5), Guess(0, 2), None]
    for guess in given:
        ballot = next_ballot(person.id)
        assert ballot is not None
        confirm(person.id, Answer(ballot.token, new_token(), None, 3.0, guess))
    table = export_rows(study.id, "votes")
    assert [(row["guess"], row["predicted"], row["right"], row["sure"]) for row in table] == [
        ("good", "good", 1, 5),
        ("bad", "good", 0, 2),
        (None, "good", None, None),
    ]
    assert {row["shown"] for row in table} <= {*METHODS, WITHOUT}
    assert [vote.order for vote in counted_votes(study.id)] == [
        () if row["shown"] == WITHOUT else (row["shown"],) for row in table
    ]


def test_results_are_plain_in_both_modes() -> None:
    study = open_study(items=4, practice=0, mode="predict", items_per_annotator=4, repeats=0)
    person = agreed(study.token)
    while ballot := next_ballot(person.id):
        confirm(person.id, Answer(ballot.token, new_token(), None, 3.0, Guess(1, 4)))
    told = json.loads(json.dumps(results_to_json(results(study.id)), allow_nan=False))
    assert told["summary"] is None
    assert [one["name"] for one in told["forward"]["conditions"]] == [WITHOUT, *METHODS]
    assert sum(one["share"]["right"] for one in told["forward"]["conditions"] if one["share"]) == 4
    ranked = open_study(practice=0, exclusion=ExclusionRules(least_seconds=2.0))
    voted(ranked, seconds=1.0)
    told = json.loads(json.dumps(results_to_json(results(ranked.id)), allow_nan=False))
    assert (told["answers"], told["summary"], told["forward"]) == (6, None, None)
    assert told["left_out"][0]["reason"] == "The answer took 1 seconds, less than 2."


def test_nobody_is_in_any_table() -> None:
    study = open_study()
    person, code = join(study.token)
    consent(person.id)
    ballot = next_ballot(person.id)
    assert ballot is not None
    confirm(person.id, answer(ballot))
    told = "".join(
        to_csv(export_rows(study.id, table)) + to_json(export_rows(study.id, table)) for table in EXPORT_TABLES
    )
    for secret in (code, code.replace("-", ""), study.token, study.secret, ballot.token):
        assert secret not in told


def test_texts_that_a_spreadsheet_would_run_are_defused() -> None:
    study = open_study(items=1, repeats=0)
    with study_database().writing() as session:
        for item in session.scalars(sa.select(Item)):
            item.input, item.label = {"text": "=1+1", "text_pair": None}, "@x"
    for row in cells(export_rows(study.id, "items")):
        assert (row["text"], row["label"]) == ("'=1+1", "'@x")
    assert json.loads(to_json(export_rows(study.id, "items")))[0]["text"] == "=1+1"


def test_an_unknown_table_or_study() -> None:
    with pytest.raises(UsageError, match=r"table: unknown name 'voter'. Did you mean 'votes'"):
        export_rows(open_study().id, "voter")
    with pytest.raises(ExegesisError, match="there is no study 99"):
        export_rows(99, "items")
