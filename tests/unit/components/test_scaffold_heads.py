"""The map of head weights: its words, its figure, and the order of its heads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.palette import THEMES
from components.scaffold.learned_explainer import EVEN, active_words, head_words, heads_figure, heads_table, heaviest

WEIGHTS = np.array([[0.0, 0.1, 0.0], [0.7, 0.0, 0.2]])


def test_how_many_heads_are_active_and_where_the_weight_lies() -> None:
    told = active_words(WEIGHTS)
    assert told == "**3 of 6 heads are active** (λ > 0). Layer 1 has the most weight (90.0%)."
    assert active_words(np.full((2, 3), 1 / 6)) == f"**6 of 6 heads are active.** {EVEN}"
    assert active_words(np.array([[-1.0, -0.5]])) == "**0 of 2 heads are active** (λ > 0)."
    assert active_words(np.array([[1.0, 0.0]])).startswith("**1 of 2 heads is active** (λ > 0).")


def test_a_head_in_words() -> None:
    assert head_words(WEIGHTS, 1, 0) == "layer 1, head 0: λ = 0.7, active"
    assert head_words(WEIGHTS, 0, 0) == "layer 0, head 0: λ = 0, inactive"
    assert head_words(np.array([[-0.5, 0.2]]), 0, 1) == "layer 0, head 1: λ = +0.2, active"


def test_the_heaviest_heads_are_the_active_ones_in_order() -> None:
    assert heaviest(WEIGHTS) == [(1, 0), (1, 2), (0, 1)]
    assert heaviest(WEIGHTS, 2) == [(1, 0), (1, 2)]
    table = heads_table(WEIGHTS)
    assert table.iloc[0].tolist() == [1.0, 0.0, 0.7]
    assert len(table) == WEIGHTS.size


@pytest.mark.parametrize("theme", THEMES)
def test_every_cell_answers_the_mouse_and_layers_go_down(theme: str) -> None:
    plain = json.loads(heads_figure(WEIGHTS, theme).to_json())  # type: ignore[arg-type]
    cells, points = plain["data"]
    assert (cells["zmin"], cells["zmax"]) == (0, 0.7)
    assert len(points["text"]) == WEIGHTS.size
    assert "layer 1, head 2: λ = 0.2, active" in points["text"]
    assert plain["layout"]["yaxis"]["range"] == [1.5, -0.5]


def test_weights_of_both_signs_have_a_scale_around_zero() -> None:
    cells = heads_figure(np.array([[-0.4, 0.2]]), "light").data[0]
    assert (cells.zmin, cells.zmax) == (-0.4, 0.4)
