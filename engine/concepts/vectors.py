"""Concept activation vectors, their scores, and the test against random vectors. Works on arrays only.

Source: Kim et al. (2018), Interpretability beyond feature attribution: quantitative testing with concept activation
vectors (TCAV), ICML. A vector is the normal of a linear classifier that separates activations of a concept's examples
from those of random examples (section 3.2). The score of a class is the share of its examples whose class logit rises
along the vector (equation 2).

We depart from the paper in one point. There all vectors of a concept are trained on the same examples of the concept,
each against other random examples, and a t-test compares their scores with those of random vectors (section 3.5).
Scores that share the concept's examples are not independent: any 50 random examples would be "significant" far more
often than stated. Here each vector has its own part of the concept's examples, and random vectors have parts of the
same size from random examples. If the concept's examples are random ones, then all scores have the same distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.errors import UsageError
from engine.lazy import scipy

LEAST_PART = 2
"""Minimum number of examples of a concept that a vector is trained on."""
RANDOM_RUNS = 3
"""Number of random vectors per vector of a concept, if there are enough examples."""
MOST_NEGATIVES = 40
"""Maximum number of random examples that a vector is trained against."""
LEAST_POOL = 20
PENALTY = 1.0
"""Weight of the squared length of the normal, with activations divided by their standard deviation."""
LEVEL = 0.95
Activations = Float[np.ndarray, "_ d_model"]
Indices = Int[np.ndarray, "_"]


@dataclass(frozen=True, eq=False)
class ExampleSets:
    """Training sets of the vectors of a concept, as indices. `parts`: disjoint parts of its examples.

    `random_parts`: disjoint parts of the pool of random examples. `others`: the rest of the pool, from which no part is
    drawn. `negatives`: the examples that each vector is trained against, for the parts and then for the random parts.
    """

    parts: tuple[Indices, ...]
    random_parts: tuple[Indices, ...]
    others: Indices
    negatives: tuple[Indices, ...]


@dataclass(frozen=True, eq=False)
class ConceptVectors:
    """Vectors of unit length, and the balanced accuracy of their classifiers on held-out examples."""

    vectors: Float[np.ndarray, "run d_model"]
    accuracy: Float[np.ndarray, "run"]


def check_pool(examples: int, pool: int, runs: int) -> None:
    """Refuse a pool of too few random examples for a concept with that many examples."""
    least = max(LEAST_POOL, 4 * _part_size(examples, runs))
    if pool < least:
        raise UsageError(
            f"dataset: must have at least {least} examples besides those of the concepts, got {pool}. Choose a larger "
            "data set, or raise --runs."
        )


def _part_size(examples: int, runs: int) -> int:
    return max(LEAST_PART, examples // runs)


def draw_sets(examples: int, pool: int, runs: int, seed: Sequence[int]) -> ExampleSets:
    """Draw the training sets of a concept with that many examples. Errors: the pool is too small.

    Each vector has `examples // runs` examples, at least two; with few examples, there are fewer vectors than `runs`.
    """
    check_pool(examples, pool, runs)
    size = _part_size(examples, runs)
    own = min(runs, examples // size)
    generator = np.random.default_rng(seed)
    order, random_order = generator.permutation(examples), generator.permutation(pool)
    half = pool // 2
    random_own = min(RANDOM_RUNS * own, half // size)
    others = random_order[half:]
    drawn = min(MOST_NEGATIVES, len(others) // 2)
    return ExampleSets(
        tuple(order[run * size : (run + 1) * size] for run in range(own)),
        tuple(random_order[run * size : (run + 1) * size] for run in range(random_own)),
        others,
        tuple(generator.permutation(others)[:drawn] for _ in range(own + random_own)),
    )


def train_vectors(concept: Activations, pool: Activations, sets: ExampleSets) -> tuple[ConceptVectors, ConceptVectors]:
    """Train the vectors of a concept at a layer, and the random ones."""
    scale = float(pool[sets.others].std()) or 1.0  # a single scale keeps the directions of the activations
    concept, pool = concept / scale, pool / scale
    own = len(sets.parts)
    return (
        _train(concept, pool, sets.parts, sets.negatives[:own], sets.others),
        _train(pool, pool, sets.random_parts, sets.negatives[own:], sets.others),
    )


def _train(
    concept: Activations, pool: Activations, parts: Sequence[Indices], negatives: Sequence[Indices], others: Indices
) -> ConceptVectors:  # fmt: skip
    """Train a vector on each part, and test it on the examples of the other parts and on other random examples."""
    vectors, accuracy = np.zeros((len(parts), concept.shape[1])), np.full(len(parts), np.nan)
    everything = np.concatenate(parts)
    for run, (part, against) in enumerate(zip(parts, negatives, strict=True)):
        normal, offset = fit_ridge(concept[part], pool[against])
        vectors[run] = normal / (np.linalg.norm(normal) or 1.0)
        held, held_out = np.setdiff1d(everything, part), np.setdiff1d(others, against)
        if len(held) and len(held_out):
            hits = (concept[held] @ normal + offset > 0).mean(), (pool[held_out] @ normal + offset <= 0).mean()
            accuracy[run] = float(np.mean(hits))
    return ConceptVectors(vectors, accuracy)


def fit_ridge(positive: Activations, negative: Activations) -> tuple[Float[np.ndarray, "d_model"], float]:
    """Return the normal and the offset of scikit-learn's `RidgeClassifier(class_weight="balanced")`, in its dual form.

    It is fitted thousands of times on few examples of many dimensions, where this takes a twentieth of the time.
    """
    values = np.concatenate([positive, negative])
    targets = np.repeat([1.0, -1.0], [len(positive), len(negative)])
    weights = len(values) / 2 / np.repeat([len(positive), len(negative)], [len(positive), len(negative)])
    center, middle = np.average(values, axis=0, weights=weights), np.average(targets, weights=weights)
    roots = np.sqrt(weights)
    scaled = roots[:, None] * (values - center)
    dual = np.linalg.solve(scaled @ scaled.T + PENALTY * np.eye(len(values)), roots * (targets - middle))
    normal = scaled.T @ dual
    return normal, float(middle - center @ normal)


def tcav_scores(
    gradients: Float[np.ndarray, "example d_model"], vectors: Float[np.ndarray, "run d_model"]
) -> Float[np.ndarray, "run"]:
    """Return the share of examples, 0 to 1, with a positive directional derivative along each vector (equation 2)."""
    scores: np.ndarray = (gradients @ vectors.T > 0).mean(axis=0)
    return scores


def p_value(scores: Float[np.ndarray, "run"], random: Float[np.ndarray, "random_run"]) -> float:
    """Return the p-value of a two-sided t-test of a concept's scores against those of random vectors.

    It is the larger one of Student's and Welch's tests: with Welch's alone, random concepts whose few scores agree by
    chance pass in 6% of the simulations. It is at least one over the number of ways to choose the concept's scores
    among all: no randomization test gives less, and scores without variance, all 0 or all 1, would have a p-value of 0.
    """
    least = 1 / math.comb(len(scores) + len(random), len(scores))
    if np.ptp(scores) == 0 and np.ptp(random) == 0:
        return 1.0 if scores[0] == random[0] else least
    own, other = ((float(one.mean()), float(one.std(ddof=1)), len(one)) for one in (scores, random))
    tests = (scipy.stats.ttest_ind_from_stats(*own, *other, equal_var=equal) for equal in (True, False))
    return max(least, *(float(one.pvalue) for one in tests))


def mean_interval(scores: Float[np.ndarray, "run"]) -> tuple[float, float, float]:
    """Return the mean of scores with its 95% t-interval, clipped to 0 and 1."""
    mean, count = float(scores.mean()), len(scores)
    error = float(scores.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
    half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, max(1, count - 1))) * error
    return mean, max(0.0, mean - half), min(1.0, mean + half)
