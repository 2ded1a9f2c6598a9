"""Lines and points of an evaluation's charts hold the numbers of its views, and say all of them on hovering."""

from __future__ import annotations

import tomllib
from typing import Any

import altair as alt
import pandas as pd
import pytest

from components.charts.frame import (
    COLORS,
    DASHED,
    DOTTED,
    FIELDS,
    LEGEND_ROW,
    METHOD_STYLES,
    NOTHING,
    PICKED,
    PICKED_POINT,
    POINT,
    SOLID,
    ChartFrame,
    click_selection,
    dashes,
    method_colors,
    method_of,
    point_size,
    shapes,
)
from components.charts.scores import MOST_BANDS, missing_values_text
from components.evaluate.charts import (
    CostChart,
    PlausibilityChart,
    RemovalChart,
    ScalingChart,
    StrengthChart,
    equal_strengths_text,
)
from components.evaluate.view import OVER_TRAINING
from components.palette import CHART_COLORS, PALETTES, THEMES, Theme, contrast
from engine.evaluation.groups import GradedScore
from engine.metrics.results import BY_BATCH, ONE, MetricScore
from engine.models.summary import ModelSize
from engine.registry import method_order
from tests.project import ROOT
from tests.unit.evaluation.by_hand import Found, Key, by_hand, fact

LONG = "A method whose name is much longer than that of any other one"
FRAME = ChartFrame({"lime": "LIME", "gradient": LONG, "random": "Random"})
CURVE, COST = RemovalChart("m"), CostChart("evaluations", "comprehensiveness", "m")
CURVES: dict[Key, Found] = {
    ("m", method, "without_top", percent): [1 - share * percent / 100, 1.0]
    for method, share in (("lime", 0.8), ("random", 0.2))
    for percent in (0, 50, 100)
}
FOUND = by_hand(
    {
        **CURVES,
        ("m", "gradient", "without_top"): ["too long", "too long"],
        ("m", "lime", "comprehensiveness"): [0.4, 0.6],
        ("m", "lime", "plausibility_auc"): [0.8, 0.6],
        ("m", "lime", "evaluations"): [900, 1100],
        ("m", "random", "comprehensiveness"): [0.1, 0.1],
        ("m", "random", "evaluations"): [0, 0],
        ("m", "random", "plausibility_auc"): [0.5, "nothing is marked"],
    },
    [fact(0), fact(1)],
)


def spec(chart: alt.LayerChart) -> dict[str, Any]:
    return chart.to_dict()


def layer(made: dict[str, Any], mark: str) -> dict[str, Any]:
    return next(one for one in made["layer"] if one["mark"]["type"] == mark)


def data(made: dict[str, Any], mark: str) -> pd.DataFrame:
    name = layer(made, mark).get("data", made.get("data", {})).get("name")
    return pd.DataFrame(made["datasets"][name])


def test_a_curve_goes_through_the_means_within_its_band() -> None:
    made = spec(CURVE.chart(FOUND, FRAME))
    assert [one["mark"]["type"] for one in made["layer"]] == ["area", "line", "point"]
    points = data(made, "point")
    lime = points[points["method"] == "lime"]
    assert lime["at"].tolist() == [0, 0.5, 1]
    assert lime["value"].tolist() == pytest.approx([1, 0.8, 0.6])
    assert (points["low"] <= points["value"]).all()
    assert (points["value"] <= points["high"]).all()
    band = layer(made, "area")["encoding"]
    assert (band["y"]["field"], band["y2"]["field"]) == ("low", "high")


def test_probabilities_have_the_whole_axis_and_scores_their_own() -> None:
    y = layer(spec(CURVE.chart(FOUND, FRAME)), "line")["encoding"]["y"]
    assert y["scale"]["domain"] == [0, 1]
    assert y["title"] == ["probability of the predicted class", "lower is better"]
    scored = by_hand({("m", "lime", "with_top", p): [p, 3 * p] for p in (0, 100)}, [fact(0, "0.4", None)])
    y = layer(spec(RemovalChart("m", "with_top").chart(scored, FRAME)), "line")["encoding"]["y"]
    assert y["title"] == ["score of the model", "higher is better"]
    assert y["scale"]["domain"][1] > 200
    x = layer(spec(RemovalChart("m", "with_top").chart(scored, FRAME)), "line")["encoding"]["x"]
    assert x["title"] == ["share of tokens kept,", "highest score first"]
    told = spec(CURVE.chart(FOUND, ChartFrame(FRAME.titles, value_range=(0.2, 0.9))))
    assert layer(told, "line")["encoding"]["y"]["scale"]["domain"] == [0.2, 0.9]


def test_hovering_and_clicking_tell_all_there_is() -> None:
    made = spec(CURVE.chart(FOUND, ChartFrame(FRAME.titles, slice="good")))
    tips = {tip["field"]: tip["title"] for tip in layer(made, "point")["encoding"]["tooltip"]}
    assert list(tips.values()) == [
        "Method", "Model", "Slice", "removed", "Value", "95% interval", "Examples", "Without a value",
    ]  # fmt: skip
    first = data(made, "point").iloc[1]
    assert {first[field] for field in ("name", "model", "slice")} == {"LIME", "m", "good"}
    assert (first["moved"], first["shown"], first["examples"], first["skipped"]) == (
        "50% of the tokens",
        "0.8",
        "2",
        "none",
    )
    (click,) = made["params"]
    assert (click["name"], click["select"]["fields"]) == (PICKED, list(FIELDS))
    assert set(FIELDS) <= set(data(made, "point").columns)
    assert first["percent"] == 50


def test_a_method_without_values_is_told_and_not_drawn() -> None:
    assert set(data(spec(CURVE.chart(FOUND, FRAME)), "point")["method"]) == {"lime", "random"}
    table = CURVE.table(FOUND, FRAME)
    assert missing_values_text(table) == f"Not drawn, because no example has a value: {LONG} on m (2: too long)."
    assert table[table["Method"] == LONG]["Value"].isna().all()
    assert table[table["Method"] == LONG]["Without a value"].tolist() == [2, 2, 2]
    assert missing_values_text(table[table["Method"] == "LIME"]) == missing_values_text(pd.DataFrame()) == ""


def test_a_chart_of_nothing_says_so() -> None:
    made = spec(CURVE.chart(FOUND, ChartFrame({}, methods=("gradient",))))
    assert data(made, "text")["words"].tolist() == [NOTHING]
    assert made["params"][0]["name"] == PICKED
    assert spec(COST.chart(FOUND, ChartFrame({}, methods=("gradient",))))["height"] == made["height"]


def test_one_example_has_a_point_and_no_band() -> None:
    one = by_hand({("m", "lime", "without_top", p): [0.5] for p in (0, 100)})
    made = spec(CURVE.chart(one, FRAME))
    assert [part["mark"]["type"] for part in made["layer"]] == ["line", "point"]
    assert data(made, "point")["interval"].tolist() == [ONE] * 2


def test_the_styles_are_of_all_methods_each_with_one_of_its_own() -> None:
    methods = method_order()
    for theme in THEMES:
        looks = [(color, *dash) for color, dash in zip(method_colors(methods, theme), dashes(methods), strict=True)]
        assert len(set(looks)) == len(methods)
    marks = list(zip(method_colors(methods, "light"), shapes(methods), strict=True))
    assert len(set(marks)) == len(methods)
    styles = [id for row in METHOD_STYLES for id in row]
    assert len(styles) == len(set(styles))
    assert {len(row) for row in METHOD_STYLES[:-1]} == {COLORS} == {len(CHART_COLORS["light"]) - 1}
    assert len(METHOD_STYLES[-1]) <= COLORS


def test_random_alone_is_gray_dotted_and_a_cross() -> None:
    names = ["random", "Random", "lime"]
    assert method_colors(names, "light") == ["#6a7079", "#6a7079", "#0072b2"]
    assert dashes(names) == [DOTTED, DOTTED, SOLID]
    assert shapes(names) == ["cross", "cross", "circle"]


def test_a_title_and_a_numbered_variant_have_the_style_of_the_method() -> None:
    assert method_of("Gradient L2 norm") == method_of("Gradient L2 norm 2") == "gradient_l2"
    assert method_of("gradient_l2 2") == "gradient_l2"
    assert method_of("nobody's") == "nobody's"
    assert method_colors(["Gradient x input 3"], "dark") == method_colors(["gradient_x_input"], "dark")


def test_the_theme_has_the_same_colors() -> None:
    themes = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    assert {theme: tuple(themes[theme]["chartCategoricalColors"]) for theme in THEMES} == CHART_COLORS
    assert {theme: themes[theme]["linkColor"] for theme in THEMES} == {theme: PALETTES[theme].link for theme in THEMES}


def test_the_legend_names_what_is_drawn() -> None:
    made = spec(CURVE.chart(FOUND, FRAME))
    assert layer(made, "line")["encoding"]["color"]["legend"]["values"] == ["LIME", "Random"]
    shorter = spec(CURVE.chart(FOUND, ChartFrame(FRAME.titles, methods=("lime",))))["height"]
    assert made["height"] - shorter == LEGEND_ROW


def test_a_method_has_one_color_and_dash_in_every_chart() -> None:
    looks: dict[str, set[object]] = {}
    for company in (("lime", "occlusion"), ("occlusion", "gradient", "lime"), ("gradient",)):
        found = by_hand({("m", method, "without_top", 0): [1.0, 0.5] for method in company})
        line = layer(spec(CURVE.chart(found, ChartFrame({}))), "line")["encoding"]
        color, dash = line["color"]["scale"], line["strokeDash"]["scale"]
        assert color["domain"] == dash["domain"] == [*company, "random"]
        assert line["color"]["legend"]["values"] == list(company), "random was not measured"
        for method, *look in zip(color["domain"], color["range"], map(str, dash["range"]), strict=True):
            looks.setdefault(method, set()).add(tuple(look))
    assert looks == {
        "lime": {("#0072b2", str(SOLID))},
        "occlusion": {("#0072b2", str(DASHED))},
        "gradient": {("#b8a800", str(SOLID))},
        "random": {("#6a7079", str(DOTTED))},
    }


def test_many_bands_over_each_other_are_not_drawn() -> None:
    found = by_hand({("m", f"m{place}", "without_top", 0): [1.0, 0.5] for place in range(MOST_BANDS + 1)})
    assert [one["mark"]["type"] for one in spec(CURVE.chart(found, ChartFrame({})))["layer"]] == ["line", "point"]
    few = ChartFrame({}, methods=("m0", "m1"))
    assert [one["mark"]["type"] for one in spec(CURVE.chart(found, few))["layer"]] == ["area", "line", "point"]


def test_cost_goes_by_factors_and_what_costs_nothing_stands_at_zero() -> None:
    made = spec(COST.chart(FOUND, FRAME))
    x = layer(made, "point")["encoding"]["x"]
    assert x["scale"]["type"] == "symlog"
    assert x["scale"]["domain"][0] == 0
    assert x["axis"]["values"] == [0, 1000]
    assert x["title"] == ["Model evaluations (per example)", "lower is better"]
    points = data(made, "point").set_index("method")
    assert (points.loc["lime", "x"], points.loc["lime", "value"]) == (1000, 0.5)
    assert points.loc["random", "x"] == 0
    lime = spec(COST.chart(FOUND, ChartFrame({}, methods=("lime",))))
    scale = layer(lime, "point")["encoding"]["x"]["scale"]
    assert (scale["type"], scale["domain"][0] > 0) == ("log", True)
    table = COST.table(FOUND, FRAME).set_index("Method")
    assert (table.loc["LIME", "Model evaluations"], table.loc["LIME", "Value"]) == (1000, 0.5)


def test_seconds_have_no_cross_where_they_stand() -> None:
    found = by_hand({("m", "lime", "seconds"): [1, 1], ("m", "lime", "comprehensiveness"): [0.4, 0.6]})
    made = spec(CostChart("seconds", "comprehensiveness", "m").chart(found, FRAME))
    assert [one["mark"]["type"] for one in made["layer"]] == ["rule", "point"]
    assert "y2" in layer(made, "rule")["encoding"], "that of the quality"
    assert data(made, "point")["around"].tolist() == [BY_BATCH]


def test_plausibility_stands_across_and_faithfulness_upwards_over_the_same_examples() -> None:
    made = spec(PlausibilityChart("plausibility_auc", "comprehensiveness", "m").chart(FOUND, FRAME))
    points = data(made, "point").set_index("method")
    assert (points.loc["lime", "x"], points.loc["lime", "value"], points.loc["lime", "examples"]) == (0.7, 0.5, "2")
    assert (points.loc["random", "x"], points.loc["random", "examples"]) == (0.5, "1")
    assert points.loc["random", "around"] == ONE
    assert points.loc["random", "skipped"] == "1: nothing is marked"
    assert set(data({**made, "layer": [made["layer"][0]]}, "rule")["method"]) == {"lime"}, "one example has no cross"


def test_scaling_has_a_tick_for_each_model() -> None:
    found = by_hand({(m, "lime", "complexity"): [v, v + 1] for m, v in (("small", 1), ("large", 3), ("other", 9))})
    sizes = {
        "small": ModelSize(1_000, 2, 2, "T5"),
        "large": ModelSize(50_000, 12, 2, "T5"),
        "other": ModelSize(9, 1, 1, "BERT"),
    }
    made = spec(ScalingChart("complexity", sizes).chart(found, FRAME))
    x = layer(made, "line")["encoding"]["x"]
    assert (x["scale"]["type"], x["axis"]["values"]) == ("log", [1_000, 50_000])
    assert data(made, "point")[["at", "value"]].to_numpy().tolist() == [[1_000, 1.5], [50_000, 3.5]]
    assert ScalingChart("complexity", sizes).table(found, FRAME)["Parameters"].tolist() == [1_000, 50_000]
    assert "datasets" in spec(ScalingChart("complexity", {}).chart(found, FRAME))


def test_strength_stands_beside_what_there_is_to_be_reached() -> None:
    graded = tuple(
        GradedScore(at, MetricScore("truth_mass", "lime", at / 2, (at / 4, at), 10, model="m"), ideal)
        for at, ideal in ((0.5, 0.6), (1.0, 0.9))
    )
    chart = StrengthChart(graded, OVER_TRAINING)
    made = spec(chart.chart(FOUND, FRAME))
    gray = data({**made, "layer": [made["layer"][0]]}, "line")
    assert gray.to_numpy().tolist() == [[0.5, 0.6], [1.0, 0.9]]
    assert data(made, "text")["words"].tolist() == ["the mark's share of the decision"]
    assert data(made, "point")["ideal"].tolist() == ["60.0%", "90.0%"]
    assert chart.table(FOUND, FRAME)["The mark's share of the decision"].tolist() == [0.6, 0.9]
    unknown = StrengthChart((GradedScore(1.0, graded[0].score, None),))
    assert [one["mark"]["type"] for one in spec(unknown.chart(FOUND, FRAME))["layer"]] == [
        "area", "line", "point",
    ]  # fmt: skip
    assert data(spec(StrengthChart(()).chart(FOUND, FRAME)), "text")["words"].tolist() == [NOTHING]


def test_strengths_at_one_place_are_told() -> None:
    assert equal_strengths_text([]) == ""
    assert equal_strengths_text([[0.5, 0.75], [0.1, 0.25]]).startswith("Strengths 0.5 and 0.75; 0.1 and 0.25: equally")


@pytest.mark.parametrize("theme", THEMES)
def test_words_are_legible_in_both_themes(theme: Theme) -> None:
    frame = ChartFrame(FRAME.titles, theme)
    for chart in (CURVE.chart(FOUND, frame), COST.chart(FOUND, frame)):
        config = spec(chart)["config"]
        colors = [config["axis"]["labelColor"], config["axis"]["titleColor"], config["legend"]["labelColor"]]
        assert all(contrast(one, PALETTES[theme].ground) >= 4.5 for one in colors)


def test_a_point_grows_when_it_is_picked_and_none_before() -> None:
    size = alt.Chart().mark_point().encode(size=point_size(click_selection())).to_dict()["encoding"]["size"]
    assert size["value"] == POINT
    assert size["condition"] == [{"empty": False, "param": PICKED, "value": PICKED_POINT}]
