"""Examples of a data set: their predictions, right or wrong, filtered, searched, sorted; as columns, and in words."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from components.browse.examples import (
    MOST_CHARACTERS,
    MOST_SHOWN,
    ExampleRow,
    ExampleTable,
    describe_examples,
    describe_left_out,
    describe_place,
    example_frame,
    example_table,
    explain_missing,
    list_examples,
    neighbors,
    top_quarter,
)
from components.browse.listing import FILTERS, SORTS, Listing
from engine.data.examples import Dataset, DatasetTask, LabeledExample
from engine.data.registry import external_card
from engine.metrics.agreement import Disagreement
from engine.result import Prediction

NAMES = ("negative", "positive")


def data(*examples: LabeledExample, names: tuple[str, ...] = NAMES, task: DatasetTask = "classification") -> Dataset:
    return Dataset("own", "Own", task, names, examples, external_card("own", "a test", "few"), "0" * 64)


def said(share: float, labels: tuple[str, ...] = NAMES) -> Prediction:
    """A prediction with this probability of the second class."""
    return Prediction(labels, (0.0, share - 0.5), (1 - share, share))


def score(value: float) -> Prediction:
    return Prediction(("score",), (value,), (value,), regression=True)


EXAMPLES = (
    LabeledExample("The lamb fell off the bone.", label=1, rationale=((9, 26),)),
    LabeledExample("Tedious", label=0),
    LabeledExample("Soup   cold,\nbill ENORMOUS", label=0, rationale=((0, 4), (7, 11))),
    LabeledExample("Straße ﬁne", label=1),
    LabeledExample("no label here"),
)
PREDICTIONS = [said(0.95), said(0.92), said(0.1), said(0.55), said(0.4)]
COMPARED = [Disagreement(0.1), Disagreement(0.9), Disagreement(0.5), Disagreement(None, ("occlusion",)), None]
PLAIN = ExampleRow(0, "a film", None, None, "", 6)
RIGHT = replace(PLAIN, label="good", predicted="good", confidence=0.95, right=True)
WRONG = replace(RIGHT, index=1, predicted="bad", right=False)
UNSURE = replace(WRONG, index=2, confidence=0.55)


@pytest.fixture
def found() -> ExampleTable:
    return example_table(data(*EXAMPLES), PREDICTIONS, COMPARED)


def test_each_row_says_what_the_model_says_and_whether_it_is_right(found: ExampleTable) -> None:
    assert [row.right for row in found.rows] == [True, False, True, True, None]
    assert [row.predicted for row in found.rows] == ["positive", "positive", "negative", "positive", "negative"]
    assert [row.confidence for row in found.rows] == pytest.approx([0.95, 0.92, 0.9, 0.55, 0.6])
    assert [row.label for row in found.rows] == ["positive", "negative", "negative", "positive", None]
    assert found.rows[2].marked == "Soup · cold"
    assert [row.length for row in found.rows] == [len(example.text) for example in EXAMPLES]
    assert (found.predicted, found.compared, found.regression, found.note) == (5, 4, False, "")
    assert found.rows[3].left_out == ("occlusion",)


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        ("all", [0, 1, 2, 3, 4]),
        ("right", [0, 2, 3]),
        ("wrong", [1]),
        ("confident_wrong", [1]),
        ("unsure", [3]),
        ("off", []),
        ("disagree", [1]),
        ("rationale", [0, 2]),
    ],
)
def test_filters(found: ExampleTable, show: str, expected: list[int]) -> None:
    assert list_examples(found, Listing(show=show)) == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("index", [0, 1, 2, 3, 4]),
        ("confident", [0, 1, 2, 4, 3]),
        ("doubtful", [3, 4, 2, 1, 0]),
        ("error", [0, 1, 2, 3, 4]),
        ("disagree", [1, 2, 0, 3, 4]),
        ("agree", [0, 2, 1, 3, 4]),
        ("short", [1, 3, 4, 2, 0]),
        ("long", [0, 2, 4, 3, 1]),
    ],
)
def test_what_has_no_value_to_sort_by_comes_last(found: ExampleTable, sort: str, expected: list[int]) -> None:
    assert list_examples(found, Listing(sort=sort)) == expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [("cold, bill enormous", [2]), ("STRASSE FINE", [3]), ("the", [0]), ("  ", [0, 1, 2, 3, 4]), (".*", [])],
)
def test_search_minds_neither_case_nor_white_space_and_is_no_pattern(
    found: ExampleTable, search: str, expected: list[int]
) -> None:
    assert list_examples(found, Listing(search=search)) == expected


def test_search_reads_the_second_text_too() -> None:
    pairs = example_table(data(LabeledExample("a premise", "a hypothesis", 0), LabeledExample("other", "thing", 1)))
    assert list_examples(pairs, Listing(search="hypothesis")) == [0]
    assert pairs.rows[0].length == len("a premise" + "a hypothesis")


def test_a_label_narrows_what_a_filter_shows(found: ExampleTable) -> None:
    assert list_examples(found, Listing(label="negative")) == [1, 2]
    assert list_examples(found, Listing(label="negative", show="right")) == [2]
    assert list_examples(found, Listing(label="unheard of")) == []


@pytest.mark.parametrize("show", FILTERS)
@pytest.mark.parametrize("sort", SORTS)
def test_nothing_predicted_is_no_trouble(show: str, sort: str) -> None:
    bare = example_table(data(*EXAMPLES))
    expected = {"all": 5, "rationale": 2}.get(show, 0)
    assert len(list_examples(bare, Listing(show=show, sort=sort))) == expected
    assert (bare.predicted, bare.regression, bare.judged) == (0, None, False)


def test_of_some_predictions_only_those_count() -> None:
    some = example_table(data(*EXAMPLES), [None, *PREDICTIONS[1:3], None, None])
    assert [row.right for row in some.rows] == [None, False, True, None, None]
    assert some.predicted == 2
    assert list_examples(some, Listing(show="wrong")) == [1]


def test_the_same_class_in_another_order_is_the_same_class() -> None:
    turned = example_table(
        data(*EXAMPLES[:2]), [said(0.1, ("Positive", "Negative")), said(0.9, ("Positive", "Negative"))]
    )
    assert [row.right for row in turned.rows] == [True, True]


def test_other_classes_are_neither_right_nor_wrong_and_that_is_said() -> None:
    other = example_table(data(*EXAMPLES), [said(0.9, ("cat", "dog"))] * 5)
    assert not other.judged
    assert "(negative, positive) do not match the model's (cat, dog)" in other.note
    assert list_examples(other, Listing(show="wrong")) == []


def test_without_labels_nothing_is_right_or_wrong() -> None:
    bare = example_table(data(LabeledExample("a"), LabeledExample("b"), names=()), [said(0.9), said(0.2)])
    assert not bare.judged
    assert bare.note.startswith("This data set has no labels")
    assert bare.label_names == ()


def test_a_score_has_an_error_and_the_farthest_quarter_is_off() -> None:
    truth = (0.0, 0.5, 1.0, 2.0, None)
    examples = [LabeledExample(f"text {i}", label=label) for i, label in enumerate(truth)]
    found = example_table(
        data(*examples, names=(), task="regression"), [score(value) for value in (0.1, 0.1, 1.0, -1.0, 0.3)]
    )
    assert [row.error for row in found.rows] == [pytest.approx(0.1), pytest.approx(0.4), 0.0, 3.0, None]
    assert [row.label for row in found.rows] == ["0", "0.5", "1", "2", None]
    assert list_examples(found, Listing(show="off")) == [3]
    assert list_examples(found, Listing(sort="error")) == [3, 1, 0, 2, 4]
    assert found.regression is True
    assert all(row.confidence is None and row.right is None for row in found.rows)


@pytest.mark.parametrize(
    ("task", "predicted", "told"),
    [("classification", score(0.4), "gives a score, the data set has a class"),
     ("regression", said(0.4), "gives a class, the data set has a score")],
)  # fmt: skip
def test_scores_and_classes_are_not_compared(task: DatasetTask, predicted: Prediction, told: str) -> None:
    names = NAMES if task == "classification" else ()
    found = example_table(data(LabeledExample("a", label=1), names=names, task=task), [predicted])
    assert not found.judged
    assert told in found.note


def test_the_top_quarter_is_rounded_up_and_of_equal_values_the_first_count() -> None:
    assert top_quarter([]) == top_quarter([None]) == frozenset()
    assert top_quarter([0.3, None]) == {0}
    assert top_quarter([1, 2, 3, 4, 5, 6, 7, 8]) == {6, 7}
    assert top_quarter([5, None, 5, 5, 5, 5]) == {0, 2}
    assert top_quarter([0, 0.0, 0, 0, 0]) == frozenset(), "no error is not far off"
    assert top_quarter([0, 0, 0, 0.1, 0]) == {3}
    rows = [ExampleRow(i, "a", None, None, "", 1, disagreement=value) for i, value in enumerate([0.9, 0.9, 0.9, 0.1])]
    assert list_examples(ExampleTable(tuple(rows), ()), Listing(show="disagree")) == [0]


def test_a_hundred_thousand_examples_are_listed_in_step_with_their_number() -> None:
    row = replace(example_table(data(*EXAMPLES), PREDICTIONS).rows[0], text="Soup cold, bill enormous. " * 8)
    many = tuple(replace(row, index=index, length=index % 97) for index in range(100_000))
    few, all_of_them = (_seconds(ExampleTable(many[:number], NAMES, False)) for number in (10_000, 100_000))
    assert all_of_them < 50 * few, "ten times as many take about ten times as long, not a hundred times"


def _seconds(rows: ExampleTable) -> float:
    """Of the processor, the best of three."""
    took = []
    for _ in range(3):
        begun = time.process_time()
        assert list_examples(rows, Listing("no such words", "right", "positive", "long")) == []
        took.append(time.process_time() - begun)
    return min(took)


def columns(*rows: ExampleRow, regression: bool | None = None) -> list[str]:
    return list(example_frame(rows, ExampleTable(rows, (), regression)).columns)


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
    shown = example_frame([WRONG, RIGHT, PLAIN], ExampleTable((RIGHT, WRONG, PLAIN), (), False))
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
    shown = example_frame([row], ExampleTable((row,), (), False))
    assert {shown[name][0] for name in ("Text", "Second text", "Label", "Prediction", "Rationale")} == {cell}


@pytest.mark.parametrize(
    ("rows", "asked", "expected"),
    [
        ((PLAIN,), Listing(), ""),
        ((PLAIN,), Listing(show="disagree"), "Not compared yet: press Compare methods above."),
        ((RIGHT,), Listing(sort="agree"), "Not compared yet: press Compare methods above."),
        ((replace(PLAIN, compared=True),), Listing(show="disagree"), ""),
        ((PLAIN,), Listing(show="wrong"), "Not predicted yet: press Predict above."),
        ((PLAIN,), Listing(sort="confident"), "Not predicted yet: press Predict above."),
        ((RIGHT,), Listing(show="wrong"), ""),
        ((replace(RIGHT, right=None),), Listing(show="right"), "no such classes"),
        ((replace(RIGHT, right=None),), Listing(show="unsure"), ""),
    ],
)
def test_what_cannot_be_asked_yet_is_said(rows: tuple[ExampleRow, ...], asked: Listing, expected: str) -> None:
    assert explain_missing(ExampleTable(rows, (), False, "no such classes"), asked) == expected


def test_no_more_rows_are_sent_than_are_said() -> None:
    rows = tuple(replace(PLAIN, index=index) for index in range(MOST_SHOWN + 5))
    assert example_frame(rows, ExampleTable(rows, ()))["#"].tolist() == list(range(MOST_SHOWN))


def test_the_summary_counts_what_is_right_and_what_is_wrong_for_sure() -> None:
    told = describe_examples(ExampleTable((RIGHT, RIGHT, WRONG, UNSURE), (), False))
    assert told.startswith("4 examples. Accuracy 50.0")
    assert "2 of 4 right, 2 wrong, 1 of these with a confidence of at least 90%." in told


def test_the_summary_says_what_is_not_known() -> None:
    assert describe_examples(ExampleTable((PLAIN, PLAIN), ())) == "2 examples, none predicted yet."
    partly = describe_examples(ExampleTable((RIGHT, PLAIN), (), False, "Classes are matched by their number."))
    assert partly.startswith("2 examples, 1 predicted. Accuracy 100.0")
    assert partly.endswith("Classes are matched by their number.")
    unknown = replace(RIGHT, right=None)
    assert describe_examples(ExampleTable((unknown,), (), False, "No labels.")) == "1 example. No labels."


def test_the_summary_of_scores_is_their_mean_error() -> None:
    rows = tuple(replace(PLAIN, score=0.0, error=error) for error in (0.1, 0.3, None))
    assert (
        describe_examples(ExampleTable(rows, (), True)) == "3 examples. Mean absolute error 0.2 on 2 labeled examples."
    )


def test_methods_left_out_are_counted() -> None:
    flat = replace(PLAIN, compared=True, left_out=("occlusion",))
    told = describe_left_out(
        ExampleTable((flat, flat, replace(flat, left_out=("occlusion", "x"))), ()), {"occlusion": "Occlusion"}
    )
    assert told.endswith("all scores are equal: Occlusion on 3 examples, x on 1 example.")
    assert describe_left_out(ExampleTable((PLAIN,), ()), {}) == ""


def test_the_way_through_the_list() -> None:
    order = [7, 3, 5]
    assert neighbors(order, 7) == (None, 3)
    assert neighbors(order, 3) == (7, 5)
    assert neighbors(order, 5) == (3, None)
    assert neighbors(order, 4) == (5, 7)
    assert neighbors(order, None) == (5, 7)
    assert neighbors([], 4) == (None, None)
    assert neighbors([4], 4) == (None, None)


def test_the_place_in_the_list() -> None:
    assert describe_place([7, 3, 5], 3) == "Example 3: 2 of 3 in the list"
    assert describe_place([7, 3, 5], None) == "3 listed; the current example is not in the list"
    assert describe_place([], 3) == "none listed"
