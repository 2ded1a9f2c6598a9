"""What the model says when a head is switched off: each head in turn, many of them in one pass."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from cache.codec import Arrays, Meta
from engine import runtime
from engine.classifiers import AnyClassifier, Coded
from engine.explain import require_finite
from engine.heads.reading import (
    Probe,
    from_cache_or,
    key_of_kind,
    model_of,
    plain_probe,
    probed,
    require_attention,
    scales_of,
)
from engine.heads.running import size
from engine.heads.scales import OFF
from engine.heads.scores import PerHead
from engine.late import torch
from engine.models.attention import scale_heads
from engine.models.classifier import as_float64
from engine.progress import CancelToken, Report, cancellable, reporting
from engine.request import Request

VERSION = 1
"""Raised whenever the numbers change."""


@dataclass(frozen=True, eq=False)
class SwitchedOff:
    """The answers with each head off, and with none off by the same computation (`whole`)."""

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


def switch_off_each(request: Request, report: Report | None = None, cancel: CancelToken | None = None) -> SwitchedOff:
    """Of the request's example, on top of its own scales. `report` hears of model evaluations."""
    with cancellable(cancel), reporting(report):
        probe = probed(request)
        _, arrays, hit = from_cache_or(key_of(request), lambda: _measured(probe))
    return SwitchedOff(arrays["whole"], arrays["off"], probe.made.provenance.target, hit)


def key_of(request: Request) -> str:
    """The cache key of the answers: one for all classes, because they hold every class."""
    return key_of_kind(dataclasses.replace(plain_probe(request), target=None), "heads_off", VERSION)


def _measured(probe: Probe) -> tuple[Meta, Arrays]:
    model = model_of(probe.request)
    encoded = model.encode(probe.request.example)
    _require_heads(model, encoded)
    layers, heads = size(model)
    rows = layers * heads + 1  # the last one with no head off

    def compute(part: slice) -> np.ndarray:
        wanted = np.arange(rows)[part]
        scales = scales_of(model, probe.request.heads, len(wanted))
        for row, head in enumerate(wanted):
            if head < rows - 1:
                scales[row, head // heads, head % heads] = OFF
        with torch.inference_mode(), scale_heads(model.module, model.blocks, scales):
            return as_float64(model.logits(model.collate([encoded] * len(wanted))))

    logits = np.concatenate(runtime.in_chunks(compute, rows, runtime.rows_at_once(model, len(encoded))))
    require_finite(model, "logits with a head switched off", logits)
    answers = logits if model.regression else _shares(logits)
    return {}, {"whole": answers[-1], "off": answers[:-1].reshape(layers, heads, -1)}


def _require_heads(model: AnyClassifier, encoded: Coded) -> None:
    """One pass more. Without it, heads that cannot be switched would all be said to change nothing."""
    with torch.inference_mode():
        _, recorder = model.captured(model.collate([encoded]))
    require_attention(model, len(recorder.probabilities))


def _shares(logits: Float[np.ndarray, "row label"]) -> Float[np.ndarray, "row label"]:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)
