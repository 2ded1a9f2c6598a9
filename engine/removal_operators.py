"""Names of the removal operators, separate from `engine.removal`, since links and lists of choices need no model."""

from __future__ import annotations

from collections.abc import Mapping

from engine.params import Plain

OPERATORS = ("mask", "pad", "delete", "hide", "zero", "mean")
"""Ways to remove tokens of a text."""
PATCH_OPERATORS = ("mean", "zero", "blur", "drop")
"""Ways to remove patches of a picture."""
REMOVED_AS = {
    "mask": "masked",
    "pad": "replaced by padding",
    "delete": "deleted",
    "hide": "hidden from attention",
    "zero": "set to zero",
    "mean": "replaced by the mean",
    "blur": "blurred",
    "drop": "left out",
}
"""The effect of an operator on tokens or patches as a participle, for sentences."""
DELETE = "delete"
"""The operator that takes tokens out of the sequence."""
DROP = "drop"
"""The operator that takes patches out of the sequence."""
HIDING = ("hide", DROP)
"""The operators that hide a position from attention; all others but `delete` insert an embedding."""
BASELINES = tuple(operator for operator in OPERATORS if operator not in (DELETE, *HIDING))
"""The operators that insert an embedding, so that a path can end there."""
PATCH_BASELINES = tuple(operator for operator in PATCH_OPERATORS if operator not in HIDING)
IN_KEYS = {DELETE: "delete, positions closed up"}
"""Names in cache keys of operators whose meaning has changed (`delete` once hid the position), so that no older result
is served for them."""


def keyed(operator: Plain) -> Plain:
    """Return the name of an operator in cache keys, or None without an operator."""
    return IN_KEYS.get(operator, operator) if isinstance(operator, str) else operator


def keyed_params(params: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the parameters of a method as in cache keys."""
    return {name: keyed(value) if name == "removal" else value for name, value in params.items()}
