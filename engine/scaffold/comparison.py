"""Learned and static explanations of one example, all of them distributions over its features (figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import SourceExample
from engine.input_kinds import load_classifier
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.result import Token
from engine.scaffold.plan import ATTENTION, GRADIENTS, SMAT, EvaluationSample
from engine.scaffold.plausibility import STEPS
from engine.scaffold.result import HeadCoefficients
from engine.store import result_store

if TYPE_CHECKING:
    from engine.scaffold import measurement, training_sets
else:
    measurement = LazyModule("engine.scaffold.measurement")
    training_sets = LazyModule("engine.scaffold.training_sets")

VERSION = 1
"""Raised whenever the numbers of maps change."""
STATIC_EXPLAINERS = (*ATTENTION, *GRADIENTS)
"""The static explainers; those most similar to the learned one come first."""


@dataclass(frozen=True, eq=False)
class ExplainerComparison:
    """One example's maps by explainer, the learned one first: each sums to 1 over the features, special tokens get 0.

    `predicted_label`: None for a teacher that predicts a score, which is `score`.
    """

    tokens: tuple[Token, ...]
    grid: tuple[int, int] | None
    maps: Mapping[str, Float[np.ndarray, "seq"]]
    predicted_label: str | None
    score: float
    truncated: int

    @property
    def features(self) -> Bool[np.ndarray, "seq"]:
        return np.array([not token.special for token in self.tokens])

    def on_grid(self, explainer: str) -> Float[np.ndarray, "row column"]:
        """The patches' scores in the picture's grid. Only for pictures."""
        assert self.grid is not None
        return self.maps[explainer][self.features].reshape(self.grid)


def compare_explainers(
    sample: EvaluationSample, index: int, coefficients: HeadCoefficients | None, cancel: CancelToken | None = None
) -> ExplainerComparison:
    """The maps of one example, from the store or computed now and stored.

    Errors: an example or a teacher that cannot be read.
    """
    with cancellable(cancel):
        key = comparison_key(sample, index, coefficients)
        entry = result_store().get(key)
        if entry is None:
            entry = _compute(sample, sample.source.read(index), coefficients)
            result_store().put(key, *entry)
        return _unpack(*entry)


def comparison_key(sample: EvaluationSample, index: int, coefficients: HeadCoefficients | None) -> str:
    """The cache key of an example's maps."""
    learned = None if coefficients is None else coefficients.as_key()
    own: dict[str, Any] = {"kind": "scaffold beside", "version": VERSION, "learned": learned}
    return key_for(own | sample.as_key | {"places": [index]})


def _compute(
    sample: EvaluationSample, candidate: SourceExample, coefficients: HeadCoefficients | None
) -> tuple[Meta, Arrays]:
    with runtime.turn():
        teacher = load_classifier(sample.kind, sample.teacher, "float32", runtime.device())
        coded = teacher.encode(candidate.input)
        maps = {}
        if coefficients is not None:
            heads = training_sets.head_scores(teacher, [coded])[0]
            maps[SMAT] = training_sets.distribution(measurement.matching_weights(teacher, coefficients) @ heads, coded)
        maps |= {id: training_sets.static_maps(teacher, id, [coded], STEPS)[0] for id in STATIC_EXPLAINERS}
        [logits] = training_sets.predict_logits(teacher, [coded])
    label = None if teacher.regression else teacher.labels[int(logits.argmax())]
    tokens = [[t.text, t.start, t.end, t.segment, t.special] for t in coded.tokens]
    grid = None if coded.grid is None else list(coded.grid)
    meta = {"tokens": tokens, "grid": grid, "said": label, "score": float(logits.max()), "truncated": coded.truncated}
    return meta | {"maps": list(maps)}, maps


def _unpack(meta: Meta, arrays: Arrays) -> ExplainerComparison:
    tokens = tuple(Token(*row) for row in meta["tokens"])
    grid = None if meta["grid"] is None else (int(meta["grid"][0]), int(meta["grid"][1]))
    maps = {id: arrays[id].astype(np.float64) for id in meta["maps"]}
    return ExplainerComparison(tokens, grid, maps, meta["said"], float(meta["score"]), int(meta["truncated"]))
