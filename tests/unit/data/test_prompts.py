"""Generated prompts: the answer follows from the text alone, and the reasons are the words that decide it."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from engine.data import prompts
from engine.data.datasets import load
from engine.data.examples import LabeledExample, Span
from engine.data.labels import PROMPT_LABELS, match_classes
from engine.data.prompts import NAMES, PEOPLE, PROMPT_GRAMMARS, RELATIONS, THINGS, VERB_PAIRS, inflect
from engine.errors import UsageError
from engine.request import Prompt
from engine.result import OTHERS
from tests.oracles.meaning import turned_words
from tests.oracles.prompts import BLANK, number, other_person, sentiment, stated_value

GOLDEN = {
    "agreement": "c74ee576",
    "indirect-object": "2d695aa4",
    "facts": "600083c4",
    "sentiment-prompt": "1abb37bb",
}
"""Of the first hundred validation prompts: changes with a grammar, together with `prompts.VERSION`."""
MANY = {name: load(f"{name}:seed=3,count=400") for name in PROMPT_GRAMMARS}
each = pytest.mark.parametrize("name", PROMPT_GRAMMARS)


@pytest.mark.parametrize(
    ("read", "text", "answer"),
    [
        (number, "The keys to the cabinet", "plural"),
        (number, "The key that the boys liked near the doors", "singular"),
        (number, "Behind the trees, the boat near the houses", "singular"),
        (number, f"Behind the trees, the {BLANK} near the houses", None),
        (other_person, "When Mary and John went to the store, John gave a drink to", "Mary"),
        (other_person, "Then John and Mary drove to the park, and John handed the ring to", "Mary"),
        (other_person, "Yesterday Mary and John met at the park. Mary showed a map to", "John"),
        (other_person, f"When {BLANK} and John went to the store, John gave a drink to", None),
        (other_person, f"When Mary and John went to the store, {BLANK} gave a drink to", None),
        (other_person, f"When Mary and {BLANK} went to the store, John gave a drink to", "Mary"),
        (stated_value, "Anna lives in Rome. Tom lives in Paris. Tom lives in", "Paris"),
        (stated_value, "Anna lives in Rome. Tom owns a dog. Tom lives in", None),
        (stated_value, "Tom lives in Rome. Tom lives in Paris. Tom lives in", None),
        (stated_value, "Tom works as a nurse. Tom works as a", "nurse"),
        (sentiment, "The plot wasn't clever. The review is", "negative"),
        (sentiment, "We saw it on a Tuesday. The review is", None),
    ],
)
def test_the_oracles_read_prompts_read_by_hand(
    read: Callable[[str], str | None], text: str, answer: str | None
) -> None:
    assert read(text) == answer


def decide(name: str, text: str, example: LabeledExample) -> str | None:
    """The answer by the oracle; of agreement the form of the example's verb."""
    read: dict[str, Callable[[str], str | None]]
    read = {"indirect-object": other_person, "facts": stated_value, "sentiment-prompt": sentiment}
    if name != "agreement":
        answer = read[name](text)
        return None if answer is None else f" {answer}"
    pair = next(pair for pair in VERB_PAIRS if f" {pair[0]}" in (example.answer, example.foil))
    decided = number(text)
    return None if decided is None else f" {pair[decided == 'plural']}"


@each
def test_the_answer_is_what_the_text_says_and_the_foil_is_not(name: str) -> None:
    for example in MANY[name].examples:
        assert decide(name, example.text, example) == example.answer != example.foil, example


def blanked(text: str, spans: tuple[Span, ...]) -> str:
    """The text with every word in the spans taken out."""
    return "".join(re.sub(r"\w+", BLANK, part) if reason else part for reason, part in pieces(text, spans))


def pieces(text: str, spans: tuple[Span, ...]) -> list[tuple[bool, str]]:
    """The text in pieces, each with whether it is in a span."""
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return [(bool(at % 2), text[a:b]) for at, (a, b) in enumerate(itertools.pairwise(edges))]


@pytest.mark.parametrize("name", ["agreement", "indirect-object", "facts"])
def test_without_any_reason_the_answer_is_undecided_and_no_other_word_changes_it(name: str) -> None:
    rng = Random(0)
    for example in MANY[name].examples:
        assert example.rationale
        for span in example.rationale:
            assert decide(name, blanked(example.text, (span,)), example) is None, example
        for start, end in contents(name, example):
            if not any(a < end and start < b for a, b in example.rationale):
                other = rng.choice(others(name, example.text[start:end], example))
                assert decide(name, example.text[:start] + other + example.text[end:], example) == example.answer


def contents(name: str, example: LabeledExample) -> list[Span]:
    """The nouns, or the names and values of the context, without those that the answer depends on by design."""
    if name == "agreement":
        nouns = "|".join(inflect(noun, plural) for noun in (*PEOPLE, *THINGS) for plural in (True, False))
        return [found.span() for found in re.finditer(rf"\b(?:{nouns})\b", example.text)]
    if name == "indirect-object":
        giver = (example.foil or "").strip()
        return [re.search(rf"\b{giver}\b", example.text).span()]  # type: ignore[union-attr]
    values = "|".join(value for relation in RELATIONS for value in relation.values)
    context = example.text[: example.text.rindex(". ")]
    return [found.span() for found in re.finditer(rf"\b(?:{values})\b", context)]


def others(name: str, word: str, example: LabeledExample) -> list[str]:
    """Words to put in its place: of the same kind, a noun in the other number; none for the giver's first mention."""
    if name == "agreement":
        kind = PEOPLE if word.removesuffix("s") in PEOPLE else THINGS
        return [inflect(noun, not word.endswith("s")) for noun in kind]
    if name == "indirect-object":
        return [BLANK]
    return [value for relation in RELATIONS if word in relation.values for value in relation.values]


@pytest.mark.parametrize("name", ["indirect-object", "facts"])
def test_the_name_that_points_to_the_answer_can_be_marked_too(name: str) -> None:
    plain, cued = (load(f"{name}:count=50,cues={cues}") for cues in ("false", "true"))
    for without, example in zip(plain.examples, cued.examples, strict=True):
        assert (without.text, without.answer, without.foil) == (example.text, example.answer, example.foil)
        [cue] = set(example.rationale) - set(without.rationale)
        assert example.text[slice(*cue)] in NAMES
        assert cue == max(example.rationale), "it follows the other reasons"
        assert decide(name, blanked(example.text, (cue,)), example) is None
    assert plain.revision != cued.revision


def test_one_sentence_of_the_context_decides_a_fact() -> None:
    for example in MANY["facts"].examples:
        *sentences, question = example.text.split(". ")
        assert len(sentences) == example.extra["sentences"]
        assert len({sentence.split()[0] for sentence in sentences}) >= 2
        decisive = [
            at + 1
            for at in range(len(sentences))
            if decide("facts", ". ".join([*sentences[:at], *sentences[at + 1 :], question]), example) != example.answer
        ]
        assert decisive == [example.extra["sentence"]]
        context = re.findall(r"\w+", ". ".join(sentences))
        assert context.count((example.answer or "").strip()) == 1
        assert (example.foil or "").strip() in context


def test_turning_the_reasons_of_a_sentiment_turns_the_answer_and_turning_all_else_leaves_it() -> None:
    for example in MANY["sentiment-prompt"].examples:
        parts = pieces(example.text, example.rationale)
        turned = "".join(turned_words(part) if reason else part for reason, part in parts)
        rest = "".join(part if reason else turned_words(part) for reason, part in parts)
        assert (sentiment(turned), sentiment(rest)) == ((example.foil or "")[1:], (example.answer or "")[1:])


@each
def test_both_sides_are_equally_frequent(name: str) -> None:
    side: dict[str, Callable[[LabeledExample], object]] = {
        "agreement": lambda example: example.extra["number"],
        "indirect-object": lambda example: example.extra["order"],
        "facts": lambda example: int(str(example.extra["sentence"])) <= int(str(example.extra["sentences"])) // 2,
        "sentiment-prompt": lambda example: example.answer,
    }
    assert sorted(Counter(map(side[name], MANY[name].examples)).values()) == [200, 200]


def test_there_is_an_attractor_between_subject_and_verb() -> None:
    assert all(int(str(example.extra["attractors"])) >= 1 for example in MANY["agreement"].examples)


@each
def test_no_prompt_is_in_two_splits_whatever_the_seeds(name: str) -> None:
    splits = [
        {example.text for seed in seeds for example in load(f"{name}:seed={seed},count=1500", split=split).examples}
        for split, seeds in (("train", (0, 1)), ("validation", (2, 3)), ("test", (0, 4)))
    ]
    assert all(len(texts) > 1000 for texts in splits)
    assert not any(one & other for one, other in itertools.combinations(splits, 2))


@each
def test_an_example_is_a_prompt_for_its_answer(name: str) -> None:
    data = MANY[name]
    assert (data.task, data.label_names, data.exact) == ("classification", PROMPT_LABELS, True)
    example = data[7]
    assert example.example == Prompt(example.text, target=example.answer, contrast=example.foil)
    assert PROMPT_LABELS[int(example.label or 0)] == "answer"
    assert all(re.fullmatch(r" \w+", word or "") for word in (example.answer, example.foil))


@each
def test_the_prompts_are_the_ones_that_the_models_were_trained_on(name: str) -> None:
    plain = [(e.text, e.answer, e.foil, e.rationale) for e in load(name, limit=100).examples]
    assert hashlib.sha256(repr(plain).encode()).hexdigest()[:8] == GOLDEN[name]


def test_a_prompt_needs_both_an_answer_and_a_foil() -> None:
    with pytest.raises(UsageError, match="answer: a prompt has an answer and a foil, got only one of them"):
        LabeledExample("The keys", answer=" are")
    assert prompts.VERSION == 1


def test_the_classes_of_a_prompt_are_its_answer_and_the_other_token() -> None:
    assert match_classes(PROMPT_LABELS, (" are", " is")).indices == (0, 1)
    assert match_classes(PROMPT_LABELS, ()).indices == (0, 1), "a model's classes that its prompts decide"
    assert match_classes(PROMPT_LABELS, ("entailment", "neutral", "contradiction")).indices is None
    free = match_classes(("negative", "positive"), (" positive", " negative", OTHERS))
    assert free.indices is None
    assert "predicts the next token, not the data set's classes (negative, positive)" in free.note
