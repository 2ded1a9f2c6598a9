"""Agreement of methods: a measure between the maps of one example, and one value to search data sets by."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cache import key_for
from engine import runtime
from engine.errors import UsageError, not_allowed, unknown
from engine.explain import explain_many
from engine.metrics.ranking import FeatureScores, is_constant, spearman, top_k_overlap
from engine.models import catalog
from engine.progress import check_cancelled
from engine.registry import explainer
from engine.request import DTYPES, Example, Request
from engine.store import result_store

MEASURES = ("spearman", "top_k")
TOP_PERCENT = 15
VERSION = 1
"""Increased whenever the values of `disagreement` change."""
EXAMPLES_AT_ONCE = 16
QUICK = ("gradient_x_input", "gradient_l2", "attention_rollout", "occlusion")
"""Cheap methods of four kinds: they remove nothing or a token, and explain the logit, the probability or attention."""


@dataclass(frozen=True)
class Agreement:
    """A measure between every two maps. `values` is symmetric, with NaN if undefined because a map is constant."""

    measure: str
    methods: tuple[str, ...]
    values: Float[np.ndarray, "method method"]
    constant: tuple[str, ...]
    n: int
    """Number of features of the example."""
    k: int
    """Number of features that count as the top."""

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.methods), len(self.methods)):
            raise ValueError(f"values: one for two methods, {len(self.methods)} methods, got shape {self.values.shape}")
        self.values.setflags(write=False)


def agreement(maps: Mapping[str, FeatureScores], measure: str = "spearman", k: int | None = None) -> Agreement:
    """Compute a measure between every two maps of one example (scores of the features only, no special tokens).

    `spearman`: rho, from -1 (reversed order) to 1 (same order). `top_k`: the share that two top-k sets have in common,
    from 0 to 1; about k/n by chance. `k` defaults to max(1, floor(0.15 n)), the thesis's share for its top-k.
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    sizes = {len(scores) for scores in maps.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise UsageError(f"maps: must be of one example with at least one feature, got sizes {sorted(sizes)}.")
    n = sizes.pop()
    top = max(1, TOP_PERCENT * n // 100) if k is None else k
    if type(top) is not int or not 1 <= top <= n:
        raise not_allowed("k", f"a whole number from 1 to {n}, the features of the example", top)
    constant = tuple(method for method, scores in maps.items() if is_constant(scores))

    def overlap(a: FeatureScores, b: FeatureScores) -> float | None:
        return None if is_constant(a) or is_constant(b) else top_k_overlap(a, b, top)

    values = pairwise(list(maps.values()), spearman if measure == "spearman" else overlap)
    return Agreement(measure, tuple(maps), values, constant, n, top)


def pairwise(
    maps: Sequence[FeatureScores], measure: Callable[[FeatureScores, FeatureScores], float | None]
) -> Float[np.ndarray, "method method"]:
    """Return the measure of each pair: NaN if it is None, else 1 between a map and itself."""
    values = np.full((len(maps), len(maps)), np.nan)
    for i, j in itertools.combinations_with_replacement(range(len(maps)), 2):
        value = measure(maps[i], maps[j])
        values[i, j] = values[j, i] = np.nan if value is None else 1.0 if i == j else value
    return values


@dataclass(frozen=True)
class Disagreement:
    """Disagreement of methods: `value` is 1 minus the mean of Spearman's rho between every two maps.

    0 if all rank the tokens alike, about 1 by chance; at most 2 for two maps, 1 + 1/(m - 1) for m maps. None if fewer
    than two maps have an order. `left_out`: methods without an order, because their scores are all equal.
    """

    value: float | None
    left_out: tuple[str, ...] = ()


def disagreement(maps: Mapping[str, FeatureScores]) -> Disagreement:
    """Compute the disagreement between the maps of one example, without special tokens.

    Absolute scores are compared, as some methods have no sign.
    """
    between = agreement({method: np.abs(scores) for method, scores in maps.items()})
    pairs = [between.values[i, j] for i, j in itertools.combinations(range(len(maps)), 2)]
    finite = [rho for rho in pairs if np.isfinite(rho)]
    return Disagreement(1 - float(np.mean(finite)) if finite else None, between.constant)


def disagreements(
    model: str,
    examples: Sequence[Example],
    methods: Sequence[str] = QUICK,
    dtype: str = DTYPES[0],
) -> list[Disagreement]:
    """Return the disagreement on each example, in order, by maps of the predicted class with each method's defaults."""
    keys = disagreement_keys(model, examples, methods, dtype)
    results = _load_cached(keys)
    missing = {key: example for key, example in zip(keys, examples, strict=True) if key not in results}
    for start in range(0, len(missing), EXAMPLES_AT_ONCE):
        check_cancelled()
        group = dict(itertools.islice(missing.items(), start, start + EXAMPLES_AT_ONCE))
        results |= _compute(model, group, methods, dtype)
    return [results[key] for key in keys]


def cached_disagreements(
    model: str, examples: Sequence[Example], methods: Sequence[str] = QUICK
) -> list[Disagreement | None]:
    """Return cached results without running the model; None for examples that have not been explained yet."""
    keys = disagreement_keys(model, examples, methods)
    results = _load_cached(keys)
    return [results.get(key) for key in keys]


def disagreement_keys(
    model: str, examples: Sequence[Example], methods: Sequence[str] = QUICK, dtype: str = DTYPES[0]
) -> list[str]:
    """Return the cache key of each example. Reads the model's files, never loads it."""
    check_methods(methods)
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    shared = {
        "kind": "disagreement",
        "version": VERSION,
        "model": model,
        "revision": catalog.revision(model),
        "dtype": dtype,
        "device": runtime.device_type(),
        "methods": sorted([method, explainer(method).keyed_version] for method in methods),
    }
    return [key_for({**shared, "example": example.as_plain()}) for example in examples]


def check_methods(methods: Sequence[str]) -> None:
    """Require at least two different methods for text. Ensembles are refused, as they agree with their members."""
    if len(set(methods)) < 2 or len(set(methods)) < len(methods):
        raise not_allowed("methods", "at least two different methods", list(methods))
    for method in methods:
        if explainer(method).family == "ensemble":
            raise not_allowed("methods", "methods for text that are no ensembles of others", method)


def _load_cached(keys: Sequence[str]) -> dict[str, Disagreement]:
    store = result_store()
    entries = {key: entry[0] for key in keys if (entry := store.get(key)) is not None}
    return {key: Disagreement(meta["value"], tuple(meta["left_out"])) for key, meta in entries.items()}


def _compute(
    model: str, examples: Mapping[str, Example], methods: Sequence[str], dtype: str
) -> dict[str, Disagreement]:
    requests = [Request(model, method, example, dtype=dtype) for method in methods for example in examples.values()]
    maps = explain_many(requests)
    results = {}
    for place, key in enumerate(examples):
        own = zip(methods, maps[place :: len(examples)], strict=True)
        results[key] = disagreement({method: answer.scores[answer.features] for method, answer in own})
        result_store().put(key, dataclasses.asdict(results[key]), {})
    return results
