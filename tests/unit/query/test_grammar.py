"""The grammar of questions: each form reads back what it writes, and a word that nothing explains is not understood."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.query import OPERATIONS, NotUnderstood, ParsedQuery, parse, write_sentence
from engine.query.grammar import CLASSES, FILLERS, THIS
from engine.query.names import base_word, read_quotes, vocabulary
from engine.query.parser import NEAREST, sample_query, sample_sentence

ALL = frozenset(OPERATIONS)
METHODS = ("lime", "kernel_shap", "integrated_gradients", "attention_rollout", "attn_lrp", "random", "gradient_x_input")
WORDS = st.text("abcdefghijklmnopqrstuvwxyzäé'", min_size=1, max_size=9).filter(lambda word: word.strip("'") == word)


def read(text: str) -> tuple[str, dict[str, object]]:
    query = parse(text, ALL)
    return query.operation, query.slots()


@pytest.mark.parametrize(("id", "template"), [(id, one) for id, own in OPERATIONS.items() for one in own.templates])
def test_a_template_writes_a_sentence_that_is_read_back(id: str, template: str) -> None:
    assert parse(sample_sentence(id, template), ALL) == sample_query(id, template)


def test_every_class_of_a_form_has_words_and_every_class_is_used() -> None:
    forms = [form for operation in OPERATIONS.values() for form in operation.forms]
    used = {name for form in forms for name in (*form.words, *form.without)}
    used |= {name for operation in OPERATIONS.values() for name in operation.allows}
    assert used == CLASSES.keys()


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a query with any slots that its operation may have.

    No query: the type checker of the tests draws at random where it is made, which hypothesis forbids in here.
    """
    operation = draw(st.sampled_from(sorted(ALL)))
    own = OPERATIONS[operation]
    methods = st.lists(st.sampled_from(METHODS), unique=True, min_size=own.least[0].get("methods", 0), max_size=3)
    chosen = {
        "example": draw(st.one_of(st.none(), st.integers(0, 999_999), st.just(THIS))),
        "dataset": draw(st.sampled_from((None, "reviews", "nli", "sst2", "scenes", "digits"))),
        "target": draw(st.sampled_from(("neutral", "positive", None)[: 2 if operation == "rules" else 3])),
        "count": draw(st.one_of(st.none(), st.integers(1, 99))) if operation == "top" else None,
        "text": draw(WORDS) if operation == "rules" else None,
        "token": draw(WORDS) if operation == "next_token" else draw(st.one_of(st.none(), WORDS)),
        "contrast": draw(st.one_of(st.none(), WORDS)),
        "word": draw(WORDS),
        "replacement": draw(WORDS),
        "models": draw(st.sampled_from(((), ("bert-reviews",), ("t5-deep-nli",), ("scenes-vit",)))),
        "methods": tuple(draw(methods))[: own.most.get("methods", 1)],
        "layer": draw(st.one_of(st.none(), st.integers(0, 40))),
    }
    chosen["head"] = None if chosen["layer"] is None else draw(st.integers(0, 40))
    if chosen["dataset"] is not None and chosen["example"] is None and "example" in own.slots:
        chosen["example"] = 3
    return {"operation": operation} | {name: value for name, value in chosen.items() if name in own.slots}


@settings(max_examples=100, deadline=None)
@given(queries())
def test_the_sentence_of_a_query_means_that_query(fields: dict[str, Any]) -> None:
    query = ParsedQuery(**fields)
    written = write_sentence(query)
    if query.operation == "evaluate" and not query.methods:
        written = write_sentence(query, OPERATIONS["evaluate"].templates[1])
    assert parse(written, ALL) == query, written


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(sorted(vocabulary())), max_size=9).map(" ".join)))
def test_any_text_is_understood_or_refused_with_the_nearest_sentences(text: str) -> None:
    try:
        query = parse(text)
    except NotUnderstood as refusal:
        error = refusal
    else:
        assert query.operation in ALL
        return
    assert len(set(error.nearest)) == NEAREST
    assert str(error).startswith("query: not understood. ")
    assert all(parse(sentence) for sentence in error.nearest)


@pytest.mark.parametrize("word", ["not", "least", "never", "unlike", "less", "half", "zebra"])
def test_a_word_that_nothing_explains_is_not_passed_over(word: str) -> None:
    assert word not in FILLERS
    with pytest.raises(NotUnderstood):
        parse(f"most important {word} words in example 3")
    with pytest.raises(NotUnderstood, match=word if word != "least" else "No form"):
        parse(f"explain {word} example 3 with LIME")


@pytest.mark.parametrize(
    "text",
    [
        "", "?", "LIME", "example 3", "example -1", "explain example 3.5", "explain example 1,000,000 with LIME",
        "explain example 3 and example 4", "explain example 3 for positive and negative", "explain a random example",
        "delete all my results", "delete results", "remove the model", "change the model to bert-reviews",
        "replace bert-reviews by nli-minilm", "explain example 3 without LIME", "who prefers LIME",
        "which method do users prefer", "is the model fair", "how accurate is bert-reviews", "a" * 2001,
        "where do LIME and IG agree most", "which words make the two texts different", "compare LIME",
        "<methods0> example 3",
        'explain example 3 and then replace "good" with "bad"', "compare LIME and IG and attack LIME",
        "predict example 3 and explain it with LIME", "find the mistakes of bert-reviews and explain them",
        "explain this dashboard", "explain the data set nli", "explain bert-reviews", "what is a counterfactual",
        "count the words in example 3", "which labels are wrong in sst2", "which models are similar",
        "the first word of example 3", "which change would not flip review 3", "change the language to german",
        "the most common words in reviews", "correct the mistakes",
        "which examples are similar to example 3", "what if nothing is removed in example 3",
        "show the weights of layer 2",
    ],
)  # fmt: skip
def test_what_no_operation_does_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse(text, ALL)


@pytest.mark.parametrize(
    ("reason", "texts"),
    [
        ("the prediction leaves", [
            "which smallest change takes it away from positive", "what flips the prediction from positive in example 3",
            "what change makes it the opposite of positive", "what flips the positive prediction in example 3",
            "which smallest change flips positive example 3",
        ]),
        ("asks for two things", ["show the prediction for review 8 and the top five words"]),
        ("true|predicted", [
            "examples wrongly predicted as positive", "examples misclassified as positive", "mistakes for positive",
            "reviews mistaken for positive", "examples wrongly labeled to positive", "positive wrong predictions",
            "examples it wrongly predicts positive", "wrongly predicted positive examples", "errors of class positive",
            "reviews labeled positive incorrectly", "examples the model labeled positive incorrectly",
        ]),
        ("not those among the first", ["the first 5 examples that bert-reviews gets wrong"]),
        ("names no prediction", [
            "explain integrated gradients to me", "explain LIME", "can you explain SHAP to me", "explain LIME and SHAP",
        ]),
        ("can be the true one", ["what is the label of example 3", "what's the label of example 3", "label example 3"]),
        ("No class can be assigned", ["label example 3 as positive", "please classify example 3 as positive"]),
        ("changes the explanation", [
            "attack LIME and change the prediction", "attack LIME so that the prediction changes",
            "change the prediction but keep the map", "manipulate the output of example 3",
            "can LIME be fooled into a different prediction",
        ]),
        ("not the explanation", ["change the explanation and the prediction of example 3"]),
        ("Only the weights", [
            "randomize the words of example 3", "does shuffling the words change example 3", "shuffle the data set",
            "does LIME change if the words are shuffled", "randomize example 3 with LIME",
        ]),
        ("A quot", [
            'explain "not" in this example', 'does the prediction depend on "not"', 'which head attends to "not"',
            'predict the text "not" in this review',
            'explain "not"', 'explain "good" and "bad"', 'does the prediction depend on "not bad at all"',
        ]),
        ("One word at a time", [
            'what if "good" is replaced with "bad" and "nice" with "ugly"', 'what if "good" and "nice" are removed',
        ]),
        ("'not' is not in the quoted text", ['what if "not" is removed in the text "a bad film"']),
        ("outside quotation marks", ["remove a " * 60]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_fits_a_form_but_means_something_else_is_refused(reason: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(NotUnderstood, match=reason):
            parse(text, ALL)


@pytest.mark.parametrize(
    "text",
    [
        "which words change the prediction away from positive in example 3",
        "attack the prediction of example 3", "attack the model on example 3", "adversarial example for example 3",
        "attack example 3",
        "what if we remove the first word in example 3", "what if the last word is removed in example 3",
        "what if we remove two words from example 3", "what if we remove two of the words from example 3",
        "what if we mask half of example 3", "remove punctuation from example 3",
        "what if we remove the stop words from example 3", "what if stopwords are removed in example 3",
        "what if the negation is removed in example 3", "remove positive words from example 3",
    ],
)  # fmt: skip
def test_what_is_no_literal_word_and_no_explanation_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse(text, ALL)


@pytest.mark.parametrize(
    "text",
    [
        'what if only "kettle" is left in example 3', 'leave only "kettle" in example 3',
        'leave "kettle" in example 3', 'what if "kettle" is the only word left',
        'what if "kettle" is the only word left in example 3', 'take only "kettle" from example 3',
        'take "kettle" from example 3', 'what if just "kettle" is left in example 3',
        'remove everything but "kettle" in example 3', 'remove all words except "kettle"', 'keep only "kettle"',
        'remove just "kettle" in example 3', 'what if only "kettle" is removed in example 3',
        'what if everything is removed but "kettle"', 'replace only "kettle" by "pot"',
        'remove the word before "kettle" in example 3', 'remove the sentence with "kettle"',
        'remove the sentence containing "kettle"', 'remove the part before "kettle"', 'cut example 3 before "kettle"',
        'remove the words up to "kettle"', 'drop words like "kettle"', 'remove words around "kettle"',
        'delete everything after "kettle"', 'replace the word before "kettle" by "pot"',
        'replace the word after "kettle" with "pot"', 'remove one "kettle"', 'replace "kettle" by "pot" only once',
        'replace "kettle" by "pot" once', 'remove "kettle" once', 'remove the first "kettle"',
        'remove the second "kettle"', "where do LIME and SHAP disagree least",
        "smallest disagreement of LIME and SHAP", "smallest gap between LIME and SHAP",
        "where do LIME and SHAP differ least", "which words do LIME and SHAP score least differently",
        "which examples do LIME and SHAP score least differently", "where is the difference of LIME and SHAP smallest",
        'does negative imply "kettle"', 'is "kettle" implied by negative', 'positive means "kettle"',
        'does a negative prediction mean "kettle"', "which words matter over reviews for negative",
        "what words drive the negative class across reviews", "top 10 words in the data set reviews",
        "most important words in reviews", "which words are significant over reviews",
        "explain the model on reviews by LIME", 'which words can be removed from "You can trust it." without flipping',
        'which words could be removed from "You could trust it." without flipping',
        'which words should be removed from "You should trust it." without flipping',
        'which words may be removed from "You may trust it." without flipping',
        'which words might be removed from "You might trust it." without flipping',
        'which words must be removed from "You must trust it." without flipping',
        'which words would be removed from "You would trust it." without flipping',
        'which words shall be removed from "You shall trust it." without flipping',
        "examples that both models get wrong", "mistakes of the two models", "mistakes of every model",
        "which examples does only one model get wrong",
        "mistakes that only bert-reviews makes", "most important example", "most important review",
        "most important model", "most important data set", "most important class in example 3",
        "most important sentence in example 3", 'which words become important if "kettle" is removed',
        'significant words in example 3 after removing "kettle"', "which words drive the prediction down",
        "compare LIME on reviews-minilm with SHAP on bert-reviews", "top 0 words",
        'replace the first "kettle" by "pot"', 'replace one "kettle" by "pot"',
        'replace the words like "kettle" by "pot"', 'what if the word before "kettle" is removed',
        "which words can be removed without flipping example 3", 'remove words with "kettle" in it',
        'what if only the word "kettle" is removed', "counterfactual over reviews", "the prediction over reviews",
        "the attention in reviews", "which class matters most",
    ],
)  # fmt: skip
def test_what_a_review_saw_answered_wrongly_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse(text, ALL)


@given(st.text(max_size=30).filter(lambda text: text.strip() and not set(text) & set('"“”„«»`')))
def test_a_quotation_is_kept_as_it_is(text: str) -> None:
    for quotation in (text, f"I <3 it {text}", f"<b>{text}</b>"):
        assert read_quotes(f'explain "{quotation}" and <b>').quotes == (quotation,)


@pytest.mark.parametrize(
    ("text", "operation", "slots"),
    [
        ("the third example with LIME", "explain", {"methods": ["lime"], "example": 2}),
        ("explain nli 14 by IG", "explain", {"methods": ["integrated_gradients"], "dataset": "nli", "example": 14}),
        ("show the attention of the 2nd head in layer 3", "attention", {"layer": 3, "head": 1}),
        ("explain example 3 with attention", "explain", {"methods": ["attention_mean"], "example": 3}),
        ("predict 'it isn't bad'", "predict", {"text": "it isn't bad"}),
        ("what if isn't is removed from example 2", "delete", {"word": "isn't", "example": 2}),
        ("what if the word Not is deleted", "delete", {"word": "Not"}),
        ("substitute bad for good in example 1", "replace", {"word": "good", "replacement": "bad", "example": 1}),
        ("substitute good with bad in example 1", "replace", {"word": "good", "replacement": "bad", "example": 1}),
        ("does random depend on the weights", "randomize", {"methods": ["random"]}),
        ("is LIME the same if the weights were random", "randomize", {"methods": ["lime"]}),
        ("is “LIME” faithful on sst-2", "evaluate", {"methods": ["lime"], "dataset": "sst2"}),
        ("examples that it does not get right", "mistakes", {}),
        ('explain "I <3 this film"', "explain", {"text": "I <3 this film"}),
        ('predict "Terrible"', "predict", {"text": "Terrible"}),
        ('why are "good" and "bad" similar', "similarity", {"text": "good", "text_pair": "bad"}),
        ("misclassified positive examples", "mistakes", {"target": "positive"}),
        ("5 examples that it gets wrong", "mistakes", {"count": 5}),
        ("what would turn it positive", "flip", {"target": "positive"}),
        ("explain example 3 to me", "explain", {"example": 3}),
        ("attack LIME without changing the prediction", "attack", {"methods": ["lime"]}),
        ("attack the explanation of example 3", "attack", {"example": 3}),
        ("LIME with random weights, example 3", "randomize", {"methods": ["lime"], "example": 3}),
        ("what if we take not away in example 3", "delete", {"word": "not", "example": 3}),
        ("what if the word first is removed in example 3", "delete", {"word": "first", "example": 3}),
        ('does removing "not" from "it is not bad" flip it', "delete", {"text": "it is not bad", "word": "not"}),
        ("does 'not' imply negative", "rules", {"text": "not", "target": "negative"}),
        ("which words are significant in example 3", "significance", {"example": 3}),
        ("the most significant words in example 3", "top", {"example": 3}),
        ("significant words in example 3", "significance", {"example": 3}),
        ("significant words in example 3 for positive", "significance", {"example": 3, "target": "positive"}),
        ("what if I just remove 'kettle' from example 3", "delete", {"word": "kettle", "example": 3}),
        ("what happens after 'kettle' is removed in example 3", "delete", {"word": "kettle", "example": 3}),
        ("predict example 3 with 'kettle' removed", "delete", {"word": "kettle", "example": 3}),
        ("where do LIME and SHAP agree least", "disagree", {"methods": ["lime", "kernel_shap"]}),
        ("does 'kettle' mean negative", "rules", {"text": "kettle", "target": "negative"}),
        ("most important image regions", "top", {}),
        ("which words matter most over reviews", "corpus", {"dataset": "reviews"}),
        ("how does the model behave", "behavior", {}),
        ("delete 'not' in example 3 and show the new prediction", "delete", {"word": "not", "example": 3}),
        ("change the map of LIME and keep the prediction", "attack", {"methods": ["lime"]}),
        (
            "replace dog by cat in nli 3",
            "replace",
            {"word": "dog", "replacement": "cat", "dataset": "nli", "example": 3},
        ),
        ("what label does this one get", "predict", {"example": THIS}),
    ],
)
def test_close_calls(text: str, operation: str, slots: dict[str, object]) -> None:
    assert read(text) == (operation, slots)


def test_a_sentence_with_two_meanings_names_both() -> None:
    with pytest.raises(NotUnderstood, match="It can mean"):
        parse("which is worst by far, LIME or occlusion", ALL)


def test_misspellings_are_corrected_only_where_they_are_no_words() -> None:
    assert base_word("improtant") == "important"
    assert base_word("atribution") == "attribution"
    assert base_word("lable") == "label"
    assert base_word("conributed") == "contribute", "an ending and a misspelling"
    assert base_word("randomising") == "randomize", "British spelling"
    for word in ("users", "weather", "complete", "latter", "table", "lime", "xyzzy"):
        assert base_word(word) == word
    assert read("most imporatnt wrods in exmaple 3") == ("top", {"example": 3})


def test_a_query_says_only_the_slots_that_it_has() -> None:
    assert ParsedQuery("top", example=0).slots() == {"example": 0}
    assert dataclasses.replace(ParsedQuery("top"), methods=("lime",)).slots() == {"methods": ["lime"]}


NEXT = {"token": "are", "contrast": "is"}


@pytest.mark.parametrize(
    ("text", "operation", "slots"),
    [
        ("why 'are' rather than 'is'?", "next_token", NEXT),
        ("why is the next token 'are' and not 'is'", "next_token", NEXT),
        ("why does it say 'are' instead of 'is' in 'The keys near'", "next_token", {**NEXT, "text": "The keys near"}),
        ("why does the model say are instead of is after 'The keys near'", "next_token",
         {**NEXT, "text": "The keys near"}),
        ("why does the model say 'are' instead of 'is' after 'The keys near'?", "next_token",
         {**NEXT, "text": "The keys near"}),
        ("what makes 'are' more likely than 'is' in example 3", "next_token", {**NEXT, "example": 3}),
        ("explain 'are' rather than 'is' by LIME", "next_token", {**NEXT, "methods": ["lime"]}),
        ("which words make the next token 'are'?", "next_token", {"token": "are"}),
        ("which words make tiny-llama write ' are'", "next_token", {"token": " are", "models": ["tiny-llama"]}),
        ("why does 'are' come next", "next_token", {"token": "are"}),
        ("top 3 words for the next token 'are'", "next_token", {"token": "are", "count": 3}),
        ("what comes next after 'The keys to the cabinet'", "continuation", {"text": "The keys to the cabinet"}),
        ("what comes next", "continuation", {}),
        ("what follows 'The keys to'", "continuation", {"text": "The keys to"}),
        ("continue 'The keys to'", "continuation", {"text": "The keys to"}),
        ("what would tiny-llama write after 'The keys'", "continuation",
         {"text": "The keys", "models": ["tiny-llama"]}),
        ("what is the next word in example 4 of agreement", "continuation", {"example": 4, "dataset": "agreement"}),
        ("predict the next token", "continuation", {}),
        ("which layer decides", "lens", {}),
        ("which layer decides 'are' in 'The keys near'", "lens", {"token": "are", "text": "The keys near"}),
        ("in which layer is the prediction made for example 3", "lens", {"example": 3}),
        ("at which layer does the answer appear", "lens", {}),
        ("lens of 'The keys to the cabinet'", "lens", {"text": "The keys to the cabinet"}),
        ("logit lens of example 3 for positive with bert-reviews", "lens",
         {"example": 3, "target": "positive", "models": ["bert-reviews"]}),
        ("what if 'not' is deleted with the model tiny-llama", "delete", {"word": "not", "models": ["tiny-llama"]}),
        # An edit is still an edit, and a text of several words no token.
        ("what if it said 'good' rather than 'bad' in example 3", "replace",
         {"word": "bad", "replacement": "good", "example": 3}),
        ("why does the prediction differ with 'good' instead of 'bad'", "replace",
         {"word": "bad", "replacement": "good"}),
        ("which layer attends most", "attention", {}),
    ],
)  # fmt: skip
def test_questions_about_next_tokens_and_layers(text: str, operation: str, slots: dict[str, object]) -> None:
    assert read(text) == (operation, slots)


@pytest.mark.parametrize(
    "text",
    [
        "why not 'are'", "why did it say 'are' never 'is'", "what would make the next token 'are'",
        "what if the next token were 'are'", "which layer decides 'are' rather than 'is'", "how likely is 'are' next",
        "which methods come next", "next", "explain the continuation", "which words does the lens read",
        "which words make the next token 'are' least", "lens of layer 2", "what comes next in agreement",
        "why 'are' rather than 'is' over agreement", "why 'are' rather than 'is' and which layer decides",
    ],
)  # fmt: skip
def test_other_questions_about_next_tokens_and_layers_are_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood) as refusal:
        parse(text, ALL)
    assert len(refusal.value.nearest) == NEAREST
