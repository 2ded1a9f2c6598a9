"""Removal curves: what the prediction does as the units that a map calls important go, or come back, best first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from cache import key_for
from engine import runtime
from engine.classifiers import AnyClassifier, Coded, load_classifier
from engine.errors import ExegesisError, unknown
from engine.explain import explain_many, key_of
from engine.heads.running import under
from engine.heads.scales import HeadScales
from engine.metrics.ranking import number_of, ranking
from engine.operators import check_operator, operators_of
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.removal import coalition_values, token_masks
from engine.request import Example, Picture, Request
from engine.result import Explanation
from engine.store import result_store
from engine.words import UNITS, unit_scores, units

VERSION = 2
"""Raised whenever the numbers change."""
PERCENTS = tuple(range(0, 101, 10))
WAYS = ("deletion", "insertion")
"""From the whole input, the units with the highest scores go first; or from nothing, they come back first."""
UNITS_OF = {"text": UNITS, "image": ("patch",)}
COUNTED = {"text": "shortened texts", "image": "pictures with holes"}


@dataclass(frozen=True)
class RemovalCurve:
    """m(x) along the shares of the units, `removed[i]` of them being removed at `PERCENTS[i]`.

    Deletion: so many of those with the highest scores are removed. Insertion: all but those are. `values` are
    probabilities of the explained class, from 0 to 1; for a regression head they are scores.
    """

    method: str
    values: Float[np.ndarray, "percent"]
    removed: tuple[int, ...]
    cached: bool = False
    way: str = WAYS[0]

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.removed) == len(PERCENTS):
            raise ValueError(f"values, removed: {len(PERCENTS)} each, got {len(self.values)} and {len(self.removed)}")
        if not np.isfinite(self.values).all():
            raise ExegesisError(
                f"removal curve of {self.method}: the model's answers with features removed are not finite numbers. "
                "Use a wider precision or another removal."
            )
        self.values.setflags(write=False)

    @property
    def n(self) -> int:
        """How many units there are."""
        return max(self.removed)

    @property
    def moved(self) -> tuple[int, ...]:
        """How many of those with the highest scores are removed; of insertion, how many are back."""
        return self.removed if self.way == "deletion" else tuple(self.n - number for number in self.removed)

    @property
    def area(self) -> float:
        """Area under the curve over shares from 0 to 1 by trapezoids, in the unit of m.

        Low where m falls at once by deletion, high where it rises at once by insertion.
        """
        return float(np.mean((self.values[1:] + self.values[:-1]) / 2))


def removal_curves(
    requests: Sequence[Request],
    removal: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    unit: str | None = None,
    ways: Sequence[str] = WAYS[:1],
) -> list[RemovalCurve]:
    """A curve a request, in the order asked, of the first way, then of the next.

    Each map is made (or found), then m is measured at 0, 10, ... 100 %. Requests may differ in method, example and
    target; those of one model share passes, and a set of units that several curves name is measured once. A `unit`
    is a token, or a word, which goes as a whole and whose score is that of `engine.words.unit_scores`; of a picture
    a patch. The number removed or brought back is max(1, round(k n)); the most important for the target go first,
    which is the highest score, for unsigned methods too. Ties: `engine.metrics.ranking`. Without `removal` and
    `unit`, the first of the input's kind.

    Sources: Samek et al. (2017), section III (most relevant first); Petsiuk et al. (2018), section 3.3 (deletion and
    insertion); DeYoung et al. (2020), section 5, whose comprehensiveness and sufficiency are mean heights of the fall.
    """
    _check(requests, removal, unit, ways)
    with cancellable(cancel):
        pairs = list(zip(requests, explain_many(requests), strict=True))
        asked = [_Asked(request, made, removal, unit, way) for way in ways for request, made in pairs]
        answers = _found(asked)
        for group in _groups([a for a in asked if a.key not in answers]):
            with runtime.turn():
                answers |= _found(group)
                answers |= _measure([a for a in group if a.key not in answers], report)
    return [dataclasses.replace(answers[a.key], method=a.request.method) for a in asked]


def _check(requests: Sequence[Request], removal: str | None, unit: str | None, ways: Sequence[str]) -> None:
    for way in ways:
        if way not in WAYS:
            raise unknown("way", way, WAYS)
    for kind in {request.example.kind for request in requests}:
        if removal is not None:
            check_operator(removal, kind)
        if unit is not None and unit not in UNITS_OF[kind]:
            raise unknown("unit", unit, UNITS_OF[kind])


class _Asked:
    """A curve that is asked for: the map that it follows and its cache key."""

    def __init__(self, request: Request, made: Explanation, removal: str | None, unit: str | None, way: str) -> None:
        kind = request.example.kind
        # By its index, so that "the predicted class" and its name are one curve.
        self.request = dataclasses.replace(request, target=made.provenance.target)
        self.made, self.way = made, way
        self.removal = operators_of(kind)[0] if removal is None else removal
        self.unit = UNITS_OF[kind][0] if unit is None else unit
        named = {
            "kind": "removal_curve",
            "version": VERSION,
            "explanation": key_of(self.request),
            "removal": self.removal,
            "unit": self.unit,
            "percents": list(PERCENTS),
        }
        # Deletion goes without saying, so that what was kept before there was another way is found.
        self.key = key_for(named if way == WAYS[0] else {**named, "way": way})


def _groups(asked: Sequence[_Asked]) -> list[list[_Asked]]:
    groups: dict[tuple[str, str, HeadScales], dict[str, _Asked]] = {}
    for one in asked:
        groups.setdefault((one.request.model, one.request.dtype, one.request.heads), {})[one.key] = one
    return [list(group.values()) for group in groups.values()]


def _found(asked: Sequence[_Asked]) -> dict[str, RemovalCurve]:
    store, found = result_store(), {}
    for one in asked:
        entry = store.get(one.key)
        if entry is not None:
            meta, arrays = entry
            found[one.key] = RemovalCurve(
                one.request.method, np.array(arrays["values"]), tuple(meta["removed"]), cached=True, way=one.way
            )
    return found


def _measure(asked: Sequence[_Asked], report: Report) -> dict[str, RemovalCurve]:
    """Curves of one model. The caller holds the turn."""
    if not asked:
        return {}
    request = asked[0].request
    model = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
    rows = _Rows()
    plans = [rows.add(one, model.encode(one.request.example)) for one in asked]
    with under(model, request.heads) as running:
        values = rows.values(running, asked[0].removal, report)
    made = {}
    for one, (removed, places) in zip(asked, plans, strict=True):
        curve = RemovalCurve(one.request.method, values[places], removed, way=one.way)
        result_store().put(one.key, {"removed": list(removed)}, {"values": curve.values})
        made[one.key] = curve
    return made


class _Rows:
    """The shortened inputs of many curves, each once."""

    def __init__(self) -> None:
        self.cases: dict[tuple[bytes, int], int] = {}
        self.examples: list[Coded] = []
        self.targets: list[int] = []
        self.places: dict[tuple[int, bytes], int] = {}
        self.kept: list[tuple[int, np.ndarray]] = []

    def add(self, asked: _Asked, encoded: Coded) -> tuple[tuple[int, ...], Int[np.ndarray, "percent"]]:
        """The numbers of units removed along the curve, and the rows that hold its values."""
        case = self._case(encoded, asked.made.provenance.target)
        scores, owner = _units(asked)
        order = ranking(scores, (asked.request.seed, *encoded.ids.tolist()))
        fewer = without_top(order, [number_of(percent, len(order)) for percent in PERCENTS])
        kept = fewer if asked.way == "deletion" else ~fewer
        removed = tuple((~kept).sum(axis=1).tolist())
        return removed, np.array([self._row(case, row[owner]) for row in kept])

    def _case(self, encoded: Coded, target: int) -> int:
        name = (encoded.key, target)
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

    def values(self, model: AnyClassifier, removal: str, report: Report) -> Float[np.ndarray, "row"]:
        """m of every row, the short texts first, so that little of a pass is padding."""
        order = sorted(range(len(self.kept)), key=lambda row: len(self.examples[self.kept[row][0]]))
        width = max(len(example) for example in self.examples)
        size, values = runtime.rows_at_once(model, width), np.empty(len(order))
        for start in range(0, len(order), size):
            check_cancelled()
            report(start, len(order), COUNTED[model.kind])
            rows = order[start : start + size]
            index = np.array([self.kept[row][0] for row in rows])
            keep = np.concatenate(
                [token_masks(self.examples[c], k[None], width) for c, k in map(self.kept.__getitem__, rows)]
            )
            values[rows] = coalition_values(model, self.examples, self.targets, index, keep, removal)
        report(len(order), len(order), "")
        return values


def _units(asked: _Asked) -> tuple[Float[np.ndarray, "unit"], Int[np.ndarray, "feature"]]:
    """The scores of the units, and the number of the unit that each feature belongs to."""
    made, example = asked.made, asked.request.example
    if isinstance(example, Picture):
        return made.scores[made.features], np.arange(len(made.features))
    return unit_scores(made, example, asked.unit), unit_of_feature(made, example, asked.unit)


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
