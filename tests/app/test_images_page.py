"""The Images page as a script: what it shows, what it says to bad input, and that its link reopens it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from components.images.export import FILES
from components.images.state import START, key
from components.inputs import picture_choice as picture_focus_controls
from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.home import product_version
from engine.registry import all_explainers, explainer
from engine.request import Picture, Request
from engine.store import store_picture
from tests.alerts import errors, notes
from tests.app.options import open_options
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

SECONDS = 240
QUICK = ["gradient_x_input", "attention_mean", "random"]
SCENES = "scenes:count=3"
ALONE = "xg-patches xg-alone"
"""The class of the picture without a map."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model of 3 x 3 patches and the classes cat, dog, eel."""
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def page(model: str) -> AppTest:
    """The page of a link that names a tiny model and quick methods."""
    return opened(model=model, method=QUICK)


def opened(**query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS)
    for name, value in {"data": SCENES, **query}.items():
        page.query_params[name] = value
    return page.run()


def link_of(page: AppTest) -> dict[str, str | list[str]]:
    return {name: page.query_params[name] for name in page.query_params}


def html_of(page: AppTest) -> Iterator[str]:
    yield from (element.proto.body for element in page.get("html"))


def cards(page: AppTest) -> dict[str, str]:
    """The methods' cards by their titles, without that of the picture itself."""
    found = [html for html in html_of(page) if 'class="xg xg-card' in html and ALONE not in html]
    titles = [re.search('<p class="xg-title">([^<]*)</p>', html) for html in found]
    return {unescape(title[1]): html for title, html in zip(titles, found, strict=True) if title}


def map_of(card: str) -> str:
    """What the browser draws and reads of a map, without what differs between a computed and a cached answer."""
    match = re.search('<div class="xg-patches".*?</div>', card)
    assert match, card
    return match[0]


def said(page: AppTest) -> list[str]:
    return [*errors(page), *notes(page), *(element.value for element in page.info)]


def test_a_bare_visit_explains_the_first_scene_by_each_usual_method() -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS).run()
    assert not page.exception
    assert not errors(page)
    assert list(cards(page)) == [explainer(id, "image").title for id in START]
    assert all("data-v=" in map_of(card) for card in cards(page).values())
    assert page.selectbox(picture_focus_controls.key("model")).value == "scenes-vit"
    [alone] = [html for html in html_of(page) if ALONE in html]
    data = load_images("scenes")
    assert data.label_names[data.labels[0] or 0] in alone
    assert any("xg-prediction" in html for html in html_of(page))


def test_cards_stand_in_the_order_chosen_with_title_caution_and_numbers(page: AppTest, model: str) -> None:
    assert not page.exception
    shown = cards(page)
    assert list(shown) == [explainer(id, "image").title for id in QUICK]
    picture = Picture(load_images(SCENES)[0].pixels)
    for id, card in zip(QUICK, shown.values(), strict=True):
        assert explainer(id, "image").caution in unescape(card)
        printed = re.search('data-v="([^"]*)"', card)
        assert printed
        scores = explain(Request(model, id, picture)).on_grid.ravel()
        np.testing.assert_allclose([float(one) for one in printed[1].split()], scores, rtol=6e-3)


def test_every_method_has_its_map_or_says_why_not(model: str) -> None:
    """Methods of hundreds of evaluations are asked for few."""
    known = all_explainers("image")
    few = {f"{id}.n_samples": "32" for id in ("lime", "kernel_shap")}
    page = opened(model=model, method=list(known), **few)
    assert not page.exception
    shown = cards(page)
    assert list(shown) == [method.title for method in known.values()]
    without = [title for title, card in shown.items() if 'class="xg-patches"' not in card]
    assert without == [known["smat"].title, known["empirical"].title]
    assert "there is no learned explainer for" in shown[without[0]]
    assert "there is no empirical explainer for" in shown[without[1]]


def test_another_class_is_explained_and_stands_in_the_link(page: AppTest) -> None:
    first = cards(page)
    predicted = page.session_state[key("target")]
    assert predicted == ""
    open_options(page, key("options"))
    labels = page.selectbox(key("target")).options[1:]
    assert labels == ["cat", "dog", "eel"]
    explained = {label: opened(**{**link_of(page), "target": label}) for label in labels}
    title = explainer("gradient_x_input", "image").title
    maps = {label: map_of(cards(other)[title]) for label, other in explained.items()}
    assert len(set(maps.values())) == 3
    assert map_of(first[title]) in maps.values()
    other = next(label for label, drawn in maps.items() if drawn != map_of(first[title]))
    page.selectbox(key("target")).set_value(other).run()
    assert page.query_params["target"] == other
    assert map_of(cards(page)[title]) == maps[other]


def test_the_look_a_parameter_and_the_seed_stand_in_the_link(model: str) -> None:
    page = opened(model=model, method=["gradient_x_input", "integrated_gradients", "occlusion", "random"])
    open_options(page, key("options"))
    page.slider(key("gamma")).set_value(0.5)
    page.toggle(key("outline")).set_value(False)
    page.number_input(key("seed")).set_value(3)
    page.session_state[key("occlusion.removal")] = "blur"
    page.segmented_control(key("scale")).set_value("shared").run()
    assert not page.exception
    link = link_of(page)
    told = {name: link[name] for name in ("gamma", "outline", "scale", "seed", "occlusion.removal")}
    assert told == {"gamma": "0.5", "outline": "off", "scale": "shared", "seed": "3", "occlusion.removal": "blur"}
    shown = cards(page)
    assert "scale shared by the signed maps of the logit of the class" in shown["Integrated gradients"]
    assert "removal = blur" in shown["Occlusion"]
    again = cards(opened(**link))
    assert list(map(map_of, again.values())) == list(map(map_of, shown.values()))


def test_an_error_in_one_method_stands_in_its_place(model: str) -> None:
    page = opened(model=model, method=["attention_mean", "attention_head", "random"], **{"attention_head.layer": "99"})
    assert not page.exception
    first, second, third = cards(page).values()
    assert "attention_head.layer" in second
    assert "xg-error" in second
    assert map_of(first)
    assert map_of(third)


def test_no_method_says_what_to_do_and_leaves_the_picture(page: AppTest) -> None:
    page.multiselect(key("methods")).set_value([]).run()
    assert "Pick at least one method above." in said(page)
    assert page.query_params["method"] == "none"
    assert any(ALONE in html for html in html_of(page))
    assert not page.get("download_button")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"method": ["lime2", "random"]}, "method: unknown name 'lime2'. Did you mean 'lime'? Known:"),
        ({"method": ["attn_lrp2", "random"]}, "method: unknown name 'attn_lrp2'"),
        ({"index": "100000"}, "index: must be 0 to"),
        ({"index": "-1"}, "index: must be 0 to"),
        ({"data": "imagenet", "index": "1"}, "dataset: unknown name 'imagenet'"),
        ({"seed": "x"}, "seed: must be a whole number"),
        ({"gamma": "9"}, "gamma: must be a number from 0.3 to 2.0, got '9'"),
        ({"scale": "log"}, "scale: unknown name 'log'. Known: own, shared."),
        ({"opacity": "200"}, "opacity: must be a whole number from 0 to 100, got '200'"),
        ({"pin": "a"}, "pin: must be places of patches such as 3,4, got 'a'"),
        ({"pin": "4,9,900"}, "pin: must be numbers of patches from 0 to 8 (3 rows of 3), got 9, 900."),
        ({"target": "bird"}, "target: unknown name 'bird'"),
        ({"picture_sha": "0" * 64}, "picture_sha: the link refers to a picture by its hash"),
        ({"occlusion.size": "2"}, "parameter of occlusion: unknown name 'size'"),
    ],
    ids=str,
)
def test_a_link_with_a_wrong_value_says_so(model: str, query: dict[str, str | list[str]], words: str) -> None:
    page = opened(**{"model": model, "method": ["random"], **query})
    assert not page.exception
    assert any(words in sentence for sentence in said(page)), said(page)


@pytest.mark.parametrize("name", ["nonsense", "/no/such/folder", "reviews-minilm"])
def test_a_model_that_reads_no_pictures_is_one_sentence(name: str) -> None:
    page = opened(model=name, method=["random"])
    assert not page.exception
    [sentence] = said(page)
    assert sentence.startswith("model")
    assert name in sentence
    assert not cards(page)


def test_pins_come_back_from_the_link_and_the_prediction_without_them_is_shown(model: str) -> None:
    page = opened(model=model, method=QUICK, pin="0,4")
    assert not page.exception
    assert page.session_state[key("pins")] == [0, 4]
    without = [html for html in html_of(page) if "<h3" in html and "Without" in html]
    assert len(without) == 1
    assert "row 1, column 1" in without[0]
    assert "row 2, column 2" in without[0]
    page.number_input(picture_focus_controls.key("index")).set_value(1).run()
    assert "pin" not in page.query_params


def test_a_picture_of_ones_own_is_explained_by_its_hash(model: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 20, 3), dtype=np.uint8)
    page = opened(model=model, method=QUICK, picture_sha=store_picture(pixels))
    assert not page.exception
    assert not errors(page)
    assert len(cards(page)) == len(QUICK)
    scores = explain(Request(model, "gradient_x_input", Picture(pixels))).on_grid.ravel()
    printed = re.search('data-v="([^"]*)"', cards(page)[explainer("gradient_x_input", "image").title])
    assert printed
    np.testing.assert_allclose([float(one) for one in printed[1].split()], scores, rtol=6e-3)
    assert "--image picture.png" in page.code[0].value


def test_a_picture_that_cannot_be_read_is_one_sentence_and_the_next_one_works(model: str, tmp_path: Path) -> None:
    for label, body in (("cat", b"no picture"), ("dog", None)):
        (tmp_path / label).mkdir()
        file = tmp_path / label / f"{label}.png"
        file.write_bytes(body) if body else Image.new("RGB", (9, 9), "red").save(file)
    page = opened(model=model, method=QUICK, data=str(tmp_path), index="0")
    assert not page.exception
    [sentence] = errors(page)
    assert "cat.png" in sentence
    assert not cards(page)
    page.number_input(picture_focus_controls.key("index")).set_value(1).run()
    assert not errors(page)
    assert len(cards(page)) == len(QUICK)


def test_every_file_is_offered_and_the_command_says_what_is_shown(model: str) -> None:
    page = opened(model=model, method=QUICK, index="2", seed="4")
    assert [button.proto.label for button in page.get("download_button")] == [
        *(label for label, *_ in FILES),
        "Picture",
    ]
    assert shlex.split(page.code[0].value) == [
        "exegesis", "explain", "--model", model, "--method", ",".join(QUICK), "--dataset", SCENES, "--index", "2",
        "--seed", "4", "--json",
    ]  # fmt: skip
    [cited] = [html for html in html_of(page) if product_version() in html]
    assert Path(model).name in cited
    for id in QUICK:
        assert f"({id}, version {explainer(id, 'image').version})" in cited
