"""LIME: a weighted ridge regression on randomly removed words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engine.operators import OPERATORS
from engine.params import option
from engine.parts import Parts, single
from engine.registry import Axes, register
from engine.task import Attribution, Task


@dataclass(frozen=True)
class LimeParams:
    removal: str = option("mask", "How features are removed", choices=OPERATORS)
    n_samples: int = option(512, "Perturbed texts, the whole text included", low=2, high=20_000)
    kernel_width: float = option(25.0, "Width of the similarity kernel", low=0.1, high=1000)
    ridge: float = option(1.0, "Penalty of the ridge regression", low=0, high=1000)


@register(
    "lime",
    title="LIME",
    family="perturbation",
    params=LimeParams,
    axes=Axes("chosen operator, many words at a time", "probability of the class", "local linear model"),
    cheap=False,
    citation="Ribeiro, Singh and Guestrin (2016), 'Why should I trust you?', eq. 1 and 2",
    caution="Another seed draws other texts: compare two seeds before you trust small differences.",
)
def lime(task: Task, params: LimeParams) -> list[Attribution]:
    """Coefficients of the local linear model of m, in probability, signed.

    As the lime package on text, by position: the number of removed features is uniform on 1..n, then which. Equal
    texts are evaluated once.
    """
    return local_models(task, [single(len(e.features)) for e in task.examples], params)


def local_models(task: Task, parts: Sequence[Parts], params: LimeParams) -> list[Attribution]:
    """The same for what is removed together in each item; a part's coefficient is shared by its features."""
    drawn = [samples(p.count, params.n_samples, item.generator()) for p, item in zip(parts, task.items, strict=True)]
    unique = [np.unique(kept, axis=0, return_inverse=True) for kept in drawn]
    rows = [part.features(kept) for part, (kept, _) in zip(parts, unique, strict=True)]
    values = task.masked_values(rows, params.removal)
    made = []
    for i, (example, value) in enumerate(zip(task.examples, values, strict=True)):
        weights = proximity(drawn[i], params.kernel_width)
        slopes = weighted_ridge(drawn[i], value[unique[i][1].ravel()], weights, params.ridge)
        scores = np.zeros(len(example))
        scores[example.features] = parts[i].shared_out(slopes)
        made.append(Attribution(scores, len(value)))
    return made


def samples(n: int, count: int, generator: np.random.Generator) -> Bool[np.ndarray, "sample feature"]:
    """The whole input, then `count - 1` times the input with 1 to n of its n parts removed."""
    removed = generator.integers(1, n + 1, size=count - 1)
    ranks = generator.random((count - 1, n)).argsort(axis=1).argsort(axis=1)
    return np.vstack([np.ones((1, n), dtype=bool), ranks >= removed[:, None]])


def proximity(kept: Bool[np.ndarray, "sample feature"], width: float) -> Float[np.ndarray, "sample"]:
    """`sqrt(exp(-d²/w²))` with the cosine distance `d = 100 (1 - sqrt(kept/n))` to the whole input."""
    distance = 100 * (1 - np.sqrt(kept.mean(axis=1)))
    return np.sqrt(np.exp(-(distance**2) / width**2))


def weighted_ridge(
    kept: Bool[np.ndarray, "sample feature"],
    values: Float[np.ndarray, "sample"],
    weights: Float[np.ndarray, "sample"],
    penalty: float,
) -> Float[np.ndarray, "feature"]:
    """Coefficients of `min sum w (y - b - Xa)² + penalty |a|²`; the intercept b is not penalised."""
    total = weights.sum()
    x = kept - weights @ kept / total
    y = values - weights @ values / total
    gram = x.T @ (weights[:, None] * x) + penalty * np.eye(x.shape[1])
    return np.linalg.lstsq(gram, x.T @ (weights * y), rcond=None)[0]
