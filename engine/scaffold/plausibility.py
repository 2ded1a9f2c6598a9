"""Plausibility: how well explanations find what people marked, or what is known to matter (SMaT, tables 2 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine.errors import ExegesisError
from engine.metrics.results import Interval, interval
from engine.models import catalog
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.registry import explainer
from engine.scaffold.asked import Asked, Learned
from engine.scaffold.marked import BOTH
from engine.scaffold.plan import ATTENTION, GRADIENTS, SMAT, shape_of
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers come out otherwise."""
STEPS = 50
"""Of integrated gradients here (appendix A)."""
HEADS = "heads"
"""The part that measures all heads, all layers and the static attention explainers, from one pass."""
LAYER, HEAD = "best_layer", "best_head"
"""Chosen by the same labels on which they are then measured, as the paper does."""


@dataclass(frozen=True)
class Row:
    """One explainer's mean AUC over examples, from 0 to 1, 0.5 by chance, with a 95 % bootstrap interval over them.

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
class Contrast:
    """The mean AUC of active (λ > 0) and of the other heads, and the difference with a 95 % interval over examples."""

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
            return "One example cannot tell whether active heads are more plausible."
        low, high = self.interval
        if low > 0:
            return "Active heads are more plausible than inactive ones."
        return "Active heads are less plausible than inactive ones." if high < 0 else "The difference may be chance."


@dataclass(frozen=True, eq=False)
class Side:
    """What was measured on both texts or on one of a pair. `examples`: the places of those that could be judged.

    `methods`: by explainer. `skipped`: how many of the examples could not be judged, by the reason.
    """

    name: str
    examples: tuple[int, ...]
    methods: Mapping[str, Float[np.ndarray, "example"]]
    layers: Float[np.ndarray, "example layer"]
    heads: Float[np.ndarray, "example head"]
    skipped: Mapping[str, int]

    @property
    def rows(self) -> tuple[Row, ...]:
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

    def contrast(self, active: Bool[np.ndarray, "head"]) -> Contrast | None:
        """Active heads against the others; None where all are active, or none, or nothing could be judged."""
        if not self.examples or active.all() or not active.any():
            return None
        mine, others = self.heads[:, active].mean(1), self.heads[:, ~active].mean(1)
        count = int(active.sum())
        means = float(mine.mean()), float(others.mean())
        return Contrast(count, len(active) - count, *means, interval(mine - others))


@dataclass(frozen=True, eq=False)
class Plausibility:
    """`shape`: layers and heads a layer. `exact`: the marks follow from how the examples were made; else people's."""

    asked: Asked
    learned: Learned | None
    shape: tuple[int, int]
    exact: bool
    sides: tuple[Side, ...]

    def side(self, name: str = BOTH) -> Side:
        """The whole, or one text of a pair. Errors: the data set has no such side."""
        for one in self.sides:
            if one.name == name:
                return one
        raise ExegesisError(f"side: {name!r} is none of {self.asked.dataset}.")

    @property
    def contrast(self) -> Contrast | None:
        """Active against inactive heads, by the learned explainer's weights."""
        return None if self.learned is None else self.side().contrast(self.learned.weights > 0)


def parts_of(learned: Learned | None) -> tuple[str, ...]:
    """What is measured one by one, the quick ones first; each is kept by itself."""
    return (HEADS, *([SMAT] if learned is not None else []), *GRADIENTS)


def plausibility(asked: Asked, learned: Learned | None, cancel: CancelToken | None = None) -> Plausibility:
    """All parts, from the store or measured now. Errors: those of the data set and the teacher."""
    with cancellable(cancel):
        found = {part: measured(asked, learned, part) for part in parts_of(learned)}
    sides = found[HEADS][0]["sides"]
    shape = shape_of(catalog.config(catalog.locate(asked.teacher)))
    exact = bool(found[HEADS][0]["exact"])
    return Plausibility(asked, learned, shape, exact, tuple(_side(one, found) for one in sides))


def part_key(asked: Asked, learned: Learned | None, part: str) -> str:
    """The cache key of a part."""
    given: dict[str, Any] = {"kind": "scaffold plausibility", "version": VERSION, "part": part}
    if part == SMAT and learned is not None:
        given["learned"] = learned.as_key()
    if part in GRADIENTS:
        given["method"] = [explainer(part, asked.kind).version, STEPS if "integrated" in part else 0]
    return key_for(given | asked.as_key)


def measured(
    asked: Asked, learned: Learned | None, part: str, cancel: CancelToken | None = None
) -> tuple[Meta, Arrays]:
    """One part as plain values and arrays, from the store or measured now and kept."""
    with cancellable(cancel):
        key = part_key(asked, learned, part)
        entry = result_store().get(key)
        if entry is None:
            check_cancelled()
            # Here and not above: it imports what runs models.
            from engine.scaffold.measuring import measure

            entry = measure(asked, learned, part)
            result_store().put(key, *entry)
        return entry


def best_of(rows: Sequence[Row]) -> Row | None:
    """The unsupervised explainer with the highest mean; None where nothing could be judged."""
    return max((row for row in rows if not row.supervised), key=lambda row: row.mean, default=None)


def _side(meta: Mapping[str, Any], found: Mapping[str, tuple[Meta, Arrays]]) -> Side:
    name = str(meta["name"])
    _, heads = found[HEADS]
    own = {id: arrays[f"{name}.{SMAT}"] for id, (_, arrays) in found.items() if id == SMAT}
    methods = {id: found[id][1][f"{name}.{id}"] for id in GRADIENTS}
    methods |= {id: heads[f"{name}.{id}"] for id in ATTENTION} | own
    examples = tuple(int(place) for place in meta["examples"])
    return Side(name, examples, methods, heads[f"{name}.layers"], heads[f"{name}.heads"], dict(meta["skipped"]))


def _row(explainer: str, values: Float[np.ndarray, "example"], at: tuple[int, ...] = ()) -> Row:
    return Row(explainer, float(values.mean()), interval(values), at)
