"""Agreement and disagreement of maps: by hand, against scipy, as properties, stored and loaded."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import rankdata, spearmanr

import engine.metrics.agreement as module
from engine.errors import UsageError
from engine.explain import explain
from engine.metrics.agreement import QUICK, Disagreement, agreement, cached_disagreements, disagreement, disagreements
from engine.metrics.ranking import average_ranks, is_constant, spearman, top_k_overlap
from engine.request import Example, Request
from tests.explaining import checkpoint
from tests.tiny import CORPUS

VALUES = st.integers(-4, 4).map(float)
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=15).map(lambda rows: np.array(rows).T)


def test_rho_by_hand() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    # d = (1, -1, 0, 1, -1): rho = 1 - 6 * 4 / (5 * 24) = 0.8
    assert spearman(a, np.array([2.0, 1.0, 3.0, 5.0, 4.0])) == pytest.approx(0.8)
    assert spearman(a, np.exp(a)) == pytest.approx(1.0)
    assert spearman(a, -a) == pytest.approx(-1.0)


def test_equal_scores_share_their_average_rank() -> None:
    assert average_ranks(np.array([5.0, 1.0, 5.0, 7.0])).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_a_constant_map_has_no_rho() -> None:
    assert spearman(np.zeros(3), np.array([1.0, 2.0, 3.0])) is None
    assert spearman(np.array([1.0]), np.array([2.0])) is None


@given(PAIRS)
def test_rho_and_ranks_are_scipys(pair: np.ndarray) -> None:
    a, b = pair
    np.testing.assert_array_equal(average_ranks(a), rankdata(a))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of a constant map and answers NaN
        expected = float(spearmanr(a, b).statistic)
    found = spearman(a, b)
    assert found == pytest.approx(expected, abs=1e-12) if found is not None else np.isnan(expected)


@given(PAIRS, st.integers(1, 15))
def test_overlap_is_symmetric_between_0_and_1_and_1_where_all_count(pair: np.ndarray, k: int) -> None:
    a, b = pair
    k = min(k, len(a))
    assert 0.0 <= top_k_overlap(a, b, k) == top_k_overlap(b, a, k) <= 1.0 + 1e-12
    assert top_k_overlap(a, b, len(a)) == pytest.approx(1.0)


@given(st.lists(st.tuples(*[st.integers(0, 1).map(float)] * 2), min_size=2, max_size=4), st.integers(1, 4))
def test_overlap_is_the_mean_over_all_orders_of_equal_scores(rows: list[tuple[float, float]], k: int) -> None:
    """Each map in an order of its own: every two of their orders, one by one."""
    k, pair = min(k, len(rows)), np.array(rows).T
    tops = [
        [set(sorted(range(len(rows)), key=lambda at: (-scores[at], order[at]))[:k])
         for order in itertools.permutations(range(len(rows)))]
        for scores in pair
    ]  # fmt: skip
    shared = np.mean([len(one & other) / k for one, other in itertools.product(*tops)])
    assert top_k_overlap(*pair, k) == pytest.approx(shared, abs=1e-12)


def test_maps_of_one_word_each_that_is_not_the_same_do_not_agree() -> None:
    """Of 20 words 3 count: each one's word is in the other's top by 2 in 19, and of the 18 others 2 and 2 by chance."""
    one, other = np.eye(20)[[3, 11]]
    by_hand = (2 / 19 + 2 / 19 + 18 * (2 / 19) ** 2) / 3
    assert top_k_overlap(one, other, 3) == pytest.approx(by_hand)
    found = agreement({"one": one, "other": other}, "top_k").values
    assert found[0, 1] == pytest.approx(by_hand)
    assert found[0, 0] == 1.0
    assert by_hand < 0.14


def test_overlap_by_hand() -> None:
    a, b = np.array([9.0, 8.0, 7.0, 0.0, -9.0]), np.array([9.0, 0.0, 7.0, 8.0, 1.0])
    assert [top_k_overlap(a, b, k) for k in (1, 2, 3)] == pytest.approx([1.0, 0.5, 2 / 3])


def test_the_matrix_names_what_has_no_order() -> None:
    rising = np.arange(20.0)
    maps = {"up": rising, "down": -rising, "flat": np.zeros(20)}
    found = agreement(maps)
    assert found.methods == ("up", "down", "flat")
    assert found.constant == ("flat",)
    assert (found.n, found.k) == (20, 3)
    np.testing.assert_allclose(found.values, [[1, -1, np.nan], [-1, 1, np.nan], [np.nan] * 3])
    top = agreement(maps, "top_k")
    np.testing.assert_allclose(top.values, [[1, 0, np.nan], [0, 1, np.nan], [np.nan] * 3])
    assert agreement(maps, "top_k", k=20).values[0, 1] == 1.0


@given(PAIRS)
def test_a_matrix_is_symmetric_with_ones_or_nothing_on_its_diagonal(pair: np.ndarray) -> None:
    values = agreement(dict(enumerate_names(pair))).values
    np.testing.assert_array_equal(values, values.T)
    for scores, own in zip(pair, values.diagonal(), strict=True):
        assert np.isnan(own) if is_constant(scores) else own == pytest.approx(1.0)


def enumerate_names(pair: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return [(f"method {i}", scores) for i, scores in enumerate(pair)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"measure": "kendall"}, "measure: unknown name 'kendall'. Known: spearman, top_k."),
        ({"k": 0}, "k: must be a whole number from 1 to 3"),
        ({"k": 4}, "k: must be a whole number from 1 to 3"),
        ({"maps": {"a": np.zeros(3), "b": np.zeros(2)}}, r"maps: must be of one example .* got sizes \[2, 3\]"),
        ({"maps": {}}, "maps: must be of one example"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(arguments: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        agreement(**{"maps": {"a": np.arange(3.0)}, **arguments})


pytestmark = pytest.mark.usefixtures("home")

EXAMPLES = [Example(text) for text in CORPUS]


def test_the_same_order_whatever_the_sign_is_no_disagreement() -> None:
    assert disagreement({"a": np.array([1.0, -2.0, 3.0]), "b": np.array([-10.0, 20.0, 30.0])}).value == pytest.approx(0)


def test_the_reversed_order_of_two_is_two() -> None:
    assert disagreement({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([3.0, 2.0, 1.0])}).value == pytest.approx(2)


def test_a_map_without_order_is_left_out_and_named() -> None:
    maps = {"a": np.array([1.0, 2.0, 3.0]), "flat": np.array([2.0, -2.0, 2.0]), "b": np.array([1.0, 3.0, 2.0])}
    found = disagreement(maps)
    assert found.left_out == ("flat",)
    assert found.value == pytest.approx(0.5)
    assert disagreement({"a": np.array([1.0, 2.0]), "flat": np.zeros(2)}) == Disagreement(None, ("flat",))
    assert disagreement({"a": np.array([1.0]), "b": np.array([4.0])}) == Disagreement(None, ("a", "b"))


def test_it_is_one_minus_the_mean_rho_of_scipy_over_the_maps_that_pages_show() -> None:
    model = str(checkpoint("bert", 3))
    for example, found in zip(EXAMPLES, disagreements(model, EXAMPLES), strict=True):
        made = [explain(Request(model, method, example)) for method in QUICK]
        assert all(one.cached for one in made), "the pages find what was compared"
        maps = [np.abs(one.scores[one.features]) for one in made]
        rhos = [stats.spearmanr(a, b).statistic for a, b in itertools.combinations(maps, 2)]
        assert found.value == pytest.approx(1 - np.mean(rhos), abs=1e-9)
        assert found.left_out == ()


def test_what_is_there_is_found_and_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, methods = str(checkpoint("bert")), ("gradient_l2", "attention_rollout")
    asked: list[int] = []
    real = module.explain_many
    monkeypatch.setattr(module, "explain_many", lambda requests: asked.append(len(requests)) or real(requests))
    assert cached_disagreements(model, EXAMPLES, methods) == [None] * len(EXAMPLES)
    assert asked == []
    first = disagreements(model, EXAMPLES[:2], methods)
    assert cached_disagreements(model, EXAMPLES, methods) == [*first, *[None] * (len(EXAMPLES) - 2)]
    assert asked == [4]
    again = disagreements(model, [*EXAMPLES, EXAMPLES[0]], methods)
    assert asked == [4, 2 * (len(EXAMPLES) - 2)]
    assert again[:2] == first
    assert again[-1] == first[0]
    assert cached_disagreements(model, EXAMPLES[:1], methods[::-1]) == first[:1], "the order of methods says nothing"
    assert cached_disagreements(model, EXAMPLES[:1], ("gradient_l2", "gradient")) == [None]


@pytest.mark.parametrize("methods", [(), ("gradient",), ("gradient", "gradient")])
def test_one_method_agrees_with_nobody(methods: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="methods: must be at least two different methods"):
        disagreements(str(checkpoint("bert")), EXAMPLES, methods)


def test_an_ensemble_and_an_unknown_method_are_refused() -> None:
    with pytest.raises(UsageError, match="no ensembles of others, got 'ensemble_all'"):
        disagreements(str(checkpoint("bert")), EXAMPLES, ("gradient", "ensemble_all"))
    with pytest.raises(UsageError, match="Did you mean 'gradient'"):
        disagreements(str(checkpoint("bert")), EXAMPLES, ("gradiant", "occlusion"))
