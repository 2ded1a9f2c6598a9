"""Pictures are evaluated as texts are: patches against masks, what cannot be read, what has no mask."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import engine.experiments.sample as sample
from engine.data.image_datasets import load_images
from engine.errors import ExegesisError
from engine.evaluation.experiment import evaluate
from engine.evaluation.result import Evaluation
from engine.explain import explain
from engine.metrics.plausibility import UNMARKED_TRUTH, skip_reason, truth_scores
from engine.request import Picture, Request
from engine.vision.picture import read_view
from tests.oracles.pictures import curve_one_by_one
from tests.unit.vision.tiny_vit import SIDE, plain_vit, values_of, vit, vit_folder

pytestmark = pytest.mark.usefixtures("home")

METHODS = ("gradient_x_input", "random")
SCENES = "scenes:count=6"


def evaluated(dataset: str = SCENES, **more: object) -> Evaluation:
    return evaluate([str(vit_folder())], dataset, METHODS, examples=3, dtype="float64", **more)


def of(found: Evaluation, metric: str, example: int) -> list[float]:
    wanted = (example, METHODS[0], metric)
    return [row.value for row in found.rows if (row.example, row.of.method, row.of.metric) == wanted]


def test_patches_are_held_against_the_mask() -> None:
    found = evaluated()
    for one in found.facts:
        given = load_images(SCENES)[one.example]
        made = explain(Request(str(vit_folder()), METHODS[0], Picture(given.pixels), dtype="float64"))
        truth = read_view(str(vit_folder())).patches(given.mask).ravel()
        assert one.length == len(truth) == 12
        if skip_reason(truth) is None:
            expected = truth_scores(made.scores[made.features], truth)
            assert of(found, "gt_overlap", one.example) == [expected.exact]
            assert of(found, "mean_rank", one.example) == [expected.mean_rank]
    assert len(found.facts) == 3


def test_patches_are_removed_as_one_picture_at_a_time() -> None:
    found = evaluated(removal="zero")
    for one in found.facts:
        picture = Picture(load_images(SCENES)[one.example].pixels)
        made = explain(Request(str(vit_folder()), METHODS[0], picture, dtype="float64"))
        scores, target = made.scores[made.features], made.provenance.target
        curve = curve_one_by_one(plain_vit(), values_of(vit(), picture)[0], scores, "zero", SIDE, target, False)
        # Without 5%, which is for the means.
        np.testing.assert_allclose(np.delete(of(found, "without_top", one.example), 1), curve, atol=1e-6)


def test_without_masks_there_is_no_truth_and_faithfulness_goes_on() -> None:
    found = evaluated("digits")
    assert {score.metric for score in found.scores} >= {"comprehensiveness", "complexity", "rank_spearman"}
    assert not {score.metric for score in found.scores} & {"gt_overlap", "plausibility_auc"}
    named = evaluated("digits", metrics=["gt_overlap"])
    assert {score.method: score.skipped for score in named.scores} == {m: {UNMARKED_TRUTH: 3} for m in METHODS}


def test_a_picture_that_cannot_be_read_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sample.load_source

    def load_source(*given: object, **how: object) -> object:
        found = real(*given, **how)  # type: ignore[arg-type]

        def read(index: int) -> object:
            if index == 0:
                raise ExegesisError("picture 0: is no\npicture.")
            return found.read(index)

        return dataclasses.replace(found, count=3, read=read)

    monkeypatch.setattr(sample, "load_source", load_source)
    found = evaluated(metrics=["comprehensiveness", "complexity", "rank_spearman", "sensitivity"], samples=1)
    assert {(score.metric, score.n) for score in found.scores} == {
        ("comprehensiveness", 2), ("complexity", 2), ("rank_spearman", 2), ("sensitivity", 2),
    }  # fmt: skip
    assert all(score.skipped == {"picture 0: is no picture.": 1} for score in found.scores)


def test_a_data_set_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match="unknown name"):
        evaluated(str(tmp_path / "nowhere"))
