"""Rows of a data set: what the model says to each, right or wrong, filtered, searched, sorted."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from components.browse.rows import Row, Table, listed, table, top_quarter
from components.browse.state import FILTERS, SORTS, Browse
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


@pytest.fixture
def found() -> Table:
    return table(data(*EXAMPLES), PREDICTIONS, COMPARED)


def test_each_row_says_what_the_model_says_and_whether_it_is_right(found: Table) -> None:
    assert [row.right for row in found.rows] == [True, False, True, True, None]
    assert [row.predicted for row in found.rows] == ["positive", "positive", "negative", "positive", "negative"]
    assert [row.confidence for row in found.rows] == pytest.approx([0.95, 0.92, 0.9, 0.55, 0.6])
    assert [row.label for row in found.rows] == ["positive", "negative", "negative", "positive", None]
    assert found.rows[2].marked == "Soup · cold"
    assert [row.length for row in found.rows] == [len(example.text) for example in EXAMPLES]
    assert (found.predicted, found.compared, found.regression, found.said) == (5, 4, False, "")
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
def test_filters(found: Table, show: str, expected: list[int]) -> None:
    assert listed(found, Browse(show=show)) == expected


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
def test_what_has_no_value_to_sort_by_comes_last(found: Table, sort: str, expected: list[int]) -> None:
    assert listed(found, Browse(sort=sort)) == expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [("cold, bill enormous", [2]), ("STRASSE FINE", [3]), ("the", [0]), ("  ", [0, 1, 2, 3, 4]), (".*", [])],
)
def test_search_minds_neither_case_nor_white_space_and_is_no_pattern(
    found: Table, search: str, expected: list[int]
) -> None:
    assert listed(found, Browse(search=search)) == expected


def test_search_reads_the_second_text_too() -> None:
    pairs = table(data(LabeledExample("a premise", "a hypothesis", 0), LabeledExample("other", "thing", 1)))
    assert listed(pairs, Browse(search="hypothesis")) == [0]
    assert pairs.rows[0].length == len("a premise" + "a hypothesis")


def test_a_label_narrows_what_a_filter_shows(found: Table) -> None:
    assert listed(found, Browse(label="negative")) == [1, 2]
    assert listed(found, Browse(label="negative", show="right")) == [2]
    assert listed(found, Browse(label="unheard of")) == []


@pytest.mark.parametrize("show", FILTERS)
@pytest.mark.parametrize("sort", SORTS)
def test_nothing_predicted_is_no_trouble(show: str, sort: str) -> None:
    bare = table(data(*EXAMPLES))
    expected = {"all": 5, "rationale": 2}.get(show, 0)
    assert len(listed(bare, Browse(show=show, sort=sort))) == expected
    assert (bare.predicted, bare.regression, bare.judged) == (0, None, False)


def test_of_some_predictions_only_those_count() -> None:
    some = table(data(*EXAMPLES), [None, *PREDICTIONS[1:3], None, None])
    assert [row.right for row in some.rows] == [None, False, True, None, None]
    assert some.predicted == 2
    assert listed(some, Browse(show="wrong")) == [1]


def test_the_same_class_in_another_order_is_the_same_class() -> None:
    turned = table(data(*EXAMPLES[:2]), [said(0.1, ("Positive", "Negative")), said(0.9, ("Positive", "Negative"))])
    assert [row.right for row in turned.rows] == [True, True]


def test_other_classes_are_neither_right_nor_wrong_and_that_is_said() -> None:
    other = table(data(*EXAMPLES), [said(0.9, ("cat", "dog"))] * 5)
    assert not other.judged
    assert "(negative, positive) are not the model's (cat, dog)" in other.said
    assert listed(other, Browse(show="wrong")) == []


def test_without_labels_nothing_is_right_or_wrong() -> None:
    bare = table(data(LabeledExample("a"), LabeledExample("b"), names=()), [said(0.9), said(0.2)])
    assert not bare.judged
    assert bare.said.startswith("This data set has no labels")
    assert bare.label_names == ()


def test_a_score_has_an_error_and_the_farthest_quarter_is_off() -> None:
    truth = (0.0, 0.5, 1.0, 2.0, None)
    examples = [LabeledExample(f"text {i}", label=label) for i, label in enumerate(truth)]
    found = table(data(*examples, names=(), task="regression"), [score(value) for value in (0.1, 0.1, 1.0, -1.0, 0.3)])
    assert [row.error for row in found.rows] == [pytest.approx(0.1), pytest.approx(0.4), 0.0, 3.0, None]
    assert [row.label for row in found.rows] == ["0", "0.5", "1", "2", None]
    assert listed(found, Browse(show="off")) == [3]
    assert listed(found, Browse(sort="error")) == [3, 1, 0, 2, 4]
    assert found.regression is True
    assert all(row.confidence is None and row.right is None for row in found.rows)


@pytest.mark.parametrize(
    ("task", "predicted", "told"),
    [("classification", score(0.4), "gives a score, the data set has a class"),
     ("regression", said(0.4), "gives a class, the data set has a score")],
)  # fmt: skip
def test_scores_and_classes_are_not_compared(task: DatasetTask, predicted: Prediction, told: str) -> None:
    names = NAMES if task == "classification" else ()
    found = table(data(LabeledExample("a", label=1), names=names, task=task), [predicted])
    assert not found.judged
    assert told in found.said


def test_the_top_quarter_is_rounded_up_and_of_equal_values_the_first_count() -> None:
    assert top_quarter([]) == top_quarter([None]) == frozenset()
    assert top_quarter([0.3, None]) == {0}
    assert top_quarter([1, 2, 3, 4, 5, 6, 7, 8]) == {6, 7}
    assert top_quarter([5, None, 5, 5, 5, 5]) == {0, 2}
    assert top_quarter([0, 0.0, 0, 0, 0]) == frozenset(), "no error is not far off"
    assert top_quarter([0, 0, 0, 0.1, 0]) == {3}
    rows = [Row(i, "a", None, None, "", 1, disagreement=value) for i, value in enumerate([0.9, 0.9, 0.9, 0.1])]
    assert listed(Table(tuple(rows), ()), Browse(show="disagree")) == [0]


def test_a_hundred_thousand_examples_are_listed_in_step_with_their_number() -> None:
    row = replace(table(data(*EXAMPLES), PREDICTIONS).rows[0], text="Soup cold, bill enormous. " * 8)
    many = tuple(replace(row, index=index, length=index % 97) for index in range(100_000))
    few, all_of_them = (_seconds(Table(many[:number], NAMES, False)) for number in (10_000, 100_000))
    assert all_of_them < 50 * few, "ten times as many take about ten times as long, not a hundred times"


def _seconds(rows: Table) -> float:
    """Of the processor, the best of three."""
    took = []
    for _ in range(3):
        begun = time.process_time()
        assert listed(rows, Browse("no such words", "right", "positive", "long")) == []
        took.append(time.process_time() - begun)
    return min(took)
