"""Bars of an evaluation's charts: groups in order, from 0, with intervals, edges that tell methods apart."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from components.charts.frame import DASH_DOT, DASHED, DOTTED, SOLID, ChartFrame
from components.charts.scores import CHANCE, FULL, axis_title, missing_values_text, range_from_zero
from components.evaluate.charts import ArchitectureChart, SliceChart, unequal_sizes_text
from engine.metrics.results import EQUAL, ONE
from engine.models.summary import ModelSize
from tests.unit.evaluation.by_hand import by_hand, fact

FRAME = ChartFrame({"lime": "LIME", "random": "Random"})
BY_LABEL = SliceChart("complexity", "label", "m")
SIZES = {"t5": ModelSize(2_000, 4, 4, "T5"), "bert": ModelSize(1_000, 4, 4, "BERT")}
MODELS = by_hand(
    {
        (model, method, "sufficiency"): [value, value + 0.2]
        for model, shift in (("t5", 0.0), ("bert", -0.3))
        for method, value in (("lime", 0.1 + shift), ("random", 0.3 + shift))
    }
)
SLICED = by_hand(
    {("m", "lime", "complexity"): [1, 2, 6, "flat"], ("m", "random", "complexity"): [3, 3, 3, 3]},
    [fact(place, label) for place, label in enumerate(("good", "bad", "bad", "bad"))],
)

LOST = by_hand({("m", "lime", "complexity"): [1, "flat"]}, [fact(0, "good"), fact(1, "bad")])


def layer(made: dict[str, Any], mark: str) -> dict[str, Any]:
    return next(one for one in made["layer"] if one["mark"]["type"] == mark)


def data(made: dict[str, Any], mark: str) -> pd.DataFrame:
    return pd.DataFrame(made["datasets"][layer(made, mark).get("data", made.get("data", {}))["name"]])


def test_a_group_for_each_model_by_architecture() -> None:
    made = ArchitectureChart("sufficiency", SIZES).chart(MODELS, FRAME).to_dict()
    bars = layer(made, "bar")["encoding"]
    assert bars["y"]["scale"]["domain"] == ["BERT, 1,000 parameters: bert", "T5, 2,000 parameters: t5"]
    assert bars["yOffset"]["sort"] == ["LIME", "Random"]
    assert data(made, "bar")["value"].tolist() == pytest.approx([-0.1, 0.1, 0.2, 0.4])
    low, high = bars["x"]["scale"]["domain"]
    assert low <= -0.2 < 0 < 0.5 <= high, "all intervals, and 0"
    assert layer(made, "text")["encoding"]["text"]["field"] == "group"
    assert (
        ArchitectureChart("sufficiency", SIZES).table(MODELS, FRAME)["Architecture"].tolist()
        == ["BERT"] * 2 + ["T5"] * 2
    )


def test_models_of_unlike_size_are_told() -> None:
    assert "has 2.0 times as many parameters as the smallest" in unequal_sizes_text(SIZES)
    assert (
        unequal_sizes_text({"bert": ModelSize(1_000, 4, 4, "BERT"), "t5": ModelSize(1_400, 4, 4, "T5")})
        == unequal_sizes_text({})
        == ""
    )


def test_bars_start_at_nothing() -> None:
    scores = [one.score for one in BY_LABEL.scores(SLICED, FRAME)]
    assert range_from_zero(scores, FRAME)[0] == 0
    assert range_from_zero(scores, ChartFrame({}, value_range=(2, 4))) == (0, 4)
    assert range_from_zero(scores, ChartFrame({}, value_range=(-4, -2))) == (-4, 0)


def test_a_group_for_each_slice_with_its_number_of_examples() -> None:
    made = BY_LABEL.chart(SLICED, FRAME).to_dict()
    assert list(dict.fromkeys(data(made, "bar")["group"])) == ["bad: 3 examples", "good: 1 example"]
    points = data(made, "bar").set_index(["slice", "method"])
    assert points.loc[("bad", "lime"), "value"] == 4
    assert points.loc[("bad", "lime"), "skipped"] == "1: flat"
    assert points.loc[("good", "lime"), "interval"] == ONE
    rules = data(made, "rule")
    assert list(zip(rules["slice"], rules["method"], strict=True)) == [("bad", "lime"), ("bad", "random")]
    table = BY_LABEL.table(SLICED, FRAME)
    assert set(table["Interval"].dropna()) == {EQUAL, ONE}
    assert table.loc[0].drop("Interval").to_dict() == {
        "Slice": "bad", "Method": "LIME", "Model": "m", "Value": 4.0, "95% from": table.loc[0, "95% from"],
        "95% to": table.loc[0, "95% to"], "Examples": 2, "Without a value": 1, "Why": "1: flat",
    }  # fmt: skip


def test_a_method_without_a_value_in_one_slice_is_told_with_the_slice() -> None:
    table = BY_LABEL.table(LOST, FRAME)
    assert missing_values_text(table) == "Not drawn, because no example has a value: LIME on m, bad (1: flat)."
    bars = BY_LABEL.chart(LOST, FRAME).to_dict()
    assert data(bars, "bar")[["slice", "method"]].to_numpy().tolist() == [["good", "lime"]]


def test_each_slice_is_named_once_on_hovering_and_by_the_click() -> None:
    made = BY_LABEL.chart(SLICED, FRAME).to_dict()
    titles = [tip["title"] for tip in layer(made, "bar")["encoding"]["tooltip"]]
    assert titles.count("Slice") == 1
    assert made["params"][0]["select"]["fields"][-1] == "slice"


def test_bars_of_one_color_differ_in_their_edges_and_each_has_its_name() -> None:
    same = ("lime", "occlusion", "smat")
    found = by_hand({("t5", method, "complexity"): [1, 2] for method in same})
    made = ArchitectureChart("complexity", SIZES).chart(found, ChartFrame({})).to_dict()
    bars = layer(made, "bar")["encoding"]
    assert bars["color"]["scale"]["domain"] == [*same, "random"]
    assert bars["color"]["scale"]["range"] == [*["#0072b2"] * 3, "#6a7079"]
    assert bars["strokeDash"]["scale"]["range"] == [SOLID, DASHED, DASH_DOT, DOTTED]
    assert bars["opacity"]["scale"]["range"] == [*FULL, CHANCE]
    assert [bars[name]["legend"] for name in ("color", "strokeDash", "opacity")] == [None] * 3
    words = [one["encoding"] for one in made["layer"] if one["mark"]["type"] == "text"]
    [names] = [one for one in words if one["text"]["field"] == "name"]
    assert names["yOffset"] == bars["yOffset"] | {"bandPosition": 0.5}, "beside the middle of its bar"


def test_charts_grow_with_their_bars() -> None:
    one = SliceChart("complexity", "correctness", "m").chart(SLICED, FRAME).to_dict()["height"]
    two = BY_LABEL.chart(SLICED, FRAME).to_dict()["height"]
    assert 0 < two - one < one


def test_axes_say_what_they_measure_and_which_way_is_better() -> None:
    assert axis_title("comprehensiveness") == ["Comprehensiveness (drop in probability)", "higher is better"]
    assert axis_title("mean_rank") == ["Mean rank", "lower is better"]
    assert axis_title("seconds") == ["Seconds (per example)", "lower is better"]
