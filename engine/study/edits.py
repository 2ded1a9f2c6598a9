"""Edits of a study's items: one changed word each, with the model's prediction after the change."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import runtime
from engine.errors import UsageError, excerpt
from engine.lazy import LazyModule
from engine.predictions import predictions
from engine.progress import CancelToken, Report, silent
from engine.request import Example
from engine.result import Prediction, unpack_prediction
from engine.substitution import Edit, Word, edited, like, near_words, with_fixed_classes, words_of

if TYPE_CHECKING:
    from engine.models import loading
else:  # stored edits are read without the libraries that run models
    loading = LazyModule("engine.models.loading")

MOST_WORDS = 24
"""Words of a text that are tried, drawn by the study's seed where it has more."""
REPLACEMENTS = 4
"""Near words that are tried in the place of each, besides deleting it."""


@dataclass(frozen=True)
class ItemEdit:
    """A changed word, and the model's prediction for the edited text."""

    edit: Edit
    prediction: Prediction

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values, which are stored and exported."""
        return {
            **dataclasses.asdict(self.edit.word),
            "replacement": self.edit.replacement,
            "prediction": dataclasses.asdict(self.prediction),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ItemEdit:
        word = Word(*(values[name] for name in ("segment", "start", "end", "text")))
        return cls(Edit(word, values["replacement"]), unpack_prediction(values["prediction"]))


def choose_edits(
    model: str,
    examples: Sequence[Example],
    originals: Sequence[Prediction],
    practice: int,
    seed: int,
    report: Report = silent,
    cancel: CancelToken | None = None,
) -> list[ItemEdit]:
    """An edit of one word for each text: in a random half of them one that changes the predicted class, if there is.

    `practice`: the number of texts at the start that do not count; the half is of these, and of the others.

    Each word is deleted and replaced by the words that are nearest in the model's embeddings; of all edits that change
    the prediction as wanted, or else of all, one is drawn. Errors: a text has no word.
    """
    rng = np.random.default_rng([seed, len(examples)])
    examples = [with_fixed_classes(model, example) for example in examples]
    candidates = _candidates(model, examples, rng)
    inputs = [edited(example, [edit]) for example, edits in zip(examples, candidates, strict=True) for edit in edits]
    computed = iter(predictions(model, inputs, report=report, cancel=cancel))
    sizes = practice, len(examples) - practice
    changes = np.concatenate([rng.permutation(size) < size // 2 for size in sizes])
    chosen = []
    for edits, original, change in zip(candidates, originals, changes, strict=True):
        tried = [ItemEdit(edit, next(computed)) for edit in edits]
        wanted = [one for one in tried if (one.prediction.index != original.index) == change] or tried
        chosen.append(wanted[int(rng.integers(len(wanted)))])
    return chosen


def _candidates(model: str, examples: Sequence[Example], rng: np.random.Generator) -> list[list[Edit]]:
    words = [_some_words(example, rng) for example in examples]
    with runtime.turn():
        classifier = loading.load_model(model, device=runtime.device())
        names = sorted({word.text for own in words for word in own})
        near = dict(zip(names, near_words(classifier, names, REPLACEMENTS), strict=True))
    return [
        [Edit(word, like(word.text, new) if new else "") for word in own for new in ("", *near[word.text])]
        for own in words
    ]


def _some_words(example: Example, rng: np.random.Generator) -> list[Word]:
    words = words_of(example)
    if len(words) < 2:
        raise UsageError(
            f"design.items: every text needs at least two words to edit one, got {excerpt(example.text)}. "
            "Set a minimum number of words, or choose other examples."
        )
    places = rng.permutation(len(words))[:MOST_WORDS]
    return [words[place] for place in sorted(places.tolist())]
