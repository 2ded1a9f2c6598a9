"""One example's maps by stage: their order, their numbers, their scale; verdicts; foreign texts are escaped."""

from __future__ import annotations

import dataclasses
import re
from unittest.mock import Mock

import numpy as np
import pytest

from components.experiment.runs import CachedResults
from components.randomization.page import left_out, verdict_words, verdicts_html
from components.randomization.stage_maps import (
    MapGrid,
    MapLikeness,
    grid_html,
    likeness_of,
    prediction_words,
    stage_title,
)
from components.randomization.view import DrawnModel
from engine.randomization.chunks import StageMaps
from engine.randomization.curves import KINDS, Verdict, changes_of, order_examples, verdicts_of
from engine.registry import explainer
from engine.request import Example
from engine.result import Prediction
from tests.unit.components.making import explanation
from tests.unit.components.randomized import FLAT, STAGES, found

EVIL = "<img> good"
METHOD = explainer("gradient_x_input", "text")
LABELS = ("negative", "positive")


def said(positive: float) -> Prediction:
    shares = (1 - positive, positive)
    return Prediction(LABELS, tuple(np.log(shares)), shares)


def shown(*scales: float, text: str = "not bad") -> list[StageMaps]:
    """The model as it is, then the cascade; each map is that many times the first."""
    made = [explanation(Example(text), [scale, -2 * scale], pieces=r"\S+") for scale in scales]
    places = (None, *STAGES[:2])
    return [StageMaps(stage, said(0.9 if stage is None else 0.2), {METHOD.id: one})
            for stage, one in zip(places, made, strict=False)]  # fmt: skip


def grid(listed: list[StageMaps], shared: bool = False, text: str = "not bad") -> str:
    numbers = {(1, METHOD.id): MapLikeness(0.5), (2, METHOD.id): MapLikeness(None, FLAT)}
    return grid_html(MapGrid(listed, [METHOD], Example(text), numbers, "spearman", shared))


def test_a_column_a_stage_the_original_first_each_with_its_number() -> None:
    html = grid(shown(1.0, 0.5, 0.25))
    assert re.findall(r'<th scope="col"><p class="xg-title">(.*?)</p>', html) == [
        "Original", "Block 2 randomized", "Blocks 1 to 2 randomized",
    ]  # fmt: skip
    assert re.findall(r"<b>(ρ [^<]*|constant)</b>", html) == ["ρ +0.50", "constant"]
    assert f'title="{FLAT}"' in html
    assert html.count("another class") == 2
    assert html.count("negative; positive 20.0") == 2


@pytest.mark.parametrize(("scales", "few"), [((1.0, 0.5), True), ((1.0, 0.5, 0.25), False)])
def test_two_maps_share_the_width_and_three_do_not(scales: tuple[float, ...], few: bool) -> None:
    assert ("xg-few" in grid(shown(*scales))) is few


@pytest.mark.parametrize(("shared", "ends"), [(False, ["2", "1", "0.5"]), (True, ["2", "2", "2"])])
def test_maps_are_each_on_their_own_scale_or_on_one(shared: bool, ends: list[str]) -> None:
    assert re.findall(r"to ±([\d.]+)", grid(shown(1.0, 0.5, 0.25), shared)) == ends


def test_a_stage_without_a_map_says_so() -> None:
    listed = [*shown(1.0), StageMaps(STAGES[0], said(0.2), {})]
    assert "no map" in grid(listed)


def test_texts_labels_and_titles_are_escaped() -> None:
    listed = shown(1.0, 1.0, text=EVIL)
    evil = dataclasses.replace(listed[1], prediction=Prediction(("<b>", "x"), (1.0, 0.0), (0.7, 0.3)))
    html = grid([listed[0], evil], text=EVIL)
    assert "<img" not in html
    assert "&lt;b&gt;" in html
    told = verdicts_html([("<em>", Verdict("gradient", "high", False, 0, "<u>"))], "text", "<s>")
    assert not {"s", "u", "em"} & set(re.findall(r"<(\w+)", told))


def test_a_stage_and_an_answer_in_words() -> None:
    assert stage_title(None) == "Original"
    assert stage_title(STAGES[3]) == "Block 1 randomized"
    assert prediction_words(said(0.9), 1) == "positive 90.0%"
    assert prediction_words(Prediction(("score",), (1.5,), (1.5,), regression=True), 0) == "score +1.5"


def test_the_number_of_a_map_is_that_of_its_example_stage_and_seed() -> None:
    known = found()
    listed = [StageMaps(stage, said(0.5), {}) for stage in (None, STAGES[2], STAGES[3])]
    made = likeness_of(known, listed, 1, 1, "spearman")
    assert made[1, "gradient_x_input"].value == pytest.approx(0.8 - 0.4 + 0.1 - 0.1)
    assert made[2, "gradient_x_input"].value == pytest.approx(0.8 - 0.6 + 0.1 - 0.1)
    assert made[1, "gradient"] == MapLikeness(None, FLAT)
    assert (0, "gradient_x_input") not in made


def test_examples_by_how_much_they_change() -> None:
    known = found()
    changes = changes_of(known, "gradient_x_input", "cascading", 0, "spearman")
    assert changes.tolist() == pytest.approx([0.75, 0.65, 0.55])
    assert changes_of(known, "gradient_x_input", "cascading", 2, "spearman").tolist() == pytest.approx(
        [0.65, 0.55, 0.45]
    )
    assert order_examples(known, changes, "index") == [1, 0, 2]
    assert order_examples(known, changes, "most") == [2, 1, 0]
    assert order_examples(known, changes, "least") == [0, 1, 2]
    none = changes_of(known, "gradient", "cascading", 0, "spearman")
    assert np.isnan(none).all()
    assert order_examples(known, np.array([np.nan, 0.2, 0.1]), "least") == [1, 2, 0]


def test_every_verdict_has_words_a_mark_and_its_reason() -> None:
    judged = verdicts_of(found())
    html = verdicts_html([("Plain gradient", one) for one in judged], "text", "Verdicts on model-a")
    assert [one.kind for one in judged] == ["unsure", "no_order", "baseline"]
    assert "Plain gradient" in html
    assert FLAT in html
    assert all(verdict_words(Verdict("gradient", kind, None, 0, ""), "text") for kind in KINDS)
    assert (
        verdict_words(Verdict("lime", "falls", None, 0, ""), "text") == "falls to zero or below, check does not apply"
    )
    assert "✗" in verdicts_html([("gradient", Verdict("gradient", "high", False, 0, "why"))], "text", "m")


def test_what_is_left_out_is_counted_with_its_reason_and_methods() -> None:
    known = found(failed={7: "It is too long.", 8: "It is too long."})
    assert left_out([DrawnModel(Mock(spec=CachedResults), known, "model-a")], {"gradient": "Plain gradient"}) == [
        ("It is too long.", "2 examples on model-a", "all methods"),
        (FLAT, "24 maps on model-a", "Plain gradient"),
    ]
