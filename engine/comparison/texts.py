"""Comparison of two texts or prompts that the same model and method explain: what they share, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.metrics.ranking import is_constant, spearman
from engine.request import Example, Prompt, Request
from engine.result import Explanation, Provenance, explanation_to_json
from engine.word_units import AlignedColumn, Unit, align, units_of

FEWEST_SHARED = 3
"""Minimum number of shared units for a meaningful order."""


def other_request(request: Request, other: Example, explained: Provenance) -> Request:
    """Return the request for another text, for the class explained in the first, so that the maps are comparable."""
    if isinstance(other, Prompt):  # a class has another index in another prompt
        return replace(request, example=replace(other, target=explained.target_label), target=None)
    return replace(request, example=other, target=explained.target)


@dataclass(frozen=True, eq=False)
class TwoTextMaps:
    """The units of both texts with their scores. `columns`: the alignment of the units."""

    first: tuple[Unit, ...]
    second: tuple[Unit, ...]
    columns: tuple[AlignedColumn, ...]

    @property
    def shared(self) -> Float[np.ndarray, "2 shared"]:
        """Scores of the units that both texts have, one row per text; special units are left out."""
        return paired_scores(shared_units(self.first, self.second, self.columns))

    @property
    def agreement(self) -> float | None:
        """Spearman's rho of the shared units; None if they are too few, or all scores of a text are equal."""
        shared = self.shared
        if shared.shape[1] < FEWEST_SHARED or any(is_constant(scores) for scores in shared):
            return None
        return spearman(*shared)


def two_text_maps(first: Explanation, second: Explanation, texts: tuple[Example, Example], unit: str) -> TwoTextMaps:
    """Return the maps of two texts, aligned by what the texts have in common."""
    units, others = units_of(first, texts[0], unit), units_of(second, texts[1], unit)
    return TwoTextMaps(units, others, align(units, others))


def shared_units(
    first: Sequence[Unit], second: Sequence[Unit], columns: Sequence[AlignedColumn]
) -> tuple[tuple[Unit, Unit], ...]:
    """Return pairs of the units that both texts have; special ones are left out."""
    pairs = ((column.parent, column.child) for column in columns if column.kind == "kept")
    units = ((first[i], second[j]) for i, j in pairs if i is not None and j is not None)
    return tuple((one, other) for one, other in units if not one.special)


def paired_scores(pairs: Sequence[tuple[Unit, Unit]]) -> Float[np.ndarray, "2 shared"]:
    """Return the scores of both units of each pair, one row per text."""
    return np.array([[one.score, other.score] for one, other in pairs], dtype=np.float64).reshape(-1, 2).T


def two_texts_to_json(code: str, second: Explanation, maps: TwoTextMaps) -> dict[str, Any]:
    """Return a column's map of the second text in full, and both maps on aligned units; null for missing units."""
    return {
        "column": code,
        **explanation_to_json(second),
        "units": [_unit_to_json(maps, column) for column in maps.columns if not _is_special(maps, column)],
        "shared": maps.shared.shape[1],
        "spearman": maps.agreement,
    }


def _unit_to_json(maps: TwoTextMaps, column: AlignedColumn) -> dict[str, Any]:
    units = _units_at(maps, column)
    return {
        "texts": [None if unit is None else unit.text for unit in units],
        "scores": [None if unit is None else float(unit.score) for unit in units],
        "shared": column.kind == "kept",
    }


def _is_special(maps: TwoTextMaps, column: AlignedColumn) -> bool:
    return any(unit is not None and unit.special for unit in _units_at(maps, column))


def _units_at(maps: TwoTextMaps, column: AlignedColumn) -> tuple[Unit | None, Unit | None]:
    first = None if column.parent is None else maps.first[column.parent]
    return first, None if column.child is None else maps.second[column.child]
