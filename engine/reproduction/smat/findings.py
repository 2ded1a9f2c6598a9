"""What was found for SMaT's claims: a value a student or an example, by what a term names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from engine.reproduction.estimates import NoNumber
from engine.reproduction.smat.asked import Key
from engine.reproduction.smat.claims import ACTIVE, SIMULABILITY, SPARSEMAX, Sizes, Term
from engine.reproduction.smat.naming import TASKS, setting_named, size_named
from engine.scaffold.plan import SMAT
from engine.scaffold.plausibility import HEAD, LAYER, Plausibility
from engine.scaffold.result import Cell, Outcome, Scaffold

ACTIVE_HEADS, INACTIVE_HEADS = "active_heads", "inactive_heads"


@dataclass(frozen=True)
class Findings:
    """`students`: of each task and normalisation; `plausible`: of each task. In the place of what is not there, why."""

    students: Mapping[Key, Scaffold | str]
    plausible: Mapping[str, Plausibility | str] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    least_seeds: int = 1

    def cell(self, term: Term) -> Cell:
        """A value a student. Errors: `NoNumber`, where there are too few."""
        scaffold = self._scaffold(term)
        size = self.sizes[term.of][term.size]
        values = tuple(
            value for one in scaffold.of(term.setting, size) if (value := self._value(term, one)) is not None
        )
        if len(values) < self.least_seeds:
            raise NoNumber(self._too_few(term, scaffold, len(values)))
        return Cell(term.setting, size, values)

    def _scaffold(self, term: Term) -> Scaffold:
        found = self.students.get((term.of, term.normalisation), "It was not taught.")
        if isinstance(found, str):
            raise NoNumber(f"{TASKS[term.of].capitalize()}: {found}")
        return found

    def _value(self, term: Term, outcome: Outcome) -> float | None:
        if term.measure == SIMULABILITY:
            return outcome.simulability
        weights = self._scaffold(term).weights(outcome)
        if weights is None:
            return None
        return active_share(weights) if term.measure == ACTIVE else depth(weights)

    def _too_few(self, term: Term, scaffold: Scaffold, count: int) -> str:
        size = self.sizes[term.of][term.size]
        what = f"{TASKS[term.of].capitalize()}, {setting_named(term.setting)}, {size_named(size)}"
        what += "" if term.normalisation == SPARSEMAX else f", {term.normalisation}"
        said = (
            f"{what}: {count} of {len(scaffold.plan.seeds)} students have a value, and {self.least_seeds} are needed."
        )
        cell = (term.setting, size)
        why = dict.fromkeys(w for pupil, w in scaffold.failed.items() if (pupil.setting, pupil.train_size) == cell)
        return " ".join((said, *why))

    def by_example(self, term: Term) -> dict[int, float]:
        """The AUC of each example. Errors: `NoNumber`, where there is none."""
        found = self.plausible.get(term.of, "Plausibility was not measured.")
        if isinstance(found, str):
            raise NoNumber(f"{TASKS[term.of].capitalize()}: {found}")
        if term.side not in {side.name for side in found.sides}:
            raise NoNumber(f"{TASKS[term.of].capitalize()}: {found.asked.dataset} has no {term.side} texts of pairs.")
        examples = found.side(term.side).examples
        values = _auc(found, term)
        return dict(zip(examples, map(float, values), strict=True))


def _auc(found: Plausibility, term: Term) -> Float[np.ndarray, "example"]:
    side = found.side(term.side)
    if term.setting in side.methods:
        return side.methods[term.setting]
    if term.setting == SMAT or found.learned is None:
        raise NoNumber(f"{TASKS[term.of].capitalize()}: no learned explainer is finished.")
    if not side.examples:
        raise NoNumber(f"{TASKS[term.of].capitalize()}: no example could be judged.")
    if term.setting in (LAYER, HEAD):
        columns = side.layers if term.setting == LAYER else side.heads
        return columns[:, int(columns.mean(0).argmax())]
    active = found.learned.weights > 0
    wanted = active if term.setting == ACTIVE_HEADS else ~active
    if not wanted.any():
        raise NoNumber(f"{TASKS[term.of].capitalize()}: all heads are active, so that there is nothing to compare.")
    return side.heads[:, wanted].mean(1)


def active_share(weights: Float[np.ndarray, "layer head"]) -> float:
    """The share of heads with a weight above 0."""
    return float((weights > 0).mean())


def depth(weights: Float[np.ndarray, "layer head"]) -> float | None:
    """The mean layer of the weight, 0 the first and 1 the last; None of a single layer, or without any weight."""
    by_layer, last = weights.sum(1), len(weights) - 1
    if not last or not by_layer.sum() > 0:
        return None
    return float((by_layer * np.arange(len(weights))).sum() / by_layer.sum() / last)
