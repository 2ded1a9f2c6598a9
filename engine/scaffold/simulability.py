"""Simulability: how well a student's answers agree with the teacher's (SMaT, eq. 1)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def simulability(
    student: Float[np.ndarray, "example label"], teacher: Float[np.ndarray, "example label"], regression: bool
) -> float | None:
    """Share of examples with the same class, 0 to 1; for scores Pearson's correlation, -1 to 1.

    None where it is not defined: answers that are no numbers, or scores that are all the same.
    """
    if not np.isfinite(student).all():
        return None
    if not regression:
        return float((student.argmax(1) == teacher.argmax(1)).mean())
    ours, theirs = student[:, 0], teacher[:, 0]
    if constant(ours) or constant(theirs):
        return None
    return float(np.corrcoef(ours, theirs)[0, 1])


def constant(scores: Float[np.ndarray, "example"]) -> bool:
    """Whether scores differ by no more than single precision rounds: a correlation with them would mean nothing."""
    return bool(np.ptp(scores) <= max(1e-9, 1e-6 * np.abs(scores).max()))
