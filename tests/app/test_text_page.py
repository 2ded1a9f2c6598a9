"""The Text page as a script: what it shows, what it says to bad input, and that nothing typed is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.inputs import text_choice
from components.inputs.datasets import DEFAULT_TEXTS
from components.method_row import RATIONALE as TITLE
from components.palette import STEPS
from components.text.state import key
from engine.data.datasets import load
from engine.errors import ExegesisError
from engine.registry import explainer
from engine.request import Request
from engine.result import Explanation
from tests.alerts import errors, notes
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint

SECONDS = 120
RATIONALE = f'<p class="xg-title">{TITLE}</p>'
QUICK = ["gradient_x_input", "attention_mean", "random"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def page(model: str) -> AppTest:
    """The page of a link that names a tiny model and quick methods."""
    return opened(model=model, method=QUICK)


def opened(**query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def html_of(page: AppTest) -> Iterator[str]:
    yield from (element.proto.body for element in page.get("html"))


def rows(page: AppTest) -> list[str]:
    """The methods' rows, with the text as a reader sees it."""
    return [html for html in all_rows(page) if RATIONALE not in html]


def all_rows(page: AppTest) -> list[str]:
    return [unescape(html) for html in html_of(page) if 'class="xg-row' in html]


def test_a_cache_that_keeps_nothing_is_said_below_the_maps(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    page = opened(model=model, method=["random"])
    assert len(rows(page)) == 1
    assert "results are computed each time" in notes(page)[-1]


def type_model(page: AppTest, name: str) -> None:
    """Types a name that the list does not offer, which the test's own browser cannot do by itself."""
    box = page.selectbox(text_choice.key("model"))
    box.options.append(name)
    box.set_value(name).run()


def maps(row: str) -> str:
    """The map of a row, without what differs between a computed and a cached answer."""
    return row[row.index('<div class="xg-map') : row.index('<div class="xg-small xg-foot">')]


def said(page: AppTest) -> list[str]:
    return [*errors(page), *notes(page), *(element.value for element in page.info)]


def test_the_first_review_is_explained_by_each_method_in_turn(page: AppTest) -> None:
    assert not page.exception
    assert page.text_area(text_choice.key("text")).value == load(DEFAULT_TEXTS)[0].text
    assert not errors(page)
    shown = rows(page)
    assert len(shown) == len(QUICK)
    for html, method in zip(shown, QUICK, strict=True):
        assert f'<p class="xg-title">{explainer(method).title}</p>' in html
        assert explainer(method).caution in html
    assert any("xg-prediction" in html for html in html_of(page))


def test_what_people_marked_is_the_first_row_until_the_text_is_edited(model: str) -> None:
    page = opened(model=model, method=QUICK, unit="word")
    first, *others = all_rows(page)
    assert RATIONALE in first
    assert first.count(f'<b class="m{STEPS} ') == sum(
        len(load(DEFAULT_TEXTS)[0].text[start:end].split()) for start, end in load(DEFAULT_TEXTS)[0].rationale
    )
    assert len(others) == len(QUICK)
    page.text_area(text_choice.key("text")).set_value(load(DEFAULT_TEXTS)[0].text + " Really.").run()
    assert all_rows(page) == rows(page)


def test_own_text_is_explained_and_stands_in_the_link(page: AppTest, model: str) -> None:
    page.text_area(text_choice.key("text")).set_value("bad service, lovely view").run()
    assert all(re.sub("<[^>]*>", "", html).count("bad service, lovely view") == 1 for html in rows(page))
    assert page.query_params["text"] == "bad service, lovely view"
    assert page.query_params["method"] == QUICK
    assert page.number_input(text_choice.key("index")).value is None
    again = opened(**{name: page.query_params[name] for name in page.query_params})
    assert again.text_area(text_choice.key("text")).value == "bad service, lovely view"
    assert [maps(html) for html in rows(again)] == [maps(html) for html in rows(page)]


def test_a_picked_review_replaces_the_text(page: AppTest) -> None:
    page.number_input(text_choice.key("index")).set_value(5).run()
    assert page.text_area(text_choice.key("text")).value == load(DEFAULT_TEXTS)[5].text
    assert page.query_params["index"] == "5"
    assert "text" not in page.query_params


def test_the_class_the_unit_and_a_parameter_stand_in_the_link(page: AppTest, model: str) -> None:
    page.multiselect(key("methods")).set_value(["occlusion"]).run()
    page.session_state[key("occlusion.window")] = 2
    open_options(page, key("options"))
    page.segmented_control(key("unit")).set_value("word").run()
    page.selectbox(key("target")).set_value("LABEL_0").run()
    assert not page.exception
    link = {name: page.query_params[name] for name in page.query_params}
    assert link["occlusion.window"] == "2"
    assert link["unit"] == "word"
    assert link["target"] == "LABEL_0"
    [row] = rows(opened(**link))
    assert "window = 2" in row
    assert "class 0: LABEL_0" in row


def test_the_view_is_chosen_and_stands_in_the_link(model: str) -> None:
    page = opened(model=model, method=["gradient_x_input", "integrated_gradients", "random"], text="good food")
    open_options(page, key("options"))
    page.slider(key("gamma")).set_value(0.5)
    page.segmented_control(key("scale")).set_value("shared")
    page.segmented_control(key("style")).set_value("underline")
    page.toggle(key("values")).set_value(True).run()
    assert not page.exception
    link = {name: page.query_params[name] for name in page.query_params}
    shown = {name: link[name] for name in ("gamma", "scale", "style", "values")}
    assert shown == {"gamma": "0.5", "scale": "shared", "style": "underline", "values": "on"}
    first, second, last = map(maps, rows(page))
    assert 'class="xg-map xg-under xg-values"' in first
    assert rows(page)[0].count("scale shared by the signed maps of the logit of the class") == 1
    assert "own scale: no other map has its unit" in rows(page)[2]
    assert list(map(maps, rows(opened(**link)))) == [first, second, last]


def test_a_pair_is_drawn_in_two_paragraphs(model: str) -> None:
    page = opened(model=model, method=["random"], text="a premise is here", pair="and a hypothesis")
    [row] = rows(page)
    assert row.count('<p class="xg-text"') == 2
    open_options(page, key("options"))
    assert page.toggle(text_choice.key("has_pair")).value is True


def test_an_error_in_one_method_stands_in_its_place(model: str) -> None:
    page = opened(model=model, method=["attention_mean", "attention_head", "random"], **{"attention_head.layer": "99"})
    first, second, third = rows(page)
    assert "attention_head.layer" in second
    assert "xg-error" in second
    assert "xg-map" in first
    assert "xg-map" in third


def test_an_empty_text_says_what_to_do_and_a_new_text_works(page: AppTest) -> None:
    page.text_area(text_choice.key("text")).set_value("").run()
    assert said(page) == ["Type a text above, or pick an example, to see which words its prediction depends on."]
    assert not rows(page)
    page.text_area(text_choice.key("text")).set_value("good food").run()
    assert len(rows(page)) == len(QUICK)


def test_no_method_says_what_to_do(page: AppTest) -> None:
    page.multiselect(key("methods")).set_value([]).run()
    assert "Pick at least one method above." in said(page)
    assert page.query_params["method"] == "none"


def test_a_long_text_is_said_to_be_cut(model: str) -> None:
    page = opened(model=model, method=["random"], text="good food " * 100)
    assert any("cut off" in sentence for sentence in said(page))
    assert "the rest was cut off" in rows(page)[0]


def test_a_text_too_long_for_a_link_is_held_by_its_hash(page: AppTest, model: str) -> None:
    text = "good food, bad service, " * 100
    page.text_area(text_choice.key("text")).set_value(text).run()
    digest = page.query_params["text_sha"]
    assert "text" not in page.query_params
    assert opened(model=model, method=["random"], text_sha=digest).text_area(text_choice.key("text")).value == text
    gone = opened(model=model, method=["random"], text_sha="0" * 64)
    assert "does not have" in said(gone)[0]
    assert not gone.exception


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"method": ["lime2", "random"]}, "method: unknown name 'lime2'. Did you mean 'lime'? Known:"),
        ({"unit": "letter"}, "unit: unknown name 'letter'. Known: sentence, token, turn, word."),
        ({"index": "100000"}, "index: must be 0 to"),
        ({"index": "-1"}, "index: must be 0 to"),
        ({"data": "imbd", "index": "1"}, "dataset: unknown name 'imbd'"),
        ({"seed": "x"}, "seed: must be a whole number"),
        ({"gamma": "9"}, "gamma: must be a number from 0.3 to 2.0, got '9'"),
        ({"scale": "log"}, "scale: unknown name 'log'. Known: own, shared."),
        ({"target": "LABEL_7"}, "target: unknown name 'LABEL_7'"),
        ({"occlusion.size": "2"}, "parameter of occlusion: unknown name 'size'. Known: removal, window."),
        ({"occlusion.window": "0"}, "occlusion.window: must be a whole number from 1 to 64, got 0"),
        ({"occlusion.removal": "burn"}, "occlusion.removal: must be one of mask"),
    ],
    ids=str,
)
def test_a_link_with_a_wrong_value_says_so(model: str, query: dict[str, str | list[str]], words: str) -> None:
    page = opened(**{"model": model, "method": ["random"], **query})
    assert not page.exception
    assert any(words in sentence for sentence in (*said(page), *rows(page))), said(page)


def folder(tmp_path: Path, config: dict[str, object] | None, *files: str) -> str:
    place = tmp_path / "checkpoint"
    place.mkdir()
    if config is not None:
        (place / "config.json").write_text(json.dumps(config))
    for file in files:
        (place / file).write_bytes(b"0")
    return str(place)


REMOTE = {"model_type": "bert", "auto_map": {"AutoModel": "code.Model"}}
HEADLESS = {"model_type": "bert", "architectures": ["BertModel"]}


@pytest.mark.parametrize(
    ("config", "files", "words"),
    [
        (None, (), "no config.json"),
        ({"model_type": "bert"}, ("pytorch_model.bin",), "only a pickle checkpoint"),
        (REMOTE, ("model.safetensors",), "asks to run code"),
        (HEADLESS, ("model.safetensors",), "no classifier"),
    ],
    ids=["empty", "pickle", "remote code", "no classifier"],
)
def test_a_refused_checkpoint_is_one_sentence_and_the_next_model_works(
    page: AppTest, model: str, tmp_path: Path, config: dict[str, object] | None, files: tuple[str, ...], words: str
) -> None:
    page.text_area(text_choice.key("text")).set_value("my own text").run()
    type_model(page, folder(tmp_path, config, *files))
    assert not page.exception
    [sentence] = said(page)
    assert words in sentence
    assert "Traceback" not in sentence
    type_model(page, model)
    assert page.text_area(text_choice.key("text")).value == "my own text"
    assert len(rows(page)) == len(QUICK)


@pytest.mark.parametrize("name", ["nonsense", "/no/such/folder", "owner/name"])
def test_an_unknown_model_is_one_sentence(name: str) -> None:
    page = opened(model=name, method=["random"])
    assert not page.exception
    [sentence] = said(page)
    assert sentence.startswith("model")
    assert name in sentence


@pytest.mark.parametrize(
    "text", ["\u200b\u200b", "\x00\x01", "word " * 2_000_001], ids=["zero width", "control", "10 MB"]
)
def test_a_text_that_cannot_be_read_is_one_sentence(page: AppTest, text: str) -> None:
    page.text_area(text_choice.key("text")).set_value(text).run()
    assert not page.exception
    [sentence] = said(page)
    assert sentence.startswith("text:")
    page.text_area(text_choice.key("text")).set_value("good food").run()
    assert len(rows(page)) == len(QUICK)


def test_an_unforeseen_failure_is_told_and_the_others_still_come(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    import components.progress as progress
    import engine.explain as engine

    real = engine.cached_explanation

    def breaking(request: Request) -> Explanation | None:
        if request.method == "attention_mean":
            raise RuntimeError("a broken <pipe>")
        return real(request)

    for module in (engine, progress):
        monkeypatch.setattr(module, "cached_explanation", breaking)
    page.run()
    assert not page.exception
    shown = rows(page)
    assert len(shown) == len(QUICK)
    assert "a broken <pipe>" in shown[1]
    assert "xg-map" in shown[2]


def test_the_errors_of_the_engine_are_what_the_page_tells() -> None:
    from engine.models.catalog import locate

    with pytest.raises(ExegesisError) as caught:
        locate("nonsense")
    assert said(opened(model="nonsense", method=["random"])) == [str(caught.value)]


def test_the_words_for_the_predicted_class_do_not_name_it(page: AppTest) -> None:
    """The browser answers with the words of a choice: with the class in them, the next example's had no such choice."""
    open_options(page, key("options"))
    assert page.selectbox(key("target")).options[0] == "As predicted"
    page.segmented_control(key("unit")).set_value("word").run()
    assert "target" not in page.query_params


def test_another_data_set_opens_at_its_first_example(page: AppTest) -> None:
    page.selectbox(text_choice.key("data")).set_value("nli").run()
    assert not page.exception
    first = load("nli").examples[0].example
    assert page.number_input(text_choice.key("index")).value == 0
    assert page.text_area(text_choice.key("text")).value == first.text
    assert page.text_area(text_choice.key("pair")).value == first.text_pair
