"""How much methods disagree about one example: one number, by which a whole data set can be searched."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cache import key_for
from engine import runtime
from engine.errors import not_allowed, unknown
from engine.explain import explain_many
from engine.metrics.agreement import agreement
from engine.models import catalog
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.registry import explainer
from engine.request import DTYPES, Example, Request
from engine.result import Explanation
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers change."""
EXAMPLES_AT_ONCE = 16
QUICK = ("gradient_x_input", "gradient_l2", "attention_rollout", "occlusion")
"""Cheap methods of four kinds: they remove nothing or a token, look at the logit, the probability or attention."""


@dataclass(frozen=True)
class Disagreement:
    """`value`: 1 minus the mean of Spearman's rho between every two maps, 0 where all rank the tokens alike.

    By chance about 1; at most 2 for two maps, 1 + 1/(m - 1) for m maps. None where fewer than two maps have an
    order; `left_out` are the methods that have none, because their scores are all equal.
    """

    value: float | None
    left_out: tuple[str, ...] = ()


def disagreement(maps: Mapping[str, Float[np.ndarray, "feature"]]) -> Disagreement:
    """Of the maps of one example, special tokens left out. Scores count without their sign: some have none."""
    found = agreement({method: np.abs(scores) for method, scores in maps.items()})
    pairs = [found.values[i, j] for i, j in itertools.combinations(range(len(maps)), 2)]
    known = [rho for rho in pairs if np.isfinite(rho)]
    return Disagreement(1 - float(np.mean(known)) if known else None, found.constant)


def disagreements(
    model: str,
    examples: Sequence[Example],
    methods: Sequence[str] = QUICK,
    dtype: str = DTYPES[0],
    report: Report = silent,
    cancel: CancelToken | None = None,
) -> list[Disagreement]:
    """That of each example, in the order asked, by maps of the predicted class with each method's usual parameters."""
    keys = disagreement_keys(model, examples, methods, dtype)
    found = _found(keys)
    missing = {key: example for key, example in zip(keys, examples, strict=True) if key not in found}
    with cancellable(cancel):
        for start in range(0, len(missing), EXAMPLES_AT_ONCE):
            check_cancelled()
            report(len(found), len(set(keys)), "examples")
            group = dict(itertools.islice(missing.items(), start, start + EXAMPLES_AT_ONCE))
            found |= _compare(model, group, methods, dtype)
    return [found[key] for key in keys]


def cached_disagreements(
    model: str, examples: Sequence[Example], methods: Sequence[str] = QUICK, dtype: str = DTYPES[0]
) -> list[Disagreement | None]:
    """What can be had without running the model; None for an example that has yet to be explained."""
    keys = disagreement_keys(model, examples, methods, dtype)
    found = _found(keys)
    return [found.get(key) for key in keys]


def disagreement_keys(
    model: str, examples: Sequence[Example], methods: Sequence[str] = QUICK, dtype: str = DTYPES[0]
) -> list[str]:
    """The cache key of each example. Reads the model's files, never loads it."""
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
        "methods": sorted([method, explainer(method).version] for method in methods),
    }
    return [key_for({**shared, "example": example.as_plain()}) for example in examples]


def check_methods(methods: Sequence[str]) -> None:
    """At least two different methods for text. An ensemble agrees with its own members, so it is none."""
    if len(set(methods)) < 2 or len(set(methods)) < len(methods):
        raise not_allowed("methods", "at least two different methods", list(methods))
    for method in methods:
        known = explainer(method)
        if known.family == "ensemble":
            raise not_allowed("methods", "methods for text that are no ensembles of others", method)


def _found(keys: Sequence[str]) -> dict[str, Disagreement]:
    store = result_store()
    entries = {key: entry[0] for key in keys if (entry := store.get(key)) is not None}
    return {key: Disagreement(meta["value"], tuple(meta["left_out"])) for key, meta in entries.items()}


def _compare(
    model: str, examples: Mapping[str, Example], methods: Sequence[str], dtype: str
) -> dict[str, Disagreement]:
    asked = [Request(model, method, example, dtype=dtype) for method in methods for example in examples.values()]
    maps = explain_many(asked)
    made = {}
    for place, key in enumerate(examples):
        own = dict(zip(methods, maps[place :: len(examples)], strict=True))
        made[key] = disagreement({method: _features(one) for method, one in own.items()})
        result_store().put(key, dataclasses.asdict(made[key]), {})
    return made


def _features(explanation: Explanation) -> Float[np.ndarray, "feature"]:
    return explanation.scores[explanation.features]
