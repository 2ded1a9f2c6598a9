"""Which of a model's classes a data set's class is."""

from __future__ import annotations

import pytest

from engine.data.labels import match_classes


@pytest.mark.parametrize(
    ("names", "labels", "expected"),
    [
        (["negative", "positive"], ["negative", "positive"], (0, 1)),
        (["Positive", "negative "], ["NEGATIVE", "POSITIVE"], (1, 0)),
        (["contradiction", "entailment"], ["entailment", "neutral", "contradiction"], (2, 0)),
    ],
)
def test_the_same_names_are_the_same_classes(names: list[str], labels: list[str], expected: tuple[int, ...]) -> None:
    match = match_classes(names, labels)
    assert (match.indices, match.note) == (expected, "")


@pytest.mark.parametrize(
    ("names", "labels"),
    [(["0", "1"], ["negative", "positive"]), (["negative", "positive"], ["LABEL_0", "LABEL_1", "LABEL_2"])],
)
def test_unnamed_classes_are_compared_by_their_number_and_that_is_said(names: list[str], labels: list[str]) -> None:
    match = match_classes(names, labels)
    assert match.indices == (0, 1)
    assert f"{names[0]} is {labels[0]}, {names[1]} is {labels[1]}." in match.note


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["good", "bad"], ["negative", "positive"]),
        (["1", "2"], ["negative", "positive"]),
        (["0", "1", "2"], ["negative", "positive"]),
        (["same", "other"], ["same", "SAME"]),
        ([], ["negative", "positive"]),
        (["same"], ["same", "SAME"]),
    ],
)
def test_other_classes_are_not_compared_and_both_are_named(names: list[str], labels: list[str]) -> None:
    match = match_classes(names, labels)
    assert match.indices is None
    assert labels[0] in match.note
    assert (", ".join(names) or "none") in match.note


@pytest.mark.parametrize(
    ("names", "labels", "of", "left_out"),
    [
        (["negative", "neutral", "positive"], ["positive", "negative"], (1, None, 0), "neutral"),
        (["ant", "Cat ", "bee"], ["dog", "cat"], (None, 1, None), "ant, bee"),
        (["0", "1", "2"], ["0", "1"], (0, 1, None), "2"),
    ],
)
def test_what_only_the_data_set_has_is_left_out_and_named(
    names: list[str], labels: list[str], of: tuple[int | None, ...], left_out: str
) -> None:
    match = match_classes(names, labels)
    assert match.indices == of
    assert match.note == (f"The model has no class {left_out}, so accuracy covers the other classes only.")


def test_many_classes_do_not_fill_the_page() -> None:
    note = match_classes([f"topic {i}" for i in range(500)], ["a", "b"]).note
    assert len(note) < 300
    assert "and 492 more" in note
