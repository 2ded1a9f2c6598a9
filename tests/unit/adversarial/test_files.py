"""Before and after as files that stand alone, and the means of several models and of methods asked as one chart."""

from __future__ import annotations

import dataclasses
import io
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from components.adversarial.before_after import build_maps
from components.adversarial.descriptions import cite_attack
from components.adversarial.experiment_panel import ExperimentMeans, axis_span, examples_of_bar, means_chart
from components.adversarial.export import ExampleExport, example_html, example_png, example_svg
from components.adversarial.state import AdversarialState, ManyExamples
from components.charts.frame import ChartFrame
from components.inputs.datasets import ChosenPicture
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from engine.attacks.experiment_result import AttackExperimentResult, AttackMetricKey, AttackRow
from engine.attacks.plan import AttackPlan
from engine.registry import all_explainers, explainer
from engine.request import Picture
from tests.unit.adversarial.making import TEXT, picture_attack, text_attack

METHODS = all_explainers("text")
PLAN = AttackPlan(("a", "b"), "reviews", ("gradient_l2", "gradient_x_input"), examples=1,
                  transfer=("gradient_l2", "occlusion"))  # fmt: skip
STATE = AdversarialState(kind="text", focus=TextFocus("m", TEXT.text, index=3))
PICTURE = Picture(np.zeros((2, 2, 3), np.uint8))


def kept_text() -> ExampleExport:
    results = [text_attack(), text_attack("constrained")]
    maps = build_maps(results, explainer("gradient_x_input", "text"), TEXT)
    return ExampleExport(STATE, results, maps, None, METHODS)


def kept_picture() -> ExampleExport:
    result, methods = picture_attack(), all_explainers("image")
    assert result.picture is not None
    maps = build_maps([result], methods["gradient_x_input"], PICTURE)
    focus = PictureFocus("m", chosen=ChosenPicture(PICTURE))
    return ExampleExport(AdversarialState(kind="image", focus=focus), [result], maps, result.picture.before, methods)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


@pytest.mark.parametrize("kept", [kept_text(), kept_picture()], ids=["text", "picture"])
def test_the_page_stands_alone_and_says_how_to_make_it_again(kept: ExampleExport) -> None:
    drawing, elements = example_html(kept), Elements()
    elements.feed(drawing)
    assert not {"script", "link", "img", "iframe"} & set(elements.seen)
    assert "<h1>Attack on Gradient x input of m</h1>" in drawing
    assert drawing.count("<section class") == 1 + len(kept.results)
    assert "<b>Gradient x input can be fooled" in drawing
    assert "exegesis attack --models m" in drawing
    assert "--index" in drawing


def test_the_maps_of_a_text_are_a_picture_of_lines_and_letters() -> None:
    drawing = example_svg(kept_text())
    assert drawing.startswith("<?xml")
    for title in ("Before", "After, unconstrained", "After, constrained"):
        assert title in drawing
    assert drawing.count(">film</text>") == 3


def test_a_broken_constraint_is_said_in_files_too() -> None:
    results = [text_attack("constrained", positive=0.6)]
    kept = ExampleExport(
        STATE, results, build_maps(results, explainer("gradient_x_input", "text"), TEXT), None, METHODS
    )
    for drawing in (example_html(kept), example_svg(kept)):
        assert "✗ Constraint broken, not fooled:" in drawing


def test_the_maps_of_a_picture_are_a_png() -> None:
    with Image.open(io.BytesIO(example_png(kept_picture()))) as drawing:
        assert drawing.format == "PNG"
        assert drawing.width > 3 * 256  # the picture, before, after


def metric_key(model: str, method: str, attacked: str, objective: str = "unconstrained") -> AttackMetricKey:
    return AttackMetricKey(model, "reviews", method, "rank_change", objective, attacked)


FOUND = AttackExperimentResult(
    PLAN,
    tuple(
        AttackRow(metric_key(model, method, attacked), 0, value)
        for model, start in (("a", 0.1), ("b", 0.5))
        for method, attacked, value in (
            ("gradient_l2", "gradient_l2", start), ("gradient_x_input", "gradient_x_input", start + 0.1),
            ("occlusion", "gradient_l2", start + 0.2), ("gradient_l2", "gradient_x_input", start + 0.3),
        )
    ),
    (),
    (),
)  # fmt: skip


def means(attacked: str = "") -> ExperimentMeans:
    state = dataclasses.replace(STATE, many=ManyExamples(of=attacked))
    return ExperimentMeans(state, FOUND, ChartFrame({id: method.title for id, method in METHODS.items()}))


def test_a_file_holds_the_bars_of_all_models() -> None:
    drawing = means().chart().to_dict()
    bars = next(one for one in drawing["layer"] if one["mark"]["type"] == "bar")
    rows = drawing["datasets"][bars.get("data", drawing.get("data", {}))["name"]]
    assert [(row["group"], row["method"], row["value"]) for row in rows] == [
        ("a, unconstrained", "gradient_l2", 0.1), ("a, unconstrained", "gradient_x_input", 0.2),
        ("b, unconstrained", "gradient_l2", 0.5), ("b, unconstrained", "gradient_x_input", 0.6),
    ]  # fmt: skip
    assert "a, b, reviews" in means().caption().title


def test_bars_of_methods_that_were_asked_are_those_after_one_attack() -> None:
    assert means().methods_with_baselines == ("gradient_l2", "gradient_x_input")
    asked = means("gradient_x_input")
    assert asked.methods_with_baselines == ("gradient_x_input", "gradient_l2", "occlusion")
    assert [(score.key.method, score.value) for score in asked.model_scores("a")] == [
        ("gradient_x_input", 0.2), ("gradient_l2", 0.4)
    ]  # fmt: skip
    assert [row.value for row in examples_of_bar(FOUND, ("a", "gradient_l2", "unconstrained"), "rank_change")] == [0.1]
    after = examples_of_bar(FOUND, ("a", "gradient_l2", "unconstrained"), "rank_change", "gradient_x_input")
    assert [row.value for row in after] == [0.4]
    span = axis_span(asked.scores)
    assert means_chart(
        asked.model_scores("a"), asked.frame, asked.methods_with_baselines, PLAN.objectives, span
    ).to_dict()["layer"]
    assert means("lime").attacked == "", "a link may name what was not attacked"


def test_a_citation_names_every_setting_but_the_objective() -> None:
    result = dataclasses.replace(text_attack(), attack={"objective": "unconstrained", "epsilon": 0.5, "steps": 100})
    assert cite_attack(result).endswith(", seed 0; epsilon = 0.5, steps = 100.")
