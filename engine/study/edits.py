"""Edits of a study's items: one word per item is changed, and the model predicts the edited text."""

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
"""Maximum number of words tried per text; if it has more, the study's seed draws them at random."""
REPLACEMENTS = 4
"""Number of near words tried as a replacement of each word, in addition to deleting it."""


@dataclass(frozen=True)
class ItemEdit:
    """A one-word edit and the model's prediction for the edited text."""

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
    """Choose a one-word edit for each text. In a random half of the texts, the edit should change the predicted class.

    `practice`: number of practice texts, which come first. They and the other texts are halved separately.

    Each word is deleted, and replaced by the nearest words in the model's embeddings. The result is drawn at random
    from the edits with the wanted effect on the class, or from all edits if none has it. Errors: a text has fewer than
    two words.
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
