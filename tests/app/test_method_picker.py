"""The list of all methods as a script: what is listed, filtered, chosen and changed; the Text page takes it over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from components.method_picker import ANY
from components.text.state import START, key
from engine.registry import all_explainers, explainer
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint

SECONDS = 120
PREFIX = "here."
DRAFT = f"{PREFIX}draft"


def draw() -> None:
    """The dialog's content outside of the dialog, which a script test cannot keep open."""
    import streamlit as st

    from components.method_picker import picker_body
    from components.text.state import START
    from engine.registry import all_explainers

    st.session_state.setdefault("here.draft", ["random", "occlusion"])
    picker_body(all_explainers(), START, "here.")


@pytest.fixture
def body() -> AppTest:
    page = AppTest.from_function(draw, default_timeout=SECONDS).run()
    assert not page.exception
    return page


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def text_page(model: str, **query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in {"model": model, "text": "good food", **query}.items():
        page.query_params[name] = value
    return page.run()


def listed(page: AppTest) -> list[str]:
    return [box.key.removeprefix(f"{PREFIX}pick.") for box in page.checkbox]


def html_of(page: AppTest) -> Iterator[str]:
    yield from (element.proto.body for element in page.get("html"))


def test_each_method_has_a_row_with_its_axes_and_the_chosen_are_ticked(body: AppTest) -> None:
    assert listed(body) == list(all_explainers())
    assert [box.label for box in body.checkbox] == [method.title for method in all_explainers().values()]
    assert {box.key for box in body.checkbox if box.value} == {f"{PREFIX}pick.random", f"{PREFIX}pick.occlusion"}
    told = "".join(html_of(body))
    for method in all_explainers().values():
        assert f"<dd>{method.axes.removal}</dd>" in told
    assert f"{len(all_explainers())} of {len(all_explainers())} methods listed, 2 chosen." in body.caption[0].value


def test_a_ticked_method_goes_to_the_end_and_an_unticked_one_goes(body: AppTest) -> None:
    body.checkbox(f"{PREFIX}pick.gradient").check().run()
    assert body.session_state[DRAFT] == ["random", "occlusion", "gradient"]
    body.checkbox(f"{PREFIX}pick.random").uncheck().run()
    assert body.session_state[DRAFT] == ["occlusion", "gradient"]


def test_filters_list_fewer_methods_and_lose_no_choice(body: AppTest) -> None:
    body.selectbox(f"{PREFIX}filter.summary").set_value("Shapley value").run()
    assert listed(body) == ["kernel_shap", "exact_shapley", "least_sensitive", "shapley_sampling"]
    body.selectbox(f"{PREFIX}filter.cost").set_value("quick").run()
    assert listed(body) == []
    assert "Set a filter back to Any" in body.info[0].value
    body.selectbox(f"{PREFIX}filter.summary").set_value(ANY).run()
    assert set(listed(body)) == {id for id, method in all_explainers().items() if method.cheap}
    assert body.session_state[DRAFT] == ["random", "occlusion"]


def test_a_preset_replaces_the_choice(body: AppTest) -> None:
    body.button(f"{PREFIX}preset.Default").click().run()
    assert body.session_state[DRAFT] == list(START)
    assert {box.key for box in body.checkbox if box.value} == {f"{PREFIX}pick.{id}" for id in START}


def test_a_changed_parameter_is_said_survives_a_filter_and_is_reset(body: AppTest) -> None:
    body.number_input(f"{PREFIX}smoothgrad.n_samples").set_value(20).run()
    body.selectbox(f"{PREFIX}smoothgrad.reduction").set_value("sum").run()
    assert "Changed: n_samples 20, reduction sum" in [caption.value for caption in body.caption]
    body.selectbox(f"{PREFIX}filter.scores").set_value("unsigned").run()
    assert "smoothgrad" not in listed(body)
    body.selectbox(f"{PREFIX}filter.scores").set_value("signed").run()
    assert body.number_input(f"{PREFIX}smoothgrad.n_samples").value == 20
    body.button(f"{PREFIX}reset.smoothgrad").click().run()
    assert "smoothgrad" not in listed(body)
    assert body.session_state[f"{PREFIX}smoothgrad.n_samples"] == explainer("smoothgrad").params().n_samples


def test_the_page_says_what_is_changed_and_takes_it_back(model: str) -> None:
    page = text_page(model, method=["random", "occlusion"], **{"occlusion.window": "2"})
    assert not page.exception
    assert "Changed: Occlusion with window 2" in [caption.value for caption in page.caption]
    assert page.query_params["occlusion.window"] == "2"
    page.run()
    assert page.query_params["occlusion.window"] == "2"
    page.button(key("reset")).click().run()
    assert "occlusion.window" not in page.query_params
    assert not any("Changed" in caption.value for caption in page.caption)


def test_a_parameter_set_in_the_list_stands_in_the_link_while_the_list_is_closed(model: str) -> None:
    page = text_page(model, method=["random", "occlusion"])
    open_options(page, key("options"))
    page.button(key("all")).click().run()
    page.number_input(key("occlusion.window")).set_value(3).run()
    assert page.query_params["occlusion.window"] == "3"
    page.run()
    assert page.query_params["occlusion.window"] == "3"
    page.multiselect(key("methods")).set_value(["random"]).run()
    assert "occlusion.window" not in page.query_params
    page.multiselect(key("methods")).set_value(["random", "occlusion"]).run()
    assert page.query_params["occlusion.window"] == "3"


def test_another_link_forgets_what_was_set_in_the_list(model: str) -> None:
    page = text_page(model, method=["random", "occlusion"])
    open_options(page, key("options"))
    page.button(key("all")).click().run()
    page.number_input(key("occlusion.window")).set_value(3).run()
    page.query_params["occlusion.window"] = "2"
    page.run()
    assert page.session_state[key("occlusion.window")] == 2
    del page.query_params["occlusion.window"]
    page.run()
    assert not any("Changed" in caption.value for caption in page.caption)
