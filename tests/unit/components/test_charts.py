"""Curves as charts and tables: both ways, what hovering tells, the areas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.charts.comparisons import agreement_figure, area_table, curve_table, curves_chart
from components.palette import PALETTES, THEMES, Theme, contrast
from engine.metrics.agreement import Agreement
from engine.metrics.catalog import PERCENTS
from engine.metrics.faithfulness import RemovalCurve

TITLES = {"a": "Method A", "b": "Method B", "random": "Random"}


def curve(method: str, way: str, start: float, end: float) -> RemovalCurve:
    removed = tuple(range(11)) if way == "deletion" else tuple(range(10, -1, -1))
    return RemovalCurve(method, np.linspace(start, end, len(PERCENTS)), removed, way=way)


def drawn(curves: list[RemovalCurve], **options: Any) -> dict[str, Any]:
    return curves_chart(curves, TITLES, "probability of cat", False, "patch", **options).to_dict()


@pytest.mark.parametrize(("way", "moved"), [("deletion", "removed"), ("insertion", "kept")])
def test_a_chart_says_which_way_its_patches_go(way: str, moved: str) -> None:
    spec = drawn([curve("a", way, 0.9, 0.1), curve("random", way, 0.8, 0.3)], columns=2)
    lines, points = spec["layer"]
    assert lines["encoding"]["x"]["title"] == f"share of patches {moved}, highest score first"
    assert lines["encoding"]["color"]["scale"]["domain"] == ["Method A", "Random"]
    assert lines["encoding"]["color"]["legend"]["columns"] == 2
    assert [tip["field"] for tip in points["encoding"]["tooltip"]] == ["method", moved, "shown"]


@pytest.mark.parametrize("theme", THEMES)
def test_the_words_of_a_chart_are_legible_in_both_themes(theme: Theme) -> None:
    config, ground = drawn([curve("a", "deletion", 0.9, 0.1)], theme=theme)["config"], PALETTES[theme].ground
    words = [config["axis"]["labelColor"], config["axis"]["titleColor"], config["legend"]["labelColor"]]
    assert all(contrast(color, ground) >= 4.5 for color in words)


def test_hovering_counts_what_is_removed_or_kept() -> None:
    for way, column in (("deletion", "removed"), ("insertion", "kept")):
        table = curve_table([curve("a", way, 0.0, 1.0)], TITLES, "patch")
        assert table[column].tolist() == [f"{number} of 10 patches" for number in range(11)]
        assert table["share"].tolist() == pytest.approx([percent / 100 for percent in PERCENTS])


def test_areas_of_both_ways_stand_beside_each_other_the_steepest_fall_first() -> None:
    deleted = [curve("a", "deletion", 1.0, 0.0), curve("b", "deletion", 0.4, 0.0)]
    inserted = [curve("a", "insertion", 0.0, 1.0), curve("b", "insertion", 0.0, 0.4)]
    table = area_table([*deleted, *inserted], TITLES)
    assert table.to_dict("records") == [
        {"Method": "Method B", "Area, deletion": 0.2, "Area, insertion": 0.2},
        {"Method": "Method A", "Area, deletion": 0.5, "Area, insertion": 0.5},
    ]
    assert list(area_table(deleted, TITLES).columns) == ["Method", "Area under the curve"]


def test_the_matrix_of_agreement_begins_at_the_top_left() -> None:
    values = np.array([[1.0, 0.25], [0.25, 1.0]])
    figure = agreement_figure(Agreement("spearman", ("a", "b"), values, (), 8, 1), TITLES, "light")
    [cells] = figure.data
    assert (list(cells.x), list(cells.y)) == (["Method A", "Method B"], ["Method A", "Method B"])
    assert (figure.layout.yaxis.autorange, figure.layout.xaxis.side) == ("reversed", "bottom")
