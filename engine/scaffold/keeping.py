"""A finished student, kept under all that it depends on: pages and tables open it without teaching again."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import ExampleSource
from engine.home import home
from engine.models import catalog, weight_files
from engine.scaffold.examples import examples_of
from engine.scaffold.plan import Plan, Pupil, base_named
from engine.scaffold.result import Outcome, Pass
from engine.store import result_store

VERSION = 1
"""Raised whenever students come out otherwise."""
ARRAYS = ("phi", "student_phi")
PLAIN = ("simulability", "best_epoch", "steps", "seconds", "stopped")


@dataclass(frozen=True)
class Kept:
    """The finished students of a plan in the store. Reads files of models and data, never loads a model."""

    plan: Plan

    @cached_property
    def source(self) -> ExampleSource:
        return examples_of(self.plan)

    @cached_property
    def _of_all(self) -> dict[str, Any]:
        plan, source = self.plan, self.source
        base = base_named(plan)
        return {
            "kind": "scaffold student",
            "version": VERSION,
            "teacher": [plan.teacher, catalog.revision(plan.teacher)],
            "base": [base, base_revision(base)],
            # A folder of pictures has one revision for all its parts.
            "data": [source.name, source.revision, source.count, *([plan.split] if plan.split else [])],
            "needed": plan.needed,
            "device": runtime.device_type(),
        }

    def key(self, pupil: Pupil) -> str:
        """The cache key of a student."""
        recipe = self.plan.recipe.used_by(pupil.setting)
        return key_for({**self._of_all, "recipe": recipe, "pupil": list(dataclasses.astuple(pupil))})

    def folder(self, pupil: Pupil) -> Path:
        """Where its checkpoint lies while it is taught."""
        return home() / "scaffold" / self.key(pupil)

    def find(self, pupil: Pupil) -> Outcome | None:
        """The finished student, None where it is not in the store."""
        entry = result_store().get(self.key(pupil))
        return None if entry is None else unpacked(pupil, *entry)

    def keep(self, outcome: Outcome) -> None:
        result_store().put(self.key(outcome.pupil), *packed(outcome))


def base_revision(base: str) -> str:
    """A hash of the base's weights."""
    return weight_files.weights_sha256(catalog.locate_base(base))


def packed(outcome: Outcome) -> tuple[Meta, Arrays]:
    """As plain values and arrays."""
    meta = {name: getattr(outcome, name) for name in PLAIN}
    meta["history"] = [list(dataclasses.astuple(one)) for one in outcome.history]
    arrays = {name: getattr(outcome, name) for name in ARRAYS if getattr(outcome, name) is not None}
    return meta, arrays


def unpacked(pupil: Pupil, meta: Meta, arrays: Arrays) -> Outcome:
    """What `packed` made of it."""
    history = tuple(Pass(*row) for row in meta["history"])
    plain: dict[str, Any] = {name: meta[name] for name in PLAIN} | {name: arrays.get(name) for name in ARRAYS}
    return Outcome(pupil, history=history, **plain)
