"""The learned explainer on every page that offers methods: where the model has one, and where it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components import navigation
from components.study.fields import field_key as study_key
from components.study.form import NOT_LEARNED
from engine.registry import all_explainers
from engine.scaffold import learned_explainer
from engine.study import studies
from engine.study.design import SMAT_METHODS, STAND_IN
from tests import estimated
from tests.alerts import errors, notes
from tests.learned import for_model
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.randomization.making import reviews
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("own_home", "none_shipped")

SECONDS = 240.0
NONE_HERE = "there is no learned explainer for"
NOTE = "The learned explainer made-up, from 500 examples of reviews: it taught better than no explainer"


@pytest.fixture(scope="module")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def picture_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny", "ViTForImageClassification"))


@pytest.fixture
def none_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only what a test makes is there."""
    monkeypatch.setattr(learned_explainer, "SHIPPED", tmp_path / "shipped")


def opened(page: navigation.PageEntry, **query: str | Sequence[str]) -> AppTest:
    drawn = AppTest.from_file(str(ROOT / page.file), default_timeout=SECONDS)
    for name, value in query.items():
        drawn.query_params[name] = value if isinstance(value, str) else list(value)
    drawn.run()
    assert not drawn.exception
    return drawn


def html_of(page: AppTest) -> str:
    return unescape("\n".join(_bodies(page)))


def _bodies(page: AppTest) -> Iterator[str]:
    yield from (element.proto.body for element in page.get("html"))


def test_a_text_has_its_map_and_note_or_is_told_how_to_get_one(text_model: str) -> None:
    link = {"model": text_model, "text": "good food", "method": ["smat", "random"]}
    shown = html_of(opened(navigation.TEXT, **link))
    assert NONE_HERE in shown
    assert f"exegesis scaffold --teacher {text_model}" in shown
    for_model(text_model)
    shown = html_of(opened(navigation.TEXT, **link))
    assert NOTE in shown
    assert NONE_HERE not in shown


def test_a_picture_has_its_map_too(picture_model: str) -> None:
    link = {"model": picture_model, "data": "scenes", "index": "0", "method": ["smat", "random"]}
    assert NONE_HERE in html_of(opened(navigation.IMAGES, **link))
    for_model(picture_model)
    page = opened(navigation.IMAGES, **link)
    assert NONE_HERE not in html_of(page)
    assert not errors(page)


def test_columns_of_a_comparison_say_it_each_for_itself(text_model: str, tmp_path: Path) -> None:
    other = str(save_checkpoint("bert", tmp_path / "other", seed=3))
    for_model(text_model)
    columns = [f"smat@{text_model}", f"smat@{other}", f"random@{other}"]
    shown = html_of(opened(navigation.COMPARE, input="text", text="good food", column=columns))
    assert shown.count(NONE_HERE) >= 1
    assert f"{NONE_HERE} {other}" in shown
    assert f"{NONE_HERE} {text_model}" not in shown


@pytest.mark.parametrize(
    ("page", "button"), [(navigation.EVALUATE, "Evaluate"), (navigation.RANDOMIZATION, "Randomize")]
)
def test_an_experiment_is_refused_before_it_begins(
    page: navigation.PageEntry, button: str, text_model: str, tmp_path: Path
) -> None:
    link = {"model": text_model, "data": reviews(tmp_path), "method": ["smat", "gradient_x_input"], "examples": "5"}
    drawn = opened(page, **link)
    assert any(NONE_HERE in error for error in errors(drawn))
    offered = [one for one in drawn.button if one.label == button]
    assert all(one.disabled for one in offered)
    for_model(text_model)
    drawn = opened(page, **link)
    assert not errors(drawn)
    assert not next(one for one in drawn.button if one.label == button).disabled


def draw(model: str) -> None:
    """The list of all methods outside of its dialog, which a script test cannot keep open."""
    import streamlit as st

    from components.method_picker import picker_body
    from components.text.state import START
    from engine.registry import all_explainers

    st.session_state.setdefault("here.draft", ["random"])
    picker_body(all_explainers(), START, "here.", [model])


def test_the_list_of_methods_says_why_it_is_not_for_this_model(text_model: str) -> None:
    body = AppTest.from_function(draw, args=(text_model,), default_timeout=SECONDS).run()
    known = list(all_explainers())
    assert len([caption.value for caption in body.caption if "Not for this model" in caption.value]) == 2
    assert body.button("here.preset.All").label == f"All ({len(known) - 2})"
    body.button("here.preset.Attention").click().run()
    assert "smat" not in body.session_state["here.draft"]
    for_model(text_model)
    estimated.for_model(text_model)
    body = AppTest.from_function(draw, args=(text_model,), default_timeout=SECONDS).run()
    assert not [caption.value for caption in body.caption if "Not for this model" in caption.value]
    body.button("here.preset.All").click().run()
    assert body.session_state["here.draft"] == known


def test_a_study_takes_the_learned_explainer_where_there_is_one() -> None:
    for_model("reviews-minilm")
    page = opened(navigation.STUDY, new="smat")
    assert any("The fourth method is the learned explainer of reviews-minilm." in note for note in notes(page))
    page.button(key="study.save").click().run()
    [made] = studies.list_studies()
    assert tuple(method.id for method in made.design.methods) == SMAT_METHODS


def test_a_study_is_never_drafted_with_what_its_model_has_not() -> None:
    for_model("reviews-minilm")
    page = opened(navigation.STUDY, new="smat")
    page.selectbox(study_key("text.model")).set_value("nli-minilm").run()
    assert NOT_LEARNED in notes(page)
    page.button(key="study.save").click().run()
    [made] = studies.list_studies()
    chosen = {method.id for method in made.design.methods}
    assert chosen == {*SMAT_METHODS, STAND_IN} - {"smat"}
