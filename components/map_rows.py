"""Maps as rows for files and data frames: one row per token with a column per method, or one row per patch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from components.widgets.patch_map import patch_map
from engine.registry import Explainer
from engine.result import Explanation


def token_rows(
    explanations: Sequence[Explanation], above: Mapping[str, Mapping[int, float]] = MappingProxyType({})
) -> Iterator[dict[str, Any]]:
    """Yield one row per token, with a column per method. `above`: columns before these, as values by position."""
    columns = {**above, **{one.provenance.method: dict(enumerate(one.scores.tolist())) for one in explanations}}
    for position, token in enumerate(explanations[0].tokens):
        yield {
            "token": token.text,
            "start": token.start,
            "end": token.end,
            "segment": None if token.special else token.segment,
            "special": "true" if token.special else "false",
            **{name: scores[position] for name, scores in columns.items()},
        }


def patch_rows(method: Explainer, explanation: Explanation) -> Iterator[dict[str, Any]]:
    """Yield one row per patch. Rows and columns count from 1, as do ranks; rank 1 is the largest absolute score."""
    view = patch_map(method, explanation)
    for patch, score in enumerate(view.scores.ravel().tolist()):
        yield {
            "method": method.id,
            "row": patch // view.grid[1] + 1,
            "column": patch % view.grid[1] + 1,
            "score": score,
            "rank": view.ranks[patch],
        }
