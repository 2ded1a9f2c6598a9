"""What was found on a plan, kept as a whole: a page opens it without its many parts."""

from __future__ import annotations

import dataclasses
from typing import Any

from cache import key_for
from engine import runtime
from engine.attacks import attack, transfer
from engine.attacks.findings import ZERO, AttackOutcome, Findings, Of, Row, Skip
from engine.attacks.plan import AttackPlan
from engine.evaluation.result import Facts
from engine.evaluation.sample import Sample, sample_of
from engine.explain import method_key, versions_of
from engine.models import catalog
from engine.registry import explainer
from engine.store import result_store

VERSION = 2
"""Raised whenever what is noted of each attack changes."""


def key_of(plan: AttackPlan, sample: Sample) -> str:
    """The cache key. Reads the models' files, never loads one."""
    source = sample.source
    return key_for(
        {
            "kind": "attacks",
            "version": [VERSION, attack.VERSION, transfer.VERSION],
            "plan": plan.as_plain(),
            "models": [catalog.revision(model) for model in plan.models],
            "data": [source.name, source.revision, source.count],
            "methods": [_told(plan, method) for method in plan.sampled.methods],
            "device": runtime.device_type(),
        }
    )


def _told(plan: AttackPlan, method: str) -> list[object]:
    known = explainer(method, plan.kind)
    if known.settle is None:
        return [*versions_of(known)]
    return [method_key(known, plan.params_of(method), model) for model in plan.models]


def finished(plan: AttackPlan, sample: Sample | None = None) -> Findings | None:
    """What was found, from the cache, without a model; None where it was not carried out to its end.

    What failed is among the skips: only new work tries it again. Errors: those of reading the data set.
    """
    entry = result_store().get(key_of(plan, sample or sample_of(plan.sampled)))
    return None if entry is None else _unpacked(plan, entry[0])


def complete(found: Findings) -> bool:
    """Whether nothing failed, so that nothing need be tried again."""
    return all(skip.reason == ZERO for skip in found.skips)


def keep(found: Findings, sample: Sample) -> None:
    """Puts it into the cache."""
    meta: dict[str, Any] = {
        "rows": [[*dataclasses.astuple(row.of), row.example, row.value] for row in found.rows],
        "skips": [[*dataclasses.astuple(skip.of), skip.example, skip.reason] for skip in found.skips],
        "facts": [dataclasses.asdict(fact) for fact in found.facts],
        "said": list(found.said),
        "outcomes": [list(dataclasses.astuple(one)) for one in found.outcomes],
    }
    result_store().put(key_of(found.plan, sample), meta, {})


def _unpacked(plan: AttackPlan, meta: dict[str, Any]) -> Findings:
    return Findings(
        plan,
        tuple(Row(Of(*of), example, value) for *of, example, value in meta["rows"]),
        tuple(Skip(Of(*of), example, reason) for *of, example, reason in meta["skips"]),
        tuple(Facts(**fact) for fact in meta["facts"]),
        tuple(meta["said"]),
        tuple(AttackOutcome(*one) for one in meta["outcomes"]),
    )
