"""Explanations as JSON (the contract of `exegesis explain --json`) and as the entries of the cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.result import Check, Explanation, Prediction, Provenance, Token

Meta = dict[str, Any]
Arrays = dict[str, np.ndarray]


def pack(explanation: Explanation) -> tuple[Meta, Arrays]:
    """Split an explanation into JSON metadata and arrays."""
    meta = {
        "tokens": [dataclasses.astuple(t) for t in explanation.tokens],
        "prediction": dataclasses.asdict(explanation.prediction),
        "provenance": _plain_provenance(explanation.provenance),
        "evaluations": explanation.evaluations,
        "seconds": explanation.seconds,
        "check": None if explanation.check is None else check_to_json(explanation.check),
        "notes": list(explanation.notes),
        "truncated": explanation.truncated,
        "extras": dict(explanation.extras),
        "grid": explanation.grid,
    }
    return meta, {"scores": explanation.scores}


def unpack(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Explanation:
    """Rebuild an explanation from what `pack` returned; it is marked as cached."""
    return Explanation(
        tokens=tuple(Token(*t) for t in meta["tokens"]),
        scores=np.array(arrays["scores"]),
        prediction=unpack_prediction(meta["prediction"]),
        provenance=_provenance(meta["provenance"]),
        evaluations=meta["evaluations"],
        seconds=meta["seconds"],
        check=None if meta["check"] is None else _check(meta["check"]),
        notes=tuple(meta["notes"]),
        truncated=meta["truncated"],
        extras=meta["extras"],
        cached=True,
        grid=tuple(meta["grid"]) if meta.get("grid") else None,
    )


def _check(meta: Mapping[str, Any]) -> Check:
    return Check(**{**meta, "also": _check(meta["also"])}) if "also" in meta else Check(**meta)


def _plain_provenance(provenance: Provenance) -> Meta:
    """Leave the heads out where none is scaled, as entries that are older than head scaling do."""
    plain = dataclasses.asdict(provenance)
    return plain if provenance.heads else {name: value for name, value in plain.items() if name != "heads"}


def _provenance(meta: Mapping[str, Any]) -> Provenance:
    heads = tuple((layer, head, scale) for layer, head, scale in meta.get("heads", ()))
    return Provenance(**{**meta, "heads": heads})


def unpack_prediction(meta: Mapping[str, Any]) -> Prediction:
    """Rebuild a prediction from its `dataclasses.asdict`."""
    return Prediction(tuple(meta["labels"]), tuple(meta["logits"]), tuple(meta["probabilities"]), meta["regression"])


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON: `features` of a text, `grid` and `scores` of a picture."""
    origin, check = explanation.provenance, explanation.check
    return {
        "model": origin.model,
        "revision": origin.revision,
        "method": origin.method,
        "version": origin.version,
        "params": dict(origin.params),
        "prediction": prediction_to_json(explanation),
        "target": origin.target_label,
        **({"features": _features(explanation)} if explanation.grid is None else _patches(explanation)),
        "check": None if check is None else {**check_to_json(check), "ok": check.ok},
        "evaluations": explanation.evaluations,
        "seconds": explanation.seconds,
        "cached": explanation.cached,
        "seed": origin.seed,
        "dtype": origin.dtype,
        "device": origin.device,
        **({"extras": dict(explanation.extras)} if explanation.extras else {}),
        **({"heads": [list(head) for head in origin.heads]} if origin.heads else {}),
        "truncated": explanation.truncated,
        "notes": list(explanation.remarks),
    }


def check_to_json(check: Check) -> dict[str, Any]:
    """Return a check as JSON; `also` is there only where the check has a second number."""
    own: dict[str, Any] = {"name": check.name, "value": check.value, "limit": check.limit}
    return own if check.also is None else {**own, "also": check_to_json(check.also)}


def _features(explanation: Explanation) -> list[dict[str, Any]]:
    """One object a token; offsets count characters of its own text."""
    scored = zip(explanation.tokens, explanation.scores.tolist(), strict=True)
    return [
        {
            "text": token.text,
            "start": token.start,
            "end": token.end,
            "score": score,
            "special": token.special,
            "segment": None if token.special else token.segment,
        }
        for token, score in scored
    ]


def _patches(explanation: Explanation) -> dict[str, Any]:
    """The grid, the scores of its patches row by row, and those of the special tokens, which are not patches."""
    scored = zip(explanation.tokens, explanation.scores.tolist(), strict=True)
    return {
        "grid": list(explanation.grid or ()),
        "scores": explanation.on_grid.ravel().tolist(),
        "special": [{"text": token.text, "score": score} for token, score in scored if token.special],
    }


def prediction_to_json(explanation: Explanation) -> dict[str, Any]:
    """Return the prediction as JSON. A regression head has a score in place of label and probabilities."""
    prediction = explanation.prediction
    if prediction.regression:
        return {"label": None, "probabilities": None, "score": prediction.logits[0]}
    return {
        "label": prediction.label,
        "probabilities": dict(zip(prediction.labels, prediction.probabilities, strict=True)),
        "score": None,
    }
