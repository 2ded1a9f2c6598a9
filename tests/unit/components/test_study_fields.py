"""What the controls of a study's form hold: every design goes through them and comes back the same."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from components.study.fields import (
    FIELD_LABELS,
    describe_field_error,
    design_from_fields,
    field_names,
    fields_from_design,
    format_indices,
    parse_indices,
)
from engine.errors import UsageError
from engine.study.design import BY_SIGN, Design, ExclusionRules, ItemChoice, MethodChoice

ZURICH = ZoneInfo("Europe/Zurich")
SUMMER = datetime(2027, 7, 1, 18, 30, tzinfo=UTC).timestamp()
FULL = Design(
    title="T",
    colors=BY_SIGN,
    question="Q?",
    consent="C",
    instructions="I",
    model="m",
    dataset="d",
    mode="predict",
    kind="image",
    items=ItemChoice("filter", 7, "train", "none", "wrong", 3, 40, (5, 6, 7, 2)),
    methods=(MethodChoice("gradient", {"a": 1}), MethodChoice("lime")),
    placebo=False,
    practice=3,
    repeats=1,
    items_per_annotator=6,
    votes_per_item=4,
    closes_at=SUMMER,
    exclusion=ExclusionRules(1.5, 2, 0.25, -0.5),
    seed=9,
)


def through(design: Design, zone: tzinfo) -> Design:
    methods = [{"id": method.id, "params": method.params} for method in design.methods]
    return design_from_fields(fields_from_design(design, zone), design.model, design.dataset, methods, zone)


@pytest.mark.parametrize("zone", [UTC, ZURICH], ids=["UTC", "Zurich"])
@pytest.mark.parametrize("design", [Design(), FULL], ids=["blank", "full"])
def test_a_design_comes_back_as_it_was(design: Design, zone: tzinfo) -> None:
    assert through(design, zone) == design


def test_every_field_differs_from_the_usual_in_the_full_design() -> None:
    """Else a field that the form forgets would go unseen above."""
    for one, usual in ((FULL, Design()), (FULL.items, ItemChoice()), (FULL.exclusion, ExclusionRules())):
        same = [
            field.name for field in dataclasses.fields(one) if getattr(one, field.name) == getattr(usual, field.name)
        ]
        assert not same


def test_every_control_has_its_value() -> None:
    assert set(fields_from_design(FULL, UTC)) == set(field_names())


def test_times_are_read_in_the_zone_of_the_browser() -> None:
    assert fields_from_design(FULL, ZURICH)["closes_at"] == datetime(2027, 7, 1, 20, 30)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", []),
        ("7", [7]),
        ("3, 7,10-12", [3, 7, 10, 11, 12]),
        ("9\n 4 ; 2 – 3,", [9, 4, 2, 3]),
        ("5-5", [5]),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, numbers: list[int]) -> None:
    assert parse_indices(text) == numbers


@pytest.mark.parametrize("text", ["a", "1.5", "-3", "3--4", "7-3", "1-999999999", "0-6000, 0-6000", "1234567890", "²"])
def test_other_numbers_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"design.items.indices: must be (numbers and spans such as|ascending spans)"):
        parse_indices(text)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((1, 2), "1, 2"), ((1, 2, 3, 7), "1-3, 7"), ((3, 2, 1), "3, 2, 1"), ((5, 6, 7, 2, 3), "5-7, 2, 3")],
)
def test_numbers_are_written_short_and_read_back(numbers: tuple[int, ...], text: str) -> None:
    assert format_indices(numbers) == text
    assert tuple(parse_indices(text)) == numbers


def test_an_empty_control_is_named() -> None:
    fields = fields_from_design(FULL, UTC) | {"items.count": None}
    with pytest.raises(UsageError, match=r"design.items.count: must be a whole number from 1 to 10,000, got None"):
        design_from_fields(fields, "m", "d", [], UTC)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("design.title is empty. Give one.", "Title is empty. Give one."),
        ("design.items.count: must be 1, got 0.", "Number of items: must be 1, got 0."),
        ("design.items: 22 are needed.", "Items: 22 are needed."),
        ("design.methods: must be 2 to 6 methods.", "Methods: must be 2 to 6 methods."),
        ("design.exclusion.least_seconds: must be 0.", "Minimum time per vote (s): must be 0."),
        ("parameter of design.items: unknown name 'colour'.", "Items: unknown name 'colour'."),
        ("lime: unknown name.", "lime: unknown name."),
    ],
)
def test_errors_of_the_form_name_its_labels(message: str, shown: str) -> None:
    assert describe_field_error(UsageError(message)) == shown


def test_every_field_has_a_label_of_its_own() -> None:
    assert set(field_names()) <= set(FIELD_LABELS)
    assert len(set(FIELD_LABELS.values())) == len(FIELD_LABELS)
