"""A picture set as rows and as small pictures: verdicts, failure cases first, names in words, a light page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.browse.examples import ExampleRow, describe_examples, explain_missing, list_examples, picture_table
from components.browse.listing import Listing
from components.browse.lists import PAGE_SIZE, QUALITY, SIDE
from components.browse.thumbnails import describe_row, grid_cell, thumbnail_url
from engine.data.examples import ImageDataset, ImageExample
from engine.data.image_datasets import load_images
from engine.data.registry import external_card
from engine.result import Prediction

NAMES = ("cat", "dog")


def never(index: int) -> ImageExample:
    raise AssertionError(f"picture {index} was read")


def pictures(labels: tuple[int | None, ...], names: tuple[str, ...] = NAMES) -> ImageDataset:
    """A set whose pictures must not be read."""
    return ImageDataset("set", "Set", names, labels, never, external_card("set", "here", "some"), "r")


def said(cat: float, labels: tuple[str, str] = ("cat", "dog")) -> Prediction:
    """A model that says "cat" with that probability."""
    logits = (float(np.log(cat)), float(np.log(1 - cat)))
    return Prediction(labels, logits, (cat, 1 - cat), False)


def test_verdicts_and_failure_cases_first_without_reading_a_picture() -> None:
    found = picture_table(pictures((0, 0, 1, 1, 0, 0)), [said(0.7), said(0.05), said(0.8), said(0.1), None, said(0.99)])
    assert [row.right for row in found.rows] == [True, False, False, True, None, True]
    assert [row.predicted for row in found.rows] == ["cat", "dog", "cat", "dog", None, "cat"]
    # Mistakes of confidence 0.95 and 0.8; then right ones of 0.7, 0.9 and 0.99; then what is not predicted.
    assert list_examples(found, Listing(sort="mistakes")) == [1, 2, 0, 3, 5, 4]
    assert list_examples(found, Listing(show="wrong", sort="mistakes")) == [1, 2]
    assert list_examples(found, Listing(show="confident_wrong")) == [1]
    assert list_examples(found, Listing(show="right", label="dog")) == [3]
    assert describe_examples(found) == (
        "6 examples, 5 predicted. Accuracy 60.0%: 3 of 5 right, 2 wrong, 1 of these with a confidence of at least 90%."
    )


def test_without_labels_or_with_other_classes_nothing_is_right_or_wrong() -> None:
    none = picture_table(pictures((None, None), ()), [said(0.7), said(0.2)])
    assert none.note == "This data set has no labels, so accuracy cannot be computed."
    others = picture_table(pictures((0, 1), ("owl", "eel")), [said(0.7), said(0.2)])
    assert "(owl, eel) do not match the model's (cat, dog)" in others.note
    for found in (none, others):
        assert [row.right for row in found.rows] == [None, None]
        assert explain_missing(found, Listing(sort="mistakes")) == found.note
        assert list_examples(found, Listing(sort="mistakes")) == [0, 1]


def test_pictures_of_a_class_that_the_model_has_not_are_neither_right_nor_wrong() -> None:
    found = picture_table(pictures((0, 1, 1, 0), ("owl", "Dog")), [said(0.7), said(0.2), said(0.9), said(0.1)])
    assert [row.right for row in found.rows] == [None, True, False, None]
    assert found.note.startswith("The model has no class owl, ")
    assert "1 of 2 right, 1 wrong" in describe_examples(found)


def test_before_there_are_predictions_that_is_said() -> None:
    found = picture_table(pictures((0, 1)), [None, None])
    assert describe_examples(found) == "2 examples, none predicted yet."
    assert explain_missing(found, Listing(sort="mistakes")) == "Not predicted yet: press Predict above."
    assert list_examples(found, Listing()) == [0, 1]


@pytest.mark.parametrize(
    ("row", "name", "shown"),
    [
        (ExampleRow(3, "", None, "<b>cat</b>", "", 0), "Picture 3, label <b>cat</b>", ""),
        (ExampleRow(3, "", None, "cat", "", 0, "cat", 0.973, right=True),
         "Picture 3, label cat, predicted cat with 97.3%: right", "✓ 97%"),
        (ExampleRow(3, "", None, "cat", "", 0, "dog", 0.6, right=False),
         "Picture 3, label cat, predicted dog with 60.0%: wrong", "✗ dog 60%"),
        (ExampleRow(3, "", None, None, "", 0, "dog", 0.6),
         "Picture 3, predicted dog with 60.0%", "dog 60%"),
    ],
)  # fmt: skip
def test_a_small_picture_says_all_in_words_and_the_verdict_by_a_sign(row: ExampleRow, name: str, shown: str) -> None:
    assert describe_row(row) == name
    made = grid_cell(row, "data:x")
    assert (made["verdict"], made["wrong"], made["label"]) == (shown, row.right is False, row.label or "#3")


@pytest.mark.parametrize("name", ["scenes", "digits", "photos"])
def test_a_page_of_small_pictures_is_light(name: str) -> None:
    data = load_images(name)
    count = min(PAGE_SIZE, len(data))
    rows = [ExampleRow(i, "", None, "umbrella", "", 0, "umbrella", 0.973, right=True) for i in range(count)]
    cells = [grid_cell(row, thumbnail_url(data[row.index].pixels, SIDE, QUALITY)) for row in rows]
    assert 1000 * count / PAGE_SIZE < len(json.dumps(cells)) * PAGE_SIZE / count < 100_000
