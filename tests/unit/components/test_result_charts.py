"""Charts and tables of a study's results say the numbers of its summary, and no others."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components.charts.frame import DOTTED
from components.palette import PALETTES, THEMES, Theme, contrast
from components.results.charts import (
    MOST_POINTS,
    course_chart,
    course_table,
    group_table,
    needed_table,
    order_table,
    power_chart,
    power_table,
    rating_chart,
    rating_rows,
    rating_span,
    rating_table,
    time_table,
    times_chart,
    wins_html,
    worth_table,
)
from engine.study.simulation import RankingSimulation, simulate_rankings
from engine.study.summary import RankingSummary, summarize_rankings

STRENGTH = {"random": 0.0, "best": 3.0, "<b>": 0.2}


@pytest.fixture(scope="module")
def found() -> RankingSummary:
    votes = simulate_rankings(RankingSimulation(STRENGTH, annotators=8, items=5, ties=0.5, seed=3))
    timed = [replace(vote, seconds=4.0 + place) for place, vote in enumerate(votes)]
    return summarize_rankings(timed, "random", orders=10, resamples=100)


def values_of(chart: Any, layer: int) -> list[dict[str, Any]]:
    """What a layer draws, row by row."""
    spec = chart.to_dict()
    return list(spec["datasets"][spec["layer"][layer].get("data", spec.get("data"))["name"]])


def test_the_intervals_are_those_of_the_ratings_the_best_on_top(found: RankingSummary) -> None:
    rows = rating_rows(found.ratings, "random").set_index("Method")
    assert list(rows.index) == list(found.order)
    for rating in found.ratings:
        row = rows.loc[rating.method]
        assert (row["Skill"], row["Low"], row["High"]) == (rating.skill, *rating.interval)
    assert rows.loc["best", "rank"] == "rank 1"
    assert rows.loc["random", "rank"] == "placebo, rank 2–3"


def test_the_placebo_is_shaded_and_without_one_nothing_is(found: RankingSummary) -> None:
    span = rating_span(found.ratings, found.smat)
    shaded = rating_chart(found.ratings, found.methods, "random", span, "light")
    low, high = next(rating.interval for rating in found.ratings if rating.method == "random")
    [row] = values_of(shaded, 0)
    assert (row["Low"], row["High"]) == (low, high)
    bare = rating_chart(found.ratings, found.methods, None, span, "light").to_dict()
    assert [layer["mark"]["type"] for layer in bare["layer"]] == ["rule", "point", "text", "text"]


def test_charts_beside_each_other_have_one_axis_that_holds_both(found: RankingSummary) -> None:
    low, high = rating_span(found.ratings, found.smat)
    for ratings in (found.ratings, found.smat):
        assert all(low < rating.interval[0] < rating.interval[1] < high for rating in ratings)
        spec = rating_chart(ratings, found.methods, None, (low, high), "dark").to_dict()
        assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [low, high]


def test_a_method_keeps_its_color_from_chart_to_chart(found: RankingSummary) -> None:
    intervals = rating_chart(found.ratings, found.methods, None, (0, 1), "light").to_dict()
    course = course_chart(found, "light").to_dict()
    domains = [spec["layer"][0]["encoding"]["color"]["scale"]["domain"] for spec in (intervals, course)]
    assert domains == [list(found.methods)] * 2


def test_methods_of_one_color_have_points_of_different_shapes(found: RankingSummary) -> None:
    names = ["LIME", "Occlusion", "Random"]
    ratings = [replace(rating, method=name) for rating, name in zip(found.ratings, names, strict=True)]
    spec = rating_chart(ratings, names, "Random", (0, 1), "light").to_dict()
    point = next(layer["encoding"] for layer in spec["layer"] if layer["mark"]["type"] == "point")
    lime, occlusion, _ = point["color"]["scale"]["range"]
    assert lime == occlusion
    assert point["shape"]["scale"] == {"domain": names, "range": ["circle", "square", "cross"]}


def test_the_course_has_the_skills_after_each_vote_and_the_placebo_is_dotted(found: RankingSummary) -> None:
    table = course_table(found)
    assert table["Votes"].tolist() == list(range(found.votes + 1))
    np.testing.assert_allclose(table[list(found.methods)].to_numpy(), found.course, atol=5e-4)
    lines = course_chart(found, "light").to_dict()["layer"][0]["encoding"]["strokeDash"]["scale"]
    dotted = dict(zip(lines["domain"], lines["range"], strict=True))
    assert [name for name, dash in dotted.items() if dash == DOTTED] == ["random"]


def test_of_a_long_course_some_votes_are_drawn_the_first_and_the_last_among_them(found: RankingSummary) -> None:
    long = np.random.default_rng(0).normal(size=(5001, 3))
    table = course_table(replace(found, course=long))
    assert len(table) == MOST_POINTS
    assert table["Votes"].iloc[[0, -1]].tolist() == [0, 5000]
    np.testing.assert_allclose(table[list(found.methods)].to_numpy(), long[table["Votes"]], atol=5e-4)


def test_the_power_chart_draws_the_forecast_and_where_the_study_stands(found: RankingSummary) -> None:
    drawn = values_of(power_chart(found, "light"), 0)
    assert [(row["Annotators"], row["Votes"], row["Separated pairs"]) for row in drawn] == [
        (one.annotators, one.votes, one.pairs) for one in found.power
    ]
    assert power_table(found).to_dict("records") == drawn
    [now] = values_of(power_chart(found, "light"), 2)
    assert now == {"Votes": 40, "words": "now: 40"}


def test_pairs_say_their_votes_or_that_they_are_told_apart(found: RankingSummary) -> None:
    rows = needed_table(found).to_dict("records")
    said = {(row["Better"], row["Worse"]): row["Total votes"] for row in rows}
    assert {votes for (better, _), votes in said.items() if better == "best"} == {"separated"}
    [close] = [pair for pair in found.needed if not pair.apart]
    assert said[close.better, close.worse] == ("too close" if close.votes is None else f"{close.votes:,}")
    unknown = needed_table(replace(found, annotators=1)).to_dict("records")
    assert {row["Total votes"] for row in unknown} == {"separated", "unknown"}


def test_times_fall_into_their_bins_and_unknown_ones_into_none() -> None:
    table = time_table([0.0, 0.5, 4.9, 5.0, 59.0, 600.0, 9000.0])
    assert dict(zip(table["Seconds"], table["Votes"], strict=True)) == {
        "0–5": 2, "5–10": 1, "10–20": 0, "20–30": 0, "30–60": 1, "60–120": 0, "120–300": 0, "300–600": 0, "over 600": 2,
    }  # fmt: skip
    assert [row["Votes"] for row in values_of(times_chart([7.0], "dark"), 0)] == [0, 1, 0, 0, 0, 0, 0, 0, 0]


def test_tables_say_the_numbers_of_the_summary(found: RankingSummary) -> None:
    ranks = rating_table(found).set_index("Method")
    by_name = {rating.method: rating for rating in found.smat}
    assert list(ranks.index) == [f"{name} (placebo)" if name == "random" else name for name in found.order]
    assert ranks.loc["best", "High, SMaT"] == round(by_name["best"].interval[1], 3)
    spreads = order_table(found).set_index("Method")["Spread over orders"]
    assert spreads.to_dict() == {rating.method: round(rating.spread, 3) for rating in found.ratings}
    worths = worth_table(found)
    assert worths.sort_values("Rank by Plackett-Luce")["Method"].tolist() == list(found.worth_order)
    people = group_table(found.by_annotator, "Annotator").set_index("Annotator")
    first = found.by_annotator[0]
    assert first.seconds is not None
    assert people.loc[first.name, "Median seconds"] == pytest.approx(first.seconds.median, abs=0.05)
    assert people.loc[first.name, "best"] == pytest.approx(first.mean_rank["best"], abs=0.005)


def test_wins_are_shares_of_the_votes_in_the_color_of_their_side(found: RankingSummary) -> None:
    html = wins_html(found)
    assert "<b>" not in html
    [body] = re.findall("<tbody>(.*)</tbody>", html)
    for name, row in zip(found.order, re.findall("<tr>(.*?)</tr>", body), strict=True):
        cells = re.findall(r"<td(?: class=\"([fa])\d+\")?>(?:(\d+)%)?</td>", row)
        shares = found.wins[found.methods.index(name), [found.methods.index(other) for other in found.order]]
        for other, (side, shown), share in zip(found.order, cells, shares.tolist(), strict=True):
            assert shown == ("" if other == name else f"{100 * share:.0f}")
            assert side == ("" if other == name or abs(share - 0.5) < 0.025 else "f" if share > 0.5 else "a")


@pytest.mark.parametrize("theme", THEMES)
def test_words_of_charts_are_legible_in_both_themes(found: RankingSummary, theme: Theme) -> None:
    ground = PALETTES[theme].ground
    for chart in (course_chart(found, theme), power_chart(found, theme), times_chart([1.0], theme)):
        config = chart.to_dict()["config"]
        assert contrast(config["axis"]["labelColor"], ground) >= 4.5
        assert contrast(config["legend"]["labelColor"], ground) >= 4.5
    spec = rating_chart(found.ratings, found.methods, None, (0, 1), theme).to_dict()
    words = [layer["encoding"]["color"]["value"] for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    assert len(words) == 2
    assert all(contrast(color, ground) >= 4.5 for color in words)
