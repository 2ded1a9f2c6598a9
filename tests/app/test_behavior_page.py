"""The Ask the model page as a script: each task, the answers, one example, the constructed models, and the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.behavior.answers import answer_text, feature_text
from components.behavior.charts import accuracy_chart, accuracy_table, attribution_table, example_twins, twin_table
from components.behavior.example_panel import _text_html, example_html, fall_text
from components.behavior.page import CONSTRUCTED, EXPLAINED, START, failures_text, left_out
from components.behavior.view import SESSION
from components.charts.frame import ChartFrame
from components.navigation import BEHAVIOR
from engine import jobs
from engine.behavior.plan import DELETE, FEATURE, LOCAL, RECOURSE, BehaviorPlan
from engine.behavior.result import answers_of
from tests.alerts import errors, notes, readable_html
from tests.explaining import checkpoint
from tests.project import ROOT
from tests.unit.behavior.test_experiment import small
from tests.unit.randomization.making import reviews

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240.0
TITLES = {"lime": "LIME"}


def opened(**query: str | Sequence[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(BEHAVIOR.file)
    for name, value in query.items():
        page.query_params[name] = value if isinstance(value, str) else list(value)
    page.run()
    assert not page.exception
    return page


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        (LOCAL, "Asking the model directly, with 1 evaluation per word (about"),
        (FEATURE, "Changing “the” or “good” changes the class"),
        (RECOURSE, "removing 1 word or fewer"),
    ],
)
def test_a_task_is_run_answered_and_opens_again_without_a_model(
    task: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = {
        "model": str(checkpoint("bert")), "data": reviews(tmp_path), "method": ["attention_mean", "gradient_x_input"],
        "examples": "6", "task": task, "edit": DELETE, "margin": "0", "feature": "the,good", "size": "1",
    }  # fmt: skip
    page = opened(**link)
    assert not errors(page)
    [button] = [one for one in page.button if one.label == START]
    button.click().run()
    for job in jobs.list_jobs():
        assert jobs.wait(job.id, SECONDS).state == "done"
    monkeypatch.setattr("engine.behavior.experiment.load_model", None)
    page = opened(**link)
    text = readable_html(page)
    if "No question has a clear answer" not in text:  # no removal of a word may change the class of a random model
        assert answer in text
    assert "Answers on this example" in text
    assert EXPLAINED in [one.value for one in page.caption]
    headers = [one.value for one in page.subheader]
    assert headers == ["One example", CONSTRUCTED, "Export"]
    command = next(one.value for one in page.code if one.value.startswith("exegesis behavior"))
    assert (f"--task {task}" in command) is (task != LOCAL), "the default is left out"


def test_the_page_opens_finished_and_each_task_with_its_own_models() -> None:
    page = opened()
    assert "Asking the model directly, with 16 evaluations per word (about" in readable_html(page)
    page.button_group(SESSION.key("text", "task")).set_value(FEATURE).run()
    assert not page.exception
    text = readable_html(page)
    assert "changes the class of bert-marked in 1" in text
    assert "bert-reviews:" in text
    page.button_group(SESSION.key("text", "task")).set_value(RECOURSE).run()
    text = readable_html(page)
    assert "A direct search with about" in text
    assert page.query_params["task"] in (RECOURSE, [RECOURSE])
    assert not notes(page)


def test_pictures_open_finished_with_the_patches_of_one_picture() -> None:
    page = opened(input="image")
    text = readable_html(page)
    assert "Asking the model directly, with 16 evaluations per patch (about" in text
    assert "The best attribution on one half of the pictures, " in text
    assert "as the model sees it" in text
    assert "Patches that do not count have no row" in text
    page.button_group(SESSION.key("image", "task")).set_value(FEATURE).run()
    assert not page.exception
    text = readable_html(page)
    assert "Changing the marked object changes the class of scenes-marked-vit in 1" in text
    assert "a region of the same size elsewhere" in text
    page.button_group(SESSION.key("image", "task")).set_value(RECOURSE).run()
    assert "A direct search with about" in readable_html(page)
    assert not notes(page)


def test_a_method_that_failed_is_told_with_the_number_of_texts() -> None:
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), edit=DELETE, margin=0)
    values = np.array([[1.0, 0.3], [2.0, -0.1], [np.nan, 0.05]])
    found = small(failures={"lime": {9: "text: too long."}}, values=values)
    assert failures_text(found, plan, TITLES) == "m: LIME failed on 1 text of 2. Only its answers there are left out."
    assert failures_text(small(), plan, TITLES) == ""
    assert left_out((found,), TITLES) == [("text: too long.", "1 example on m", "LIME")]
    assert "failed" in example_html(found, plan, 1, "", TITLES)


def test_the_sentence_has_the_numbers_of_the_answer() -> None:
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), edit=DELETE, margin=0)
    found = small()
    sign, order = answers_of(found, plan)
    text = answer_text(sign, found, plan, TITLES)
    head = "Asking the model directly, with 1 evaluation per word (about 2 per text), is right for 100% of 3 words. "
    assert text.startswith(head), "it is right by definition, so that an interval would say nothing"
    assert "The question is about exactly this evaluation" in text
    assert "The attribution, LIME, is right for 33% (" in text
    assert text.endswith("with 15 evaluations per text. Always answering “yes”: 67%; a coin: 50%.")
    assert answer_text(order, found, plan, TITLES).endswith("Random guessing: 50%.")
    worse = replace(sign, ways=tuple(replace(one, accuracy=0.5) for one in sign.ways))
    text = answer_text(worse, found, plan, TITLES)
    assert text.endswith("Always answering “yes”: 67%, more than asking the model; a coin: 50%.")
    nothing = small(counted=np.zeros(3, dtype=bool))
    answer = answers_of(nothing, plan)[0]
    assert answer_text(answer, nothing, plan, TITLES).startswith("No question has a clear answer here")
    assert accuracy_chart(answer, plan, ChartFrame(TITLES)).to_dict()["layer"]


def test_what_is_right_by_definition_is_said_and_a_smaller_budget_is_the_result() -> None:
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), task=FEATURE, feature="x,z")
    fields: dict[str, object] = {
        "ways": plan.ways, "evaluations": np.array([[10, 3, 5], [20, 3, 5]]), "values": np.zeros((3, 3)),
        "yes": np.array([[True, False, True], [False, False, False], [True, True, True]]), "errors": np.zeros((3, 3)),
        "truth": np.array([1.0, 0.0, 1.0]),
    }  # fmt: skip
    found = small(task=FEATURE, **fields)
    [answer] = answers_of(found, plan)
    text = answer_text(answer, found, plan, TITLES)
    assert "directly, with 1 change (about 3 per text), is right for 67% of 3 questions (95% interval" in text
    assert "With 2 changes (about 5 per text), the direct answer is right by definition" in text
    assert [one.interval is None for one in answer.queries] == [False, True]
    plan = replace(plan, task=RECOURSE, size=1)
    found = small(task=RECOURSE, counted=np.array([True, False, True]), **{**fields, "ways": plan.ways[:3]})
    [answer] = answers_of(found, plan)
    assert "A direct search tries every word, so that it finds each by definition, with about 5 evaluations" in (
        answer_text(answer, found, plan, TITLES)
    )
    found = replace(found, counted=np.zeros(3, dtype=bool))
    [answer] = answers_of(found, plan)
    assert answer_text(answer, found, plan, TITLES).startswith("In none of 3 texts, removing 1 word or fewer changes")


def test_the_chart_has_a_row_for_each_way() -> None:
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), edit=DELETE, margin=0)
    [sign, _] = answers_of(small(), plan)
    table = accuracy_table(sign, plan, TITLES)
    assert table["Way"].tolist() == ["Ask: 1 evaluation per word", "LIME"]
    assert table["Right"].tolist() == [1.0, pytest.approx(1 / 3)]
    spec = accuracy_chart(sign, plan, ChartFrame(TITLES)).to_dict()
    texts = [row.get("text") for rows in spec["datasets"].values() for row in rows]
    assert {"guessing: 50%", "always “yes”: 67%", "Ask the model"} <= set(texts)


def test_the_pair_of_models_is_drawn_with_equal_scores() -> None:
    twins = example_twins()
    table = attribution_table(twins)
    first, second, third, fourth = (table[name].tolist() for name in table.columns[1:])
    assert first == second
    assert third == fourth
    lines = twin_table(twins).groupby("Model")["Output"]
    ends = [values.iloc[0] for _, values in lines]
    assert ends[0] == pytest.approx(ends[1])


def test_a_feature_is_counted_beside_its_control() -> None:
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), task=FEATURE, feature="x,z")
    found = small(task=FEATURE, truth=np.array([1.0, 0.0, 1.0]))
    text = feature_text(found, plan)
    assert text.startswith("Changing “x” or “z” changes the class of m in 2 of 2 texts (95% interval 16% to 100%), ")
    assert "changing as many other words in 0 of 1 text (" in text


def test_a_small_effect_is_not_rounded_to_zero() -> None:
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), edit=DELETE, margin=0)
    html = example_html(small(values=np.array([[0.3, 0.0], [0.1, -0.00004], [0.1, 1.0]])), plan, 0, "", TITLES)
    assert "no change" in html
    assert " 0.004<" in html


def test_falls_have_equal_decimals_unless_they_would_be_zero() -> None:
    assert [fall_text(value) for value in (0.057, -0.0003241, 0.0, 0.00004)] == ["5.70", "0.03", "0.00", "0.004"]


def test_words_are_text_and_answers_are_marked_by_words_too() -> None:
    hostile = '<img src=x onerror="alert(1)">'
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime",), edit=DELETE, margin=0)
    html = example_html(
        small(words=(hostile, "y", "z"), targets=(hostile, "b")), plan, 0, _text_html(hostile), {"lime": hostile}
    )
    assert hostile not in html
    assert html.count('<span class="xg-hidden">right: </span>') == 3
    assert html.count('<span class="xg-hidden">wrong: </span>') == 1
    removed = small(
        task=RECOURSE, owner=np.array([0, 1, 1]), truth=np.array([2.0, 0, 0]), yes=np.array([[True, False]] * 3),
        edits=((hostile, ""),) * 3,
    )  # fmt: skip
    html = example_html(removed, replace(plan, task=RECOURSE), 0, "text", TITLES)
    assert hostile not in html
    assert "class stays" in html
