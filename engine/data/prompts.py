"""Prompts of four small grammars, each with its correct next token, a wrong one, and an exact rationale.

`agreement`: the number of a verb. `indirect-object`: the one of two people who did not act. `facts`: what one of
several sentences states. `sentiment-prompt`: the sentiment of a review. A prompt ends before the token that it asks
for. The words that determine this token are in [[double brackets]] until the prompt is written. The vocabulary comes
first; all words are short and common, so that most tokenizers have them as single tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from engine.data.build_reviews import unmark
from engine.data.examples import Dataset, LabeledExample
from engine.data.generation import (
    SPLIT_SIZES,
    GeneratedExamples,
    GeneratedParams,
    as_sentence,
    draw_balanced,
    example_count,
    make_dataset,
    split_of,
)
from engine.data.grammar import ReviewParams, make_review
from engine.data.labels import PROMPT_LABELS, SENTIMENT_LABELS
from engine.data.registry import LoadRequest, choose_split
from engine.data.vocabulary import DOMAINS, parse_list
from engine.params import from_mapping, option

VERSION = 1
"""Must be increased when a seed generates different prompts than before."""
ANSWER = PROMPT_LABELS.index("answer")

PEOPLE = parse_list(
    "boy, girl, teacher, student, doctor, farmer, artist, king, lawyer, nurse, driver, singer, writer, painter, guard, "
    "manager, friend, player, worker, soldier, sailor"
)
THINGS = parse_list(
    "key, car, book, table, door, window, chair, letter, picture, lamp, boat, tree, flower, horse, house, bottle, cup, "
    "plate, ball, hat, shoe, bag, phone, clock, map, cabinet, garden, wall, bridge, truck, train, coin, ring, song"
)
PREPOSITIONS = parse_list("near, behind, beside, under, with, to, from")
OPENINGS = parse_list("near, behind, beside, under")
"""Prepositions of a phrase before the subject."""
PAST_VERBS = parse_list("saw, liked, wanted, found, painted, knew, followed, helped")
"""Verbs with the same form in the singular and plural."""
VERB_PAIRS = (("is", "are"), ("was", "were"), ("has", "have"))
"""Verbs in the singular and plural."""
MOST_MODIFIERS = 2

NAMES = parse_list(
    "Mary, John, Tom, James, Anna, Sarah, Paul, Mark, David, Peter, Alice, Bob, Emma, Kate, Jane, Jack, Lisa, Laura, "
    "Susan, Helen, George, Henry, Frank, Robert, Daniel, Martin, Lucy, Simon, Adam, Sam"
)
MEETINGS = (
    "When {first} and {second} went to the {place}, ",
    "After {first} and {second} left the {place}, ",
    "While {first} and {second} sat near the {place}, ",
    "Yesterday {first} and {second} met at the {place}. ",
    "Then {first} and {second} drove to the {place}, and ",
)
PLACES = parse_list(
    "store, park, school, office, station, market, garden, library, museum, beach, farm, hospital, restaurant, bank, "
    "hotel, river, house, lake, airport"
)
TRANSFERS = ("gave", "handed", "passed", "brought", "showed")
PRESENTS = parse_list(
    "drink, book, ring, key, ball, letter, gift, map, pen, cup, hat, card, picture, bottle, flower, coin, toy, cake, "
    "phone, bag, box, watch, ticket, note, basket"
)

LEAST_SENTENCES, MOST_SENTENCES = 3, 5
"""Range of the number of sentences in a context of `facts`."""


@dataclass(frozen=True)
class FactRelation:
    """A relation of a person to a value. `words`: words between the two. `values`: possible values."""

    words: str
    values: tuple[str, ...]


RELATIONS = (
    FactRelation(
        "lives in",
        parse_list("Paris, London, Rome, Berlin, Madrid, Moscow, Tokyo, Boston, Chicago, Dublin, Vienna, Cairo"),
    ),
    FactRelation(
        "likes the color",
        parse_list("red, blue, green, yellow, black, white, brown, pink, purple, gray, orange, gold"),
    ),
    FactRelation(
        "works as a",
        parse_list("doctor, teacher, farmer, nurse, lawyer, baker, painter, singer, driver, guard, writer, judge"),
    ),
    FactRelation(
        "owns a",
        parse_list("dog, cat, horse, bird, fish, cow, pig, goat, rabbit, snake, duck, sheep"),
    ),
)
SENTIMENT_QUESTION = "The review is"


@dataclass(frozen=True)
class CueParams(GeneratedParams):
    """Options of prompts whose answer is copied from the text."""

    cues: bool = option(False, "also mark the name that points to the answer")


@dataclass(frozen=True)
class FactParams(CueParams):
    """Options of prompts about facts."""

    sentences: int | None = option(
        None, "sentences of each context; none: three to five", low=LEAST_SENTENCES, high=MOST_SENTENCES
    )


@dataclass(frozen=True)
class Fact:
    """A fact that one sentence of a context states."""

    name: str
    relation: FactRelation
    value: str


def find_value(facts: Sequence[Fact], name: str, relation: FactRelation) -> str | None:
    """Return the value that facts state for a person, or None if they state none or several."""
    values = {fact.value for fact in facts if fact.name == name and fact.relation == relation}
    return values.pop() if len(values) == 1 else None


def draw_agreement(params: GeneratedParams, plural: bool, rng: Random) -> LabeledExample:
    """Draw the start of a sentence up to its verb, with nouns of the other number between subject and verb."""
    numbers = [rng.random() < 0.5 for _ in range(rng.randint(1, MOST_MODIFIERS))]
    if plural in numbers:
        numbers[rng.randrange(len(numbers))] = not plural
    person = rng.random() < 0.5
    subject = inflect(rng.choice(PEOPLE if person else THINGS), plural)
    modifiers = [_draw_clause(person, numbers[0], rng) if rng.random() < 0.5 else _draw_phrase(numbers[0], rng)]
    modifiers += [_draw_phrase(number, rng) for number in numbers[1:]]
    clause = f"the [[{subject}]] {' '.join(modifiers)}"
    if rng.random() < 0.3:
        aside = inflect(rng.choice(THINGS), rng.random() < 0.5)
        clause = f"{rng.choice(OPENINGS)} the {aside}, {clause}"
    singular_and_plural = rng.choice(VERB_PAIRS)
    extra = {"number": "plural" if plural else "singular", "attractors": sum(number != plural for number in numbers)}
    return _write(as_sentence(clause)[:-1], singular_and_plural[plural], singular_and_plural[not plural], extra)


def inflect(noun: str, plural: bool) -> str:
    """Write a noun in the singular or plural."""
    return f"{noun}s" if plural else noun


def _draw_phrase(plural: bool, rng: Random) -> str:
    return f"{rng.choice(PREPOSITIONS)} the {inflect(rng.choice(THINGS), plural)}"


def _draw_clause(acts: bool, plural: bool, rng: Random) -> str:
    """Draw a relative clause with one more noun. `acts`: whether it describes a person, who may be its subject."""
    person, verb = inflect(rng.choice(PEOPLE), plural), rng.choice(PAST_VERBS)
    return f"that {verb} the {person}" if acts and rng.random() < 0.5 else f"that the {person} {verb}"


def draw_indirect_object(params: CueParams, answer_first: bool, rng: Random) -> LabeledExample:
    """Draw two people, one of whom gives something to the other, who is the answer (Wang et al., 2023)."""
    answer, giver = rng.sample(NAMES, 2)
    names = [f"[[{answer}]]", giver] if answer_first else [giver, f"[[{answer}]]"]
    meeting = rng.choice(MEETINGS).format(first=names[0], second=names[1], place=rng.choice(PLACES))
    actor = f"[[{giver}]]" if params.cues else giver
    text = f"{meeting}{actor} {rng.choice(TRANSFERS)} {rng.choice(('a', 'the'))} {rng.choice(PRESENTS)} to"
    return _write(text, answer, giver, {"order": "answer first" if answer_first else "answer second"})


def draw_facts(params: FactParams, early: bool, rng: Random) -> LabeledExample:
    """Draw facts and a question that exactly one of them answers. Another fact states the foil for another person.

    `early`: whether the answer is stated in the first half of the context.
    """
    count = params.sentences or rng.randint(LEAST_SENTENCES, MOST_SENTENCES)
    while True:
        names = rng.sample(NAMES, rng.randint(2, count - 1))
        facts = [_draw_fact(names, rng) for _ in range(count)]
        place = rng.randrange(count // 2) if early else rng.randrange(count // 2, count)
        asked = facts[place]
        foils = [one.value for one in facts if one.relation == asked.relation and one.value != asked.value]
        consistent = len({(fact.name, fact.relation) for fact in facts}) == count
        if foils and consistent and _decides(asked, facts):
            break
    reason = Fact(f"[[{asked.name}]]", asked.relation, f"[[{asked.value}]]")
    sentences = [_state(reason if fact is asked else fact) for fact in facts]
    question = f"{reason.name if params.cues else asked.name} {asked.relation.words}"
    extra = {"sentences": count, "sentence": place + 1}
    return _write(" ".join([*sentences, question]), asked.value, rng.choice(foils), extra)


def _draw_fact(names: Sequence[str], rng: Random) -> Fact:
    relation = rng.choice(RELATIONS)
    return Fact(rng.choice(names), relation, rng.choice(relation.values))


def _decides(asked: Fact, facts: Sequence[Fact]) -> bool:
    """Whether the facts answer the question only thanks to this one, whose value no other fact states."""
    others = [fact for fact in facts if fact is not asked]
    answers = [find_value(group, asked.name, asked.relation) for group in (facts, others)]
    return answers == [asked.value, None] and asked.value not in {fact.value for fact in others}


def _state(fact: Fact) -> str:
    return f"{fact.name} {fact.relation.words} {fact.value}."


def draw_sentiment_prompt(params: ReviewParams, positive: bool, rng: Random) -> LabeledExample:
    """Draw a generated review and ask for its sentiment. The rationale is the review's own."""
    domain = rng.choice(DOMAINS)
    review = make_review(domain, positive, rng, params.kind)
    extra = {"domain": domain.name, "kind": review.kind, "traits": list(review.traits)}
    return LabeledExample(
        f"{review.text} {SENTIMENT_QUESTION}",
        None,
        ANSWER,
        review.reasons,
        extra=extra,
        answer=f" {SENTIMENT_LABELS[positive]}",
        foil=f" {SENTIMENT_LABELS[not positive]}",
    )


def _write(marked: str, answer: str, foil: str, extra: Mapping[str, object]) -> LabeledExample:
    """Write a prompt with its rationale. Answer and foil are words, which follow the text after a space."""
    text, spans = unmark(marked)
    rationale = tuple((start, end) for start, end in spans)
    return LabeledExample(text, None, ANSWER, rationale, extra=extra, answer=f" {answer}", foil=f" {foil}")


@dataclass(frozen=True)
class PromptGrammar:
    """The options of a data set of prompts, and the function that draws a prompt.

    `draw`: takes the options, one of two equally frequent sides, and a random generator.
    """

    params: type[GeneratedParams]
    draw: Callable[[Any, bool, Random], LabeledExample]


PROMPT_GRAMMARS: Mapping[str, PromptGrammar] = {
    "agreement": PromptGrammar(GeneratedParams, draw_agreement),
    "indirect-object": PromptGrammar(CueParams, draw_indirect_object),
    "facts": PromptGrammar(FactParams, draw_facts),
    "sentiment-prompt": PromptGrammar(ReviewParams, draw_sentiment_prompt),
}


def load_prompts(name: str, request: LoadRequest) -> Dataset:
    """Load a data set of `PROMPT_GRAMMARS`. No prompt is in two splits, whatever the seeds."""
    grammar = PROMPT_GRAMMARS[name]
    params = from_mapping(grammar.params, request.options, name)
    split = choose_split(request.split, SPLIT_SIZES)
    sides = draw_balanced(f"{params.seed}/{split}/sides", example_count(params, split, request.limit))

    def make(index: int) -> LabeledExample:
        rng = Random(f"{params.seed}/{split}/{index}")
        while True:
            example = grammar.draw(params, bool(sides[index]), rng)
            if split_of(example.text) == split:
                return example

    return make_dataset(name, params, split, GeneratedExamples(len(sides), make), PROMPT_LABELS, VERSION)
