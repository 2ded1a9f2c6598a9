"""What is said of a picture: what becomes of it before the model sees it, in words that the pixels confirm."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from components.images.results import (
    CHANCE,
    describe_agreement,
    describe_name,
    describe_picture,
    describe_preprocessing,
    explain_agreement,
    true_patches,
    truth_answer,
    truth_table_html,
)
from components.inputs.datasets import ChosenPicture, open_pictures, read_picture
from components.inputs.picture_choice import PictureFocus
from engine.metrics.plausibility import expected_truth_scores, truth_scores
from engine.request import Example, Picture
from engine.result import Explanation
from engine.vision.picture import ModelView, Preprocessing
from tests.unit.components.making import explanation
from tests.unit.vision.tiny_vit import save_vit


def view(resize: tuple[int, ...], crop: tuple[int, int] | None, size: tuple[int, int]) -> ModelView:
    plain = Preprocessing(resize, crop, 2, 1 / 255, (0.5,) * 3, (0.5,) * 3)
    return ModelView("m", "r", plain, size, (8, 8), (8, 8), 1, ("a", "b"))


@pytest.mark.parametrize(
    ("seeing", "size", "words"),
    [
        (view((64, 64), None, (64, 64)), (64, 64), ""),
        (view((64, 64), None, (64, 64)), (128, 128), "128 × 128 pixels, resized to 64 × 64."),
        (view((64, 64), None, (64, 64)), (32, 32), "32 × 32 pixels, resized to 64 × 64."),
        (view((64, 64), None, (64, 64)), (480, 640), "640 × 480 pixels, resized to 64 × 64 (aspect ratio not kept)."),
        (view((64,), (64, 64), (64, 64)), (480, 1280),
         "1,280 × 480 pixels, resized to 170 × 64 and cropped to the central 64 × 64."),
        (view((), (64, 64), (64, 64)), (100, 64), "64 × 100 pixels, cropped to the central 64 × 64."),
        (view((), (64, 64), (64, 64)), (10, 20),
         "20 × 10 pixels, padded with black to 64 × 64."),
        (view((26, 26), (24, 32), (24, 32)), (32, 32),
         "32 × 32 pixels, resized to 26 × 26, cropped to the central 26 × 24 and padded with black to 32 × 24."),
    ],
)  # fmt: skip
def test_it_is_said_what_the_model_sees(seeing: ModelView, size: tuple[int, int], words: str) -> None:
    assert describe_preprocessing(seeing, size) == words
    white = np.full((*size, 3), 255, dtype=np.uint8)
    seen = seeing.transform(white)
    assert seen.shape == (*seeing.size, 3)
    assert ("black" in words) == bool((seen == 0).any())


def test_name_label_and_what_the_model_makes_of_them_are_lines_of_their_own() -> None:
    opened = open_pictures("scenes")
    assert describe_picture(PictureFocus("scenes-vit", chosen=read_picture(opened, 0)), opened) == (
        "Validation 0: car.",
    )
    of_digits = describe_picture(PictureFocus("digits-vit", chosen=read_picture(opened, 0)), opened)
    assert of_digits[0] == "Validation 0: car."
    assert "so accuracy cannot be computed" in of_digits[1]
    assert of_digits[2] == "64 × 64 pixels, resized to 32 × 32."
    assert describe_picture(PictureFocus("scenes-vit"), opened) == ()


def test_the_name_of_a_file_stays_as_it_is_written() -> None:
    assert (
        describe_name(PictureFocus("m", chosen=ChosenPicture(None, name="set/cat/0.png")), "cat")
        == "set/cat/0.png: cat."
    )
    assert describe_name(PictureFocus("m", index=3), "") == "Example 3."


def test_an_own_picture_has_a_name_and_no_label() -> None:
    own = ChosenPicture(Picture(np.zeros((64, 64, 3), dtype=np.uint8)), name="your picture")
    focus = PictureFocus("scenes-vit", picture_sha="a" * 64, chosen=own)
    assert describe_picture(focus, open_pictures("scenes")) == ("Your picture.",)


SCORES = np.array([[0.9, -1.0, 0.4], [0.8, 0.1, 0.7]])
"""Ranks: 1 6 4 / 2 5 3."""


def on(scores: np.ndarray) -> Explanation:
    """A map of a picture, with a token a patch."""
    made = explanation(Example(" ".join("abcdef"[: scores.size])), scores.ravel().tolist())
    return dataclasses.replace(made, grid=scores.shape)


HIT = "Pointing game hit: the highest-scored patch is on the object"
MISSED = "Pointing game missed: the highest-scored patch is elsewhere"


def grid(*rows: str) -> np.ndarray:
    return np.array([[mark == "x" for mark in row] for row in rows])


@pytest.mark.parametrize(
    ("truth", "overlap", "game"),
    [
        (("x..", ".xx"), "Overlap 66.7%, chance 50.0% (2 of 3 patches)", HIT),
        (("x..", "x.x"), "Overlap 100.0%, chance 50.0% (3 of 3 patches)", HIT),
        ((".x.", "..."), "Overlap 0.0%, chance 16.7% (0 of 1 patch)", MISSED),
    ],
)
def test_lines_say_what_a_map_finds_beside_chance(truth: tuple[str, str], overlap: str, game: str) -> None:
    assert describe_agreement(on(SCORES), grid(*truth), 0) == [overlap, game]


def test_the_object_is_described_once_for_all_maps() -> None:
    many, one = (explain_agreement(expected_truth_scores(64, size)) for size in (14, 1))
    assert many.startswith("14 of 64 patches show the object: the outline covers at least half of each. ")
    assert one.startswith("1 of 64 patches shows the object: the outline covers at least half of it, or more of it ")


def test_where_nothing_can_be_measured_there_are_words_and_no_numbers() -> None:
    made = on(SCORES)
    assert describe_agreement(made, None, 0) == []
    assert describe_agreement(made, grid("...", "..."), 0) == [
        "Not compared with the object: no patch is true, so there is nothing to find."
    ]
    assert describe_agreement(made, grid("xxx", "xxx"), 0) == [
        "Not compared with the object: every patch is true, so any map finds them."
    ]


def test_a_map_of_equal_scores_is_said_to_be_judged_by_chance() -> None:
    said = describe_agreement(on(np.ones((2, 3))), grid("x..", "..."), 4)
    assert said[2:] == ["All scores are equal, so this is the level of chance."]
    assert said == describe_agreement(on(np.ones((2, 3))), grid("x..", "..."), 4)


def cells(table: str) -> list[list[str]]:
    """The words of a table, row by row."""
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


def test_the_table_has_chance_first_and_then_the_best() -> None:
    truth = grid("x..", ".xx")
    rows = {name: truth_scores(sign * SCORES, truth) for name, sign in (("Worse", -1), ("Better", 1))}
    assert cells(truth_table_html(rows, expected_truth_scores(6, 3))) == [
        ["method", "overlap", "pointing game", "coverage: patches needed, of 6", "mean rank of the object"],
        [CHANCE, "50.0%", "50.0%", "5.2", "3.5"],
        ["Better", "66.7%", "hit", "5.0", "3.0"],
        ["Worse", "33.3%", "missed", "6.0", "4.0"],
    ]


def test_the_answer_names_the_methods_with_the_highest_overlap_beside_chance() -> None:
    rows = {name: truth_scores(sign * SCORES, grid("x..", ".xx")) for name, sign in (("A", -1), ("B", 1), ("C", 1))}
    rows["Equal"] = truth_scores(np.ones((2, 3)), grid("x..", ".xx"))
    chance = expected_truth_scores(6, 3)
    assert truth_answer(rows, chance, ["Equal"]) == (
        "B and C find the most of it: 2 of 3 patches (chance 50.0%). The highest-scored patch shows it for 2 of 3 "
        "methods (chance 50.0%). One picture cannot rank methods; Evaluate compares them over many."
    )
    assert truth_answer(rows, chance, ["A", "C", "Equal"]).startswith("B finds the most of it: 2 of 3")
    assert truth_answer(rows, chance, list(rows)).startswith("No map tells patches apart")
    missed = {"A": truth_scores(SCORES, grid(".x.", "..."))}
    assert truth_answer(missed, expected_truth_scores(6, 1), []).startswith(
        "No map finds it: 0 of 1 patches (chance 16.7%)"
    )


def test_names_in_the_table_are_escaped() -> None:
    truth = grid("x..", "...")
    assert "<img" not in truth_table_html({"<img src=x>": truth_scores(SCORES, truth)}, expected_truth_scores(6, 1))


def test_true_are_the_patches_of_the_picture_as_the_model_sees_it(tmp_path: Path) -> None:
    model = str(save_vit(tmp_path / "vit", image=24, patch=8))
    mask = np.zeros((48, 48), dtype=bool)
    mask[:16, 16:] = True
    found = true_patches(model, mask)
    assert found is not None
    assert found.tolist() == grid(".xx", "...", "...").tolist()
    assert true_patches(model, None) is None
