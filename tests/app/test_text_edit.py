"""Pinned tokens and edited texts on the Text page: what is said, what is drawn, that nothing is lost."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput
from transformers import AutoTokenizer

from components import ablation
from components.ablation import TEXT_WORDS
from components.inputs import text_choice
from components.styles import asset_sheet
from components.text.state import key
from engine.registry import explainer
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import save_checkpoint

QUICK = ["gradient_x_input", "attention_mean", "random"]
TEXT = "good food, bad service"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(model: str, **query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=120)
    for name, value in {"model": model, "method": QUICK, "text": TEXT, **query}.items():
        page.query_params[name] = value
    return page.run()


def html(page: AppTest, holding: str) -> list[str]:
    """What is drawn that holds some HTML; style sheets left out."""
    drawn = [element.proto.body for element in page.get("html")]
    return [unescape(one) for one in drawn if holding in one and "<style>" not in one]


def answers(page: AppTest) -> str:
    [found] = html(page, 'class="xg-heading"')
    return found


def rows(page: AppTest) -> list[str]:
    """The rows that show the maps before and after."""
    return html(page, 'class="xg-pair')


def said(page: AppTest) -> list[str]:
    return [element.value for element in (*page.caption, *page.info)]


def test_nothing_pinned_is_no_answer_and_no_work(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(ablation, "ablated_predictions", lambda *given: calls.append(given))
    page = opened(model)
    assert not page.exception
    assert TEXT_WORDS.nothing not in said(page)
    assert not calls
    assert not html(page, 'class="xg-heading"')


def test_pinned_tokens_have_the_prediction_without_them_by_every_operator(model: str) -> None:
    page = opened(model, pin="1,3")
    assert not page.exception
    found = answers(page)
    assert "Without “<bdi>good</bdi>”, “<bdi>,</bdi>”" in found
    assert all(name in found for name in TEXT_WORDS.removals.values())
    assert all(explainer(method).title in found for method in QUICK)
    assert TEXT_WORDS.nothing not in said(page)
    sheet = asset_sheet("questions")
    assert any(sheet in element.proto.body for element in page.get("html")), "they are laid out"


def test_a_link_may_pin_what_cannot_be_removed(model: str) -> None:
    page = opened(model, pin="0,999")
    assert not page.exception
    assert TEXT_WORDS.nothing in said(page)
    assert "Without “<bdi>good</bdi>”<" in answers(opened(model, pin="0,1,999"))


def test_what_is_asked_of_a_word_is_asked_of_all_its_tokens(model: str) -> None:
    text = "unbelievably good food"
    page, token = (opened(model, text=text, pin="1", unit=unit) for unit in ("word", "token"))
    assert not page.exception
    assert "Without “<bdi>unbelievably</bdi>”<" in answers(page)
    assert "Without “<bdi>unbelievably</bdi>”<" not in answers(token)
    pieces = len(AutoTokenizer.from_pretrained(model).tokenize("unbelievably"))
    everything = opened(model, text=text, pin=",".join(map(str, range(1, pieces + 1))), unit="token")
    assert answers(page).partition("<table")[2] == answers(everything).partition("<table")[2]
    assert page.query_params["pin"] == "1", "the link keeps what was picked"
    [field] = [one for one in page.text_input if "Replace" in one.label]
    assert field.label == "Replace “unbelievably” with"


def test_an_edit_in_the_link_stands_beside_its_parent(model: str) -> None:
    page = opened(model, edit="good food, lovely service")
    assert not page.exception
    assert page.text_area(key("edit")).value == "good food, lovely service"
    [predictions] = html(page, "after the edit")
    assert "percentage points" in predictions
    assert len(rows(page)) == len(QUICK)
    for row, method in zip(rows(page), QUICK, strict=True):
        assert explainer(method).title in row
        assert "one scale for both lines" in row
    assert page.query_params["edit"] == "good food, lovely service"
    assert html(page, "Both maps explain the same class")


def test_editing_is_a_toggle_then_a_text_and_can_be_dropped(model: str) -> None:
    page = opened(model)
    page.toggle(key("editing")).set_value(True).run()
    assert not page.exception
    assert page.text_area(key("edit")).value == TEXT
    assert any("Change the text above" in words for words in said(page))
    assert not rows(page)
    page.text_area(key("edit")).set_value("bad food").run()
    assert len(rows(page)) == len(QUICK)
    page.text_area(key("edit")).set_value("  ").run()
    assert any("The edited text is empty" in words for words in said(page))
    page.button(key("edit_drop")).click().run()
    assert not page.exception
    assert not page.toggle(key("editing")).value
    assert "edit" not in page.query_params


def test_neighboring_pins_can_be_replaced(model: str) -> None:
    page = opened(model, pin="1,2")
    [field] = [one for one in page.text_input if "Replace" in one.label]
    assert field.label == "Replace “good food” with"
    field.set_value("cold soup").run()
    assert not page.exception
    assert page.text_area(key("edit")).value == "cold soup, bad service"
    assert len(rows(page)) == len(QUICK)
    page.button(key("edit_drop")).click().run()
    [field] = [one for one in page.text_input if "Replace" in one.label]
    assert field.value == ""
    assert not rows(page)
    assert not [one for one in opened(model, pin="1,4").text_input if "Replace" in one.label], "not neighbors"


def test_a_replacement_keeps_what_was_edited_before(model: str) -> None:
    page = opened(model, text="the warm film is good", edit="the cold film is good", pin="5")
    replacing(page, "very bad")
    assert page.text_area(key("edit")).value == "the cold film is very bad"
    field = replacing(page, "bad")
    assert page.text_area(key("edit")).value == "the cold film is bad"
    field.set_value("").run()
    assert page.text_area(key("edit")).value == "the cold film is bad", "nothing typed"
    replacing(page, " ")
    assert page.text_area(key("edit")).value.rstrip() == "the cold film is"
    assert any("no longer in the edited text" in words for words in said(page))
    assert not page.exception


def replacing(page: AppTest, new: str) -> TextInput:
    [field] = [one for one in page.text_input if "Replace" in one.label]
    field.set_value(new).run()
    [field] = [one for one in page.text_input if "Replace" in one.label] or [field]
    return field


def test_what_is_named_in_a_label_is_no_markdown(model: str) -> None:
    page = opened(model, text="*o* :smile: [x](y)", pin="1,2")
    [field] = [one for one in page.text_input if "Replace" in one.label]
    assert field.label == r"Replace “\*o” with"


@pytest.mark.parametrize(("length", "label"), [(40, "o" * 40), (41, "o" * 39 + "…")])
def test_a_long_word_is_shortened_in_the_label(model: str, length: int, label: str) -> None:
    [field] = [
        one for one in opened(model, text="o" * length, pin="1", unit="word").text_input if "Replace" in one.label
    ]
    assert field.label == f"Replace “{label}” with"


def test_the_edit_can_become_the_text(model: str) -> None:
    page = opened(model, edit="bad food", pin="1")
    page.button(key("edit_go_on")).click().run()
    assert not page.exception
    assert page.text_area(text_choice.key("text")).value == "bad food"
    assert page.query_params["text"] == "bad food"
    assert not {"edit", "pin"} & set(page.query_params)
    assert not rows(page)


def test_both_texts_of_a_pair_can_be_edited(model: str) -> None:
    page = opened(model, pair="a premise is here", edit=TEXT, edit_pair="a premise follows")
    assert not page.exception
    assert page.text_area(key("edit_pair")).value == "a premise follows"
    assert all(row.count('class="xg-col xg-versions"') == 2 for row in rows(page))
    assert all("xg-changed" not in row[: row.rindex("xg-versions")] for row in rows(page)), "the first text is the same"


def test_a_link_may_edit_the_first_text_alone(model: str) -> None:
    page = opened(model, pair="a premise is here", edit="bad food")
    assert not page.exception
    assert not errors(page)
    assert page.text_area(key("edit_pair")).value == "a premise is here"
    assert len(rows(page)) == len(QUICK)


def test_both_maps_explain_the_class_of_the_parent(model: str) -> None:
    label = re.compile(r"for <bdi>(LABEL_\d)</bdi>")
    for target in ("LABEL_0", "LABEL_1"):
        page = opened(model, method="gradient_x_input", target=target, edit="the acting never falters")
        assert label.findall(rows(page)[0]) == [target]


def test_an_edit_that_the_model_cannot_read_is_said(model: str) -> None:
    page = opened(model, edit="\u200b")
    assert not page.exception
    assert any("nothing to explain" in error for error in errors(page))
    assert len(html(page, 'class="xg-row')) >= len(QUICK), "the parent stays"


def test_a_regression_head_has_scores(tmp_path: Path) -> None:
    page = opened(str(save_checkpoint("bert", tmp_path / "score", labels=1)), pin="1", edit="bad food")
    assert not page.exception
    assert "score <bdi>" in answers(page)
    assert html(page, "The score <bdi>")
