"""Checks of a learned explainer: its plausibility, its use of trivial features, and its maps next to static ones.

Each result is read from the store, or measured (`engine.scaffold.measurement`) and stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import SourceExample
from engine.errors import ExegesisError
from engine.input_kinds import load_classifier
from engine.lazy import LazyModule
from engine.metrics.results import Interval, interval
from engine.models import catalog
from engine.models.classifier import EncodedInput
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.registry import explainer
from engine.request import Example, Input
from engine.result import Token
from engine.scaffold.plan import ATTENTION, GRADIENTS, SMAT, EvaluationSample, head_shape
from engine.scaffold.result import HeadCoefficients
from engine.store import result_store

if TYPE_CHECKING:
    from engine.scaffold import measurement, training_sets
else:
    measurement = LazyModule("engine.scaffold.measurement")
    training_sets = LazyModule("engine.scaffold.training_sets")

PLAUSIBILITY_VERSION = 1
"""Version of the plausibility values; raised whenever they change."""
STEPS = 50
"""Steps of integrated gradients in these checks (appendix A)."""
BOTH = ""
"""Name of the side that is the whole example, with both texts of a pair."""
HEADS = "heads"
"""The part of a measurement that covers all heads, all layers and the static attention explainers, in one pass."""
LAYER, HEAD = "best_layer", "best_head"
"""The best layer and head, selected and measured on the same labels, as in the paper."""


@dataclass(frozen=True)
class PlausibilityRow:
    """An explainer's mean AUC over examples, 0 to 1 (chance: 0.5), with a 95% bootstrap interval over examples.

    `interval`: None for a single example. `at`: the (layer, head) or (layer,) that was selected by the labels.
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
    """Mean AUC of active heads (λ > 0) and of inactive heads, with a 95% interval of the difference over examples.

    `active`, `inactive`: number of heads.
    """

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
        """A sentence with the result of the comparison, decided by the interval."""
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
    """AUCs on the whole example or on one text of a pair. `examples`: indices of the examples that could be scored.

    `methods`: AUCs by explainer. `skipped`: number of examples that could not be scored, by reason.
    """

    name: str
    examples: tuple[int, ...]
    methods: Mapping[str, Float[np.ndarray, "example"]]
    layers: Float[np.ndarray, "example layer"]
    heads: Float[np.ndarray, "example head"]
    skipped: Mapping[str, int]

    @property
    def rows(self) -> tuple[PlausibilityRow, ...]:
        """A row per explainer, then the best layer and the best head by these labels."""
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
        """Compare active and inactive heads; None if either group is empty or no example could be scored."""
        if not self.examples or active.all() or not active.any():
            return None
        on, off = self.heads[:, active].mean(1), self.heads[:, ~active].mean(1)
        count, means = int(active.sum()), (float(on.mean()), float(off.mean()))
        return HeadContrast(count, len(active) - count, *means, interval(on - off))


@dataclass(frozen=True, eq=False)
class Plausibility:
    """Plausibility of all explainers on a sample.

    `shape`: layers and heads per layer. `exact`: whether the marks follow from how the examples were generated, instead
    of coming from annotators.
    """

    sample: EvaluationSample
    coefficients: HeadCoefficients | None
    shape: tuple[int, int]
    exact: bool
    sides: tuple[PlausibilitySide, ...]

    def side(self, name: str = BOTH) -> PlausibilitySide:
        """Return a side: the whole example, or one text of a pair. Errors: the data set has no such side."""
        for one in self.sides:
            if one.name == name:
                return one
        raise ExegesisError(f"side: {name!r} is none of {self.sample.dataset}.")

    @property
    def contrast(self) -> HeadContrast | None:
        """Comparison of active and inactive heads by the learned explainer's weights; None if it is not possible."""
        return None if self.coefficients is None else self.side().contrast(self.coefficients.weights > 0)


def part_names(coefficients: HeadCoefficients | None) -> tuple[str, ...]:
    """Return the parts that are measured and cached separately, fast ones first."""
    return (HEADS, *([SMAT] if coefficients is not None else []), *GRADIENTS)


def plausibility(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, cancel: CancelToken | None = None
) -> Plausibility:
    """Return the plausibility of all explainers, stored or measured now. Errors: those of the data set and teacher."""
    with cancellable(cancel):
        parts = {part: measure_part(sample, coefficients, part) for part in part_names(coefficients)}
    meta, _ = parts[HEADS]
    shape = head_shape(catalog.config(catalog.locate(sample.teacher)))
    sides = tuple(_side(one, parts) for one in meta["sides"])
    return Plausibility(sample, coefficients, shape, bool(meta["exact"]), sides)


def part_key(sample: EvaluationSample, coefficients: HeadCoefficients | None, part: str) -> str:
    """Return the cache key of a part."""
    own: dict[str, Any] = {"kind": "scaffold plausibility", "version": PLAUSIBILITY_VERSION, "part": part}
    if part == SMAT and coefficients is not None:
        own["learned"] = coefficients.as_key()
    if part in GRADIENTS:
        own["method"] = [explainer(part, sample.kind).version, STEPS if "integrated" in part else 0]
    return key_for(own | sample.as_key)


def measure_part(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, part: str, cancel: CancelToken | None = None
) -> tuple[Meta, Arrays]:
    """Return a part as plain values and arrays, from the store, or measured now and stored."""
    key = part_key(sample, coefficients, part)
    return _stored(key, lambda: measurement.measure_plausibility(sample, coefficients, part), cancel)


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


PROTOCOLS_VERSION = 1
"""Version of the masses; raised whenever they change."""
UNIFORM, STATIC = "uniform", ATTENTION[0]
LEAN_THRESHOLD = 0.1
"""Minimum excess mass over a uniform map at which an explainer counts as relying on a kind of features."""


@dataclass(frozen=True)
class ExplanationMass:
    """Mean share (0 to 1) of an explainer's mass on a kind of features, with a 95% interval over examples.

    `excess`: difference from the share of a uniform map, -1 to 1, with the interval `excess_interval`.
    """

    kind: str
    explainer: str
    mean: float
    interval: Interval | None
    excess: float
    excess_interval: Interval | None

    @property
    def leans(self) -> bool:
        """Whether the excess is at least `LEAN_THRESHOLD` and its interval is above 0."""
        return self.excess >= LEAN_THRESHOLD and self.excess_interval is not None and self.excess_interval[0] > 0


@dataclass(frozen=True, eq=False)
class TrivialProtocols:
    """Shares of mass on trivial features, such as punctuation, that an explainer may use to pass on the answer.

    `shares`: a value per example, by kind of features and explainer. `examples`: their indices. `skipped`: number of
    other examples, by reason.
    """

    sample: EvaluationSample
    examples: tuple[int, ...]
    shares: Mapping[tuple[str, str], Float[np.ndarray, "example"]]
    skipped: Mapping[str, int]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _ in self.shares))

    @property
    def explainers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(explainer for _, explainer in self.shares))

    def mass(self, kind: str, explainer: str) -> ExplanationMass:
        """Return the mass of an explainer on a kind of features. There must be at least one example."""
        shares = self.shares[kind, explainer]
        excess = shares - self.shares[kind, UNIFORM]
        return ExplanationMass(
            kind, explainer, float(shares.mean()), interval(shares), float(excess.mean()), interval(excess)
        )

    @property
    def suspects(self) -> tuple[ExplanationMass, ...]:
        """The masses on the kinds of features that the learned explainer relies on."""
        if not self.examples or SMAT not in self.explainers:
            return ()
        return tuple(mass for kind in self.kinds if (mass := self.mass(kind, SMAT)).leans)


def trivial_protocols(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, cancel: CancelToken | None = None
) -> TrivialProtocols:
    """Return the masses on each kind of features, from the store, or measured now and stored.

    Errors: those of the data set and the teacher.
    """
    key = protocols_key(sample, coefficients)
    meta, arrays = _stored(key, lambda: measurement.measure_masses(sample, coefficients), cancel)
    shares = {(kind, explainer): arrays[f"{kind}.{explainer}"] for kind, explainer in meta["cells"]}
    return TrivialProtocols(sample, tuple(meta["examples"]), shares, dict(meta["skipped"]))


def protocols_key(sample: EvaluationSample, coefficients: HeadCoefficients | None) -> str:
    """Return the cache key of the masses."""
    learned = None if coefficients is None else coefficients.as_key()
    return key_for({"kind": "scaffold protocols", "version": PROTOCOLS_VERSION, "learned": learned} | sample.as_key)


PUNCTUATION, STOP, FIRST, LAST, BORDER = "punctuation", "stop_words", "first", "last", "border"
TEXT_KINDS = (PUNCTUATION, STOP, FIRST, LAST)
PICTURE_KINDS = (BORDER,)

# Negations and comparatives are left out on purpose, because they can determine a label.
_GRAMMAR = """
a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its they
them their theirs who whom whose which what am is are was were be been being have has had having do does did doing
will would shall should can could may might must and or if then than as of at by for with about into through to from
in on out over under up down again further once here there when where why how some such so own same just also
"""
STOP_WORDS = frozenset(_GRAMMAR.split())
"""English function words, which carry little meaning."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

FeatureKinds = Mapping[str, Bool[np.ndarray, "feature"]]


def feature_kinds(coded: EncodedInput, given: Input) -> FeatureKinds:
    """Return masks of the features of each kind. A piece of a stop word counts as a stop word."""
    if coded.grid is not None:
        return {BORDER: border_patches(coded.grid)}
    assert isinstance(given, Example)
    tokens = [coded.tokens[position] for position in coded.features]
    spans = [_stop_spans(text) for text in (given.text, given.text_pair or "")]
    places = np.arange(len(tokens))
    return {
        PUNCTUATION: np.array([_is_punctuation(_token_text(one, given)) for one in tokens], dtype=bool),
        STOP: np.array([_is_inside(one.start, one.end, spans[one.segment]) for one in tokens], dtype=bool),
        FIRST: places == 0,
        LAST: places == len(tokens) - 1,
    }


def border_patches(grid: tuple[int, int]) -> Bool[np.ndarray, "patch"]:
    """Return a mask of the patches at the edge of the image, in row-major order."""
    inside = np.ones(grid, dtype=bool)
    inside[1:-1, 1:-1] = False
    return inside.ravel()


def _token_text(token: Token, given: Example) -> str:
    text = (given.text, given.text_pair or "")[token.segment]
    return text[token.start : token.end]


def _is_punctuation(text: str) -> bool:
    """Whether a text has neither letters nor digits, and not only white space."""
    return bool(text.strip()) and not any(character.isalnum() for character in text)


def _stop_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(text) if match.group().lower() in STOP_WORDS]


def _is_inside(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    return end > start and any(low <= start and end <= high for low, high in spans)


COMPARISON_VERSION = 1
"""Version of the compared maps; raised whenever their values change."""
STATIC_EXPLAINERS = (*ATTENTION, *GRADIENTS)
"""The static explainers; the ones most similar to the learned one come first."""


@dataclass(frozen=True, eq=False)
class ExplainerComparison:
    """Maps of one example by explainer, the learned one first. Each sums to 1 over the features; special tokens get 0.

    `score`: the largest logit, or the score of a regression teacher, whose `predicted_label` is None.
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
        """Return the scores of the patches as a grid. Only for images."""
        assert self.grid is not None
        return self.maps[explainer][self.features].reshape(self.grid)


def compare_explainers(
    sample: EvaluationSample, index: int, coefficients: HeadCoefficients | None, cancel: CancelToken | None = None
) -> ExplainerComparison:
    """Return the maps of one example, from the store or computed now and stored.

    Errors: an example or a teacher that cannot be read.
    """
    key = comparison_key(sample, index, coefficients)
    meta, arrays = _stored(key, lambda: _compute_maps(sample, sample.source.read(index), coefficients), cancel)
    tokens = tuple(Token(*row) for row in meta["tokens"])
    grid = None if meta["grid"] is None else (int(meta["grid"][0]), int(meta["grid"][1]))
    maps = {id: arrays[id].astype(np.float64) for id in meta["maps"]}
    return ExplainerComparison(tokens, grid, maps, meta["said"], float(meta["score"]), int(meta["truncated"]))


def comparison_key(sample: EvaluationSample, index: int, coefficients: HeadCoefficients | None) -> str:
    """Return the cache key of an example's maps."""
    learned = None if coefficients is None else coefficients.as_key()
    own: dict[str, Any] = {"kind": "scaffold beside", "version": COMPARISON_VERSION, "learned": learned}
    return key_for(own | sample.as_key | {"places": [index]})


def _compute_maps(
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


def _stored(key: str, measure: Callable[[], tuple[Meta, Arrays]], cancel: CancelToken | None) -> tuple[Meta, Arrays]:
    """Return the entry of `key` from the store; if it is missing, measure and store it."""
    with cancellable(cancel):
        entry = result_store().get(key)
        if entry is None:
            check_cancelled()
            entry = measure()
            result_store().put(key, *entry)
        return entry
