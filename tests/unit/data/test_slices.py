"""Slices of data sets: their names, and the examples that these give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.data.registry import parse_names
from engine.data.slices import format_rows, parse_rows, slice_name
from engine.errors import UsageError


def test_the_name_says_which_examples_it_has() -> None:
    assert slice_name("reviews", [9, 3, 8, 7, 3], "hard") == "reviews:slice=hard,rows=3+7-9"
    assert slice_name("reviews-generated:seed=7", [0]) == "reviews-generated:seed=7,rows=0"
    assert slice_name("reviews:slice=hard,rows=3+7-9", [0, 2], "harder") == "reviews:slice=harder,rows=3+8"
    assert parse_names("reviews:slice=hard,rows=3+7-9,nli") == ["reviews:slice=hard,rows=3+7-9", "nli"]


@given(some.sets(some.integers(0, 40), min_size=1))
def test_rows_read_back(rows: set[int]) -> None:
    assert parse_rows(format_rows(rows)) == tuple(sorted(rows))


def test_a_slice_has_its_examples_and_a_revision_of_its_own() -> None:
    whole, part = load("reviews"), load("reviews:slice=hard,rows=3+7-9")
    assert list(part.examples) == [whole[index] for index in (3, 7, 8, 9)]
    assert (part.id, part.title) == ("reviews:slice=hard,rows=3+7-9", f"{whole.title}: hard")
    assert part.revision not in (whole.revision, load("reviews:rows=3+7-8").revision)
    assert part.revision == load("reviews:rows=3+7+8+9").revision, "the name is no content"
    assert list(load("reviews:rows=3+7-9", limit=2).examples) == [whole[3], whole[7]]
    assert len(load("reviews-generated:count=20,seed=5,rows=19")) == 1


def test_a_slice_of_pictures_reads_its_own() -> None:
    whole, part = load_images("digits"), load_images("digits:rows=2+40")
    assert part.labels == (whole.labels[2], whole.labels[40])
    assert np.array_equal(part[1].pixels, whole[40].pixels)
    with pytest.raises(UsageError, match="index: must be 0 to 1"):
        part[2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reviews:rows=320", r"rows: must be numbers of examples from 0 to 319, got 320"),
        ("reviews:rows=5-3", r"rows: must be numbers of examples such as 3\+7-9, got '5-3'"),
        ("reviews:rows=0-99999999", r"rows: must be numbers"),
        ("reviews:rows=a", r"rows: must be numbers"),
        ("reviews:slice=hard", r"slice: must be beside rows"),
        ("reviews:slice=<b>,rows=1", r"slice: must be up to 40 letters"),
    ],
)
def test_what_is_no_slice_is_said(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(name)


def test_an_empty_slice_has_no_name() -> None:
    with pytest.raises(UsageError, match="rows: must be at least one example"):
        slice_name("reviews", [])
