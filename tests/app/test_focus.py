"""One focus for all pages: what one page looks at, the next one opens with."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.inputs import text_choice
from components.inputs.datasets import complete_dataset, open_texts
from components.inputs.text_choice import CARRIED, TextFocus, write_text_focus
from components.text.state import key
from engine.data.datasets import load
from engine.data.sources import list_datasets
from tests.alerts import errors
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def text_page() -> AppTest:
    return AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=120)


def shown(page: AppTest) -> tuple[object, object, object]:
    return (
        page.selectbox(text_choice.key("model")).value,
        page.selectbox(text_choice.key("data")).value,
        page.number_input(text_choice.key("index")).value,
    )


def table(folder: Path) -> str:
    file = folder / "own.csv"
    file.write_text("text,label\ngood food,1\nbad food,0\n", encoding="utf-8")
    return str(file)


def test_the_page_opens_what_another_page_looked_at_and_keeps_its_own_choices(model: str) -> None:
    page = text_page()
    for name, value in {"model": model, "method": ["random"], "index": "3", "unit": "word", "pin": "2"}.items():
        page.query_params[name] = value
    page.run()
    page.query_params.clear()
    page.session_state[CARRIED] = {"model": [model], "data": ["reviews"], "index": ["8"]}
    page.run()
    assert shown(page) == (model, "reviews", 8)
    assert page.text_area(text_choice.key("text")).value == load("reviews")[8].text
    open_options(page, key("options"))
    assert page.segmented_control(key("unit")).value == "word"
    assert "pin" not in page.query_params
    assert page.query_params["method"] == "random"


def test_what_the_page_looks_at_is_carried_to_others(model: str) -> None:
    page = text_page()
    page.query_params["model"] = model
    page.query_params["method"] = "random"
    page.run()
    page.number_input(text_choice.key("index")).set_value(5).run()
    assert page.session_state[CARRIED] == {"model": [model], "data": ["reviews"], "index": ["5"]}


def test_a_table_of_ones_own_is_a_data_set_and_a_wrong_name_is_said(model: str, tmp_path: Path) -> None:
    file = table(tmp_path)
    page = text_page()
    for name, value in {"model": model, "method": "random", "data": file, "index": "1"}.items():
        page.query_params[name] = value
    page.run()
    assert shown(page) == (model, file, 1)
    assert page.text_area(text_choice.key("text")).value == "bad food"
    assert page.query_params["data"] == file
    page.query_params["data"] = str(tmp_path / "gone.csv")
    page.run()
    assert not page.exception
    assert any("gone.csv" in error and "reviews is shown" in error for error in errors(page))


def opened(model: str, **query: str) -> AppTest:
    page = text_page()
    for name, value in ({"model": model, "method": "random"} | query).items():
        page.query_params[name] = value
    return page.run()


def link_to(file: str, index: int) -> dict[str, str]:
    """What a link says of an example of a data set."""
    example = load(file)[index].example
    focus = TextFocus("", example.text, example.text_pair, index, file)
    return {name: given for name, [given] in write_text_focus(focus).items() if name != "model"}


def test_a_data_set_that_is_not_there_is_said_until_another_is_chosen(model: str) -> None:
    page = opened(model, data="nosuch", index="3", pin="2")
    open_options(page, key("options"))
    page.segmented_control(key("unit")).set_value("word").run()
    for one in (page, opened(**dict(page.query_params))):
        assert not one.exception
        assert "unknown name 'nosuch'" in errors(one)[0]
        assert shown(one) == (model, "nosuch", 0)
        assert one.text_area(text_choice.key("text")).value == load("reviews")[0].text
        assert one.query_params["data"] == "nosuch"
        assert one.session_state[key("pins")] == []
    page.selectbox(text_choice.key("data")).set_value("reviews").run()
    assert not errors(page)
    assert page.query_params["data"] == "reviews"


def test_an_example_taken_from_what_is_shown_instead_chooses_it(model: str) -> None:
    page = opened(model, data="nosuch", index="3")
    page.number_input(text_choice.key("index")).set_value(5).run()
    assert not errors(page)
    assert shown(page) == (model, "reviews", 5)


def test_an_own_text_is_of_no_data_set_and_the_way_back_to_one_is_open(model: str, tmp_path: Path) -> None:
    page = opened(model, data=(file := table(tmp_path)), index="1")
    page.text_area(text_choice.key("text")).set_value("fine food").run()
    assert shown(page) == (model, None, None)
    assert page.selectbox(text_choice.key("data")).proto.placeholder == text_choice.OWN_TEXT
    assert "row number in" in page.number_input(text_choice.key("index")).help
    assert (page.query_params["data"], page.query_params["text"]) in ((file, "fine food"), ([file], ["fine food"]))
    again = opened(model, **{name: page.query_params[name] for name in ("data", "text")})
    assert shown(again) == (model, None, None)
    for one, choose in ((page, lambda: page.number_input(text_choice.key("index")).set_value(0)),
                        (again, lambda: again.selectbox(text_choice.key("data")).set_value(file))):  # fmt: skip
        one.selectbox(text_choice.key("data")).options.append(file)
        choose().run()
        assert not errors(one)
        assert shown(one) == (model, file, 0)
        assert one.text_area(text_choice.key("text")).value == "good food"


def test_a_row_put_before_it_makes_an_example_another_and_that_is_said(model: str, tmp_path: Path) -> None:
    link = link_to(file := table(tmp_path), 1) | {"pin": "1", "edit": "worse food", "unit": "word"}
    page = opened(model, **link)
    assert not errors(page)
    assert page.text_area(key("edit")).value == "worse food"
    Path(file).write_text("text,label\na new row,1\ngood food,1\nbad food,0\n", encoding="utf-8")
    page = opened(model, **link)
    [sentence] = errors(page)
    assert sentence.startswith(f"digest: example 1 of {file} is not the text")
    assert page.text_area(text_choice.key("text")).value == "good food"
    assert (page.session_state[key("pins")], page.session_state[key("edit")]) == ([], None)
    open_options(page, key("options"))
    page.segmented_control(key("unit")).set_value("token").run()
    assert page.query_params["digest"] == link_to(file, 1)["digest"] != link["digest"]


def test_a_random_example_is_one_of_the_data_set(model: str) -> None:
    page = text_page()
    page.query_params["model"] = model
    page.query_params["method"] = "random"
    page.run()
    page.button(text_choice.key("random")).click().run()
    index = page.number_input(text_choice.key("index")).value
    assert page.text_area(text_choice.key("text")).value == load("reviews")[index].text


def test_controls_that_come_back_empty_are_filled_from_the_link(model: str) -> None:
    """As after a click that cuts the first run short: the browser then sends nothing for what it had not drawn."""
    page = text_page()
    for name, value in {"model": model, "method": "random", "index": "3"}.items():
        page.query_params[name] = value
    page.run()
    link = dict(page.query_params)
    for name, empty in {key("unit"): None, key("methods"): [], text_choice.key("text"): ""}.items():
        page.session_state[name] = empty
    page.run()
    assert not page.exception
    assert page.text_area(text_choice.key("text")).value == load("reviews")[3].text
    assert page.multiselect(key("methods")).value == ["random"]
    assert dict(page.query_params) == link


def offers(page: AppTest) -> list[str]:
    return [button.label for button in page.button if button.label.startswith("Use ")]


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def label_of(page: AppTest, model: str) -> str:
    options = page.selectbox(text_choice.key("model")).options
    return next(label for label in options if label.startswith(f"{model} "))


def has_rationale(page: AppTest) -> bool:
    return any('<p class="xg-title">Rationale' in html.proto.body for html in page.get("html"))


def test_a_model_of_another_task_is_marked_and_one_click_turns_to_a_data_set_that_fits() -> None:
    page = opened("reviews-minilm", data="reviews", index="3")
    assert label_of(page, "reviews-minilm").startswith("reviews-minilm · sentiment, ")
    assert label_of(page, "nli-minilm").startswith("nli-minilm · other task: inference (pairs), ")
    assert not offers(page)
    assert has_rationale(page)
    page.selectbox(text_choice.key("model")).set_value("nli-minilm").run()
    assert shown(page) == ("nli-minilm", "reviews", 3)
    assert any("trained for inference" in caption.value for caption in page.caption)
    assert not has_rationale(page)
    assert offers(page) == ["Use nli instead", "Use reviews\\-minilm"]
    press(page, "Use nli instead")
    assert shown(page) == ("nli-minilm", "nli", 0)
    assert (page.query_params["data"], page.query_params["model"]) == ("nli", "nli-minilm")
    assert not offers(page)
    assert label_of(page, "nli-minilm").startswith("nli-minilm · inference (pairs), ")
    assert label_of(page, "reviews-minilm").startswith("reviews-minilm · other task: sentiment, ")


def test_one_click_turns_to_a_model_that_fits_the_data_set() -> None:
    page = opened("reviews-minilm", data="nli", index="3")
    press(page, "Use nli\\-minilm")
    assert shown(page) == ("nli-minilm", "nli", 3)
    assert not offers(page)


def test_a_label_that_the_browser_sends_late_is_the_model_that_it_names() -> None:
    page = opened("nli-minilm", data="nli")
    late = label_of(opened("nli-minilm", data="reviews"), "nli-minilm")
    assert late != label_of(page, "nli-minilm")
    box = page.selectbox(text_choice.key("model"))
    box.options.append(late)
    box.set_value(late).run()
    assert shown(page)[:2] == ("nli-minilm", "nli")
    assert page.query_params["model"] == "nli-minilm"
    assert not errors(page)


def test_a_text_of_ones_own_is_of_no_task() -> None:
    assert not offers(opened("nli-minilm", data="reviews", text="A man sleeps.", pair="A man is awake."))


def test_an_unknown_field_of_a_link_is_named_until_the_page_shows_something_else(model: str) -> None:
    page = text_page()
    for name, value in {"model": model, "method": ["random"], "index": "3", "colour": "<b>"}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert not errors(page)
    line = "&#x27;colour&#x27; in the link is not known here. The page opened with the rest of the link."
    assert line in " ".join(html.proto.body for html in page.get("html"))
    assert shown(page) == (model, "reviews", 3)
    assert "colour" not in page.query_params
    page.number_input(text_choice.key("index")).set_value(4).run()
    assert "not known here" not in " ".join(html.proto.body for html in page.get("html"))


@pytest.mark.parametrize(
    ("typed", "taken"),
    [("agree", "agreement"), ("Marked", "reviews-marked"), ("nli", "nli"), ("re", "re"), ("own.csv", "own.csv")],
)
def test_a_half_typed_data_set_is_completed_where_one_name_alone_matches(
    typed: str, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(st, "session_state", {"data": typed})
    complete_dataset("data", list_datasets("text"))
    assert st.session_state == {"data": taken}
    if taken == "re":
        assert "unknown name 're'. Known: agreement, " in open_texts(taken).error, "several match"
