"""Items and methods in the form of a study: a preview, picking by looking, and one method several times."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.organizer import PASSWORD
from components.study.actions import STUDY
from components.study.fields import field_key
from engine.study import studies
from engine.study.database import ADDRESS
from engine.study.design import Design, ItemChoice, MethodChoice
from tests.alerts import errors
from tests.project import ROOT
from tests.unit.study.samples import TEXTS, image_design, text_design

SECONDS = 120.0
HAND = ItemChoice("hand", indices=(5, 1, 2, 0))


@pytest.fixture(autouse=True)
def empty(own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No studies, no password."""
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.delenv(PASSWORD, raising=False)


def form(design: Design, *opened: str) -> AppTest:
    """A draft's form, with these of its expanders open."""
    page = AppTest.from_file(str(ROOT / "pages" / "study.py"), default_timeout=SECONDS)
    page.query_params[STUDY] = str(studies.create(design).id)
    for name in opened:
        page.session_state[field_key(name)] = True
    return run(page)


def run(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def said(page: AppTest) -> str:
    return unescape("\n".join(element.proto.body for element in page.get("html")))


def captions(page: AppTest) -> str:
    return "\n".join(str(one.value) for one in page.caption)


def test_the_first_items_are_shown_as_the_form_stands(tmp_path: Path) -> None:
    page = form(text_design(tmp_path), "preview")
    assert "The first 4 of 4 items, including practice items." in captions(page)
    assert sum(text in said(page) for text in TEXTS) == 4
    assert "· practice" in said(page)
    page.segmented_control(key=field_key("items.how")).set_value("hand")
    assert "No examples selected yet" in captions(run(page))
    page.text_area(key=field_key("items.indices")).set_value("3, 1")
    shown = said(run(page))
    assert "<dt>3 · good · practice</dt>" in shown
    assert TEXTS[1] in shown
    assert TEXTS[0] not in shown


def test_what_is_wrong_with_the_choice_is_said_in_its_place(tmp_path: Path) -> None:
    page = form(text_design(tmp_path, items=ItemChoice("filter", 3, label="fair")), "preview")
    assert "Class: must be a class of" in errors(page)[0]
    page.text_input(key=field_key("items.label")).set_value("")
    page.segmented_control(key=field_key("items.judged")).set_value("wrong")
    assert "the model is wrong" in captions(run(page))
    assert not errors(page)
    page.text_input(key=field_key("items.split")).set_value("dev")
    assert "one file without splits" in errors(run(page))[0]


def test_ticks_and_the_list_of_numbers_are_one(tmp_path: Path) -> None:
    page = form(text_design(tmp_path, items=HAND, practice=1), "pick")
    ticked = [str(box.key).rpartition(".")[2] for box in page.checkbox if box.value]
    assert ticked == ["0", "1", "2", "5"]
    assert TEXTS[3].split()[0] in page.checkbox(key=field_key("pick.3")).label
    page.checkbox(key=field_key("pick.3")).check()
    run(page).checkbox(key=field_key("pick.1")).uncheck()
    assert run(page).text_area(key=field_key("items.indices")).value == "5, 2, 0, 3"
    page.text_area(key=field_key("items.indices")).set_value("7")
    assert [box.key for box in run(page).checkbox if box.value] == [field_key("pick.7")]
    page.text_area(key=field_key("items.indices")).set_value("x")
    assert errors(run(page))[0].startswith("Example numbers: must be numbers and spans")


def test_the_data_set_is_looked_through_a_page_at_a_time(tmp_path: Path) -> None:
    design = text_design(tmp_path, items=HAND)
    last = 29
    with Path(design.dataset).open("a", encoding="utf-8") as file:
        file.writelines(f"Text {place},good\n" for place in range(len(TEXTS), last + 1))
    page = form(design, "pick")
    assert page.button(key=field_key("pick.Previous page")).disabled
    page.button(key=field_key("pick.Next page")).click()
    run(page)
    assert page.checkbox[0].key == field_key("pick.12")
    assert "Examples 12 to 23; the last one is 29" in captions(page)
    page.number_input(key=field_key("pick.from")).set_value(last)
    assert [box.key for box in run(page).checkbox] == [field_key(f"pick.{last}")]
    assert page.button(key=field_key("pick.Next page")).disabled


def test_pictures_are_picked_by_their_thumbnails(tmp_path: Path) -> None:
    design = image_design(tmp_path, items=ItemChoice("hand", indices=(0, 1, 2, 3)))
    page = form(design, "pick", "preview")
    assert said(page).count("data:image/webp;base64,") == 6 + 4
    page.checkbox(key=field_key("pick.4")).check()
    assert run(page).text_area(key=field_key("items.indices")).value == "0-4"
    assert said(page).count("data:image/webp;base64,") == 6 + 5


def test_one_method_with_different_parameters_stands_in_the_form(tmp_path: Path) -> None:
    twice = (MethodChoice("lime", {"n_samples": 40}), MethodChoice("lime", {"n_samples": 50}))
    page = form(text_design(tmp_path, methods=twice))
    assert page.multiselect(key="study.form.text.methods").value == ["lime", "lime#2"]
    assert page.button(key="study.save").disabled
    page.selectbox(key="study.form.text.again").set_value("lime")
    run(page).button(key="study.save").click()
    run(page)
    methods = studies.list_studies()[0].design.methods
    assert [method.id for method in methods] == ["lime"] * 3
    assert [method.params["n_samples"] for method in methods[:2]] == [40, 50]
    page.selectbox(key="study.form.text.again").set_value("lime")
    run(page)
    assert "lime is listed twice with the same parameters" in errors(page)[0]
    assert page.button(key="study.open").disabled
    page.multiselect(key="study.form.text.methods").unselect("lime#4")
    assert not errors(run(page))
