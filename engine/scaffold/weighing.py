"""λ of finished explainers in plain NumPy: pages that show them import nothing that runs models.

The same projections as `engine.scaffold.normalising`, which teaching differentiates through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

from engine.errors import unknown

Weights = Float[np.ndarray, "head"]


def weights_of(phi: Float[np.ndarray, "head"], normalise: str) -> Weights:
    """`λ = normalize(φ)` in double precision. Errors list the known projections."""
    if normalise not in _PROJECTIONS:
        raise unknown("normalisation", normalise, _PROJECTIONS)
    return _PROJECTIONS[normalise](np.asarray(phi, dtype=np.float64))


def _sparsemax(phi: Weights) -> Weights:
    """Martins and Astudillo (2016), algorithm 1."""
    ordered = np.sort(phi)[::-1]
    places = np.arange(1, len(phi) + 1)
    count = int((1 + places * ordered > ordered.cumsum()).sum())
    return np.maximum(phi - (ordered[:count].sum() - 1) / count, 0.0)


def _entmax15(phi: Weights) -> Weights:
    """Peters et al. (2019), algorithm 2."""
    half = phi / 2
    ordered = np.sort(half)[::-1]
    places = np.arange(1, len(phi) + 1)
    mean = ordered.cumsum() / places
    spread = (ordered**2).cumsum() - places * mean**2
    thresholds = mean - np.sqrt(np.maximum((1 - spread) / places, 0.0))
    threshold = thresholds[int((thresholds <= ordered).sum()) - 1]
    return np.maximum(half - threshold, 0.0) ** 2


def _softmax(phi: Weights) -> Weights:
    powers = np.exp(phi - phi.max())
    return powers / powers.sum()


def _none(phi: Weights) -> Weights:
    return phi.copy()


_PROJECTIONS: Mapping[str, Callable[[Weights], Weights]] = {
    "sparsemax": _sparsemax,
    "softmax": _softmax,
    "entmax15": _entmax15,
    "none": _none,
}
