"""Removal curves: how the prediction falls when the tokens that a map calls important are taken away, best first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from cache import key_for
from engine import runtime
from engine.errors import ExegesisError, unknown
from engine.explain import explain_many, key_of
from engine.metrics.ranking import number_of, ranking
from engine.models.encoding import Encoded
from engine.models.load import load_model
from engine.models.text import TextClassifier
from engine.operators import OPERATORS
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.removal import coalition_values, token_masks
from engine.request import Example, Request
from engine.result import Explanation
from engine.store import result_store
from engine.words import UNITS, unit_scores, units

VERSION = 2
"""Raised whenever the numbers change."""
PERCENTS = tuple(range(0, 101, 10))


@dataclass(frozen=True)
class RemovalCurve:
    """m(x) after the `removed[i]` units with the highest scores were taken away, at `PERCENTS[i]` of the units.

    `values` are probabilities of the explained class, from 0 to 1; for a regression head they are scores.
    """

    method: str
    values: Float[np.ndarray, "percent"]
    removed: tuple[int, ...]
    cached: bool = False

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.removed) == len(PERCENTS):
            raise ValueError(f"values, removed: {len(PERCENTS)} each, got {len(self.values)} and {len(self.removed)}")
        if not np.isfinite(self.values).all():
            raise ExegesisError(
                f"removal curve of {self.method}: the model's answers to shortened texts are not finite numbers. "
                "Use a wider precision or another removal."
            )
        self.values.setflags(write=False)

    @property
    def area(self) -> float:
        """Area under the curve over shares from 0 to 1 by trapezoids, in the unit of m: low where m falls at once."""
        return float(np.mean((self.values[1:] + self.values[:-1]) / 2))


def removal_curves(
    requests: Sequence[Request],
    removal: str = "mask",
    report: Report = silent,
    cancel: CancelToken | None = None,
    unit: str = "token",
) -> list[RemovalCurve]:
    """A curve a request, in the order asked: its map is made (or found), then m is measured at 0, 10, ... 100 %.

    Requests may differ in method, example and target; those of one model share passes, and a set of tokens that
    several maps name is measured once. A `unit` is a token or a word, which goes as a whole and whose score is
    that of `engine.words.unit_scores`. The number removed is max(1, round(k n)); the most important for the target
    go first, which is the highest score, for unsigned methods too. Ties: `engine.metrics.ranking`.

    Sources: Samek et al. (2017), section III (most relevant first); DeYoung et al. (2020), section 5, whose
    comprehensiveness is the mean height of the fall.
    """
    if removal not in OPERATORS:
        raise unknown("removal", removal, OPERATORS)
    if unit not in UNITS:
        raise unknown("unit", unit, UNITS)
    with cancellable(cancel):
        maps = explain_many(requests)
        asked = [_Asked(request, made, removal, unit) for request, made in zip(requests, maps, strict=True)]
        answers = _found(asked)
        for group in _groups([a for a in asked if a.key not in answers]):
            with runtime.turn():
                answers |= _found(group)
                answers |= _measure([a for a in group if a.key not in answers], removal, report)
    return [dataclasses.replace(answers[a.key], method=a.request.method) for a in asked]


class _Asked:
    """A curve that is asked for: the map that it follows and its cache key."""

    def __init__(self, request: Request, made: Explanation, removal: str, unit: str) -> None:
        # By its index, so that "the predicted class" and its name are one curve.
        self.request = dataclasses.replace(request, target=made.provenance.target)
        self.made = made
        self.unit = unit
        self.key = key_for(
            {
                "kind": "removal_curve",
                "version": VERSION,
                "explanation": key_of(self.request),
                "removal": removal,
                "unit": unit,
                "percents": list(PERCENTS),
            }
        )


def _groups(asked: Sequence[_Asked]) -> list[list[_Asked]]:
    groups: dict[tuple[str, str], dict[str, _Asked]] = {}
    for one in asked:
        groups.setdefault((one.request.model, one.request.dtype), {})[one.key] = one
    return [list(group.values()) for group in groups.values()]


def _found(asked: Sequence[_Asked]) -> dict[str, RemovalCurve]:
    store, found = result_store(), {}
    for one in asked:
        entry = store.get(one.key)
        if entry is not None:
            meta, arrays = entry
            found[one.key] = RemovalCurve(
                one.request.method, np.array(arrays["values"]), tuple(meta["removed"]), cached=True
            )
    return found


def _measure(asked: Sequence[_Asked], removal: str, report: Report) -> dict[str, RemovalCurve]:
    """Curves of one model. The caller holds the turn."""
    if not asked:
        return {}
    model = load_model(asked[0].request.model, asked[0].request.dtype, runtime.device())
    rows = _Rows()
    plans = [rows.add(one, model.encode(one.request.example)) for one in asked]
    values = rows.values(model, removal, report)
    made = {}
    for one, (removed, places) in zip(asked, plans, strict=True):
        curve = RemovalCurve(one.request.method, values[places], removed)
        result_store().put(one.key, {"removed": list(removed)}, {"values": curve.values})
        made[one.key] = curve
    return made


class _Rows:
    """The shortened texts of many curves, each once."""

    def __init__(self) -> None:
        self.cases: dict[tuple[bytes, bytes, int], int] = {}
        self.examples: list[Encoded] = []
        self.targets: list[int] = []
        self.places: dict[tuple[int, bytes], int] = {}
        self.kept: list[tuple[int, np.ndarray]] = []

    def add(self, asked: _Asked, encoded: Encoded) -> tuple[tuple[int, ...], Int[np.ndarray, "percent"]]:
        """The numbers of units removed along the curve, and the rows that hold its values."""
        case = self._case(encoded, asked.made.provenance.target)
        owner = unit_of_feature(asked.made, asked.request.example, asked.unit)
        scores = unit_scores(asked.made, asked.request.example, asked.unit)
        order = ranking(scores, (asked.request.seed, *encoded.ids.tolist()))
        removed = tuple(number_of(percent, len(order)) for percent in PERCENTS)
        return removed, np.array([self._row(case, kept[owner]) for kept in without_top(order, removed)])

    def _case(self, encoded: Encoded, target: int) -> int:
        name = (encoded.ids.tobytes(), encoded.types.tobytes(), target)
        if name not in self.cases:
            self.cases[name] = len(self.examples)
            self.examples.append(encoded)
            self.targets.append(target)
        return self.cases[name]

    def _row(self, case: int, kept: Bool[np.ndarray, "feature"]) -> int:
        name = (case, kept.tobytes())
        if name not in self.places:
            self.places[name] = len(self.kept)
            self.kept.append((case, kept))
        return self.places[name]

    def values(self, model: TextClassifier, removal: str, report: Report) -> Float[np.ndarray, "row"]:
        """m of every row, the short texts first, so that little of a pass is padding."""
        order = sorted(range(len(self.kept)), key=lambda row: len(self.examples[self.kept[row][0]]))
        width = max(len(example) for example in self.examples)
        size, values = runtime.rows_at_once(model, width), np.empty(len(order))
        for start in range(0, len(order), size):
            check_cancelled()
            report(start, len(order), "shortened texts")
            rows = order[start : start + size]
            index = np.array([self.kept[row][0] for row in rows])
            keep = np.concatenate(
                [token_masks(self.examples[c], k[None], width) for c, k in map(self.kept.__getitem__, rows)]
            )
            values[rows] = coalition_values(model, self.examples, self.targets, index, keep, removal)
        report(len(order), len(order), "")
        return values


def unit_of_feature(made: Explanation, example: Example, unit: str) -> Int[np.ndarray, "feature"]:
    """The number of the unit that each feature belongs to, from 0 in reading order."""
    features = made.features
    if unit == "token":
        return np.arange(len(features))
    place = {int(position): feature for feature, position in enumerate(features)}
    owner = np.zeros(len(features), dtype=int)
    words = [word for word in units(made.tokens, made.scores, example, unit) if not word.special]
    for number, word in enumerate(words):
        owner[[place[position] for position in word.tokens]] = number
    return owner


def without_top(order: Int[np.ndarray, "unit"], removed: Sequence[int]) -> Bool[np.ndarray, "percent unit"]:
    """Which units are kept when the first `removed[i]` of the order are taken away."""
    kept = np.ones((len(removed), len(order)), dtype=bool)
    for row, number in enumerate(removed):
        kept[row, order[:number]] = False
    return kept
