"""How much a map changes when its input changes a little and the prediction does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from cache import key_for
from engine import runtime
from engine.classifiers import AnyClassifier, load_classifier
from engine.errors import not_allowed
from engine.explain import explain_many, key_of, predict_encoded, require_finite
from engine.heads.running import under
from engine.metrics.complexity import FLAT
from engine.metrics.perturbation import RADII, for_moved, moved
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.registry import explainer
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store
from engine.task import Attribution, Item, Task

VERSION = 1
"""Raised whenever the numbers change."""
SAMPLES = 10
EXAMPLES_AT_ONCE = 8
UNSTABLE = "every small change of the input changes the prediction"


@dataclass(frozen=True)
class Sensitivity:
    """`value`: from 0, relative to the length of the map; None where there is none, for the `reason` given.

    `kept`: how many of the small changes left the prediction as it was. `evaluations`: of the model, for them all.
    """

    value: float | None
    kept: int
    evaluations: int
    reason: str = ""


def sensitivities(
    requests: Sequence[Request],
    radius: int | float | None = None,
    samples: int = SAMPLES,
    report: Report = silent,
    cancel: CancelToken | None = None,
) -> list[Sensitivity]:
    """`max ||a(x') - a(x)|| / ||a(x)||` over `samples` neighbours x' with the same predicted class, in the order asked.

    Neighbours: `engine.metrics.perturbation`, within `radius`, else its usual one. The explained class stays that of x.
    The map is divided by its length, so that methods of different units compare, as Captum does. What a method draws
    by chance it draws anew for each neighbour, as it would for any other text: that it differs is part of what a
    reader sees. Sources: Yeh et al. (2019), SENS_MAX, by draws; Bhatt et al. (2020), who keep the predicted class.
    """
    if samples < 1:
        raise not_allowed("samples", "a whole number of at least 1", samples)
    if radius is not None and not radius > 0:
        raise not_allowed("radius", "a number above 0", radius)
    with cancellable(cancel):
        maps = explain_many(requests)
        asked = [_Asked(request, made, radius, samples) for request, made in zip(requests, maps, strict=True)]
        answers = _found(asked)
        for group in _groups([one for one in asked if one.key not in answers]):
            check_cancelled()
            report(
                len(answers), len({one.key for one in asked}), explainer(group[0].request.method, group[0].kind).title
            )
            with runtime.turn(lends=True):
                answers |= _measure(group)
    return [answers[one.key] for one in asked]


class _Asked:
    """A map with the neighbourhood of its input."""

    def __init__(self, request: Request, made: Explanation, radius: int | float | None, samples: int) -> None:
        self.kind = request.example.kind
        # By its index, so that "the predicted class" and its name are one.
        self.request = dataclasses.replace(request, target=made.provenance.target)
        self.made, self.samples = made, samples
        self.radius = float(RADII[self.kind] if radius is None else radius)
        self.key = key_for(
            {
                "kind": "sensitivity",
                "version": VERSION,
                "explanation": key_of(self.request),
                "radius": self.radius,
                "samples": samples,
            }
        )

    @property
    def together(self) -> tuple[Any, ...]:
        """What agrees in this can be one task."""
        asked = self.request
        return asked.model, asked.dtype, self.kind, asked.method, tuple(sorted(asked.params.items())), asked.heads


def _groups(asked: Sequence[_Asked]) -> Iterator[list[_Asked]]:
    groups: dict[tuple[Any, ...], dict[str, _Asked]] = {}
    for one in asked:
        groups.setdefault(one.together, {})[one.key] = one
    for group in groups.values():
        alike = list(group.values())
        for start in range(0, len(alike), EXAMPLES_AT_ONCE):
            yield alike[start : start + EXAMPLES_AT_ONCE]


def _found(asked: Sequence[_Asked]) -> dict[str, Sensitivity]:
    store = result_store()
    return {one.key: Sensitivity(**entry[0]) for one in asked if (entry := store.get(one.key)) is not None}


def _measure(asked: Sequence[_Asked]) -> dict[str, Sensitivity]:
    """Of maps that are one task. The caller holds the turn."""
    answers, request = _found(asked), asked[0].request
    left = [one for one in asked if one.key not in answers]
    if not left:
        return answers
    shared = load_classifier(asked[0].kind, request.model, request.dtype, runtime.device())
    with under(shared, request.heads) as running:
        model = for_moved(running)
        items = [_neighbours(running, model, one) for one in left]
        made = _run(request.method, request, model, [item for own in items for item in own])
        for near in made:
            require_finite(model, f"scores by {request.method} near the input", near.scores)
    ends = np.cumsum([len(own) for own in items])
    for one, own, end in zip(left, items, ends, strict=True):
        answers[one.key] = found = _sensitivity(one, made[end - len(own) : end])
        result_store().put(one.key, dataclasses.asdict(found), {})
    return answers


def _neighbours(running: AnyClassifier, model: AnyClassifier, one: _Asked) -> list[Item]:
    """Those with the predicted class of the input; a regression head has none to keep."""
    if not one.made.scores[one.made.features].any():
        return []
    encoded, seed = running.encode(one.request.example), one.request.seed
    near = [moved(running, encoded, number, one.radius, seed) for number in range(one.samples)]
    return [
        Item(coded, prediction, one.made.provenance.target, _seed(seed, number))
        for number, (coded, prediction) in enumerate(zip(near, predict_encoded(model, near), strict=True))
        if prediction.regression or prediction.index == one.made.prediction.index
    ]


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _run(method: str, request: Request, model: AnyClassifier, items: list[Item]) -> list[Attribution]:
    """Maps of the neighbours; members of ensembles at their defaults, as an ensemble asks for them."""
    if not items:
        return []
    known = explainer(method, model.kind)
    params = known.settled(request.params, request.model)
    plain = dataclasses.replace(request, params={})
    return known.function(Task(model, items, lambda member: _run(member, plain, model, items)), params)


def _sensitivity(one: _Asked, near: Sequence[Attribution]) -> Sensitivity:
    cost = one.samples + sum(made.evaluations for made in near)
    own = one.made.scores[one.made.features]
    if not own.any():
        return Sensitivity(None, 0, 0, FLAT)
    if not near:
        return Sensitivity(None, 0, cost, UNSTABLE)
    changes = [_change(own, made.scores[one.made.features]) for made in near]
    return Sensitivity(max(changes), len(near), cost)


def _change(own: Float[np.ndarray, "feature"], other: Float[np.ndarray, "feature"]) -> float:
    return float(np.linalg.norm(other - own) / np.linalg.norm(own))
