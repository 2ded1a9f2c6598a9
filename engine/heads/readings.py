"""Readings of all heads on one example: attention and gradients of one pass, and predictions with each head off.

A table combines their scores; its JSON form is the output format of `exegesis heads --json`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import Cancelled, ExegesisError, UsageError, not_allowed, unknown
from engine.explain import explain, key_of, require_finite
from engine.explainers.attention import gradient_weighted, pooled_rows
from engine.heads.scaling import layers_and_heads
from engine.heads.scores import (
    AGREEMENT,
    AGREES,
    OFF,
    SCORES,
    Attention,
    HeadScore,
    PerHead,
    agreement_with,
    attention_distance,
    entropy,
    received,
    special_share,
)
from engine.input_kinds import load_classifier
from engine.lazy import torch
from engine.metrics.ablation import PROBE
from engine.models.attention import scale_heads
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.progress import CancelToken, Report, cancellable, check_cancelled, reporting, silent
from engine.request import SWITCHED_OFF, HeadScales, Request
from engine.result import Explanation, predicted_class, prediction_to_json
from engine.store import result_store

READING_VERSION = 1
"""Increased whenever the values of a reading change."""
SWITCHING_VERSION = 1
"""Increased whenever the predictions with a head off change."""
TABLE_SCORES = (*SCORES, AGREEMENT)
DEFAULT_SCORES = ("importance", OFF, "distance", "entropy", "special")
"""Default columns of a table; scores that matter for the prediction come first."""
CAUTION = (
    "Attention alone is not an explanation (Jain and Wallace, 2019): what a head attends to may not matter for the "
    "prediction. Check its importance, its fall when switched off, and its agreement with an attribution."
)


@dataclass(frozen=True, eq=False)
class HeadReading:
    """Every head's attention to one example, its scores, and its effect on the class."""

    explanation: Explanation
    """Tokens, grid, prediction and provenance; its scores are random."""
    attention: Attention
    """Probabilities in half precision (relative error within 0.05%); NaN where a query may not attend."""
    scores: dict[str, PerHead]
    """Distance, entropy, special and importance, by their ids in `engine.heads.scores.SCORES`."""
    slope: PerHead
    """Derivative of the class's logit by each head's scale; positive if more of the head speaks for the class."""
    weighted: Float[np.ndarray, "layer query key"]
    """Mean over heads of the positive part of attention times the logit's gradient (Chefer et al., eq. 5)."""
    reads: Float[np.ndarray, "query"]
    """Shares of the positions that the model pools for its prediction; they sum to 1."""
    causal: bool
    cached: bool = False

    @property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.array([token.special for token in self.explanation.tokens])

    @property
    def scales(self) -> PerHead:
        """The factor of each head's output."""
        return HeadScales(self.explanation.provenance.heads).grid(*self.slope.shape)

    def received(self, query: int | None = None) -> Float[np.ndarray, "layer head feature"]:
        """Return the attention that each feature receives in each head, on average or from one position."""
        return received(self.attention, self.explanation.features, query)


@dataclass(frozen=True, eq=False)
class HeadProbe:
    """An example with its tokens and prediction, and the request with the index of the explained class."""

    request: Request
    explanation: Explanation


def probe_heads(request: Request) -> HeadProbe:
    """Return tokens and prediction of the request's example, at no cost beyond the prediction."""
    probe = plain_probe(request)
    explanation = explain(probe)
    return HeadProbe(dataclasses.replace(probe, target=explanation.provenance.target), explanation)


def plain_probe(request: Request) -> Request:
    """Return the request for tokens and prediction alone, ignoring its method."""
    return dataclasses.replace(request, method=PROBE, params={}, seed=0)


def read_heads(request: Request, cancel: CancelToken | None = None) -> HeadReading:
    """Return the reading of the request's example and class, with its head scales. Method and seed are ignored."""
    with cancellable(cancel):
        probe = probe_heads(request)
        meta, arrays, hit = _cached_or(_reading_key(probe), lambda: _read(probe))
    scores = {name: arrays[name] for name in ("distance", "entropy", "special")}
    return HeadReading(
        explanation=probe.explanation,
        attention=arrays["attention"],
        scores={**scores, "importance": np.abs(arrays["slope"])},
        slope=arrays["slope"],
        weighted=arrays["weighted"],
        reads=arrays["reads"],
        causal=meta["causal"],
        cached=hit,
    )


def reading_key(request: Request) -> str:
    """Return the cache key of the reading. The key holds the index of the class, so the prediction is computed."""
    return _reading_key(probe_heads(request))


def _reading_key(probe: HeadProbe) -> str:
    return _key("heads", READING_VERSION, probe.request)


def _key(kind: str, version: int, request: Request) -> str:
    return key_for({"kind": kind, "version": version, "of": key_of(request)})


def _cached_or(key: str, compute: Callable[[], tuple[Meta, Arrays]]) -> tuple[Meta, Arrays, bool]:
    """Read from the cache, or compute on the device once for all concurrent requests."""

    def in_turn() -> tuple[Meta, Arrays]:
        with runtime.turn():
            return compute()

    return single_flight(result_store(), key, in_turn, alone=(Cancelled,), check=check_cancelled)


def _load(request: Request) -> tuple[AnyClassifier, EncodedInput]:
    """Load the request's model and encode its example. The caller holds the device."""
    model = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
    return model, model.encode(request.example)


def _read(probe: HeadProbe) -> tuple[Meta, Arrays]:
    model, encoded = _load(probe.request)
    target, heads = probe.explanation.provenance.target, probe.request.heads
    # A single chunk of one row, so that running out of memory raises a readable error.
    [(attention, slope, for_class)] = runtime.in_chunks(lambda _: _run_pass(model, encoded, target, heads), 1, 1)
    require_finite(model, "attention", attention.sum())
    require_finite(model, "gradients at the heads", slope)
    if model.adapter.causal:
        attention[..., ~np.tri(len(encoded), dtype=bool)] = np.nan
    arrays = {
        "attention": torch.from_numpy(attention).half().numpy(),  # numpy takes a third of a second for a long text
        "slope": slope,
        "weighted": for_class,
        "reads": as_float64(pooled_rows(model.adapter, model.collate([encoded]))[0]),
        "distance": attention_distance(attention, encoded.special, encoded.grid),
        "entropy": entropy(attention),
        "special": special_share(attention, encoded.special),
    }
    return {"causal": model.adapter.causal}, arrays


def _run_pass(
    model: AnyClassifier, encoded: EncodedInput, target: int, heads: HeadScales
) -> tuple[Attention, PerHead, Float[np.ndarray, "layer query key"]]:
    batch = model.collate([encoded])
    scales = _scales(model, heads).requires_grad_()
    with scale_heads(model.module, model.blocks, scales):
        logits, recorder = model.logits_with_attention(batch, model.embed(batch).detach().requires_grad_())
    require_attention(model, len(recorder.probabilities))
    slope, *slopes = torch.autograd.grad(logits[0, target], [scales, *recorder.probabilities], materialize_grads=True)
    attention = torch.cat([layer.detach().float() for layer in recorder.probabilities])
    pairs = zip(recorder.probabilities, slopes, strict=True)
    for_class = torch.cat([gradient_weighted(layer.detach(), own).float() for layer, own in pairs])
    return attention.cpu().numpy(), as_float64(slope[0]), for_class.cpu().numpy()


def _scales(model: AnyClassifier, heads: HeadScales, rows: int = 1) -> Float[torch.Tensor, "row layer head"]:
    """Return the scales as a tensor for `scale_heads`, the same in each row."""
    grid = torch.from_numpy(heads.grid(*layers_and_heads(model))).to(model.device, model.dtype)
    return grid.repeat(rows, 1, 1)


def require_attention(model: AnyClassifier, layers: int) -> None:
    """Refuse a model if not all of its layers yield attention."""
    if layers != len(model.blocks):
        raise ExegesisError(
            f"model {model.id}: {layers} of its {len(model.blocks)} layers yield attention, so its heads cannot be "
            "shown. Use a model of a supported family as transformers has it."
        )


@dataclass(frozen=True, eq=False)
class HeadAblation:
    """Predictions with each head switched off in turn, and with none off, computed in the same way (`whole`)."""

    whole: Float[np.ndarray, "label"]
    off: Float[np.ndarray, "layer head label"]
    """Probabilities; for a regression head, the score."""
    target: int
    labels: tuple[str, ...]
    cached: bool = False

    @property
    def fall(self) -> PerHead:
        """m minus m with the head off, as in occlusion; positive if the head speaks for the class."""
        return self.whole[self.target] - self.off[..., self.target]

    @property
    def flipped(self) -> Bool[np.ndarray, "layer head"]:
        """Whether another class is predicted without the head."""
        flipped: np.ndarray = predicted_class(self.off, self.labels) != predicted_class(self.whole, self.labels)
        return flipped


def switch_off_each(request: Request, report: Report | None = None, cancel: CancelToken | None = None) -> HeadAblation:
    """Switch off each head in turn, many per pass, in addition to the request's own scales.

    `report`: receives the number of model evaluations.
    """
    with cancellable(cancel), reporting(report):
        probe = probe_heads(request)
        _, arrays, hit = _cached_or(switching_key(request), lambda: _switch_off(probe))
    explanation = probe.explanation
    labels = explanation.prediction.labels
    return HeadAblation(arrays["whole"], arrays["off"], explanation.provenance.target, labels, hit)


def switching_key(request: Request) -> str:
    """Return the cache key of the predictions: one for all classes, because they hold every class."""
    return _key("heads_off", SWITCHING_VERSION, dataclasses.replace(plain_probe(request), target=None))


def _switch_off(probe: HeadProbe) -> tuple[Meta, Arrays]:
    model, encoded = _load(probe.request)
    # An additional pass: without it, heads that cannot be switched off would seem to change nothing.
    with torch.inference_mode():
        _, recorder = model.logits_with_attention(model.collate([encoded]))
    require_attention(model, len(recorder.probabilities))
    layers, heads = layers_and_heads(model)
    rows = layers * heads + 1  # the last one with no head off

    def compute(part: slice) -> np.ndarray:
        chunk = np.arange(rows)[part]
        scales = _scales(model, probe.request.heads, len(chunk))
        for row, head in enumerate(chunk):
            if head < rows - 1:
                scales[row, head // heads, head % heads] = SWITCHED_OFF
        with torch.inference_mode(), scale_heads(model.module, model.blocks, scales):
            return as_float64(model.logits(model.collate([encoded] * len(chunk))))

    logits = np.concatenate(runtime.in_chunks(compute, rows, runtime.rows_at_once(model, len(encoded))))
    require_finite(model, "logits with a head switched off", logits)
    if not model.regression:
        logits = np.exp(logits - logits.max(-1, keepdims=True))
        logits = logits / logits.sum(-1, keepdims=True)
    return {}, {"whole": logits[-1], "off": logits[:-1].reshape(layers, heads, -1)}


@dataclass(frozen=True)
class HeadTableQuery:
    """A query for a table of scores. `against`: the method whose attribution the heads' maps are compared with.

    `query`: the position whose attention the maps show; None for the attention that features receive on average.
    """

    scores: tuple[str, ...] = DEFAULT_SCORES
    against: str = ""
    query: int | None = None

    def __post_init__(self) -> None:
        for name in self.scores:
            if name not in TABLE_SCORES:
                raise unknown("score", name, TABLE_SCORES)
        if not self.against and AGREEMENT in self.scores:
            raise UsageError("against: is missing; the score 'agreement' needs a method, such as integrated_gradients.")


@dataclass(frozen=True, eq=False)
class HeadTable:
    """Every head with its scores, by their ids in the order of the query; NaN for a head without a score."""

    reading: HeadReading
    columns: dict[str, PerHead]
    flipped: Bool[np.ndarray, "layer head"] | None = None
    """Whether another class is predicted without the head; None if heads were not switched off."""
    against: Explanation | None = None
    """The attribution that maps were compared with."""
    query: int | None = None

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Layer and head of each row, in order."""
        return [(int(layer), int(head)) for layer, head in np.ndindex(self.reading.slope.shape)]

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """The heads by the absolute value of the first score, largest first; heads without a value come last."""
        first = np.abs(next(iter(self.columns.values()))).ravel()
        return [self.heads[at] for at in np.argsort(-first, kind="stable")]  # NaN is sorted to the end

    def score(self, name: str) -> HeadScore:
        """Return the description of a column. For a regression head, the unit of the fall is the score."""
        if name == AGREEMENT:
            return AGREES
        regression = name == OFF and self.reading.explanation.prediction.regression
        return dataclasses.replace(SCORES[name], unit="score") if regression else SCORES[name]


def head_table(
    request: Request, query: HeadTableQuery | None = None, report: Report = silent, reading: HeadReading | None = None
) -> HeadTable:
    """Compute the scores of every head on the request's example and class, with its head scales.

    The request's method is ignored; its seed is that of the attribution. `reading`: the reading, if already computed.
    """
    query = query or HeadTableQuery()
    flipped = attribution = None
    with reporting(report):
        reading = reading or read_heads(request)
        n = len(reading.explanation.tokens)
        if query.query is not None and not 0 <= query.query < n:
            raise not_allowed("query", f"a position from 0 to {n - 1} of this input", query.query)
        scores = dict(reading.scores)
        if OFF in query.scores:
            ablation = switch_off_each(request, report)
            scores[OFF], flipped = ablation.fall, ablation.flipped
        if AGREEMENT in query.scores:
            attribution = explain(dataclasses.replace(request, method=query.against, params={}))
            own = attribution.scores[attribution.features]
            scores[AGREEMENT] = agreement_with(reading.received(query.query), own)
    return HeadTable(reading, {name: scores[name] for name in query.scores}, flipped, attribution, query.query)


def head_table_to_json(table: HeadTable, limit: int | None = None) -> dict[str, Any]:
    """Return the reading's provenance, the meaning of each score, and one row per head as JSON values.

    `limit`: number of heads, the largest by the first score; None for all in order. Layers and heads count from 0. A
    missing score is null.
    """
    explanation = table.reading.explanation
    origin = explanation.provenance
    return {
        "model": origin.model,
        "revision": origin.revision,
        "prediction": prediction_to_json(explanation),
        "target": origin.target_label,
        "scores": {name: _score_to_json(table, name) for name in table.columns},
        "against": _attribution_to_json(table),
        "rows": [_row_to_json(table, *head) for head in (table.heads if limit is None else table.ranked[:limit])],
        "cached": table.reading.cached,
        "dtype": origin.dtype,
        "device": origin.device,
        **({"heads": [list(head) for head in origin.heads]} if origin.heads else {}),
        "truncated": explanation.truncated,
        "notes": list(explanation.notes),
    }


def _score_to_json(table: HeadTable, name: str) -> dict[str, Any]:
    score = table.score(name)
    return {"title": score.title, "unit": score.unit, "signed": score.signed, "citation": score.citation}


def _attribution_to_json(table: HeadTable) -> dict[str, Any] | None:
    """Return the attribution that maps were compared with.

    `query`: the position whose attention the maps show, null for the mean over the queries that may attend.
    """
    if table.against is None:
        return None
    origin = table.against.provenance
    return {
        "method": origin.method, "version": origin.version, "params": dict(origin.params), "seed": origin.seed,
        "query": table.query,
    }  # fmt: skip


def _row_to_json(table: HeadTable, layer: int, head: int) -> dict[str, Any]:
    columns = {name: float(column[layer, head]) for name, column in table.columns.items()}
    values = {name: None if math.isnan(value) else value for name, value in columns.items()}
    flipped = {} if table.flipped is None else {"flipped": bool(table.flipped[layer, head])}
    return {"layer": layer, "head": head, **values, **flipped}
