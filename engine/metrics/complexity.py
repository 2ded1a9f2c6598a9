"""How much a map asks of its reader: a few large scores are read at once, many of one size are not."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

FLAT = "all scores are zero"


def complexity(scores: Float[np.ndarray, "unit"]) -> float | None:
    """Entropy of `|a| / sum |a|` in nats: 0 for one score alone, log n where all have one size. None of a zero map.

    Source: Bhatt et al. (2020), Evaluating and aggregating feature-based model explanations, complexity.
    """
    size = np.abs(scores)
    total = size.sum()
    if total == 0:
        return None
    share = size[size > 0] / total
    return float(-(share * np.log(share)).sum()) + 0.0
