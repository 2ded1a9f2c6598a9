"""The Evaluate page as a script: before, during and after an evaluation, one that fails in part, hostile links."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.controls import PERSIST
from components.evaluate.leaderboard import OPERATORS_TITLE
from components.evaluate.view import SESSION
from components.experiment.runs import AGAIN
from components.navigation import EVALUATE
from engine import explain as explaining
from engine import jobs
from engine.errors import ExegesisError
from engine.evaluation import experiment, result
from engine.evaluation.experiment import evaluate
from engine.evaluation.groups import plans_at_strengths
from engine.evaluation.operator_comparison import DEPENDS, SAME
from engine.evaluation.plan import EvaluationPlan
from engine.experiments.run import carry_out, keep, sample_of
from engine.metrics.results import MetricRow
from engine.request import MAX_CHARACTERS
from tests.alerts import errors, notes, readable_html
from tests.app.options import open_options
from tests.app.test_kept import drawn
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240.0
METHODS = ("gradient_l2", "random")
METRICS = ("comprehensiveness", "plausibility_auc", "without_top")
EVIL = "<img src=x onerror=alert(1)> ![a](http://x/y.png) **b**"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def data(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


def opened(**query: str | Sequence[str]) -> AppTest:
    """The page in its frame."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(EVALUATE.file)
    for name, value in query.items():
        page.query_params[name] = value if isinstance(value, str) else list(value)
    page.run()
    assert not page.exception
    return page


def asked(model: str, data: str, **more: str | Sequence[str]) -> dict[str, Any]:
    return {"model": model, "data": data, "method": METHODS, "metric": METRICS, "examples": "6", **more}


def press(page: AppTest, label: str) -> AppTest:
    [button] = [button for button in page.button if button.label == label]
    button.click().run()
    assert not page.exception
    return page


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def board(page: AppTest) -> str:
    """The leaderboard's HTML; empty where there is none."""
    drawn = (json.loads(one.proto.json) for one in page.get("bidi_component") if one.proto.json)
    return next((one["html"] for one in drawn if "xg-board" in one.get("html", "")), "")


def finish() -> None:
    [job] = [job for job in jobs.list_jobs() if not job.is_over] or jobs.list_jobs()[:1]
    jobs.wait(job.id, SECONDS)


def refusing(text: str) -> Callable[..., Any]:
    """Explains every example but this one."""
    items = explaining._items

    def some(model: Any, plans: list[Any], encoded: Any) -> Any:
        if text in {plan.request.example.text for plan in plans}:
            raise ExegesisError("Out of memory.")
        return items(model, plans, encoded)

    return some


def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no model is loaded."""
    for name in ("engine.models.loading.load_model", "engine.evaluation.experiment._ModelEvaluator"):
        monkeypatch.setattr(name, None)


def test_it_starts_nothing_by_itself_and_says_what_to_do(model: str, data: str) -> None:
    page = opened(**asked(model, data))
    assert jobs.list_jobs() == []
    assert "Evaluate" in labels(page)
    said = "\n".join(caption.value for caption in page.caption)
    assert "6 examples, 2 methods, 1 model: about" in said
    assert "model evaluations" in said
    assert not board(page)


def test_what_is_pressed_is_evaluated_shown_and_opens_again_without_a_model(
    model: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = press(opened(**asked(model, data)), "Evaluate")
    [job] = jobs.list_jobs()
    assert job.kind == "evaluate"
    finish()
    no_model(monkeypatch)
    page = opened(**asked(model, data))
    drawn = board(page)
    assert 'data-method="gradient_l2" data-metric="comprehensiveness"' in drawn
    assert "n = 6" in drawn
    assert "Evaluate" not in labels(page)
    assert "Against people's marks" in unescape(drawn)
    listed = {str(button.key) for button in page.button if str(button.key).startswith("evaluate.recent.")}
    assert listed == {f"evaluate.recent.{job.id}", "evaluate.recent.text", "evaluate.recent.image"}
    other = opened()
    other.button(key=f"evaluate.recent.{job.id}").click().run()
    assert board(other) == drawn
    assert data in other.query_params["data"]


def test_probabilities_too_near_1_are_told(model: str, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate([model], data, METHODS, METRICS, examples=6)
    told = "so comprehensiveness, sufficiency and removal curves are nearly constant and uninformative."
    monkeypatch.setattr(result, "SATURATED", 0.49)
    monkeypatch.setattr(result, "LEAST_SPREAD", 2.0)
    assert any(told in one for one in notes(opened(**asked(model, data))))


def test_what_the_command_made_meanwhile_is_found(model: str, data: str) -> None:
    page = opened(**asked(model, data))
    assert not board(page)
    evaluate([model], data, METHODS, METRICS, examples=6)
    page.run()
    assert board(page)
    assert jobs.list_jobs() == []


def test_examples_behind_a_number_are_sorted_and_lead_to_their_page(model: str, data: str) -> None:
    found = evaluate([model], data, METHODS, METRICS, examples=6)
    point = [model, "gradient_l2", "comprehensiveness", "", "", ""]
    page = opened(**asked(model, data, point=point))
    rows = [row for row in found.rows if row.of.method == "gradient_l2" and row.of.metric == "comprehensiveness"]
    best = max(rows, key=lambda row: row.value).example
    links = [link.proto.query_string for link in page.get("page_link") if link.proto.label == "Open on Text"]
    assert len(links) == 6
    assert f"index={best}" in links[0]
    assert "method=gradient_l2&method=random" in links[0]
    page.segmented_control(SESSION.key("text", "look.order")).set_value("index").run()
    links = [link.proto.query_string for link in page.get("page_link") if link.proto.label == "Open on Text"]
    assert [f"index={place}" in link for place, link in enumerate(links)] == [True] * 6
    press(page, "Close")
    assert "point" not in page.query_params


@pytest.mark.parametrize("swap", [True, False])
def test_the_answer_says_whether_the_best_method_depends_on_the_operator(model: str, data: str, swap: bool) -> None:
    """Occlusion leads by 0.4 on every example with mask; with delete, it trails by as much or leads again."""
    methods = ("gradient_l2", "occlusion", "random")
    plan = EvaluationPlan((model,), data, methods, METRICS, examples=6)
    [found] = evaluate([model], data, methods, METRICS, examples=6).models
    assert found.second is not None

    def by_hand(rows: Sequence[MetricRow], best: str) -> tuple[MetricRow, ...]:
        return tuple(replace(row, value=(0.5 if row.of.method == best else 0.1) + row.example / 100) for row in rows)

    second = by_hand(found.second.rows, "gradient_l2" if swap else "occlusion")
    first = replace(found, rows=by_hand(found.rows, "occlusion"))
    keep(plan, sample_of(plan), first.with_second("delete", second, ()))
    page = opened(**asked(model, data, method=methods))
    answer = unescape(board(page))
    assert "Tokens deleted instead of masked:" in answer
    assert (DEPENDS in answer, SAME in answer) == (swap, not swap)
    if swap:
        assert "Occlusion is significantly better with mask, Gradient L2 norm with delete" in answer
        assert "Occlusion, which uses mask itself, falls significantly behind the best with delete." in answer
    else:
        assert "Comprehensiveness: Occlusion leads with both." in answer
    assert OPERATORS_TITLE in [one.label for one in page.expander]
    table = next(one for one in readable_html(page).split("<table") if ">delete</th>" in one)
    assert [table.count(f'scope="row">{name}</th>') for name in ("Occlusion", "Gradient L2 norm", "Random")] == [
        1,
        1,
        1,
    ]
    assert ("0.525<i>★</i>" in table, "0.125<i></i>" in table) == (True, True)
    curves = readable_html(opened(**asked(model, data, method=methods, view="curves")))
    assert (DEPENDS in curves) is swap


def test_with_one_operator_nothing_is_compared(model: str, data: str) -> None:
    evaluate([model], data, METHODS, METRICS, examples=6, second_removal="none")
    page = opened(**asked(model, data, second_removal="none"))
    assert board(page)
    assert "instead of mask" not in board(page)
    assert OPERATORS_TITLE not in [one.label for one in page.expander]
    page = opened(**asked(model, data, second_removal="mask"))
    assert any("second_removal: must be another operator than the first" in error for error in errors(page))


@pytest.mark.parametrize("view", ["curves", "plausibility", "slices", "cost", "scaling", "architecture", "strength"])
def test_each_view_is_drawn_or_says_why_not(view: str, model: str, data: str) -> None:
    metrics = (*METRICS, "evaluations")
    evaluate([model], data, METHODS, metrics, examples=6)
    page = opened(**asked(model, data, metric=metrics, view=view))
    drawn = bool(page.get("vega_lite_chart") or page.get("arrow_vega_lite_chart"))
    assert drawn is (view in ("curves", "plausibility", "slices", "cost"))
    assert drawn or any("It needs" in note for note in notes(page))


def test_an_example_that_fails_is_counted_with_its_reason(model: str, tmp_path: Path) -> None:
    data = written(tmp_path / "long.jsonl", [*REVIEWS, {"text": "a" * (MAX_CHARACTERS + 1), "label": 1}])
    page = press(opened(**asked(model, data, examples="7")), "Evaluate")
    finish()
    page = opened(**asked(model, data, examples="7"))
    assert board(page)
    assert f"at most {MAX_CHARACTERS:,} characters" in readable_html(page)


def test_what_failed_is_tried_again_and_then_counted(model: str, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(explaining, "_items", refusing("lovely view"))
        page = press(opened(**asked(model, data)), "Evaluate")
        finish()
        page.run()
        assert "n = 5" in board(page)
        assert any("Some examples failed" in note for note in notes(page))
        assert any("units failed. The first: " in error for error in errors(page))
    press(page, AGAIN)
    finish()
    page.run()
    assert len(jobs.list_jobs()) == 1
    assert "n = 6" in board(page)
    assert AGAIN not in labels(page)


def test_what_failed_for_the_command_is_tried_again_by_a_job(
    model: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(explaining, "_items", refusing("lovely view"))
        evaluate([model], data, METHODS, METRICS, examples=6)
    page = press(opened(**asked(model, data)), AGAIN)
    finish()
    page.run()
    assert "n = 6" in board(page)


def test_work_is_followed_cancelled_and_goes_on(model: str, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as slow:
        slow.setattr(experiment._ModelUnits, "_explain", lambda *_: time.sleep(0.5))
        page = press(opened(**asked(model, data)), "Evaluate")
        assert "Cancel" in labels(page)
        assert "Evaluate" not in labels(page)
        press(page, "Cancel")
        finish()
        page.run()
        assert "Go on" in labels(page)
    press(page, "Go on")
    finish()
    page.run()
    assert jobs.list_jobs()[0].state == "done"
    assert board(page)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"model": "nonsense"}, "model"),
        ({"data": "nonsense"}, "nonsense"),
        ({"shares": "0"}, "shares: must be"),
        ({"method": "none"}, "methods: must name at least one"),
        ({"model": ""}, "models: must name at least one"),
        ({"model": EVIL, "data": EVIL}, "onerror"),
        ({"view": EVIL, "metric": EVIL, "sort": EVIL, "point": [EVIL] * 6}, "onerror"),
        ({"input": "image", "model": "reviews-minilm"}, "models"),
    ],
)
def test_what_cannot_be_is_said_in_words_and_nothing_of_it_is_html(query: dict[str, Any], said: str) -> None:
    page = opened(**query)
    assert any(said in error for error in errors(page))
    bodies = [element.proto.body for element in page.get("html")]
    assert not any("<img src=x" in body for body in bodies)
    assert not any("![a]" in one.value for one in (*page.markdown, *page.caption))


def test_the_page_keeps_what_was_chosen_through_another_page(model: str, data: str) -> None:
    page = opened(**asked(model, data, seed="5"))
    page.switch_page("pages/library.py").run()
    page.switch_page(EVALUATE.file).run()
    open_options(page, SESSION.key("text", "options"))
    assert page.number_input(SESSION.key("text", "seed")).value == 5
    assert page.multiselect(SESSION.key("text", "models")).value == [model]


def test_it_opens_with_an_evaluation_whose_controls_keep_what_the_link_says() -> None:
    page = opened(view="slices", inside="curves", point=["reviews-minilm", "lime", "comprehensiveness", "", "", ""])
    assert jobs.list_jobs() == []
    assert len([link for link in page.get("page_link") if link.proto.label == "Open on Text"]) == 10
    open_options(page, SESSION.key("text", "options"))
    scopes = dict(drawn(page, SESSION.key("text", "")))
    assert {"models", "seed", "look.view", "view.slice", "view.inside", "look.order", "examples.page"} <= set(scopes)
    assert set(scopes.values()) == {PERSIST}


def test_a_model_at_chance_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.evaluate.page.chance_note", lambda model, dataset: f"{model}, by its card")
    told = notes(opened(model=["reviews-minilm", "bert-reviews"]))
    assert "bert-reviews, by its card" in told
    assert "reviews-minilm, by its card" not in told, "its results are there, with a note of their own"


def test_pictures_have_a_session_of_their_own() -> None:
    page = opened(seed="3")
    page.segmented_control("evaluate.kind").set_value("image").run()
    open_options(page, SESSION.key("image", "options"))
    assert page.number_input(SESSION.key("image", "seed")).value == 0
    assert page.multiselect(SESSION.key("image", "models")).value == ["scenes-marked-vit"]
    boxes = {box.key for box in page.selectbox}
    assert SESSION.key("image", "removal") in boxes
    assert not boxes & {SESSION.key("image", "unit"), SESSION.key("image", "marks")}, "there is nothing to choose"
    page.segmented_control("evaluate.kind").set_value("text").run()
    open_options(page, SESSION.key("text", "options"))
    assert page.number_input(SESSION.key("text", "seed")).value == 3
    assert page.selectbox(SESSION.key("text", "marks")).options == ["Default (whole)", "Whole", "Read"]


def test_graded_marks_are_drawn_over_the_strengths_that_are_there_and_the_others_offered(model: str) -> None:
    marked, metrics = "reviews-marked:strength=0.5", ("truth_mass",)
    plan = EvaluationPlan((model,), marked, METHODS, metrics, examples=4)
    evaluate([model], marked, METHODS, metrics, examples=4)
    query = asked(model, marked, metric=metrics, examples="4", view="strength")
    page = opened(**query)
    assert not page.get("vega_lite_chart")
    assert any("several strengths" in note for note in notes(page))
    assert any("strengths" in label for label in labels(page))
    for one in plans_at_strengths(plan)[:2]:
        carry_out(one)
    page.run()
    assert not page.exception
    assert page.get("vega_lite_chart")
    assert not any("several strengths" in note for note in notes(page))
    press(page, next(label for label in labels(page) if "more strengths" in label))
    assert 1 < len(jobs.list_jobs()) < len(plans_at_strengths(plan))


def test_a_model_of_another_task_is_marked_and_a_data_set_that_fits_is_one_click_away() -> None:
    page = opened(model="nli-minilm", data="reviews", method=METHODS, examples="2")
    models = page.multiselect(SESSION.key("text", "models"))
    assert any(label.startswith("nli-minilm · other task: inference") for label in models.options)
    assert any(label.startswith("reviews-minilm · sentiment") for label in models.options)
    assert any("was trained for inference" in caption.value for caption in page.caption)
    press(page, "Use nli instead")
    assert page.selectbox(SESSION.key("text", "dataset")).value == "nli"
    assert not any("was trained for" in caption.value for caption in page.caption)
