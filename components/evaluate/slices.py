"""The examples of one slice, by the name that a chart gives it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.evaluation.result import Evaluation


def cut_to(found: Evaluation, name: str, by: str, model: str) -> Evaluation:
    """The evaluation of that slice of what one model did: of `by`, else of any.

    All of it without a name, nothing of an unknown one.
    """
    from engine.evaluation.views.slices import SLICES, slices

    if not name:
        return found
    own = found.slice(lambda fact: fact.model == model)
    for one in sorted(SLICES, key=lambda known: known != by):
        parts = {part.name: part.found for part in slices(own, one)}
        if name in parts:
            return parts[name]
    return dataclasses.replace(found, rows=(), skips=(), facts=())
