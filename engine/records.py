"""Explanations as plain metadata and arrays: what the cache stores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.plain import check_as_plain
from engine.result import Check, Explanation, Prediction, Provenance, Token

Meta = dict[str, Any]
Arrays = dict[str, np.ndarray]


def pack(explanation: Explanation) -> tuple[Meta, Arrays]:
    """Plain metadata and the scores."""
    meta = {
        "tokens": [dataclasses.astuple(t) for t in explanation.tokens],
        "prediction": dataclasses.asdict(explanation.prediction),
        "provenance": _plain_provenance(explanation.provenance),
        "evaluations": explanation.evaluations,
        "seconds": explanation.seconds,
        "check": None if explanation.check is None else check_as_plain(explanation.check),
        "notes": list(explanation.notes),
        "truncated": explanation.truncated,
        "extras": dict(explanation.extras),
        "grid": explanation.grid,
    }
    return meta, {"scores": explanation.scores}


def unpack(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Explanation:
    """The explanation that `pack` took apart, marked as cached."""
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
    """Without the heads where none was scaled: so the records of before there were any are the same as those of now."""
    plain = dataclasses.asdict(provenance)
    return plain if provenance.heads else {name: value for name, value in plain.items() if name != "heads"}


def _provenance(meta: Mapping[str, Any]) -> Provenance:
    heads = tuple((layer, head, scale) for layer, head, scale in meta.get("heads", ()))
    return Provenance(**{**meta, "heads": heads})


def unpack_prediction(meta: Mapping[str, Any]) -> Prediction:
    """The prediction whose `dataclasses.asdict` was stored."""
    return Prediction(tuple(meta["labels"]), tuple(meta["logits"]), tuple(meta["probabilities"]), meta["regression"])
