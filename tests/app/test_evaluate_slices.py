"""Slices on the page: each example counts once, whatever the number of models, whose names are written as they are."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

MODELS = ["t5-mini_marked", "bert*marked"]
SECONDS = 120


def _page() -> None:
    from components.evaluate.view import EvaluationView, ViewedEvaluation
    from components.evaluate.views import _slices
    from components.experiment.state import ExperimentState
    from tests.unit.evaluation.by_hand import Found, Key, by_hand, fact

    models, labels = ("t5-mini_marked", "bert*marked"), ("bad", "good", "good")
    values: dict[Key, Found] = {(model, "lime", "comprehensiveness"): [0.1, 0.2, 0.4] for model in models}
    values |= {(model, "lime", "without_top", percent): [0.9, 0.5, 0.4] for model in models for percent in (0, 50)}
    facts = [fact(place, label, model=model) for model in models for place, label in enumerate(labels)]
    evaluation = by_hand(values, facts)
    view = EvaluationView(view="slices", inside="curves")
    state = ExperimentState(kind="text", plan=evaluation.plan, view=view)
    _slices(ViewedEvaluation(state, evaluation, {"lime": "LIME"}, {}))


def test_a_slice_says_how_many_examples_the_model_drawn_has() -> None:
    page = AppTest.from_function(_page, default_timeout=SECONDS).run()
    assert not page.exception
    heads = [one.value for one in page.markdown if "example" in one.value]
    assert heads == ["**bad**, 1 example", "**good**, 2 examples"]


def test_names_of_models_are_no_markdown_where_they_are_chosen() -> None:
    page = AppTest.from_function(_page, default_timeout=SECONDS).run()
    [box] = [one for one in page.selectbox if one.label == "Model"]
    assert box.options == MODELS
