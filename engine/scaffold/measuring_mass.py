"""How much of an explanation lies on each kind of features, example by example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import ExampleSource
from engine.errors import ExegesisError
from engine.evaluation.sample import reason
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.progress import check_cancelled
from engine.request import Input
from engine.scaffold import signals
from engine.scaffold.asked import Asked, Learned
from engine.scaffold.measuring import weights_for
from engine.scaffold.plan import SMAT
from engine.scaffold.protocols import STATIC, UNIFORM
from engine.scaffold.signals import distribution
from engine.scaffold.trivial import OF_PICTURES, OF_TEXTS, kinds_of

NOTHING_READ = "the model reads nothing of it"


def measure(asked: Asked, learned: Learned | None) -> tuple[Meta, Arrays]:
    """Shares of a uniform map, of the static attention explainer and of the learned one, in the device's turn."""
    with runtime.turn():
        teacher = load_classifier(asked.kind, asked.teacher, "float32", runtime.device())
        read, skipped = _read(teacher, asked.source, asked.places)
        heads = signals.heads(teacher, [coded for _, coded, _ in read]) if read else []
        weights = None if learned is None else weights_for(teacher, learned)
    explainers = (UNIFORM, STATIC, *([] if weights is None else [SMAT]))
    kinds = OF_PICTURES if asked.kind == "image" else OF_TEXTS
    cells = [(kind, explainer) for kind in kinds for explainer in explainers]
    found = np.array([_shares(one[1], one[2], s, weights) for one, s in zip(read, heads, strict=True)])
    found = found.reshape(len(read), len(cells))
    arrays = {f"{kind}.{id}": np.ascontiguousarray(found[:, at]) for at, (kind, id) in enumerate(cells)}
    meta = {"cells": [list(cell) for cell in cells], "examples": [place for place, _, _ in read], "skipped": skipped}
    return meta, arrays


def _read(
    teacher: AnyClassifier, source: ExampleSource, places: Sequence[int]
) -> tuple[list[tuple[int, EncodedInput, Input]], dict[str, int]]:
    found, skipped = [], Counter[str]()
    for place in places:
        check_cancelled()
        try:
            given = source.read(place).input
            coded = teacher.encode(given)
        except ExegesisError as error:
            skipped[reason(error)] += 1
            continue
        if len(coded.features):
            found.append((place, coded, given))
        else:
            skipped[NOTHING_READ] += 1
    return sorted(found, key=lambda one: len(one[1])), dict(skipped)


def _shares(
    coded: EncodedInput, given: Input, heads: Float[np.ndarray, "head seq"], weights: Float[np.ndarray, "head"] | None
) -> list[float]:
    """Kind by kind, of the uniform map, the static and the learned explainer."""
    inside = coded.features
    maps = [np.full(len(inside), 1 / len(inside)), distribution(heads.mean(0), coded)[inside]]
    maps += [] if weights is None else [distribution(weights @ heads, coded)[inside]]
    return [float(one[members].sum()) for members in kinds_of(coded, given).values() for one in maps]
