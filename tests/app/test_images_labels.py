"""Labels of a zero-shot model on the Images page: typed, taken from the data set, in the link, and their words."""

from __future__ import annotations

import shlex

import pytest
from streamlit.testing.v1 import AppTest

from components.images.label_tokens import METHODS
from components.images.results import TYPE_LABELS
from components.images.state import key
from components.inputs import picture_choice
from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.models.label_prompts import with_prompts
from engine.request import Picture, PicturePrompt, Request
from tests.alerts import errors, html_of
from tests.project import ROOT
from tests.unit.vision.tiny_families import save_zero_shot

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240
SCENES = "scenes:count=3"
CLASSES = "fish, car, house, tree, boat, cat, flower, umbrella, mug, rocket"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random SigLIP of 3 x 3 patches."""
    return str(save_zero_shot(tmp_path_factory.mktemp("model") / "both", "siglip"))


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS)
    for name, value in {"data": SCENES, "method": "gradient_x_input", **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def link_of(page: AppTest, name: str) -> str:
    return "".join(page.query_params[name])


def test_labels_are_typed_and_wrong_ones_explained(model: str) -> None:
    page = opened(model=model)
    assert not errors(page)
    assert [info.value for info in page.info] == [TYPE_LABELS]
    assert "has more of this data set's classes" not in " ".join(one.value for one in page.caption)
    labels = page.text_input(key=picture_choice.key("labels"))
    labels.set_value("film").run()
    assert any("labels: must be 2 to 1,000 labels, such as 'a cat, a dog', got 'film'" in one for one in errors(page))
    page.text_input(key=picture_choice.key("labels")).set_value("film, good food").run()
    assert not errors(page)
    assert link_of(page, "model") == with_prompts(model, "film, good food")
    page.text_input(key=picture_choice.key("template")).set_value("a view of {}").run()
    assert link_of(page, "model") == with_prompts(model, "film, good food", "a view of {}")
    assert "good food" in html_of(page)
    assert "a sigmoid of each label by itself" in html_of(page)
    page.text_input(key=picture_choice.key("template")).set_value("a view").run()
    assert any("template: must be a text with {} once" in one for one in errors(page))


def test_the_classes_of_the_data_set_become_labels(model: str) -> None:
    page = opened(model=model)
    page.button(key=picture_choice.key("labels of set")).click().run()
    assert not errors(page)
    assert link_of(page, "model") == with_prompts(model, CLASSES, "a photo of a {}")
    assert page.text_input(key=picture_choice.key("labels")).value == CLASSES


def test_a_link_fills_the_labels_and_the_words_of_the_prompt_are_those_of_the_engine(model: str) -> None:
    name = with_prompts(model, "film, food", "a view of the {}")
    page = opened(model=name, open="label", target="food")
    assert not errors(page)
    assert page.text_input(key=picture_choice.key("template")).value == "a view of the {}"
    assert "&lt;pad&gt;" not in html_of(page)
    [code] = [one.value for one in page.code if "--side" in one.value]
    typed = shlex.split(code)
    assert typed[typed.index("--labels") + 1] == "film, food"
    assert typed[typed.index("--target") + 1] == "food"
    prompt = PicturePrompt("a view of the food", picture=Picture(load_images(SCENES)[0].pixels))
    request = Request(name, "occlusion", prompt, dict(METHODS["occlusion"]))
    assert explain(request).cached
    page.selectbox(key=key("label_method")).set_value("gradient_x_input").run()
    assert not errors(page)
    assert "Gradient x input" in html_of(page)


def test_other_models_have_no_labels() -> None:
    page = opened(model="scenes-vit")
    assert not [one for one in page.text_input if one.label == "Labels"]
    assert not [one for one in page.toggle if one.label == "Tokens of the prompt that match the picture"]
