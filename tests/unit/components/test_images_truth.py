"""A map beside the truth: what each line says, what stands in the table, words where there is nothing to measure."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from components.images.results import CHANCE, describe_agreement, explain_agreement, true_patches, truth_table_html
from engine.metrics.plausibility import expected_truth_scores, truth_scores
from engine.request import Example
from engine.result import Explanation
from tests.unit.components.making import explanation
from tests.unit.vision.tiny_vit import save_vit

SCORES = np.array([[0.9, -1.0, 0.4], [0.8, 0.1, 0.7]])
"""Ranks: 1 6 4 / 2 5 3."""


def on(scores: np.ndarray) -> Explanation:
    """A map of a picture, with a token a patch."""
    made = explanation(Example(" ".join("abcdef"[: scores.size])), scores.ravel().tolist())
    return dataclasses.replace(made, grid=scores.shape)


def grid(*rows: str) -> np.ndarray:
    return np.array([[mark == "x" for mark in row] for row in rows])


@pytest.mark.parametrize(
    ("truth", "lines"),
    [
        (("x..", ".xx"), ["Overlap 2 of 3, pointing game hit", "All true within the top 5 of 6"]),
        (("x..", "x.x"), ["Overlap 3 of 3, pointing game hit", "All true within the top 3 of 6"]),
        ((".x.", "..."), ["Overlap 0 of 1, pointing game missed", "All true within the top 6 of 6"]),
    ],
)
def test_lines_say_what_a_map_finds(truth: tuple[str, str], lines: list[str]) -> None:
    assert describe_agreement(on(SCORES), grid(*truth), 0) == lines


def test_what_chance_gets_is_said_once_for_all_maps() -> None:
    said = explain_agreement(expected_truth_scores(64, 14))
    assert said.startswith("Of 64 patches 14 are true: ")
    assert explain_agreement(expected_truth_scores(64, 1)).startswith("Of 64 patches 1 is true: ")
    assert "overlap 21.9\u00a0%, a hit in 21.9\u00a0%, all true within the top 60.7; the best is 14." in said


def test_where_nothing_can_be_measured_there_are_words_and_no_numbers() -> None:
    made = on(SCORES)
    assert describe_agreement(made, None, 0) == []
    assert describe_agreement(made, grid("...", "..."), 0) == [
        "Not held against the truth: no patch is true, so there is nothing to find."
    ]
    assert describe_agreement(made, grid("xxx", "xxx"), 0) == [
        "Not held against the truth: every patch is true, so any map finds them."
    ]


def test_a_map_of_equal_scores_is_said_to_be_judged_by_chance() -> None:
    said = describe_agreement(on(np.ones((2, 3))), grid("x..", "..."), 4)
    assert said[2:] == ["All scores are equal, so this is chance."]
    assert said == describe_agreement(on(np.ones((2, 3))), grid("x..", "..."), 4)


def cells(table: str) -> list[list[str]]:
    """The words of a table, row by row."""
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


def test_the_table_has_chance_first_and_then_the_best() -> None:
    truth = grid("x..", ".xx")
    rows = {name: truth_scores(sign * SCORES, truth) for name, sign in (("Worse", -1), ("Better", 1))}
    assert cells(truth_table_html(rows, expected_truth_scores(6, 3))) == [
        ["method", "overlap", "pointing game", "all true within the top, of 6", "mean of their ranks"],
        [CHANCE, "50.0\u00a0%", "50.0\u00a0%", "5.25", "3.5"],
        ["Better", "66.7\u00a0%", "hit", "5", "3"],
        ["Worse", "33.3\u00a0%", "missed", "6", "4"],
    ]


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
