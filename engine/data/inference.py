"""`nli-generated`: premises and hypotheses of a small grammar, with exact labels and rationales.

A premise has one to three sentences, each about a different place; the hypothesis is a sentence about one place. The
label says whether the hypothesis is true in all, some or none of the worlds in which the premise is true. A word is
part of the rationale if replacing it by another word of the grammar can change the label. Every group that a sentence
names has members, and words without a listed relation are independent. The words and their relations come first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar, Literal

import numpy as np

from engine.data.build_reviews import unmark
from engine.data.examples import Dataset, LabeledExample, Span
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
from engine.data.labels import NLI_LABELS
from engine.data.registry import LoadRequest, choose_split
from engine.data.vocabulary import parse_list
from engine.params import from_mapping, option

Relation = Literal["same", "below", "above", "disjoint", "independent"]
"""Relation of a first word to a second. `below`: everything that the first describes, the second describes too."""


@dataclass(frozen=True)
class Taxonomy:
    """Words and their relations. `parents`: the more general word of each word, or "". `opposites`: exclusive words."""

    parents: Mapping[str, str]
    opposites: Sequence[frozenset[str]] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All words."""
        return tuple(self.parents)

    def relation(self, first: str, second: str) -> Relation:
        """Return the relation of two words."""
        if first == second:
            return "same"
        above_first, above_second = self._lineage(first), self._lineage(second)
        if second in above_first:
            return "below"
        if first in above_second:
            return "above"
        excluded = any(one != other and {one, other} <= opposites for opposites in self.opposites
                       for one in above_first for other in above_second)  # fmt: skip
        return "disjoint" if excluded else "independent"

    def relatives(self, word: str) -> tuple[str, ...]:
        """Return the other words that are related to a word."""
        return tuple(other for other in self.words if self.relation(word, other) not in ("same", "independent"))

    def _lineage(self, word: str) -> list[str]:
        lineage = [word]
        while self.parents[lineage[-1]]:
            lineage.append(self.parents[lineage[-1]])
        return lineage


def parse_taxonomy(*lines: str, opposites: Sequence[str] = ()) -> Taxonomy:
    """Parse lines `general: special, special`; a line without a colon lists words without a more general one."""
    parents: dict[str, str] = {}
    for line in lines:
        general, _, special = line.rpartition(": ")
        if general:
            parents.setdefault(general, "")
        parents |= dict.fromkeys(parse_list(special), general)
    return Taxonomy(parents, tuple(frozenset(parse_list(words)) for words in opposites))


@dataclass(frozen=True)
class WordGroup:
    """Nouns in the plural, and the properties that they can have."""

    nouns: Taxonomy
    properties: Taxonomy


GROUPS = (
    WordGroup(
        parse_taxonomy("animals: dogs, cats, birds", "dogs: poodles, terriers", "birds: robins, sparrows"),
        parse_taxonomy(
            "resting: sleeping", "moving: running, jumping", "eating: eating meat", opposites=["resting, moving"]
        ),
    ),
    WordGroup(
        parse_taxonomy("children: girls, boys", "adults: women, men", "visitors: tourists"),
        parse_taxonomy(
            "talking: whispering, shouting", "reading: reading letters", "smiling", "sitting", "standing",
            opposites=["sitting, standing", "whispering, shouting"],
        ),
    ),
    WordGroup(
        parse_taxonomy("vehicles: cars, trucks, bicycles", "cars: taxis"),
        parse_taxonomy("damaged: burnt", "blue: dark blue", "red: bright red", "new", opposites=["blue, red"]),
    ),
    WordGroup(
        parse_taxonomy("plants: flowers, trees", "flowers: roses, tulips", "trees: oaks, birches"),
        parse_taxonomy("wet: soaked", "dry", "tall", "healthy", "sick", opposites=["wet, dry", "healthy, sick"]),
    ),
)  # fmt: skip
PEOPLE = parse_list("doctor, farmer, teacher, nurse, pilot, baker, lawyer, painter, singer, guard, judge, waiter")
VERBS = parse_taxonomy(
    "touched: hugged, pushed", "followed: chased", "noticed: greeted, insulted", "helped: rescued", "praised", "paid"
)
"""Verbs in the past tense; the past participle has the same form."""
BASE_FORMS = dict(
    zip(
        VERBS.words,
        parse_list("touch, hug, push, follow, chase, notice, greet, insult, help, rescue, praise, pay"),
        strict=True,
    )
)
PLACES = {
    **dict.fromkeys(parse_list("garden, kitchen, park, library, hall, harbor"), "in"),
    **dict.fromkeys(parse_list("station, market, school, airport"), "at"),
}
"""Places with their prepositions."""


ENTAILMENT, NEUTRAL, CONTRADICTION = range(len(NLI_LABELS))
MOST_SENTENCES = 3
VERSION = 2
"""Must be increased when a seed generates different pairs than before."""
CHANGES = (1, 1, 1, 2, 2, 0)
"""Number of slots of a premise's sentence that are redrawn for a hypothesis; each entry is equally likely."""
CELL_SIZES = range(6)
"""Possible numbers of members of a kind in a world, up to one more than the largest number of a quantifier."""

NUMBERS = {"two": 2, "three": 3, "four": 4}
COMPARISONS = {"exactly": operator.eq, "at least": operator.ge, "at most": operator.le}


def _compare_to(compare: Callable[[Any, Any], Any], number: int) -> Callable[[Any, Any], Any]:
    return lambda yes, no: compare(yes, number)


QUANTIFIERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "all": lambda yes, no: no == 0,
    "some": lambda yes, no: yes > 0,
    "no": lambda yes, no: yes == 0,
    "not all": lambda yes, no: no > 0,
    **{
        f"{name} {word}": _compare_to(compare, number)
        for name, compare in COMPARISONS.items()
        for word, number in NUMBERS.items()
    },
}
"""Truth of each quantifier, given the numbers of members of the group with and without the property."""


@dataclass(frozen=True)
class Count:
    """A statement of how many members of a group have a property: "Not all dogs in the garden are resting".

    `group`: index into `GROUPS`.
    """

    quantifier: str
    noun: str
    property: str
    place: str
    group: int
    slots: ClassVar[tuple[str, ...]] = ("quantifier", "noun", "property", "place")

    def write(self, marked: frozenset[str] = frozenset()) -> str:
        """Write the sentence, with the words of `marked` slots in double brackets."""
        quantifier, noun, property, place = (_mark(getattr(self, slot), slot in marked) for slot in self.slots)
        return f"{quantifier} {noun} {PLACES[self.place]} the {place} are {property}"

    def choices(self, slot: str) -> Sequence[Any]:
        """Return the possible values of a slot."""
        group = GROUPS[self.group]
        lists = (tuple(QUANTIFIERS), group.nouns.words, group.properties.words, tuple(PLACES))
        return lists[self.slots.index(slot)]

    def related(self, slot: str) -> Sequence[Any]:
        """Return the values of a slot that are related to its present value."""
        group = GROUPS[self.group]
        taxonomy = {"noun": group.nouns, "property": group.properties}.get(slot)
        return taxonomy.relatives(getattr(self, slot)) if taxonomy else self.choices(slot)

    def label_of(self, hypothesis: Count) -> int:
        """Return the label of a hypothesis about the same place."""
        if self.group != hypothesis.group:
            return NEUTRAL
        group = GROUPS[self.group]
        nouns = group.nouns.relation(self.noun, hypothesis.noun)
        properties = group.properties.relation(self.property, hypothesis.property)
        return _compare_counts(self.quantifier, hypothesis.quantifier, nouns, properties)


@dataclass(frozen=True)
class Act:
    """A statement of what one person did to another: "In the hall, the nurse was not thanked by the pilot"."""

    first: str
    verb: str
    second: str
    negated: bool
    passive: bool
    place: str
    slots: ClassVar[tuple[str, ...]] = ("first", "verb", "second", "negated", "passive", "place")

    @property
    def roles(self) -> tuple[str, str]:
        """The person who acted, and the person acted on."""
        return (self.second, self.first) if self.passive else (self.first, self.second)

    def write(self, marked: frozenset[str] = frozenset()) -> str:
        """Write the sentence, with the words of `marked` slots in double brackets."""
        verb = BASE_FORMS[self.verb] if self.negated and not self.passive else self.verb
        words = {
            "first": self.first,
            "second": self.second,
            "place": self.place,
            "verb": verb,
            "negated": "not" if self.passive else "did not",
        }
        # Changing the voice exchanges the roles, as does changing the order of the names.
        order = {"first", "second"} if "passive" in marked else set()
        shown = {slot: _mark(text, slot in marked | order) for slot, text in words.items()}
        was, by = (_mark(word, "passive" in marked) for word in ("was", "by"))
        voice = [was, *([shown["negated"]] if self.negated else []), shown["verb"], by]
        action = " ".join(voice if self.passive else voice[1:-1])
        return f"{PLACES[self.place]} the {shown['place']}, the {shown['first']} {action} the {shown['second']}"

    def choices(self, slot: str) -> Sequence[Any]:
        """Return the possible values of a slot."""
        people = [person for person in PEOPLE if person not in (self.first, self.second)]
        lists = (people, VERBS.words, people, (False, True), (False, True), tuple(PLACES))
        return lists[self.slots.index(slot)]

    def related(self, slot: str) -> Sequence[Any]:
        """Return the values of a slot that are related to its present value."""
        return VERBS.relatives(self.verb) if slot == "verb" else self.choices(slot)

    def label_of(self, hypothesis: Act) -> int:
        """Return the label of a hypothesis about the same place."""
        if self.roles != hypothesis.roles:
            return NEUTRAL
        return _compare_acts(VERBS.relation(self.verb, hypothesis.verb), self.negated, hypothesis.negated)


Sentence = Count | Act
Reasons = tuple[list[frozenset[str]], frozenset[str]]
"""Slots that determine the label: of each sentence of the premise, and of the hypothesis."""


def _mark(text: str, marked: bool) -> str:
    return f"[[{text}]]" if marked else text


@functools.cache
def _compare_counts(premise: str, hypothesis: str, nouns: Relation, properties: Relation) -> int:
    """Return the label of a quantified hypothesis by checking all small worlds."""
    if nouns in ("independent", "disjoint") or properties == "independent":
        return NEUTRAL
    # A world has a number of members of each kind. A kind is the nouns and properties of both sides that describe it.
    kinds = [(*noun, *has) for noun in _KINDS[nouns] if any(noun) for has in _KINDS[properties]]
    worlds = np.array(np.meshgrid(*[CELL_SIZES] * len(kinds), indexing="ij")).reshape(len(kinds), -1)

    def holds(side: int, quantifier: str) -> tuple[Any, Any]:
        members = [kind[side] for kind in kinds]
        yes = worlds[[member and kind[2 + side] for member, kind in zip(members, kinds, strict=True)]].sum(axis=0)
        no = worlds[[member and not kind[2 + side] for member, kind in zip(members, kinds, strict=True)]].sum(axis=0)
        return QUANTIFIERS[quantifier](yes, no), yes + no > 0

    (true, has_members), (follows, others) = holds(0, premise), holds(1, hypothesis)
    return _label(follows[true & has_members & others])


_KINDS: Mapping[Relation, tuple[tuple[bool, bool], ...]] = {
    "same": ((True, True), (False, False)),
    "below": ((True, True), (False, True), (False, False)),
    "above": ((True, True), (True, False), (False, False)),
    "disjoint": ((True, False), (False, True), (False, False)),
    "independent": ((True, True), (True, False), (False, True), (False, False)),
}
"""Kinds of things that can exist, by the relation of two words: (described by the first, by the second)."""


@functools.cache
def _compare_acts(verbs: Relation, negated: bool, hypothesis_negated: bool) -> int:
    """Return the label of a hypothesis about the same two people, by checking all cases."""
    cases = [case for case in _KINDS[verbs] if case[0] is not negated]
    return _label(np.array([second is not hypothesis_negated for _, second in cases]))


def _label(follows: Any) -> int:
    """Return the label, given whether the hypothesis is true in each world in which the premise is."""
    return ENTAILMENT if follows.all() else NEUTRAL if follows.any() else CONTRADICTION


def find_label(premise: Sequence[Sentence], hypothesis: Sentence) -> int:
    """Return the label of a hypothesis, given sentences about different places."""
    told = next((sentence for sentence in premise if sentence.place == hypothesis.place), None)
    if isinstance(told, Count) and isinstance(hypothesis, Count):
        return told.label_of(hypothesis)
    if isinstance(told, Act) and isinstance(hypothesis, Act):
        return told.label_of(hypothesis)
    return NEUTRAL


def find_reasons(premise: Sequence[Sentence], hypothesis: Sentence) -> Reasons:
    """Return the slots whose value can change the label: of each sentence of the premise, and of the hypothesis."""
    label = find_label(premise, hypothesis)

    def decides(sentence: Sentence, slot: str, judge: Callable[[Sentence], int]) -> bool:
        return any(judge(replace(sentence, **{slot: value})) != label for value in sentence.choices(slot))

    def judge_instead(number: int, sentence: Sentence) -> int:
        others = [*premise[:number], *premise[number + 1 :]]
        if sentence.place in {other.place for other in others}:
            return label  # Two sentences about one place are not in the grammar.
        return find_label([*others, sentence], hypothesis)

    def slots_of(sentence: Sentence) -> tuple[str, ...]:
        """Return all slots; for a sentence about another place, only the one that can move it to the hypothesis's."""
        return sentence.slots if sentence.place == hypothesis.place else ("place",)

    reasons = [
        frozenset(
            slot for slot in slots_of(sentence) if decides(sentence, slot, functools.partial(judge_instead, number))
        )
        for number, sentence in enumerate(premise)
    ]
    judge = functools.partial(find_label, premise)
    return reasons, frozenset(slot for slot in hypothesis.slots if decides(hypothesis, slot, judge))


def draw_sentence(place: str, rng: Random) -> Sentence:
    """Draw a sentence about a place."""
    if rng.random() < 0.6:
        group = rng.randrange(len(GROUPS))
        nouns, properties = GROUPS[group].nouns.words, GROUPS[group].properties.words
        return Count(rng.choice(tuple(QUANTIFIERS)), rng.choice(nouns), rng.choice(properties), place, group)
    first, second = rng.sample(PEOPLE, 2)
    return Act(first, rng.choice(VERBS.words), second, rng.random() < 0.3, rng.random() < 0.4, place)


def draw_hypothesis(sentence: Sentence, rng: Random) -> Sentence:
    """Draw a hypothesis: a sentence with other values in some slots, mostly related ones."""
    if isinstance(sentence, Act) and rng.random() < 0.5:
        # The same act in the other voice.
        sentence = replace(sentence, first=sentence.second, second=sentence.first, passive=not sentence.passive)
    for slot in rng.sample(sentence.slots, rng.choice(CHANGES)):
        values = (rng.random() < 0.7 and sentence.related(slot)) or sentence.choices(slot)
        sentence = replace(sentence, **{slot: rng.choice(values)})
    return sentence


def draw_premise(rng: Random, split: str, sentences: int | None = None) -> list[Sentence]:
    """Draw a premise of a split: sentences about different places."""
    while True:
        places = rng.sample(tuple(PLACES), sentences or rng.randint(1, MOST_SENTENCES))
        premise = [draw_sentence(place, rng) for place in places]
        if split_of(" ".join(one.write() for one in premise)) == split:
            return premise


def draw_pair(
    label: int, rng: Random, split: str, sentences: int | None = None
) -> tuple[list[Sentence], Sentence, Reasons]:
    """Draw a premise of a split and a hypothesis with the label, and with a reason on both sides."""
    while True:
        premise = draw_premise(rng, split, sentences)
        hypothesis = draw_hypothesis(rng.choice(premise), rng)
        if hypothesis in premise or find_label(premise, hypothesis) != label:
            continue
        reasons, own = find_reasons(premise, hypothesis)
        if any(reasons) and own:
            return premise, hypothesis, (reasons, own)


@dataclass(frozen=True)
class InferenceParams(GeneratedParams):
    """Options of generated pairs."""

    sentences: int | None = option(None, "sentences of each premise; none: one to three", low=1, high=MOST_SENTENCES)


def load_generated_pairs(request: LoadRequest) -> Dataset:
    """Load `nli-generated`: pairs with exact labels and rationales on both sides."""
    name = "nli-generated"
    params = from_mapping(InferenceParams, request.options, name)
    split = choose_split(request.split, SPLIT_SIZES)
    count = example_count(params, split, request.limit)
    labels = draw_balanced(f"{params.seed}/{split}/labels", count, len(NLI_LABELS))

    def make(index: int) -> LabeledExample:
        rng = Random(f"{params.seed}/{split}/{index}")
        return write_pair(*draw_pair(labels[index], rng, split, params.sentences), labels[index])

    return make_dataset(name, params, split, GeneratedExamples(count, make), NLI_LABELS, VERSION)


def write_pair(premise: Sequence[Sentence], hypothesis: Sentence, reasons: Reasons, label: int) -> LabeledExample:
    """Write a pair with its rationales. `extra` has its phenomenon and the number of sentences of the premise."""
    of_premise, own = reasons
    marked = " ".join(as_sentence(one.write(slots)) for one, slots in zip(premise, of_premise, strict=True))
    (text, spans), (pair, pair_spans) = unmark(marked), unmark(as_sentence(hypothesis.write(own)))
    extra = {"phenomenon": name_phenomenon(premise, hypothesis), "sentences": len(premise)}
    return LabeledExample(text, pair, label, _spans(spans), _spans(pair_spans), extra=extra)


PHENOMENA = {"quantifier": "quantity", "noun": "group", "property": "property", "roles": "roles", "verb": "act",
             "negated": "negation"}  # fmt: skip
"""Differences between a hypothesis and the sentence about its place, by slot."""


def name_phenomenon(premise: Sequence[Sentence], hypothesis: Sentence) -> str:
    """Name the differences between a hypothesis and the premise.

    One or more of `PHENOMENA`, `place` if no comparable sentence is about its place, or `voice` if only that differs.
    """
    told = [sentence for sentence in premise if sentence.place == hypothesis.place]
    if not told or type(told[0]) is not type(hypothesis):
        return "place"
    changed = [name for slot, name in PHENOMENA.items() if getattr(told[0], slot, 0) != getattr(hypothesis, slot, 0)]
    return ", ".join(changed) or "voice"


def _spans(spans: Sequence[Sequence[int]]) -> tuple[Span, ...]:
    return tuple((start, end) for start, end in spans)
