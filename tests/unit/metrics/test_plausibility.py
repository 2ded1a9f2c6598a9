"""Maps against marks and truth: by hand, by slow oracles, against scikit-learn, with ties, and as properties."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from engine.data.examples import ImageExample, LabeledExample
from engine.errors import UsageError
from engine.evaluation.measurement import Measurements, UnitScores, measure_maps
from engine.evaluation.plan import EvaluationPlan
from engine.explain import explain
from engine.metrics.plausibility import (
    ALL,
    NOTHING,
    TruthScores,
    average_precision,
    expected_truth_scores,
    is_cut_off,
    marks_of_picture,
    marks_of_text,
    recall_at_k,
    roc_auc,
    segments,
    skip_reason,
    token_f1,
    truth_mass,
    truth_scores,
    truth_skip_reason,
)
from engine.metrics.ranking import rank_features
from engine.metrics.sensitivity import FLAT
from engine.models.loading import load_model
from engine.request import Prompt, Request
from engine.result import Explanation
from engine.vision.picture import read_view
from engine.word_units import unit_scores
from tests.explaining import checkpoint
from tests.oracles.plausibility import auc_by_pairs, f1_of, precision_by_thresholds
from tests.oracles.truth import scores_by_all_orders, scores_of_order
from tests.unit.vision.tiny_vit import vit_folder

CASES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=16).filter(
    lambda rows: 0 < sum(mark for _, mark in rows) < len(rows)
)
SCORES = np.array([0.9, 0.1, 0.8, -0.4, 0.3])
MARKS = np.array([True, True, False, False, True])


def split(rows: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in rows], dtype=float), np.array([mark for _, mark in rows])


def test_by_hand() -> None:
    """In order: marked, not, marked, marked, not."""
    assert roc_auc(SCORES, MARKS) == pytest.approx(4 / 6), "of 6 pairs the unmarked 0.8 beats 0.3 and 0.1"
    assert average_precision(SCORES, MARKS) == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)
    assert token_f1(SCORES, MARKS, 0.4) == pytest.approx(2 * 1 / (2 + 3)), "two of five are chosen, one is marked"
    assert token_f1(SCORES, MARKS, 0.8) == pytest.approx(2 * 3 / (4 + 3))
    assert recall_at_k(SCORES, MARKS, 2) == pytest.approx(1 / 3)
    assert recall_at_k(SCORES, MARKS) == 1, "all five"


def test_a_perfect_map_and_its_opposite() -> None:
    perfect = MARKS.astype(float)
    assert (roc_auc(perfect, MARKS), average_precision(perfect, MARKS), token_f1(perfect, MARKS, 0.6)) == (1, 1, 1)
    assert (roc_auc(-perfect, MARKS), token_f1(-perfect, MARKS, 0.4), recall_at_k(-perfect, MARKS, 2)) == (0, 0, 0)


@given(CASES)
def test_they_are_the_slow_oracles_and_scikit_learns_with_ties_too(rows: list[tuple[int, bool]]) -> None:
    scores, marks = split(rows)
    assert roc_auc(scores, marks) == pytest.approx(auc_by_pairs(scores.tolist(), marks.tolist()))
    assert roc_auc(scores, marks) == pytest.approx(roc_auc_score(marks, scores))
    assert average_precision(scores, marks) == pytest.approx(precision_by_thresholds(scores.tolist(), marks.tolist()))
    assert average_precision(scores, marks) == pytest.approx(average_precision_score(marks, scores))


@given(CASES, st.integers(1, 16), st.integers(0, 3))
def test_chosen_units_are_the_first_of_the_ranking(rows: list[tuple[int, bool]], number: int, seed: int) -> None:
    scores, marks = split(rows)
    chosen = min(number, len(marks))
    top = set(rank_features(scores, (seed,))[:chosen].tolist())
    predicted = np.isin(np.arange(len(marks)), list(top))
    found = token_f1(scores, marks, chosen / len(marks), (seed,))
    assert found == pytest.approx(f1_of(top, set(np.flatnonzero(marks).tolist())))
    assert found == pytest.approx(f1_score(marks, predicted))
    assert recall_at_k(scores, marks, number, (seed,)) == pytest.approx(marks[predicted].sum() / marks.sum())


def test_a_flat_map_gets_what_chance_gives() -> None:
    flat, marks = np.zeros(10), np.arange(10) < 3
    assert roc_auc(flat, marks) == 0.5
    assert average_precision(flat, marks) == pytest.approx(0.3)
    for measure in (lambda seed: token_f1(flat, marks, 0.3, seed), lambda seed: recall_at_k(flat, marks, 3, seed)):
        assert np.mean([measure((seed,)) for seed in range(2000)]) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("marks", [[True, True], [False, False]])
def test_all_or_nothing_marked_cannot_be_judged(marks: list[bool]) -> None:
    for measure in (roc_auc, average_precision, recall_at_k):
        with pytest.raises(UsageError, match="is marked, so no map can be judged"):
            measure(np.array([1.0, 2.0]), np.array(marks))


def test_wrong_numbers_are_named() -> None:
    with pytest.raises(UsageError, match="share: must be more than 0 and at most 1, got 0"):
        token_f1(SCORES, MARKS, 0.0)
    with pytest.raises(UsageError, match="k: must be a whole number of at least 1, got 0"):
        recall_at_k(SCORES, MARKS, 0)


pytestmark = pytest.mark.usefixtures("home")

TEXT = "unbelievably warm and funny"
WARM = LabeledExample(TEXT, rationale=((13, 17),))


def probe(labeled: LabeledExample, family: str = "bert") -> Explanation:
    return explain(Request(str(checkpoint(family)), "random", labeled.example))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_word_is_marked_whole_and_tokens_where_they_touch_the_span(family: str) -> None:
    made = probe(WARM, family)
    assert marks_of_text(made, WARM, "word").tolist() == [False, True, False, False]
    tokens = marks_of_text(made, WARM)
    assert len(tokens) == len(unit_scores(made, WARM.example)) == len(made.features)
    named = [made.tokens[place] for place, mark in zip(made.features, tokens, strict=True) if mark]
    assert "".join(token.text for token in named) == "warm"


def test_part_of_a_word_marks_it() -> None:
    part = LabeledExample(TEXT, rationale=((0, 2), (23, 24)))
    assert marks_of_text(probe(part), part, "word").tolist() == [True, False, False, True]


def test_the_texts_of_a_pair_have_their_own_spans() -> None:
    pair = LabeledExample("good food", "bad service", rationale=((0, 4),), rationale_pair=((4, 11),))
    made = probe(pair)
    assert marks_of_text(made, pair, "word").tolist() == [True, False, False, True]
    assert segments(made, pair, "word") == [0, 0, 1, 1]
    assert len(segments(made, pair, "token")) == len(made.features)


def test_patches_are_those_of_the_models_view() -> None:
    pixels, mask = np.zeros((40, 60, 3), dtype=np.uint8), np.zeros((40, 60), dtype=bool)
    mask[:20, :30] = True
    found = marks_of_picture(str(vit_folder()), ImageExample(pixels, mask=mask))
    assert found is not None
    np.testing.assert_array_equal(found, read_view(str(vit_folder())).patches(mask).ravel())
    assert 0 < found.sum() < len(found)
    assert marks_of_picture(str(vit_folder()), ImageExample(pixels)) is None


def test_marks_beyond_what_the_model_reads_are_noticed() -> None:
    text = "warm " * 100 + "funny"
    late, early = (LabeledExample(text, rationale=(span,)) for span in ((500, 505), (0, 4)))
    made = probe(late)
    assert made.truncated > 0
    assert is_cut_off(made, late)
    assert not is_cut_off(made, early)
    assert not is_cut_off(probe(WARM), WARM)


def test_all_or_nothing_decides_nothing() -> None:
    assert skip_reason(np.array([False, False])) == NOTHING
    assert skip_reason(np.array([True])) == ALL
    assert skip_reason(np.array([True, False])) is None


MEASURES = ("overlap", "exact", "pointing", "mean_rank", "mean_of_ranks")
TRUTH_CASES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=16).filter(
    lambda rows: 0 < sum(true for _, true in rows) < len(rows)
)


def measures(found: TruthScores) -> dict[str, float]:
    return {name: value for name, value in dataclasses.asdict(found).items() if name in MEASURES}


def truth_split(rows: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in rows], dtype=float), np.array([true for _, true in rows])


def test_a_map_on_a_grid_by_hand() -> None:
    scores = np.array([[0.9, -1.0, 0.4], [0.8, 0.1, 0.7]])  # ranks: 1 6 4 / 2 5 3
    truth = np.array([[True, False, False], [False, True, True]])
    found = truth_scores(scores, truth)
    assert (found.n, found.size) == (6, 3)
    assert found.overlap == pytest.approx(2 / 3), "the top three have ranks 1, 2, 3; of L there are 1 and 3"
    assert (found.exact, found.pointing) == (0, 1)
    assert found.mean_rank == 5
    assert found.mean_rank_pct == pytest.approx(5 / 6)
    assert found.mean_of_ranks == pytest.approx((1 + 3 + 5) / 3)


def test_truth_of_a_perfect_map_and_its_opposite() -> None:
    truth = np.array([True, False, True, False, False])
    best, worst = truth_scores(truth.astype(float), truth), truth_scores(-truth.astype(float), truth)
    assert measures(best) == {"overlap": 1, "exact": 1, "pointing": 1, "mean_rank": 2, "mean_of_ranks": 1.5}
    assert measures(worst) == {"overlap": 0, "exact": 0, "pointing": 0, "mean_rank": 5, "mean_of_ranks": 4.5}


@given(TRUTH_CASES, st.integers(0, 5))
def test_scores_are_those_of_the_slow_oracle(rows: list[tuple[int, bool]], seed: int) -> None:
    scores, truth = truth_split(rows)
    expected = scores_of_order(rank_features(scores, (seed,)).tolist(), set(np.flatnonzero(truth).tolist()))
    assert measures(truth_scores(scores, truth, (seed,))) == pytest.approx(expected)


@given(TRUTH_CASES)
def test_they_stay_within_their_bounds_and_know_nothing_of_the_scale(rows: list[tuple[int, bool]]) -> None:
    scores, truth = truth_split(rows)
    found = truth_scores(scores, truth)
    assert found == truth_scores(4 * scores - 1, truth)
    assert 0 <= found.overlap <= 1
    assert found.size <= found.mean_rank <= found.n
    assert (found.size + 1) / 2 <= found.mean_of_ranks <= found.n - (found.size - 1) / 2
    assert (found.exact == 1) == (found.overlap == 1) == (found.mean_rank == found.size)


@given(TRUTH_CASES)
def test_a_grid_is_read_row_by_row(rows: list[tuple[int, bool]]) -> None:
    scores, truth = truth_split(rows)
    assert truth_scores(scores[None], truth[None]) == truth_scores(scores, truth)
    assert truth_scores(scores[:, None], truth[:, None]) == truth_scores(scores, truth)


@pytest.mark.parametrize(("n", "size"), [(2, 1), (4, 1), (5, 2), (6, 3), (6, 5), (7, 4)])
def test_chance_is_the_mean_over_all_orders(n: int, size: int) -> None:
    assert measures(expected_truth_scores(n, size)) == pytest.approx(scores_by_all_orders(n, size))


def test_a_map_of_equal_scores_is_judged_by_chance_which_the_seed_holds() -> None:
    truth = np.arange(12) < 3
    flat = np.ones(12)
    assert truth_scores(flat, truth, (4, 2)) == truth_scores(flat, truth, (4, 2))
    drawn = [truth_scores(flat, truth, (seed,)) for seed in range(3000)]
    expected = expected_truth_scores(12, 3)
    for name in MEASURES:
        values = [getattr(one, name) for one in drawn]
        within = 4 * max(np.std(values), 0.05) / math.sqrt(len(values))
        assert np.mean(values) == pytest.approx(getattr(expected, name), abs=within), name


def test_nothing_or_everything_true_has_words_and_no_numbers() -> None:
    none, everything = np.zeros((2, 2), dtype=bool), np.ones((2, 2), dtype=bool)
    with pytest.raises(UsageError, match="truth: no feature is true, so there is nothing to find"):
        truth_scores(np.zeros((2, 2)), none)
    with pytest.raises(UsageError, match="truth: every feature is true, so any map finds them"):
        truth_scores(np.zeros((2, 2)), everything)
    assert truth_skip_reason(none, "patch") == "no patch is true, so there is nothing to find."
    assert truth_skip_reason(np.array([True, False])) is None


PAIRS = st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=2, max_size=12).filter(
    lambda rows: 0 < sum(true for _, true in rows) < len(rows) and any(score for score, _ in rows)
)


def test_a_map_by_hand_signs_aside() -> None:
    scores, truth = np.array([[3.0, -1.0], [-4.0, 2.0]]), np.array([[True, False], [True, False]])
    assert truth_mass(scores, truth) == pytest.approx(7 / 10)


def test_a_map_of_zeros_has_no_share() -> None:
    assert truth_mass(np.zeros(3), np.array([True, False, False])) is None


def test_an_evaluation_notes_it_for_each_method_and_why_a_flat_map_has_none() -> None:
    plan = EvaluationPlan(("m",), "reviews", ("lime", "gradient"), ("truth_mass",), unit="token")
    scores = {"lime": np.array([1.0, -1.0, 2.0]), "gradient": np.zeros(3), "random": np.array([3.0, 2.0, 1.0])}
    marks, segments = np.array([False, True, True]), np.zeros(3, dtype=int)
    notes = Measurements("m", "reviews")
    measure_maps(plan, [UnitScores(7, scores, {}, {}, marks, segments, (0,))], notes)
    assert {row.of.method: row.value for row in notes.rows} == {"lime": 3 / 4, "random": 3 / 6}
    assert [(skip.of.method, skip.example, skip.reason) for skip in notes.skips] == [("gradient", 7, FLAT)]


def test_a_truth_that_any_map_finds_is_refused() -> None:
    with pytest.raises(UsageError, match="truth: no feature is true"):
        truth_mass(np.ones(2), np.zeros(2, dtype=bool))


@given(PAIRS)
def test_the_shares_of_truth_and_of_the_rest_are_all_there_is(rows: list[tuple[float, bool]]) -> None:
    scores, truth = np.array([score for score, _ in rows]), np.array([true for _, true in rows])
    inside, outside = truth_mass(scores, truth), truth_mass(scores, ~truth)
    assert inside is not None
    assert outside is not None
    assert inside + outside == pytest.approx(1)
    slow = sum(abs(score) for score, true in rows if true) / sum(abs(score) for score, _ in rows)
    assert inside == pytest.approx(slow)
    assert truth_mass(-3 * scores, truth) == pytest.approx(inside)


def test_a_prompt_loses_its_start_and_marks_there_are_noticed() -> None:
    model = load_model("tiny-llama")
    text = "When Mary and John went to the store, John gave a drink to"
    encoded = model.encode(Prompt(text), max_length=6)
    first = min(token.start for token in encoded.tokens if not token.special)
    assert 0 < first < len(text)
    for start, expected in ((text.index("Mary"), True), (first - 1, True), (text.index("drink"), False)):
        labeled = LabeledExample(text, rationale=((start, start + 4),))
        assert is_cut_off(encoded, labeled) is expected, start
