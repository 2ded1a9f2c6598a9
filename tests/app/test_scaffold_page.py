"""The Scaffold page as a script: before, while and after students are taught; what is kept, what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components import controls as stale_choices
from components.library.cards import MODEL_KEY
from components.navigation import SCAFFOLD
from components.scaffold.controls import CARE, key
from components.scaffold.runs import KIND, spec_of
from components.scaffold.state import GUIDE, state_of, write_state
from engine import jobs
from engine.errors import Cancelled
from engine.scaffold.experiment import StudentStore, StudentTrainer
from engine.scaffold.learned_explainer import explainers_folder, load
from engine.scaffold.plan import NONE, SMAT, ScaffoldPlan
from engine.scaffold.presets import explainer_plan
from engine.scaffold.result import TrainingPass
from engine.training.loop import STATE
from tests.alerts import errors, readable_html
from tests.app.options import open_options
from tests.project import ROOT
from tests.unit.components.scaffolded import outcome
from tests.unit.scaffold.plans import plan as tiny_plan
from tests.unit.scaffold.plans import saved

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240.0
SEEDS = (0, 9, 11)


def opened(plan: ScaffoldPlan, **query: str) -> AppTest:
    """The page in its frame."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(SCAFFOLD.file)
    link = write_state(state_of(plan, "text")) | {name: [value] for name, value in query.items()}
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def press(page: AppTest, label: str) -> AppTest:
    [button] = [button for button in page.button if button.label == label]
    button.click().run()
    assert not page.exception
    return page


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def captions(page: AppTest) -> str:
    return "\n".join(caption.value for caption in page.caption)


def finish() -> None:
    for job in jobs.list_jobs():
        assert jobs.wait(job.id, SECONDS).state == "done"


@pytest.fixture
def plan(tmp_path: Path) -> ScaffoldPlan:
    saved.cache_clear()  # the home of another test is gone
    return tiny_plan(tmp_path)


def test_what_is_pressed_is_taught_shown_kept_and_opens_again_without_a_model(
    plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = opened(plan)
    assert jobs.list_jobs() == []
    assert "2 students: 2 settings, 1 train size, 1 seed; 2 left to train." in captions(page)
    assert any("No student of this plan has been trained yet" in text.value for text in page.markdown)
    press(page, "Teach")
    finish()
    for name in ("engine.scaffold.training_sets.load_classifier", "engine.models.loading.load_model"):
        monkeypatch.setattr(name, None)
    page = opened(plan)
    assert "Teach" not in labels(page)
    html = readable_html(page)
    assert '<th scope="col">8 examples</th>' in html
    assert html.count('class="xg-interval"') == 2
    assert "With fewer than three seeds" in captions(page)
    assert [one.label for one in page.selectbox if one.label in ("Setting", "Measure")] == ["Setting", "Measure"]
    press(page, "Save the learned explainer")
    assert "Saved as " in readable_html(page)
    [card] = explainers_folder().glob("*.json")
    assert load(card).card.teacher == plan.teacher


def test_a_cancelled_job_goes_on_where_it_was(plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    real = StudentTrainer.teach

    def cancelled(self: StudentTrainer, pupil: Any, *more: Any) -> Any:
        if pupil.setting == SMAT:
            jobs.cancel(jobs.list_jobs()[0].id)
            raise Cancelled
        return real(self, pupil, *more)

    with monkeypatch.context() as patch:
        patch.setattr(StudentTrainer, "teach", cancelled)
        jobs.run_now(jobs.create(KIND, spec_of(plan)))
    [stopped] = jobs.list_jobs()
    assert stopped.state == "cancelled"
    page = opened(plan)
    assert "2 students: 2 settings, 1 train size, 1 seed; 1 left to train." in captions(page)
    assert "not trained yet" in readable_html(page)
    press(page, "Go on")
    finish()
    assert "not trained yet" not in readable_html(opened(plan))


def test_a_student_under_way_is_followed(plan: ScaffoldPlan) -> None:
    kept = StudentStore(plan)
    jobs.create(KIND, spec_of(plan))  # it waits for its turn, as one does that another job goes before
    assert "The next student is in its first pass." in captions(opened(plan))
    folder = kept.folder(plan.students[1])
    folder.mkdir(parents=True)
    passes = [dataclasses.asdict(TrainingPass(at, 0.9, 0.5, 0.6 + at / 10)) for at in range(2)]
    (folder / STATE).write_text(json.dumps({"at": {"history": passes}}), encoding="utf-8")
    page = opened(plan)
    assert "Training: SMaT, learned, 8 examples, seed 0; 2 passes done, simulability on validation 0.700." in (
        captions(page)
    )
    assert "Cancel" in labels(page)
    assert "Teach" not in labels(page)
    press(page, "Cancel")


def test_a_finished_grid_is_marked_and_what_is_looked_at_stands_in_the_link(plan: ScaffoldPlan) -> None:
    settings = (NONE, "gradient_l2", "attention_logits", SMAT)
    recipe = dataclasses.replace(plan.recipe, held_out=1, validation=2, test=2)
    grid = dataclasses.replace(plan, settings=settings, train_sizes=(20, 30), seeds=SEEDS, recipe=recipe)
    kept = StudentStore(grid)
    for pupil in grid.students:
        untaught = {"best_epoch": -1} if (pupil.setting, pupil.seed) == (NONE, 9) else {}
        phi = np.full(12, 1 / 12) if pupil.setting == SMAT else None
        kept.put(outcome(pupil, phi=phi, student_phi=phi, **untaught))
    page = opened(grid)
    html = readable_html(page)
    assert html.count(">better<") == html.count(">worse<") == 2
    assert "1 of 3 students did not improve during training" in html
    assert "Teach" not in labels(page)
    page.selectbox(key("text", "view.size")).select(20).run()
    page.selectbox(key("text", "view.curve")).select("none").run()
    assert not page.exception
    assert (page.query_params["size"], page.query_params["curve"]) == ("20", "none")
    measures = page.selectbox(key("text", "view.measure")).options
    assert "Explainer's outer loss" not in measures


def test_too_few_examples_are_told_before_anything_is_taught(plan: ScaffoldPlan) -> None:
    page = opened(dataclasses.replace(plan, train_sizes=(100,)))
    assert any("has 40 examples, but the four splits need 121" in one for one in errors(page))
    assert "Teach" not in labels(page)


def test_what_cannot_be_taught_is_told_and_can_be_tried_again(
    plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.errors import ExegesisError

    real = StudentTrainer.teach

    def broken(self: StudentTrainer, pupil: Any, *more: Any) -> Any:
        if pupil.setting == SMAT:
            raise ExegesisError("no memory")
        return real(self, pupil, *more)

    with monkeypatch.context() as patch:
        patch.setattr(StudentTrainer, "teach", broken)
        jobs.run_now(jobs.create(KIND, spec_of(plan)))
    page = opened(plan)
    assert "1 student could not be trained." in readable_html(page)
    assert "no memory" in readable_html(page)
    press(page, "Retry what failed")
    finish()
    assert "could not be trained" not in readable_html(opened(plan))


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"sizes": "a"}, "Train sizes: 'a' is not a whole number"),
        ({"seeds": "1,1"}, "Seeds: 1 appears more than once. Still using 0,9,11,30,69,"),
        ({"setting": ""}, "settings: must be one or more"),
        ({"model": "nowhere"}, "unknown name 'nowhere'"),
        ({"data": "nowhere"}, "nowhere"),
        ({"base": "nowhere"}, "nowhere"),
        ({"base": ""}, "base: is missing."),
        ({"recipe.clip": "-1"}, "recipe.clip: must be a number of at least 0"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(query: dict[str, str], told: str, plan: ScaffoldPlan) -> None:
    page = opened(plan, **query)
    assert any(told in one for one in errors(page))
    assert jobs.list_jobs() == []


@pytest.mark.parametrize("setting", [NONE, "gradient_l2", SMAT])
def test_a_setting_that_is_deselected_and_selected_again_has_its_students(setting: str) -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(SCAFFOLD.file).run()
    open_options(page, key("text", "options"))
    open_options(press(page, "Pairs with a score, bert-quality"), key("text", "options"), is_open=False)
    link, table = dict(page.query_params), readable_html(page)
    assert link["recipe.inner_rate"] == "0.3"
    assert "not trained yet" not in table
    [pills] = [one for one in page.button_group if one.label == "Settings"]
    pills.set_value([one for one in pills.value if one != setting]).run()
    assert not page.exception
    assert page.query_params["recipe.inner_rate"] == "0.3"
    assert "not trained yet" not in readable_html(page)
    [pills] = [one for one in page.button_group if one.label == "Settings"]
    pills.set_value([*pills.value, setting]).run()
    assert dict(page.query_params) == link
    assert readable_html(page) == table


def test_a_typed_list_with_a_wrong_entry_keeps_the_last_valid_one() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(SCAFFOLD.file).run()
    table = readable_html(page)
    open_options(page, key("text", "options")).text_input(key("text", "sizes")).set_value("250,,x").run()
    assert errors(page) == [
        "Train sizes: entry 2 is empty; 'x' is not a whole number from 1 to 9,999,999. Still using 250,500,1000."
    ]
    assert readable_html(page).endswith(table[-500:])
    assert "sizes" not in page.query_params
    page.text_input(key("text", "sizes")).set_value("250, 500 ,1000").run()
    assert errors(page) == []
    assert "sizes" not in page.query_params


def test_controls_of_closed_options_are_not_drawn(plan: ScaffoldPlan) -> None:
    page = opened(plan)
    assert [one.label for one in page.text_input if one.label == "Train sizes"] == []
    open_options(page, key("text", "options"))
    assert [one.label for one in page.text_input if one.label == "Train sizes"] == ["Train sizes"]


def draw_form() -> None:
    """The content of the dialog outside of it, which a script test cannot keep open."""
    import streamlit as st

    from components.scaffold.controls import explainer_form

    st.session_state.setdefault("explainer_guide.data", "nli")
    explainer_form("bert-nli")


def guide(monkeypatch: pytest.MonkeyPatch, asked: list[object]) -> AppTest:
    monkeypatch.setattr("streamlit.switch_page", lambda page, query_params: asked.append((page, query_params)))
    monkeypatch.setattr("engine.scaffold.training.estimate_seconds", lambda plan: 95.0 * len(plan.seeds))
    page = AppTest.from_function(draw_form, default_timeout=SECONDS).run()
    assert not page.exception
    return page


def test_a_form_trains_an_explainer_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    page = guide(monkeypatch, asked)
    assert any("2 students" in text.value and "At most 2 min" in text.value for text in page.markdown)
    page = page.radio(CARE).set_value("Thorough").run()
    assert any("15 students" in text.value and "At most 8 min" in text.value for text in page.markdown)
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "submit", lambda kind, spec: asked.append((kind, spec)))
        press(page, "Train")
    plan = explainer_plan("bert-nli", "nli", thorough=True)
    assert asked == [(KIND, spec_of(plan)), (SCAFFOLD.path, write_state(state_of(plan)))]


def test_a_data_set_that_cannot_train_an_explainer_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.scaffold.presets.FEWEST_EXAMPLES", 10**7)
    page = guide(monkeypatch, [])
    assert any("but at least 10,000,000 are needed to train an explainer" in one for one in errors(page))
    assert "Train" not in labels(page)


def test_the_library_opens_the_form_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("engine.scaffold.training.estimate_seconds", lambda plan: 95.0)
    monkeypatch.setattr("streamlit.switch_page", lambda page, query_params: asked.append((page, query_params)))
    library = AppTest.from_file(str(ROOT / "pages" / "library.py"), default_timeout=SECONDS)
    library.query_params["section"] = "models"
    library.session_state[MODEL_KEY] = "bert-reviews"
    library.run().button("train-for-bert-reviews").click().run()
    assert not library.exception
    [(path, link)] = asked
    assert path == SCAFFOLD.path
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(SCAFFOLD.file)
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert GUIDE not in page.query_params
    assert any("gets an explainer of its own" in text.value for text in page.markdown)
    assert "Model: bert-reviews" in [text.value for text in page.text]


def test_a_choice_made_before_the_browser_has_another_plan_does_not_undo_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_choices, "DRAWN_SECONDS", 3600.0)
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(SCAFFOLD.file).run()
    teacher, data = (page.selectbox(key("text", name)).value for name in ("teacher", "data"))
    open_options(page, key("text", "options"))
    press(page, "Pairs with a score, bert-quality")
    link = dict(page.query_params)
    page.selectbox(key("text", "teacher")).set_value(teacher)
    page.selectbox(key("text", "data")).set_value(data)
    open_options(page, key("text", "options"), is_open=False)
    assert dict(page.query_params) == link
    assert page.selectbox(key("text", "teacher")).value == "bert-quality"
