"""Charts of a randomization: their lines, bands, ends and numbers, by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.charts.frame import NOTHING, ChartFrame
from components.randomization.charts import (
    LEAST,
    likeness_chart,
    likeness_table,
    numbers_table,
    prediction_chart,
    prediction_table,
    skipped_words,
    span_of,
    stage_names,
)
from engine.randomization.curves import Curve, curves_of
from engine.randomization.plan import MODES
from tests.unit.components.randomized import FLAT, PLAN, found

TITLES = {"gradient_x_input": "Input x gradient", "gradient": "Gradient", "random": "Random"}
FRAME = ChartFrame(TITLES)


def own(mode: str, metric: str, *methods: str) -> list[Curve]:
    curves = (one for one in curves_of(found()) if one.mode == mode and one.metric == metric)
    return [one for one in curves if not methods or one.method in methods]


@pytest.mark.parametrize("mode", MODES)
def test_a_line_begins_at_the_original_and_goes_block_by_block(mode: str) -> None:
    [curve] = own(mode, "spearman", "gradient_x_input")
    assert stage_names(curve) == ["original", "2", "1"]
    data = likeness_table([curve], FRAME)
    first = MODES.index(mode) * 2
    means = [1.0, *(0.8 - 0.2 * stage + 0.05 - 0.1 for stage in (first, first + 1))]
    assert data["value"].tolist() == pytest.approx(means)
    assert data["at"].tolist() == data["percent"].tolist() == [0, 1, 2]
    assert set(data["slice"]) == {mode}
    assert data["examples"].tolist() == ["", "3", "3"]
    assert np.isnan(data["low"].tolist()[0])
    assert (data["low"][1:] < data["value"][1:]).all()
    assert data["seeds"][1] == ", ".join(f"{means[1] + change:.2f}" for change in (-0.05, 0.05))


def test_the_chart_has_bands_and_an_axis_from_below_zero_to_one() -> None:
    curves = own("cascading", "spearman")
    spec = json.loads(likeness_chart(curves, FRAME, PLAN.methods_with_baselines, span_of(curves)).to_json())
    marks = [layer["mark"]["type"] for layer in spec["layer"]]
    assert marks == ["rule", "area", "line", "point"]
    line = spec["layer"][2]["encoding"]
    assert line["y"]["scale"]["domain"] == [LEAST, 1.0]
    assert '["original", "2", "1"]' in line["x"]["axis"]["labelExpr"]


def test_the_axis_reaches_as_low_as_an_interval_and_a_share_begins_at_zero() -> None:
    values = found().likeness - 0.9
    lower = [one for one in curves_of(found(likeness=values)) if one.method and one.metric == "spearman"]
    ends = [point.interval[0] for one in lower for point in one.points if point.interval]
    assert span_of(lower) == (min(ends), 1.0)
    assert min(ends) < LEAST
    assert span_of(own("cascading", "top_k", "random")) == (0.0, 1.0)


def test_a_method_without_an_order_has_no_line_and_its_maps_are_counted() -> None:
    [flat] = own("cascading", "spearman", "gradient")
    assert likeness_table([flat], FRAME).empty
    assert skipped_words(flat.points[0]) == f"6 maps: {FLAT}"
    assert NOTHING in likeness_chart([flat], FRAME, PLAN.methods_with_baselines, (0.0, 1.0)).to_json()
    table = numbers_table([flat], TITLES)
    assert table["Maps without a value"].tolist() == [6, 6]
    assert table["Mean"].isna().all()


def test_the_prediction_is_told_beside() -> None:
    curves = [*own("cascading", "probability"), *own("cascading", "class_changed")]
    data = prediction_table(curves, regression=False)
    assert data["value"].tolist() == pytest.approx([0.8, 0.6, 0.6, 0.0, 0.0, 1.0])
    assert set(data["name"]) == {"Probability of the original class", "Share with another class"}
    spec = prediction_chart(curves, FRAME, regression=False).to_dict()
    assert spec["layer"][-1]["encoding"]["y"]["scale"]["domain"] == [0, 1]


def test_a_regression_head_has_a_score_whose_axis_is_its_own() -> None:
    known = found(regression=True, before=np.array([2.0, 3.0, 4.0]), after=found().after * 5)
    [curve] = [one for one in curves_of(known) if not one.method and one.mode == "cascading"]
    assert prediction_table([curve], regression=True)["value"].tolist() == pytest.approx([3.0, 3.0, 3.0])
    spec = prediction_chart([curve], FRAME, regression=True).to_dict()
    assert spec["layer"][-1]["encoding"]["y"]["scale"]["domain"] == [3.0, 3.0]
    assert spec["layer"][-1]["encoding"]["y"]["title"][0] == "Score"


def test_the_table_names_what_is_random() -> None:
    table = numbers_table(own("cascading", "spearman", "gradient_x_input"), TITLES)
    assert table["Randomized"].tolist() == ["block 2", "blocks 1 to 2"]
    assert table["Line"].unique().tolist() == ["Input x gradient"]
