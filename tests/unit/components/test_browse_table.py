"""The list as columns, its summary, and the way through it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.browse.rows import Row, Table
from components.browse.state import Browse
from components.browse.table import MOST_CHARACTERS, MOST_SHOWN, frame, left_out, place, steps, summary, unanswered

PLAIN = Row(0, "a film", None, None, "", 6)
RIGHT = replace(PLAIN, label="good", predicted="good", confidence=0.95, right=True)
WRONG = replace(RIGHT, index=1, predicted="bad", right=False)
UNSURE = replace(WRONG, index=2, confidence=0.55)


def columns(*rows: Row, regression: bool | None = None) -> list[str]:
    return list(frame(rows, Table(rows, (), regression)).columns)


def test_only_columns_with_something_to_say_are_there() -> None:
    assert columns(PLAIN) == ["#", "Text", "Length"]
    assert columns(replace(PLAIN, pair="b", marked="film", label="good")) == [
        "#", "Text", "Second text", "Label", "Length", "Rationale",
    ]  # fmt: skip
    assert columns(RIGHT, regression=False) == [
        "#", "Text", "Label", "Prediction", "Confidence", "Verdict", "Length",
    ]  # fmt: skip
    assert "Verdict" not in columns(replace(RIGHT, right=None), regression=False)
    assert columns(replace(PLAIN, score=0.5, error=0.1), regression=True) == ["#", "Text", "Score", "Error", "Length"]
    assert "Error" not in columns(replace(PLAIN, score=0.5), regression=True)
    assert "Disagreement" in columns(replace(PLAIN, compared=True, disagreement=None))


def test_the_cells_are_the_rows() -> None:
    shown = frame([WRONG, RIGHT, PLAIN], Table((RIGHT, WRONG, PLAIN), (), False))
    assert shown["#"].tolist() == [1, 0, 0]
    assert shown["Verdict"].tolist() == ["✗ wrong", "✓ right", ""]
    assert shown["Prediction"].tolist() == ["bad", "good", ""]
    assert shown["Confidence"].tolist()[:2] == [0.95, 0.95]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("\n\t+1 for\n\nthis", "'+1 for this"),
        ("@home", "'@home"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("a" * 1000, "a" * (MOST_CHARACTERS - 1) + "…"),
    ],
)
def test_a_cell_is_one_line_that_no_spreadsheet_computes(text: str, cell: str) -> None:
    row = replace(RIGHT, text=text, pair=text, label=text, predicted=text, marked=text)
    shown = frame([row], Table((row,), (), False))
    assert {shown[name][0] for name in ("Text", "Second text", "Label", "Prediction", "Rationale")} == {cell}


@pytest.mark.parametrize(
    ("rows", "asked", "expected"),
    [
        ((PLAIN,), Browse(), ""),
        ((PLAIN,), Browse(show="disagree"), "Not compared yet: press Compare methods above."),
        ((RIGHT,), Browse(sort="agree"), "Not compared yet: press Compare methods above."),
        ((replace(PLAIN, compared=True),), Browse(show="disagree"), ""),
        ((PLAIN,), Browse(show="wrong"), "Not predicted yet: press Predict above."),
        ((PLAIN,), Browse(sort="confident"), "Not predicted yet: press Predict above."),
        ((RIGHT,), Browse(show="wrong"), ""),
        ((replace(RIGHT, right=None),), Browse(show="right"), "no such classes"),
        ((replace(RIGHT, right=None),), Browse(show="unsure"), ""),
    ],
)
def test_what_cannot_be_asked_yet_is_said(rows: tuple[Row, ...], asked: Browse, expected: str) -> None:
    assert unanswered(Table(rows, (), False, "no such classes"), asked) == expected


def test_no_more_rows_are_sent_than_are_said() -> None:
    rows = tuple(replace(PLAIN, index=index) for index in range(MOST_SHOWN + 5))
    assert frame(rows, Table(rows, ()))["#"].tolist() == list(range(MOST_SHOWN))


def test_the_summary_counts_what_is_right_and_what_is_wrong_for_sure() -> None:
    told = summary(Table((RIGHT, RIGHT, WRONG, UNSURE), (), False))
    assert told.startswith("4 examples. Accuracy 50.0")
    assert "2 of 4 right, 2 wrong, 1 of these with a confidence of at least 90%." in told


def test_the_summary_says_what_is_not_known() -> None:
    assert summary(Table((PLAIN, PLAIN), ())) == "2 examples, none predicted yet."
    partly = summary(Table((RIGHT, PLAIN), (), False, "Classes are compared by their number."))
    assert partly.startswith("2 examples, 1 predicted. Accuracy 100.0")
    assert partly.endswith("Classes are compared by their number.")
    unknown = replace(RIGHT, right=None)
    assert summary(Table((unknown,), (), False, "No labels.")) == "1 example. No labels."


def test_the_summary_of_scores_is_their_mean_error() -> None:
    rows = tuple(replace(PLAIN, score=0.0, error=error) for error in (0.1, 0.3, None))
    assert summary(Table(rows, (), True)) == "3 examples. Mean absolute error 0.2 on 2 labelled examples."


def test_methods_left_out_are_counted() -> None:
    flat = replace(PLAIN, compared=True, left_out=("occlusion",))
    told = left_out(Table((flat, flat, replace(flat, left_out=("occlusion", "x"))), ()), {"occlusion": "Occlusion"})
    assert told.endswith("have no order: Occlusion on 3 examples, x on 1 example.")
    assert left_out(Table((PLAIN,), ()), {}) == ""


def test_the_way_through_the_list() -> None:
    order = [7, 3, 5]
    assert steps(order, 7) == (None, 3)
    assert steps(order, 3) == (7, 5)
    assert steps(order, 5) == (3, None)
    assert steps(order, 4) == (5, 7)
    assert steps(order, None) == (5, 7)
    assert steps([], 4) == (None, None)
    assert steps([4], 4) == (None, None)


def test_the_place_in_the_list() -> None:
    assert place([7, 3, 5], 3) == "2 of 3 listed"
    assert place([7, 3, 5], None) == "3 listed; the example above is not among them"
    assert place([], 3) == "none listed"
