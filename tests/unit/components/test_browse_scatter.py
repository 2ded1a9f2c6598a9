"""The chart of an embedding map: colors of classes and of scores, mistakes, its file, and the examples in a box."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components.browse.embedding import describe_map, selected_places
from components.browse.examples import ExampleRow, ExampleTable
from components.browse.scatter import LABEL, NONE, OTHERS, PREDICTED, EmbeddingChart, axis_titles, named_colors
from components.palette import CHART_COLORS, THEMES
from engine.data.embedding_map import PCA, UMAP, EmbeddingMap

PLAIN = ExampleRow(0, "a text", None, "cat", "", 6)
POINTS = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [-3.0, 2.0]])


def embedding(projection: str = PCA, places: tuple[int, ...] = (0, 1, 2, 3)) -> EmbeddingMap:
    explained = (0.5, 0.25) if projection == PCA else ()
    return EmbeddingMap(projection, np.array(places), POINTS[: len(places)], explained, 24, 0)


def chart(rows: list[ExampleRow], color: str, has_scores: bool = False) -> EmbeddingChart:
    return EmbeddingChart(embedding(), rows, color, has_scores, "a model, a data set", "light", str)


def encoding(one: EmbeddingChart) -> dict[str, Any]:
    return dict(json.loads(one.spec())["layer"][0]["encoding"])


def rows(**fields: list[Any]) -> list[ExampleRow]:
    changes = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    return [replace(PLAIN, index=index, **change) for index, change in enumerate(changes)]


def test_mistakes_are_crosses_on_top_and_colors_follow_the_choice() -> None:
    own = rows(
        label=["cat", "dog", "cat", "dog"], predicted=["CAT", "CAT", "CAT", "DOG"], right=[True, False, True, True]
    )
    for color, title, domain in ((LABEL, "Label", ["cat", "dog"]), (PREDICTED, "Prediction", ["CAT", "DOG"])):
        drawn = encoding(chart(own, color))
        assert (drawn["color"]["title"], drawn["color"]["scale"]["domain"]) == (title, domain)
        assert drawn["shape"]["scale"] == {
            "domain": ["Right", "Wrong"],
            "range": ["circle", "cross"],
            "type": "ordinal",
        }
    [data] = json.loads(chart(own, LABEL).spec())["datasets"].values()
    assert [one["index"] for one in data] == [0, 2, 3, 1]


def test_the_file_has_the_coordinates_of_each_example_and_no_formula() -> None:
    own = rows(text=["=1+1", "<b>x</b>", "", "y " * 200], label=["cat", None, "-cat", "dog"])
    table = chart(own, LABEL).table
    np.testing.assert_array_equal(table[["PCA 1", "PCA 2"]].to_numpy(), POINTS)
    assert table["Example"].tolist() == [0, 1, 2, 3]
    assert table["Text"].tolist()[:3] == ["'=1+1", "<b>x</b>", "Picture 2, label -cat"]
    assert table["Label"].tolist() == ["cat", "", "'-cat", "dog"]
    assert len(table["Text"][3]) == 160
    html = chart(own, LABEL).html()
    assert "<b>x</b>" not in html


def test_scores_are_colored_on_a_scale() -> None:
    own = rows(label=["0.5", "1.5", None, "3"], score=[0.25, 1.0, 2.0, 3.5])
    for color, values in ((LABEL, [0.5, 1.5, None, 3.0]), (PREDICTED, [0.25, 1.0, 2.0, 3.5])):
        one = chart(own, color, has_scores=True)
        assert encoding(one)["color"]["type"] == "quantitative"
        [data] = json.loads(one.spec())["datasets"].values()
        assert [point["color"] for point in data] == values


@pytest.mark.parametrize("theme", THEMES)
def test_frequent_classes_have_colors_of_their_own_and_the_rest_share_gray(theme: Any) -> None:
    *own, gray = CHART_COLORS[theme]
    names = [f"class {at}" for at in range(9) for _ in range(20 - at)]
    colors = named_colors(names, theme)
    assert list(colors) == [*(f"class {at}" for at in range(7)), OTHERS]
    assert list(colors.values()) == [*own, gray]
    assert list(named_colors(["b", NONE, "a"], theme)) == ["a", "b", NONE]
    many = [replace(PLAIN, index=at, label=names[at]) for at in range(len(names))]
    whole = EmbeddingMap(PCA, np.arange(len(names)), np.zeros((len(names), 2)), (1.0, 0.0), 3, 0)
    drawn = EmbeddingChart(whole, many, LABEL, False, "", theme, str)
    [data] = json.loads(drawn.spec())["datasets"].values()
    assert {one["color"] for one in data} == set(colors)


def test_a_box_holds_the_points_between_its_bounds_and_nonsense_is_no_box() -> None:
    one = embedding(places=(4, 7, 9, 11))
    assert selected_places(one, {"x": [0, 2.5], "y": [1.5, -2.0]}) == {4, 7, 9}
    assert selected_places(one, {"x": [10, 11], "y": [0, 1]}) == frozenset()
    for nonsense in (
        None,
        {},
        [],
        {"x": [0, 1]},
        {"x": [0, 1], "y": "ab"},
        {"x": [0, 1, 2], "y": [0, 1]},
        {"x": [True, 1], "y": [0, 1]},
    ):
        assert selected_places(one, nonsense) is None


def test_axes_and_words() -> None:
    assert axis_titles(embedding()) == ("PC 1 (50.0% of the variance)", "PC 2 (25.0% of the variance)")
    assert axis_titles(embedding(UMAP)) == ("UMAP 1", "UMAP 2")
    own = rows(label=["cat"] * 4, predicted=["CAT"] * 4, right=[True, False, True, True])
    words = describe_map(embedding(), ExampleTable(tuple(own), ("cat",), False))
    assert words.startswith("4 examples, 24 dimensions.")
    assert words.endswith("Crosses are wrong predictions.")
    sampled = describe_map(embedding(places=(0, 2)), ExampleTable(tuple(rows(label=["cat"] * 4)), ("cat",)))
    assert sampled.startswith("2 of 4 examples, evenly spaced, 24 dimensions.")
    assert "Predict the examples" in sampled
