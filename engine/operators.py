"""The names of the removal operators, apart from what carries them out: a link and a list of choices load no model."""

from __future__ import annotations

OPERATORS = ("mask", "pad", "delete", "zero", "mean")
BASELINES = ("mask", "pad", "zero", "mean")
"""The operators that put an embedding in place, so that a path can lead there."""
