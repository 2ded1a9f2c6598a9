"""The check for trivial protocols: whether a learned explainer points only at features that could leak a label.

These are punctuation, stop words and the ends of texts, and borders of pictures (SMaT, section 7). Special tokens need
no check, because they are masked out of every explanation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine.lazy import LazyModule
from engine.metrics.results import Interval, interval
from engine.models.classifier import EncodedInput
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.request import Example, Input
from engine.result import Token
from engine.scaffold.plan import ATTENTION, SMAT, EvaluationSample
from engine.scaffold.result import HeadCoefficients
from engine.store import result_store

if TYPE_CHECKING:
    from engine.scaffold import measurement
else:
    measurement = LazyModule("engine.scaffold.measurement")

VERSION = 1
"""Raised whenever the numbers change."""
UNIFORM, STATIC = "uniform", ATTENTION[0]
LEAN_THRESHOLD = 0.1
"""The excess mass over a uniform map from which an explainer leans on a kind of feature."""


@dataclass(frozen=True)
class ExplanationMass:
    """The mean share, 0 to 1, of an explainer's mass on a kind of features, with a 95% interval over examples.

    `excess`: the difference from the share that a uniform map puts there, -1 to 1, with its own `excess_interval`.
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
    """`shares`: by kind and explainer, of each example. `examples`: their indices. `skipped`: the others, by reason."""

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
        """One cell. Only where there are examples."""
        shares = self.shares[kind, explainer]
        excess = shares - self.shares[kind, UNIFORM]
        return ExplanationMass(
            kind, explainer, float(shares.mean()), interval(shares), float(excess.mean()), interval(excess)
        )

    @property
    def suspects(self) -> tuple[ExplanationMass, ...]:
        """The kinds of features on which the learned explainer leans."""
        if not self.examples or SMAT not in self.explainers:
            return ()
        return tuple(mass for kind in self.kinds if (mass := self.mass(kind, SMAT)).leans)


def trivial_protocols(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, cancel: CancelToken | None = None
) -> TrivialProtocols:
    """The masses on each kind of features, from the store, or measured now and stored.

    Errors: those of the data set and the teacher.
    """
    with cancellable(cancel):
        key = protocols_key(sample, coefficients)
        entry = result_store().get(key)
        if entry is None:
            check_cancelled()
            entry = measurement.measure_masses(sample, coefficients)
            result_store().put(key, *entry)
        return _unpack(sample, *entry)


def protocols_key(sample: EvaluationSample, coefficients: HeadCoefficients | None) -> str:
    """The cache key."""
    learned = None if coefficients is None else coefficients.as_key()
    return key_for({"kind": "scaffold protocols", "version": VERSION, "learned": learned} | sample.as_key)


def _unpack(sample: EvaluationSample, meta: Meta, arrays: Arrays) -> TrivialProtocols:
    shares = {(kind, explainer): arrays[f"{kind}.{explainer}"] for kind, explainer in meta["cells"]}
    return TrivialProtocols(sample, tuple(meta["examples"]), shares, dict(meta["skipped"]))


PUNCTUATION, STOP, FIRST, LAST, BORDER = "punctuation", "stop_words", "first", "last", "border"
TEXT_KINDS = (PUNCTUATION, STOP, FIRST, LAST)
PICTURE_KINDS = (BORDER,)

# Negations and comparisons are left out on purpose: they can decide a label.
_GRAMMAR = """
a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its they
them their theirs who whom whose which what am is are was were be been being have has had having do does did doing
will would shall should can could may might must and or if then than as of at by for with about into through to from
in on out over under up down again further once here there when where why how some such so own same just also
"""
STOP_WORDS = frozenset(_GRAMMAR.split())
"""English words that carry grammar and little meaning."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

FeatureKinds = Mapping[str, Bool[np.ndarray, "feature"]]


def feature_kinds(coded: EncodedInput, given: Input) -> FeatureKinds:
    """The features of each kind. A piece of a stop word belongs to the stop words."""
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
    """The patches at the edge of the picture, row by row."""
    inside = np.ones(grid, dtype=bool)
    inside[1:-1, 1:-1] = False
    return inside.ravel()


def _token_text(token: Token, given: Example) -> str:
    text = (given.text, given.text_pair or "")[token.segment]
    return text[token.start : token.end]


def _is_punctuation(text: str) -> bool:
    """Neither a letter nor a digit; white space alone is not."""
    return bool(text.strip()) and not any(character.isalnum() for character in text)


def _stop_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(text) if match.group().lower() in STOP_WORDS]


def _is_inside(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    return end > start and any(low <= start and end <= high for low, high in spans)
