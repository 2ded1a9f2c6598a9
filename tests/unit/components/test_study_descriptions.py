"""A study in words: its state, its facts, its link, what happened."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from components.study.descriptions import (
    describe_exclusions,
    design_facts,
    event_rows,
    is_local_link,
    join_link,
    one_line_title,
    state_badge,
    study_facts,
    study_history,
    study_progress,
)
from engine.registry import all_explainers
from engine.study.design import Design, ExclusionRules, ItemChoice, MethodChoice
from engine.study.studies import AnswerCounts, StudyRecord

DESIGN = Design(title=" Two\nlines ", model="m", dataset="d", methods=(MethodChoice("gradient"), MethodChoice("lime")))


def record(state: str = "draft", design: Design = DESIGN, **times: float) -> StudyRecord:
    held: dict[str, Any] = {"opened": None, "closed": None, **times}
    return StudyRecord(3, "t0ken", design, state, 0.0, **held)


@pytest.mark.parametrize(
    ("state", "ends_in", "word"),
    [
        ("draft", None, "draft"),
        ("open", None, "open"),
        ("open", 60.0, "open"),
        ("open", -60.0, "ended"),
        ("closed", -60.0, "closed"),
        ("archived", None, "archived"),
    ],
)
def test_the_state_is_a_word_that_knows_the_time(state: str, ends_in: float | None, word: str) -> None:
    ends = None if ends_in is None else time.time() + ends_in
    assert state_badge(record(state, replace(DESIGN, closes_at=ends)))[0] == word


def test_no_two_states_look_alike() -> None:
    looks = [state_badge(record(state)) for state in ("draft", "open", "closed", "archived")]
    assert len({icon for _, _, icon in looks}) == 4


def test_what_it_gathered_is_counted() -> None:
    assert study_progress(record(), AnswerCounts()) == "not opened yet"
    assert study_progress(record("open"), AnswerCounts()) == "no participants yet"
    assert study_progress(record("open"), AnswerCounts(12, 110, voters=9)) == "12 annotators (9 voted), 110 answers"
    assert study_progress(record("closed"), AnswerCounts(1, 1, 1, 1)) == ("1 annotator, 1 answer, 1 “cannot tell”")


def test_its_card_names_what_is_compared() -> None:
    told = study_facts(record(), AnswerCounts(), UTC, all_explainers("text"))
    assert told["methods"] == "Gradient, LIME, Random"
    assert study_facts(record(), AnswerCounts(), UTC, {})["methods"] == "gradient, lime, random"
    assert told["dates"] == "created 1970-01-01 00:00 UTC"
    assert one_line_title(record()) == "Two lines"


def test_its_history_says_when_it_closes_or_has_closed() -> None:
    past, future = replace(DESIGN, closes_at=60.0), replace(DESIGN, closes_at=7258118400.0)
    assert study_history(record("open", past, opened=30.0), UTC).endswith("closed 1970-01-01 00:01 UTC")
    assert study_history(record("open", future, opened=30.0), UTC).endswith("closes 2200-01-01 00:00 UTC")
    assert study_history(record("closed", future, opened=30.0, closed=90.0), UTC).endswith(
        "closed 1970-01-01 00:01 UTC"
    )


def test_all_that_was_decided_is_told() -> None:
    filtered = ItemChoice("filter", 8, "train", "good", "wrong", 3, 1)
    told = design_facts(
        replace(DESIGN, items=filtered, methods=(MethodChoice("lime", {"n_samples": 40}), MethodChoice("gone"))),
        all_explainers("text"),
    )
    assert told["items"] == (
        "8 random items from train: class good, the model is wrong, at least 3 words, at most 1 word"
    )
    assert told["methods"] == "LIME (n_samples 40); gone"
    assert told["items per person"] == "20, 2 of them shown twice"
    whole = design_facts(replace(DESIGN, items=ItemChoice("filter", 1), repeats=0), {})
    assert (whole["items"], whole["items per person"]) == ("1 random item", "20")
    by_hand = ItemChoice("hand", indices=(1, 2, 3))
    assert design_facts(replace(DESIGN, items=by_hand), {})["items"] == "1 item, picked by hand"


def test_rules_are_told_only_where_there_are_any() -> None:
    assert describe_exclusions(ExclusionRules()) == "none"
    assert describe_exclusions(ExclusionRules(2.5, 1, 0.0, -0.5)) == (
        "votes faster than 2.5 s; people with fewer than 1 vote; people with more than 0% “cannot tell”; "
        "people with a self-consistency below -0.5"
    )


def test_what_happened_is_told_the_latest_first_and_in_short() -> None:
    log = [
        ("created", 0.0, {}),
        ("opened", 60.0, {"design": {"a": 1}, "items": 5}),
        ("odd_one", 90.0, {"x": "y" * 999}),
    ]
    last, opened, created = event_rows(log, UTC)
    assert created == {"time": "1970-01-01 00:00 UTC", "event": "created", "details": ""}
    assert opened["details"] == '{"items": 5}'
    assert last["event"] == "odd one"
    assert len(last["details"]) == 301


@pytest.mark.parametrize(
    ("page", "link", "here"),
    [
        ("http://localhost:8501/study?study=3", "http://localhost:8501/annotate?study=t0ken", True),
        ("https://lab.example/base/study", "https://lab.example/base/annotate?study=t0ken", False),
        ("http://[::1]:8501/study#x", "http://[::1]:8501/annotate?study=t0ken", True),
        (None, "/annotate?study=t0ken", True),
    ],
)
def test_the_join_link_is_at_the_address_that_the_organizer_uses(page: str | None, link: str, here: bool) -> None:
    assert join_link(page, "t0ken") == link
    assert is_local_link(link) is here
