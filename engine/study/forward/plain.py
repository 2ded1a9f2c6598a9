"""The results of a study of guesses as plain values, for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from engine.study.forward.summary import Condition, ForwardSummary, Share


def forward_plain(found: ForwardSummary) -> dict[str, Any]:
    """All numbers, with a sentence for each part."""
    return {
        **asdict(found),
        "guesses": found.guesses,
        "cannot_tell": found.cannot_tell,
        "conditions": [_condition(one) for one in found.conditions],
        "by_sureness": _levels(found.by_sureness),
        "meanings": found.meanings,
    }


def _condition(one: Condition) -> dict[str, Any]:
    return {**asdict(one), "share": one.share and _share(one.share), "by_sureness": _levels(one.by_sureness)}


def _levels(shares: Mapping[int, Share]) -> dict[str, dict[str, Any]]:
    return {str(level): _share(share) for level, share in shares.items()}


def _share(share: Share) -> dict[str, Any]:
    return {"accuracy": share.accuracy, **asdict(share)}
