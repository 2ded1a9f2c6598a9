"""All heads of one example read at once: one pass forward, one back, kept like any result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.classifiers import AnyClassifier, Coded, load_classifier
from engine.errors import Cancelled, ExegesisError
from engine.explain import explain, key_of, require_finite
from engine.explainers.attention import gradient_weighted, pooled_rows
from engine.heads.running import size
from engine.heads.scales import HeadScales
from engine.heads.scores import Attention, PerHead, attention_distance, entropy, received, special_share
from engine.late import torch
from engine.metrics.without import PROBE
from engine.models.attention import scale_heads
from engine.models.classifier import as_float64
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers change."""


@dataclass(frozen=True, eq=False)
class HeadReading:
    """Every head's attention to one example, what each score says of it, and what the class makes of it."""

    of: Explanation
    """Tokens, grid, prediction and provenance; its scores are chance."""
    attention: Attention
    """Probabilities in half precision (within 0.05 % of themselves); NaN where a query may not attend."""
    scores: dict[str, PerHead]
    """Distance, entropy, special, importance: by the ids of `engine.heads.scores.SCORES`."""
    slope: PerHead
    """Derivative of the class's logit by each head's scale: positive where more of the head speaks for the class."""
    weighted: Float[np.ndarray, "layer query key"]
    """Mean over heads of what, in attention times the logit's gradient, speaks for the class (Chefer et al., eq. 5)."""
    reads: Float[np.ndarray, "query"]
    """Where the model pools for its prediction, as shares of 1."""
    causal: bool
    cached: bool = False

    @property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.array([token.special for token in self.of.tokens])

    @property
    def scales(self) -> PerHead:
        """What each head's output was multiplied by."""
        return HeadScales(self.of.provenance.heads).grid(*self.slope.shape)

    def received(self, query: int | None = None) -> Float[np.ndarray, "layer head feature"]:
        """What each feature receives of each head, on average or from one position."""
        return received(self.attention, self.of.features, query)


def read_heads(request: Request, cancel: CancelToken | None = None) -> HeadReading:
    """The reading of the request's example and class, its heads so scaled. The method and the seed do not matter."""
    with cancellable(cancel):
        probe = probed(request)
        meta, arrays, hit = from_cache_or(_key(probe), lambda: _measured(probe))
    return _unpacked(probe.made, meta, arrays, hit)


def reading_key(request: Request) -> str:
    """The cache key of the reading. It names the class by its index, so that the prediction is made for it."""
    return _key(probed(request))


@dataclass(frozen=True, eq=False)
class Probe:
    """An example with its tokens and prediction, and the request by the index of its class."""

    request: Request
    made: Explanation


def probed(request: Request) -> Probe:
    """Costs no pass beyond the prediction."""
    probe = plain_probe(request)
    made = explain(probe)
    return Probe(dataclasses.replace(probe, target=made.provenance.target), made)


def plain_probe(request: Request) -> Request:
    """What asks for no more than the tokens and the prediction, whatever method was asked for."""
    return dataclasses.replace(request, method=PROBE, params={}, seed=0)


def _key(probe: Probe) -> str:
    return key_of_kind(probe.request, "heads", VERSION)


def key_of_kind(request: Request, kind: str, version: int) -> str:
    """The key of something that is made of a probed request."""
    return key_for({"kind": kind, "version": version, "of": key_of(request)})


def from_cache_or(key: str, compute: Callable[[], tuple[Meta, Arrays]]) -> tuple[Meta, Arrays, bool]:
    """From the cache, or computed in the device's turn, once for all who ask."""

    def in_turn() -> tuple[Meta, Arrays]:
        with runtime.turn():
            return compute()

    return single_flight(result_store(), key, in_turn, alone=(Cancelled,), check=check_cancelled)


def model_of(request: Request) -> AnyClassifier:
    """The request's model, as it is. The caller holds the turn."""
    return load_classifier(request.example.kind, request.model, request.dtype, runtime.device())


def scales_of(model: AnyClassifier, heads: HeadScales, rows: int = 1) -> Float[torch.Tensor, "row layer head"]:
    """The scales as the attention mechanism takes them, the same in each row."""
    grid = torch.from_numpy(heads.grid(*size(model))).to(model.device, model.dtype)
    return grid.repeat(rows, 1, 1)


def _measured(probe: Probe) -> tuple[Meta, Arrays]:
    model, heads = model_of(probe.request), probe.request.heads
    encoded = model.encode(probe.request.example)
    # One row in a chunk of one: what runs out of memory is told in words.
    [(attention, slope, for_class)] = runtime.in_chunks(
        lambda _: _pass(model, encoded, probe.made.provenance.target, heads), 1, 1
    )
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


def _pass(
    model: AnyClassifier, encoded: Coded, target: int, heads: HeadScales
) -> tuple[Attention, PerHead, Float[np.ndarray, "layer query key"]]:
    batch = model.collate([encoded])
    scales = scales_of(model, heads).requires_grad_()
    with scale_heads(model.module, model.blocks, scales):
        logits, recorder = model.captured(batch, model.embed(batch).detach().requires_grad_())
    require_attention(model, len(recorder.probabilities))
    slope, *slopes = torch.autograd.grad(logits[0, target], [scales, *recorder.probabilities], materialize_grads=True)
    attention = torch.cat([layer.detach().float() for layer in recorder.probabilities])
    pairs = zip(recorder.probabilities, slopes, strict=True)
    for_class = torch.cat([gradient_weighted(layer.detach(), of).float() for layer, of in pairs])
    return attention.cpu().numpy(), as_float64(slope[0]), for_class.cpu().numpy()


def require_attention(model: AnyClassifier, layers: int) -> None:
    """Refuses a model whose layers do not all show their attention."""
    if layers != len(model.blocks):
        raise ExegesisError(
            f"model {model.id}: {layers} of its {len(model.blocks)} layers yield attention, so its heads cannot be "
            "shown. Use a model of a supported family as transformers has it."
        )


def _unpacked(made: Explanation, meta: Meta, arrays: Arrays, hit: bool) -> HeadReading:
    scores = {name: arrays[name] for name in ("distance", "entropy", "special")}
    return HeadReading(
        of=made,
        attention=arrays["attention"],
        scores={**scores, "importance": np.abs(arrays["slope"])},
        slope=arrays["slope"],
        weighted=arrays["weighted"],
        reads=arrays["reads"],
        causal=meta["causal"],
        cached=hit,
    )
