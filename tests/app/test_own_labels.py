"""Labels of one's own on the Text page: two fields that make a model of pairs a zero-shot classifier, in the link."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from components.inputs import text_choice
from components.prediction import HEADS_LINK
from tests.project import ROOT

SECONDS = 120
TEXT = "The chef fried the onions."
NAME = "nli-minilm?labels=travel|cooking"


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = value
    page = page.run()
    assert not page.exception
    return page


def fields(page: AppTest) -> dict[str, str]:
    wanted = {text_choice.key("labels"), text_choice.key("template")}
    return {one.label: str(one.value) for one in page.text_input if one.key in wanted}


def html(page: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in page.get("html"))


def test_labels_that_are_typed_become_the_classes_and_stand_in_the_link() -> None:
    page = opened(model="nli-minilm", text=TEXT, pair="Food.", method="random")
    assert fields(page) == {"Labels": ""}
    page.text_input(text_choice.key("labels")).set_value("travel, cooking").run()
    assert not page.exception
    assert page.query_params["model"] == NAME
    assert "pair" not in page.query_params
    assert fields(page) == {"Labels": "travel, cooking", "Template": "This example is {}."}
    assert "cooking" in html(page)
    page.text_input(text_choice.key("template")).set_value("no place for a label").run()
    assert "template: must be a text with {} once" in html(page)
    assert page.query_params["model"] == NAME
    page.text_input(text_choice.key("labels")).set_value("").run()
    assert page.query_params["model"] == "nli-minilm"


def test_a_link_opens_with_its_labels() -> None:
    page = opened(model=NAME, text=TEXT, method="random")
    assert fields(page) == {"Labels": "travel, cooking", "Template": "This example is {}."}
    assert "travel" in html(page)
    assert HEADS_LINK not in [button.label for button in page.button]


def test_a_model_of_one_text_has_no_such_fields() -> None:
    page = opened(model="reviews-minilm", text=TEXT, method="random")
    assert fields(page) == {}
    assert HEADS_LINK in [button.label for button in page.button]
