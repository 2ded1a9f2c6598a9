"""Significance of patches: a p-value for each patch of a picture against those at the same place in other pictures.

The interpretability randomization test of Burns, Thomason and Tansey (2020), as for words (`significance.texts`).
Null hypothesis of a patch: it is itself a draw from the patches at its place in the other pictures of the data set, so
that the prediction for the picture and those with a replacement are exchangeable. This holds for a class that is chosen
in advance. It does not hold for the predicted class, which depends on the picture, nor if only pictures of other
classes are used, which depends on their predictions: both exceed the rate, as measured by `simulate_pictures` of
`engine.significance.simulation`. The patches of another picture are independent of the rest of this one, so a patch can
also be significant because it fits its neighbors. All patches share the same other pictures: their p-values are then
positively dependent, which Benjamini and Hochberg's procedure allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from cache import key_for
from engine import runtime
from engine.data.sources import load_source
from engine.errors import UsageError, not_allowed
from engine.explain import predict_encoded
from engine.models import catalog
from engine.models.loading import load_image_model
from engine.patch_replacement import load_donors, replaced_probabilities, single_replacements
from engine.request import Picture
from engine.significance.false_discovery import ReplacementTest
from engine.store import result_store
from engine.vision.picture import read_view

SCHEMA = 2
USUAL_DRAWS = 255
"""Default number of other pictures, whose patches are the replacements: a p-value is at least 1 / 256."""
MOST_DRAWS = 9_999


@dataclass(frozen=True, eq=False)
class PictureSignificance(ReplacementTest):
    """The predictions for a picture and with each patch replaced, from which the p-values follow.

    `value`: the probability of the class `label` (regression: the score). `source`: the data set of the replacements.
    `other_classes`: whether these are only from pictures that are predicted as another class.
    """

    model: str
    revision: str
    source: str
    seed: int
    label: str
    regression: bool
    grid: tuple[int, int]
    value: float
    draws: Float[np.ndarray, "patch draw"]
    other_classes: bool = False
    noun: ClassVar[str] = "patch"
    drawn: ClassVar[str] = "other pictures"
    beside: ClassVar[Mapping[str, str]] = {"other_classes": "other_classes", "grid": "grid"}

    def __post_init__(self) -> None:
        self.check_draws(self.grid[0] * self.grid[1])

    def remedy(self, draws: int) -> str:
        """Return advice on a shortage, if that many draws were requested."""
        return "Request more pictures." if self.count >= draws else "The data set has no more: choose a larger one."

    def parts(self) -> Iterator[dict[str, int]]:
        """Return row and column of each patch, counted from 1."""
        return ({"row": row + 1, "column": column + 1} for row, column in np.ndindex(self.grid))


@dataclass(frozen=True)
class PictureSignificanceQuery:
    """A test of the patches of a picture. `dataset`, `split`: source of the pictures with the replacements.

    `draws`: number of these pictures. `target`: index or label of a class, None for the predicted one. `seed`: draws
    the pictures. `other_classes`: use only pictures that are not predicted as the target, instead of all; this finds
    more, but exceeds the rate.
    """

    model: str
    picture: Picture
    dataset: str
    split: str | None = None
    target: int | str | None = None
    draws: int = USUAL_DRAWS
    seed: int = 0
    other_classes: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.draws <= MOST_DRAWS:
            raise not_allowed("draws", f"a whole number from 1 to {MOST_DRAWS:,}", self.draws)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def key(self) -> str:
        """Cache key. Reads the model's files, never loads it."""
        data = load_source("image", self.dataset, self.split, tolerant=True)
        return key_for(
            {
                "schema": SCHEMA,
                "kind": "significance of patches",
                "model": [self.model, catalog.revision(self.model)],
                "picture": self.picture.as_plain(),
                "source": [data.name, self.split, data.revision, data.count],
                "target": self.target,
                "draws": self.draws,
                "seed": self.seed,
                "other_classes": self.other_classes,
                "device": runtime.device_type(),
            }
        )


def is_computed(query: PictureSignificanceQuery) -> bool:
    """Whether the test is in the cache."""
    return result_store().contains(query.key)


def most_evaluations(query: PictureSignificanceQuery) -> int:
    """Return the maximum number of evaluations with a replaced patch. Reads the model's files, never loads it."""
    data, (rows, columns) = load_source("image", query.dataset, query.split, tolerant=True), read_view(query.model).grid
    return rows * columns * min(query.draws, data.count)


def picture_significance(query: PictureSignificanceQuery) -> PictureSignificance:
    """Predict a picture with each patch replaced by that of other pictures at the same place. Cached.

    If the data set has fewer such pictures than draws, all of them are used. Errors: an unknown model, target or
    data set; a data set without another picture.
    """
    if (entry := result_store().get(key := query.key)) is not None:
        meta, arrays = entry
        plain: dict[str, Any] = {**meta, "grid": tuple(meta["grid"])}
        return PictureSignificance(**plain, draws=np.array(arrays["draws"]))
    source = load_source("image", query.dataset, query.split, tolerant=True)
    with runtime.turn(lends=True):
        model = load_image_model(query.model, device=runtime.device())
        encoded = model.encode(query.picture)
        [prediction] = predict_encoded(model, [encoded])
        target = model.target_index(query.target, prediction, encoded)
        patches = len(encoded.features)
        selects = query.other_classes and not prediction.regression
        donors = load_donors(model, source, (2 if selects else 1) * query.draws + 1, query.seed)  # some are left out
        others = donors.other_than(query.picture)
        if selects:
            whole = np.ones((len(others), patches), dtype=bool)  # all patches replaced: the other picture itself
            others = others[replaced_probabilities(model, encoded, donors, whole, others).argmax(1) != target]
        if not len(others):
            raise UsageError("dataset: must have a picture that is predicted as another class. Use a larger one.")
        others = np.random.default_rng(query.seed).permutation(others)[: query.draws]
        rows = single_replacements(patches, np.tile(others, (patches, 1)))
        values = replaced_probabilities(model, encoded, donors, *rows)[:, target]
    label = "score" if prediction.regression else prediction.labels[target]
    computed = PictureSignificance(
        query.model, catalog.revision(query.model), source.name, query.seed, label, prediction.regression, encoded.grid,
        prediction.probabilities[target], values.reshape(patches, len(others)), selects,
    )  # fmt: skip
    meta = asdict(computed) | {"grid": list(computed.grid)}
    result_store().put(key, meta, {"draws": meta.pop("draws")})
    return computed
