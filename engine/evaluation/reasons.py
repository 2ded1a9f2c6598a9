"""Why examples are skipped, for people: reasons that differ in their numbers alone are one."""

from __future__ import annotations

import re
from collections.abc import Mapping

SAME = "all maps of the method are the same everywhere on this model, so that they put nothing in order"
NUMBER = re.compile(r"-?\d[\d,.]*(?<=\d)")


def alike(skipped: Mapping[str, int]) -> dict[str, int]:
    """Counts by reason; of reasons that differ in numbers alone, the first, which says that the others are like it."""
    groups: dict[str, list[str]] = {}
    for reason in skipped:
        groups.setdefault(NUMBER.sub("#", reason), []).append(reason)
    return {_told(group): sum(skipped[reason] for reason in group) for group in groups.values()}


def counted(skipped: Mapping[str, int]) -> str:
    """How many examples have no value, and why, the commonest reason first; empty where all have one."""
    ordered = sorted(alike(skipped).items(), key=lambda one: -one[1])
    return "; ".join(f"{number:,}: {reason.rstrip('.')}" for reason, number in ordered)


def _told(group: list[str]) -> str:
    return group[0] if len(group) == 1 else f"such as: {group[0]}"
