"""Charts and tables of a study of guesses hold the numbers of its summary."""

from __future__ import annotations

from typing import Any

import altair as alt
import pytest

from components.palette import PALETTES, THEMES, Theme, contrast
from components.results.charts import (
    accuracy_chart,
    accuracy_rows,
    condition_table,
    gain_chart,
    gain_rows,
    sureness_chart,
    sureness_rows,
    sureness_table,
)
from components.results.descriptions import titled_forward
from engine.study.counted_votes import WITHOUT, GuessAnswer, GuessTarget
from engine.study.guesses import GuessSummary, summarize_guesses
from engine.study.simulation import GuessSimulation, simulate_guesses

NAMES = [WITHOUT, "LIME", "Random"]


@pytest.fixture(scope="module")
def found() -> GuessSummary:
    made = GuessSimulation({WITHOUT: 0.6, "lime": 0.9, "random": 0.6}, 12, 20, unsure=0.1)
    known = summarize_guesses(simulate_guesses(made), ["lime", "random"], "random")
    return titled_forward(known, {"lime": "LIME", "random": "Random"})


def layers(chart: alt.LayerChart) -> list[str]:
    return [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]


def test_rows_are_the_summary_under_the_methods_titles(found: GuessSummary) -> None:
    accuracy, gains = accuracy_rows(found).set_index("Method"), gain_rows(found).set_index("Method")
    assert list(accuracy.index) == NAMES
    assert list(gains.index) == NAMES[1:]
    for one in found.conditions:
        assert one.share is not None
        row = accuracy.loc[one.name]
        assert (row["Accuracy"], row["Low"], row["High"]) == (one.share.accuracy, *one.share.interval)
        if one.gain:
            row = gains.loc[one.name]
            wanted = (100 * one.gain.accuracy, *(100 * end for end in one.gain.interval))
            assert (row["Gain"], row["Low"], row["High"]) == pytest.approx(wanted)
    assert str(accuracy.loc["Random", "right"]).startswith("placebo, ")


def test_nothing_is_a_line_and_guesses_without_an_explanation_a_band(found: GuessSummary) -> None:
    assert layers(accuracy_chart(found, "light")) == ["rect", "rule", "point", "text", "text"]
    chart = gain_chart(found, "light")
    assert layers(chart) == ["rule", "rule", "point", "text", "text"]
    low, high = chart.to_dict()["layer"][1]["encoding"]["x"]["scale"]["domain"]
    assert low < 0 < high
    assert low < gain_rows(found)["Low"].min() < gain_rows(found)["High"].max() < high


def test_a_condition_without_guesses_is_left_out_of_charts_and_empty_in_the_table() -> None:
    answers = [
        GuessAnswer("a", "1", "lime", 1, 2, GuessTarget(1)),
        GuessAnswer("a", "2", WITHOUT, None, None, GuessTarget(1)),
    ]
    found = summarize_guesses(answers, ["lime", "lrp"])
    assert list(accuracy_rows(found)["Method"]) == ["lime"]
    assert layers(accuracy_chart(found, "light")) == ["rule", "point", "text", "text"]
    assert gain_rows(found).empty
    table = condition_table(found).set_index("Explanation")
    assert table["Guesses"].tolist() == [0, 1, 0]
    assert table["Cannot tell"].tolist() == [1, 0, 0]
    assert table["Right"].isna().tolist() == [True, False, True]


def test_tables_have_all_numbers(found: GuessSummary) -> None:
    table = condition_table(found)
    assert table["Explanation"].tolist() == [WITHOUT, "LIME", "Random (placebo)"]
    told: list[Any] = [one.gain.sure if one.gain else None for one in found.conditions]
    assert table["Confidence gain"].tolist()[1:] == pytest.approx(told[1:], abs=5e-4)
    levels = sureness_table(found)
    assert levels["Guesses"].sum() == 2 * found.guesses, "all together, and each condition"
    assert len(levels) == len(found.by_sureness) + sum(len(one.by_sureness) for one in found.conditions)


def test_the_chart_of_sureness_has_a_row_a_level(found: GuessSummary) -> None:
    rows = sureness_rows(found)
    assert rows["Sure"].tolist() == list(found.by_sureness)
    assert rows["Accuracy"].tolist() == [share.accuracy for share in found.by_sureness.values()]
    spec = sureness_chart(found, "light").to_dict()
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("theme", THEMES)
def test_words_are_legible_in_both_themes(found: GuessSummary, theme: Theme) -> None:
    for chart in (accuracy_chart(found, theme), gain_chart(found, theme), sureness_chart(found, theme)):
        spec = chart.to_dict()
        colors = [spec["config"]["axis"]["labelColor"]]
        colors += [layer["encoding"]["color"]["value"] for layer in spec["layer"] if layer["mark"]["type"] == "text"]
        assert all(contrast(color, PALETTES[theme].ground) >= 4.5 for color in colors)
    rule = sureness_chart(found, theme).to_dict()["layer"][0]["mark"]
    assert contrast(rule["color"], PALETTES[theme].ground) >= 3, "a rule is black where no color is given"
