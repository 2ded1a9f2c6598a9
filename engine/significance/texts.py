"""Significance of words: a p-value for each word of a text against uninformative replacements.

The words that are significant at a false discovery rate are reported.

This is the interpretability randomization test (IRT) of Burns, Thomason and Tansey (2020), Interpreting black box
models via hypothesis testing. Null hypothesis of a word: the word is itself a draw from the distribution of its
replacements, so that the prediction for the text and the predictions for the text with a replacement are exchangeable.
A word is significant if the model treats it differently from plausible words in its place.

The test is exact if the replacements follow the distribution of words that are not important, given the rest of the
text. A masked language model only approximates it: see `engine.significance.simulation` for what happens if it is
wrong. The one-shot feature test of the same paper (OSFT) is not offered: with the knockoff threshold it needs at least
1 / rate significant words to report any, more than most texts have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import load_source
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.experiments.sample import draw_indices
from engine.format import count_text
from engine.models import catalog
from engine.models.loading import load_model
from engine.predictions import VERSION as PREDICTION_VERSION
from engine.predictions import predictions
from engine.progress import check_cancelled, report_here, reporting, silent
from engine.request import Example
from engine.significance.false_discovery import ReplacementTest, draws_needed
from engine.store import result_store
from engine.substitution import (
    MASKED_MODEL,
    Edit,
    Word,
    edited,
    like,
    load_masked_model,
    masked_revision,
    overlaps,
    sampled_words,
    with_fixed_classes,
    words_of,
)

SCHEMA = 2
MOST_CHARACTERS = 300_000_000
"""Maximum number of characters of all different texts together."""
MOST_DRAWS = 9_999
USUAL_DRAWS = 1_999
"""Maximum number of draws by default: enough for 100 words at a rate of 5%."""
WORDS_READ = 500
"""Maximum number of examples of a data set whose words are the replacements."""
EXAMPLES_SHOWN = 3
"""Number of replacements of a word that are reported, the most frequent first."""


@dataclass(frozen=True, eq=False)
class TextSignificance(ReplacementTest):
    """The predictions for a text and for the text with each word replaced, from which the p-values follow.

    `value`: the probability of the class `label` for the text (regression: the score). `draws`: the values with a word
    replaced. `repeats`: the share of a word's draws that are the word itself. `replacements`: the most frequent other
    draws of each word. `source`: source of the replacements. `unread`: number of words that the model does not read,
    which are not tested.
    """

    model: str
    revision: str
    source: str
    seed: int
    label: str
    regression: bool
    value: float
    words: tuple[Word, ...]
    replacements: tuple[tuple[str, ...], ...]
    repeats: Float[np.ndarray, "word"]
    draws: Float[np.ndarray, "word draw"]
    unread: int = 0
    noun: ClassVar[str] = "word"
    drawn: ClassVar[str] = "draws"
    beside: ClassVar[Mapping[str, str]] = {"unread_words": "unread"}

    def __post_init__(self) -> None:
        self.check_draws(len(self.words))

    @property
    def unread_note(self) -> str:
        """A sentence if the model does not read all words, else ""."""
        return f"{count_text(self.unread, 'word')} beyond what {self.model} reads, not tested." if self.unread else ""

    def parts(self) -> Iterator[dict[str, Any]]:
        """Yield the words, with their most frequent replacements and the share of draws that are the word itself."""
        for word, repeats, others in zip(self.words, self.repeats.tolist(), self.replacements, strict=True):
            yield asdict(word) | {"repeats": repeats, "replacements": others}


@dataclass(frozen=True)
class SignificanceQuery:
    """A test of the words of a text. `draws`: number per word; None: as one word needs at a rate of 5%, at most 1,999.

    `words_from`: a data set whose words, picked at random, are the replacements; None for words that `masked_model`
    expects in the place. `target`: index or label of a class, None for the predicted one.
    """

    model: str
    example: Example
    target: int | str | None = None
    draws: int | None = None
    masked_model: str = MASKED_MODEL
    words_from: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws is not None and not 1 <= self.draws <= MOST_DRAWS:
            raise not_allowed("draws", f"a whole number from 1 to {MOST_DRAWS:,}", self.draws)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def source(self) -> str:
        """The source of the replacements, in words."""
        return f"words of {self.words_from}" if self.words_from else self.masked_model

    @property
    def key(self) -> str:
        """The cache key. Reads the files of the models, never loads them."""
        data = None if self.words_from is None else load_source("text", self.words_from, tolerant=True)
        return key_for(
            {
                "schema": [SCHEMA, PREDICTION_VERSION],
                "kind": "significance of words",
                "model": [self.model, catalog.revision(self.model)],
                "example": self.example.as_plain(),
                "target": self.target,
                "draws": self.draws,
                "source": [self.masked_model, masked_revision(self.masked_model)]
                if data is None
                else [data.name, data.revision, data.count],
                "seed": self.seed,
                "device": runtime.device_type(),
            }
        )


def text_significance(query: SignificanceQuery) -> TextSignificance:
    """Predict a text with each of its words replaced many times.

    Equal texts are predicted once, and each prediction is cached. Errors: an unknown model, target or data set; a text
    without a word that the model reads, or with a mask token; more text than fits in memory.
    """
    query.example.check_length()
    if (entry := result_store().get(key := query.key)) is not None:
        return _unpacked(*entry)
    query = replace(query, example=with_fixed_classes(query.model, query.example))
    words, unread = _read_words(query)
    count = query.draws or min(USUAL_DRAWS, draws_needed(len(words)))
    replaced = _replacements(query, words, count)
    _check_size(query.example, replaced)
    texts = [
        {one: edited(query.example, [Edit(word, like(word.text, one))]) for one in dict.fromkeys(own)}
        for word, own in zip(words, replaced, strict=True)
    ]
    unique = list(dict.fromkeys([query.example, *(text for own in texts for text in own.values())]))
    report = report_here()
    with reporting(silent):  # otherwise the bar would restart with each group of texts
        predicted = dict(zip(unique, predictions(query.model, unique, report=report), strict=True))
    first = predicted[query.example]
    model = load_model(query.model)
    target = model.target_index(query.target, first, model.encode(query.example))
    value_of = {text: one.probabilities[target] for text, one in predicted.items()}
    computed = TextSignificance(
        query.model, catalog.revision(query.model), query.source, query.seed,
        "score" if first.regression else first.labels[target], first.regression, value_of[query.example], words,
        tuple(_most_frequent(word, own) for word, own in zip(words, replaced, strict=True)),
        np.array([sum(text_of[one] == query.example for one in own) / count
                  for text_of, own in zip(texts, replaced, strict=True)]),
        np.array([_values({one: value_of[text] for one, text in text_of.items()}, own)
                  for text_of, own in zip(texts, replaced, strict=True)]),
        unread,
    )  # fmt: skip
    result_store().put(key, *_packed(computed))
    return computed


def _read_words(query: SignificanceQuery) -> tuple[tuple[Word, ...], int]:
    """Return the words that the classifier reads, and the number of the others. Errors: it reads none."""
    words = words_of(query.example)
    if not words:
        raise UsageError("text: must have at least one word, got none.")
    with runtime.turn(lends=True):
        tokens = load_model(query.model).encode(query.example).tokens
    read = tuple(word for word in words if any(overlaps(token, word) for token in tokens))
    if not read:
        raise UsageError(f"text: must have a word that {query.model} reads, got none. Shorten the text.")
    return read, len(words) - len(read)


def _check_size(example: Example, replaced: Sequence[Sequence[str]]) -> None:
    """Refuse draws whose different texts would not fit in memory."""
    texts, length = sum(len({*own}) for own in replaced), len(example.text) + len(example.text_pair or "")
    if texts * length > MOST_CHARACTERS:
        raise UsageError(
            f"draws: {texts:,} different texts of {length:,} characters are more than {MOST_CHARACTERS:,} characters. "
            "Lower --draws, or shorten the text."
        )


def _values(value_of: Mapping[str, float], drawn: Sequence[str]) -> Float[np.ndarray, "draw"]:
    return np.fromiter((value_of[one] for one in drawn), dtype=np.float64, count=len(drawn))


def _replacements(query: SignificanceQuery, words: Sequence[Word], count: int) -> list[list[str]]:
    """Return the draws for each word, in lower case."""
    generator = np.random.default_rng(query.seed)
    if query.words_from is None:
        with runtime.turn():
            return sampled_words(load_masked_model(query.masked_model), query.example, words, count, generator)
    known = _words_of_dataset(query.words_from)
    return [[known[at] for at in generator.integers(len(known), size=count)] for _ in words]


def _words_of_dataset(name: str) -> list[str]:
    """Return all words of up to 500 examples of a data set, each as often as it occurs. Errors: it has none."""
    source = load_source("text", name, tolerant=True)
    known: list[str] = []
    for index in draw_indices(source.count, WORDS_READ, 0):
        check_cancelled()
        try:
            example = source.read(index).input
        except ExegesisError:  # a row that cannot be read adds no words
            continue
        if isinstance(example, Example):
            known += [word.text.lower() for word in words_of(example)]
    if not known:
        raise UsageError(f"words_from: {name} has no words. Name a data set of texts, such as reviews.")
    return known


def _most_frequent(word: Word, replaced: Sequence[str]) -> tuple[str, ...]:
    others = Counter(one for one in replaced if one != word.text.lower())
    return tuple(one for one, _ in others.most_common(EXAMPLES_SHOWN))


def _packed(one: TextSignificance) -> tuple[Meta, Arrays]:
    meta = {name: value for name, value in vars(one).items() if not isinstance(value, np.ndarray)}
    meta |= {"words": [asdict(word) for word in one.words], "replacements": [list(own) for own in one.replacements]}
    return meta, {"repeats": one.repeats, "draws": one.draws}


def _unpacked(meta: Meta, arrays: Arrays) -> TextSignificance:
    plain: dict[str, Any] = dict(meta)
    plain["words"] = tuple(Word(**word) for word in plain["words"])
    plain["replacements"] = tuple(map(tuple, plain["replacements"]))
    return TextSignificance(**plain, repeats=arrays["repeats"], draws=np.array(arrays["draws"]))
