"""A method that is tuned on a metric is marked there, in words and in the table, and scored on the others."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from engine.cli.evaluate import sections
from engine.evaluation.experiment import evaluate
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.metrics.catalog import is_favored
from tests.explaining import CHEAP, checkpoint
from tests.unit.evaluation.making import REVIEWS, written

METRICS = ("comprehensiveness", "sufficiency")


@pytest.mark.usefixtures("home")
def test_the_note_and_the_mark_name_the_metric(tmp_path: Path) -> None:
    reviews, bert = written(tmp_path / "reviews.jsonl", REVIEWS[:3]), str(checkpoint("bert"))
    made = evaluate([bert], reviews, ["bee"], METRICS, params={"bee": CHEAP["bee"]})
    sentence = "BEE (tuned baseline) is tuned on comprehensiveness, which favors it there."
    assert f"{sentence} Judge it by the other metrics." in made.notes
    assert {one.score.metric for one in made.standings if one.score.method == "bee"} == set(METRICS)
    text = io.StringIO()
    Console(file=text, width=200).print(*sections(made))
    [row] = [
        line
        for line in text.getvalue().splitlines()
        if line.startswith(" bee") or (" bee " in line and "compr" in line)
    ]
    assert "tuned" in row
    assert sentence in text.getvalue()
    assert sum("tuned" in line for line in text.getvalue().splitlines()) == 2, "the row and the note"

    alone = evaluate([bert], reviews, ["bee"], METRICS[:1], params={"bee": CHEAP["bee"]})
    assert f"{sentence} No other metric is measured: add one to judge it." in alone.notes
    other = evaluate([bert], reviews, ["bee"], METRICS[1:], params={"bee": CHEAP["bee"]})
    assert not [note for note in other.notes if "tuned" in note], "it is not tuned on what is measured"


def test_the_plan_knows_by_its_parameters() -> None:
    plan = EvaluationPlan(("reviews-minilm",), "reviews", ("lime", "bee"), params={"bee": {"metric": "with_top"}})
    assert plan.tuned == {"bee": "with_top"}
    assert EvaluationPlan(("reviews-minilm",), "reviews", ("lime",)).tuned == {}
    aggregate = EvaluationPlan(("reviews-minilm",), "reviews", ("least_complex",))
    assert aggregate.tuned == {"least_complex": "complexity"}
    assert set(aggregate.methods_with_baselines) == {
        "least_complex", "lime", "kernel_shap", "integrated_gradients", "random",
    }  # fmt: skip


def test_a_curve_favors_its_mean_too() -> None:
    assert is_favored("with_top", "sufficiency")
    assert is_favored("without_top", "comprehensiveness")
    assert is_favored("complexity", "complexity")
    assert not is_favored("with_top", "comprehensiveness")
    assert not is_favored(None, "sufficiency")


def test_pages_open_as_before() -> None:
    """Shipped results are of these plans: a new ensemble must not join them."""
    assert not {"bee", "least_complex", "least_sensitive"} & {
        method for plan in EVALUATE.opens_with.values() for method in plan.methods
    }
    assert not {"bee", "least_complex", "least_sensitive"} & {
        method for methods in EVALUATE.method_sets.values() for method in methods
    }
