"""Concept activation vectors: a known direction, Captum's scores of the same vectors, false findings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats
import torch
from captum.attr import LayerGradientXActivation
from captum.concept import TCAV, Classifier, Concept
from sklearn.linear_model import RidgeClassifier

from engine.concepts.vectors import draw_sets, fit_ridge, mean_interval, p_value, tcav_scores, train_vectors
from engine.errors import UsageError
from engine.rules.result import holm

WIDTH = 6


def test_a_known_direction_has_score_one_and_its_opposite_zero() -> None:
    """A linear head: the logit rises along axis 0, falls along axis 1, and ignores axis 2."""
    generator = np.random.default_rng(0)
    pool = generator.normal(size=(200, WIDTH))
    sets = draw_sets(60, len(pool), 6, [0])
    gradients = np.tile(np.eye(WIDTH)[0] - np.eye(WIDTH)[1], (30, 1))
    for axis, score in ((0, 1.0), (1, 0.0)):
        concept = generator.normal(size=(60, WIDTH)) + 8 * np.eye(WIDTH)[axis]
        own, random = train_vectors(concept, pool, sets)
        assert (own.vectors[:, axis] > 0.7).all()
        np.testing.assert_allclose(np.linalg.norm(own.vectors, axis=1), 1)
        assert (own.accuracy > 0.95).all()
        assert abs(random.accuracy.mean() - 0.5) < 0.1
        assert (tcav_scores(gradients, own.vectors) == score).all()


@pytest.mark.parametrize("width", [3, 50])
def test_the_classifier_is_scikit_learns(width: int) -> None:
    generator = np.random.default_rng(width)
    positive, negative = generator.normal(0.5, 1, (5, width)), generator.normal(size=(23, width))
    theirs = RidgeClassifier(class_weight="balanced").fit(np.concatenate([positive, negative]), [1] * 5 + [0] * 23)
    normal, offset = fit_ridge(positive, negative)
    np.testing.assert_allclose(normal, theirs.coef_.ravel(), atol=1e-10)
    assert offset == pytest.approx(float(np.ravel(theirs.intercept_)[0]))


def test_training_sets_are_disjoint_and_of_the_same_sizes() -> None:
    sets = draw_sets(63, 300, 10, [3])
    assert {len(part) for part in (*sets.parts, *sets.random_parts)} == {6}
    assert (len(sets.parts), len(sets.random_parts)) == (10, 25)
    for parts in (sets.parts, (*sets.random_parts, sets.others)):
        everything = np.concatenate(parts)
        assert len(np.unique(everything)) == len(everything)
    for against in sets.negatives:
        assert set(against) < set(sets.others)
    assert len(draw_sets(12, 300, 10, [3]).parts) == 6, "two examples a vector, so fewer vectors"
    with pytest.raises(UsageError, match="must have at least 20 examples besides those of the concepts, got 19"):
        draw_sets(12, 19, 10, [3])


def test_a_derivative_of_zero_is_not_positive() -> None:
    gradients = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [2.0, 5.0]])
    assert tcav_scores(gradients, np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist() == [0.5, 0.25]


class Fixed(Classifier):
    """A classifier of Captum whose vector is given."""

    def __init__(self) -> None:
        self.vector = torch.randn(WIDTH)

    def train_and_eval(self, dataloader: object, **_: object) -> dict[str, torch.Tensor]:
        return {"accs": torch.tensor(1.0)}

    def weights(self) -> torch.Tensor:
        return torch.stack([self.vector, -self.vector])

    def classes(self) -> list[int]:
        return [0, 1]


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")  # torch.load of Captum's file of a vector
def test_scores_are_captums_with_the_same_vector(tmp_path: object) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 3))
    inputs = torch.randn(40, 4)
    fixed = Fixed()

    def batches() -> Iterator[torch.Tensor]:
        yield torch.randn(8, 4)

    concepts = [Concept(place, name, list(batches())) for place, name in enumerate(("concept", "random"))]
    captum = TCAV(
        model, ["0"], classifier=fixed, save_path=str(tmp_path),
        layer_attr_method=LayerGradientXActivation(model, None, multiply_by_inputs=False),
    )  # fmt: skip
    for target in range(3):
        [of_layers] = captum.interpret(inputs, [concepts], target=target).values()
        theirs = float(of_layers["0"]["sign_count"][0])
        hidden = model[0](inputs).detach().requires_grad_()
        (gradients,) = torch.autograd.grad(model[2](model[1](hidden))[:, target].sum(), hidden)
        [ours] = tcav_scores(gradients.double().numpy(), fixed.vector.double().numpy()[None])
        assert ours == pytest.approx(theirs)


def test_the_p_value_is_the_larger_of_both_t_tests_and_never_below_that_of_all_orders() -> None:
    generator = np.random.default_rng(1)
    own, random = generator.uniform(size=8), generator.uniform(size=20)
    tests = [scipy.stats.ttest_ind(own, random, equal_var=equal).pvalue for equal in (True, False)]
    assert p_value(own, random) == pytest.approx(max(tests))
    ones, zeros = np.ones(3), np.zeros(4)
    assert p_value(ones, zeros) == pytest.approx(1 / 35)
    assert p_value(ones, np.ones(4)) == 1
    mean, low, high = mean_interval(own)
    wanted = scipy.stats.t.interval(0.95, 7, own.mean(), scipy.stats.sem(own))
    assert (mean, low, high) == pytest.approx((own.mean(), *wanted))
    assert mean_interval(ones) == (1, 1, 1)


def test_random_concepts_are_significant_in_at_most_five_percent() -> None:
    """The concept's examples are random ones. The gradients of a class are alike, as at late layers."""
    found, shared, repeats, layers = 0, 0, 150, 2
    for repeat in range(repeats):
        generator = np.random.default_rng([7, repeat])
        values, of_shared = [], []
        sets = draw_sets(40, 160, 8, [repeat])
        for _ in range(layers):
            scales = np.linspace(3, 0.3, WIDTH)
            concept, pool = (generator.normal(size=(count, WIDTH)) * scales for count in (40, 160))
            gradients = generator.normal(size=WIDTH) + 0.3 * generator.normal(size=(30, WIDTH))
            own, random = (tcav_scores(gradients, one.vectors) for one in train_vectors(concept, pool, sets))
            values.append(p_value(own, random))
            centers = [pool[against].mean(0) for against in sets.negatives]
            all_examples = np.array([concept.mean(0) - one for one in centers[:8]])
            of_random = np.array(
                [pool[sets.others][generator.permutation(len(sets.others))[:40]].mean(0) - one for one in centers[8:]]
            )
            of_shared.append(p_value(tcav_scores(gradients, all_examples), tcav_scores(gradients, of_random)))
        found += min(one for one in holm(values) if one is not None) < 0.05
        shared += min(one for one in holm(of_shared) if one is not None) < 0.05
    assert scipy.stats.binomtest(found, repeats, 0.05, "greater").pvalue > 0.01, found
    assert shared / repeats > 0.2, "vectors that share the concept's examples, as in the paper"
