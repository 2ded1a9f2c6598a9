"""Names of the removal operators, apart from `engine.removal`: a link or a list of choices needs no model."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import unknown
from engine.params import Plain

OPERATORS = ("mask", "pad", "delete", "hide", "zero", "mean")
"""How tokens of a text are removed."""
PATCH_OPERATORS = ("mean", "zero", "blur", "drop")
"""How patches of a picture are removed."""
DELETE = "delete"
"""The operator that takes tokens out of the sequence."""
HIDING = ("hide", "drop")
"""The operators that hide a position from attention; all others but `delete` put an embedding in place."""
BASELINES = tuple(operator for operator in OPERATORS if operator not in (DELETE, *HIDING))
"""The operators that put an embedding in place, so that a path can lead there."""
PATCH_BASELINES = tuple(operator for operator in PATCH_OPERATORS if operator not in HIDING)
IN_KEYS = {DELETE: "delete, positions closed up"}
"""What cache keys call an operator that once meant something else (`delete` hid the position), so that nothing older is
served for it."""

_OF_KIND = {"text": OPERATORS, "image": PATCH_OPERATORS}


def operators_of(kind: str) -> tuple[str, ...]:
    """Return the operators for inputs of a kind, "text" or "image"."""
    return _OF_KIND[kind]


def keyed(operator: Plain) -> Plain:
    """Return an operator, or None where none is named, as cache keys name it."""
    return IN_KEYS.get(operator, operator) if isinstance(operator, str) else operator


def keyed_params(params: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the parameters of a method as cache keys name them."""
    return {name: keyed(value) if name == "removal" else value for name, value in params.items()}


def check_operator(operator: str, kind: str) -> None:
    """Refuse an operator that inputs of that kind do not have."""
    if operator not in _OF_KIND[kind]:
        raise unknown("removal", operator, _OF_KIND[kind])
