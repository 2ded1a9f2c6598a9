"""What a question leaves out, the commands that answer it, and the links, which both name the same."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from components.adversarial.state import DEFAULT_STEPS
from components.ask.bar import context_of
from components.ask.links import page_of
from components.experiment.page import command_line
from components.navigation import (
    ADVERSARIAL,
    ATTENTION,
    BEHAVIOR,
    COMPARE,
    EVALUATE,
    IMAGES,
    LAYERS,
    RANDOMIZATION,
    RULES_PAGE,
    TEXT,
    WORDS,
    PageEntry,
)
from engine.cli.root import COMMANDS
from engine.data.datasets import load
from engine.errors import UsageError
from engine.query import OPERATIONS, ParsedQuery, QueryContext, commands_of, complete, notes_of, parse, sentence_of
from engine.query.command import ATTACK_STEPS, fits, plan_of_query
from engine.shipped.gallery import METHODS

ALL = frozenset(OPERATIONS)
HERE = QueryContext("bert-reviews", "reviews", 7)
ABOUT = "--dataset reviews --index 7"
LINK = {"model": ["bert-reviews"], "data": ["reviews"], "index": ["7"]}


def asked(text: str, context: QueryContext = HERE) -> ParsedQuery:
    return complete(parse(text, ALL), context)


def lines(text: str, context: QueryContext = HERE) -> list[str]:
    return [command.line for command in commands_of(asked(text, context))]


def link(text: str, context: QueryContext = HERE) -> tuple[PageEntry, dict[str, list[str]]]:
    return page_of(asked(text, context))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("explain it with LIME for positive", f"explain --model bert-reviews --method lime {ABOUT} --target positive"),
        ("most important words", f"explain --model bert-reviews --method {','.join(METHODS)} {ABOUT}"),
        ("predict 'Not bad'", "explain --model bert-reviews --method random --text 'Not bad'"),
        ("LIME and IG side by side",
         f"compare --column lime@bert-reviews --column integrated_gradients@bert-reviews {ABOUT}"),
        ("compare reviews-minilm and bert-reviews",
         f"compare --column gradient_x_input@reviews-minilm --column gradient_x_input@bert-reviews {ABOUT}"),
        ("where do LIME and IG disagree most",
         "compare --column lime@bert-reviews --column integrated_gradients@bert-reviews --dataset reviews "
         "--examples 50"),
        ("counterfactual for negative", f"counterfactuals --model bert-reviews {ABOUT} --target negative"),
        ("mistakes", "jobs run - --kind predict <<< '{\"model\": \"bert-reviews\", \"data\": \"reviews\"}'"),
        ("how faithful is LIME",
         "evaluate --models bert-reviews --dataset reviews --methods lime --examples 40"),
        ("sanity check of LIME", "randomize --models bert-reviews --dataset reviews --methods lime --examples 16"),
        ("attack LIME", "attack --models bert-reviews --dataset reviews --methods lime --index 7 --steps 100"),
        ("show the attention", f"heads --model bert-reviews {ABOUT}"),
        ("attention of head 3 in layer 2",
         f"explain --model bert-reviews --method attention_head --param attention_head.layer=2 --param "
         f"attention_head.head=3 {ABOUT}"),
        ("does 'not' imply negative",
         "rules --models bert-reviews --dataset reviews --rule '\"not\" -> negative' --methods "
         "gradient_x_input,attn_lrp --examples 160"),
        ("which words matter most over reviews",
         "corpus --models bert-reviews --dataset reviews --methods attn_lrp,gradient_x_input --examples 500"),
        ("significant words? which words are significant in 'Not bad.'",
         "significance --model bert-reviews --text 'Not bad.'"),
        ("why are 'A man' and 'A person' similar", "similarity --text 'A man' --text-pair 'A person'"),
    ],
)  # fmt: skip
def test_the_command_of_a_question(text: str, line: str) -> None:
    assert lines(text) == [f"exegesis {line}"]


def test_operations_have_commands_of_the_list() -> None:
    for text in (
        "explain it",
        "predict it",
        "mistakes",
        "how faithful is LIME",
        "attack LIME",
        "show the attention",
        "what flips the prediction",
    ):
        assert commands_of(asked(text))[0].arguments[0] in COMMANDS


def test_an_edit_has_the_prediction_before_and_after_it_and_opens_beside_its_parent() -> None:
    text = load("reviews")[0].text
    assert text.startswith("The final twenty minutes left me")
    before, after = lines("what if twenty is replaced by thirty", QueryContext())
    assert before == "exegesis explain --model reviews-minilm --method random --dataset reviews --index 0"
    assert shlex.split(after)[-1] == text.replace("twenty", "thirty")
    entry, opened = link("what if 'the' is removed", QueryContext())
    assert entry is TEXT
    [edited] = opened["edit"]
    assert edited.startswith("final twenty minutes left me grinning in dark, and fight in laundromat is most"), "each"
    with pytest.raises(UsageError, match="'zebra' is not in example 0 of reviews, which reads 'The final"):
        lines("what if 'zebra' is removed", QueryContext())


def test_the_model_and_the_data_set_fit_each_other() -> None:
    assert (asked("explain nli 3").models, asked("explain nli 3").example) == (("nli-minilm",), 3)
    assert asked("explain it by nli-minilm").dataset == "nli"
    assert asked("explain it by nli-minilm").example == 0, "7 was an example of another data set"
    assert asked("explain example 2 of sst2").models == ("bert-reviews",), "it fits"
    assert asked("explain scenes 3").models == ("scenes-vit",)
    assert asked("which words make both texts similar in example 5").dataset == "nli"
    assert not fits("scenes-vit", "reviews")
    with pytest.raises(UsageError, match="pictures have no words, got scenes"):
        asked("what if 'not' is removed in scenes 3")
    with pytest.raises(UsageError, match="needs two texts, got one"):
        lines("which words make both texts similar in example 5 of reviews")


def test_an_own_text_of_the_page_is_this_example() -> None:
    own = QueryContext("reviews-minilm", "", 0, "Not bad.")
    assert lines("explain this text by LIME", own) == [
        "exegesis explain --model reviews-minilm --method lime --text 'Not bad.'"
    ]
    assert lines("attack LIME", own) == [], "the command attacks examples of data sets"
    assert link("attack LIME", own)[1]["text"] == ["Not bad."]
    assert asked("explain example 3", own).text is None
    assert context_of({"model": "m", "data": "d", "index": "4"}) == QueryContext("m", "d", 4)
    assert context_of({"text": "A", "pair": "B"}) == QueryContext(text="A", text_pair="B")
    assert context_of({"index": "x"}) == QueryContext()


@pytest.mark.parametrize("dataset", ["", "reviews", "nli"])
def test_an_own_pair_of_the_page_is_compared_whatever_its_data_set(dataset: str) -> None:
    own = QueryContext("reviews-minilm", dataset, 0, "A man sleeps.", "A person rests.")
    for text in ("which words make the two texts similar", "which words make both texts of this example similar"):
        assert lines(text, own) == ["exegesis similarity --text 'A man sleeps.' --text-pair 'A person rests.'"]
        assert link(text, own)[1]["pair"] == ["A person rests."]
    assert asked("which words make both texts similar in example 5", own).text is None


def test_this_example_is_none_of_another_data_set() -> None:
    with pytest.raises(UsageError, match=r"one of reviews, got nli\. Name an example, such as example 0 of nli"):
        asked("explain this example of nli")
    assert asked("explain this example of reviews").example == 7
    with pytest.raises(UsageError, match="is the one that a page shows, which is none here, got nli"):
        asked("explain this example of nli", QueryContext())
    with pytest.raises(UsageError, match="is one of reviews, got nli"):
        asked("explain this example by nli-minilm")
    assert asked("explain this example", QueryContext(example=5)).example == 5
    assert asked("explain nli by LIME as the heatmap of example 2").example == 2


def test_similarity_says_that_it_is_of_no_classifier() -> None:
    assert notes_of(asked("which words make the two texts of nli 3 similar to nli-minilm")) == (
        "Similarity is that of a sentence encoder, not of nli-minilm.",
    )


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("top 5 words", ("All of them are shown. Read the first 5.",)),
        ("positive examples that it gets wrong",
         ("The command predicts all examples: only the page picks those of class positive.",)),
        ("sanity check of LIME for example 3", ("The command is about many examples: only the page opens example 3.",)),
        ("attention of layer 2", ("The command lists all heads: only the page picks layer 2.",)),
        ("attention of head 3 in layer 2", ()),
        ("explain it with LIME for positive", ()),
    ],
)  # fmt: skip
def test_what_the_answer_does_not_narrow_down_is_noted(text: str, notes: tuple[str, ...]) -> None:
    assert notes_of(asked(text)) == notes


@pytest.mark.parametrize(
    ("text", "entry", "fields"),
    [
        ("explain it with LIME for positive", TEXT, {**LINK, "method": ["lime"], "target": ["positive"]}),
        ("the prediction", TEXT, {**LINK, "method": list(METHODS)}),
        ("explain scenes 3 by LIME", IMAGES, {"model": ["scenes-vit"], "index": ["3"], "method": ["lime"]}),
        ("positive examples that it gets wrong", TEXT,
         {"model": ["bert-reviews"], "show": ["wrong"], "label": ["positive"], "open": ["browse"]}),
        ("mistakes on scenes", IMAGES, {"model": ["scenes-vit"], "show": ["wrong"], "open": ["browse"]}),
        ("compare LIME and IG", COMPARE, {"column": ["lime@bert-reviews", "integrated_gradients@bert-reviews"]}),
        ("where do LIME and IG disagree most", COMPARE, {"open": ["search"], "shown": ["moves"], "reference": ["A"]}),
        ("how faithful is LIME", EVALUATE, {"model": ["bert-reviews"], "method": ["lime"]}),
        ("sanity check of LIME for example 3", RANDOMIZATION, {"method": ["lime"], "example": ["3"]}),
        ("attack LRP", ADVERSARIAL, {**LINK, "method": ["attn_lrp"]}),
        ("attention of head 3 in layer 2", ATTENTION, {**LINK, "head": ["2.3"]}),
        ("attention of layer 2", ATTENTION, {**LINK, "layers": ["2"]}),
        ("both texts similar in nli 3", TEXT, {"data": ["nli"], "index": ["3"], "open": ["similarity"]}),
        ("which words are significant", TEXT, {**LINK, "open": ["significance"]}),
        ("which words matter most over reviews", WORDS, {"model": ["bert-reviews"]}),
        ("does 'not' imply negative", RULES_PAGE, {"model": ["bert-reviews"], "rule": ['"not" -> negative']}),
        ("how does the model behave", BEHAVIOR, {"model": ["bert-reviews"]}),
        ("counterfactual for negative", TEXT, {**LINK, "open": ["counterfactuals"], "flip_to": ["negative"]}),
    ],
)  # fmt: skip
def test_the_link_of_a_question(text: str, entry: PageEntry, fields: dict[str, list[str]]) -> None:
    page, opened = link(text)
    assert page is entry
    assert {name: opened.get(name) for name in fields} == fields


@pytest.mark.parametrize("text", ["how faithful are LIME and IG on nli", "sanity check of LIME"])
def test_the_command_of_an_experiment_is_that_of_its_page(text: str) -> None:
    [command] = commands_of(asked(text))
    assert f"{command.line} --out rows.csv" == command_line(plan_of_query(asked(text)))


def test_an_attack_takes_as_many_steps_as_its_page() -> None:
    assert ATTACK_STEPS == DEFAULT_STEPS


def test_a_completed_query_is_complete_and_stays_as_it_is() -> None:
    for text in (
        "explain it",
        "mistakes",
        "evaluate LIME",
        "attack LIME",
        "compare LIME and IG",
        "nli 3 similar texts",
    ):
        query = asked(text)
        assert complete(query, QueryContext()) == query


PROMPT = QueryContext("tiny-llama", "agreement", 3)
NAMED = QueryContext("tiny-llama", "", None, "The keys near the cabinet", token=" were", contrast=" was")


@pytest.mark.parametrize(
    ("text", "context", "line"),
    [
        ("why 'are' rather than 'is' by LIME", PROMPT,
         "explain --model tiny-llama --method lime --prompt 'Under the tables, the rings that the king painted under "
         "the maps' --target ' are' --contrast ' is'"),
        ("which words make the next token '·are' by LIME in 'The key near'", HERE,
         "explain --model tiny-llama --method lime --prompt 'The key near' --target ' are'"),
        ("why '.' rather than '!' by LIME in 'The key near'", HERE,
         "explain --model tiny-llama --method lime --prompt 'The key near' --target . --contrast '!'"),
        ("what comes next after 'The keys near the cabinet'", HERE,
         "generate --model tiny-llama --prompt 'The keys near the cabinet'"),
        ("what comes next", PROMPT,
         "generate --model tiny-llama --prompt 'Under the tables, the rings that the king painted under the maps'"),
        ("what comes next", replace(NAMED, chat=True),
         "generate --model tiny-llama --prompt 'The keys near the cabinet' --chat"),
        ("which layer decides", HERE,
         "layers lens --model bert-reviews --text 'Soup cold, service colder, bill enormous.'"),
        ("which layer decides 'are' in 'The key near'", HERE,
         "layers lens --model tiny-llama --text 'The key near' --target ' are'"),
        ("which layer decides", replace(NAMED, chat=True),
         "layers lens --model tiny-llama --prompt 'The keys near the cabinet' --chat --target ' were'"),
        ("explain it by LIME", NAMED,
         "explain --model tiny-llama --method lime --prompt 'The keys near the cabinet' --target ' were' --contrast "
         "' was'"),
        ("explain it by LIME", QueryContext("tiny-llama", "reviews", 7),
         "explain --model tiny-llama --method lime --dataset reviews --index 7"),
    ],
)  # fmt: skip
def test_the_command_of_a_question_about_a_prompt(text: str, context: QueryContext, line: str) -> None:
    assert lines(text, context) == [f"exegesis {line}"]


def test_an_edited_prompt_keeps_its_tokens() -> None:
    before, after = lines("what if 'rings' is deleted", PROMPT)
    assert before == "exegesis explain --model tiny-llama --method random --dataset agreement --index 3"
    assert after == (
        "exegesis explain --model tiny-llama --method random --prompt 'Under the tables, the that the king painted "
        "under the maps' --target ' are' --contrast ' is'"
    )
    entry, opened = link("what if 'near' is deleted", NAMED)
    assert entry is TEXT
    assert opened["edit"] == ["The keys the cabinet"]
    assert (opened["target_token"], opened["contrast"]) == ([" were"], [" was"])


def test_a_question_about_a_next_token_needs_a_language_model() -> None:
    reason = "bert-reviews is a classifier, which has no next token. Name a language model: with the model tiny-llama"
    for text in ("why 'are' rather than 'is'", "what comes next", "which layer decides 'are'"):
        with pytest.raises(UsageError, match=reason):
            asked(text)
    with pytest.raises(UsageError, match="bert-reviews is a classifier"):
        asked("why 'are' rather than 'is' in 'The keys' with the model bert-reviews")
    assert asked("what comes next", QueryContext()).models == ("tiny-llama",), "no page shows a classifier's input"


def test_the_lens_of_a_quoted_text_is_that_of_a_language_model_where_no_page_shows_an_input() -> None:
    text = "which layer decides, lens of 'The keys near the cabinet'"
    home = asked(text, QueryContext())
    assert home.models == ("tiny-llama",)
    assert sentence_of(home) == 'which layer decides in "The keys near the cabinet" with the model tiny-llama'
    assert asked(text, HERE).models == ("bert-reviews",), "the page's model reads texts too"
    assert asked("lens of 'A dull film' for positive", QueryContext()).models != ("tiny-llama",)
    assert sentence_of(asked("which layer decides", PROMPT)).endswith(
        "in example 3 of the data set agreement with the model tiny-llama"
    )


def test_a_language_model_in_place_of_the_page_s_classifier_is_said() -> None:
    said = "bert-reviews is a classifier. This asks the language model tiny-llama."
    for text in ("what comes next after 'The keys near the cabinet'", "why 'are' rather than 'is' in 'The keys'"):
        assert said in notes_of(asked(text, HERE), HERE)
        assert said not in notes_of(asked(text, PROMPT), PROMPT)


def test_what_comes_next_opens_the_generated_text_of_the_prompt() -> None:
    entry, opened = link("what comes next", PROMPT)
    assert entry is TEXT
    assert (opened["model"], opened["data"], opened["index"]) == (["tiny-llama"], ["agreement"], ["3"])
    assert opened["open"] == ["generation"]


def test_a_question_about_layers_opens_the_lens_of_the_prompt() -> None:
    entry, opened = link("which layer decides", PROMPT)
    assert entry is LAYERS
    assert opened["model"] == ["tiny-llama"]
    assert opened["text"] == ["Under the tables, the rings that the king painted under the maps"]
    assert (opened["target"], opened["contrast"]) == ([" are"], [" is"]), "the answer of the example and its other"
    assert "chat" not in opened
    assert link("which layer decides", replace(NAMED, chat=True))[1]["chat"] == ["on"]
    with pytest.raises(UsageError, match="pictures have no words"):
        asked("lens of example 3 of scenes")
