"""Maps held against what is known to be true of a picture: lines for each map's card, and a table of all methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from jaxtyping import Bool

from components.numbers import percent, plain
from engine.metrics.agreement import is_constant
from engine.metrics.truth import TruthScores, truth_by_chance, truth_scores, unscored
from engine.registry import Explainer
from engine.result import Explanation
from engine.vision.view import view_of

if TYPE_CHECKING:
    import pandas as pd

Patches = Bool[np.ndarray, "row column"]

CHANCE = "By chance, on average"
WIDTH = 860
"""Of the table, in pixels."""
CAUTION = (
    "True are the patches that the outline covers at least half. Overlap: how many of them are among as many patches "
    "with the highest scores; exact: whether all of them are. Pointing game: whether the highest patch is true (Zhang "
    "et al., 2018). Mean rank: how many of the highest patches it takes to hold all true ones. The outline says where "
    "the thing is, and not what the model uses: a map may be right about a model that looks elsewhere."
)


def true_patches(model: str, mask: Bool[np.ndarray, "height width"] | None) -> Patches | None:
    """The patches that belong to a picture's mask, in the model's own grid; None where the truth is not known."""
    return None if mask is None else view_of(model).patches(mask)


def truth_lines(made: Explanation, truth: Patches | None, seed: int) -> list[str]:
    """What to say beside one map: overlap, pointing game, mean rank, each with what chance gets."""
    if truth is None:
        return []
    if reason := unscored(truth, "patch"):
        return [f"Not held against the truth: {reason}"]
    found, chance = truth_scores(made.on_grid, truth, (seed,)), truth_by_chance(truth.size, int(truth.sum()))
    lines = [_overlap(found, chance), _pointing(found, chance), _mean_rank(found, chance)]
    flat = ["All scores are equal, so what comes first is chance:"] if is_constant(made.on_grid.ravel()) else []
    return flat + lines


def truth_area(
    methods: Mapping[str, Explainer], made: Mapping[str, Explanation], truth: Patches | None, seed: int
) -> None:
    """Below the maps: a row a method, what chance gets above them. Nothing where the truth is not known."""
    if truth is None or unscored(truth) or not made:
        return
    st.subheader("Against the truth", anchor=False)
    rows = {methods[id].title: truth_scores(one.on_grid, truth, (seed,)) for id, one in made.items()}
    table = truth_table(rows, truth_by_chance(truth.size, int(truth.sum())))
    st.dataframe(
        table, hide_index=True, width=WIDTH, height="content", key="picture_truth_table", column_config=_formats(table)
    )
    st.caption(CAUTION)


def truth_table(rows: Mapping[str, TruthScores], chance: TruthScores) -> pd.DataFrame:
    """What chance gets, then the methods, the best overlap first. Shares are in percent."""
    import pandas as pd

    best = sorted(rows.items(), key=lambda row: (-row[1].overlap, row[1].mean_rank))
    return pd.DataFrame([_row(name, found) for name, found in [(CHANCE, chance), *best]])


def _row(name: str, found: TruthScores) -> dict[str, str | float]:
    return {
        "Method": name,
        "Overlap": 100 * found.overlap,
        "Exact": 100 * found.exact,
        "Pointing game": 100 * found.pointing,
        f"Mean rank, of {found.n}": found.mean_rank,
        "Mean rank, share": 100 * found.mean_rank_pct,
        "Mean of the ranks": found.mean_of_ranks,
    }


def _formats(table: pd.DataFrame) -> dict[str, object]:
    shares = {"Overlap", "Exact", "Pointing game", "Mean rank, share"}
    return {
        name: st.column_config.NumberColumn(format="%.1f %%" if name in shares else "%.1f")
        for name in table.columns
        if name != "Method"
    }


def _overlap(found: TruthScores, chance: TruthScores) -> str:
    if found.size == 1:
        said = f"the highest patch is {'' if found.exact else 'not '}the only true one"
    elif found.exact:
        said = f"the {found.size} highest patches are exactly the true ones"
    else:
        said = f"{round(found.overlap * found.size)} of the {found.size} highest patches are true"
    return f"Overlap {percent(found.overlap)}: {said} (by chance {percent(chance.overlap)})."


def _pointing(found: TruthScores, chance: TruthScores) -> str:
    said = "hit, the highest patch is true" if found.pointing else "missed, the highest patch is not true"
    return f"Pointing game: {said} (by chance {percent(chance.pointing)})."


def _mean_rank(found: TruthScores, chance: TruthScores) -> str:
    rank = f"{found.mean_rank:.0f}"
    return (
        f"Mean rank {rank} of {found.n}: the {rank} highest hold all true patches "
        f"(at best {found.size}, by chance {plain(chance.mean_rank)})."
    )
