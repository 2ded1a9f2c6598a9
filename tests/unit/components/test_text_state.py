"""The Text page's link: what is written is read back, and nothing wrong in it goes unsaid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.browse.listing import Listing
from components.inputs.datasets import OpenTexts
from components.inputs.text_choice import TextFocus, write_text_focus
from components.links import LONGEST_IN_LINK, non_default_params, text_digest
from components.state import MEASURES
from components.text.state import START, TextState, read_state, write_state
from components.widgets.view_options import ViewOptions
from engine.data.datasets import load
from engine.metrics import agreement
from engine.registry import all_explainers, explainer
from engine.request import Example, Prompt
from tests.tiny import save_causal

METHODS = all_explainers()
MODELS = ["model-a", "model-b"]


@pytest.fixture(scope="module")
def opened() -> OpenTexts:
    return OpenTexts("reviews", load("reviews"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_causal("llama", tmp_path_factory.mktemp("causal")))


def own(methods: tuple[str, ...], text: str, pair: str | None = None, model: str = "model-a") -> TextState:
    """A state that looks at the reader's own text."""
    return TextState(focus=TextFocus(model, text, pair), methods=methods)


@pytest.mark.parametrize(
    "state",
    [
        own(("random",), "my text"),
        replace(own(("lime", "random"), "a & b = c? # 100% +", "second", "owner/name@rev"), target="positive"),
        replace(own((), ""), unit="word", seed=3),
        own(("random",), " \n 这 \u200d ש ", ""),
        own(("random",), "x" * (LONGEST_IN_LINK + 1), "y" * (LONGEST_IN_LINK + 1)),
        replace(own(("random",), "t"), view=ViewOptions(0.6, "shared", "underline", True)),
        replace(own(("occlusion",), "t"), params={"occlusion": {"window": "2", "removal": "pad"}}),
        replace(own(("random",), "t"), pins=(3, 14), edit="an edited text", edit_pair="z" * (LONGEST_IN_LINK + 1)),
        replace(own(("random",), "t"), opened=("browse", "questions"), removal="delete"),
        replace(own(("random",), "t"), opened=("questions",), question="agreement", measure="top_k"),
        replace(own(("random",), "t"), browse=Listing("bad food", "wrong", "negative", "confident")),
    ],
    ids=[
        "plain",
        "signs",
        "empty",
        "spaces",
        "long",
        "view",
        "parameters",
        "pins and edit",
        "curves",
        "agreement",
        "browse",
    ],
)
def test_a_link_reopens_what_it_was_written_from(state: TextState, opened: OpenTexts) -> None:
    assert read_state(write_state(state), MODELS, METHODS, opened) == (state, [])


def test_a_review_is_named_by_its_index(opened: OpenTexts) -> None:
    state = TextState(focus=TextFocus("model-a", opened.data[7].text, index=7), methods=("random",))
    link = write_state(state)
    assert link["index"] == ["7"]
    assert "text" not in link
    assert read_state(link, MODELS, METHODS, opened) == (state, [])


def test_an_example_of_a_file_is_known_again_by_its_texts() -> None:
    """The digest of one example, computed by another program: printf '%s' '["good", null]' | sha256sum."""
    assert text_digest(Example("good")) == "183f7da8"
    examples = [Example("good", "food"), Example("good food"), Example("good", ""), Example("good")]
    assert len({text_digest(example) for example in examples}) == len(examples)
    own = write_text_focus(TextFocus("m", "good", index=3, data="own.csv"))
    assert own == {"model": ["m"], "data": ["own.csv"], "index": ["3"], "digest": ["183f7da8"]}
    assert "digest" not in write_text_focus(TextFocus("m", "good", index=3)), "what is embedded does not change"


def test_a_bare_link_opens_the_first_model_and_review_with_the_usual_methods(opened: OpenTexts) -> None:
    state, said = read_state({}, MODELS, METHODS, opened)
    assert not said
    assert state.focus == TextFocus("model-a", opened.data[0].text, index=0)
    assert state.methods == START
    assert "random" in state.methods


def test_every_usual_method_is_registered() -> None:
    assert set(START) <= set(METHODS)


def test_long_texts_keep_links_short() -> None:
    link = write_state(own(("random",), "x" * 100_000))
    assert max(len(value) for values in link.values() for value in values) <= 64


def test_only_what_differs_from_the_defaults_is_named() -> None:
    assert non_default_params(explainer("occlusion"), {"window": 1, "removal": "pad"}) == {"removal": "pad"}


def test_each_mistake_is_said_once_and_the_rest_is_kept(opened: OpenTexts) -> None:
    link = {
        "method": ["nope", "random"], "unit": ["letter"], "seed": ["-1"], "index": ["x"], "occlusion.window": ["0"],
        "other.thing": ["1"], "pin": ["a"], "open": ["all"], "removal": ["burn"], "measure": ["r"], "question": ["why"],
        "show": ["x"],
    }  # fmt: skip
    state, said = read_state(link, MODELS, METHODS, opened)
    assert [sentence.partition(":")[0] for sentence in said] == [
        "index", "unit", "method", "seed", "pin", "show", "open", "question", "removal", "measure", "occlusion.window",
    ]  # fmt: skip
    assert (state.methods, state.unit, state.seed, state.focus.index) == (("random",), "token", 0, 0)


def test_the_measures_are_those_of_the_engine() -> None:
    assert agreement.MEASURES == MEASURES


@pytest.mark.parametrize(
    "tokens",
    [{}, {"target": " are"}, {"target": " are", "contrast": " is", "chat": True}, {"contrast": "a & b = c"}],
    ids=["none", "target", "all", "signs"],
)
@pytest.mark.parametrize("index", [None, 3], ids=["own", "example"])
def test_the_tokens_of_a_prompt_are_in_its_link(
    tokens: dict[str, Any], index: int | None, causal: str, opened: OpenTexts
) -> None:
    text = "The keys" if index is None else opened.data[index].text
    state = replace(own(("random",), text), focus=TextFocus(causal, text, index=index, **tokens))
    assert state.example == Prompt(text, **tokens)
    assert state.request("random").target is None, "a prompt names its token itself"
    again, said = read_state(write_state(state), MODELS, METHODS, opened)
    assert (again, said) == (state, [])
    other = replace(state, focus=replace(state.focus, model="reviews-minilm"))
    assert other.example == Example(text), "a classifier has no tokens"
    assert "contrast" not in write_state(other)


def test_an_example_of_prompts_opens_with_its_own_tokens_unless_the_link_names_some(causal: str) -> None:
    prompts = OpenTexts("agreement", load("agreement"))
    asked = prompts.data[2].example
    assert isinstance(asked, Prompt)
    link = {"model": [causal], "data": ["agreement"], "index": ["2"]}
    state, _ = read_state(link, MODELS, METHODS, prompts)
    assert state.example == asked
    plain, _ = read_state(link | {"target_token": [""], "contrast": [""]}, MODELS, METHODS, prompts)
    assert plain.example == Prompt(asked.text)
    assert read_state(write_state(plain), MODELS, METHODS, prompts)[0] == plain


def test_a_class_in_the_link_of_a_prompt_is_its_token(causal: str, opened: OpenTexts) -> None:
    state, said = read_state({"model": [causal], "text": ["The keys"], "target": [" are"]}, MODELS, METHODS, opened)
    assert (state.example, state.target, said) == (Prompt("The keys", target=" are"), None, [])
