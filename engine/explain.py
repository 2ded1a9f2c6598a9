"""From a request to an explanation: from the cache, or computed in the device's turn, checked, stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cache import key_for, single_flight
from engine import runtime, serialization, shipped
from engine.classifiers import AnyClassifier, Coded, load_classifier
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.heads.scaling import scaled_model
from engine.lazy import torch
from engine.models import catalog
from engine.params import Plain, as_plain
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.registry import Explainer, explainer
from engine.removal_operators import keyed_params
from engine.request import Request
from engine.result import Explanation, Prediction, Provenance
from engine.store import result_store
from engine.task import Attribution, Item, Task

SCHEMA = 1
EXAMPLES_AT_ONCE = 16
PREDICTIONS_REMEMBERED = 4096
HEADS_NAMED = 4
"""In a note; the provenance names all that are scaled."""


def explain(request: Request) -> Explanation:
    """The explanation of one example; a cached one touches no model.

    Errors: `UsageError` for an unknown model, method, parameter or target, `ExegesisError` for what fails.
    """
    return explain_many([request])[0]


def explain_many(
    requests: Sequence[Request], report: Report = silent, cancel: CancelToken | None = None
) -> list[Explanation]:
    """Explanations in the order asked. Examples that share model, method and parameters share passes."""
    plans = [_Plan(request) for request in requests]
    made: dict[int, Explanation] = {}
    with cancellable(cancel):
        for group in _groups(plans):
            check_cancelled()
            report(len(made), len(plans), group[0].method.title)
            made.update({id(plan): answer for plan, answer in zip(group, _answer(group), strict=True)})
    report(len(made), len(plans), "")
    return [made[id(plan)] for plan in plans]


def shipped_explanation(request: Request) -> Explanation | None:
    """The one that comes with the project, made on a CPU whatever the device here; None where it is not current."""
    entry = shipped.find(_Plan(request, "cpu").key)
    return None if entry is None else serialization.unpack(*entry)


def key_of(request: Request) -> str:
    """The cache key of the request's explanation. Reads the model's files, never loads it."""
    return _Plan(request).key


class _Plan:
    """A request with its method, its full parameters and its cache key."""

    def __init__(self, request: Request, device: str | None = None) -> None:
        self.request = request
        self.method: Explainer = explainer(request.method, request.example.kind)
        self.params = self.method.settled(request.params, request.model)
        if type(request.seed) is not int or request.seed < 0:
            raise UsageError(f"seed: must be a whole number of at least 0, got {request.seed!r}.")
        request.example.check_length()
        self.revision = catalog.revision(request.model)
        self.key = key_for(
            {
                "schema": SCHEMA,
                "kind": "explanation",
                "model": request.model,
                "revision": self.revision,
                "dtype": request.dtype,
                "device": device or runtime.device_type(),
                "method": self.method.id,
                "version": versions_of(self.method),
                "params": keyed_params(as_plain(self.params)),
                "example": request.example.as_plain(),
                "target": request.target,
                "seed": request.seed,
                **request.heads.keyed(),
            }
        )

    @property
    def together(self) -> tuple[Any, ...]:
        """Requests that agree in this can be computed in one task."""
        asked = self.request
        return asked.model, self.revision, asked.dtype, asked.example.kind, self.method.id, self.params, asked.heads


def versions_of(method: Explainer) -> list[int]:
    """The method's version; an ensemble changes with its members too."""
    from engine.explainers.ensemble import SEVEN

    if method.family != "ensemble":
        return [method.version]
    return [method.version, *(explainer(member, method.kind).version for member in SEVEN)]


def told_of(method: Explainer, given: Mapping[str, Plain], model: str) -> list[int | str]:
    """What a key tells of a method at these parameters besides them: its versions, and what it is on this model.

    Where it cannot be used on the model, why not: the key of what cannot be made can be asked for.
    """
    if method.settle is None:
        return [*versions_of(method)]
    try:
        return [*versions_of(method), key_for(as_plain(method.settled(given, model)))]
    except ExegesisError as error:
        return [*versions_of(method), str(error)]


def _groups(plans: Sequence[_Plan]) -> Iterator[list[_Plan]]:
    groups: dict[tuple[Any, ...], list[_Plan]] = {}
    for plan in plans:
        groups.setdefault(plan.together, []).append(plan)
    for group in groups.values():
        for start in range(0, len(group), EXAMPLES_AT_ONCE):
            yield group[start : start + EXAMPLES_AT_ONCE]


def _answer(group: list[_Plan]) -> list[Explanation]:
    answers = _found(group)
    missing = list({plan.key: plan for plan in group if plan.key not in answers}.values())
    if missing:
        answers.update(_fly(missing[0]) if len(missing) == 1 else _together(missing))
    return [answers[plan.key] for plan in group]


def _found(plans: list[_Plan]) -> dict[str, Explanation]:
    store = result_store()
    return {p.key: serialization.unpack(*entry) for p in plans if (entry := store.get(p.key)) is not None}


def _fly(plan: _Plan) -> dict[str, Explanation]:
    """One computation for all who ask for this explanation now, in this process and in others.

    The turn is taken inside the flight: who waits for a flight holds no turn, and who holds the turn (an ensemble
    that asks for its members) waits for no flight.
    """

    def compute() -> tuple[serialization.Meta, serialization.Arrays]:
        return serialization.pack(_together([plan])[plan.key])

    meta, arrays, hit = single_flight(result_store(), plan.key, compute, alone=(Cancelled,), check=check_cancelled)
    return {plan.key: dataclasses.replace(serialization.unpack(meta, arrays), cached=hit)}


def _together(missing: list[_Plan]) -> dict[str, Explanation]:
    with runtime.turn(lends=True):
        return _rest(missing)


def _rest(missing: list[_Plan]) -> dict[str, Explanation]:
    """What nobody made while we waited for the turn is computed."""
    answers = _found(missing)
    left = [plan for plan in missing if plan.key not in answers]
    return answers | (_compute_and_store(left) if left else {})


def _compute_and_store(missing: list[_Plan]) -> dict[str, Explanation]:
    answers = {}
    for plan, answer in zip(missing, _compute(missing), strict=True):
        _store_by_class(plan, answer)  # first: a process that is killed in between makes both again
        result_store().put(plan.key, *serialization.pack(answer))
        answers[plan.key] = answer
    return answers


def _store_by_class(plan: _Plan, answer: Explanation) -> None:
    """The same result under the index of its class: who names the predicted class finds it too."""
    named = _Plan(dataclasses.replace(plan.request, target=answer.provenance.target))
    if named.key != plan.key:
        result_store().put(named.key, *serialization.pack(answer))


def _compute(plans: list[_Plan]) -> list[Explanation]:
    """Explanations of plans that belong together. The caller holds the turn."""
    first = plans[0]
    loaded = load_classifier(first.method.kind, first.request.model, first.request.dtype, runtime.device())
    with scaled_model(loaded, first.request.heads) as model, runtime.noting() as notes:
        started = runtime.clock()
        encoded = [model.encode(plan.request.example) for plan in plans]
        items = _items(model, plans, encoded)
        members = _Members(plans, items)
        made = first.method.function(Task(model, items, members.of), first.params)
        own = (runtime.clock() - started - members.waited) / len(plans)
        return [
            _explanation(model, plan, item, attribution, own + theirs, tuple(notes))
            for plan, item, attribution, theirs in zip(plans, items, made, members.seconds, strict=True)
        ]


class _Members:
    """Other methods' attributions on the same items, from the cache where they are.

    `seconds`: what they took for each item where they were made. `waited`: the seconds that passed here instead.
    """

    def __init__(self, plans: list[_Plan], items: list[Item]) -> None:
        self.plans, self.items = plans, items
        self.seconds, self.waited = [0.0] * len(plans), 0.0

    def of(self, method: str) -> list[Attribution]:
        """Those by one method, at its defaults."""
        started = runtime.clock()
        asked = [
            _Plan(dataclasses.replace(p.request, method=method, params={}, target=item.target))
            for p, item in zip(self.plans, self.items, strict=True)
        ]
        found = _rest(list({p.key: p for p in asked}.values()))
        answers = [found[p.key] for p in asked]
        self.seconds = [before + answer.seconds for before, answer in zip(self.seconds, answers, strict=True)]
        self.waited += runtime.clock() - started
        return [_as_member(answer, item) for answer, item in zip(answers, self.items, strict=True)]


def _as_member(answer: Explanation, item: Item) -> Attribution:
    """Its own notes come along; what the ensemble says anyway (a cut text, a flat map) does not."""
    made = Attribution(answer.scores, answer.evaluations)
    said = {*_warnings(item.encoded, made), *_scaled(answer.provenance.heads)}
    return dataclasses.replace(made, notes=tuple(note for note in answer.notes if note not in said))


def _items(model: AnyClassifier, plans: list[_Plan], encoded: list[Coded]) -> list[Item]:
    predictions = predict_encoded(model, encoded)
    require_finite(model, "logits", [prediction.logits for prediction in predictions])
    return [
        Item(e, prediction, model.target_index(plan.request.target, prediction), plan.request.seed)
        for plan, e, prediction in zip(plans, encoded, predictions, strict=True)
    ]


def predict_encoded(model: AnyClassifier, encoded: Sequence[Coded]) -> list[Prediction]:
    """Predictions, each example's remembered so that methods share the pass. The caller holds the turn."""
    memo: dict[bytes, Prediction] = model.memo.setdefault("predictions", {})
    if len(memo) > PREDICTIONS_REMEMBERED:
        memo.clear()
    keys = [e.key for e in encoded]
    known = {key: memo[key] for key in keys if key in memo}  # who passes meanwhile may clear the memo
    missing = [i for i, key in enumerate(keys) if key not in known]
    if missing:
        longest = max(len(encoded[i]) for i in missing)

        def compute(rows: slice) -> list[Prediction]:
            batch = model.collate([encoded[i] for i in missing[rows]])
            with torch.inference_mode():
                return model.predictions(model.logits(batch))

        chunks = runtime.in_chunks(compute, len(missing), runtime.rows_at_once(model, longest))
        made = dict(zip((keys[i] for i in missing), (p for chunk in chunks for p in chunk), strict=True))
        memo.update(made)
        known |= made
    return [known[key] for key in keys]


def require_finite(model: AnyClassifier, what: str, numbers: object) -> None:
    """Refuses NaN and infinity, and says what helps."""
    if not np.isfinite(np.asarray(numbers, dtype=np.float64)).all():
        dtype = str(model.dtype).removeprefix("torch.")
        raise ExegesisError(
            f"model {model.id}: its {what} are not finite numbers in {dtype}. "
            "Use a wider precision; if it is float32 already, its weights are damaged: download or save it again."
        )


def _explanation(
    model: AnyClassifier, plan: _Plan, item: Item, made: Attribution, seconds: float, notes: tuple[str, ...]
) -> Explanation:
    provenance = Provenance(
        model=plan.request.model,
        revision=model.revision,
        method=plan.method.id,
        version=plan.method.version,
        params=as_plain(plan.params),
        target=item.target,
        target_label=model.labels[item.target],
        seed=plan.request.seed,
        dtype=plan.request.dtype,
        device=model.device.type,
        heads=plan.request.heads.scales,
    )
    encoded = item.encoded
    require_finite(model, f"scores by {plan.method.id}", made.scores)
    return Explanation(
        tokens=encoded.tokens,
        scores=np.asarray(made.scores, dtype=np.float64),
        prediction=item.prediction,
        provenance=provenance,
        evaluations=made.evaluations,
        seconds=seconds,
        check=made.check,
        notes=(*_scaled(provenance.heads), *_warnings(encoded, made), *made.notes, *notes),
        truncated=encoded.truncated,
        extras=made.extras,
        grid=encoded.grid,
    )


def _scaled(heads: Sequence[tuple[int, int, float]]) -> Iterator[str]:
    """What is not the model as it is must not be taken for it."""
    named = [f"layer {layer} head {head} x {scale:g}" for layer, head, scale in heads]
    if named:
        more = f" and {len(named) - HEADS_NAMED} more" if len(named) > HEADS_NAMED else ""
        yield f"The model ran with heads scaled (counted from 0): {', '.join(named[:HEADS_NAMED])}{more}."


def _warnings(encoded: Coded, made: Attribution) -> Iterator[str]:
    if encoded.truncated:
        total = len(encoded) + encoded.truncated
        yield f"The text is longer than the model reads: {encoded.truncated} of its {total} tokens were cut off."
    if not made.notes and not np.asarray(made.scores)[encoded.features].any():
        yield f"All scores are zero: by this method no {noun(encoded)} matters to the prediction."


def noun(encoded: Coded) -> str:
    """What a feature of the input is called."""
    return "token" if encoded.grid is None else "patch"
