"""What was found on one model, kept as a whole under all that it depends on: a page opens it without its pieces."""

from __future__ import annotations

import dataclasses
from typing import Any

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.evaluation.sample import Sample
from engine.explain import told_of
from engine.models import catalog
from engine.operators import keyed_params
from engine.randomization import pieces
from engine.randomization.plan import Plan
from engine.randomization.result import OfModel
from engine.randomization.stages import Stage
from engine.registry import explainer
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers of a measure change."""
LISTS = ("seeds", "methods", "examples", "targets", "reasons")
ARRAYS = ("likeness", "why", "before", "after", "changed")


def key_of(plan: Plan, model: str, sample: Sample) -> str:
    """The cache key. Reads the model's files, never loads it."""
    asked = {name: value for name, value in plan.as_plain().items() if name not in ("models", "params")}
    source = sample.source
    return key_for(
        {
            "kind": "randomization",
            "version": [VERSION, pieces.VERSION],
            "plan": asked,
            "model": [model, catalog.revision(model)],
            "data": [source.name, source.revision, source.count],
            "methods": [_told(plan, method, model) for method in plan.company],
            "device": runtime.device_type(),
        }
    )


def _told(plan: Plan, method: str, model: str) -> list[object]:
    given = plan.params_of(method)
    return [method, told_of(explainer(method, plan.kind), given, model), keyed_params(given)]


def kept(plan: Plan, model: str, sample: Sample) -> OfModel | None:
    """What the cache holds of it, None where it holds nothing. It may be incomplete: see `OfModel.complete`."""
    key = key_of(plan, model, sample)
    entry = result_store().get(key) or result_store().get(_lacking(key))
    if entry is None:
        return None
    meta, arrays = entry
    stages = tuple(Stage(mode, block, number, tuple(parts)) for mode, block, number, parts in meta["stages"])
    lists: dict[str, Any] = {name: tuple(meta[name]) for name in LISTS}
    return OfModel(
        model=meta["model"],
        dataset=meta["dataset"],
        stages=stages,
        failed=dict(meta["failed"]),
        regression=meta["regression"],
        complete=meta["complete"],
        **lists,
        **{name: arrays[name] for name in ARRAYS},  # type: ignore[arg-type]
    )


def keep(plan: Plan, model: str, sample: Sample, found: OfModel) -> None:
    """Puts it into the cache, under a key of its own where maps failed: that never stands for the whole."""
    key = key_of(plan, model, sample)
    result_store().put(key if found.complete else _lacking(key), *_packed(found))


def _lacking(key: str) -> str:
    return key_for({"kind": "randomization, incomplete", "of": key})


def _packed(found: OfModel) -> tuple[Meta, Arrays]:
    meta = {name: getattr(found, name) for name in ("model", "dataset", "regression", "complete", *LISTS)}
    meta["stages"] = [dataclasses.astuple(stage) for stage in found.stages]
    meta["failed"] = [[index, why] for index, why in found.failed.items()]
    return meta, {name: getattr(found, name) for name in ARRAYS}
