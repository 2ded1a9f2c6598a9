"""The Concepts page: the answer, the chart and the numbers are those of the result; the command repeats the plan."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.concepts.page import SESSION, answer_html, findings_table, layers_chart
from components.experiment.page import command_line
from engine import shipped
from engine.concepts.experiment import ConceptScores
from engine.concepts.plan import CONCEPTS, ConceptsPlan
from engine.experiments.run import finished
from tests.alerts import errors
from tests.project import ROOT

pytestmark = pytest.mark.usefixtures("own_home")
LARGEST_FILE = 20_000
NOUNS = ("film", "book", "food", "plot", "hotel", "dish", "room", "trip", "cast", "menu")
TEXTS = "\n".join(f"I did not like the {noun}." for noun in NOUNS)


def scores(accuracy: float, own: float = 0.9) -> ConceptScores:
    """Two layers and one class; the concept stands out at layer 3 alone."""
    generator = np.random.default_rng(0)
    random = generator.uniform(0.3, 0.7, (1, 2, 1, 20))
    scores = np.array([[[random[0, 0, 0, :10]], [own + generator.uniform(-0.05, 0.05, 10)]]])
    return ConceptScores(
        "a-model", "reviews", tuple(range(20)), ("<b>negation",), (50,), (2, 3), ("good",), (20,), "label", 200, scores,
        np.full((1, 2, 10), accuracy), random, np.full((1, 2, 20), 0.5), {}, complete=True,
    )  # fmt: skip


def test_the_answer_names_concept_class_and_layer() -> None:
    found = scores(0.9)
    first, second = found.findings
    assert (first.significant, second.significant) == (False, True)
    answer = answer_html(found)
    assert "“<bdi>&lt;b&gt;negation</bdi>” raises <bdi>good</bdi> in <bdi>a-model</bdi> at layer 3: score" in answer
    assert f"{second.score:.2f} against {second.random:.2f}" in answer
    assert "lowers" in answer_html(scores(0.9, own=0.1))
    assert "no significant effect" not in answer
    both = dataclasses.replace(
        found, concepts=(*found.concepts, "films"), sizes=(50, 50), accuracy=np.full((2, 2, 10), 0.9),
        scores=np.concatenate([found.scores, found.random_scores[..., :10]]),
        random_scores=np.repeat(found.random_scores, 2, axis=0), random_accuracy=np.full((2, 2, 20), 0.5),
    )  # fmt: skip
    assert "“<bdi>films</bdi>” has no significant effect." in answer_html(both), "the control is named, too"
    table = findings_table(found.findings)
    assert table["Result"].tolist() == ["not significant", "significant"]
    drawn = layers_chart(table, "light").to_dict()
    [values] = drawn["datasets"].values()
    assert [row["Score"] for row in values] == table["Score"].tolist()


def test_vectors_that_separate_nothing_are_no_finding() -> None:
    found = scores(0.55)
    assert not any(own.significant for own in found.findings)
    answer = answer_html(found)
    assert "No concept matters significantly" in answer
    assert "cannot be tested: no vector separates its examples from random ones" in answer
    assert findings_table(found.findings)["Result"].unique().tolist() == ["separates nothing"]


def test_classes_without_examples_are_no_answer() -> None:
    empty = dataclasses.replace(scores(0.9), scores=np.full((1, 2, 1, 10), np.nan))
    answer = answer_html(empty)
    assert "No class has 5 examples to score. Raise the number of examples." in answer
    assert "cannot be tested" not in answer


@pytest.mark.parametrize("kind", CONCEPTS.opens_with)
def test_it_opens_finished_with_the_shipped_numbers(kind: str) -> None:
    result = finished(CONCEPTS.opens_with[kind])
    assert result is not None, "run python -m engine.shipped.make"
    [found] = result.models
    assert found.complete
    assert found.concepts == CONCEPTS.opens_with[kind].concepts
    assert shipped.CONCEPTS.stat().st_size < LARGEST_FILE
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).switch_page("pages/concepts.py")
    page.query_params["input"] = kind
    page.run()
    assert not page.exception
    assert answer_html(found) in [block.proto.body for block in page.get("html")]
    assert not [button for button in page.button if button.label == "Concepts"], "nothing is left to start"


def test_the_page_says_what_is_missing_and_cites_the_command() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).switch_page("pages/concepts.py").run()
    assert not page.exception
    assert not errors(page)
    page.text_input(key=SESSION.key("text", "concepts")).set_value("")
    page.text_area(key=SESSION.key("text", "texts")).set_value("one\ntwo").run()
    assert [error for error in errors(page) if "at least 10 examples, got 2" in error]
    page.text_area(key=SESSION.key("text", "texts")).set_value(TEXTS).run()
    assert not errors(page)
    assert page.query_params["texts"] == TEXTS
    plan = ConceptsPlan(("reviews-minilm",), "reviews", ("reviews:slice=a,rows=0-19",), layers=(1, 2))
    assert command_line(plan) == (
        "exegesis concepts --models reviews-minilm --dataset reviews --concepts reviews:slice=a,rows=0-19 --layers 1,2 "
        "--out rows.csv"
    )
    assert command_line(dataclasses.replace(plan, runs=4)).endswith("--out rows.csv")
