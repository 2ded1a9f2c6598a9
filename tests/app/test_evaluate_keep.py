"""Charts of the Evaluate page are offered as files that say what was evaluated, and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.evaluate import charts
from components.evaluate.charts import EvaluationChart
from components.evaluate.page import ROWS_HELP
from engine.evaluation.experiment import evaluate
from tests.app.test_evaluate_page import opened
from tests.tiny import save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("own_home")
METHODS, METRICS = ("gradient_l2", "random"), ("comprehensiveness", "without_top")


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """What a link asks for, evaluated."""
    model = str(save_checkpoint("bert", tmp_path / "tiny"))
    data = written(tmp_path / "reviews.jsonl", REVIEWS)
    evaluate([model], data, METHODS, METRICS, examples=6)
    return {"model": model, "data": data, "method": METHODS, "metric": METRICS, "examples": "6"}


def labels(page: AppTest) -> list[str]:
    return [button.proto.label for button in page.get("download_button")]


def test_each_chart_is_offered_as_every_file(asked: dict[str, Any]) -> None:
    page = opened(**asked, view="curves")
    assert labels(page)[:4] == ["SVG", "HTML", "Vega-Lite, JSON", "Numbers, CSV"]
    assert any(one.proto.component_name.endswith("png_button") for one in page.get("bidi_component"))


def test_a_file_says_what_was_evaluated_and_by_which_command(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[EvaluationChart] = []
    monkeypatch.setattr(charts, "chart_file_buttons", kept.append)
    page = opened(**asked, view="slices", inside="curves", slice="correctness")
    parts = {one.frame.slice: one for one in kept}
    right = {fact.example for fact in kept[0].viewed.evaluation.facts if fact.right}
    assert set(parts) == {name for name, there in (("right", right), ("wrong", len(right) < 6)) if there}
    slice, one = next(iter(parts.items()))
    caption, n = one.caption(), len(right) if slice == "right" else 6 - len(right)
    assert caption.title == f"Slices, {asked['model']}, {asked['data']}, {slice}"
    assert f"on {asked['data']} with {asked['model']}, seed 0" in caption.notes[0]
    assert caption.notes[1].startswith(f"{n} example")
    assert caption.commands == [code.value for code in page.code]
    assert asked["model"] in one.spec()


def test_the_rows_say_what_a_row_is(asked: dict[str, Any]) -> None:
    helps = {button.proto.label: button.proto.help for button in opened(**asked).get("download_button")}
    assert helps["Rows, CSV"] == helps["Rows, JSON"] == ROWS_HELP
