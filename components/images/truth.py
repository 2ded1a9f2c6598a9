"""Maps compared with the known truth of a picture: lines for each map's card, and a table of all methods."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Bool

from components.ablation import use_question_styles
from components.controls import PERSIST
from components.images.state import key
from components.numbers import percent, plain
from engine.metrics.plausibility import TruthScores, expected_truth_scores, truth_scores, truth_skip_reason
from engine.metrics.ranking import is_constant
from engine.registry import Explainer
from engine.result import Explanation
from engine.vision.view import read_view

PatchMask = Bool[np.ndarray, "row column"]
"""The patches that show what the label names."""
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


def true_patches(model: str, mask: Bool[np.ndarray, "height width"] | None) -> PatchMask | None:
    """The patches that belong to a picture's mask, in the model's own grid; None where the truth is not known."""
    return None if mask is None else read_view(model).patches(mask)


def describe_agreement(explanation: Explanation, truth: PatchMask | None, seed: int) -> list[str]:
    """How one map agrees with the truth, a line each. `explain_agreement` says how to read them."""
    if truth is None:
        return []
    if reason := truth_skip_reason(truth, "patch"):
        return [f"Not held against the truth: {reason}"]
    scores = truth_scores(explanation.on_grid, truth, (seed,))
    hits, game = round(scores.overlap * scores.size), "hit" if scores.pointing else "missed"
    lines = [
        f"Overlap {hits} of {scores.size}, pointing game {game}",
        f"All true within the top {scores.mean_rank:.0f} of {scores.n}",
    ]
    return [*lines, "All scores are equal, so this is chance."] if is_constant(explanation.on_grid.ravel()) else lines


def explain_agreement(chance: TruthScores) -> str:
    """How to read the lines, and what chance gets."""
    true = f"{chance.size} {'is' if chance.size == 1 else 'are'} true"
    return (
        f"Of {chance.n} patches {true}: those that the outline covers at least half, else the one that it covers most. "
        f"{MEANING}A map by chance has, on average, overlap {percent(chance.overlap)}, a hit in "
        f"{percent(chance.pointing)}, all true within the top {plain(chance.mean_rank)}; the best is {chance.size}. "
        f"{CAUTION}"
    )


def draw_truth(
    methods: Mapping[str, Explainer], explanations: Mapping[str, Explanation], truth: PatchMask | None, seed: int
) -> None:
    """Draw the meaning of the lines beside the maps, and on request a table. Nothing where the truth is not known."""
    if truth is None or truth_skip_reason(truth) or not explanations:
        return
    chance = expected_truth_scores(truth.size, int(truth.sum()))
    st.subheader("Against the truth", anchor=False)
    st.caption(explain_agreement(chance))
    # On request, because the lines beside the maps say most of it.
    if not st.toggle("Table of these methods, and of chance", key=key("open.truth"), persist_state=PERSIST):
        return
    rows = {methods[id].title: truth_scores(one.on_grid, truth, (seed,)) for id, one in explanations.items()}
    use_question_styles()
    st.html(truth_table_html(rows, chance))


def truth_table_html(rows: Mapping[str, TruthScores], chance: TruthScores) -> str:
    """The scores of chance, then the methods, the best overlap first. Names are escaped."""
    best = sorted(rows.items(), key=lambda row: (-row[1].overlap, row[1].mean_rank))
    names = ("overlap", "pointing game", f"all true within the top, of {chance.n}", "mean of their ranks")
    lines = [_row_html(CHANCE, chance, percent(chance.pointing))]
    lines += [_row_html(name, scores, "hit" if scores.pointing else "missed") for name, scores in best]
    head = "".join(f'<th class="xg-number">{name}</th>' for name in names)
    return (
        f'<div class="xg"><table class="xg-table xg-narrow"><thead><tr><th>method</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _row_html(name: str, scores: TruthScores, game: str) -> str:
    cells = (percent(scores.overlap), game, plain(scores.mean_rank), plain(scores.mean_of_ranks))
    numbers = "".join(f'<td class="xg-number">{escape(cell)}</td>' for cell in cells)
    return f"<tr><th>{escape(name)}</th>{numbers}</tr>"
