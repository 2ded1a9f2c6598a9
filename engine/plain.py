"""Explanations as plain values: the contract of `exegesis explain --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.result import Check, Explanation


def as_plain(explanation: Explanation) -> dict[str, Any]:
    """One explanation. A text has `features`, a picture `grid` and `scores`."""
    origin, check = explanation.provenance, explanation.check
    return {
        "model": origin.model,
        "revision": origin.revision,
        "method": origin.method,
        "version": origin.version,
        "params": dict(origin.params),
        "prediction": prediction_as_plain(explanation),
        "target": origin.target_label,
        **({"features": _features(explanation)} if explanation.grid is None else _patches(explanation)),
        "check": None if check is None else {**check_as_plain(check), "ok": check.ok},
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


def check_as_plain(check: Check) -> dict[str, Any]:
    """A check as plain values; without a second number nothing is said of one."""
    own: dict[str, Any] = {"name": check.name, "value": check.value, "limit": check.limit}
    return own if check.also is None else {**own, "also": check_as_plain(check.also)}


def _features(explanation: Explanation) -> list[dict[str, Any]]:
    """A token each; offsets count characters of its own text."""
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
    """Rows and columns of patches, their scores row by row, and those of the special tokens, which are no patches."""
    scored = zip(explanation.tokens, explanation.scores.tolist(), strict=True)
    return {
        "grid": list(explanation.grid or ()),
        "scores": explanation.on_grid.ravel().tolist(),
        "special": [{"text": token.text, "score": score} for token, score in scored if token.special],
    }


def prediction_as_plain(explanation: Explanation) -> dict[str, Any]:
    """For a regression head there is no class: label and probabilities are null, the score is not."""
    made = explanation.prediction
    if made.regression:
        return {"label": None, "probabilities": None, "score": made.logits[0]}
    return {
        "label": made.label,
        "probabilities": dict(zip(made.labels, made.probabilities, strict=True)),
        "score": None,
    }
