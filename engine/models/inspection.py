"""What a model is and whether it can be used: loads it, runs one input, compares its files with its card."""

from __future__ import annotations

import math
from typing import Any

from engine import runtime
from engine.models import bases, catalog
from engine.models.load import load_model
from engine.models.text import TextClassifier
from engine.request import Example

FROM_CARD = ("title", "licence", "command", "metric", "scores", "intended_use", "limits")
TRIAL = "A short sentence, to see that it runs."


def inspect_model(name: str) -> dict[str, Any]:
    """Plain facts and checks. Errors: whatever makes the model unusable, in one sentence."""
    found = _inspect_images(name) if catalog.reads_pictures(name) else _inspect_text(name)
    card, checks = catalog.card(name), found.pop("checks")
    if card.get("sha256"):
        checks.append(stored_weights(name))
    return {**found, **{key: card.get(key) for key in FROM_CARD}, "checks": checks}


def _inspect_images(name: str) -> dict[str, Any]:
    # Here and not above: the two kinds of models need nothing of each other.
    from engine.vision.inspection import inspect_image_model

    return inspect_image_model(name)


def _inspect_text(name: str) -> dict[str, Any]:
    source = catalog.locate(name)
    with runtime.turns():
        model = load_model(name, device=runtime.device())
        checks = [_trial(model), _offsets(model)]
    return {
        "name": name,
        "kind": source.kind,
        "folder": str(source.folder),
        "base": None if source.base is None else str(source.base),
        "family": model.adapter.family,
        "task": "regression" if model.regression else "classification",
        "labels": list(model.labels),
        "parameters": sum(p.numel() for p in model.module.parameters()),
        "blocks": len(model.blocks),
        "longest_input": model.max_length,
        "revision": model.revision,
        "checks": checks,
    }


def stored_weights(name: str) -> dict[str, Any]:
    """Whether the stored weights are those that the card was written for."""
    wanted, got = catalog.card(name).get("sha256"), bases.weights_sha256(catalog.locate(name).folder)
    same = got == wanted
    told = (
        f"SHA-256 {got[:12]}…"
        if same
        else f"SHA-256 {got[:12]}…, the card says {str(wanted)[:12]}…: damaged or changed"
    )
    return _check("weights match the card", same, told)


def _trial(model: TextClassifier) -> dict[str, Any]:
    from engine.explain import predict_encoded

    [prediction] = predict_encoded(model, [model.encode(Example(TRIAL))])
    finite = all(map(math.isfinite, prediction.logits))
    answer = (
        f"{prediction.logits[0]:.3f}" if model.regression else f"{prediction.label} {max(prediction.probabilities):.3f}"
    )
    return _check("a sentence runs", finite, answer if finite else "its logits are not finite")


def _offsets(model: TextClassifier) -> dict[str, Any]:
    tokens = [t for t in model.encode(Example(TRIAL)).tokens if not t.special]
    good = all(TRIAL[t.start : t.end] == t.text for t in tokens if t.end > t.start)
    return _check("tokens know their characters", good, f"{len(tokens)} tokens in {len(TRIAL)} characters")


def _check(name: str, ok: bool, detail: str) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail}
