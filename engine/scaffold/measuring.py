"""Runs a teacher over marked examples and holds each explainer's maps against the marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import UsageError
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.scaffold import signals
from engine.scaffold.asked import Asked, Learned
from engine.scaffold.marked import Marked, read_marked, sides_of
from engine.scaffold.plan import ATTENTION, SMAT
from engine.scaffold.plausibility import HEADS, STEPS
from engine.scaffold.signals import distribution
from engine.scaffold.student import head_count

Stack = Float[np.ndarray, "map seq"]


def measure(asked: Asked, learned: Learned | None, part: str) -> tuple[Meta, Arrays]:
    """AUC of the part's explainers on every example that can be judged, side by side, in the device's turn."""
    with runtime.turn():
        teacher, source = load_classifier(asked.kind, asked.teacher, "float32", runtime.device()), asked.source
        marked, skipped = read_marked(teacher, source, asked.places)
        marked = tuple(sorted(marked, key=lambda one: len(one.coded)))
        stacks = _stacks(teacher, marked, learned, part) if marked else []
        rows = _names(teacher, part)
    sides: list[dict[str, object]] = []
    arrays: Arrays = {}
    for name in sides_of(source):
        judged = [(one, maps) for one, maps in zip(marked, stacks, strict=True) if one.why_not(name) is None]
        values = np.array([one.auc(maps, name) for one, maps in judged]).reshape(len(judged), sum(rows.values()))
        arrays |= _cut(name, values, rows)
        left = dict(skipped) | Counter(why for one in marked if (why := one.why_not(name)) is not None)
        sides.append({"name": name, "examples": [one.place for one, _ in judged], "skipped": left})
    return {"sides": sides, "exact": source.exact}, arrays


def head_maps(heads: Float[np.ndarray, "head seq"], one: Marked, layers: int) -> Stack:
    """Softmax of `s^h`: of both static explainers, of every layer's mean, and of every head."""
    by_layer = heads.reshape(layers, -1, heads.shape[1]).mean(1)
    scores = np.concatenate([heads.mean(0)[None], by_layer[-1:], by_layer, heads])
    return np.stack([distribution(row, one.coded) for row in scores])


def _stacks(teacher: AnyClassifier, marked: Sequence[Marked], learned: Learned | None, part: str) -> list[Stack]:
    """The part's maps of each example, in the order of `_names`."""
    coded = [one.coded for one in marked]
    if part == HEADS:
        layers = len(teacher.blocks)
        return [head_maps(s, one, layers) for s, one in zip(signals.heads(teacher, coded), marked, strict=True)]
    if part == SMAT:
        assert learned is not None
        weights = weights_for(teacher, learned)
        return [distribution(weights @ s, e)[None] for s, e in zip(signals.heads(teacher, coded), coded, strict=True)]
    return [found[None] for found in signals.maps(teacher, part, coded, STEPS)]


def weights_for(teacher: AnyClassifier, learned: Learned) -> Float[np.ndarray, "head"]:
    """λ of a learned explainer for this teacher. Errors: it was learned on a model of another shape."""
    wanted, got = head_count(teacher), len(learned.phi)
    if wanted != got:
        raise UsageError(
            f"phi: the learned explainer weighs {got} heads, but the teacher {teacher.id} has {wanted}. "
            "Choose an explainer that was learned on this teacher."
        )
    return learned.weights


def _names(teacher: AnyClassifier, part: str) -> dict[str, int]:
    """What the part measures, and how many maps each takes."""
    if part != HEADS:
        return {part: 1}
    return {**dict.fromkeys(ATTENTION, 1), "layers": len(teacher.blocks), "heads": head_count(teacher)}


def _cut(side: str, values: Float[np.ndarray, "example map"], names: Mapping[str, int]) -> Arrays:
    """The columns under their names; a single one as a row of numbers."""
    arrays, start = {}, 0
    for name, count in names.items():
        columns = values[:, start : start + count]
        arrays[f"{side}.{name}"] = columns if name in ("layers", "heads") else columns[:, 0]
        start += count
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
