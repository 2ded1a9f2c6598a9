"""Slices of data sets: their names, and the examples that these give."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from PIL import Image

from engine.data.datasets import load
from engine.data.image_datasets import is_images, load_images
from engine.data.registry import parse_names
from engine.data.slices import format_rows, join_slice, parse_rows, slice_name, split_slice, whole_name
from engine.data.sources import load_source
from engine.errors import ExegesisError, UsageError


def test_the_name_says_which_examples_it_has() -> None:
    assert slice_name("reviews", [9, 3, 8, 7, 3], "hard") == "reviews:slice=hard,rows=3+7-9"
    assert slice_name("reviews-generated:seed=7", [0]) == "reviews-generated:seed=7,rows=0"
    assert slice_name("reviews:slice=hard,rows=3+7-9", [0, 2], "harder") == "reviews:slice=harder,rows=3+8"
    assert parse_names("reviews:slice=hard,rows=3+7-9,nli") == ["reviews:slice=hard,rows=3+7-9", "nli"]


NAMES = [
    "reviews",
    "reviews-generated:seed=7",
    "/own/a:b=c/d.csv",
    "hub:me/set@abc",
    "data/own,2.jsonl",
    "c:d",
    "a=b.csv",
]


@pytest.mark.parametrize("whole", NAMES)
def test_a_name_of_any_data_set_is_split_and_joined(whole: str) -> None:
    name = slice_name(whole, [4, 5], "hard", "5f2a61c09b3e" + "0" * 52)
    assert name == join_slice(*split_slice(name))
    assert name.endswith("slice=hard,rows=4-5,digest=5f2a61c09b3e")
    assert (whole_name(name), split_slice(whole)) == (whole, (whole, None))
    part = slice_name(name, [1], revision="another")
    assert part == name.replace("slice=hard,rows=4-5", "rows=5"), "numbers and digest are of the whole"


@given(some.sets(some.integers(0, 40), min_size=1))
def test_rows_read_back(rows: set[int]) -> None:
    assert parse_rows(format_rows(rows)) == tuple(sorted(rows))


def test_a_slice_has_its_examples_and_a_revision_of_its_own() -> None:
    whole, part = load("reviews"), load("reviews:slice=hard,rows=3+7-9")
    assert list(part.examples) == [whole[index] for index in (3, 7, 8, 9)]
    assert (part.id, part.title) == ("reviews:slice=hard,rows=3+7-9", f"{whole.title}: hard")
    assert load("reviews:rows=3").title == f"{whole.title}: 1 example"
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
        ("reviews:rows=0-99999999", r"rows: must be at most 1,000,000 examples"),
        (
            f"reviews:rows={'+'.join(f'{at}000000-{at}999999' for at in range(1, 9))}",
            r"rows: must be at most 1,000,000",
        ),
        ("reviews:rows=a", r"rows: must be numbers"),
        ("reviews:slice=hard", r"slice: must be beside rows"),
        ("reviews:slice=<b>,rows=1", r"slice: must be up to 40 letters"),
        ("reviews:rows=1,digest=../..", r"digest: must be 8 to 64 hexadecimal digits"),
    ],
)
def test_what_is_no_slice_is_said(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(name)


def written(folder: Path, texts: list[str]) -> Path:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": i % 2}) + "\n" for i, text in enumerate(texts)))
    return file


def test_a_slice_of_a_file_notices_that_the_file_has_changed(tmp_path: Path) -> None:
    file = written(tmp_path, ["a", "b", "c", "d"])
    name = slice_name(str(file), [1, 3], "odd", load(file).revision)
    part = load(name)
    assert [one.text for one in part.examples] == ["b", "d"]
    assert (part.id, part.title, part.label_names) == (name, "own.jsonl: odd", ("0", "1"))
    assert load_source("text", name, tolerant=True).read(1).input == part[1].example
    written(tmp_path, ["a", "x", "c", "d"])
    with pytest.raises(ExegesisError, match=r"digest: own\.jsonl has changed since the slice was named, or its split"):
        load(name)
    assert [one.text for one in load(f"{file}:rows=1").examples] == ["x"], "without a digest nothing is checked"
    with pytest.raises(UsageError, match="there is no file"):
        load(f"{tmp_path}/gone.csv:rows=1")


def test_rows_of_a_file_with_invalid_lines_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("text,label\nfirst,0\n,1\nthird,1\nfourth,0\n")
    source = load_source("text", f"{file}:rows=1-2", tolerant=True)
    assert source.count == 2
    assert source.read(1).label == "1"
    with pytest.raises(ExegesisError, match="line 3: text: is empty"):
        source.read(0)
    with pytest.raises(ExegesisError, match="line 3: text: is empty"):
        load(f"{file}:rows=2")


def test_a_slice_of_a_zip_of_pictures(tmp_path: Path) -> None:
    file = tmp_path / "own.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for at in range(4):
            encoded = io.BytesIO()
            Image.new("RGB", (8, 8), (at, 0, 0)).save(encoded, "PNG")
            archive.writestr(f"{'ab'[at % 2]}/{at}.png", encoded.getvalue())
    whole = load_images(file)
    name = slice_name(str(file), [1, 2], revision=whole.revision)
    assert is_images(name)
    assert [int(one.pixels[0, 0, 0]) for one in load_images(name)] == [int(whole[at].pixels[0, 0, 0]) for at in (1, 2)]
    with pytest.raises(ExegesisError, match=r"digest: own\.zip has changed"):
        load_images(name.replace("digest=", "digest=0"))


def test_an_empty_slice_has_no_name() -> None:
    with pytest.raises(UsageError, match="rows: must be at least one example"):
        slice_name("reviews", [])
