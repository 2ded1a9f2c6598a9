"""What was found on one model, kept as a whole under all that it depends on: a page opens it without its many parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cache import key_for
from engine import runtime
from engine.evaluation.plan import Plan
from engine.evaluation.result import Evaluation, Facts, OfModel, joined
from engine.evaluation.sample import Sample
from engine.explain import method_key
from engine.metrics import faithfulness, sensitivity
from engine.metrics.results import MetricKey, MetricRow, MetricSkip
from engine.models import catalog
from engine.registry import explainer
from engine.removal_operators import keyed, keyed_params
from engine.store import result_store

VERSION = 3
"""Raised whenever the numbers of a metric change that are not kept one by one."""

Arrays = dict[str, np.ndarray]


def key_of(plan: Plan, model: str, sample: Sample) -> str:
    """The cache key. Reads the model's files, never loads it."""
    asked = {name: value for name, value in plan.as_plain().items() if name != "models"}
    params = {method: keyed_params(plan.params_of(method)) for method in plan.params}
    asked |= {"removal": keyed(plan.removal), "params": params}
    source = sample.source
    return key_for(
        {
            "kind": "evaluation",
            "version": [VERSION, faithfulness.VERSION, sensitivity.VERSION],
            "plan": asked,
            "model": [model, catalog.revision(model)],
            "data": [source.name, source.revision, source.count],
            "methods": [_told(plan, method, model) for method in plan.company],
            "device": runtime.device_type(),
        }
    )


def _told(plan: Plan, method: str, model: str) -> list[object]:
    known = explainer(method, plan.kind)
    if known.settle is None:
        return [method, known.version]
    return [method, *method_key(known, plan.params_of(method), model)]


def kept(plan: Plan, model: str, sample: Sample) -> OfModel | None:
    """What the cache holds of it, None where it holds nothing or where an example failed."""
    return _read(key_of(plan, model, sample), complete=True)


def entries(plan: Plan, sample: Sample) -> tuple[str, ...]:
    """Under which keys the cache holds the whole evaluation; empty while there is nothing of one of its models.

    Reads no result. `plan`: with its metrics.
    """
    store = result_store()
    asked = ((key_of(plan, model, sample), _lacking(plan, model, sample)) for model in plan.models)
    found = [next((key for key in keys if store.contains(key)), None) for keys in asked]
    there = tuple(key for key in found if key is not None)
    return there if len(there) == len(found) else ()


def failed_on(plan: Plan, keys: Sequence[str], sample: Sample) -> tuple[str, ...]:
    """The models on which examples failed, of what stands under `keys`, which `entries` found."""
    there = zip(plan.models, keys, strict=True)
    return tuple(model for model, key in there if key != key_of(plan, model, sample))


def finished(plan: Plan, sample: Sample) -> Evaluation | None:
    """The whole evaluation from the cache, without a model; None while there is nothing of one of its models.

    Examples that failed are among the skips: only new work tries them again. `plan`: with its metrics.
    """
    found = [_read(key, complete=True) for key in entries(plan, sample)]
    there = [one for one in found if one is not None]
    return joined(plan, there, asked=0, run=0) if there and len(there) == len(found) else None


def _lacking(plan: Plan, model: str, sample: Sample) -> str:
    """The key of what lacks examples that failed: apart, so that it never stands for the whole."""
    return key_for({"kind": "evaluation, incomplete", "of": key_of(plan, model, sample)})


def _read(key: str, complete: bool) -> OfModel | None:
    entry = result_store().get(key)
    if entry is None:
        return None
    meta, arrays = entry
    ofs = [MetricKey(*values) for values in meta["ofs"]]
    rows = zip(arrays["row_of"].tolist(), arrays["row_example"].tolist(), arrays["value"].tolist(), strict=True)
    skips = zip(arrays["skip_of"].tolist(), arrays["skip_example"].tolist(), arrays["reason"].tolist(), strict=True)
    return OfModel(
        tuple(MetricRow(ofs[of], example, value) for of, example, value in rows),
        tuple(MetricSkip(ofs[of], example, meta["reasons"][reason]) for of, example, reason in skips),
        tuple(Facts(**fact) for fact in meta["facts"]),
        meta["said"],
        complete,
    )


def keep(plan: Plan, model: str, sample: Sample, found: OfModel) -> None:
    """Puts it into the cache, under a key of its own where examples failed."""
    ofs = _numbered([*(row.of for row in found.rows), *(skip.of for skip in found.skips)])
    reasons = _numbered([skip.reason for skip in found.skips])
    meta: dict[str, Any] = {
        "ofs": [dataclasses.astuple(of) for of in ofs],
        "reasons": list(reasons),
        "facts": [dataclasses.asdict(fact) for fact in found.facts],
        "said": found.said,
    }
    arrays: Arrays = {
        "row_of": _whole([ofs[row.of] for row in found.rows]),
        "row_example": _whole([row.example for row in found.rows]),
        "value": np.array([row.value for row in found.rows], dtype=np.float64),
        "skip_of": _whole([ofs[skip.of] for skip in found.skips]),
        "skip_example": _whole([skip.example for skip in found.skips]),
        "reason": _whole([reasons[skip.reason] for skip in found.skips]),
    }
    key = key_of if found.complete else _lacking
    result_store().put(key(plan, model, sample), meta, arrays)


def _numbered(values: Sequence[Any]) -> dict[Any, int]:
    """Each value once, with its number."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _whole(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)
