"""Maps held against what is known to be true of a picture: lines for each map's card, and a table of all methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from jaxtyping import Bool

from components.numbers import percent, plain
from components.picture_session import key
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
MEANING = (
    "Overlap: how many of them are among as many patches with the highest scores. Pointing game: whether the highest "
    "patch is true (Zhang et al., 2018). All true within the top: how many of the highest patches it takes to hold all "
    "true ones. "
)
CAUTION = (
    "The outline says what the label comes from, and not what the model uses: a map may be right about a model that "
    "looks elsewhere."
)


def true_patches(model: str, mask: Bool[np.ndarray, "height width"] | None) -> Patches | None:
    """The patches that belong to a picture's mask, in the model's own grid; None where the truth is not known."""
    return None if mask is None else view_of(model).patches(mask)


def truth_lines(made: Explanation, truth: Patches | None, seed: int) -> list[str]:
    """What to say beside one map, a line each. What they mean and chance gets: `meaning`."""
    if truth is None:
        return []
    if reason := unscored(truth, "patch"):
        return [f"Not held against the truth: {reason}"]
    found = truth_scores(made.on_grid, truth, (seed,))
    hits, game = round(found.overlap * found.size), "hit" if found.pointing else "missed"
    lines = [
        f"Overlap {hits} of {found.size}, pointing game {game}",
        f"All true within the top {found.mean_rank:.0f} of {found.n}",
    ]
    return [*lines, "All scores are equal, so this is chance."] if is_constant(made.on_grid.ravel()) else lines


def meaning(chance: TruthScores) -> str:
    """How to read the lines, and what chance gets."""
    true = f"{chance.size} {'is' if chance.size == 1 else 'are'} true"
    return (
        f"Of {chance.n} patches {true}: those that the outline covers at least half, else the one that it covers most. "
        f"{MEANING}A map by chance has, on average, overlap {percent(chance.overlap)}, a hit in "
        f"{percent(chance.pointing)}, all true within the top {plain(chance.mean_rank)}; the best is {chance.size}. "
        f"{CAUTION}"
    )


def truth_area(
    methods: Mapping[str, Explainer], made: Mapping[str, Explanation], truth: Patches | None, seed: int
) -> None:
    """Below the maps: what the lines beside them mean, and on request a table. Nothing where the truth is not known."""
    if truth is None or unscored(truth) or not made:
        return
    chance = truth_by_chance(truth.size, int(truth.sum()))
    st.subheader("Against the truth", anchor=False)
    st.caption(meaning(chance))
    # On request, because what draws a table takes long to import, and the lines beside the maps say most of it.
    if not st.toggle("Table of these methods, and of chance", key=key("open.truth")):
        return
    rows = {methods[id].title: truth_scores(one.on_grid, truth, (seed,)) for id, one in made.items()}
    table = truth_table(rows, chance)
    st.dataframe(
        table, hide_index=True, width=WIDTH, height="content", key="picture_truth_table", column_config=_formats(table)
    )


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


def _formats(table: pd.DataFrame) -> dict[str, Any]:
    shares = {"Overlap", "Exact", "Pointing game", "Mean rank, share"}
    return {
        name: st.column_config.NumberColumn(format="%.1f %%" if name in shares else "%.1f")
        for name in table.columns
        if name != "Method"
    }
