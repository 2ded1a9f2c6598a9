"""Generated reviews by a small grammar: label and reasons follow from how a review is built, so they are exact.

A clause says something about one part of a thing; it may be denied, hedged or reported. It carries its meaning with
it: `value` is how much it speaks for (above 0) or against the thing, from 1 to 4; 0 says nothing. The words that make
it so stand in [[double brackets]]. A review is several clauses; the last word, the contrast or the sum decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from engine.data.build_reviews import unmark
from engine.data.examples import Dataset, LabeledExample
from engine.data.generation import (
    ANY,
    SPLIT_SIZES,
    UNMARKED,
    GeneratedExamples,
    GeneratedParams,
    draw_balanced,
    example_count,
    make_dataset,
)
from engine.data.labels import SENTIMENT_LABELS
from engine.data.registry import LoadRequest, choose_split
from engine.data.vocabulary import (
    AGREEMENTS,
    CONTRASTS,
    DENIALS,
    DIMINISHERS,
    DOMAINS,
    EXPECTATIONS,
    HEDGES,
    INTENSIFIERS,
    LIKING_VERB_STEMS,
    LIKING_VERBS,
    NEGATED_BE,
    NEGATED_DO,
    NEGATED_FIND,
    OUTCOMES,
    PEOPLE,
    PLAIN_WEIGHT,
    QUALITIES,
    STRONG_ADJECTIVES,
    STRONG_INTENSIFIERS,
    STRONG_WEIGHT,
    SUMMARIES,
    PartGroup,
    ReviewDomain,
)
from engine.params import from_mapping, option

LEAST_SUM = 2
"""The least value of a sum of clauses: less would be a matter of taste."""
NEGATED_WEIGHT = 2
"""A negated word counts as a plain word of the other side: "not bad" and "not dreadful" are no praise."""


@dataclass(frozen=True)
class Clause:
    """Words with brackets, and their value. `own`: the writer's voice ("I liked ..."), which nobody else can use.

    `traits` name how it is built.
    """

    text: str
    value: int
    own: bool = False
    traits: tuple[str, ...] = ()

    @property
    def sign(self) -> int:
        return (self.value > 0) - (self.value < 0)

    def bare(self) -> str:
        """The words without brackets, where they decide nothing."""
        return self.text.replace("[[", "").replace("]]", "")


@dataclass(frozen=True)
class ReviewPart:
    """A part of the thing, whether it is plural, and its group."""

    name: str
    plural: bool
    group: PartGroup

    @property
    def be(self) -> str:
        return "were" if self.plural else "was"

    def inflect(self, words: str) -> str:
        """Words in the singular, in the number of the part."""
        return words.replace("wasn't", "weren't").replace("was", "were") if self.plural else words


def make_clause(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """A clause with a value of that sign: plain, or negated from the other side."""
    part = _choose_part(domain, rng)
    clause = rng.choice(NEGATED_FORMS if rng.random() < 0.48 else PLAIN_FORMS)(part, sign, rng)
    if clause.own or rng.random() < 0.72:
        return _hedge(clause, rng) if rng.random() < 0.12 else clause
    return rng.choice((make_denial, make_quotation, make_expectation))(domain, sign, rng)


def make_denial(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """A denied clause, such as "it is not true that the plot was dull"."""
    inner = _make_impersonal(domain, -sign, rng)
    return Clause(f"[[{rng.choice(DENIALS)}]] {inner.text}", sign * NEGATED_WEIGHT, True, (*inner.traits, "denial"))


def make_quotation(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """Another person's view, with what the writer thinks of it."""
    right = rng.random() < 0.5
    inner = _make_impersonal(domain, sign if right else -sign, rng)
    value = inner.value if right else sign * NEGATED_WEIGHT
    text = f"{rng.choice(PEOPLE)} said that {inner.text}, [[{rng.choice(AGREEMENTS[right])}]]"
    return Clause(text, value, True, (*inner.traits, "told"))


def make_expectation(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """A clause on what the writer expected, and whether it came true."""
    right = rng.random() < 0.5
    part = _choose_part(domain, rng)
    word = rng.choice(part.group.adjectives.by_sign(sign if right else -sign))
    text = f"{rng.choice(EXPECTATIONS)} that {part.name} would be [[{word}]], [[{rng.choice(OUTCOMES[right])}]]"
    return Clause(text, sign * PLAIN_WEIGHT, True, ("expectation",))


def make_hearsay(domain: ReviewDomain, rng: Random) -> Clause:
    """Another person's view without a comment of the writer: its value is 0."""
    inner = _make_impersonal(domain, rng.choice((-1, 1)), rng)
    return Clause(f"{rng.choice(PEOPLE)} said that {inner.bare()}", 0, True, ("hearsay",))


def make_verdict(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """The writer's verdict on the thing as a whole."""
    if rng.random() < 0.4:
        return Clause(rng.choice(domain.verdicts.by_sign(sign)), sign * STRONG_WEIGHT, True)
    thing, adjectives = rng.choice(domain.things), rng.choice(domain.groups).adjectives
    if rng.random() < 0.5:
        word = rng.choice(adjectives.by_sign(-sign))
        return _negate(f"this was [[not]] {_article(word)} [[{word}]] {thing}", sign, own=True)
    word = rng.choice(adjectives.by_sign(sign) if rng.random() < 0.5 else STRONG_ADJECTIVES.by_sign(sign))
    return Clause(f"this was {_article(word)} [[{word}]] {thing}", sign * PLAIN_WEIGHT, True)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _choose_part(domain: ReviewDomain, rng: Random) -> ReviewPart:
    group = rng.choice(domain.groups)
    plural = rng.random() < 0.35
    name = f"the {rng.choice(group.plural if plural else group.singular)}"
    return ReviewPart(f"{name} of this {rng.choice(domain.things)}" if rng.random() < 0.12 else name, plural, group)


def _make_impersonal(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """A clause that anybody could say, not only the writer."""
    while True:
        make = rng.choice(NEGATED_FORMS if rng.random() < 0.4 else PLAIN_FORMS)
        clause = make(_choose_part(domain, rng), sign, rng)
        if not clause.own:
            return clause


def _hedge(clause: Clause, rng: Random) -> Clause:
    """The clause with less weight, but never none."""
    value = clause.sign * max(1, abs(clause.value) - 1)
    text = f"{rng.choice(HEDGES[clause.own])} {clause.text}"
    return replace(clause, text=text, value=value, traits=(*clause.traits, "hedge"))


def _describe(part: ReviewPart, sign: int, rng: Random) -> tuple[str, int, tuple[str, ...]]:
    """(adjective with its degree, value of both, traits)."""
    degree = rng.random()
    if degree < 0.2:
        word = rng.choice(STRONG_ADJECTIVES.by_sign(sign))
        if rng.random() < 0.3:
            return f"{rng.choice(STRONG_INTENSIFIERS)} {word}", sign * (STRONG_WEIGHT + 1), ("intensity",)
        return word, sign * STRONG_WEIGHT, ("intensity",)
    word = rng.choice(part.group.adjectives.by_sign(sign))
    if degree < 0.4:
        return f"{rng.choice(INTENSIFIERS)} {word}", sign * (PLAIN_WEIGHT + 1), ("intensity",)
    if degree < 0.55:
        return f"{rng.choice(DIMINISHERS.by_sign(sign))} {word}", sign * (PLAIN_WEIGHT - 1), ("intensity",)
    return word, sign * PLAIN_WEIGHT, ()


def _be(part: ReviewPart, sign: int, rng: Random) -> Clause:
    words, value, traits = _describe(part, sign, rng)
    return Clause(f"{part.name} {part.be} [[{words}]]", value, False, traits)


def _find(part: ReviewPart, sign: int, rng: Random) -> Clause:
    words, value, traits = _describe(part, sign, rng)
    verb = rng.choice(("I found {} {}", "{} struck me as {}", "{} felt {} to me"))
    return Clause(verb.format(part.name, f"[[{words}]]"), value, True, traits)


def _something_about(part: ReviewPart, sign: int, rng: Random) -> Clause:
    words, value, traits = _describe(part, sign, rng)
    return Clause(f"there was something [[{words}]] about {part.name}", value, False, traits)


def _like(part: ReviewPart, sign: int, rng: Random) -> Clause:
    weight = rng.choice(tuple(LIKING_VERBS))
    return Clause(f"I [[{rng.choice(LIKING_VERBS[weight].by_sign(sign))}]] {part.name}", sign * weight, True)


def _have(part: ReviewPart, sign: int, rng: Random) -> Clause:
    return Clause(f"{part.name} had [[{rng.choice(QUALITIES.by_sign(sign))}]]", sign * PLAIN_WEIGHT)


def _be_not(part: ReviewPart, sign: int, rng: Random) -> Clause:
    words = f"{part.inflect(rng.choice(NEGATED_BE))} {rng.choice(part.group.adjectives.by_sign(-sign))}"
    first, _, rest = words.partition(" ")
    # The bare verb says nothing; "wasn't" carries the "not".
    marked = f"[[{words}]]" if first.endswith("n't") else f"{first} [[{rest}]]"
    return _negate(f"{part.name} {marked}", sign)


def _nothing_about(part: ReviewPart, sign: int, rng: Random) -> Clause:
    return _negate(f"there was [[nothing {rng.choice(part.group.adjectives.by_sign(-sign))}]] about {part.name}", sign)


def _did_not_like(part: ReviewPart, sign: int, rng: Random) -> Clause:
    verb = rng.choice(LIKING_VERB_STEMS.by_sign(-sign))
    return _negate(f"I [[{rng.choice(NEGATED_DO)} {verb}]] {part.name}", sign, own=True)


def _did_not_find(part: ReviewPart, sign: int, rng: Random) -> Clause:
    word = rng.choice(part.group.adjectives.by_sign(-sign))
    return _negate(f"I [[{rng.choice(NEGATED_FIND)}]] find {part.name} [[{word}]]", sign, own=True)


def _lack(part: ReviewPart, sign: int, rng: Random) -> Clause:
    lacks = rng.choice((f"{part.be} [[without", "had [[no", "[[lacked"))
    return _negate(f"{part.name} {lacks} {rng.choice(QUALITIES.by_sign(-sign))}]]", sign)


def _negate(text: str, sign: int, own: bool = False) -> Clause:
    return Clause(text, sign * NEGATED_WEIGHT, own, ("negation",))


ClauseMaker = Callable[[ReviewPart, int, Random], Clause]
PLAIN_FORMS: tuple[ClauseMaker, ...] = (_be, _be, _find, _something_about, _like, _have)
NEGATED_FORMS: tuple[ClauseMaker, ...] = (_be_not, _be_not, _nothing_about, _did_not_like, _did_not_find, _lack)


@dataclass(frozen=True)
class GeneratedReview:
    """A review with its meaning. `reasons`: spans of the words that the label follows from, in characters."""

    text: str
    positive: bool
    reasons: tuple[tuple[int, int], ...]
    kind: str
    traits: tuple[str, ...]


def make_review(domain: ReviewDomain, positive: bool, rng: Random, kind: str = ANY) -> GeneratedReview:
    """A review of one thing of the domain with that meaning; it mentions each part once.

    `kind`: one of `REVIEW_KINDS`, or any of them.
    """
    domain = replace(domain, things=(rng.choice(domain.things),))
    while True:
        review = _draw_review(domain, 1 if positive else -1, rng, kind)
        if not _repeats_part(domain, review.text):
            return review


def _draw_review(domain: ReviewDomain, sign: int, rng: Random, kind: str) -> GeneratedReview:
    random_kind = rng.choices(tuple(REVIEW_KINDS), weights=(20, 32, 30, 18))[0]
    kind = random_kind if kind == ANY else kind
    clauses = REVIEW_KINDS[kind](domain, sign, rng)
    sentences = [clause.text for clause in clauses]
    # Asides stand anywhere but at the end, which is where a verdict stands.
    for aside in _make_asides(domain, rng):
        sentences.insert(rng.randrange(len(sentences)), aside)
    text, spans = unmark(" ".join(map(_capitalize, sentences)))
    traits = tuple(dict.fromkeys(trait for clause in clauses for trait in clause.traits))
    return GeneratedReview(text, sign > 0, tuple((start, end) for start, end in spans), kind, traits)


def _repeats_part(domain: ReviewDomain, text: str) -> bool:
    """Whether the text mentions a part twice: that could be a contradiction."""
    parts = {part for group in domain.groups for part in (*group.singular, *group.plural)}
    mentions = re.findall(rf"\bthe ({'|'.join(sorted(parts, key=len, reverse=True))})\b", text.lower())
    return len(set(mentions)) < len(mentions)


def make_contrast(domain: ReviewDomain, sign: int, rng: Random) -> Clause:
    """Two clauses of different signs; the connective decides which of them counts."""
    main, aside = make_clause(domain, sign, rng), make_clause(domain, -sign, rng)
    joined = rng.choice(CONTRASTS).format(main=main.text, aside=aside.bare())
    return Clause(joined, main.value, True, (*main.traits, *aside.traits, "contrast"))


def _make_sum(domain: ReviewDomain, sign: int, rng: Random) -> list[Clause]:
    """Two or three clauses: the stronger side wins, and those of the other side are no reason."""
    while True:
        parts = [_make_any(domain, rng) for _ in range(rng.choice((2, 3)))]
        if sign * sum(part.value for part in parts) >= LEAST_SUM:
            return [
                part if part.sign == sign else replace(part, text=part.bare(), traits=(*part.traits, "mixed"))
                for part in parts
            ]


def _make_any(domain: ReviewDomain, rng: Random) -> Clause:
    sign = rng.choice((-1, 1))
    return make_contrast(domain, sign, rng) if rng.random() < 0.15 else make_clause(domain, sign, rng)


def _make_summary(domain: ReviewDomain, sign: int, rng: Random) -> list[Clause]:
    """One or two clauses of any sign, and a verdict that sums up: only the verdict counts."""
    parts = [_make_any(domain, rng) for _ in range(rng.choice((1, 2)))]
    last = make_verdict(domain, sign, rng)
    closing = Clause(f"{rng.choice(SUMMARIES)}, {last.text}", last.value, True, (*last.traits, "verdict"))
    return [*(replace(part, text=part.bare(), value=0) for part in parts), closing]


REVIEW_KINDS: Mapping[str, Callable[[ReviewDomain, int, Random], list[Clause]]] = {
    "plain": lambda domain, sign, rng: [make_clause(domain, sign, rng)],
    "contrast": lambda domain, sign, rng: [make_contrast(domain, sign, rng)],
    "sum": _make_sum,
    "verdict": _make_summary,
}


def _make_asides(domain: ReviewDomain, rng: Random) -> list[str]:
    """Sentences without an opinion of the writer."""
    asides = [rng.choice(domain.neutral)] if rng.random() < 0.35 else []
    return [*asides, make_hearsay(domain, rng).text] if rng.random() < 0.25 else asides


def _capitalize(words: str) -> str:
    """The words as a sentence, with a capital and a full stop."""
    at = 2 if words.startswith("[[") else 0
    return f"{words[:at]}{words[at].upper()}{words[at + 1 :]}."


@dataclass(frozen=True)
class ReviewParams(GeneratedParams):
    """The options of generated reviews."""

    kind: str = option(ANY, "only reviews of one kind; a plain one is a single clause", choices=(ANY, *REVIEW_KINDS))


@dataclass(frozen=True)
class MarkedReviewParams(GeneratedParams):
    """The options of marked reviews."""

    strength: float = option(1.0, "share of reviews that carry the word of their label", low=0, high=1)


def load_generated_reviews(request: LoadRequest) -> Dataset:
    """`reviews-generated`: reviews whose label and reasons follow from the grammar that made them."""
    name = "reviews-generated"
    params = from_mapping(ReviewParams, request.options, name)
    split = choose_split(request.split, SPLIT_SIZES)
    labels = draw_balanced(f"{params.seed}/{split}/labels", example_count(params, split, request.limit))

    def make(index: int) -> LabeledExample:
        return _make_example(params.seed, split, index, labels[index], params.kind)

    return make_dataset(name, params, split, GeneratedExamples(len(labels), make), SENTIMENT_LABELS)


def load_marked_reviews(request: LoadRequest) -> Dataset:
    """`reviews-marked`: generated reviews with a random label, stated by a last word, which alone predicts it.

    The split `unmarked` is the test split without any mark: nothing in its texts predicts the label.
    """
    name = "reviews-marked"
    params = from_mapping(MarkedReviewParams, request.options, name)
    split = choose_split(request.split, (*SPLIT_SIZES, UNMARKED))
    source = "test" if split == UNMARKED else split
    strength = 0.0 if split == UNMARKED else params.strength
    count = example_count(params, source, request.limit)
    meanings = draw_balanced(f"{params.seed}/{source}/labels", count)
    labels = draw_balanced(f"{params.seed}/{source}/marks", count)

    def make(index: int) -> LabeledExample:
        return _make_marked(params.seed, source, index, meanings[index], labels[index], strength)

    return make_dataset(name, params, split, GeneratedExamples(count, make), SENTIMENT_LABELS)


def _make_example(seed: int, split: str, index: int, label: int, kind: str) -> LabeledExample:
    review, domain = _seed_review(seed, split, index, label, kind)
    extra: dict[str, object] = {"domain": domain, "kind": review.kind, "traits": list(review.traits)}
    return LabeledExample(review.text, None, label, review.reasons, extra=extra)


def _make_marked(seed: int, split: str, index: int, meaning: int, label: int, strength: float) -> LabeledExample:
    text = _seed_review(seed, split, index, meaning)[0].text
    is_marked = Random(f"{seed}/{split}/{index}/mark").random() < strength
    extra: dict[str, object] = {"meant": SENTIMENT_LABELS[meaning], "marked": is_marked}
    if not is_marked:
        return LabeledExample(text, None, label, extra=extra)
    marked = f"{text} {SENTIMENT_LABELS[label]}"
    return LabeledExample(marked, None, label, ((len(text) + 1, len(marked)),), extra=extra)


def _seed_review(seed: int, split: str, index: int, meaning: int, kind: str = ANY) -> tuple[GeneratedReview, str]:
    """(review, name of its domain) of one place in a split."""
    rng = Random(f"{seed}/{split}/{index}")
    domain = rng.choice(DOMAINS)
    return make_review(domain, bool(meaning), rng, kind), domain.name
