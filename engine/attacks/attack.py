"""From a request to an attacked example: from the cache, or computed in the device's turn, checked, stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cache import key_for
from engine import runtime
from engine.attacks.ascent import Ascended, Ascent, like_lengths
from engine.attacks.mapping import Mapper, resolved
from engine.attacks.notes import notes_of
from engine.attacks.params import PIXELS, AttackParams, check_method, check_objective, check_place
from engine.attacks.pictures import shown_of
from engine.attacks.ranks import order_of
from engine.attacks.result import Attacked, pack, unpack
from engine.attacks.trail import Watch
from engine.attacks.words import nearest_words
from engine.errors import not_allowed
from engine.explain import predict_encoded, require_finite
from engine.input_kinds import load_classifier
from engine.models import catalog
from engine.models.classifier import AnyClassifier
from engine.models.text_classifier import EncodedText
from engine.params import Plain, as_plain, from_mapping
from engine.progress import CancelToken, Report, cancellable, check_cancelled, reporting
from engine.registry import explainer
from engine.request import DTYPES, Input
from engine.result import Provenance
from engine.store import result_store
from engine.task import Item

VERSION = 2
"""Raised whenever the numbers of an attack change."""
EXAMPLES_AT_ONCE = 16


@dataclass(frozen=True)
class AttackRequest:
    """One attack on one example's map by one method. `attack`: fields of `AttackParams`; `params`: of the method."""

    model: str
    method: str
    example: Input
    attack: Mapping[str, Plain] = field(default_factory=dict)
    params: Mapping[str, Plain] = field(default_factory=dict)
    seed: int = 0
    dtype: str = DTYPES[0]


def attack(request: AttackRequest, watch: Watch | None = None) -> Attacked:
    """The attack on one example; a cached one touches no model. Errors: see `attack_many`."""
    return attack_many([request], watch=watch)[0]


def attack_many(
    requests: Sequence[AttackRequest],
    report: Report | None = None,
    cancel: CancelToken | None = None,
    watch: Watch | None = None,
) -> list[Attacked]:
    """Attacks in the order asked; examples that share all but themselves are attacked together.

    Each is kept as it ends.
    `report` hears (step, steps, "step"). `watch` hears of each step of what is attacked now. Errors: `UsageError` for
    what is unknown, not differentiable or zero by construction, `ExegesisError` for what fails, `Cancelled`.
    """
    plans = [_Plan(request) for request in requests]
    store, found = result_store(), dict[str, Attacked]()
    for plan in plans:
        if (entry := store.get(plan.key)) is not None:
            found[plan.key] = unpack(*entry)
    with cancellable(cancel), reporting(report):
        for group in _groups([plan for plan in {p.key: p for p in plans}.values() if plan.key not in found]):
            with runtime.turn(lends=True):
                for plan, made in _attacked(group, watch):
                    store.put(plan.key, *pack(made))
                    found[plan.key] = made
    return [found[plan.key] for plan in plans]


def key_of(request: AttackRequest) -> str:
    """The cache key of the attack. Reads the model's files, never loads it."""
    return _Plan(request).key


def check_request(method: str, kind: str, attack: Mapping[str, Plain], params: Mapping[str, Plain]) -> AttackParams:
    """The attack's parameters, where method and parameters can be attacked; refuses without loading a model."""
    check_method(method, kind)
    chosen: AttackParams = from_mapping(AttackParams, attack, "attack")
    check_place(chosen, kind)
    resolved(method, kind, params, chosen)
    return chosen


class _Plan:
    """A request with its full parameters and its cache key."""

    def __init__(self, request: AttackRequest) -> None:
        self.request, self.kind = request, request.example.kind
        self.chosen = check_request(request.method, self.kind, request.attack, request.params)
        self.params = resolved(request.method, self.kind, request.params, self.chosen)
        if type(request.seed) is not int or request.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", request.seed)
        request.example.check_length()
        self.revision = catalog.revision(request.model)
        self.key = key_for(
            {
                "kind": "attack",
                "version": [VERSION, explainer(request.method, self.kind).version],
                "model": [request.model, self.revision],
                "dtype": request.dtype,
                "device": runtime.device_type(),
                "method": request.method,
                "params": self.params,
                "attack": self.attack,
                "example": request.example.as_plain(),
                "seed": request.seed,
            }
        )

    @property
    def attack(self) -> dict[str, Plain]:
        """All the attack's parameters, with the epsilon that was taken."""
        return {**as_plain(self.chosen), "epsilon": self.chosen.bound}

    @property
    def together(self) -> str:
        """Requests that agree in this can be attacked together."""
        asked = self.request
        shared = {"model": [asked.model, self.revision, asked.dtype], "kind": self.kind, "method": asked.method}
        return key_for({**shared, "params": self.params, "attack": self.attack})


def _groups(plans: Sequence[_Plan]) -> Iterator[list[_Plan]]:
    groups: dict[str, list[_Plan]] = {}
    for plan in plans:
        groups.setdefault(plan.together, []).append(plan)
    yield from groups.values()


def _attacked(plans: list[_Plan], watch: Watch | None) -> Iterator[tuple[_Plan, Attacked]]:
    """Attacks of plans that belong together, as they end. The caller holds the turn."""
    first = plans[0]
    model = load_classifier(first.kind, first.request.model, first.request.dtype, runtime.device())
    check_objective(first.chosen, model.regression)
    items = items_of(model, [(plan.request.example, plan.request.seed) for plan in plans])
    for group in like_lengths([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        check_cancelled()
        started, mine = runtime.clock(), [items[at] for at in group]
        mapper = Mapper(model, mine, first.request.method, first.params, first.chosen)
        for ended in Ascent(mapper, first.chosen, watch).run():
            seconds = (runtime.clock() - started) / len(group)
            plan = plans[group[ended.item]]
            yield plan, _result(model, plan, mine[ended.item], ended, seconds)


def items_of(model: AnyClassifier, examples: Sequence[tuple[Input, int]]) -> list[Item]:
    """Encoded examples with what the model predicts, which is the class that is attacked. The caller holds the turn."""
    encoded = [model.encode(example) for example, _ in examples]
    predictions = predict_encoded(model, encoded)
    require_finite(model, "logits", [prediction.logits for prediction in predictions])
    return [
        Item(e, prediction, prediction.index, seed)
        for e, prediction, (_, seed) in zip(encoded, predictions, examples, strict=True)
    ]


def _result(model: AnyClassifier, plan: _Plan, item: Item, ended: Ascended, seconds: float) -> Attacked:
    encoded, asked, pixels = item.encoded, plan.request, plan.chosen.place == PIXELS
    features = encoded.features
    provenance = Provenance(
        asked.model, model.revision, asked.method, explainer(asked.method, plan.kind).version, plan.params,
        item.target, model.labels[item.target], asked.seed, asked.dtype, model.device.type,
    )  # fmt: skip
    return Attacked(
        tokens=encoded.tokens,
        before=ended.before,
        after=ended.after,
        order_before=order_of(item, ended.before[features]),
        order_after=order_of(item, ended.after[features]),
        prediction=item.prediction,
        prediction_after=item.prediction if ended.best is None else model.predictions(ended.logits[None])[0],
        provenance=provenance,
        attack=plan.attack,
        k=ended.k,
        largest=np.abs(ended.delta).max(1),
        length=np.linalg.norm(ended.delta, axis=1),
        delta=ended.delta.astype(np.float64 if asked.dtype == "float64" else np.float32),
        trail=ended.trail.thinned([] if ended.best is None else [ended.best]),
        best=ended.best,
        steps=ended.steps,
        start=ended.start,
        failed=ended.failed,
        relative_epsilon=ended.relative_epsilon,
        seconds=seconds,
        notes=notes_of(item, plan.chosen, ended),
        nearest=nearest_words(model, encoded, ended.delta) if isinstance(encoded, EncodedText) else (),
        picture=shown_of(model, encoded, ended.delta) if pixels else None,
        grid=encoded.grid,
    )
