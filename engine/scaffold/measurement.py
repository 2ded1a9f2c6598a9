"""Measurements with a teacher: plausibility of explanations against marks, and their mass on kinds of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.examples import ImageExample, LabeledExample
from engine.data.sources import ExampleSource, SourceExample
from engine.errors import ExegesisError, UsageError, one_line
from engine.experiments.sample import has_marks
from engine.input_kinds import load_classifier
from engine.metrics.catalog import SIDES
from engine.metrics.plausibility import (
    CUT_OFF,
    NOTHING,
    UNMARKED_TRUTH,
    is_cut_off,
    marks_of_picture,
    marks_of_text,
    roc_auc,
    segments,
    skip_reason,
)
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.progress import check_cancelled
from engine.request import Input
from engine.scaffold.explainer_checks import (
    BOTH,
    HEADS,
    PICTURE_KINDS,
    STATIC,
    STEPS,
    TEXT_KINDS,
    UNIFORM,
    feature_kinds,
)
from engine.scaffold.plan import ATTENTION, SMAT, EvaluationSample
from engine.scaffold.result import HeadCoefficients
from engine.scaffold.student import head_count
from engine.scaffold.training_sets import distribution, head_scores, static_maps
from engine.word_units import units


@dataclass(frozen=True, eq=False)
class MarkedExample:
    """An example that can be scored. `groups`: masks of the positions of each unit, a word or a patch.

    `segments`: the text that each unit is in, 0 for the first.
    """

    index: int
    coded: EncodedInput
    groups: Bool[np.ndarray, "unit seq"]
    marks: Bool[np.ndarray, "unit"]
    segments: Int[np.ndarray, "unit"]

    def unit_scores(self, maps: Float[np.ndarray, "map seq"]) -> Float[np.ndarray, "map unit"]:
        """Return the scores of units: the score of a word is the sum over its tokens (SMaT, appendix A)."""
        return maps.astype(np.float64) @ self.groups.T

    def auc(self, maps: Float[np.ndarray, "map seq"], side: str) -> Float[np.ndarray, "map"]:
        """Return the AUC of each map on a side: how often a marked unit ranks above an unmarked one, 0 to 1.

        Errors: the side has no marked or no unmarked units (`skip_reason`).
        """
        inside = self.side_units(side)
        return np.array([roc_auc(scores[inside], self.marks[inside]) for scores in self.unit_scores(maps)])

    def side_units(self, side: str) -> Bool[np.ndarray, "unit"]:
        """Return a mask of the units on a side of the pair; all units for an empty `side`."""
        return self.segments == SIDES[side] if side else np.ones(len(self.marks), dtype=bool)

    def skip_reason(self, side: str) -> str | None:
        """Return the reason why a side cannot be scored, or None if it can."""
        why = skip_reason(self.marks[self.side_units(side)])
        return why if why is None or not side else f"{why} in the {side} text"


def sides_of(source: ExampleSource) -> tuple[str, ...]:
    """Return the sides that are scored separately: the whole example and, for pairs, each text."""
    return (BOTH, *SIDES) if source.pairs else (BOTH,)


def read_marked_examples(
    teacher: AnyClassifier, source: ExampleSource, indices: Sequence[int]
) -> tuple[tuple[MarkedExample, ...], Mapping[str, int]]:
    """Return the examples that can be scored, and the number of others by reason."""
    examples: list[MarkedExample] = []
    skipped: Counter[str] = Counter()
    for index in indices:
        check_cancelled()
        try:
            one = _mark(teacher, source.read(index))
        except ExegesisError as error:
            one = one_line(error)
        if isinstance(one, str):
            skipped[one] += 1
        else:
            examples.append(one)
    return tuple(examples), dict(skipped)


def _mark(teacher: AnyClassifier, candidate: SourceExample) -> MarkedExample | str:
    """Return the example with its marks, or the reason why it cannot be scored."""
    example = candidate.example
    if not has_marks(candidate):
        return NOTHING if isinstance(example, LabeledExample) else UNMARKED_TRUTH
    coded = teacher.encode(candidate.input)
    if isinstance(example, LabeledExample):
        if is_cut_off(coded, example):
            return CUT_OFF
        words = units(coded.tokens, np.zeros(len(coded)), example.example, "word")
        groups = _group_masks([word.tokens for word in words if not word.special], len(coded))
        marks = marks_of_text(coded, example, "word")
        sides = np.array(segments(coded, example, "word"), dtype=int)
    else:
        assert isinstance(example, ImageExample)
        picture_marks = marks_of_picture(teacher.id, example)
        assert picture_marks is not None
        marks = picture_marks
        groups = _group_masks([(position,) for position in coded.features.tolist()], len(coded))
        sides = np.zeros(len(marks), dtype=int)
    return skip_reason(marks) or MarkedExample(candidate.index, coded, groups, marks, sides)


def _group_masks(groups: Sequence[Sequence[int]], length: int) -> Bool[np.ndarray, "unit seq"]:
    masks = np.zeros((len(groups), length), dtype=bool)
    for mask, positions in zip(masks, groups, strict=True):
        mask[list(positions)] = True
    return masks


Stack = Float[np.ndarray, "map seq"]


def measure_plausibility(
    sample: EvaluationSample, coefficients: HeadCoefficients | None, part: str
) -> tuple[Meta, Arrays]:
    """Measure the AUC of a part's explainers on every example that can be scored, by side. Acquires the device."""
    with runtime.turn():
        teacher, source = load_classifier(sample.kind, sample.teacher, "float32", runtime.device()), sample.source
        marked, skipped = read_marked_examples(teacher, source, sample.indices)
        marked = tuple(sorted(marked, key=lambda one: len(one.coded)))
        stacks = _stacks(teacher, marked, coefficients, part) if marked else []
        counts = _map_counts(teacher, part)
    sides: list[dict[str, object]] = []
    arrays: Arrays = {}
    for name in sides_of(source):
        judged = [(one, maps) for one, maps in zip(marked, stacks, strict=True) if one.skip_reason(name) is None]
        values = np.array([one.auc(maps, name) for one, maps in judged]).reshape(len(judged), sum(counts.values()))
        arrays |= _split_columns(name, values, counts)
        unjudged = dict(skipped) | Counter(why for one in marked if (why := one.skip_reason(name)) is not None)
        sides.append({"name": name, "examples": [one.index for one, _ in judged], "skipped": unjudged})
    return {"sides": sides, "exact": source.exact}, arrays


def head_maps(heads: Float[np.ndarray, "head seq"], one: MarkedExample, layers: int) -> Stack:
    """Return softmax maps of `s^h`: of both static attention explainers, every layer's mean, and every head."""
    by_layer = heads.reshape(layers, -1, heads.shape[1]).mean(1)
    scores = np.concatenate([heads.mean(0)[None], by_layer[-1:], by_layer, heads])
    return np.stack([distribution(row, one.coded) for row in scores])


def _stacks(
    teacher: AnyClassifier, marked: Sequence[MarkedExample], coefficients: HeadCoefficients | None, part: str
) -> list[Stack]:
    """Return the part's maps of each example, in the order of `_map_counts`."""
    coded = [one.coded for one in marked]
    if part == HEADS:
        layers = len(teacher.blocks)
        return [head_maps(s, one, layers) for s, one in zip(head_scores(teacher, coded), marked, strict=True)]
    if part == SMAT:
        assert coefficients is not None
        weights = matching_weights(teacher, coefficients)
        return [distribution(weights @ s, e)[None] for s, e in zip(head_scores(teacher, coded), coded, strict=True)]
    return [scores[None] for scores in static_maps(teacher, part, coded, STEPS)]


def matching_weights(teacher: AnyClassifier, coefficients: HeadCoefficients) -> Float[np.ndarray, "head"]:
    """Return the weights λ of a learned explainer for this teacher. Errors: it has another number of heads."""
    wanted, got = head_count(teacher), len(coefficients.phi)
    if wanted != got:
        raise UsageError(
            f"explainer: must have one weight for each of the {wanted} heads of the teacher {teacher.id}, got {got}. "
            "Choose an explainer that was trained for this teacher."
        )
    return coefficients.weights


def _map_counts(teacher: AnyClassifier, part: str) -> dict[str, int]:
    """Return the number of maps of each explainer in a part."""
    if part != HEADS:
        return {part: 1}
    return {**dict.fromkeys(ATTENTION, 1), "layers": len(teacher.blocks), "heads": head_count(teacher)}


def _split_columns(side: str, values: Float[np.ndarray, "example map"], counts: Mapping[str, int]) -> Arrays:
    """Split the columns by explainer; an explainer with a single map gets a 1-D array."""
    arrays, start = {}, 0
    for name, count in counts.items():
        columns = values[:, start : start + count]
        arrays[f"{side}.{name}"] = columns if name in ("layers", "heads") else columns[:, 0]
        start += count
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


NOTHING_READ = "no token or patch is left after truncation"


def measure_masses(sample: EvaluationSample, coefficients: HeadCoefficients | None) -> tuple[Meta, Arrays]:
    """Measure the shares of mass of a uniform map, the static attention explainer and the learned one.

    Acquires the device.
    """
    with runtime.turn():
        teacher = load_classifier(sample.kind, sample.teacher, "float32", runtime.device())
        read, skipped = _read_examples(teacher, sample.source, sample.indices)
        heads = head_scores(teacher, [coded for _, coded, _ in read]) if read else []
        weights = None if coefficients is None else matching_weights(teacher, coefficients)
    explainers = (UNIFORM, STATIC, *([] if weights is None else [SMAT]))
    kinds = PICTURE_KINDS if sample.kind == "image" else TEXT_KINDS
    cells = [(kind, explainer) for kind in kinds for explainer in explainers]
    shares = np.array([_shares(coded, given, s, weights) for (_, coded, given), s in zip(read, heads, strict=True)])
    shares = shares.reshape(len(read), len(cells))
    arrays = {f"{kind}.{id}": np.ascontiguousarray(shares[:, at]) for at, (kind, id) in enumerate(cells)}
    meta = {"cells": [list(cell) for cell in cells], "examples": [index for index, _, _ in read], "skipped": skipped}
    return meta, arrays


def _read_examples(
    teacher: AnyClassifier, source: ExampleSource, indices: Sequence[int]
) -> tuple[list[tuple[int, EncodedInput, Input]], dict[str, int]]:
    """Return (index, encoding, input) of readable examples sorted by length, and the number of others by reason."""
    examples, skipped = [], Counter[str]()
    for index in indices:
        check_cancelled()
        try:
            given = source.read(index).input
            coded = teacher.encode(given)
        except ExegesisError as error:
            skipped[one_line(error)] += 1
            continue
        if len(coded.features):
            examples.append((index, coded, given))
        else:
            skipped[NOTHING_READ] += 1
    return sorted(examples, key=lambda one: len(one[1])), dict(skipped)


def _shares(
    coded: EncodedInput, given: Input, heads: Float[np.ndarray, "head seq"], weights: Float[np.ndarray, "head"] | None
) -> list[float]:
    """Return the shares of mass by kind of features, each for the uniform map, the static and the learned explainer."""
    features = coded.features
    maps = [np.full(len(features), 1 / len(features)), distribution(heads.mean(0), coded)[features]]
    maps += [] if weights is None else [distribution(weights @ heads, coded)[features]]
    return [float(one[members].sum()) for members in feature_kinds(coded, given).values() for one in maps]
