"""Explanations of requests: read from the cache, or computed on the device, checked and stored."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime, shipped
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.heads.scaling import scaled_model
from engine.input_kinds import input_kind, load_classifier
from engine.lazy import torch
from engine.models import catalog
from engine.models.causal import EncodedPrompt
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.params import Plain, as_plain
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.registry import Explainer, explainer
from engine.removal_operators import keyed_params
from engine.request import Request
from engine.result import Explanation, Prediction, Provenance, pack, unpack
from engine.store import result_store
from engine.task import Attribution, Task, TaskItem
from engine.telemetry import EXPLAINED, EXPLANATION_SECONDS, counts, log_event

_log = logging.getLogger("exegesis.explain")
SCHEMA = 1
EXAMPLES_AT_ONCE = 16
PREDICTIONS_REMEMBERED = 4096
HEADS_NAMED = 4
"""Maximum number of scaled heads that a note names; the provenance lists all of them."""


def explain(request: Request) -> Explanation:
    """Explain one example. A cached explanation loads no model.

    Errors: `UsageError` for an unknown model, method, parameter or target, `ExegesisError` for other failures.
    """
    return explain_many([request])[0]


def explain_many(
    requests: Sequence[Request], report: Report = silent, cancel: CancelToken | None = None
) -> list[Explanation]:
    """Explain many examples, in the order of the requests.

    Examples that share model, method and parameters share passes. Errors: as `explain`.
    """
    queries = [_Query(request) for request in requests]
    done: dict[int, Explanation] = {}
    with cancellable(cancel):
        for group in _groups(queries):
            check_cancelled()
            report(len(done), len(queries), group[0].method.title)
            done.update({id(query): one for query, one in zip(group, _explain_group(group), strict=True)})
    report(len(done), len(queries), "")
    return [done[id(query)] for query in queries]


def cached_explanation(request: Request) -> Explanation | None:
    """Return the explanation if it is in the cache. Reads the model's files, never loads it. Errors: as `explain`."""
    key, store = key_of(request), result_store()
    entry = store.get(key) if store.contains(key) else None
    return None if entry is None else unpack(*entry)


def shipped_explanation(request: Request) -> Explanation | None:
    """Return the explanation shipped with the project, computed on a CPU, or None if there is no current one."""
    entry = shipped.find(_Query(request, "cpu").key)
    return None if entry is None else unpack(*entry)


def key_of(request: Request) -> str:
    """Return the cache key of an explanation. Reads the model's files, never loads it."""
    return _Query(request).key


class _Query:
    """A request with its method, its full parameters and its cache key."""

    def __init__(self, request: Request, device: str | None = None) -> None:
        self.request = request
        self.method: Explainer = explainer(request.method, request.example.kind)
        self.params = self.method.resolve(request.params, request.model)
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
    def task_key(self) -> tuple[Any, ...]:
        """Identifies the task: queries with the same one are computed together."""
        own = self.request
        return own.model, self.revision, own.dtype, own.example.kind, self.method.id, self.params, own.heads


def versions_of(method: Explainer) -> list[int | str]:
    """Return the versions of the method and of the methods that it calls; for an ensemble, of all in `SEVEN`."""
    from engine.registry import SEVEN

    members = SEVEN if method.family == "ensemble" else method.members
    return [method.keyed_version, *(explainer(member, method.kind).keyed_version for member in members)]


def method_key(method: Explainer, given: Mapping[str, Plain], model: str) -> list[int | str]:
    """Return method versions and model-specific state for the cache key, without the parameters as given.

    If the method cannot be used on the model, the reason replaces the state, so that every request has a key.
    """
    if method.resolver is None:
        return [*versions_of(method)]
    try:
        return [*versions_of(method), key_for(as_plain(method.resolve(given, model)))]
    except ExegesisError as error:
        return [*versions_of(method), str(error)]


def _groups(queries: Sequence[_Query]) -> Iterator[list[_Query]]:
    groups: dict[tuple[Any, ...], list[_Query]] = {}
    for query in queries:
        groups.setdefault(query.task_key, []).append(query)
    for group in groups.values():
        for start in range(0, len(group), EXAMPLES_AT_ONCE):
            yield group[start : start + EXAMPLES_AT_ONCE]


def _explain_group(group: list[_Query]) -> list[Explanation]:
    explanations = _load_cached(group)
    missing = list({query.key: query for query in group if query.key not in explanations}.values())
    if missing:
        explanations.update(_compute_once(missing[0]) if len(missing) == 1 else _compute_on_device(missing))
    return [explanations[query.key] for query in group]


def _load_cached(queries: list[_Query]) -> dict[str, Explanation]:
    store = result_store()
    return {q.key: unpack(*entry) for q in queries if (entry := store.get(q.key)) is not None}


def _compute_once(query: _Query) -> dict[str, Explanation]:
    """Compute one explanation once for all concurrent requests, in this process and in others.

    The device is taken inside the flight, which avoids a deadlock: a thread that waits for a flight does not hold the
    device, and one that holds the device (an ensemble that requests its members) does not wait for a flight.
    """

    def compute() -> tuple[Meta, Arrays]:
        return pack(_compute_on_device([query])[query.key])

    meta, arrays, hit = single_flight(result_store(), query.key, compute, alone=(Cancelled,), check=check_cancelled)
    return {query.key: dataclasses.replace(unpack(meta, arrays), cached=hit)}


def _compute_on_device(queries: list[_Query]) -> dict[str, Explanation]:
    with runtime.turn(lends=True):
        return _compute_missing(queries)


def _compute_missing(queries: list[_Query]) -> dict[str, Explanation]:
    """Load the explanations that are cached by now, and compute the others. The caller must hold the device."""
    explanations = _load_cached(queries)
    missing = [query for query in queries if query.key not in explanations]
    return explanations | (_compute_and_store(missing) if missing else {})


def _compute_and_store(queries: list[_Query]) -> dict[str, Explanation]:
    explanations, method = {}, queries[0].method.id
    computed = _compute(queries)
    seconds = sum(one.seconds for one in computed)
    counts.add(EXPLAINED, len(computed), method=method)
    counts.add(EXPLANATION_SECONDS, seconds, method=method)
    log_event(
        _log, "explained", model=queries[0].request.model, method=method, examples=len(computed),
        seconds=round(seconds, 4), device=runtime.device_type(),
    )  # fmt: skip
    for query, explanation in zip(queries, computed, strict=True):
        _store_by_class(query, explanation)  # first: a process that is killed in between computes both again
        result_store().put(query.key, *pack(explanation))
        explanations[query.key] = explanation
    return explanations


def _store_by_class(query: _Query, explanation: Explanation) -> None:
    """Store the explanation under the index of its class too, for requests that name the predicted class."""
    by_class = _Query(dataclasses.replace(query.request, target=explanation.provenance.target))
    if by_class.key != query.key:
        result_store().put(by_class.key, *pack(explanation))


def _compute(queries: list[_Query]) -> list[Explanation]:
    """Run the method on queries of one task. The caller must hold the device."""
    first = queries[0]
    loaded = load_classifier(first.method.kind, first.request.model, first.request.dtype, runtime.device())
    with scaled_model(loaded, first.request.heads) as model, runtime.noting() as notes:
        started = runtime.clock()
        encoded = [model.encode(query.request.example) for query in queries]
        items = _items(model, queries, encoded)
        members = _Members(model, queries, items)
        attributions = first.method.function(Task(model, items, members.attributions), first.params)
        own = (runtime.clock() - started - members.waited) / len(queries)
        return [
            _explanation(model, query, item, attribution, own + theirs, tuple(notes))
            for query, item, attribution, theirs in zip(queries, items, attributions, members.seconds, strict=True)
        ]


class _Members:
    """Attributions of the same items by other methods, for ensembles.

    `seconds`: time that the members took for each item when they were computed. `waited`: time that they took now.
    """

    def __init__(self, model: AnyClassifier, queries: list[_Query], items: list[TaskItem]) -> None:
        self.model, self.queries, self.items = model, queries, items
        self.seconds, self.waited = [0.0] * len(queries), 0.0

    def attributions(self, method: str) -> list[Attribution]:
        """Return the attributions by one method at its defaults, cached or computed."""
        started = runtime.clock()
        queries = [
            _Query(dataclasses.replace(q.request, method=method, params={}, target=item.target))
            for q, item in zip(self.queries, self.items, strict=True)
        ]
        by_key = _compute_missing(list({q.key: q for q in queries}.values()))
        explanations = [by_key[q.key] for q in queries]
        self.seconds = [before + one.seconds for before, one in zip(self.seconds, explanations, strict=True)]
        self.waited += runtime.clock() - started
        return [_member_attribution(self.model, one, item) for one, item in zip(explanations, self.items, strict=True)]


def _member_attribution(model: AnyClassifier, explanation: Explanation, item: TaskItem) -> Attribution:
    """Return a member's attribution with its notes, except those that the ensemble repeats."""
    attribution = Attribution(explanation.scores, explanation.evaluations)
    repeated = {
        *model.notes_on(item.prediction), *_warnings(item, attribution), *_scaling_notes(explanation.provenance.heads)
    }  # fmt: skip
    return dataclasses.replace(attribution, notes=tuple(note for note in explanation.notes if note not in repeated))


def _items(model: AnyClassifier, queries: list[_Query], encoded: list[EncodedInput]) -> list[TaskItem]:
    predictions = predict_encoded(model, encoded)
    require_finite_logits(model, predictions)
    return [
        TaskItem(e, prediction, model.target_index(query.request.target, prediction, e), query.request.seed)
        for query, e, prediction in zip(queries, encoded, predictions, strict=True)
    ]


def predict_encoded(model: AnyClassifier, encoded: Sequence[EncodedInput]) -> list[Prediction]:
    """Predict encoded inputs. Memoized per example; the caller must hold the device."""
    memo: dict[bytes, Prediction] = model.memo.setdefault("predictions", {})
    if len(memo) > PREDICTIONS_REMEMBERED:
        memo.clear()
    keys = [e.key for e in encoded]
    known = {key: memo[key] for key in keys if key in memo}  # a request that is let in meanwhile may clear the memo
    missing = [i for i, key in enumerate(keys) if key not in known]
    if missing:
        longest = max(len(encoded[i]) for i in missing)

        def compute(rows: slice) -> list[Prediction]:
            chosen = [encoded[i] for i in missing[rows]]
            with torch.inference_mode():
                return model.predictions(model.logits(model.collate(chosen)), chosen)

        chunks = runtime.in_chunks(compute, len(missing), runtime.rows_at_once(model, longest))
        computed = dict(zip((keys[i] for i in missing), (p for chunk in chunks for p in chunk), strict=True))
        memo.update(computed)
        known |= computed
    return [known[key] for key in keys]


def require_finite(model: AnyClassifier, what: str, numbers: object) -> None:
    """Refuse NaN and infinity. `what`: the name of the values in the error."""
    if not np.isfinite(np.asarray(numbers, dtype=np.float64)).all():
        dtype = str(model.dtype).removeprefix("torch.")
        raise ExegesisError(
            f"model {model.id}: its {what} are not finite numbers in {dtype}. "
            "Use a wider precision; if it is float32 already, its weights are damaged: download or save it again."
        )


def require_finite_logits(model: AnyClassifier, predictions: Sequence[Prediction]) -> None:
    """Refuse predictions with NaN or infinite logits. Their numbers of classes may differ."""
    require_finite(model, "logits", [logit for prediction in predictions for logit in prediction.logits])


def _explanation(
    model: AnyClassifier,
    query: _Query,
    item: TaskItem,
    attribution: Attribution,
    seconds: float,
    notes: tuple[str, ...],
) -> Explanation:
    provenance = Provenance(
        model=query.request.model,
        revision=model.revision,
        method=query.method.id,
        version=query.method.version,
        params=as_plain(query.params),
        target=item.target,
        target_label=item.prediction.labels[item.target],
        seed=query.request.seed,
        dtype=query.request.dtype,
        device=model.device.type,
        heads=query.request.heads.scales,
    )
    encoded = item.encoded
    require_finite(model, f"scores by {query.method.id}", attribution.scores)
    return Explanation(
        tokens=encoded.tokens,
        scores=np.asarray(attribution.scores, dtype=np.float64),
        prediction=item.prediction,
        provenance=provenance,
        evaluations=attribution.evaluations,
        seconds=seconds,
        check=attribution.check,
        notes=(
            *model.notes_on(item.prediction),
            *_scaling_notes(provenance.heads),
            *_package_notes(query.method),
            *_warnings(item, attribution),
            *attribution.notes,
            *notes,
        ),
        truncated=encoded.truncated,
        extras=attribution.extras,
        grid=encoded.grid,
    )


def _scaling_notes(heads: Sequence[tuple[int, int, float]]) -> Iterator[str]:
    """Yield a note that names the scaled heads, since the explained model then differs from the original."""
    named = [f"layer {layer} head {head} x {scale:g}" for layer, head, scale in heads]
    if named:
        more = f" and {len(named) - HEADS_NAMED} more" if len(named) > HEADS_NAMED else ""
        yield f"The model ran with heads scaled (counted from 0): {', '.join(named[:HEADS_NAMED])}{more}."


def _package_notes(method: Explainer) -> Iterator[str]:
    if method.package:
        yield f"From the package {method.package}, which is not part of Exegesis."


def _warnings(item: TaskItem, attribution: Attribution) -> Iterator[str]:
    encoded = item.encoded
    if encoded.truncated:
        total = len(encoded) + encoded.truncated
        where = " from its start" if isinstance(encoded, EncodedPrompt) else ""
        yield f"The text is longer than the model reads: {encoded.truncated} of its {total} tokens were cut off{where}."
    if not attribution.notes and not np.asarray(attribution.scores)[encoded.features].any():
        feature = input_kind(encoded.kind).feature
        yield f"All scores are zero: according to this method, no {feature} matters to the prediction."
