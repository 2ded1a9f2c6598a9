"""What leads from a chart without a mouse: its numbers as a list, the methods drawn, models to fill in."""

from __future__ import annotations

from components.charts.frame import ChartFrame, blank_chart
from components.evaluate.charts import CostChart, RemovalChart, SliceChart, list_points
from components.evaluate.view import EvaluationView, ScorePoint, ViewedEvaluation
from components.evaluate.views import SUGGESTIONS, available_models
from components.experiment.state import ExperimentState
from engine.evaluation.plan import EVALUATE
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


def looking(**look: tuple[str, ...]) -> ViewedEvaluation:
    state = ExperimentState(kind="text", plan=EVALUATE.opens_with["text"], view=EvaluationView(**look))  # type: ignore[arg-type]
    return ViewedEvaluation(state, FOUND, FRAME.titles, {})


def test_each_point_of_a_chart_can_be_chosen_from_a_list() -> None:
    assert list_points(RemovalChart("m").chart(FOUND, FRAME)) == [
        (ScorePoint("m", "lime", "without_top", percent="0"), "LIME, 0% of the tokens: 1"),
        (ScorePoint("m", "lime", "without_top", percent="50"), "LIME, 50% of the tokens: 0.75"),
    ]
    cost = CostChart("evaluations", "complexity", "m").chart(FOUND, FRAME)
    assert list_points(cost) == [(ScorePoint("m", "lime", "complexity"), "LIME: 1.5")]
    bars = list_points(SliceChart("complexity", "label", "m").chart(FOUND, FRAME))
    assert [point.slice for point, _ in bars] == ["bad", "bad", "good", "good"]
    assert [words for _, words in bars] == ["LIME, bad: 2", "Random, bad: 4", "LIME, good: 1", "Random, good: 3"]
    assert list_points(blank_chart(FRAME)) == []


def test_the_methods_that_are_drawn_are_those_that_are_there() -> None:
    assert looking().drawn_methods is None
    assert looking(only=("random", "nonsense")).drawn_methods == ("random",)
    assert looking(only=("random", "lime")).drawn_methods is None
    assert looking(only=("nonsense",)).drawn_methods is None


def test_what_is_filled_in_comes_with_the_project_and_was_trained_on_marks() -> None:
    known = embedded_models()
    for fill in SUGGESTIONS.values():
        assert len(available_models(fill, known)) >= fill.least
        for model in available_models(fill, known):
            assert card(model)["settings"]["dataset"].startswith("reviews-marked")
    assert available_models(SUGGESTIONS["scaling"], ["t5-marked", "bert-marked"]) == []
