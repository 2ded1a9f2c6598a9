"""The Suppressor page: the answer follows the correlation, tables, texts and pictures, files, link and command."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import components.suppressor.page as panel
from components.suppressor import state as page_state
from components.suppressor.charts import (
    MEASURED_AT,
    TITLES,
    decision_line,
    measured_table,
    scatter_chart,
    share_chart,
    share_curves,
    theory_table,
)
from components.suppressor.page import (
    answer,
    checks_text,
    export_rows,
    gaussian_table,
    result_json,
    trained_text,
    verdict_table,
)
from components.suppressor.state import SuppressorState, key
from engine import shipped
from engine.errors import ExegesisError
from engine.suppressor.criterion import CREDITS, NEITHER, PASSES
from engine.suppressor.gaussian import GaussianProblem
from engine.suppressor.measurement import GaussianResult, measure_gaussian
from engine.suppressor.scene import cached_scene_result
from engine.suppressor.text import cached_text_result
from engine.suppressor.trained import ProblemChecks, TrainedResult
from engine.table_io import to_csv
from tests.alerts import errors, html_of
from tests.project import ROOT

SECONDS = 120

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**link: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/suppressor.py")
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


@pytest.fixture(scope="module", name="result")
def _result() -> GaussianResult:
    return measure_gaussian(GaussianProblem(0.8))


@pytest.fixture(name="trained")
def _trained() -> list[TrainedResult]:
    both = [cached_text_result(), cached_scene_result()]
    assert None not in both, "run python -m engine.suppressor.ship"
    return [one for one in both if one is not None]


def test_the_answer_follows_the_correlation_and_so_do_link_and_command() -> None:
    page = opened()
    assert page.subheader[0].value == (
        "At correlation 0.80, 15 of 18 methods credit the suppressor. PATTERN, PatternAttribution and FIRM do not."
    )
    assert "exegesis suppressor" in [one.value for one in page.code]
    page.slider(key=key("correlation")).set_value(0.0).run()
    assert page.subheader[0].value.startswith("At correlation 0.00, none of 18 methods credits the suppressor")
    assert page.query_params["correlation"] in ("0.0", ["0.0"])
    assert "exegesis suppressor --correlation 0" in [one.value for one in page.code]
    assert [one.value for one in page.subheader][1:] == [
        "Measured and theoretical shares", "Trained models", "Which methods pass", "Export",
    ]  # fmt: skip


def test_a_link_reopens_the_problem_and_says_what_is_wrong_in_it() -> None:
    page = opened(correlation="-0.5", scale="1.5", suppressor_scale="0.7", seed="3")
    assert page.subheader[0].value.startswith("At correlation −0.50, 15 of 18")
    expected = "exegesis suppressor --correlation -0.5 --scale 1.5 --suppressor-scale 0.7 --seed 3"
    assert expected in [one.value for one in page.code]
    wrong = opened(correlation="7", scale="x")
    assert "correlation" in " ".join(errors(wrong))
    assert wrong.slider(key=key("correlation")).value == 0.8


def test_shipped_verdicts_on_texts_and_pictures_are_drawn_without_a_button() -> None:
    page = opened()
    assert not [one for one in page.button if "Train the model" in one.label]
    text = html_of(page)
    assert "<bdi>Grad-CAM</bdi>" in text
    assert "all scores are 0" in text, "the gradient's sum is zero by construction on the text model"
    assert sum("methods credit the suppressor" in one.value for one in page.markdown) == 2


def test_without_a_result_a_button_computes_it_and_a_failure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ExegesisError("out of memory.")

    monkeypatch.setattr(panel, "run_cached", fail)
    with shipped.ignore_entries():
        page = opened()
        assert "Not computed yet with the current methods. It takes about a minute." in [c.value for c in page.caption]
        page.button(key=key("train.text")).click().run()
    assert "out of memory." in " ".join(errors(page))
    assert "Export" in [one.value for one in page.subheader], "what follows is drawn"


def test_the_answer_names_the_others_in_words(result: GaussianResult) -> None:
    passing = [one for one in result.methods if one.measured.verdict == PASSES]
    failing = [one for one in result.methods if one.measured.verdict == CREDITS]

    def of(*methods: object) -> str:
        return answer(GaussianResult(result.problem, 0, tuple(methods)))  # type: ignore[arg-type]

    assert of(*failing[:2]) == "At correlation 0.80, all 2 methods credit the suppressor."
    assert of(failing[0], passing[0]).endswith("1 of 2 methods credit the suppressor. PATTERN does not.")


def test_the_share_of_a_point_is_that_of_its_line() -> None:
    curves = share_curves(1.0, 1.0, 0)
    assert set(curves.theory["form"]) == set(curves.measured["form"]) == set(TITLES)
    assert set(curves.measured["correlation"]) == set(MEASURED_AT)
    lines = {form: own.set_index("correlation")["share"] for form, own in curves.theory.groupby("form")}
    for row in curves.measured.itertuples():
        near = lines[row.form]
        beside = near[abs(near.index - row.correlation) <= 0.0251]  # the lines are drawn in steps of 0.025
        assert min(abs(beside - row.share)) < 0.012, row.method


def test_charts_hold_both_classes_the_line_and_the_chosen_correlation(result: GaussianResult) -> None:
    problem = result.problem
    line = decision_line(problem, (4.5, 3.5))
    assert (line["x1"] * problem.weights[0] + line["x2"] * problem.weights[1]).abs().max() < 1e-9
    points = scatter_chart(problem, 0, "light").to_dict()
    assert [layer["mark"]["type"] for layer in points["layer"]] == ["point", "line"]
    drawn = share_chart(problem, share_curves(1.0, 1.0, 0), "dark").to_dict()
    assert [layer["mark"]["type"] for layer in drawn["layer"]] == ["rule", "line", "point"]
    assert max(map(len, TITLES)) <= len("Weight w (gradients, counterfactuals)"), "more is cut off on a telephone"
    assert theory_table(1.0, 1.0, 0)["share"].between(0, 0.5).all()
    assert not measured_table([result]).empty


def test_tables_and_files_hold_every_method_of_every_problem(
    result: GaussianResult, trained: list[TrainedResult]
) -> None:
    table = verdict_table(result, trained).set_index("Method")
    assert table.loc["FIRM"].str.contains("passes").all()
    assert table.loc["LIME"].str.contains("credits").all()
    assert pd.isna(table.loc["PATTERN", "Texts"])
    assert table.index[-1] == "Random"
    assert len(gaussian_table(result)) == len(result.methods)
    rows = list(csv.DictReader(io.StringIO(to_csv(export_rows(result, trained)))))
    assert len(rows) == len(result.methods) + sum(len(one.verdicts) for one in trained)
    assert {row["verdict"] for row in rows} == {CREDITS, PASSES, NEITHER}
    plain = json.loads(result_json(result, trained))
    assert [one["kind"] for one in plain["trained"]] == ["text", "image"]
    assert plain["weights"][2] == 0


def test_the_models_use_the_suppressor_and_it_says_nothing_alone(trained: list[TrainedResult]) -> None:
    for one in trained:
        checks = one.checks
        assert checks.accuracy > 0.98
        assert checks.without < checks.accuracy - 0.2
        assert checks.without_unused == pytest.approx(checks.accuracy, abs=0.01)
        assert checks.association > 0.05
        assert "FIRM" in trained_text(one)
        random = next(verdict for verdict in one.verdicts if verdict.method == "random")
        assert random.verdict == NEITHER


def test_conclusions_follow_the_measured_checks() -> None:
    checks = ProblemChecks(0.4, 0.6, 0.99, 0.6, 0.99, 600)
    assert "99.0%: the model uses the suppressor. Alone it is not significantly associated" in checks_text(checks)
    assert "the model is not shown to use the suppressor" in checks_text(replace(checks, without=0.985))
    assert "Alone it is significantly associated with the class, so that it is no suppressor" in checks_text(
        replace(checks, association=0.01)
    )


def test_the_axis_of_shares_holds_all_of_them() -> None:
    problem = GaussianProblem(0.8, 2.0, 1.0)
    curves = share_curves(problem.scale, problem.suppressor_scale, 0)
    spec = share_chart(problem, curves, "light").to_dict()
    [domain] = {tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in spec["layer"] if "y" in layer["encoding"]}
    assert domain[1] >= max(curves.theory["share"].max(), curves.measured["share"].max()) > 0.5


def test_the_command_has_every_digit_of_the_seed() -> None:
    assert page_state.command(SuppressorState(seed=1234567)).endswith("--seed 1234567")


def test_the_link_holds_what_differs_alone() -> None:
    assert page_state.write(SuppressorState()) == {}
    changed = SuppressorState(GaussianProblem(0.3, suppressor_scale=2.0), 5)
    assert page_state.write(changed) == {"correlation": ["0.3"], "suppressor_scale": ["2.0"], "seed": ["5"]}
