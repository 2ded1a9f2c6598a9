"""Snapshot of what people will see, taken when a study opens: afterwards nothing is computed or read from the cache.

The placebo's scores come from a method of the study like all others, but from another item, moved at random: they know
nothing of this item, and nothing else on the ballot has the same values.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float

from cache.codec import encode
from engine.data.labels import match_classes
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError, UsageError
from engine.explain import explain_many
from engine.home import product_version
from engine.predictions import predictions
from engine.progress import CancelToken, Report, silent
from engine.registry import explainer
from engine.request import Example, Input, Picture, Request
from engine.result import Explanation, Prediction
from engine.serialization import pack
from engine.study.design import PLACEBO, PREDICT, Design, check_available
from engine.study.items import ItemSnapshot, encode_png
from engine.study.tables import Item, ItemExplanation
from engine.vision.view import read_view

BATCH = 64
"""Candidates that are read and predicted at a time."""
JITTER = 0.1
"""Standard deviation of the logarithm of the factor by which each score of a placebo is changed."""
_VISIBLE = ("tokens", "grid", "truncated")
"""What people see of an explanation besides its scores; the rest of it would reveal the method."""


@dataclass(frozen=True)
class SelectedItem:
    """One item: its index in the data set, the input, the name of its label if known, the model's prediction."""

    index: int
    practice: bool
    input: Input
    label: str | None
    prediction: Prediction


def take_snapshot(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[ItemSnapshot]:
    """Select, predict and explain the items of a checked design, in their order. Errors: those of the engine."""
    check_available(design)
    items = select_items(design, report, cancel)
    prediction = items[0].prediction
    if design.mode == PREDICT and (prediction.regression or len(prediction.labels) < 2):
        what = "a score" if prediction.regression else "one class"
        raise UsageError(
            f"design.mode: must be rank for a model that answers with {what}: there is nothing to guess from. "
            "Rank its explanations, or choose a classifier."
        )
    requests = [
        Request(design.model, method.id, item.input, method.params, seed=design.seed)
        for method in design.ballot_methods
        if method.id != PLACEBO
        for item in items
    ]
    explanations = explain_many(requests, report, cancel)
    by_item = add_placebos([explanations[place :: len(items)] for place in range(len(items))], design)
    return [_to_snapshot(place, item, by_item[place], design.model) for place, item in enumerate(items)]


def _to_snapshot(place: int, selected: SelectedItem, explanations: Sequence[Explanation], model: str) -> ItemSnapshot:
    """A picture is stored as the model sees it, cropped and resized: the patches of its explanations are of that."""
    given = selected.input
    if isinstance(given, Picture):
        given = Picture(read_view(model).transform(given.pixels))
    item = Item(
        place=place,
        practice=selected.practice,
        input=given.as_plain(),
        picture=encode_png(given) if isinstance(given, Picture) else None,
        label=selected.label,
        prediction=dataclasses.asdict(selected.prediction),
    )
    rows = (_to_row(method, explanation) for method, explanation in enumerate(explanations))
    return ItemSnapshot(item, tuple(rows))


def _to_row(place: int, explanation: Explanation) -> ItemExplanation:
    """`provenance`: the method and its parameters, the model, the check, the cost, the version of the product."""
    meta, arrays = pack(explanation)
    body = encode({name: meta.pop(name) for name in _VISIBLE}, arrays)
    del meta["prediction"]
    provenance: dict[str, Any] = meta.pop("provenance")
    source = explanation.extras.get("permuted", provenance)
    method = explainer(source["method"], explanation.kind)
    signed = method.is_signed(source["params"])
    provenance = {**provenance, **meta, "signed": signed, "exegesis": product_version()}
    return ItemExplanation(place=place, body=body, provenance=provenance, digest=hashlib.sha256(body).hexdigest())


def select_items(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[SelectedItem]:
    """Practice items first. A checked design and an unchanged data set and model give the same items.

    Errors: too few examples meet the conditions; those of the data set and the model.
    """
    source = load_source(design.kind, design.dataset, design.items.split)
    candidates = read_candidates(design, source)
    if design.items.how == "hand":
        pairs = _predict(design, list(candidates), report, cancel)
        return _to_items(pairs[: design.practice], True) + _to_items(pairs[design.practice :], False)
    wanted = design.items.count + design.practice
    pairs = []
    while len(pairs) < wanted and (batch := list(islice(candidates, BATCH))):
        pairs += _judge(design, source, _predict(design, batch, report, cancel))
    if len(pairs) < wanted:
        raise ExegesisError(
            f"design.items: {wanted} are wanted with the practice items, but of the {source.count:,} examples of "
            f"{source.name} only {len(pairs)} fit. Ask for fewer, or for less of them."
        )
    counted, practice = pairs[: design.items.count], pairs[design.items.count : wanted]
    return _to_items(practice, True) + _to_items(counted, False)


def read_candidates(design: Design, source: ExampleSource) -> Iterator[SourceExample]:
    """The examples in the order in which they are considered, without predictions.

    `items.judged` is not applied: it needs the model, which is asked when the study opens.
    """
    items = design.items
    if items.how == "hand":
        for index in items.indices:
            if index >= source.count:
                allowed = f"0 to {source.count - 1} in {source.name}"
                raise UsageError(f"design.items.indices: must be {allowed}, got {index}.")
        return (source.read(index) for index in items.indices)
    if items.how == "filter" and items.label is not None and items.label not in source.labels:
        known = ", ".join(source.labels) or "none"
        raise UsageError(f"design.items.label: must be a class of {source.name} ({known}), got {items.label!r}.")
    return _shuffled_candidates(design, source)


def _shuffled_candidates(design: Design, source: ExampleSource) -> Iterator[SourceExample]:
    """Examples whose label and length fit, in the order of the seed; the first of equal inputs."""
    inputs: set[Input] = set()
    for index in np.random.default_rng(design.seed).permutation(source.count):
        candidate = source.read(int(index))
        if candidate.input not in inputs and (design.items.how != "filter" or _passes_filter(design, candidate)):
            inputs.add(candidate.input)
            yield candidate


def _passes_filter(design: Design, candidate: SourceExample) -> bool:
    items = design.items
    if items.label is not None and candidate.label != items.label:
        return False
    if not isinstance(candidate.input, Example):
        return True
    words = len(f"{candidate.input.text} {candidate.input.text_pair or ''}".split())
    return items.least_words <= words and (items.most_words is None or words <= items.most_words)


def _judge(
    design: Design, source: ExampleSource, pairs: list[tuple[SourceExample, Prediction]]
) -> list[tuple[SourceExample, Prediction]]:
    """The examples that the model gets right, or wrong, if the filter asks for that."""
    judged = design.items.judged
    if design.items.how != "filter" or judged == "any":
        return pairs
    classes = match_classes(source.labels, pairs[0][1].labels, source.unnamed)
    if classes.indices is None:
        raise UsageError(f"design.items.judged: {classes.note} Choose any.")
    return [
        (candidate, prediction)
        for candidate, prediction in pairs
        if candidate.class_index is not None
        and (truth := classes.indices[candidate.class_index]) is not None
        and (truth == prediction.index) is (judged == "right")
    ]


def _predict(
    design: Design, batch: list[SourceExample], report: Report, cancel: CancelToken | None
) -> list[tuple[SourceExample, Prediction]]:
    inputs = [candidate.input for candidate in batch]
    return list(zip(batch, predictions(design.model, inputs, report=report, cancel=cancel), strict=True))


def _to_items(pairs: Sequence[tuple[SourceExample, Prediction]], practice: bool) -> list[SelectedItem]:
    return [SelectedItem(one.index, practice, one.input, one.label, prediction) for one, prediction in pairs]


def add_placebos(by_item: Sequence[Sequence[Explanation]], design: Design) -> list[list[Explanation]]:
    """The explanations of each item, one a method of `Design.ballot_methods`.

    `by_item`: those of its methods. `random`, as the placebo or as a method, is replaced by another item's explanation,
    moved to this one. A study of a single item takes one of its own.
    """
    candidates = [
        (place, one, bool(np.ptp(one.scores[one.features])))
        for place, explanations in enumerate(by_item)
        for one in explanations
    ]
    completed = []
    for place, explanations in enumerate(by_item):
        real = iter(explanations)
        completed.append(
            [
                _placebo(candidates, explanations[0], design, place) if method.id == PLACEBO else next(real)
                for method in design.ballot_methods
            ]
        )
    return completed


def _placebo(
    candidates: Sequence[tuple[int, Explanation, bool]], own: Explanation, design: Design, place: int
) -> Explanation:
    """The seed and the place draw the method, the item and the move. Special tokens get 0.

    `candidates`: the item of each explanation, and whether its scores differ; `own`: one of this item. The placebo has
    no check and no cost of its own; its `extras` say whose scores these are.
    """
    rng = np.random.default_rng([design.seed, place])
    others = [one for one in candidates if one[0] != place] or candidates
    varied = [one for one in others if one[2]] or others
    item, source, _ = varied[int(rng.integers(len(varied)))]
    scores = np.zeros_like(own.scores)
    scores[own.features] = _move_scores(source, own, rng)
    method, random = source.provenance, explainer(PLACEBO, own.kind)
    extras = {"permuted": {"method": method.method, "params": dict(method.params), "item": item}}
    provenance = dataclasses.replace(
        own.provenance, method=PLACEBO, version=random.version, params={}, seed=design.seed
    )
    return dataclasses.replace(
        own, scores=scores, provenance=provenance, extras=extras, evaluations=0, seconds=0.0, check=None, notes=()
    )


def _move_scores(source: Explanation, own: Explanation, rng: np.random.Generator) -> Float[np.ndarray, "feature"]:
    """The other item's scores on this one's tokens or patches: shifted, perhaps mirrored, slightly changed.

    Neighbors stay neighbors: a picture's map stays as smooth as its method makes it.
    """
    values = source.scores[source.features]
    if own.grid is not None and source.grid == own.grid:
        values = values.reshape(own.grid)
    else:
        count = len(own.features)
        values = values[np.arange(count) * len(values) // count]
    for axis, length in enumerate(values.shape):
        values = np.roll(values, int(rng.integers(length)), axis)
        if rng.integers(2):
            values = np.flip(values, axis)
    return np.ravel(values) * np.exp(JITTER * rng.standard_normal(values.size))
