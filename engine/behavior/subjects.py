"""Subjects of behavior questions: a text with its words or a picture with its patches, and the model to query."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engine.behavior.plan import PICTURE_CHANGES
from engine.errors import ExegesisError
from engine.explain import predict_encoded, require_finite
from engine.format import count_text
from engine.models.causal import CausalModel
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.models.text_classifier import TextClassifier
from engine.patch_replacement import PatchDonors, drawn_donors, replaced_probabilities, single_replacements
from engine.progress import check_cancelled
from engine.removal import coalition_probabilities, token_masks
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Example, Picture
from engine.result import Explanation, Prediction, predicted_class
from engine.substitution import (
    Edit,
    MaskedModel,
    Word,
    edited,
    like,
    overlaps,
    sampled_words,
    with_fixed_classes,
    word_scores,
    words_of,
)
from engine.vision.regions import Patches, other_regions


class NoQuestion(ExegesisError):
    """The task has no question about this input, so it is left out. A retry would not help."""


@dataclass(frozen=True)
class FeatureGroup:
    """Words or patches that are changed together.

    `places`: their positions. `changed`: for each change, whether it changes the class.
    """

    name: str
    places: tuple[int, ...]
    changed: Bool[np.ndarray, "change"]


class Subject(ABC):
    """An input and the model to query about it. The caller must hold the device.

    `target`: index of the explained class, which a prompt may name. `prediction`: prediction for the unchanged input.
    """

    model: AnyClassifier
    target: int
    prediction: Prediction

    @property
    def label(self) -> str:
        """The name of the explained class."""
        return self.prediction.labels[self.target]

    def class_changes(self, values: Float[np.ndarray, "row label"]) -> Bool[np.ndarray, "row"]:
        """Whether the predicted class differs from that of the unchanged input, given probabilities of all classes."""
        changed: np.ndarray = predicted_class(values, self.prediction.labels) != self.prediction.index
        return changed

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The words, or the names of the patches."""

    @property
    @abstractmethod
    def base(self) -> float:
        """The probability of the target for the unchanged input."""

    @abstractmethod
    def without(self, removals: Sequence[Sequence[int]]) -> Float[np.ndarray, "removal label"]:
        """Return the probabilities of all classes without these words or patches, one row per removal."""

    @abstractmethod
    def replaced(self, draws: int, seed: Sequence[int]) -> Float[np.ndarray, "part draw"]:
        """Return the probability of the target with each word or patch replaced, for each of `draws` replacements."""

    @abstractmethod
    def feature_groups(self, feature: Sequence[str], generator: np.random.Generator) -> list[FeatureGroup]:
        """Return the feature and, if there is room, a control of the same size. Errors: the input lacks the feature."""

    @abstractmethod
    def scores(self, explanation: Explanation) -> Float[np.ndarray, "part"]:
        """The scores of the words or patches."""


@dataclass(frozen=True)
class TextSubject(Subject):
    """A text. `masked`: the model that proposes replacements; None if words are not replaced."""

    model: TextClassifier
    example: Example
    words: tuple[Word, ...]
    target: int
    prediction: Prediction
    masked: MaskedModel | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)

    @property
    def base(self) -> float:
        return float(self.probabilities([[]])[0, self.target])

    def probabilities(self, changes: Sequence[Sequence[Edit]]) -> Float[np.ndarray, "change label"]:
        """Return probabilities of all classes (regression: the score) after each set of edits. Equal texts run once."""
        check_cancelled()
        texts = [edited(self.example, edits) for edits in changes]
        unique = list(dict.fromkeys(texts))
        predictions = predict_encoded(self.model, [self.model.encode(text) for text in unique])
        known = {text: one.probabilities for text, one in zip(unique, predictions, strict=True)}
        values = np.array([known[text] for text in texts], dtype=np.float64)
        require_finite(self.model, "probabilities", values)
        return values

    def without(self, removals: Sequence[Sequence[int]]) -> Float[np.ndarray, "removal label"]:
        return self.probabilities([[Edit(self.words[at]) for at in one] for one in removals])

    def replaced(self, draws: int, seed: Sequence[int]) -> Float[np.ndarray, "part draw"]:
        assert self.masked is not None
        generator = np.random.default_rng([*seed])
        each = sampled_words(self.masked, self.example, self.words, draws, generator)
        changes = [
            [[Edit(word, like(word.text, one))] for one in own] for word, own in zip(self.words, each, strict=True)
        ]
        values = self.probabilities(list(itertools.chain.from_iterable(changes)))
        return values[:, self.target].reshape(len(self.words), -1)

    def feature_groups(self, feature: Sequence[str], generator: np.random.Generator) -> list[FeatureGroup]:
        words = self.words
        own = [at for at, word in enumerate(words) if word.text.lower() in feature]
        if not own:
            raise NoQuestion(f"feature: the text has none of {', '.join(feature)}.")
        others = generator.permutation([at for at in range(len(words)) if at not in own]).tolist()
        # A control must not become a word of the feature, so it is exchanged for other words of the text.
        pools = [tuple(feature), tuple(dict.fromkeys(words[at].text.lower() for at in others))]
        return [
            FeatureGroup(
                ", ".join(words[at].text for at in group), tuple(group), self._class_changes(group, pool, len(feature))
            )
            for group, pool in zip([own, others[: len(own)]], pools, strict=True)
            if group
        ]

    def _class_changes(
        self, places: Sequence[int], pool: Sequence[str], count: int
    ) -> Bool[np.ndarray, "change"]:  # fmt: skip
        """Whether the class changes when these words are removed, and when each becomes a later word of the pool.

        Change 0 is the removal; change k replaces each word by the one k places later in the pool, cyclically. The
        words of a pool differ. A step that leads back to the original words changes nothing and is skipped.
        """
        words = [self.words[at] for at in places]
        changes = [[Edit(word) for word in words]]
        steps = [step for step in range(1, count) if step % len(pool)]
        for step in steps:
            starts = [pool.index(word.text.lower()) for word in words]
            others = [pool[(start + step) % len(pool)] for start in starts]
            changes.append([Edit(word, like(word.text, other)) for word, other in zip(words, others, strict=True)])
        changed: Bool[np.ndarray, "change"] = np.zeros(count, dtype=bool)
        changed[[0, *steps]] = self.class_changes(self.probabilities(changes))
        return changed

    def scores(self, explanation: Explanation) -> Float[np.ndarray, "part"]:
        return word_scores(explanation, self.words)


def text_subject(model: TextClassifier, example: Example, masked: MaskedModel | None = None) -> TextSubject:
    """Return the subject for a text: its explained class, and the words that the model reads.

    Errors: the model reads no word.
    """
    if isinstance(model, CausalModel):
        example = with_fixed_classes(model.id, example)
    encoded = model.encode(example)
    words = tuple(word for word in words_of(example) if any(overlaps(token, word) for token in encoded.tokens))
    if not words:
        raise NoQuestion("text: has no word that can be changed.")
    [prediction] = predict_encoded(model, [encoded])
    target = model.target_index(None, prediction, encoded)
    return TextSubject(model, example, words, target, prediction, masked)


REMOVAL = PATCH_OPERATORS[0]
"""The operator that removes a patch: it is set to the mean color."""


@dataclass(frozen=True)
class PictureSubject(Subject):
    """A picture. `donors`: pictures whose patches serve as replacements; None if nothing is replaced.

    `region`: the patches of the marked object, if there is one.
    """

    model: AnyClassifier
    picture: Picture
    encoded: EncodedInput
    target: int
    prediction: Prediction
    donors: PatchDonors | None = None
    region: Patches | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.encoded.tokens[at].text for at in self.encoded.features)

    @property
    def base(self) -> float:
        return float(self.without([()])[0, self.target])

    def without(self, removals: Sequence[Sequence[int]]) -> Float[np.ndarray, "removal label"]:
        check_cancelled()
        kept = np.ones((len(removals), len(self.encoded.features)), dtype=bool)
        for row, removal in enumerate(removals):
            kept[row, list(removal)] = False
        keep, index = token_masks(self.encoded, kept, len(self.encoded)), np.zeros(len(kept), dtype=np.int64)
        values = coalition_probabilities(self.model, [self.encoded], index, keep, REMOVAL)
        require_finite(self.model, "probabilities", values)
        return values

    def replaced(self, draws: int, seed: Sequence[int]) -> Float[np.ndarray, "part draw"]:
        assert self.donors is not None
        count = len(self.encoded.features)
        chosen = drawn_donors(self.donors.other_than(self.picture), count, draws, np.random.default_rng([*seed]))
        rows = single_replacements(count, chosen)
        values = replaced_probabilities(self.model, self.encoded, self.donors, *rows)
        return values[:, self.target].reshape(count, draws)

    def feature_groups(self, feature: Sequence[str], generator: np.random.Generator) -> list[FeatureGroup]:
        """Return the patches of the marked object, regardless of `feature`, and a region of the same size elsewhere."""
        if self.region is None or not self.region.any() or self.region.all():
            raise NoQuestion("feature: the data set marks no object in the picture, or one that covers all patches.")
        regions, groups = [self.region, *other_regions(self.region, generator)[:1]], []
        for name, region in zip(("marked object", "elsewhere"), regions, strict=False):
            places = tuple(np.flatnonzero(region.ravel()).tolist())
            changed = self._class_changes(places, generator)
            groups.append(FeatureGroup(f"{name}, {count_text(len(places), 'patch')}", places, changed))
        return groups

    def _class_changes(self, places: Sequence[int], generator: np.random.Generator) -> Bool[np.ndarray, "change"]:
        """Whether the class changes when these patches are removed, and when they come from another picture.

        There are `PICTURE_CHANGES` changes: one removal, the rest exchanges with other pictures.
        """
        assert self.donors is not None
        exchanges = PICTURE_CHANGES - 1
        rows = np.zeros((exchanges, len(self.encoded.features)), dtype=bool)
        rows[:, list(places)] = True
        [chosen] = drawn_donors(self.donors.other_than(self.picture), 1, exchanges, generator)
        replaced = replaced_probabilities(self.model, self.encoded, self.donors, rows, chosen)
        values = np.concatenate([self.without([places]), replaced])
        return self.class_changes(values)

    def scores(self, explanation: Explanation) -> Float[np.ndarray, "part"]:
        return explanation.scores[explanation.features]


def picture_subject(
    model: AnyClassifier, picture: Picture, donors: PatchDonors | None = None, region: Patches | None = None
) -> PictureSubject:  # fmt: skip
    """Return the subject for a picture: its predicted class and its patches."""
    encoded = model.encode(picture)
    [prediction] = predict_encoded(model, [encoded])
    return PictureSubject(model, picture, encoded, prediction.index, prediction, donors, region)
