"""Who was ranked above whom, and Plackett and Luce's model as a second opinion on the order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from engine.study.ratings.matches import Match, methods_of, rank_table

ORDERS_OF_TIES = 10


def win_shares(matches: Sequence[Match]) -> Float[np.ndarray, "method method"]:
    """Share of votes in which the row's method is ranked above the column's; a tie is half a win. 0.5 with itself."""
    ranks = rank_table(matches)
    above = (ranks[:, :, None] < ranks[:, None, :]).mean(axis=0)
    tied = (ranks[:, :, None] == ranks[:, None, :]).mean(axis=0)
    return above + tied / 2


def plackett_luce(matches: Sequence[Match], seed: int = 0) -> dict[str, float]:
    """Log worth of each method, with mean 0: the maximum of the likelihood of the rankings, slightly regularised.

    Its model has no ties: a vote with ties counts as several orders that agree with it, drawn by the seed.
    Sources: Plackett (1975); Luce (1959); computed as by Maystre and Grossglauser (2015), I-LSR.
    """
    import choix

    methods, chance = methods_of(matches), np.random.default_rng(seed)
    drawn = [_strict(row, chance) for row in rank_table(matches) for _ in range(ORDERS_OF_TIES)]
    worths = choix.ilsr_rankings(len(methods), drawn, alpha=1e-3)
    return dict(zip(methods, (worths - worths.mean()).tolist(), strict=True))


def _strict(ranks: np.ndarray, chance: np.random.Generator) -> tuple[int, ...]:
    """An order from the best that agrees with the ranks; ties by chance."""
    return tuple(np.lexsort((chance.random(len(ranks)), ranks)).tolist())
