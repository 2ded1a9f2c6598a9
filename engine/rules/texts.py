"""Rules over texts: predictions with the words of a rule removed or inserted, and top words of attribution methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from engine import runtime
from engine.data.sources import SourceExample
from engine.errors import ExegesisError, UsageError, one_line
from engine.experiments.sample import Sample, bisect_failures, training_half
from engine.explain import explain_many
from engine.format import count_text
from engine.input_kinds import load_classifier
from engine.models.text_classifier import TextClassifier
from engine.predictions import predictions
from engine.progress import check_cancelled
from engine.request import Example, Input, Request
from engine.result import Explanation, Prediction
from engine.rules.language import And, Before, Condition, Has, Negation, Not, Or, Phrase, Rule, Term
from engine.rules.plan import MASK, REPLACE, RulesPlan
from engine.rules.result import RuleExample, RuleResult, balanced_accuracy
from engine.substitution import (
    Edit,
    MaskedModel,
    Word,
    edited,
    like,
    load_masked_model,
    sampled_words,
    word_scores,
    words_of,
)

RANDOM_DRAWS = 3
"""Number of random removals per example; their mean is compared with the removal of the rule's words."""
DRAW = 0x7C1A
"""Separates these draws from others with the same seed."""
FEWEST_OCCURRENCES = 3
"""Number of training examples in which a word must occur for its mean score to count."""
LISTED_WORDS = 20
"""Number of candidates per method: the words with the highest mean scores, of which the most predictive one is used."""
NEUTRAL_CANDIDATES = 50
"""Number of the most frequent words considered as the neutral word: the first that does not make the condition true."""
MOST_WORDS = 20
"""Number of frequent words that represent a pattern or a negation. One of them is drawn for each insertion."""
USUAL_NEGATION = "not"
"""The negation to insert if the examples contain none."""
MOST_TRIES = 10
"""Attempts to draw places for inserted words: one phrase can break another, or lie just outside its third."""


@dataclass(frozen=True)
class ReadExample:
    """A readable example with its prediction."""

    index: int
    input: Example
    prediction: Prediction


def read_predicted(plan: RulesPlan, sample: Sample) -> tuple[list[ReadExample], dict[int, str]]:
    """Read and predict the examples of a text data set. Also returns why the others are left out, by index."""
    failed: dict[int, str] = {}
    sources: list[SourceExample] = []
    for group in sample.groups():
        for one in group:
            if isinstance(one, SourceExample):
                sources.append(one)
            else:
                failed[one.index] = one.why
    outcomes = bisect_failures(partial(_predicted, plan), [one.input for one in sources])
    read = list[ReadExample]()
    for one, outcome in zip(sources, outcomes, strict=True):
        if isinstance(outcome, ExegesisError):
            failed[one.index] = one_line(outcome)
        elif isinstance(one.input, Example):
            read.append(ReadExample(one.index, one.input, outcome))
    return read, failed


def _predicted(plan: RulesPlan, inputs: Sequence[Input]) -> list[Prediction]:
    return predictions(plan.models[0], inputs, plan.dtype)


@dataclass(frozen=True)
class WordRemoval:
    """An operator that removes words from a text.

    `mask`: string that replaces each word; empty deletes it. `masked`: model that draws another word for each instead.
    """

    mask: str = ""
    masked: MaskedModel | None = None

    def apply(self, example: Example, words: Sequence[Word], generator: np.random.Generator) -> Example | None:
        """Remove the words. None if no word would be left, or if `masked` cannot read the text."""
        if self.masked is None:
            changed = edited(example, [Edit(word, self.mask) for word in words])
            return changed if words_of(changed) else None
        try:
            draws = sampled_words(self.masked, example, words, 1, generator, others=True)
        except UsageError:  # the text contains the mask token
            return None
        return edited(example, [Edit(word, like(word.text, draw)) for word, (draw,) in zip(words, draws, strict=True)])


def load_removal(plan: RulesPlan) -> WordRemoval:
    """Load the removal operator of a plan. Errors: the model has no mask token. The caller must hold the device."""
    if plan.removal_operator == REPLACE:
        return WordRemoval(masked=load_masked_model())
    if plan.removal_operator != MASK:
        return WordRemoval()
    model = load_classifier("text", plan.models[0], plan.dtype, runtime.device())
    token = model.tokenizer.mask_token if isinstance(model, TextClassifier) else None
    if token is None:
        raise UsageError(f"removal: {plan.models[0]} has no mask token. Use delete or replace.")
    return WordRemoval(token)


@dataclass(frozen=True)
class _Edits:
    """The edited versions of one example; None or empty if an edit is not possible."""

    removed: Example | None = None
    random: tuple[Example, ...] = ()
    inserted: Example | None = None
    neutral: Example | None = None

    @property
    def all(self) -> tuple[Example, ...]:
        return tuple(one for one in (self.removed, *self.random, self.inserted, self.neutral) if one is not None)


def measure_text_rule(plan: RulesPlan, rule: Rule, target: int, read: Sequence[ReadExample]) -> RuleResult:
    """Predict each example without the words of the rule or, if it has none, with them inserted.

    Attribution is added later, by `with_attribution`.
    """
    counts = count_words(read)
    is_quoted = has_only_quoted_words(rule.condition)
    neutral = neutral_word(rule.condition, counts) if is_quoted else ""
    phrases = inserted_phrases(rule.condition, counts)
    # Words inserted in the same places for comparison: the neutral word, or random words of the examples.
    others = ([neutral] if neutral else []) if is_quoted else other_words(rule.condition, counts)
    edits = _all_edits(plan, rule.condition, phrases, others, read)
    unique = list(dict.fromkeys(version for own in edits for version in own.all))
    outcomes = dict(zip(unique, bisect_failures(partial(_predicted, plan), unique), strict=True))
    predicted = {version: one for version, one in outcomes.items() if isinstance(one, Prediction)}
    half = training_half([one.index for one in read], plan.seed)
    examples = tuple(
        _rule_example(one, rule, target, one.index not in half, own, predicted)
        for one, own in zip(read, edits, strict=True)
    )
    label = read[0].prediction.labels[target] if read else rule.label
    return RuleResult(
        rule.text, label, False, examples, neutral_word=neutral, notes=tuple(_notes(rule, examples, read, phrases))
    )


def _all_edits(
    plan: RulesPlan, condition: Condition, phrases: Sequence[Phrases], others: Sequence[str],
    read: Sequence[ReadExample],
) -> list[_Edits]:  # fmt: skip
    edits = []
    with runtime.turn(lends=True):
        removal = load_removal(plan)
        for one in read:
            check_cancelled()
            generator = np.random.default_rng([DRAW, plan.seed, one.index])
            words = words_of(one.input)
            places = condition.matches(words)
            if places:
                edits.append(_removals(one.input, words, places, removal, generator))
            elif places is None and phrases and others and words:
                edits.append(_insertions(one.input, condition, phrases, others, generator))
            else:
                edits.append(_Edits())
    return edits


def _removals(
    example: Example, words: Sequence[Word], places: frozenset[int], removal: WordRemoval,
    generator: np.random.Generator,
) -> _Edits:  # fmt: skip
    others = [at for at in range(len(words)) if at not in places]
    removed = removal.apply(example, [words[at] for at in sorted(places)], generator)
    if removed is None or len(others) < len(places):
        return _Edits(removed)
    draws = (generator.choice(others, len(places), replace=False) for _ in range(RANDOM_DRAWS))
    random = [removal.apply(example, [words[at] for at in sorted(draw)], generator) for draw in draws]
    return _Edits(removed, tuple(one for one in random if one is not None))


Phrases = tuple[tuple[tuple[str, ...], str], ...]
"""Phrases to insert together. Each is a tuple of alternatives, one of which is drawn, and a place as in `Has`."""


def inserted_phrases(condition: Condition, counts: Mapping[str, int]) -> tuple[Phrases, ...]:
    """The phrases whose insertion makes a condition true, one entry per alternative; empty if there are none.

    `counts`: frequencies of the examples' words, which represent patterns and negations. The words of `A before B` are
    inserted together. A negated condition adds no words; whether it holds is checked in the edited text.
    """
    if isinstance(condition, Has):
        texts = _texts_of(condition.term, counts)
        return (((texts, condition.place),),) if texts else ()
    if isinstance(condition, Before):
        pairs = product(_texts_of(condition.first, counts), _texts_of(condition.second, counts))
        texts = tuple(f"{first} {second}" for first, second in pairs)
        return (((texts, ""),),) if texts else ()
    if isinstance(condition, And):
        parts = [inserted_phrases(one, counts) for one in condition.conditions if not isinstance(one, Not)]
        chosen = product(*parts) if parts and all(parts) else ()
        return tuple(tuple(phrase for one in alternative for phrase in one) for alternative in chosen)
    if isinstance(condition, Or):
        return tuple(one for part in condition.conditions for one in inserted_phrases(part, counts))
    return ()


def _texts_of(term: Term, counts: Mapping[str, int]) -> tuple[str, ...]:
    """The words of a phrase, or the most frequent words of the examples that match a pattern or a negation."""
    if isinstance(term, Phrase):
        return (" ".join(term.words),)
    matching = [word for word in counts if term.spans([Word(0, 0, len(word), word)])]
    usual = (USUAL_NEGATION,) if isinstance(term, Negation) else ()
    return tuple(sorted(matching, key=lambda word: (-counts[word], word))[:MOST_WORDS]) or usual


def has_only_quoted_words(condition: Condition) -> bool:
    """Whether the condition has only words in quotation marks, without `before` and `not`.

    One neutral word then suffices for comparison.
    """
    if isinstance(condition, And | Or):
        return all(map(has_only_quoted_words, condition.conditions))
    return isinstance(condition, Has) and isinstance(condition.term, Phrase)


def _insertions(
    example: Example, condition: Condition, alternatives: Sequence[Phrases], others: Sequence[str],
    generator: np.random.Generator,
) -> _Edits:  # fmt: skip
    """Insert the words of an alternative, and other words in the same places.

    Only places are used where the former make the condition true and the latter do not.
    """

    def draw(texts: Sequence[str]) -> str:
        return texts[int(generator.integers(len(texts)))] if len(texts) > 1 else texts[0]

    phrases = alternatives[int(generator.integers(len(alternatives)))]
    for _ in range(MOST_TRIES):
        inserted = compared = example
        for texts, place in phrases:
            text = draw(texts)
            other = " ".join(draw(others) for _ in text.split())
            state = generator.bit_generator.state
            inserted = insert_words(inserted, text, place, generator)
            generator.bit_generator.state = state  # the other words go to the same place
            compared = insert_words(compared, other, place, generator)
        if condition.matches(words_of(inserted)) is not None and condition.matches(words_of(compared)) is None:
            return _Edits(inserted=inserted, neutral=compared)
    return _Edits()


def insert_words(example: Example, text: str, place: str, generator: np.random.Generator) -> Example:
    """Insert words at a random gap within the place: between two words, before the first or after the last."""
    words = words_of(example)
    n, third = len(words), len(words) // 3
    ends = {"starts with": (0, 0), "ends with": (n, n), "first third": (0, third), "last third": (n - third, n)}
    low, high = ends.get(place, (0, n))
    gap = int(generator.integers(low, high + 1))
    texts = [example.text, example.text_pair or ""]
    if gap < n:
        word, addition = words[gap], f"{text} "
        at = word.start
    else:
        word, addition = words[-1], f" {text}"
        at = word.end
    texts[word.segment] = texts[word.segment][:at] + addition + texts[word.segment][at:]
    return replace(example, text=texts[0], text_pair=None if example.text_pair is None else texts[1])


def count_words(read: Sequence[ReadExample]) -> Counter[str]:
    """Count the words of the examples, in lower case."""
    return Counter(word.text.lower() for one in read for word in words_of(one.input))


def neutral_word(condition: Condition, counts: Counter[str]) -> str:
    """The most frequent word of the examples that does not make the condition true; empty if there is none."""
    common = (word for word, _ in counts.most_common(NEUTRAL_CANDIDATES))
    return next((word for word in common if condition.matches([Word(0, 0, len(word), word)]) is None), "")


def other_words(condition: Condition, counts: Mapping[str, int]) -> list[str]:
    """The words of the examples without those to insert, in order of appearance, repeated as often as they occur."""
    inserted = {
        word
        for phrases in inserted_phrases(condition, counts)
        for texts, _ in phrases
        for text in texts
        for word in text.split()
    }
    return [word for word, count in counts.items() for _ in range(count) if word not in inserted]


def _rule_example(
    one: ReadExample, rule: Rule, target: int, held_out: bool, edits: _Edits, predicted: Mapping[Example, Prediction]
) -> RuleExample:
    words = words_of(one.input)
    places = rule.condition.matches(words)

    def prediction(version: Example | None) -> Prediction | None:
        return None if version is None else predicted.get(version)

    def probability(version: Example | None) -> float | None:
        made = prediction(version)
        return None if made is None else float(made.probabilities[target])

    removed = prediction(edits.removed)
    random = [predicted[version] for version in edits.random if version in predicted]
    changed = [other.index != one.prediction.index for other in random]
    return RuleExample(
        example=one.index,
        holds=places is not None,
        held_out=held_out,
        words=" ".join(words[at].text for at in sorted(places or ())),
        predicted=one.prediction.index,
        as_claimed=one.prediction.index == target,
        probability=float(one.prediction.probabilities[target]),
        removed=probability(edits.removed),
        removed_changed=None if removed is None else removed.index != one.prediction.index,
        random=float(np.mean([other.probabilities[target] for other in random])) if random else None,
        random_changed=float(np.mean(changed)) if random else None,
        inserted=probability(edits.inserted),
        neutral=probability(edits.neutral),
    )


def _notes(
    rule: Rule, examples: Sequence[RuleExample], read: Sequence[ReadExample], phrases: Sequence[Phrases]
) -> Iterator[str]:
    """Yield a note for each test that is left out, with the reason."""
    holding = [one for one in examples if one.holds]
    if holding and not any(one.words for one in holding):
        yield "No word makes the condition true, so none can be removed."
    short = sum(bool(one.words) and (one.removed is None or one.random is None) for one in holding)
    if short:
        yield f"{count_text(short, 'example')} with too few other words to compare with, left out of the removals."
    if not phrases:
        yield why_not_inserted(rule.condition)
        return
    if rest := sum(
        not one.holds and one.inserted is None and bool(words_of(own.input))
        for one, own in zip(examples, read, strict=True)
    ):
        yield f"{count_text(rest, 'example')} that no insertion makes true, left out of the insertions."
    if wordless := sum(not words_of(one.input) for one in read):
        yield f"{count_text(wordless, 'example')} without a word, left out of the insertions."


def why_not_inserted(condition: Condition) -> str:
    """Explain in one sentence why no words can be inserted."""
    parts = condition.conditions if isinstance(condition, And | Or) else (condition,)
    if all(isinstance(part, Not) for part in parts):
        return "The condition is true where words are missing, and missing words cannot be inserted."
    return "No word of the examples matches a pattern of the condition, so none can be inserted."


def attribution_words(
    plan: RulesPlan, method: str, target: int, read: Sequence[ReadExample]
) -> list[tuple[str, float]]:
    """The words with the highest mean scores for the class in the training half, with these means, in decreasing order.

    The score of a word is the sum over its tokens; the mean is over all its occurrences. Words in fewer than
    `FEWEST_OCCURRENCES` examples are left out, and so are examples that the method cannot explain.
    """
    half = training_half([one.index for one in read], plan.seed)
    training = [one for one in read if one.index in half]
    requests = [
        Request(plan.models[0], method, one.input, plan.params_of(method), target, plan.seed, plan.dtype)
        for one in training
    ]
    scores: dict[str, list[float]] = {}
    examples = Counter[str]()
    for one, outcome in zip(training, bisect_failures(explain_many, requests), strict=True):
        if isinstance(outcome, Explanation):
            words = words_of(one.input)
            own = [
                (word.text.lower(), float(score))
                for word, score in zip(words, word_scores(outcome, words), strict=True)
                if np.isfinite(score)  # otherwise the model does not read the word
            ]
            for word, score in own:
                scores.setdefault(word, []).append(score)
            examples.update({word for word, _ in own})
    means = {word: float(np.mean(each)) for word, each in scores.items() if examples[word] >= FEWEST_OCCURRENCES}
    return sorted(means.items(), key=lambda item: (-item[1], item[0]))[:LISTED_WORDS]


def with_attribution(
    result: RuleResult, candidates: Mapping[str, Sequence[tuple[str, float]]], read: Sequence[ReadExample]
) -> RuleResult:
    """Add the best single-word rule: the candidate word of any method that predicts best in training.

    The best word has the highest balanced accuracy in the training half. Ties go to the first method, then to the
    higher score.
    """
    vocabularies = [frozenset(word.text.lower() for word in words_of(one.input)) for one in read]
    training = np.array([not one.held_out for one in result.examples], dtype=bool)
    best, chosen = -1.0, ("", "")
    for method, words in candidates.items():
        for word, _ in words:
            has = np.array([word in own for own in vocabularies], dtype=bool)
            value = balanced_accuracy(has[training], result.as_claimed[training])
            if value is not None and value > best:
                best, chosen = value, (method, word)
    method, word = chosen
    if not method:
        return replace(result, notes=(*result.notes, "No attribution method names a word that occurs often enough."))
    examples = tuple(
        replace(one, attribution_holds=word in own) for one, own in zip(result.examples, vocabularies, strict=True)
    )
    return replace(result, examples=examples, method=method, word=word)
