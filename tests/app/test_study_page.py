"""The Study page as a script: the list, the form, opening with its progress, what can be done with a study."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from unittest.mock import PropertyMock, patch

import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from components.errors import escape_label
from components.organizer import PASSWORD
from components.study import actions as study_draft
from components.study.actions import NEW, STUDY, Opening
from components.study.page import SHOW_ARCHIVED
from engine.errors import ExegesisError
from engine.scaffold import learned_explainer
from engine.study import studies
from engine.study.database import ADDRESS, study_database
from engine.study.design import GUESS_INSTRUCTIONS, GUESS_QUESTION, QUESTION, Design, smat_methods
from engine.study.study_file import export_study, import_study
from tests.alerts import errors, notes
from tests.project import ROOT
from tests.unit.study.samples import image_design, text_design

SECONDS = 120.0
EVIL = "![](http://127.0.0.1:9/x.png) <img src=x> **b**"
LIGHT = """
import json, sys
from unittest.mock import PropertyMock, patch
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
for name, value in (("", ""), ("new", "smat")):
    page = AppTest.from_file("pages/study.py", default_timeout=60)
    if name:
        page.query_params[name] = value
    with patch.object(ContextProxy, "ip_address", new_callable=PropertyMock, return_value=None):
        page.run()
    assert not page.exception and page.button
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture(autouse=True)
def empty(own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No studies, no password."""
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.delenv(PASSWORD, raising=False)


def opened(**query: object) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "study.py"), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = str(value)
    return run(page)


def run(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def press(page: AppTest, name: str) -> AppTest:
    page.button(key=f"study.{name}").click()
    return run(page)


def asked(page: AppTest, name: str) -> str:
    """What the address says; a list before the page has changed it."""
    return "".join(page.query_params[name])


def said(page: AppTest) -> str:
    return unescape("\n".join(element.proto.body for element in page.get("html")))


def titles(page: AppTest) -> list[str]:
    return [str(one.value) for one in [*page.header, *page.subheader]]


def opened_study(design: Design) -> studies.StudyRecord:
    made = studies.create(design)
    return studies.open_study(made.id)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Breaks the store from now on."""

    def breaks() -> None:
        monkeypatch.setenv(ADDRESS, "mysql://nobody@localhost/x")

    return breaks


def test_neither_the_list_nor_the_form_imports_what_runs_models() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not {"torch", "transformers", "peft", "captum"} & set(json.loads(done.stdout.splitlines()[-1]))


def test_without_studies_the_page_says_what_to_do() -> None:
    page = opened()
    assert "No studies yet" in page.info[0].value
    assert [button.label for button in page.button] == ["New study: SMaT's four methods", "New blank study"]


def test_without_the_password_nothing_of_a_study_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    monkeypatch.setenv(PASSWORD, "secret")
    page = opened(**{STUDY: made.id})
    assert [button.label for button in page.button] == ["Log in"]
    assert made.token not in said(page)
    assert not titles(page)


def test_the_preset_becomes_a_draft_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(learned_explainer, "SHIPPED", tmp_path / "none")
    page = press(opened(), "new.smat")
    assert asked(page, NEW) == "smat"
    assert "so attention logits of all layers replace it" in notes(page)[1]
    page = press(page, "save")
    [made] = studies.list_studies()
    assert asked(page, STUDY) == str(made.id)
    assert tuple(method.id for method in made.design.methods) == smat_methods(made.design.model, "text")
    assert made.design.methods[1].params["n_steps"] == 50
    assert (made.design.mode, made.design.placebo, made.design.repeats, made.state) == ("rank", True, 2, "draft")
    assert "Draft saved" in notes(page)[1]


def test_what_the_form_does_not_allow_is_said_and_nothing_is_kept() -> None:
    page = press(opened(**{NEW: "blank"}), "save")
    assert errors(page)[0] == "Title is empty. Give one."
    page.text_input(key="study.form.title").set_value("T")
    page = press(run(page), "save")
    assert "Methods: must be 2 to 6 methods, got none" in errors(page)[0]
    assert studies.list_studies() == []


def test_everything_in_a_draft_can_be_changed_and_opens_only_when_it_is_saved(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    page = opened(**{STUDY: made.id})
    assert page.button(key="study.save").disabled
    assert not page.button(key="study.open").disabled
    page.text_input(key="study.form.title").set_value("Another")
    page.segmented_control(key="study.form.items.how").set_value("filter")
    page.number_input(key="study.form.exclusion.most_cannot_tell").set_value(0.5)
    run(page).text_input(key="study.form.items.label").set_value("good")
    run(page)
    assert page.button(key="study.open").disabled
    page = press(page, "save")
    found = studies.find(made.id).design
    assert (found.title, found.items.how, found.items.label) == ("Another", "filter", "good")
    assert found.exclusion.most_cannot_tell == 0.5
    assert found.methods == made.design.methods
    assert page.button(key="study.save").disabled
    assert not page.button(key="study.open").disabled


def test_texts_go_with_what_people_do_until_somebody_writes_their_own(tmp_path: Path) -> None:
    page = opened(**{STUDY: studies.create(text_design(tmp_path)).id})
    page.segmented_control(key="study.form.mode").set_value("predict")
    run(page)
    assert page.text_area(key="study.form.instructions").value == GUESS_INSTRUCTIONS
    assert page.text_input(key="study.form.question").value == GUESS_QUESTION
    page.text_area(key="study.form.instructions").set_value("Mine.")
    page.segmented_control(key="study.form.mode").set_value("rank")
    assert run(page).text_area(key="study.form.instructions").value == "Mine."
    assert page.text_input(key="study.form.question").value == QUESTION


def test_the_model_that_a_form_begins_with_has_its_own_data() -> None:
    page = opened(**{NEW: "blank"})
    page.segmented_control(key="study.form.kind").set_value("image")
    run(page)
    data, model = (str(page.selectbox(key=f"study.form.image.{name}").value) for name in ("dataset", "model"))
    assert model.startswith(data)


def test_a_design_of_pictures_fills_the_form_too(tmp_path: Path) -> None:
    made = studies.create(image_design(tmp_path))
    page = opened(**{STUDY: made.id})
    assert page.multiselect(key="study.form.image.methods").value == ["gradient", "attention_mean"]
    assert page.button(key="study.save").disabled
    assert not errors(page)


def test_opening_goes_on_without_the_page_and_is_seen_by_the_next(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    opening = study_draft.start_opening(made.id)
    assert study_draft.start_opening(made.id) is opening or opening.is_over
    assert opening.wait(SECONDS)
    assert studies.find(made.id).state == "open"
    page = opened(**{STUDY: made.id})
    assert [code.value for code in page.code] == [f"/annotate?study={made.token}"]


@pytest.mark.parametrize(("url", "here"), [("http://localhost:8501/study", True), ("https://lab.example/study", False)])
def test_a_link_that_others_cannot_follow_is_said_to_lead_nowhere_else(url: str, here: bool, tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    study_draft.start_opening(made.id).wait(SECONDS)
    with patch.object(ContextProxy, "url", new_callable=PropertyMock, return_value=url):
        page = opened(**{STUDY: made.id})
    assert page.code[0].value.startswith(url.removesuffix("study"))
    assert any("This link works only on this machine." in told for told in notes(page)) is here


def test_how_far_an_opening_is_counts_examples_and_names_methods() -> None:
    opening = Opening(1)
    for report, told in (
        ((0, 0, ""), "loading the data set and the model"),
        ((3, 9, "examples"), "3 of 9 examples"),
        ((1, 4, "lime"), "1 of 4 explanations (lime)"),
    ):
        opening._report(*report)
        assert opening.progress[1].startswith(told)


def test_why_an_opening_failed_is_said_and_the_draft_stays(tmp_path: Path) -> None:
    made = studies.create(replace(text_design(tmp_path), dataset=str(tmp_path / "gone.csv")))
    opening = study_draft.start_opening(made.id)
    assert opening.wait(SECONDS)
    page = opened(**{STUDY: made.id})
    assert "gone.csv" in errors(page)[0]
    assert studies.find(made.id).state == "draft"
    assert not page.button(key="study.open").disabled
    study_draft.forget_opening(made.id)  # the next test's database begins with the same number


def test_a_stopped_opening_leaves_a_draft(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    opening = study_draft.Opening(made.id)
    opening.stop()
    opening.start()
    assert opening.wait(SECONDS)
    assert "Stopped on request" in str(opening.failure())
    assert studies.find(made.id).state == "draft"


def test_a_study_goes_from_open_to_archived(tmp_path: Path) -> None:
    study = opened_study(text_design(tmp_path))
    page = opened(**{STUDY: study.id})
    assert "no participants yet" in said(page)
    assert "Gradient; LIME (n_samples 40)" in said(page)
    studies.close(study.id)
    page = press(run(page), "archive")
    assert studies.find(study.id).state == "archived"
    assert "archived" in notes(page)[1]
    page = opened()
    assert not titles(page)
    page.toggle(key=SHOW_ARCHIVED).set_value(True)
    assert titles(run(page)) == ["Small"]


def test_a_copy_is_a_draft_of_its_own(tmp_path: Path) -> None:
    study = opened_study(text_design(tmp_path))
    page = press(opened(**{STUDY: study.id}), "duplicate")
    copy = studies.list_studies()[0]
    assert asked(page, STUDY) == str(copy.id)
    assert (copy.state, copy.design.methods) == ("draft", study.design.methods)
    assert page.text_input(key="study.form.title").value == "Copy of Small"


def test_deleting_waits_for_the_title(tmp_path: Path) -> None:
    study = studies.create(text_design(tmp_path, title="Two  words"))
    page = press(opened(**{STUDY: study.id}), "delete")
    sure = next(button for button in page.button if button.label == "Delete the study")
    assert sure.disabled


def test_what_happened_to_a_study_is_listed(tmp_path: Path) -> None:
    study = opened_study(text_design(tmp_path))
    page = AppTest.from_file(str(ROOT / "pages" / "study.py"), default_timeout=SECONDS)
    page.query_params[STUDY] = str(study.id)
    page.session_state["study.log"] = True
    run(page)
    assert list(page.table[0].value["event"]) == ["opened", "created"]


def test_a_title_is_text_wherever_it_stands(tmp_path: Path) -> None:
    study = opened_study(text_design(tmp_path, title=EVIL, consent=EVIL))
    for page in (opened(), opened(**{STUDY: study.id})):
        assert escape_label(EVIL) in titles(page)
        assert "<img" not in "".join(element.proto.body for element in page.get("html"))


def test_a_draft_from_a_file_opens_with_what_it_brought(tmp_path: Path) -> None:
    made = import_study(export_study(opened_study(text_design(tmp_path)).id))
    page = opened(**{STUDY: made.id})
    assert "uses exactly those" in notes(page)[1]
    assert not page.text_input
    assert not page.button(key="study.open").disabled


@pytest.mark.parametrize(("number", "wanted"), [("99", "there is no study 99"), ("x", "must be the number of a study")])
def test_a_study_that_is_not_there_is_said_with_a_way_back(number: str, wanted: str) -> None:
    page = opened(**{STUDY: number})
    assert wanted in errors(page)[0]
    page = press(page, "all")
    assert page.info


def test_a_store_that_cannot_be_reached_is_said(broken: Callable[[], None]) -> None:
    broken()
    with pytest.raises(ExegesisError):
        study_database()
    assert ADDRESS in errors(opened())[0]
