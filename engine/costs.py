"""About how often a model runs for a map, before it is made."""

from __future__ import annotations

from collections.abc import Mapping

from engine.params import as_plain, from_mapping
from engine.registry import Explainer

LENGTH = 24
"""Units of an example, where what it costs grows with them."""
EXHAUSTIVE = 2048
A_PASS, WITH_GRADIENTS = 1, 2


def rows_of(method: Explainer, given: Mapping[str, object]) -> int:
    """About how many model rows a map takes; an ensemble takes its members', which are counted by themselves."""
    params = as_plain(from_mapping(method.params, given, method.id))
    for name in ("n_samples", "n_steps"):
        if name in params:
            return int(str(params[name]))
    if method.family == "ensemble":
        return 0
    if method.cheap:
        return A_PASS if method.family == "attention" else WITH_GRADIENTS
    return LENGTH if method.family == "perturbation" and "shapley" not in method.id else EXHAUSTIVE
