"""Counterfactual texts: several diverse sets of the fewest word changes that flip a prediction, each one verified."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cache import key_for
from engine import runtime
from engine.counterfactuals.search import (
    DELETE,
    MASKED,
    NEAREST,
    SOURCES,
    Change,
    ChangedText,
    Changes,
    Goal,
    SearchOptions,
    SearchRound,
    apply_changes,
    search_flips,
)
from engine.errors import UsageError, not_allowed
from engine.models import catalog
from engine.models.loading import load_model
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.predictions import VERSION as PREDICTION_VERSION
from engine.predictions import predictions
from engine.request import Example, read_example
from engine.result import OTHERS, Prediction, unpack_prediction
from engine.store import result_store
from engine.substitution import Word, masked_revision, with_fixed_classes
from engine.table_io import TableRow, to_csv

SCHEMA = 1
COLUMNS: Mapping[str, type] = {
    "rank": int, "flips": bool, "text": str, "text_pair": str, "changes": int, "segment": int, "start": int,
    "word": str, "replacement": str, "source": str, "log_probability": float, "prediction": str, "value": float,
    "subsets": int, "alternatives": int,
}  # fmt: skip
"""The columns of the rows of a result, and their types."""


@dataclass(frozen=True)
class Counterfactual:
    """A changed text. `prediction`: that of the final text, from a separate pass after the search.

    `subsets`: number of smaller sets of these changes that were tried; none of them flips the prediction.
    `alternatives`: number of other replacements of the same words, among those tried, that flip it too.
    """

    changes: Changes
    example: Example
    prediction: Prediction
    subsets: int
    alternatives: int


@dataclass(frozen=True)
class CounterfactualResult:
    """Counterfactuals of a text or pair, the fewest changes first.

    `target`: the desired class, None for any other than the predicted one. `threshold`: threshold of a score.
    `closest`: the text that came closest if nothing flips. `words`: number of words that the model reads;
    `words_tried`: number of those that were tried. `evaluations`, `masked_evaluations`: number of texts that the model
    and the masked model ran on.
    """

    model: str
    revision: str
    example: Example
    original: Prediction
    target: int | None
    threshold: float | None
    options: SearchOptions
    results: tuple[Counterfactual, ...]
    closest: Counterfactual | None
    rounds: tuple[SearchRound, ...]
    words: int
    words_tried: int
    evaluations: int
    masked_evaluations: int
    notes: tuple[str, ...] = ()

    @property
    def fewest(self) -> int | None:
        """The number of changes of the smallest counterfactual; None if nothing flips."""
        return len(self.results[0].changes) if self.results else None

    @property
    def is_smallest(self) -> bool:
        """Whether every smaller set of the candidates was tried, so that none of them flips."""
        return all(one.complete for one in self.rounds if self.fewest is None or one.changes < self.fewest)

    @property
    def statements(self) -> tuple[str, ...]:
        """Sentences that describe the search; they hold for these candidates."""
        words = f"{self.words_tried} of {self.words} word{'s' if self.words > 1 else ''}"
        start = f"Candidates for {words}: {_sources_in_words(self.options)}."
        return (start, *map(str, self.rounds), *self.notes)

    def rows(self) -> Iterator[TableRow]:
        """Yield a row for each change of each counterfactual; if nothing flips, of the text that came closest.

        `value`: the probability of the new class, or the new score.
        """
        for rank, one in enumerate(self.results or filter(None, [self.closest]), 1):
            for change in one.changes:
                values = (
                    rank, bool(self.results), one.example.text, one.example.text_pair, len(one.changes),
                    change.word.segment, change.word.start, change.word.text, change.replacement, change.source,
                    change.log_probability, one.prediction.label, one.prediction.probabilities[one.prediction.index],
                    one.subsets, one.alternatives,
                )  # fmt: skip
                yield dict(zip(COLUMNS, values, strict=True))

    def as_csv(self) -> str:
        """Return the rows as CSV."""
        return to_csv(self.rows()) or ",".join(COLUMNS) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Return the whole result as JSON values."""
        return {**asdict(self), "is_smallest": self.is_smallest, "statements": list(self.statements)}


def counterfactuals(
    model: str,
    example: Example,
    target: int | str | None = None,
    threshold: float | None = None,
    options: SearchOptions | None = None,
) -> CounterfactualResult:
    """Search for several diverse sets of the fewest word changes that flip a prediction. Deterministic and cached.

    A change replaces a word or deletes it. All single changes are tried; a beam of those closest to a flip is then
    extended by one change at a time. As in Wachter et al. (2018), Counterfactual explanations without opening the black
    box, counterfactuals are close inputs with another output; here, distance is the number of changed words.
    Masked models propose replacements, and edits are found by beam search, as in MiCE (Ross et al., 2021, Explaining
    NLP models via minimal contrastive editing), but word by word and without training an editor. Unlike Polyjuice (Wu
    et al., 2021), no text is generated freely. Nearest embeddings are those of word-level attacks since HotFlip
    (Ebrahimi et al., 2018).

    Each final result and all its subsets are run again: no subset of its changes flips. The results change different
    sets of words, and overlap as little as possible; two share the same words only if nothing else flips. At equal
    numbers of changes, those that the masked model finds most probable come first.

    `target`: the desired class, any other by default. `threshold`: value that the score of a regression has to cross.
    Errors: an unknown class, the predicted one, a missing or superfluous threshold, a text without a word.
    """
    options = options or SearchOptions()
    key = counterfactuals_key(model, example, target, threshold, options)
    if (entry := result_store().get(key)) is not None:
        return _unpacked(entry[0])
    example = with_fixed_classes(model, example)
    (original,) = predictions(model, [example])
    with runtime.turn(lends=True):
        classifier = load_model(model, device=runtime.device())
        goal = _goal(classifier, classifier.encode(example), original, target, threshold)
        search = search_flips(classifier, example, goal, options)
    verifier = _Verifier(model, example, goal)
    results = verifier.select(search.flips, options.results)
    closest = None if results or search.closest is None else verifier.finish(search.closest)
    computed = CounterfactualResult(
        model, classifier.revision, example, original, goal.target, threshold, options, results, closest,
        search.rounds, search.words, search.words_tried, 1 + search.evaluations + len(verifier.predicted),
        search.masked_evaluations, search.notes,
    )  # fmt: skip
    result_store().put(key, asdict(computed), {})
    return computed


def counterfactuals_key(
    model: str, example: Example, target: int | str | None, threshold: float | None, options: SearchOptions
) -> str:
    """Return the cache key of counterfactuals. Reads the models' files, never loads them."""
    example.check_length()
    if threshold is not None and not math.isfinite(threshold):
        raise not_allowed("threshold", "a finite number", threshold)
    return key_for(
        {
            "schema": [SCHEMA, PREDICTION_VERSION],
            "kind": "counterfactuals",
            "model": model,
            "revision": catalog.revision(model),
            "masked": masked_revision(options.masked_model) if MASKED in options.sources else None,
            "device": runtime.device_type(),
            "example": example.as_plain(),
            "target": target,
            "threshold": threshold,
            "options": asdict(options),
        }
    )


def _goal(
    model: TextClassifier,
    encoded: EncodedText,
    original: Prediction,
    target: int | str | None,
    threshold: float | None,
) -> Goal:
    if model.regression and threshold is None:
        raise UsageError(
            f"threshold: must be a number for {model.id}, which predicts a score ({original.logits[0]:.3g} here), got "
            "none. Give the score that has to be crossed."
        )
    if not model.regression and threshold is not None:
        raise UsageError(f"threshold: must not be given for {model.id}, which predicts classes. Give a target.")
    if model.regression and target is not None:
        raise UsageError(f"target: must not be given for {model.id}, which predicts a score. Give a threshold.")
    wanted = None if target is None else model.target_index(target, original, encoded)
    if wanted == original.index:
        others = ", ".join(label for at, label in enumerate(original.labels) if at != original.index)
        raise not_allowed("target", f"another class than the predicted one ({others})", original.label)
    classes = len(original.labels) - 1 if original.labels[-1] == OTHERS else None
    return Goal(original.index, original.logits[0], wanted, threshold, classes)


class _Verifier:
    """Predictions of final texts, one at a time and separate from the passes of the search."""

    def __init__(self, model: str, example: Example, goal: Goal) -> None:
        self.model, self.example, self.goal = model, example, goal
        self.predicted: dict[Example, Prediction] = {}

    def predict(self, changes: Changes) -> tuple[Example, Prediction]:
        """Return the text with these changes, and its prediction."""
        text = apply_changes(self.example, changes)
        if text not in self.predicted:
            (self.predicted[text],) = predictions(self.model, [text])
        return text, self.predicted[text]

    def smallest_part(self, changes: Changes) -> Changes | None:
        """Return the smallest subset of these changes that flips, or None if not even all of them together flip."""
        parts = (part for size in range(1, len(changes) + 1) for part in itertools.combinations(changes, size))
        return next((part for part in parts if self.goal.margin(self.predict(part)[1]) < 0), None)

    def select(self, flips: Sequence[ChangedText], count: int) -> tuple[Counterfactual, ...]:
        """Choose diverse counterfactuals, fewest changes first, each reduced to its smallest subset that flips."""
        left, chosen = list(flips), list[ChangedText]()
        while left and len(chosen) < count:
            best = min(left, key=lambda one: _order(one, chosen))
            left.remove(best)
            part = self.smallest_part(best.changes)
            if part is None:
                continue
            text, prediction = self.predict(part)
            if part != best.changes:
                left.append(ChangedText(part, text, self.goal.margin(prediction)))
            elif all(text != one.text for one in chosen):
                chosen.append(replace(best, text=text))
        return tuple(self.finish(one, flips) for one in sorted(chosen, key=lambda one: len(one.changes)))

    def finish(self, one: ChangedText, flips: Sequence[ChangedText] = ()) -> Counterfactual:
        """Return the counterfactual of a changed text, with its prediction."""
        text, prediction = self.predict(one.changes)
        parts = (part for size in range(1, len(one.changes)) for part in itertools.combinations(one.changes, size))
        subsets = sum(apply_changes(self.example, part) in self.predicted for part in parts)
        others = {other.text for other in flips if other.words == one.words and other.changes != one.changes}
        return Counterfactual(one.changes, text, prediction, subsets, len(others))


def _order(one: ChangedText, chosen: Sequence[ChangedText]) -> tuple[Any, ...]:
    """Sort key of the next choice: new words, few changes, little overlap, fluency, and distance beyond the flip."""
    others = [other.words for other in chosen]
    overlap = sum(len(one.words & words) for words in others)
    return one.words in others, len(one.changes), overlap, one.fluency, one.margin


def _sources_in_words(options: SearchOptions) -> str:
    named = {
        MASKED: f"the {options.candidates} most probable by {options.masked_model}",
        NEAREST: f"the {options.candidates} nearest in the model's embeddings",
        DELETE: "deletion",
    }
    return ", ".join(named[source] for source in SOURCES if source in options.sources)


def _unpacked(meta: dict[str, Any]) -> CounterfactualResult:
    plain = dict(meta)
    return CounterfactualResult(
        **{
            **plain,
            "example": read_example(plain["example"]),
            "original": unpack_prediction(plain["original"]),
            "options": SearchOptions(**{**plain["options"], "sources": tuple(plain["options"]["sources"])}),
            "results": tuple(map(_unpacked_one, plain["results"])),
            "closest": None if plain["closest"] is None else _unpacked_one(plain["closest"]),
            "rounds": tuple(SearchRound(**one) for one in plain["rounds"]),
            "notes": tuple(plain["notes"]),
        }
    )


def _unpacked_one(plain: dict[str, Any]) -> Counterfactual:
    changes = tuple(Change(**{**change, "word": Word(**change["word"])}) for change in plain["changes"])
    prediction = unpack_prediction(plain["prediction"])
    return Counterfactual(changes, read_example(plain["example"]), prediction, plain["subsets"], plain["alternatives"])
