"""A link to the Attention page that asks for what the model or the input does not have: said, and taken out of it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from components.attention.state import key
from tests.alerts import errors
from tests.app.heads_page import link_of
from tests.app.options import open_options
from tests.app.test_attention_page import TEXT, opened
from tests.tiny import save_checkpoint

SIZE = "it has layers 0 to 2 with heads 0 to 3 each."
WRONG = {
    "head": ("99.99", f"This model has no head 99.99: {SIZE} The strongest is shown."),
    "layers": ("77", f"This model has no layer 77: {SIZE} All are shown."),
    "heads": ("99", f"This model has no head 99: {SIZE} All are shown."),
    "query": ("9999", "query: must be a position from 0 to 9 of this input, got 9999. The one that the model reads "),
    "start_layer": ("99", "start_layer: must be from 0 to 2 for this model, got 99. All layers count."),
    "between": ("a_to_b", "between: must be 'all' where there is no second text, got 'a_to_b'. Attention between all "),
    "target": ("<b>x", "target: unknown name '<b>x'. Known: LABEL_0, LABEL_1. The predicted class is explained."),
    "scale": ("wide", "scale: unknown name 'wide'. Known: own, shared."),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def of_text(model: str, **query: str) -> AppTest:
    page = opened(input="text", model=model, text=TEXT, score="entropy", **query)
    assert not page.exception
    return page


def has_board(page: AppTest) -> bool:
    return any(one.key == key("text", "look.score") for one in page.selectbox)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_there_is_said_once_and_leaves_the_link(name: str, model: str) -> None:
    given, words = WRONG[name]
    page = of_text(model, order="score", **{name: given})
    [said] = errors(page)
    assert said.startswith(words)
    assert has_board(page)
    assert link_of(page) == {"input": "text", "model": model, "text": TEXT, "score": "entropy", "order": "score"}


def test_what_is_there_stays_beside_what_is_not(model: str) -> None:
    page = of_text(model, layers="1,77", head="1.2", alone="on", start_layer="9", residual="0.25")
    assert len(errors(page)) == 2
    open_options(page, key("text", "options"))
    assert list(page.multiselect(key("text", "look.layers")).value) == [1]
    held = {name: said for name, said in link_of(page).items() if name not in ("input", "model", "text", "score")}
    assert held == {"layers": "1", "head": "1.2", "alone": "on", "residual": "0.25"}


def test_after_a_correction_heads_positions_and_classes_are_chosen_as_ever(model: str) -> None:
    page = of_text(model, head="9.9", target="nobody", query="9999")
    assert len(errors(page)) == 3
    for name, held in (("look.head", (1, 3)), ("look.query", 2), ("look.view", "query")):
        page.session_state[key("text", name)] = held
    page.run()
    open_options(page, key("text", "options"))
    page.selectbox(key("text", "target")).set_value("LABEL_1").run()
    assert not errors(page)
    link = link_of(page)
    assert (link["head"], link["query"], link["view"], link["target"]) == ("1.3", "2", "query", "LABEL_1")


def test_switched_heads_that_are_not_there_are_said_and_taken_back_by_a_button(model: str) -> None:
    page = of_text(model, switched="9.9x0")
    assert any("layers from 0 to 2" in said for said in errors(page))
    page.button(key("text", "restore")).click().run()
    assert not errors(page)
    assert has_board(page)
    assert "switched" not in link_of(page)
