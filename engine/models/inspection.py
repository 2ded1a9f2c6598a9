"""Inspection of a model: load it, run one input, and compare its files with its card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from engine import runtime
from engine.explain import predict_encoded
from engine.input_kinds import input_kind, kind_of_model
from engine.models import catalog
from engine.models.causal import CausalModel
from engine.models.checkpoint_files import weights_sha256
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_image_model, load_model
from engine.models.text_classifier import TextClassifier
from engine.request import Example, Picture
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import read_view

FROM_CARD = ("title", "licence", "command", "metric", "scores", "intended_use", "limits")
TRIAL = "A short sentence, to see that it runs."


def inspect_model(name: str) -> dict[str, Any]:
    """Inspect a model: facts and checks as plain values. Errors: why the model is unusable, in one sentence."""
    facts = input_kind(kind_of_model(name)).inspect_model(name)
    card, checks = catalog.card(name), facts.pop("checks")
    if card.get("sha256"):
        checks.append(check_weights(name))
    return {**facts, **{key: card.get(key) for key in FROM_CARD}, "checks": checks}


def inspect_text_model(name: str) -> dict[str, Any]:
    """Inspect a text model on one sentence. Errors: why the model is unusable, in one sentence."""
    with runtime.turns():
        model = load_model(name, device=runtime.device())
        checks = [_check_run(model), _check_offsets(model)]
    base, task = catalog.locate(name).base, "regression" if model.regression else "classification"
    origin = {"base": None if base is None else str(base)}
    sizes = {"longest_input": model.max_length}
    if isinstance(model, CausalModel):
        task, sizes = "language model: the next token", {**sizes, "vocabulary": model.vocabulary}
    return _facts(name, model, origin, task, sizes, checks)


def inspect_image_model(name: str) -> dict[str, Any]:
    """Inspect an image model on one picture. Errors: why the model is unusable, in one sentence."""
    with runtime.turns():
        model = load_image_model(name, device=runtime.device())
        checks = [_check_run_on_gray(model)]
    return _facts(name, model, {}, "classification of pictures", read_view(name).describe(), checks)


def _facts(
    name: str, model: AnyClassifier, origin: Mapping[str, Any], task: str, sizes: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Return the facts that all models share. `origin`, `sizes`: further facts that depend on the kind of model."""
    source = catalog.locate(name)
    return {
        "name": name,
        "kind": source.kind,
        "folder": str(source.folder),
        **origin,
        "family": model.adapter.family,
        "task": task,
        "labels": list(model.labels),
        # ALBERT's blocks share their memory.
        "parameters": sum({(p.data_ptr(), p.shape): p.numel() for p in model.module.parameters()}.values()),
        "blocks": len(model.blocks),
        **sizes,
        "revision": model.revision,
        "checks": list(checks),
    }


def check_weights(name: str) -> dict[str, Any]:
    """Check the stored weights against the hash in the card."""
    expected, actual = catalog.card(name).get("sha256"), weights_sha256(catalog.locate(name).folder)
    detail = f"SHA-256 {actual[:12]}…"
    if actual != expected:
        detail += f", the card says {str(expected)[:12]}…: damaged or changed"
    return {"name": "weights match the card", "ok": actual == expected, "detail": detail}


def _check_run(model: TextClassifier) -> dict[str, Any]:
    [prediction] = predict_encoded(model, [model.encode(Example(TRIAL))])
    finite = all(map(math.isfinite, prediction.logits))
    if not finite:
        detail = "its logits are not finite"
    elif model.regression:
        detail = f"{prediction.logits[0]:.3f}"
    else:
        label = repr(prediction.label) if isinstance(model, CausalModel) else prediction.label
        detail = f"{label} {prediction.probabilities[prediction.index]:.3f}"
    return {"name": "a sentence runs", "ok": finite, "detail": detail}


def _check_offsets(model: TextClassifier) -> dict[str, Any]:
    tokens = [t for t in model.encode(Example(TRIAL)).tokens if not t.special]
    good = all(TRIAL[t.start : t.end] == t.text for t in tokens if t.end > t.start)
    detail = f"{len(tokens)} tokens in {len(TRIAL)} characters"
    return {"name": "tokens have character offsets", "ok": good, "detail": detail}


def _check_run_on_gray(model: ImageClassifier) -> dict[str, Any]:
    gray = np.full((*model.size, 3), 128, dtype=np.uint8)
    with torch.inference_mode():
        encoded = [model.encode(Picture(gray))]
        [prediction] = model.predictions(model.logits(model.collate(encoded)), encoded)
    finite = all(map(math.isfinite, prediction.logits))
    detail = (
        f"gray is {prediction.label} {max(prediction.probabilities):.3f}" if finite else "its logits are not finite"
    )
    return {"name": "a picture runs", "ok": finite, "detail": detail}
