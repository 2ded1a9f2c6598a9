"""The leaderboard as HTML: order, colors, marks, what each cell says, and nothing foreign that is not escaped."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from html import unescape

import pytest

from components.evaluate.leaderboard import (
    BEST,
    COLUMNS,
    LEVEL,
    MOST_COLUMNS,
    NO_ORDER,
    Board,
    board_html,
    boards,
    cell_text,
    default_columns,
    group_ensembles,
    hidden_text,
    indistinct_columns,
    legend,
    listed_methods,
    operators_html,
    select_columns,
    sort_metric,
)
from components.evaluate.view import EvaluationView, ScorePoint
from components.palette import STEPS
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS
from engine.evaluation.scores import Standing
from engine.metrics.catalog import Better, metric
from engine.metrics.results import BY_BATCH, EQUAL, Interval, MetricScore
from tests.unit.evaluation.by_hand import by_hand, by_two_operators

EMBEDDED = "reviews-minilm"
EVIL = "<img src=x onerror=alert(1)>\"'"
CELL = re.compile(r'<td(?: class="(\w+)")?><button[^>]*data-method="(\w+)" data-metric="(\w+)" data-told="([^"]*)"')
HEAD = re.compile(r"<tr><th scope=\"row\"><p>([^<]*)</p>")
TITLES = {"lime": "LIME", "gradient": "Gradient", "random": "Random"}


def standing(
    method: str, id: str, value: float | None, best: bool = False, level: bool = False,
    interval: Interval | None = None, skipped: Mapping[str, int] | None = None, model: str = "m",
) -> Standing:  # fmt: skip
    better: Better = metric(id).better
    score = MetricScore(id, method, value, interval, 0 if value is None else 4, skipped or {}, better, model, "d")
    return Standing(score, best, level)


GIVEN = [
    standing("lime", "comprehensiveness", 0.5, best=True, interval=(0.4, 0.6)),
    standing("gradient", "comprehensiveness", 0.4, level=True, interval=(0.2, 0.6)),
    standing("random", "comprehensiveness", 0.1, interval=(0.0, 0.2)),
    standing("gradient", "sufficiency", 0.0, best=True),
    standing("lime", "sufficiency", 0.1),
    standing("random", "sufficiency", 0.2),
]
METHODS, METRICS = ("gradient", "lime", "random"), ("comprehensiveness", "sufficiency")


def html(sort: str = "", picked: ScorePoint | None = None) -> str:
    [board] = boards(GIVEN, METHODS, METRICS)
    return board_html(board, TITLES, sort, picked)


def cells(drawn: str) -> dict[tuple[str, str], tuple[str, str]]:
    """By method and metric: the class of the color, and what is told."""
    return {(method, id): (tone, unescape(told)) for tone, method, id, told in CELL.findall(drawn)}


def test_the_best_of_a_column_is_darkest_whichever_way_is_better() -> None:
    found = cells(html())
    assert found["lime", "comprehensiveness"][0] == found["gradient", "sufficiency"][0] == f"m{STEPS}"
    assert found["gradient", "comprehensiveness"][0] == "m15"
    assert found["lime", "sufficiency"][0] == "m10"
    assert found["random", "comprehensiveness"][0] == found["random", "sufficiency"][0] == ""


def test_the_best_method_comes_first_by_the_metric_that_is_chosen() -> None:
    assert HEAD.findall(html()) == ["Gradient", "LIME", "Random"]
    assert HEAD.findall(html("comprehensiveness")) == ["LIME", "Gradient", "Random"]
    assert HEAD.findall(html("sufficiency")) == ["Gradient", "LIME", "Random"]
    assert html("sufficiency").count("aria-sort") == 1


def test_marks_are_signs_and_words() -> None:
    drawn = html()
    assert drawn.count(f"<i>{BEST}</i>") == 2
    assert drawn.count(f"<i>{LEVEL}</i>") == 1
    told = {key: words for key, (_, words) in cells(drawn).items()}
    assert told["lime", "comprehensiveness"] == (
        "LIME, comprehensiveness: 0.5 drop in probability, 95% interval 0.4 to 0.6, n = 4; best."
    )
    assert "; not significantly different from the best" in told["gradient", "comprehensiveness"]
    assert "best" not in told["random", "comprehensiveness"]


def test_a_picked_cell_is_pressed_and_no_other() -> None:
    drawn = html(picked=ScorePoint("m", "lime", "sufficiency"))
    assert drawn.count('aria-pressed="true"') == 1
    assert 'data-metric="sufficiency"' in drawn.partition('aria-pressed="true"')[0].rpartition("<button")[2]


def test_nothing_foreign_enters_the_page_as_html() -> None:
    one = [standing("lime", "comprehensiveness", None, skipped={EVIL: 2}, model=EVIL)]
    [board] = boards(one, ["lime"], ["comprehensiveness"])
    drawn = board_html(board, {"lime": EVIL}, "")
    assert "<img" not in drawn
    assert drawn.count("&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;") >= 4


def test_what_has_no_value_says_why_and_stands_last() -> None:
    why = {"no unit is marked.": 3, "too long.": 1}
    given = [standing("lime", "gt_overlap", None, skipped=why), standing("random", "gt_overlap", 0.2)]
    [board] = boards(given, ["lime", "random"], ["gt_overlap"])
    assert board.sort("gt_overlap") == ["random", "lime"]
    assert cell_text(given[0], "LIME") == (
        "LIME, overlap with the marks: no example has a value. Left out: 3: no unit is marked; 1: too long."
    )
    assert cells(board_html(board, TITLES, ""))["lime", "gt_overlap"][0] == ""


def test_seconds_have_neither_rank_nor_color_nor_interval_and_say_so() -> None:
    given = [standing("lime", "seconds", 2.0), standing("random", "seconds", 0.5)]
    [board] = boards(given, ["lime", "random"], ["seconds"])
    drawn = cells(board_html(board, TITLES, ""))
    assert drawn["random", "seconds"] == ("", f"Random, seconds: 0.5 per example, {BY_BATCH}, n = 4.")
    assert board.sort("seconds") == ["random", "lime"]


def test_a_mean_of_equal_values_does_not_feign_an_interval() -> None:
    told = cell_text(standing("lime", "plausibility_auc", 1.0, interval=(1.0, 1.0)), "LIME")
    assert told == f"LIME, plausibility, auc: 1 from 0 to 1, {EQUAL}, n = 4."


def test_a_board_a_model_and_a_dash_where_nothing_was_measured() -> None:
    given = [standing("lime", "complexity", 1.0, model=name) for name in ("a", "b")]
    first, second = boards(given, ["lime", "random"], ["complexity"])
    assert (first.model, second.model) == ("a", "b")
    assert "–" in board_html(first, TITLES, "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["random", "lime", "ensemble_top3", "kernel_shap", "integrated_gradients", "gradient"],
         ["lime", "kernel_shap", "integrated_gradients", "ensemble_top3", "gradient", "random"]),
        (["ensemble_all", "random"], ["ensemble_all", "random"]),
        (["gradient", "lime"], ["gradient", "lime"]),
    ],
)  # fmt: skip
def test_ensembles_stand_after_their_members_and_random_last(given: list[str], expected: list[str]) -> None:
    assert group_ensembles(given) == expected


def test_costs_are_colored_by_factors() -> None:
    values = {"gradient": 1.0, "lime": 100.0, "random": 10.0}
    given = [standing(method, "evaluations", value) for method, value in values.items()]
    [board] = boards(given, list(values), ["evaluations"])
    found = cells(board_html(board, TITLES, ""))
    assert [found[method, "evaluations"][0] for method in values] == [f"m{STEPS}", "", f"m{STEPS // 2}"]


def test_a_method_whose_maps_order_nothing_is_told_beside_its_name() -> None:
    given = [*GIVEN[:1], standing("gradient", "comprehensiveness", None, skipped={CONSTANT_MAPS: 4}), *GIVEN[2:]]
    [board] = boards(given, METHODS, METRICS)
    drawn = board_html(board, TITLES, "")
    assert f'<p>Gradient</p><p class="xg-small">{NO_ORDER}</p>' in drawn
    assert drawn.count(NO_ORDER) == 1
    assert NO_ORDER not in html()


def test_the_columns_shown_are_the_chosen_ones_that_there_are_else_all() -> None:
    metrics = ["comprehensiveness", "gt_overlap"]
    found = boards([standing("lime", metric, 0.5) for metric in metrics], ["lime"], metrics)
    [fewer], [same] = (
        select_columns(found, EvaluationView(columns=chosen)) for chosen in (("gt_overlap", "seconds"), ("seconds",))
    )
    assert (fewer.metrics, same.metrics) == (("gt_overlap",), tuple(metrics))
    assert sort_metric(fewer, EvaluationView(sort="comprehensiveness")) == "gt_overlap", (
        "what is not shown sorts nothing"
    )
    assert sort_metric(same, EvaluationView(sort="gt_overlap")) == "gt_overlap"


def with_levels(**same: str) -> list[Board]:
    """A board of these metrics: by each, both methods tie, are level, differ, or have no value."""
    marks = {"tie": (True, False), "level": (False, True), "differ": (False, False), "none": (False, False)}
    given = [standing("lime", id, None if how == "none" else 0.5, best=how != "none") for id, how in same.items()]
    given += [standing("gradient", id, None if how == "none" else 0.4, *marks[how]) for id, how in same.items()]
    return boards(given, ["lime", "gradient"], list(same))


def test_columns_by_which_no_method_differs_are_hidden_with_the_reason() -> None:
    found = with_levels(comprehensiveness="level", sufficiency="differ", gt_overlap="level", gt_share="tie",
                        complexity="none")  # fmt: skip
    assert indistinct_columns(found) == {
        "gt_overlap": "0 of 2 methods differ significantly from the best",
        "gt_share": "all 2 methods tie",
        "complexity": "no values",
    }
    assert default_columns(found, EvaluationView()) == ("comprehensiveness", "sufficiency"), "the first is never hidden"
    [board] = select_columns(found, EvaluationView())
    assert hidden_text(found, board.metrics) == (
        "Hidden: Overlap with the marks (0 of 2 methods differ significantly from the best); Share of the marks found "
        "(all 2 methods tie); Complexity (no values). Choose them under Columns."
    )
    assert hidden_text(found, ("comprehensiveness",)).endswith("; 1 other column. Choose them under Columns.")
    assert hidden_text(found, found[0].metrics) == ""


def test_what_a_link_or_a_plan_names_is_shown() -> None:
    found = with_levels(comprehensiveness="differ", gt_overlap="tie", gt_share="tie")
    assert default_columns(found, EvaluationView(sort="gt_share")) == ("comprehensiveness", "gt_share")
    point = ("m", "lime", "gt_overlap", "", "", "")
    assert default_columns(found, EvaluationView(point=point)) == ("comprehensiveness", "gt_overlap")
    assert default_columns(found, EvaluationView(), found[0].metrics) == found[0].metrics
    [board] = select_columns(found, EvaluationView(columns=("gt_overlap",)))
    assert board.metrics == ("gt_overlap",)


def test_of_many_columns_the_most_common_come_first() -> None:
    many = ("sufficiency", "mean_rank_pct", "token_f1", "recall_at_k", *COLUMNS[2:], "comprehensiveness")
    found = with_levels(**dict.fromkeys(many, "differ"))
    assert set(default_columns(found, EvaluationView())) == set(COLUMNS)
    assert len(COLUMNS) == MOST_COLUMNS


def test_added_methods_without_a_value_are_not_listed() -> None:
    plan = EvaluationPlan(("m",), "d", ("lime", "ensemble_all"))
    given = [standing("gradient", "comprehensiveness", None), standing("gradient", "evaluations", 1.0),
             standing("gradient_x_input", "comprehensiveness", 0.1)]  # fmt: skip
    assert listed_methods(plan, given) == ["lime", "ensemble_all", "gradient_x_input"]
    asked = EvaluationPlan(("m",), "d", ("gradient",))
    assert listed_methods(asked, given[:2]) == ["gradient"], "what was chosen is listed, with the reason"


def test_both_operators_stand_beside_each_other_by_the_first_ones_order_and_decimals() -> None:
    first = {(EMBEDDED, "lime", "sufficiency"): [0.1, 0.2], (EMBEDDED, "gradient", "sufficiency"): [0.3, 0.4]}
    second = {(EMBEDDED, "lime", "sufficiency"): [0.5, 0.7], (EMBEDDED, "gradient", "sufficiency"): ["no order"] * 2}
    found = by_two_operators(first, second)
    html = operators_html(found, boards(found.standings, ("gradient", "lime"), ["sufficiency"]), {"lime": "<LIME>"})
    rows = [re.sub("<[^>]+>", " ", row).split() for row in html.split("<tr>")[2:]]
    assert rows == [
        ["Method", "mask", "delete"], ["&lt;LIME&gt;", "0.150", "★", "0.600", "★"], ["gradient", "0.350", "–"],
    ]  # fmt: skip
    assert "Sufficiency ↓" in html
    assert operators_html(by_hand(first), boards(found.standings, ("lime",), ["sufficiency"]), {}) == ""
    curves = {(EMBEDDED, "lime", "with_top", 50): [0.1, 0.2]}
    assert operators_html(by_two_operators(curves, curves), [], {}) == ""


def test_the_metric_that_a_method_is_tuned_on_is_marked() -> None:
    given = [
        standing("bee", "comprehensiveness", 0.5, best=True),
        standing("lime", "comprehensiveness", 0.4),
        standing("bee", "sufficiency", 0.2),
        standing("lime", "sufficiency", 0.1, best=True),
    ]
    [board] = boards(given, ["bee", "lime"], METRICS, tuned={"bee": "comprehensiveness"})
    found = board_html(board, {"bee": "BEE"}, "comprehensiveness")
    assert found.count("†") == 1
    assert "<i>★†</i>" in found
    told = {(method, metric): text for _, method, metric, text in CELL.findall(found)}
    assert told["bee", "comprehensiveness"].endswith("; best; tuned on this metric.")
    assert not [text for cell, text in told.items() if "tuned" in text and cell != ("bee", "comprehensiveness")]
    assert "† tuned on this metric" in legend([board])
    assert "†" not in legend([dataclasses.replace(board, metrics=("sufficiency",))]), "its column is not shown"
    assert "†" not in legend(boards(given, ["lime"], METRICS))
