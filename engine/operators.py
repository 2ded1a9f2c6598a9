"""The names of the removal operators, apart from what carries them out: a link and a list of choices load no model."""

from __future__ import annotations

from engine.errors import unknown

OPERATORS = ("mask", "pad", "delete", "zero", "mean")
"""How tokens of a text are removed."""
PATCH_OPERATORS = ("mean", "zero", "blur", "drop")
"""How patches of a picture are removed."""
HIDING = ("delete", "drop")
"""The operators that hide a position from attention; the others put an embedding in place."""
BASELINES = tuple(operator for operator in OPERATORS if operator not in HIDING)
"""The operators that put an embedding in place, so that a path can lead there."""
PATCH_BASELINES = tuple(operator for operator in PATCH_OPERATORS if operator not in HIDING)

_OF_KIND = {"text": OPERATORS, "image": PATCH_OPERATORS}


def operators_of(kind: str) -> tuple[str, ...]:
    """The operators for inputs of a kind, "text" or "image"."""
    return _OF_KIND[kind]


def check_operator(operator: str, kind: str) -> None:
    """Refuses an operator that such inputs do not have."""
    if operator not in _OF_KIND[kind]:
        raise unknown("removal", operator, _OF_KIND[kind])
