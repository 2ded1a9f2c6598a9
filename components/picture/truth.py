"""Maps held against what is known to be true of a picture: lines for each map's card, and a table of all methods."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Bool

from components.kept import KEPT
from components.numbers import percent, plain
from components.picture.session import key
from components.question_styles import use_question_styles
from engine.metrics.plausibility import TruthScores, expected_truth_scores, truth_scores, truth_skip_reason
from engine.metrics.ranking import is_constant
from engine.registry import Explainer
from engine.result import Explanation
from engine.vision.view import read_view

Patches = Bool[np.ndarray, "row column"]

CHANCE = "By chance, on average"
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
    return None if mask is None else read_view(model).patches(mask)


def truth_lines(made: Explanation, truth: Patches | None, seed: int) -> list[str]:
    """What to say beside one map, a line each. What they mean and chance gets: `meaning`."""
    if truth is None:
        return []
    if reason := truth_skip_reason(truth, "patch"):
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
    if truth is None or truth_skip_reason(truth) or not made:
        return
    chance = expected_truth_scores(truth.size, int(truth.sum()))
    st.subheader("Against the truth", anchor=False)
    st.caption(meaning(chance))
    # On request, because the lines beside the maps say most of it.
    if not st.toggle("Table of these methods, and of chance", key=key("open.truth"), persist_state=KEPT):
        return
    rows = {methods[id].title: truth_scores(one.on_grid, truth, (seed,)) for id, one in made.items()}
    use_question_styles()
    st.html(truth_table_html(rows, chance))


def truth_table_html(rows: Mapping[str, TruthScores], chance: TruthScores) -> str:
    """What chance gets, then the methods, the best overlap first. Names are escaped."""
    best = sorted(rows.items(), key=lambda row: (-row[1].overlap, row[1].mean_rank))
    heads = ("overlap", "pointing game", f"all true within the top, of {chance.n}", "mean of their ranks")
    told = [_row_html(CHANCE, chance, percent(chance.pointing))]
    told += [_row_html(name, found, "hit" if found.pointing else "missed") for name, found in best]
    named = "".join(f'<th class="xg-number">{head}</th>' for head in heads)
    return (
        f'<div class="xg"><table class="xg-table xg-narrow"><thead><tr><th>method</th>{named}</tr></thead>'
        f"<tbody>{''.join(told)}</tbody></table></div>"
    )


def _row_html(name: str, found: TruthScores, game: str) -> str:
    cells = (percent(found.overlap), game, plain(found.mean_rank), plain(found.mean_of_ranks))
    numbers = "".join(f'<td class="xg-number">{escape(cell)}</td>' for cell in cells)
    return f"<tr><th>{escape(name)}</th>{numbers}</tr>"
