"""Scores of words: sums of their tokens' scores, but an order of their own where the order is chance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from components.method_row import token_map
from engine.explain import explain
from engine.metrics.faithfulness import removal_curves
from engine.registry import explainer
from engine.request import Example, Request
from engine.result import Explanation
from engine.word_units import unit_scores, units_of
from tests.explaining import checkpoint, classifier
from tests.oracles.curves import masked_probability
from tests.unit.components.making import explanation

SPLIT = Example("film a bad")
PIECES = r"fil|m|a|bad"
DRAWS = 3000
WORDS = 3


def by_chance(seed: int) -> Explanation:
    """One word of two tokens, two of one, in a random order of tokens as the baseline draws it."""
    order = np.random.default_rng(seed).permutation(4) + 1.0
    return explanation(SPLIT, order.tolist(), pieces=PIECES, method="random")


@pytest.fixture(scope="module")
def drawn() -> list[tuple[float, ...]]:
    """The scores of the three words, drawn so often."""
    return [tuple(unit_scores(by_chance(seed), SPLIT, "word").tolist()) for seed in range(DRAWS)]


def test_a_word_of_two_tokens_is_first_as_often_as_one_of_one(drawn: list[tuple[float, ...]]) -> None:
    firsts = Counter(scores.index(max(scores)) for scores in drawn)
    share = 1 / WORDS
    four_sigma = 4 * np.sqrt(DRAWS * share * (1 - share))
    assert sum(firsts.values()) == DRAWS
    for word in range(WORDS):
        assert firsts[word] == pytest.approx(DRAWS * share, abs=four_sigma), word


def test_every_order_of_the_words_comes_equally_often(drawn: list[tuple[float, ...]]) -> None:
    orders = Counter(drawn)
    assert len(orders) == 6
    four_sigma = 4 * np.sqrt(DRAWS / 6 * 5 / 6)
    assert all(number == pytest.approx(DRAWS / 6, abs=four_sigma) for number in orders.values())


def test_tokens_keep_their_scores_and_other_methods_their_sums() -> None:
    chance = by_chance(1)
    np.testing.assert_array_equal(unit_scores(chance, SPLIT), chance.scores[1:5])
    assert [unit.score for unit in units_of(chance, SPLIT)] == chance.scores.tolist()
    made = explanation(SPLIT, [1.0, 2.0, 4.0, -1.0], pieces=PIECES, method="occlusion")
    assert unit_scores(made, SPLIT, "word").tolist() == [3.0, 4.0, -1.0]


def test_map_scores_and_curve_follow_one_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    example = Example("unbelievably warm and funny")
    requests = [Request(str(checkpoint("bert", 2)), "random", example, seed=seed) for seed in range(4)]
    made = [explain(request) for request in requests]
    scores = [unit_scores(one, example, "word") for one in made]
    assert all(sorted(one) == [1, 2, 3, 4] for one in scores)
    assert len({tuple(one) for one in scores}) > 1
    drawn = token_map(explainer("random"), made[0], example, "word")
    assert [unit.score for unit in drawn.units if not unit.special] == scores[0].tolist()
    gone = set(drawn.units[1 + int(scores[0].argmax())].tokens)
    model, target = classifier("bert", 2, "float32"), made[0].provenance.target
    expected = masked_probability(model.module, model.encode(example).ids.tolist(), gone, model.mask_id, target)
    assert removal_curves(requests[:1], unit="word")[0].values[1] == pytest.approx(expected, abs=1e-5)
