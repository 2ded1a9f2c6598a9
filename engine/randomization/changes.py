"""Which examples a randomization changed most: each example's own mean likeness, and examples in its order."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.randomization.measures import MEASURES
from engine.randomization.result import OfModel

ORDERS = ("index", "most", "least")
"""As in the data set; the most changed first; the least changed first."""


def changes_of(found: OfModel, method: str, mode: str, stage: int, measure: str) -> Float[np.ndarray, "example"]:
    """How like the original each example's map is: a mean over seeds and stages, NaN without a value.

    `stage`: its number along the curve of that mode, 0 for all of them.
    """
    which = [at for at, one in enumerate(found.stages) if one.mode == mode and stage in (0, one.number)]
    own = found.likeness[which][:, :, found.methods.index(method), MEASURES.index(measure)]
    values = own.reshape(-1, len(found.examples))
    having = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(having, values, 0.0).sum(0) / having.sum(0)


def ordered(found: OfModel, changes: Float[np.ndarray, "example"], order: str) -> list[int]:
    """The places of the examples in `found.examples`, by one of `ORDERS`; those without a value come last."""
    if order == ORDERS[0]:
        return sorted(range(len(found.examples)), key=found.examples.__getitem__)
    keys = changes if order == ORDERS[1] else -changes
    return [int(at) for at in np.argsort(keys, kind="stable")]  # NaN is sorted to the end
