"""Removal curves, comprehensiveness and sufficiency: the prediction as a map's most important units are removed.

Or as they are restored, the most important first. Inputs with features removed that several maps and metrics need are
evaluated once, batched with others of similar length (`SharedRows`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from cache import key_for
from engine import runtime
from engine.errors import ExegesisError, not_allowed, unknown
from engine.explain import explain_many, key_of
from engine.heads.scaling import scaled_model
from engine.input_kinds import check_removal, check_unit, input_kind, load_classifier
from engine.metrics.catalog import PERCENTS, SHARES
from engine.metrics.ranking import count_of_percent, rank_features
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.params import PROBABILITY
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.removal import coalition_quantities, token_masks
from engine.removal_operators import keyed
from engine.request import Example, HeadScales, Input, Request
from engine.result import Explanation
from engine.store import result_store
from engine.word_units import unit_scores, units

VERSION = 2
"""Increased whenever the values of curves change."""
WAYS = ("deletion", "insertion")
"""Deletion removes the units with the highest scores first; insertion starts without units and restores them first."""
ALIKE = 0.8
"""Minimum length of a row, relative to the longest row of its pass; a shorter row would be mostly padding."""
FEW = 64
"""Number of rows that form a pass whatever their lengths, as each pass has a fixed cost."""


@dataclass
class RowCounts:
    """Numbers of model rows that maps and metrics requested, and that were evaluated for them."""

    requested: int = 0
    evaluated: int = 0


class SharedRows:
    """Rows of many examples; adding the same kept features of an example again reuses the row."""

    def __init__(self, tally: RowCounts | None = None) -> None:
        self._tally = tally or RowCounts()
        self._cases: dict[tuple[bytes, int], int] = {}
        self._examples: list[EncodedInput] = []
        self._targets: list[int] = []
        self._places: dict[tuple[int, bytes], int] = {}
        self._masks: list[tuple[int, Bool[np.ndarray, "feature"]]] = []

    def add(self, encoded: EncodedInput, target: int, keep: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, "row"]:
        """Add rows and return their indices in the result of `values`."""
        self._tally.requested += len(keep)
        case = self._case(encoded, target)
        for row in keep:
            if self._places.setdefault((case, row.tobytes()), len(self._masks)) == len(self._masks):
                self._masks.append((case, row))
        return np.array([self._places[case, row.tobytes()] for row in keep])

    def values(self, model: AnyClassifier, removal: str, report: Report = silent) -> Float[np.ndarray, "row 2"]:
        """Return m and f of every row: the probability and logit of its target; for a regression head, the score twice.

        The caller holds the device.
        """
        values = np.empty((len(self._masks), 2))
        done = 0
        for rows in self._passes(model):
            check_cancelled()
            report(done, len(values), input_kind(model.kind).incomplete)
            values[rows] = self._evaluate(model, rows, removal)
            done += len(rows)
        self._tally.evaluated += done
        report(done, done, "")
        return values

    def _case(self, encoded: EncodedInput, target: int) -> int:
        name = (encoded.key, target)
        if name not in self._cases:
            self._cases[name] = len(self._examples)
            self._examples.append(encoded)
            self._targets.append(target)
        return self._cases[name]

    def _passes(self, model: AnyClassifier) -> Iterator[list[int]]:
        """Yield passes, long rows first: as many rows as the longest allows, and none much shorter than it."""
        order = sorted(range(len(self._masks)), key=lambda row: -self._length(row))
        start = 0
        while start < len(order):
            longest = self._length(order[start])
            fit = order[start : start + runtime.rows_at_once(model, longest)]
            end = next((at for at in range(FEW, len(fit)) if self._length(fit[at]) < ALIKE * longest), len(fit))
            yield fit[:end]
            start += end

    def _length(self, row: int) -> int:
        return len(self._examples[self._masks[row][0]])

    def _evaluate(self, model: AnyClassifier, rows: list[int], removal: str) -> Float[np.ndarray, "row 2"]:
        cases, index = np.unique([self._masks[row][0] for row in rows], return_inverse=True)
        examples = [self._examples[case] for case in cases]
        width = max(len(example) for example in examples)
        masks = [token_masks(examples[i], self._masks[row][1][None], width) for i, row in zip(index, rows, strict=True)]
        targets = [self._targets[case] for case in cases]
        return coalition_quantities(model, examples, targets, index, np.concatenate(masks), removal)


@dataclass(frozen=True)
class RemovalCurve:
    """m(x) along the percentages of units; `removed[i]` units are removed at `percents[i]`.

    Deletion removes that percentage of units, with the highest scores; insertion removes all others. `values`:
    probabilities of the explained class, from 0 to 1. `logits`: its logits f(x), None if they were not requested. For a
    regression head, both are scores.
    """

    method: str
    values: Float[np.ndarray, "percent"]
    removed: tuple[int, ...]
    cached: bool = False
    way: str = WAYS[0]
    percents: tuple[int, ...] = PERCENTS
    logits: Float[np.ndarray, "percent"] | None = None

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.removed) == (wanted := len(self.percents)):
            raise ValueError(f"values, removed: {wanted} each, got {len(self.values)} and {len(self.removed)}")
        if not np.isfinite([self.values, *([] if self.logits is None else [self.logits])]).all():
            raise ExegesisError(
                f"removal curve of {self.method}: the predictions with features removed are not finite numbers. "
                "Use a wider precision or another removal."
            )
        self.values.setflags(write=False)

    @property
    def n(self) -> int:
        """Number of units."""
        return max(self.removed)

    @property
    def moved(self) -> tuple[int, ...]:
        """Number of top-ranked units that are removed (deletion) or present (insertion)."""
        return self.removed if self.way == "deletion" else tuple(self.n - number for number in self.removed)

    @property
    def area(self) -> float:
        """Area under the curve over shares from 0 to 1, by the trapezoidal rule, in the unit of m.

        Low if m drops early in deletion, high if it rises early in insertion.
        """
        return float(np.trapezoid(self.values, np.array(self.percents) / 100))

    def at(self, percent: int, quantity: str = PROBABILITY) -> float:
        """Return m, or the logit f, with `percent` of the units, highest scores first, removed or restored.

        Errors: the logit of a curve without logits.
        """
        values = self.values if quantity == PROBABILITY else self.logits
        if values is None:
            raise ValueError("quantity: this curve has no logits. Compute them with logits=True.")
        return float(values[self.percents.index(percent)])


def removal_curves(
    requests: Sequence[Request],
    removal: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    unit: str | None = None,
    ways: Sequence[str] = WAYS[:1],
    percents: Sequence[int] = PERCENTS,
    tally: RowCounts | None = None,
    logits: bool = False,
) -> list[RemovalCurve]:
    """Return one curve per request, in order, for the first of the `ways`, then for the next.

    Maps are computed or read from the cache, then m is measured at the `percents`, which rise from 0 to 100. Requests
    may differ in method, example and target; those of one model share passes, and a set of units that several curves
    share is measured once. A `unit` is a token or a word, which is removed as a whole and scored by
    `engine.word_units.unit_scores`; in a picture, a patch. The number removed or restored is max(1, round(k n)), 0 at
    0%; the units with the highest scores come first, for unsigned methods too. Ties: `engine.metrics.ranking`.
    `removal` and `unit` default to the first of the input's kind. `tally` counts the rows requested and evaluated,
    without those of cached curves. `logits`: whether curves must have the target's logits too, which come from the same
    passes; curves that were cached without logits are then measured again.

    Sources: Samek et al. (2017), section III (most relevant first); Petsiuk et al. (2018), section 3.3 (deletion and
    insertion); DeYoung et al. (2020), section 5, whose comprehensiveness and sufficiency are means of the drop.
    """
    _check_options(requests, removal, unit, ways)
    check_percents(percents)
    with cancellable(cancel):
        pairs = list(zip(requests, explain_many(requests), strict=True))
        queries = [
            _CurveQuery.of_map(request, explanation, removal, unit, way, tuple(percents), logits)
            for way in ways
            for request, explanation in pairs
        ]
        curves = _load_cached(queries)
        for group in _groups([query for query in queries if query.key not in curves]):
            with runtime.turn(lends=True):
                curves |= _load_cached(group)
                curves |= _measure([query for query in group if query.key not in curves], report, tally)
    return [dataclasses.replace(curves[query.key], method=query.request.method) for query in queries]


def _check_options(requests: Sequence[Request], removal: str | None, unit: str | None, ways: Sequence[str]) -> None:
    for way in ways:
        if way not in WAYS:
            raise unknown("way", way, WAYS)
    for kind in {request.example.kind for request in requests}:
        if removal is not None:
            check_removal(removal, kind)
        if unit is not None:
            check_unit(unit, kind)


def check_percents(percents: Sequence[int]) -> None:
    """Refuse percentages that do not rise from 0 to 100."""
    rising = list(percents) == sorted(set(percents)) and all(type(percent) is int for percent in percents)
    if not rising or not percents or (percents[0], percents[-1]) != (0, 100):
        raise not_allowed("percents", "whole numbers that rise from 0 to 100", list(percents))


@dataclass(frozen=True, eq=False)
class _CurveQuery:
    """A curve to measure: the map that it follows, how units are removed along it, and its cache key."""

    request: Request
    explanation: Explanation
    removal: str
    unit: str
    way: str
    percents: tuple[int, ...]
    logits: bool

    @classmethod
    def of_map(
        cls,
        request: Request,
        explanation: Explanation,
        removal: str | None,
        unit: str | None,
        way: str,
        percents: tuple[int, ...],
        logits: bool,
    ) -> _CurveQuery:
        """Return the query of a map. `removal` and `unit` default to the first of the input's kind."""
        kind = input_kind(request.example.kind)
        # By its index, so that "the predicted class" and its name share a curve.
        request = dataclasses.replace(request, target=explanation.provenance.target)
        removal = kind.removals[0] if removal is None else removal
        unit = kind.units[0] if unit is None else unit
        return cls(request, explanation, removal, unit, way, percents, logits)

    @cached_property
    def key(self) -> str:
        parts = {
            "kind": "removal_curve",
            "version": VERSION,
            "explanation": key_of(self.request),
            "removal": keyed(self.removal),
            "unit": self.unit,
            "percents": list(self.percents),
        }
        # The key omits deletion, so that results from before there was another way are still found.
        return key_for(parts if self.way == WAYS[0] else {**parts, "way": self.way})

    def add_rows(self, rows: SharedRows, encoded: EncodedInput) -> tuple[tuple[int, ...], Int[np.ndarray, "percent"]]:
        """Add the rows of the curve; return the numbers of units removed along it, and the indices of the rows."""
        scores, owner = ranked_units(self.explanation, self.request.example, self.unit)
        order = rank_features(scores, (self.request.seed, *encoded.ids.tolist()))
        fewer = masks_without_top(order, [count_of_percent(percent, len(order)) for percent in self.percents])
        keep = fewer if self.way == WAYS[0] else ~fewer
        removed = tuple((~keep).sum(axis=1).tolist())
        return removed, rows.add(encoded, self.explanation.provenance.target, keep[:, owner])

    def curve(self, numbers: Mapping[str, np.ndarray], removed: Sequence[int], cached: bool = False) -> RemovalCurve:
        return RemovalCurve(
            method=self.request.method,
            values=numbers["values"],
            removed=tuple(removed),
            cached=cached,
            way=self.way,
            percents=self.percents,
            logits=numbers.get("logits"),
        )


def _groups(queries: Sequence[_CurveQuery]) -> list[list[_CurveQuery]]:
    """Group queries by model, precision and head scales; every key occurs once."""
    groups: dict[tuple[str, str, HeadScales], dict[str, _CurveQuery]] = {}
    for query in queries:
        request = query.request
        groups.setdefault((request.model, request.dtype, request.heads), {})[query.key] = query
    return [list(group.values()) for group in groups.values()]


def _load_cached(queries: Sequence[_CurveQuery]) -> dict[str, RemovalCurve]:
    store, curves = result_store(), {}
    for query in queries:
        entry = store.get(query.key)
        if entry is not None:
            meta, arrays = entry
            if "logits" in arrays or not query.logits:
                numbers = {name: np.array(array) for name, array in arrays.items()}
                curves[query.key] = query.curve(numbers, meta["removed"], cached=True)
    return curves


def _measure(queries: Sequence[_CurveQuery], report: Report, tally: RowCounts | None) -> dict[str, RemovalCurve]:
    """Measure curves of one model and removal operator. The caller holds the device."""
    if not queries:
        return {}
    request = queries[0].request
    model = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
    rows = SharedRows(tally)
    encoded = {example: model.encode(example) for example in {query.request.example for query in queries}}
    places = [query.add_rows(rows, encoded[query.request.example]) for query in queries]
    with scaled_model(model, request.heads) as running:
        values = rows.values(running, queries[0].removal, report)
    curves = {}
    for query, (removed, place) in zip(queries, places, strict=True):
        numbers = {"values": values[place, 0], "logits": values[place, 1]}
        curves[query.key] = query.curve(numbers, removed)
        result_store().put(query.key, {"removed": list(removed)}, numbers)
    return curves


def ranked_units(
    explanation: Explanation, example: Input, unit: str
) -> tuple[Float[np.ndarray, "unit"], Int[np.ndarray, "feature"]]:
    """Return the scores of the units that can be ranked, and the index of each feature's unit."""
    if isinstance(example, Example):
        return unit_scores(explanation, example, unit), unit_of_feature(explanation, example, unit)
    return explanation.scores[explanation.features], np.arange(len(explanation.features))


def unit_of_feature(explanation: Explanation, example: Example, unit: str) -> Int[np.ndarray, "feature"]:
    """Return the index of each feature's unit, from 0 in reading order."""
    features = explanation.features
    if unit == "token":
        return np.arange(len(features))
    place = {int(position): feature for feature, position in enumerate(features)}
    owner = np.zeros(len(features), dtype=int)
    words = [word for word in units(explanation.tokens, explanation.scores, example, unit) if not word.special]
    for number, word in enumerate(words):
        owner[[place[position] for position in word.tokens]] = number
    return owner


def masks_without_top(order: Int[np.ndarray, "unit"], removed: Sequence[int]) -> Bool[np.ndarray, "percent unit"]:
    """Return masks of the units that remain when the first `removed[i]` of the order are removed."""
    keep = np.ones((len(removed), len(order)), dtype=bool)
    for row, count in enumerate(removed):
        keep[row, order[:count]] = False
    return keep


@dataclass(frozen=True)
class Faithfulness:
    """The removal curves of one map. `deletion`: top units are removed; `insertion`: all but the top units are removed.

    Both metrics take a `quantity`: "probability" (m, as published) or "logit" (f instead of m). If m is near 1, it
    hardly drops while f drops much. For a regression head, both are the score.
    """

    deletion: RemovalCurve
    insertion: RemovalCurve

    def comprehensiveness(self, shares: Sequence[int] = SHARES, quantity: str = PROBABILITY) -> float:
        """Return the mean over k of `m(x) - m(RemoveTop_k)`, in the unit of the quantity; high is good."""
        whole = self.deletion.at(0, quantity)
        return float(np.mean([whole - self.deletion.at(share, quantity) for share in shares]))

    def sufficiency(self, shares: Sequence[int] = SHARES, quantity: str = PROBABILITY) -> float:
        """Return the mean over k of `m(x) - m(KeepTop_k)`, in the unit of the quantity; low is good."""
        whole = self.insertion.at(100, quantity)
        return float(np.mean([whole - self.insertion.at(share, quantity) for share in shares]))


def faithfulness(
    requests: Sequence[Request],
    percents: Sequence[int],
    removal: str | None = None,
    unit: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    tally: RowCounts | None = None,
    logits: bool = False,
) -> list[Faithfulness]:
    """Return the curves of each request for comprehensiveness and sufficiency, in order. Curves share passes.

    `logits`: whether both metrics are needed for the logit too. Other arguments: as in `removal_curves`.

    Source: DeYoung et al. (2020), section 5; the thesis, definitions 2.1 and 2.2.
    """
    curves = removal_curves(requests, removal, report, cancel, unit, WAYS, percents, tally, logits)
    deletions, insertions = curves[: len(requests)], curves[len(requests) :]
    return [Faithfulness(*pair) for pair in zip(deletions, insertions, strict=True)]
