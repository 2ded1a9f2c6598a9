"""What the colors of a ballot show: by rank, all explanations share one set of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.request import Example, Picture
from engine.result import Token
from engine.study.ballots import color_scores
from engine.study.items import ItemMap
from engine.word_units import units

PICTURE = Picture(np.zeros((4, 4, 3), np.uint8))


def patches(scores: list[float]) -> ItemMap:
    tokens = (Token("[CLS]", 0, 0, -1, True), *(Token("", 0, 0, 0, False) for _ in scores))
    return ItemMap(tokens, np.array([9.0, *scores]), (1, len(scores)), 0)


@pytest.mark.parametrize(
    ("rule", "colors"),
    [
        ("sign", [0, 0.5, -1, 0.25, 0]),
        ("size", [0, 0.5, 1, 0.25, 0]),
        ("rank", [0, (3 / 4) ** 2, 1, (2 / 4) ** 2, (1 / 4) ** 2]),
    ],
)
def test_a_rule_by_hand(rule: str, colors: list[float]) -> None:
    assert color_scores(patches([2, -4, 1, 0]), PICTURE, rule).tolist() == colors


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), min_size=2, max_size=30))
def test_by_rank_all_maps_share_their_colors_and_larger_scores_have_stronger_ones(scores: list[float]) -> None:
    found = color_scores(patches(scores), PICTURE, "rank")[1:]
    sizes = np.abs(scores)
    if np.ptp(sizes) == 0:
        assert not found.any()
        return
    assert sorted(found) == [(rank / len(scores)) ** 2 for rank in range(1, len(scores) + 1)]
    assert all(found[a] > found[b] for a in range(len(sizes)) for b in range(len(sizes)) if sizes[a] > sizes[b])
    assert (color_scores(patches(scores), PICTURE, "rank")[1:] == found).all()


def test_what_is_drawn_as_one_is_ranked_as_one() -> None:
    """An emoji that the tokenizer cut in two counts once, with the sum of its scores."""
    text = Example("a \N{SMILING FACE WITH OPEN MOUTH} b")
    tokens = (
        Token("[CLS]", 0, 0, -1, True), Token("a", 0, 1, 0, False), Token("x", 2, 3, 0, False),
        Token("y", 2, 3, 0, False), Token("b", 4, 5, 0, False),
    )  # fmt: skip
    found = color_scores(ItemMap(tokens, np.array([0, 2.0, 2.0, 2.0, 3.0]), None, 0), text, "rank")
    drawn = [unit.score for unit in units(tokens, found, text) if not unit.special]
    assert drawn == [(1 / 3) ** 2, 1, (2 / 3) ** 2]
