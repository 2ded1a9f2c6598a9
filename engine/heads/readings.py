"""Readings of all heads of one example: attention and slopes of one pass, and predictions with each head off."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import Cancelled, ExegesisError
from engine.explain import explain, key_of, require_finite
from engine.explainers.attention import gradient_weighted, pooled_rows
from engine.heads.scales import OFF as SWITCHED_OFF
from engine.heads.scales import HeadScales
from engine.heads.scaling import layers_and_heads
from engine.heads.scores import Attention, PerHead, attention_distance, entropy, received, special_share
from engine.input_kinds import load_classifier
from engine.lazy import torch
from engine.metrics.ablation import PROBE
from engine.models.attention import scale_heads
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.progress import CancelToken, Report, cancellable, check_cancelled, reporting
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store

READING_VERSION = 1
"""Raised whenever the numbers of a reading change."""
SWITCHING_VERSION = 1
"""Raised whenever the predictions with a head off change."""


@dataclass(frozen=True, eq=False)
class HeadReading:
    """Every head's attention to one example, its scores, and its effect on the class."""

    explanation: Explanation
    """Tokens, grid, prediction and provenance; its scores are chance."""
    attention: Attention
    """Probabilities in half precision (within 0.05% of themselves); NaN where a query may not attend."""
    scores: dict[str, PerHead]
    """Distance, entropy, special, importance: by the ids of `engine.heads.scores.SCORES`."""
    slope: PerHead
    """Derivative of the class's logit by each head's scale: positive where more of the head speaks for the class."""
    weighted: Float[np.ndarray, "layer query key"]
    """Mean over heads of what, in attention times the logit's gradient, speaks for the class (Chefer et al., eq. 5)."""
    reads: Float[np.ndarray, "query"]
    """The shares of the positions that the model pools for its prediction; they sum to 1."""
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
        """The attention that each feature receives of each head, on average or from one position."""
        return received(self.attention, self.explanation.features, query)


@dataclass(frozen=True, eq=False)
class HeadProbe:
    """An example with its tokens and prediction, and the request by the index of its class."""

    request: Request
    explanation: Explanation


def probe_heads(request: Request) -> HeadProbe:
    """Tokens and prediction of the request's example, at no cost beyond the prediction."""
    probe = plain_probe(request)
    explanation = explain(probe)
    return HeadProbe(dataclasses.replace(probe, target=explanation.provenance.target), explanation)


def plain_probe(request: Request) -> Request:
    """The request for tokens and prediction alone, whatever the method was."""
    return dataclasses.replace(request, method=PROBE, params={}, seed=0)


def read_heads(request: Request, cancel: CancelToken | None = None) -> HeadReading:
    """The reading of the request's example and class, its heads so scaled. The method and the seed do not matter."""
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
    """The cache key of the reading. It names the class by its index, so that the prediction is made for it."""
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
    """The request's model and its example as the model reads it. The caller holds the turn."""
    model = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
    return model, model.encode(request.example)


def _read(probe: HeadProbe) -> tuple[Meta, Arrays]:
    model, encoded = _load(probe.request)
    target, heads = probe.explanation.provenance.target, probe.request.heads
    # One row in a chunk of one: what runs out of memory is told in words.
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
    """The scales as the attention mechanism takes them, the same in each row."""
    grid = torch.from_numpy(heads.grid(*layers_and_heads(model))).to(model.device, model.dtype)
    return grid.repeat(rows, 1, 1)


def require_attention(model: AnyClassifier, layers: int) -> None:
    """Refuse a model whose layers do not all show their attention."""
    if layers != len(model.blocks):
        raise ExegesisError(
            f"model {model.id}: {layers} of its {len(model.blocks)} layers yield attention, so its heads cannot be "
            "shown. Use a model of a supported family as transformers has it."
        )


@dataclass(frozen=True, eq=False)
class HeadAblation:
    """Predictions with each head switched off in turn, and with none off by the same computation (`whole`)."""

    whole: Float[np.ndarray, "label"]
    off: Float[np.ndarray, "layer head label"]
    """Probabilities; of a regression head the score."""
    target: int
    cached: bool = False

    @property
    def fall(self) -> PerHead:
        """m minus m with the head off, as occlusion has it: positive where the head speaks for the class."""
        return self.whole[self.target] - self.off[..., self.target]

    @property
    def flipped(self) -> Bool[np.ndarray, "layer head"]:
        """Whether another class is predicted without the head."""
        return self.off.argmax(-1) != self.whole.argmax()


def switch_off_each(request: Request, report: Report | None = None, cancel: CancelToken | None = None) -> HeadAblation:
    """Switch off each head in turn, many of them in one pass, on top of the request's own scales.

    `report` hears of model evaluations.
    """
    with cancellable(cancel), reporting(report):
        probe = probe_heads(request)
        _, arrays, hit = _cached_or(switching_key(request), lambda: _switch_off(probe))
    return HeadAblation(arrays["whole"], arrays["off"], probe.explanation.provenance.target, hit)


def switching_key(request: Request) -> str:
    """The cache key of the predictions: one for all classes, because they hold every class."""
    return _key("heads_off", SWITCHING_VERSION, dataclasses.replace(plain_probe(request), target=None))


def _switch_off(probe: HeadProbe) -> tuple[Meta, Arrays]:
    model, encoded = _load(probe.request)
    # One pass more. Without it, heads that cannot be switched would all be said to change nothing.
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
