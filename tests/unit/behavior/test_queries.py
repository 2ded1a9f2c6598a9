"""Questions about one text: a linear toy model with known effects, and slow oracles of each task."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.behavior.plan import DELETE, FEATURE, LOCAL, RECOURSE, REPLACE, BehaviorPlan
from engine.behavior.queries import (
    TRUTH_DRAWS,
    RemovalSpace,
    feature_use,
    half_interval,
    local_behavior,
    measure,
    recourse,
    says_falls,
)
from engine.behavior.subjects import NoQuestion, TextSubject, text_subject
from engine.explain import explain
from engine.metrics.results import share_interval
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.request import Example, Request
from engine.substitution import Edit, MaskedModel, edited, load_masked_model, word_scores
from tests.linear import SPECIAL, WORDS, bag_of_embeddings

PLAN = BehaviorPlan(("reviews-minilm",), "reviews", ("random",), edit=DELETE, margin=0)
MODEL = bag_of_embeddings(labels=2, seed=22)
TEXT = "the acting never falters although the plot drags"


def plan(**fields: object) -> BehaviorPlan:
    return replace(PLAN, **fields)  # type: ignore[arg-type]


def probability(words: list[str], target: int, model: TextClassifier = MODEL) -> float:
    """The probability of a bag of words by the weights of a toy model, special tokens included."""
    module = model.module
    ids = [SPECIAL.index("[CLS]"), *(len(SPECIAL) + WORDS.index(word) for word in words), SPECIAL.index("[SEP]")]
    total = module.embedding.weight[ids].sum(0)
    return float(torch.softmax(module.head.weight @ total + module.head.bias, dim=0)[target])


def subject(text: str = TEXT, model: TextClassifier = MODEL, masked: MaskedModel | None = None) -> TextSubject:
    return text_subject(model, Example(text), masked)


def ask_local(own: TextSubject, scores: dict[str, list[float]], signed: bool = True, **fields: object):  # type: ignore[no-untyped-def]
    arrays = {method: np.array(one, dtype=np.float64) for method, one in scores.items()}
    asked = plan(methods=tuple(scores), **fields)
    return local_behavior(own, arrays, dict.fromkeys(scores, signed), [7] * len(scores), asked, 0)


def test_the_fall_of_a_deletion_is_that_of_the_weights() -> None:
    own, words = subject(), TEXT.split()
    found = ask_local(own, {"a": list(range(len(words)))})
    base = probability(words, own.target)
    expected = [base - probability(words[:at] + words[at + 1 :], own.target) for at in range(len(words))]
    np.testing.assert_allclose(found.truth, expected, atol=1e-12)
    assert found.probability == pytest.approx(base)
    assert found.words == tuple(words)
    assert (found.yes[:, 1] == (np.array(expected) > 0)).all(), "the direct answer"
    np.testing.assert_array_equal(found.values[:, 1], found.truth)
    assert not found.truth_error.any()
    assert found.evaluations.tolist() == [7, 1 + len(words)]


def test_only_effects_of_at_least_the_margin_count() -> None:
    own = subject()
    truth = ask_local(own, {"a": [1.0] * 8}).truth
    margin = int(100 * np.sort(np.abs(truth))[3]) + 1
    found = ask_local(own, {"a": [1.0] * 8}, margin=margin)
    np.testing.assert_array_equal(found.counted, np.abs(truth) >= margin / 100)
    assert 0 < found.counted.sum() < 8


def test_a_score_answers_by_its_sign_and_a_size_by_the_mean() -> None:
    scores = np.array([0.5, -0.2, 0.0, 3.0])
    assert says_falls(scores, signed=True).tolist() == [True, False, False, True]
    assert says_falls(np.abs(scores), signed=False).tolist() == [False, False, False, True]


def test_the_score_of_a_word_is_the_sum_over_its_tokens() -> None:
    model = load_model("reviews-minilm")
    own = subject("Unpretentiously good.", model)
    explanation = explain(Request("reviews-minilm", "occlusion", Example("Unpretentiously good.")))
    scores = word_scores(explanation, own.words)
    pieces = [at for at, token in enumerate(explanation.tokens) if not token.special and token.end <= 15]
    assert len(pieces) > 1
    assert scores[0] == pytest.approx(explanation.scores[pieces].sum())
    assert len(scores) == 2, "the period is no word"


def test_replacements_have_the_mean_of_all_words_of_the_masked_model() -> None:
    """The exact expectation, by each word that the masked model knows, lies in the interval of the truth."""
    model, masked = load_model("bert-reviews"), load_masked_model()
    own = subject("A dull film.", model, masked)
    asked = plan(models=("bert-reviews",), edit=REPLACE, draws=8, methods=())
    found = local_behavior(own, {}, {}, [], asked, 0)
    shares = masked.probabilities(own.example, own.words)[1]
    texts = [edited(own.example, [Edit(own.words[1], word)]) for word in masked.words]
    values = own.probabilities([[Edit(own.words[1], word)] for word in masked.words])[:, own.target]
    assert len(texts) == len(values) > 500
    exact = own.base - float(shares @ values / shares.sum())
    assert abs(found.truth[1] - exact) < 2 * found.truth_error[1]
    spread = float(np.sqrt(shares @ (values - (own.base - exact)) ** 2 / shares.sum()))
    assert found.truth_error[1] == pytest.approx(1.96 * spread / np.sqrt(TRUTH_DRAWS), rel=0.4)
    assert found.evaluations.tolist() == [1 + 3, 1 + 6, 1 + 12, 1 + 24]
    again = local_behavior(own, {}, {}, [], asked, 0)
    np.testing.assert_array_equal(found.values, again.values)
    other = local_behavior(own, {}, {}, [], asked, 1)
    assert (found.values != other.values).any(), "draws differ between examples"
    assert np.isnan(found.errors[:, 0]).all()
    assert (found.errors[:, 1:] >= 0).all()


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(0.3, 1, (4000, 6))
    halves = half_interval(values)
    assert (np.abs(values.mean(axis=1) - 0.3) <= halves).mean() == pytest.approx(0.95, abs=0.012)
    hits = generator.binomial(16, 0.8, 2000)
    ends = {number: share_interval(int(number), 16) for number in set(hits)}
    assert np.mean([ends[one][0] <= 0.8 <= ends[one][1] for one in hits]) >= 0.95
    assert np.isnan(half_interval(np.ones((2, 1)))).all()


def brute_force(own: TextSubject, size: int) -> list[tuple[int, ...]]:
    """All removals that change the class, by a text of their own each."""
    words, flips = TEXT.split(), []
    for number in range(1, size + 1):
        for removal in itertools.combinations(range(len(words)), number):
            left = [word for at, word in enumerate(words) if at not in removal]
            if probability(left, own.target) < 0.5:
                flips.append(removal)
    return flips


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_recourse_is_the_smallest_of_all_removals(size: int) -> None:
    own = subject()
    flips = brute_force(own, size)
    space = RemovalSpace.of_subject(own, size)
    assert {removal for removal, flip in space.flips.items() if flip} == set(flips)
    smallest = min(map(len, flips), default=0)
    assert len(space.smallest_flip()) == smallest
    wide = space.beam_search(10_000)
    assert len(wide[0]) == smallest, "a beam that is wide enough misses nothing"
    narrow, tried = space.beam_search(1)
    assert tried <= sum(8 - at for at in range(size))
    assert not narrow or narrow in flips


def test_an_attribution_removes_its_highest_scores_in_order() -> None:
    space = RemovalSpace(3, 2, {(0,): False, (1,): False, (2,): True, (0, 1): True, (0, 2): False, (1, 2): True}, {
        (0,): 0.6, (1,): 0.7, (2,): 0.2, (0, 1): 0.4, (0, 2): 0.9, (1, 2): 0.3,
    })  # fmt: skip
    assert space.flip_in_order([2, 0, 1]) == ((2,), 1)
    assert space.flip_in_order([1, 0, 2]) == ((0, 1), 2)
    assert space.flip_in_order([0, 2, 1]) == ((), 2)
    assert space.smallest_flip() == (2,)
    assert space.beam_search(1) == ((2,), 3)
    # First 2: a third. Then of (0, 1), (0, 2), (1, 0), (1, 2), all but (0, 2) change the class.
    assert space.random_success() == pytest.approx(1 / 3 + 3 / 6)


def test_recourse_names_the_removals_and_counts_their_evaluations() -> None:
    own = subject()
    order = RemovalSpace.of_subject(own, 2).smallest_flip()
    scores = np.zeros(8)
    scores[list(order)] = 1.0
    asked = plan(task=RECOURSE, methods=("good", "bad"), size=2)
    found = recourse(own, {"good": scores, "bad": -scores}, [5, 6], asked)
    assert asked.ways == ("good", "bad", "query-1", "query-2", "query-4")
    assert found.truth[0] == len(order) > 0
    assert found.yes[0, 0]
    assert found.values[0, 0] == len(order)
    assert found.edits[0][0] == " … ".join(TEXT.split()[at] for at in order)
    assert found.evaluations[0] == 5 + len(order)
    assert found.evaluations[2] == 1 + (8 if len(order) == 1 else 8 + 7)


def test_too_many_removals_a_single_word_and_a_score_are_refused() -> None:
    many = subject(" ".join(itertools.islice(itertools.cycle(WORDS), 40)))
    with pytest.raises(NoQuestion, match="size: a text of 40 words has 10,700 removals of at most 3"):
        RemovalSpace.of_subject(many, 3)
    with pytest.raises(NoQuestion, match="text: has a single word"):
        RemovalSpace.of_subject(subject("acting"), 2)
    with pytest.raises(NoQuestion, match="text: has no word"):
        subject("...")
    score = subject(TEXT, bag_of_embeddings(labels=1))
    for task in (LOCAL, RECOURSE):
        with pytest.raises(NoQuestion, match=f"task: {task} needs classes, and bag predicts a score. Use a classifier"):
            measure(score, {}, {}, plan(task=task), 0)


@pytest.mark.parametrize(("seed", "expected"), [(22, [False, False]), (37, [False, True]), (45, [True, True])])
def test_a_feature_is_used_where_a_change_of_it_changes_the_class(seed: int, expected: list[bool]) -> None:
    text, model = "the acting is not funny", bag_of_embeddings(labels=2, seed=seed)
    own, words = subject(text, model), text.split()
    asked = plan(task=FEATURE, feature="not, warm", methods=("a",))
    changes = [["the", "acting", "is", "funny"], ["the", "acting", "is", "warm", "funny"]]
    assert [probability(change, own.target, model) < 0.5 for change in changes] == expected
    found = feature_use(own, {"a": np.array([0, 0, 0, 1.0, 0])}, [3], asked, 0)
    assert found.words[0] == "not"
    assert found.words[1] in words
    assert found.words[1] != "not"
    assert found.falls[0] == sum(expected)
    assert found.truth[0] == any(expected)
    assert found.yes[0].tolist() == [True, expected[0], any(expected)]
    assert found.values[0].tolist() == [1, expected[0], sum(expected)]
    assert not found.yes[1, 0], "a control is not first where the feature is"
    assert found.evaluations.tolist() == [3, 3, 5]
    tied = feature_use(own, {"a": np.ones(5)}, [3], asked, 0)
    assert not tied.yes[:, 0].any(), "equal scores name nothing"
    with pytest.raises(NoQuestion, match="feature: the text has none of not, warm"):
        feature_use(subject("the plot drags"), {}, [], asked, 0)


def test_a_control_is_as_many_words_and_never_exchanged_for_itself() -> None:
    own = subject("not funny not warm", bag_of_embeddings(labels=2, seed=22))
    found = feature_use(own, {}, [], plan(task=FEATURE, feature="not,a,b,c", methods=()), 0)
    assert found.words[0] == "not, not"
    assert sorted(found.words[1].split(", ")) == ["funny", "warm"]
    asked: list[list[Edit]] = []

    class Recording(TextSubject):
        def probabilities(self, changes: Sequence[Sequence[Edit]]) -> np.ndarray:
            asked.extend(map(list, changes))
            return np.eye(2)[[0] * len(changes)]

    recording = Recording(own.model, own.example, own.words, 0, own.prediction)
    changed = recording._class_changes([1, 3], ("funny", "warm"), 4)
    assert len(changed) == 4
    assert len(asked) == 3, "removed, exchanged for each other, and again; what leads back is no change"
    assert all(edit.word.text != edit.replacement for edits in asked for edit in edits)


def test_the_model_runs_equal_texts_once() -> None:
    own = subject("the the plot")
    first, second, *_ = own.words
    values = own.probabilities([[Edit(first)], [Edit(second)], []])
    np.testing.assert_array_equal(values[0], values[1])
    assert values.shape == (3, 2)
