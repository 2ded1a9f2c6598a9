"""Removal curves: what the prediction does as the units that a map calls important go, or come back, best first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from cache import key_for
from engine import runtime
from engine.classifiers import Coded, load_classifier
from engine.errors import ExegesisError, not_allowed, unknown
from engine.explain import explain_many, key_of
from engine.heads.running import under
from engine.heads.scales import HeadScales
from engine.metrics.ranking import number_of, ranking
from engine.metrics.shared_rows import SharedRows, Tally
from engine.operators import check_operator, keyed, operators_of
from engine.params import PROBABILITY
from engine.progress import CancelToken, Report, cancellable, silent
from engine.request import Example, Input, Picture, Request
from engine.result import Explanation
from engine.store import result_store
from engine.words import UNITS, unit_scores, units

VERSION = 2
"""Raised whenever the numbers change."""
PERCENTS = tuple(range(0, 101, 10))
WAYS = ("deletion", "insertion")
"""From the whole input, the units with the highest scores go first; or from nothing, they come back first."""
UNITS_OF = {"text": UNITS, "image": ("patch",)}


@dataclass(frozen=True)
class RemovalCurve:
    """m(x) along the shares of the units, `removed[i]` of them being removed at `percents[i]`.

    Deletion: so many of those with the highest scores are removed. Insertion: all but those are. `values` are
    probabilities of the explained class, from 0 to 1, and `logits` its logits f(x), None where they were not asked for;
    for a regression head both are scores.
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
        return float(np.trapezoid(self.values, np.array(self.percents) / 100))

    def at(self, percent: int, quantity: str = PROBABILITY) -> float:
        """m, or the logit f, where that share of the units with the highest scores is removed, or is back.

        Errors: a logit of a curve that has none.
        """
        found = self.values if quantity == PROBABILITY else self.logits
        if found is None:
            raise ValueError("quantity: this curve has no logits. Ask for them with logits=True.")
        return float(found[self.percents.index(percent)])


def removal_curves(
    requests: Sequence[Request],
    removal: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    unit: str | None = None,
    ways: Sequence[str] = WAYS[:1],
    percents: Sequence[int] = PERCENTS,
    tally: Tally | None = None,
    logits: bool = False,
) -> list[RemovalCurve]:
    """A curve a request, in the order asked, of the first way, then of the next.

    Each map is made (or found), then m is measured at the `percents`, which rise from 0 to 100. Requests may differ
    in method, example and target; those of one model share passes, and a set of units that several curves name is
    measured once. A `unit` is a token, or a word, which goes as a whole and whose score is that of
    `engine.words.unit_scores`; of a picture a patch. The number removed or brought back is max(1, round(k n)); the
    most important for the target go first, which is the highest score, for unsigned methods too. Ties:
    `engine.metrics.ranking`. Without `removal` and `unit`, the first of the input's kind. `tally` counts the rows that
    were asked for and run; what is found in the cache is neither. `logits`: whether the curves must have those of the
    target too, which come from the same passes; curves that were kept without them are then measured again.

    Sources: Samek et al. (2017), section III (most relevant first); Petsiuk et al. (2018), section 3.3 (deletion and
    insertion); DeYoung et al. (2020), section 5, whose comprehensiveness and sufficiency are mean heights of the fall.
    """
    _check(requests, removal, unit, ways)
    check_percents(percents)
    with cancellable(cancel):
        pairs = list(zip(requests, explain_many(requests), strict=True))
        hows = [_How(removal, unit, way, tuple(percents), logits) for way in ways]
        asked = [_Asked(request, made, how) for how in hows for request, made in pairs]
        answers = _found(asked)
        for group in _groups([a for a in asked if a.key not in answers]):
            with runtime.turn(lends=True):
                answers |= _found(group)
                answers |= _measure([a for a in group if a.key not in answers], report, tally)
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


def check_percents(percents: Sequence[int]) -> None:
    """Refuses shares that do not lead from nothing to all."""
    rising = list(percents) == sorted(set(percents)) and all(type(percent) is int for percent in percents)
    if not rising or not percents or (percents[0], percents[-1]) != (0, 100):
        raise not_allowed("percents", "whole numbers that rise from 0 to 100", list(percents))


@dataclass(frozen=True)
class _How:
    """How units are taken away along a curve; None stands for the first of the input's kind."""

    removal: str | None
    unit: str | None
    way: str
    percents: tuple[int, ...]
    logits: bool


class _Asked:
    """A curve that is asked for: the map that it follows and its cache key."""

    def __init__(self, request: Request, made: Explanation, how: _How) -> None:
        kind = request.example.kind
        # By its index, so that "the predicted class" and its name are one curve.
        self.request = dataclasses.replace(request, target=made.provenance.target)
        self.made, self.way, self.percents, self.logits = made, how.way, how.percents, how.logits
        self.removal = operators_of(kind)[0] if how.removal is None else how.removal
        self.unit = UNITS_OF[kind][0] if how.unit is None else how.unit
        named = {
            "kind": "removal_curve",
            "version": VERSION,
            "explanation": key_of(self.request),
            "removal": keyed(self.removal),
            "unit": self.unit,
            "percents": list(self.percents),
        }
        # Deletion goes without saying, so that what was kept before there was another way is found.
        self.key = key_for(named if self.way == WAYS[0] else {**named, "way": self.way})

    def plan(self, rows: SharedRows, encoded: Coded) -> tuple[tuple[int, ...], Int[np.ndarray, "percent"]]:
        """The numbers of units removed along the curve, and the rows that hold its values."""
        scores, owner = ranked_units(self.made, self.request.example, self.unit)
        order = ranking(scores, (self.request.seed, *encoded.ids.tolist()))
        fewer = without_top(order, [number_of(percent, len(order)) for percent in self.percents])
        kept = fewer if self.way == WAYS[0] else ~fewer
        removed = tuple((~kept).sum(axis=1).tolist())
        return removed, rows.ask(encoded, self.made.provenance.target, kept[:, owner])

    def curve(self, found: Mapping[str, np.ndarray], removed: Sequence[int], cached: bool = False) -> RemovalCurve:
        values, logits = found["values"], found.get("logits")
        return RemovalCurve(self.request.method, values, tuple(removed), cached, self.way, self.percents, logits)


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
            if "logits" in arrays or not one.logits:
                numbers = {name: np.array(array) for name, array in arrays.items()}
                found[one.key] = one.curve(numbers, meta["removed"], cached=True)
    return found


def _measure(asked: Sequence[_Asked], report: Report, tally: Tally | None) -> dict[str, RemovalCurve]:
    """Curves of one model. The caller holds the turn."""
    if not asked:
        return {}
    request = asked[0].request
    model = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
    rows = SharedRows(tally)
    encoded = {example: model.encode(example) for example in {one.request.example for one in asked}}
    plans = [one.plan(rows, encoded[one.request.example]) for one in asked]
    with under(model, request.heads) as running:
        values = rows.values(running, asked[0].removal, report)
    made = {}
    for one, (removed, places) in zip(asked, plans, strict=True):
        numbers = {"values": values[places, 0], "logits": values[places, 1]}
        curve = one.curve(numbers, removed)
        result_store().put(one.key, {"removed": list(removed)}, numbers)
        made[one.key] = curve
    return made


def ranked_units(
    made: Explanation, example: Input, unit: str
) -> tuple[Float[np.ndarray, "unit"], Int[np.ndarray, "feature"]]:
    """The scores of the units that can be ranked, and the number of the unit that each feature belongs to."""
    if isinstance(example, Picture):
        return made.scores[made.features], np.arange(len(made.features))
    return unit_scores(made, example, unit), unit_of_feature(made, example, unit)


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
