"""Generated text on the Text page: on request, labeled, with its map, its sentences, its files and its command."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import components.text.generation as panel
from components.compute import STOPPED
from components.inputs.text_choice import TextFocus
from components.text.generation import generated_html, links_csv, matrix_html, sentences_table, step_rows
from components.text.state import TextState, key
from engine.errors import ExegesisError
from engine.format import visible_token
from engine.generation import GeneratedText, GenerationQuery, SentenceUse, generate_text
from engine.models.loading import load_model
from engine.registry import all_explainers
from engine.result import Explanation, Prediction, Provenance, Token
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import save_causal

SECONDS = 120
MODEL = "tiny-llama"
TEXT = "Mary lives in Paris. John owns a dog. Mary lives in"
HOSTILE = '<img src=x onerror="alert(1)">'

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**link: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/text.py")
    for name, given in {"model": MODEL, "method": "random", "text": TEXT, **link}.items():
        page.query_params[name] = given
    page.run()
    assert not page.exception
    return page


def html_of(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


def command_of(page: AppTest) -> list[str]:
    [code] = [one.value for one in page.code if one.value.startswith("exegesis generate")]
    return shlex.split(code)


def explanation(words: list[str], scores: list[float], target: str) -> Explanation:
    tokens, at = [], 0
    for word in words:
        tokens.append(Token(word, at, at + len(word), 0, False))
        at += len(word) + 1
    origin = Provenance(MODEL, "r", "occlusion", 1, {}, 0, target, 0, "float32", "cpu")
    return Explanation(tuple(tokens), np.array(scores), Prediction((target,), (1.0,), (1.0,)), origin, 3, 0.1)


def generated(first: str = " good", sentences: tuple[SentenceUse, ...] = ()) -> GeneratedText:
    """Two generated tokens after two words."""
    steps = (explanation(["a", "b"], [1.0, -3.0], first), explanation(["a", "b", first.strip()], [0.0, 2.0, 4.0], "."))
    return GeneratedText("a b", f"{first}.", (first, "."), (-1.0, -0.5), False, sentences, steps)


def state_of() -> TextState:
    return TextState(focus=TextFocus(MODEL, "a b"), methods=("random",))


def test_a_chat_is_drawn_with_its_template_and_repeated_by_its_command(tmp_path: Path) -> None:
    folder = str(save_causal("llama", tmp_path / "model"))
    load_model(folder).module.generation_config.eos_token_id = None  # type: ignore[union-attr]
    state = TextState(focus=TextFocus(folder, "the food is good. what is the price?", chat=True), methods=("random",))
    state = replace(state, generation=replace(state.generation, tokens=3, method="random", decoding="sample"), seed=5)
    found = generate_text(panel.query_of(state))
    assert found.chat
    last = found.explanations[-1].tokens
    assert [token.text for token in last if token.segment == 1] == [label.strip() for label in found.labels[:2]]
    rows = step_rows(found, all_explainers("text")["random"])
    assert [row.title for row in rows] == [
        f"{step} {visible_token(label)}" for step, label in enumerate(found.labels, start=1)
    ]
    assert "im_start" in matrix_html(rows)
    assert {"--chat", "--seed"} <= set(panel._arguments(state))
    assert list(sentences_table(found)["Without"])[1:] == ["the food is good.", "what is the price?"]


def test_it_is_generated_on_request_and_the_numbers_are_those_of_the_engine() -> None:
    page = opened()
    assert "Generate" in [one.value for one in page.subheader]
    assert "Generated (" not in html_of(page)
    page.toggle(key=key("open.generation")).set_value(True).run()
    page.number_input(key=key("generation.tokens")).set_value(3).run()
    assert not page.exception
    assert not errors(page)
    found = generate_text(GenerationQuery(MODEL, TEXT, 3))
    text = html_of(page)
    assert "Generated (greedy): “<bdi>" in text
    assert found.deciding is not None
    assert f"depends most on “<bdi>{found.deciding.text}</bdi>”" in text
    assert len(page.pills(key=key("generation.step")).options) == len(found.labels)
    assert command_of(page) == [
        "exegesis", "generate", "--model", MODEL, "--prompt", TEXT, "--tokens", "3", "--method", "attn_lrp",
    ]  # fmt: skip
    assert page.query_params["generated_tokens"] in ("3", ["3"])


def test_the_link_keeps_the_controls_and_a_chosen_token_shows_its_map() -> None:
    page = opened(
        open="generation",
        generated_tokens="4",
        decoding="sample",
        seed="2",
        generated_method="occlusion",
        generated_step="2",
    )
    assert not errors(page)
    assert "Generated (sampled with seed 2)" in html_of(page)
    assert page.pills(key=key("generation.step")).value == 2
    label = generate_text(GenerationQuery(MODEL, TEXT, 4, 2, method="occlusion")).labels[1]
    assert f'<p class="xg-title">2 {label.replace(" ", "·")}</p>' in html_of(page)
    assert command_of(page)[-4:] == ["--method", "occlusion", "--seed", "2"]
    page.number_input(key=key("generation.tokens")).set_value(1).run()
    assert not page.exception
    assert page.pills(key=key("generation.step")).value == 1


def test_a_target_of_several_tokens_is_offered_as_a_continuation() -> None:
    page = opened(target_token=" Rome and John", contrast=" Paris", generated_method="random")
    assert any("Explain: must be one token of" in error for error in errors(page))
    offer = page.button(key=key("continuation"))
    assert offer.label == "Explain “Rome and John” as a continuation"
    offer.click().run()
    assert not page.exception
    assert not errors(page)
    found = generate_text(GenerationQuery(MODEL, TEXT, method="random", continuation=" Rome and John"))
    html = html_of(page)
    assert "Your text: “<bdi>·Rome and John</bdi>”" in html
    assert "Generated" not in html
    assert f"Its probability is {panel.share(found.probability)}." in html
    assert command_of(page) == [
        "exegesis", "generate", "--model", MODEL, "--prompt", TEXT, "--continuation", " Rome and John",
        "--method", "random",
    ]  # fmt: skip
    assert page.query_params["continuation"] in ("Rome and John", ["Rome and John"])
    again = opened(open="generation", decoding="given", continuation="Rome and John")
    assert again.text_input(key=key("generation.text")).value == "Rome and John"
    again.text_input(key=key("generation.text")).set_value("").run()
    assert not errors(again)


def test_a_token_that_is_none_is_not_offered_as_a_continuation() -> None:
    page = opened(contrast="no token at all")
    assert errors(page)
    assert key("continuation") not in [button.key for button in page.button]


def test_a_text_that_ends_early_says_why_and_what_to_do() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/text.py")
    for name, given in {"model": MODEL, "data": "agreement", "index": "0", "method": "random",
                        "open": "generation"}.items():  # fmt: skip
        page.query_params[name] = given
    page.run()
    assert not page.exception
    reason = "The model ended the text after 1 token: its end token came next."
    assert f"{reason} Prompts of agreement ask for one token. Type the start of a sentence" in html_of(page)
    ended = replace(generated(), ended=True)
    assert "ended the text after 2 tokens: its end token came next. Its probability" in generated_html(
        ended, state_of()
    )


def test_a_classifier_has_none_and_what_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Generate" not in [one.value for one in opened(model="reviews-minilm").subheader]
    page = opened(open="generation", generated_method="nothing")
    assert "nothing" in " ".join(errors(page))
    monkeypatch.setattr(panel, "run_cached", lambda *given: (_ for _ in ()).throw(ExegesisError("model: no text.")))
    page = opened(open="generation")
    assert "model: no text." in " ".join(errors(page))
    assert "Export" in [one.value for one in page.subheader], "what follows is drawn"


def test_stopped_work_says_so_and_goes_on() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/text.py")
    for name, given in {"model": MODEL, "method": "random", "text": "Tom met Bob in", "open": "generation"}.items():
        page.query_params[name] = given
    page.session_state[STOPPED] = [GenerationQuery(MODEL, "Tom met Bob in").key]
    page.run()
    assert not page.exception
    assert [one.value for one in page.info] == ["Stopped before every token was explained."]
    assert "Export" in [one.value for one in page.subheader], "what follows is drawn"
    next(one for one in page.button if one.label == "Go on").click().run()
    assert not page.info
    assert "Generated (greedy)" in html_of(page)


def test_all_rows_share_a_scale_and_later_tokens_have_no_cell() -> None:
    rows = step_rows(generated(), all_explainers()["occlusion"])
    assert [row.view.scale for row in rows] == [4.0, 4.0]
    html = matrix_html(rows)
    body = html.partition("<tbody>")[2].partition("</tbody>")[0].split("</tr>")
    assert [row.count("<td") for row in body[:2]] == [2, 3]
    assert "scale shared by the generated tokens" in html
    assert [row.title for row in rows] == ["1 ·good", "2 ."]


def test_sentences_are_compared_with_the_whole_prompt() -> None:
    one = generated(sentences=(SentenceUse("A is b.", 0, 7, -4.0), SentenceUse("C is d.", 8, 15, -1.0)))
    table = sentences_table(one)
    assert table["Change"].tolist() == [0.0, -2.5, 0.5]
    assert table["Probability"].tolist() == ["22.3%", "1.8%", "36.8%"]
    text = generated_html(one, state_of())
    assert "It depends most on “<bdi>A is b.</bdi>”: without that sentence, it is 1.8%." in text
    assert "“<bdi>.</bdi>” (token 2) on “<bdi>·good</bdi>” (index 2) +4.000" in text
    rising = generated(sentences=(SentenceUse("A is b.", 0, 7, -1.0),))
    assert "It falls with no deleted sentence." in generated_html(rising, state_of())
    assert "so none can be deleted" in generated_html(generated(), state_of())


def test_markup_in_generated_tokens_is_text_and_formulas_are_no_formulas() -> None:
    one = generated(f" {HOSTILE}", (SentenceUse(HOSTILE, 0, 7, -4.0),))
    rows = step_rows(one, all_explainers()["occlusion"])
    for html in (generated_html(one, state_of()), matrix_html(rows)):
        assert HOSTILE not in html
        assert "&lt;img" in html
    [first, *_] = list(csv.DictReader(io.StringIO(links_csv(generated("=1+1")))))
    assert (first["token"], first["score"]) == ("'=1+1", "4.0")
