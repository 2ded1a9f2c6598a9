"""Numbers of SMaT's claims, of students and of what their explainers mark, and the rows of the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from engine.reproduction.claims import SPARSEMAX, Claim, Contrast, Sizes, StudentTerm
from engine.reproduction.estimates import widened_interval, with_room
from engine.reproduction.papers import ACTIVE, AUC, DEPTH, SIMULABILITY, TASKS, setting_name, size_name
from engine.reproduction.query import NoNumber, interval_number
from engine.reproduction.report import (
    CEILING_WIDTH,
    ERROR_RATE,
    POWER,
    ROUNDING,
    ClaimNumber,
    Margin,
    SeedMargin,
    TableRow,
    margin,
)
from engine.scaffold.plan import NONE, SMAT
from engine.scaffold.plausibility import HEAD, LAYER, Plausibility
from engine.scaffold.result import ScaffoldResult, SimulabilityCell, StudentResult

ACTIVE_HEADS, INACTIVE_HEADS = "active_heads", "inactive_heads"
QUARTILES = 1.349
"""The distance between the quartiles of normal values, in standard deviations."""
MEDIAN = math.sqrt(math.pi / 2)
"""The standard error of the median of normal values, as a multiple of that of their mean."""
ABOVE, BELOW = "above no explanations", "below no explanations"

StudentsKey = tuple[str, str]
"""A task and a normalization."""


@dataclass(frozen=True)
class StudentFindings:
    """`students`: of each task and normalization; `plausible`: of each task. In the place of what is missing, why."""

    students: Mapping[StudentsKey, ScaffoldResult | str]
    plausible: Mapping[str, Plausibility | str] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    least_seeds: int = 1

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        return claim.entries

    def missing(self, claim: Claim) -> str:
        return ""

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        if contrast.terms[0].metric == AUC:
            return self._over_examples(claim, contrast, seed, error_rates)
        return self._over_seeds(claim, contrast)

    def _over_seeds(self, claim: Claim, contrast: Contrast) -> tuple[ClaimNumber, Margin]:
        times = [term.times for term in contrast.terms]
        cells = [self.cell(term) for term in contrast.terms]
        pairs = list(zip(times, cells, strict=True))
        value = sum(t * cell.median for t, cell in pairs)
        low = sum(t * (cell.low if t > 0 else cell.high) for t, cell in pairs)
        high = sum(t * (cell.high if t > 0 else cell.low) for t, cell in pairs)
        n = min(len(cell.values) for cell in cells)
        plain = margin(value, (low, high), (low, high), claim.bounds, n, claim.strict)
        inside = SeedMargin(
            plain.value, plain.low, plain.high, n, claim.strict, seeds=seeds_needed(plain.value, times, cells)
        )
        at_best = all(
            term.metric == SIMULABILITY and cell.median >= 1 - CEILING_WIDTH
            for term, cell in zip(contrast.terms, cells, strict=True)
        )
        return ClaimNumber(contrast.name, value, low, high, low, high, n, inside.verdict, at_best), inside

    def _over_examples(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        each = [self.example_values(term) for term in contrast.terms]
        common = sorted(set.intersection(*map(set, each)))
        if len(common) < 2:
            raise NoNumber(f"{len(common)} examples have a value; 2 are needed for an interval.")
        times = [term.times for term in contrast.terms]
        values = np.array([sum(t * one[at] for t, one in zip(times, each, strict=True)) for at in common])
        ends = float(sum(min(t, 0) for t in times)), float(sum(max(t, 0) for t in times))
        rates = (ERROR_RATE, *error_rates)
        intervals = [with_room(values, widened_interval(values, seed, rate), ends, rate) for rate in rates]
        at_best = all(np.mean(list(one.values())) >= 1 - CEILING_WIDTH for one in each)
        return interval_number(claim, contrast, float(values.mean()), intervals, len(common), error_rates, at_best)

    def cell(self, term: StudentTerm) -> SimulabilityCell:
        """A value for each student. Errors: `NoNumber`, where there are too few."""
        scaffold = self._scaffold(term)
        size = self.sizes[term.task][term.size]
        students = scaffold.students_of(term.setting, size)
        values = tuple(value for one in students if (value := self._value(term, one)) is not None)
        if len(values) < self.least_seeds:
            raise NoNumber(self._too_few(term, scaffold, len(values)))
        return SimulabilityCell(term.setting, size, values)

    def _scaffold(self, term: StudentTerm) -> ScaffoldResult:
        scaffold = self.students.get((term.task, term.normalization), "It was not trained.")
        if isinstance(scaffold, str):
            raise NoNumber(f"{TASKS[term.task].capitalize()}: {scaffold}")
        return scaffold

    def _value(self, term: StudentTerm, student: StudentResult) -> float | None:
        if term.metric == SIMULABILITY:
            return student.simulability
        weights = self._scaffold(term).weights(student)
        if weights is None:
            return None
        return active_share(weights) if term.metric == ACTIVE else mean_depth(weights)

    def _too_few(self, term: StudentTerm, scaffold: ScaffoldResult, count: int) -> str:
        size = self.sizes[term.task][term.size]
        what = f"{TASKS[term.task].capitalize()}, {setting_name(term.setting)}, {size_name(size)}"
        what += "" if term.normalization == SPARSEMAX else f", {term.normalization}"
        seeds = len(scaffold.plan.seeds)
        text = f"{what}: {count} of {seeds} students have a value; {self.least_seeds} are needed."
        cell = (term.setting, size)
        why = dict.fromkeys(w for run, w in scaffold.failed.items() if (run.setting, run.train_size) == cell)
        return " ".join((text, *why))

    def example_values(self, term: StudentTerm) -> dict[int, float]:
        """The AUC of each example. Errors: `NoNumber`, where there is none."""
        measured = self.plausible.get(term.task, "Plausibility was not measured.")
        task = TASKS[term.task].capitalize()
        if isinstance(measured, str):
            raise NoNumber(f"{task}: {measured}")
        if term.side not in {side.name for side in measured.sides}:
            raise NoNumber(f"{task}: {measured.sample.dataset} has no {term.side} texts of pairs.")
        examples = measured.side(term.side).examples
        values = _auc(measured, term, task)
        return dict(zip(examples, map(float, values), strict=True))


def _auc(measured: Plausibility, term: StudentTerm, task: str) -> Float[np.ndarray, "example"]:
    side = measured.side(term.side)
    if term.setting in side.methods:
        return side.methods[term.setting]
    if term.setting == SMAT or measured.coefficients is None:
        raise NoNumber(f"{task}: no learned explainer is finished.")
    if not side.examples:
        raise NoNumber(f"{task}: no example could be judged.")
    if term.setting in (LAYER, HEAD):
        columns = side.layers if term.setting == LAYER else side.heads
        return columns[:, int(columns.mean(0).argmax())]
    active = measured.coefficients.weights > 0
    heads = active if term.setting == ACTIVE_HEADS else ~active
    if not heads.any():
        raise NoNumber(f"{task}: all heads are active, so that there is nothing to compare.")
    return side.heads[:, heads].mean(1)


def seeds_needed(distance: int | float, times: Sequence[int | float], cells: Sequence[SimulabilityCell]) -> int | None:
    """Students a cell with which a 95% interval of the sum of medians leaves a bound so far away, with power 0.8.

    None where the sum is the bound. As if values were normal, as spread as the quartiles now are.
    """
    if abs(distance) <= ROUNDING:
        return None
    spread = sum((t * (cell.high - cell.low) / QUARTILES) ** 2 for t, cell in zip(times, cells, strict=True))
    quantiles = NormalDist().inv_cdf(1 - ERROR_RATE / 2) + NormalDist().inv_cdf(POWER)
    more = max(len(cell.values) for cell in cells) + 1
    return max(more, math.ceil((quantiles * MEDIAN / distance) ** 2 * spread))


def active_share(weights: Float[np.ndarray, "layer head"]) -> float:
    """The share of heads with a weight above 0."""
    return float((weights > 0).mean())


def mean_depth(weights: Float[np.ndarray, "layer head"]) -> float | None:
    """The mean layer of the weight, 0 the first and 1 the last; None of a single layer, or without any weight."""
    by_layer, last = weights.sum(1), len(weights) - 1
    if not last or not by_layer.sum() > 0:
        return None
    return float((by_layer * np.arange(len(weights))).sum() / by_layer.sum() / last)


def table_rows(findings: StudentFindings) -> tuple[TableRow, ...]:
    """The rows of the paper's tables 1 to 7 and figure 5: simulability, then heads, then plausibility."""
    students = [(key, one) for key, one in findings.students.items() if isinstance(one, ScaffoldResult)]
    return (
        *(row for key, one in students for row in _simulability_rows(key, one, findings)),
        *(row for key, one in students for row in _head_rows(key, one, findings)),
        *_plausibility_rows(findings),
    )


def _simulability_rows(key: StudentsKey, scaffold: ScaffoldResult, findings: StudentFindings) -> Iterator[TableRow]:
    for size in sorted(scaffold.plan.train_sizes):
        for setting in scaffold.plan.settings:
            cell = scaffold.cell(setting, size)
            if cell is not None:
                notes = _baseline_note(cell, key, findings), _exceptions_note(scaffold, cell)
                yield replace(_cell_row(SIMULABILITY, key, cell), note="; ".join(filter(None, notes)))


def _cell_row(table: str, key: StudentsKey, cell: SimulabilityCell) -> TableRow:
    ends = cell.median, cell.low, cell.high
    return TableRow(table, *key, cell.setting, "", cell.train_size, *ends, len(cell.values))


def _baseline_note(cell: SimulabilityCell, key: StudentsKey, findings: StudentFindings) -> str:
    """Whether quartiles lie apart from those of no explanations, which have no normalization."""
    sparsemax = findings.students.get((key[0], SPARSEMAX))
    baseline = sparsemax.cell(NONE, cell.train_size) if isinstance(sparsemax, ScaffoldResult) else None
    if baseline is None or cell.setting == NONE:
        return ""
    return ABOVE if cell.above(baseline) else BELOW if baseline.above(cell) else ""


def _exceptions_note(scaffold: ScaffoldResult, cell: SimulabilityCell) -> str:
    """Counts of students that did not end as others do."""
    students = scaffold.students_of(cell.setting, cell.train_size)
    counts = {
        "diverged": sum(one.diverged for one in students),
        "no better than untrained": sum(one.best_epoch < 0 for one in students),
        "without a simulability": sum(one.simulability is None for one in students),
        "not finished": len(scaffold.plan.seeds) - len(students),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _head_rows(key: StudentsKey, scaffold: ScaffoldResult, findings: StudentFindings) -> Iterator[TableRow]:
    names = {size: name for name, size in findings.sizes[key[0]].items()}
    for size in sorted(set(scaffold.plan.train_sizes) & set(names)):
        for measure in (ACTIVE, DEPTH):
            term = StudentTerm(1, key[0], measure, SMAT, names[size], key[1])
            try:
                yield _cell_row(measure, key, findings.cell(term))
            except NoNumber:
                continue


def _plausibility_rows(findings: StudentFindings) -> Iterator[TableRow]:
    for task, measured in findings.plausible.items():
        if isinstance(measured, str):
            continue
        for side in measured.sides:
            skipped = "; ".join(f"{count} left out: {why}" for why, count in side.skipped.items())
            for row in side.rows:
                # One example has no interval: from the least to the most that is possible.
                low, high = row.interval or (0.0, 1.0)
                chosen = f"layer {', head '.join(map(str, row.at))}" if row.at else ""
                note, n = "; ".join(filter(None, (chosen, skipped))), len(side.examples)
                yield TableRow(AUC, task, SPARSEMAX, row.explainer, side.name, 0, row.mean, low, high, n, note)
