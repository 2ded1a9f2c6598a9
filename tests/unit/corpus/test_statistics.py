"""Statistics of words over examples: by hand, beside a slow loop, by enumeration, and under the null hypothesis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

from engine.corpus.scores import ExampleScores
from engine.corpus.statistics import permutation_test, word_statistics
from engine.metrics.results import interval
from engine.significance.false_discovery import adjusted_p_values, survives


def scored(*texts: Sequence[tuple[str, float]]) -> list[ExampleScores]:
    """Examples of words with a score each, and a second method with the score doubled."""
    own = [(tuple(word for word, _ in text), np.array([score for _, score in text])) for text in texts]
    return [ExampleScores(words, ("no", "yes"), 1, 1, False, np.array([score, 2 * score])) for words, score in own]


def every(count: int) -> list[np.ndarray]:
    return [np.ones(count, dtype=bool)]


def test_a_word_has_the_mean_over_examples_of_its_mean_in_each() -> None:
    examples = scored([("good", 1.0), ("good", 0.0), ("the", 0.2)], [("good", 0.8), ("a", 0.1)], [("the", 0.4)])
    table = word_statistics(examples, every(3), least=2, methods=2)
    assert table.words == ("good", "the")
    np.testing.assert_allclose(table.means[0], [[0.65, 0.3], [1.3, 0.6]])
    assert table.counts.tolist() == [[2, 2]]
    assert table.occurrences.tolist() == [[3, 2]]
    assert (table.low[0, 0, 0], table.high[0, 0, 0]) == interval(np.array([0.5, 0.8]))


def test_a_slice_has_its_own_means_and_tests_words_that_are_in_enough_of_its_examples_alone() -> None:
    examples = scored(*[[("good", float(at)), ("the", 0.1)] for at in range(4)])
    halves = [np.ones(4, dtype=bool), np.array([True, True, False, False]), np.array([False, False, False, True])]
    table = word_statistics(examples, halves, least=2, methods=2)
    np.testing.assert_allclose(table.means[:2, 0, 0], [1.5, 0.5])
    assert np.isnan(table.means[2]).all()
    assert np.isnan(table.p_values[2]).all()
    assert table.counts.tolist() == [[4, 4], [2, 2], [1, 1]]


def test_the_p_value_is_that_of_all_permutations() -> None:
    """Two texts of three words: all 36 orders can be enumerated."""
    examples = scored([("good", 0.9), ("a", 0.1), ("b", 0.3)], [("good", 0.5), ("c", 0.6), ("d", 0.0)])
    exact = np.mean(
        [
            abs(one[0] + other[0]) >= 0.9 + 0.5 - 1e-12
            for one in itertools.permutations([0.9, 0.1, 0.3])
            for other in itertools.permutations([0.5, 0.6, 0.0])
        ]
    )
    means = scipy.sparse.csr_array(np.array([[0.5, 0, 0, 0.5, 0, 0]]))
    scores = np.concatenate([one.scores.T for one in examples])
    number = 20_000
    observed, p_values = permutation_test(means, scores, np.array([0, 0, 0, 1, 1, 1]), number)
    np.testing.assert_allclose(observed, [[0.7, 1.4]])
    spread = (exact * (1 - exact) / number) ** 0.5
    np.testing.assert_allclose(p_values, [[exact, exact]], atol=4 * spread + 1 / number)


def test_scores_that_do_not_vary_within_texts_are_never_significant() -> None:
    table = word_statistics(scored(*[[("good", 1.0), ("the", 1.0)]] * 6), every(6), least=2, methods=2)
    np.testing.assert_array_equal(table.p_values, np.ones((1, 2, 2)))


def test_a_word_that_always_has_the_largest_score_survives_and_its_neighbors_do_not() -> None:
    generator = np.random.default_rng(0)
    texts = [
        [("great", 0.5 + 0.1 * generator.random()), *((f"w{at}", 0.1 * generator.random()) for at in range(8))]
        for _ in range(12)
    ]
    table = word_statistics(scored(*texts), every(12), least=5, methods=2)
    adjusted = adjusted_p_values(table.p_values[0, 0])
    assert [word for word, alive in zip(table.words, survives(adjusted, 0.1), strict=True) if alive] == ["great"]


def test_p_values_are_valid_where_scores_are_spread_by_chance() -> None:
    generator = np.random.default_rng(1)
    vocabulary = [f"w{at}" for at in range(12)]
    p_values = []
    for seed in range(25):
        texts = [[(str(word), generator.normal()) for word in generator.choice(vocabulary, 7)] for _ in range(20)]
        p_values.append(word_statistics(scored(*texts), every(20), least=5, methods=2, seed=seed).p_values[0, 0])
    together = np.concatenate(p_values)
    assert scipy.stats.kstest(together, "uniform").pvalue > 0.01
    for level in (0.05, 0.1, 0.2):
        assert (together <= level).mean() <= level + 3 * (level * (1 - level) / len(together)) ** 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_the_seed_decides(seed: int) -> None:
    generator = np.random.default_rng(3)
    texts = [[(word, generator.normal()) for word in ("a", "b", "c")] for _ in range(6)]
    one, other = (word_statistics(scored(*texts), every(6), 2, 2, seed=chosen) for chosen in (0, seed))
    assert np.array_equal(one.p_values, other.p_values) == (seed == 0)


def test_nothing_to_test_is_no_error() -> None:
    table = word_statistics(scored([("a", 1.0)], [("b", 1.0)]), every(2), least=2, methods=2)
    assert table.words == ()
    assert table.means.shape == (1, 2, 0)
    assert word_statistics([], every(0), least=2, methods=3).p_values.shape == (1, 3, 0)
