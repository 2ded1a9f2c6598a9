"""What leads from a chart without a mouse: its numbers as a list, the methods drawn, models to fill in."""

from __future__ import annotations

from components.charts.frame import ChartFrame, blank_chart
from components.evaluate.charts import cost_chart, removal_chart, slice_chart
from components.evaluate.chosen import Chosen
from components.evaluate.fill import FILLS, fillable
from components.evaluate.lead import places_of
from components.evaluate.look import Look, Point
from components.evaluate.state import EvaluateState, usual
from engine.models.catalog import card, embedded_models
from tests.unit.evaluation.by_hand import by_hand, fact

FRAME = ChartFrame({"lime": "LIME", "random": "Random"})
FOUND = by_hand(
    {
        **{("m", "lime", "without_top", percent): [1.0, 1 - percent / 100] for percent in (0, 50)},
        ("m", "lime", "complexity"): [1, 2],
        ("m", "lime", "evaluations"): [900, 1100],
        ("m", "random", "complexity"): [3, 4],
    },
    [fact(0, "good"), fact(1, "bad")],
)


def looking(**look: tuple[str, ...]) -> Chosen:
    state = EvaluateState(**{**vars(usual("text")), "look": Look(**look)})  # type: ignore[arg-type]
    return Chosen(state, FOUND, FRAME.titles, {})


def test_each_point_of_a_chart_can_be_chosen_from_a_list() -> None:
    assert places_of(removal_chart(FOUND, FRAME)) == [
        (Point("m", "lime", "without_top", percent="0"), "LIME, 0 % of the tokens: 1"),
        (Point("m", "lime", "without_top", percent="50"), "LIME, 50 % of the tokens: 0.75"),
    ]
    assert places_of(cost_chart(FOUND, FRAME, "complexity")) == [(Point("m", "lime", "complexity"), "LIME: 1.5")]
    bars = places_of(slice_chart(FOUND, FRAME, "complexity"))
    assert [point.slice for point, _ in bars] == ["bad", "bad", "good", "good"]
    assert [words for _, words in bars] == ["LIME, bad: 2", "Random, bad: 4", "LIME, good: 1", "Random, good: 3"]
    assert places_of(blank_chart(FRAME)) == []


def test_the_methods_that_are_drawn_are_those_that_are_there() -> None:
    assert looking().shown is None
    assert looking(only=("random", "nonsense")).shown == ("random",)
    assert looking(only=("random", "lime")).shown is None
    assert looking(only=("nonsense",)).shown is None


def test_what_is_filled_in_comes_with_the_project_and_was_trained_on_marks() -> None:
    known = embedded_models()
    for fill in FILLS.values():
        assert len(fillable(fill, known)) >= fill.least
        for model in fillable(fill, known):
            assert card(model)["settings"]["dataset"].startswith("reviews-marked")
    assert fillable(FILLS["scaling"], ["t5-marked", "bert-marked"]) == []
