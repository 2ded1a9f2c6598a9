"""Plausibility: how well explanations find what people marked, or what is known to matter (SMaT, tables 2 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine.errors import ExegesisError
from engine.lazy import LazyModule
from engine.metrics.results import Interval, interval
from engine.models import catalog
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.registry import explainer
from engine.scaffold.plan import ATTENTION, GRADIENTS, SMAT, EvaluationSample, head_shape
from engine.scaffold.result import HeadCoefficients
from engine.store import result_store

if TYPE_CHECKING:
    from engine.scaffold import measurement
else:
    measurement = LazyModule("engine.scaffold.measurement")

VERSION = 1
"""Raised whenever the numbers change."""
STEPS = 50
"""Of integrated gradients here (appendix A)."""
BOTH = ""
"""The whole example: both texts of a pair."""
HEADS = "heads"
"""The part that measures all heads, all layers and the static attention explainers, from one pass."""
LAYER, HEAD = "best_layer", "best_head"
"""Selected and measured on the same labels, as in the paper."""


@dataclass(frozen=True)
class PlausibilityRow:
    """One explainer's mean AUC over examples, from 0 to 1, 0.5 by chance, with a 95% bootstrap interval over them.

    `interval`: None of a single example. `at`: the (layer, head) or (layer,) that was chosen with the labels.
    """

    explainer: str
    mean: float
    interval: Interval | None
    at: tuple[int, ...] = ()

    @property
    def supervised(self) -> bool:
        return bool(self.at)


@dataclass(frozen=True)
class HeadContrast:
    """The mean AUC of active (λ > 0) and of the other heads, and the difference with a 95% interval over examples."""

    active: int
    inactive: int
    mean_active: float
    mean_inactive: float
    interval: Interval | None

    @property
    def difference(self) -> float:
        return self.mean_active - self.mean_inactive

    @property
    def verdict(self) -> str:
        """In words; the interval decides."""
        if self.interval is None:
            return "One example is not enough to compare active and inactive heads."
        low, high = self.interval
        if low > 0:
            return "Active heads are more plausible than inactive ones."
        return (
            "Active heads are less plausible than inactive ones."
            if high < 0
            else "The difference may be due to chance."
        )


@dataclass(frozen=True, eq=False)
class PlausibilitySide:
    """What was measured on both texts or on one of a pair. `examples`: the indices of those that could be judged.

    `methods`: by explainer. `skipped`: how many of the examples could not be judged, by the reason.
    """

    name: str
    examples: tuple[int, ...]
    methods: Mapping[str, Float[np.ndarray, "example"]]
    layers: Float[np.ndarray, "example layer"]
    heads: Float[np.ndarray, "example head"]
    skipped: Mapping[str, int]

    @property
    def rows(self) -> tuple[PlausibilityRow, ...]:
        """Every explainer, then the best layer and the best head by these labels."""
        if not self.examples:
            return ()
        heads_a_layer = self.heads.shape[1] // self.layers.shape[1]
        layer, head = int(self.layers.mean(0).argmax()), int(self.heads.mean(0).argmax())
        return (
            *(_row(id, values) for id, values in self.methods.items()),
            _row(LAYER, self.layers[:, layer], (layer,)),
            _row(HEAD, self.heads[:, head], divmod(head, heads_a_layer)),
        )

    def contrast(self, active: Bool[np.ndarray, "head"]) -> HeadContrast | None:
        """Active heads against the others; None where all are active, or none, or nothing could be judged."""
        if not self.examples or active.all() or not active.any():
            return None
        on, off = self.heads[:, active].mean(1), self.heads[:, ~active].mean(1)
        count, means = int(active.sum()), (float(on.mean()), float(off.mean()))
        return HeadContrast(count, len(active) - count, *means, interval(on - off))


@dataclass(frozen=True, eq=False)
class Plausibility:
    """`shape`: layers and heads a layer. `exact`: the marks follow from how the examples were made; else people's."""

    sample: EvaluationSample
    coefficients: HeadCoefficients | None
    shape: tuple[int, int]
    exact: bool
    sides: tuple[PlausibilitySide, ...]

    def side(self, name: str = BOTH) -> PlausibilitySide:
        """The whole, or one text of a pair. Errors: the data set has no such side."""
        for one in self.sides:
            if one.name == name:
                return one
        raise ExegesisError(f"side: {name!r} is none of {self.sample.dataset}.")

    @property
    def contrast(self) -> HeadContrast | None:
        """Active against inactive heads, by the learned explainer's weights."""
        return None if self.coefficients is None else self.side().contrast(self.coefficients.weights > 0)


def part_names(coefficients: HeadCoefficients | None) -> tuple[str, ...]:
    """The parts that are measured and cached separately, the fast ones first."""
    return (HEADS, *([SMAT] if coefficients is not None else []), *GRADIENTS)


def plausibility(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, cancel: CancelToken | None = None
) -> Plausibility:
    """Plausibility of all explainers, from the store or measured now. Errors: those of the data set and teacher."""
    with cancellable(cancel):
        parts = {part: measure_part(sample, coefficients, part) for part in part_names(coefficients)}
    meta, _ = parts[HEADS]
    shape = head_shape(catalog.config(catalog.locate(sample.teacher)))
    sides = tuple(_side(one, parts) for one in meta["sides"])
    return Plausibility(sample, coefficients, shape, bool(meta["exact"]), sides)


def part_key(sample: EvaluationSample, coefficients: HeadCoefficients | None, part: str) -> str:
    """The cache key of a part."""
    own: dict[str, Any] = {"kind": "scaffold plausibility", "version": VERSION, "part": part}
    if part == SMAT and coefficients is not None:
        own["learned"] = coefficients.as_key()
    if part in GRADIENTS:
        own["method"] = [explainer(part, sample.kind).version, STEPS if "integrated" in part else 0]
    return key_for(own | sample.as_key)


def measure_part(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, part: str, cancel: CancelToken | None = None
) -> tuple[Meta, Arrays]:
    """One part as plain values and arrays, from the store, or measured now and stored."""
    with cancellable(cancel):
        key = part_key(sample, coefficients, part)
        entry = result_store().get(key)
        if entry is None:
            check_cancelled()
            entry = measurement.measure_plausibility(sample, coefficients, part)
            result_store().put(key, *entry)
        return entry


def _side(meta: Mapping[str, Any], parts: Mapping[str, tuple[Meta, Arrays]]) -> PlausibilitySide:
    name = str(meta["name"])
    _, heads = parts[HEADS]
    learned = {id: arrays[f"{name}.{SMAT}"] for id, (_, arrays) in parts.items() if id == SMAT}
    methods = {id: parts[id][1][f"{name}.{id}"] for id in GRADIENTS}
    methods |= {id: heads[f"{name}.{id}"] for id in ATTENTION} | learned
    examples = tuple(int(index) for index in meta["examples"])
    return PlausibilitySide(
        name, examples, methods, heads[f"{name}.layers"], heads[f"{name}.heads"], dict(meta["skipped"])
    )


def _row(explainer: str, values: Float[np.ndarray, "example"], at: tuple[int, ...] = ()) -> PlausibilityRow:
    return PlausibilityRow(explainer, float(values.mean()), interval(values), at)
