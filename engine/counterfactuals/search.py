"""Beam search for the fewest changes of words that flip a prediction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from jaxtyping import Float

from engine import runtime
from engine.errors import UsageError, not_allowed, unknown
from engine.explain import require_finite
from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.params import allowed, option
from engine.request import Example
from engine.result import Prediction, Token
from engine.substitution import (
    MASKED_MODEL,
    Edit,
    MaskedModel,
    Word,
    around,
    edited,
    like,
    likely_words,
    load_masked_model,
    near_words,
    reads_all,
    words_of,
)

SOURCES = MASKED, NEAREST, DELETE = "masked", "nearest", "delete"
"""Sources of replacements: the masked model, the nearest word embeddings of the model, or none (deletion)."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search. `masked_model`: as in `load_masked_model`; it is used only with the source `masked`."""

    most_changes: int = option(4, "Change at most N words.", low=1, high=6)
    candidates: int = option(8, "Replacements of a word from each source.", low=1, high=100)
    words: int = option(30, "Words to try; of more, those that gradient x input ranks highest.", low=1, high=500)
    beam: int = option(8, "Sets of changes that are extended by one more.", low=1, high=1_000_000)
    branches: int = option(48, "Single changes that extend each set.", low=1, high=1_000_000)
    results: int = option(5, "Counterfactuals to find.", low=1, high=50)
    sources: tuple[str, ...] = SOURCES
    masked_model: str = MASKED_MODEL

    def __post_init__(self) -> None:
        for field in fields(self):
            if "low" in field.metadata:
                value, low, high = getattr(self, field.name), field.metadata["low"], field.metadata["high"]
                if type(value) is not int or not low <= value <= high:
                    raise not_allowed(field.name, allowed(field, int), value)
        for source in self.sources:
            if source not in SOURCES:
                raise unknown("sources", source, SOURCES)
        if not self.sources:
            raise not_allowed("sources", f"at least one of {', '.join(SOURCES)}", "none")


@dataclass(frozen=True)
class Change:
    """A word and its replacement, which is empty if the word is deleted.

    `log_probability`: that of the replacement in the original text by the masked model, in nats, with only this place
    masked; None for other sources.
    """

    word: Word
    replacement: str
    source: str
    log_probability: float | None = None


Changes = tuple[Change, ...]
"""Changes of different words, in reading order."""


@dataclass(frozen=True)
class SearchRound:
    """The search over sets of `changes` changes. `tried`: number of evaluated sets, `flipped`: of those that flip.

    `complete`: whether every set of that size was tried, except those that contain a smaller set that flips and those
    that delete all words of a text.
    """

    changes: int
    tried: int
    flipped: int
    complete: bool

    def __str__(self) -> str:
        what = "changes of one word" if self.changes == 1 else f"changes of {self.changes} words"
        if not self.tried:
            return f"There are no {what} to try."
        counted = f"{self.flipped:,}" if self.flipped else "None"
        rest = "" if self.complete else " Not all combinations were tried."
        verb = "flip" if self.flipped > 1 else "flips"
        return f"{counted} of {self.tried:,} {what} {verb} the prediction.{rest}"


@dataclass(frozen=True)
class Goal:
    """The condition of a flip. `index`, `score`: original prediction. `target`: desired class, None for any other.

    `threshold`: value that the score of a regression head has to cross. `classes`: number of first classes that can be
    predicted; None for all.
    """

    index: int
    score: float
    target: int | None
    threshold: float | None
    classes: int | None = None

    def margins(self, logits: Float[np.ndarray, "row label"]) -> Float[np.ndarray, "row"]:
        """Return the distance of each prediction from a flip, in logits or units of the score; below 0 after a flip."""
        if self.threshold is not None:
            return (logits[:, 0] - self.threshold) * (1 if self.score >= self.threshold else -1)
        logits = logits[:, : self.classes]
        if self.target is None:
            return logits[:, self.index] - np.delete(logits, self.index, axis=1).max(1)
        return np.delete(logits, self.target, axis=1).max(1) - logits[:, self.target]

    def slopes(self, logits: Float[np.ndarray, "label"]) -> Float[np.ndarray, "label"]:
        """Return the derivative of the margin with respect to each logit."""
        best = np.zeros(len(logits))
        if self.threshold is not None:
            return best + (1 if self.score >= self.threshold else -1)
        down = self.index if self.target is None else self.target
        place = np.arange(len(logits))
        others = np.where((place == down) | (place >= (self.classes or len(logits))), -np.inf, logits)
        best[[down, int(others.argmax())]] = (1, -1) if self.target is None else (-1, 1)
        return best

    def margin(self, prediction: Prediction) -> float:
        """Return the margin of one prediction: see `margins`."""
        return float(self.margins(np.array([prediction.logits]))[0])


@dataclass(frozen=True)
class ChangedText:
    """A set of changes, the resulting text, and its margin, the distance from a flip."""

    changes: Changes
    text: Example
    margin: float

    @property
    def words(self) -> frozenset[Word]:
        """The changed words."""
        return frozenset(change.word for change in self.changes)

    @property
    def fluency(self) -> tuple[bool, float]:
        """Sort key: texts that the masked model finds most probable first, and those that it did not propose last."""
        logs = [change.log_probability for change in self.changes if change.log_probability is not None]
        return len(logs) < len(self.changes), -math.fsum(logs)


@dataclass(frozen=True)
class SearchResult:
    """The texts that flip, the closest one that does not, and the cost of the search."""

    flips: tuple[ChangedText, ...]
    closest: ChangedText | None
    rounds: tuple[SearchRound, ...]
    words: int
    words_tried: int
    evaluations: int
    masked_evaluations: int
    notes: tuple[str, ...]


def search_flips(model: TextClassifier, example: Example, goal: Goal, options: SearchOptions) -> SearchResult:
    """Try all single changes, then extend a beam of those closest to a flip by one change at a time.

    The search ends once it has the desired number of flips of different words. The caller must hold the device.
    Errors: a text without a word that the model reads.
    """
    part, words = _read_part(model, example)
    if not words:
        raise UsageError("text: must have at least one word that the model reads, got none. Give a word to change.")
    search = _Search(model, part, goal)
    chosen = search.most_important(words, options.words)
    changes, notes = _candidates(model, part, chosen, options)
    flips, closest, rounds = list[ChangedText](), list[ChangedText](), list[SearchRound]()
    sets: Iterable[Changes] = [(change,) for change in changes]
    complete, branches = True, list[Change]()
    for size in range(1, options.most_changes + 1):
        tried = search.evaluate(sets)
        left = sorted((one for one in tried if one.margin >= 0), key=lambda one: one.margin)
        flips += (one for one in tried if one.margin < 0)
        closest += left[:1]
        rounds.append(SearchRound(size, len(tried), len(tried) - len(left), complete))
        if len({one.words for one in flips}) >= options.results or not left:
            break
        branches = branches or _each_word_first(left)
        complete = complete and len(left) <= options.beam and len(branches) <= options.branches
        sets = _extended(left[: options.beam], branches[: options.branches], flips)
    return SearchResult(
        tuple(flips), min(closest, key=lambda one: one.margin, default=None), tuple(rounds), len(words), len(chosen),
        len(search.margins) + search.gradients, len(chosen) if MASKED in options.sources else 0, notes,
    )  # fmt: skip


class _Search:
    """The texts evaluated so far. `margins`: their distances from a flip. `gradients`: number of gradient passes."""

    def __init__(self, model: TextClassifier, example: Example, goal: Goal) -> None:
        self.model, self.example, self.goal = model, example, goal
        self.margins: dict[Example, float] = {}
        self.gradients = 0
        counted = words_of(example)
        self._counts = [sum(word.segment == segment for word in counted) for segment in (0, 1)]

    def most_important(self, words: Sequence[Word], most: int) -> Sequence[Word]:
        """Return the words with the largest share of the margin by gradient x input (first order), in reading order."""
        if len(words) <= most:
            return words
        encoded = self.model.encode(self.example)
        batch = self.model.collate([encoded])
        with torch.enable_grad():
            point = self.model.embed(batch).detach().requires_grad_()
            logits = self.model.logits(batch, point)[0]
            slopes = torch.from_numpy(self.goal.slopes(as_float64(logits))).to(logits)
            (slope,) = torch.autograd.grad((logits * slopes).sum(), point)
        shares = as_float64((slope * point).sum(-1)[0])
        require_finite(self.model, "gradients", shares)
        self.gradients = 1
        totals = [
            sum(share for share, token in zip(shares, encoded.tokens, strict=True) if overlaps(token, word))
            for word in words
        ]
        return sorted(words[at] for at in np.argsort(-np.array(totals), kind="stable")[:most])

    def evaluate(self, sets: Iterable[Changes]) -> list[ChangedText]:
        """Evaluate the texts that result from sets of changes, except sets that delete all words of a text."""
        texts = [(changes, apply_changes(self.example, changes)) for changes in sets if self._leaves_words(changes)]
        new = list(dict.fromkeys(text for _, text in texts if text not in self.margins))
        self.margins.update(zip(new, self._run(new), strict=True))
        return [ChangedText(changes, text, self.margins[text]) for changes, text in texts]

    def _leaves_words(self, changes: Changes) -> bool:
        deleted = [change.word.segment for change in changes if not change.replacement]
        return all(deleted.count(segment) < self._counts[segment] for segment in set(deleted))

    def _run(self, texts: Sequence[Example]) -> list[float]:
        """Run the model. Texts of about the same length share passes."""
        if not texts:
            return []
        encoded = [self.model.encode(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at]))

        def compute(rows: slice) -> Float[np.ndarray, "row"]:
            with torch.inference_mode():
                logits = as_float64(self.model.logits(self.model.collate([encoded[at] for at in order[rows]])))
            require_finite(self.model, "logits", logits)
            return self.goal.margins(logits)

        size = runtime.rows_at_once(self.model, len(encoded[order[-1]]))
        margins = np.concatenate(runtime.in_chunks(compute, len(texts), size))
        return [float(margins[at]) for at in np.argsort(order)]


def overlaps(token: Token, word: Word) -> bool:
    """Whether a token is part of a word."""
    return token.segment == word.segment and token.start < word.end and token.end > word.start


def apply_changes(example: Example, changes: Changes) -> Example:
    """Return the example with these changes."""
    return edited(example, [Edit(change.word, change.replacement) for change in changes])


def _read_part(model: TextClassifier, example: Example) -> tuple[Example, list[Word]]:
    """Return the part of a long text that the model might read after deletions, and the words that it reads now."""
    beyond = model.encode(example, 2 * model.max_length)
    if beyond.truncated:
        pair = None if example.text_pair is None else example.text_pair[: _end(beyond, 1)]
        start = beyond.cut_before
        example = replace(example, text=example.text[start : _end(beyond, 0)], text_pair=pair)
    read = model.encode(example)
    return example, [
        word for word in words_of(example) if read.cut_before <= word.start and word.end <= _end(read, word.segment)
    ]


def _end(encoded: EncodedText, segment: int) -> int:
    return max((token.end for token in encoded.tokens if token.segment == segment), default=0)


def _candidates(
    model: TextClassifier, example: Example, words: Sequence[Word], options: SearchOptions
) -> tuple[list[Change], tuple[str, ...]]:
    """Return the single changes, each replacement of a word once, and notes on them."""
    changes: dict[tuple[Word, str], Change] = {}
    notes: tuple[str, ...] = ()

    def add(word: Word, replacement: str, source: str, share: float | None = None) -> None:
        new = like(word.text, replacement)
        log = None if share is None else math.log(max(share, np.finfo(float).tiny))
        changes.setdefault((word, new), Change(word, new, source, log))

    if MASKED in options.sources:
        masked = load_masked_model(options.masked_model)
        proposals, notes = _likely_words(masked, example, words, options.candidates)
        for word, likely in zip(words, proposals, strict=True):
            for replacement, share in likely:
                add(word, replacement, MASKED, share)
    if NEAREST in options.sources:
        for word, near in zip(words, near_words(model, [one.text for one in words], options.candidates), strict=True):
            for replacement in near:
                add(word, replacement, NEAREST)
    if DELETE in options.sources:
        for word in words:
            add(word, "", DELETE)
    return list(changes.values()), notes


def _likely_words(
    masked: MaskedModel, example: Example, words: Sequence[Word], count: int
) -> tuple[list[list[tuple[str, float]]], tuple[str, ...]]:
    """Return `likely_words`, from a part around each word if the text is too long for the masked model, and notes."""
    if reads_all(masked, example):
        return likely_words(masked, example, words, count), ()
    parts = (around(masked, example, word) for word in words)
    note = f"The text is too long for {masked.id}, which read the {masked.max_length} tokens around each word."
    return [likely_words(masked, part, [own], count)[0] for part, own in parts], (note,)


def _each_word_first(singles: Sequence[ChangedText]) -> list[Change]:
    """Return the single changes, closest to a flip first, but the best of each word before the second best of any."""
    ranks: dict[Word, int] = {}
    ranked = []
    for (change,) in (one.changes for one in singles):
        ranks[change.word] = ranks.get(change.word, -1) + 1
        ranked.append((ranks[change.word], change))
    return [change for _, change in sorted(ranked, key=lambda one: one[0])]


def _extended(
    sets: Sequence[ChangedText], branches: Sequence[Change], flips: Sequence[ChangedText]
) -> Iterator[Changes]:
    """Yield each set with one more change of another word, except those that contain a smaller set that flips."""
    smaller = [frozenset(one.changes) for one in flips]
    made = set[frozenset[Change]]()
    for one, change in itertools.product(sets, branches):
        extended = frozenset((*one.changes, change))
        if change.word in one.words or extended in made or any(flip <= extended for flip in smaller):
            continue
        made.add(extended)
        yield tuple(sorted(extended, key=lambda each: each.word))
