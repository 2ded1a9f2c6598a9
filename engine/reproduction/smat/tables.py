"""The rows of the paper's tables 1 to 7 and figure 5, from finished students and from what their explainers mark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.metrics.results import Interval
from engine.reproduction.estimates import NoNumber
from engine.reproduction.smat.asked import Key
from engine.reproduction.smat.claims import ACTIVE, AUC, DEPTH, SIMULABILITY, Term
from engine.reproduction.smat.findings import Findings
from engine.reproduction.smat.report import Row
from engine.scaffold.plan import NONE, SMAT
from engine.scaffold.result import Cell, Scaffold

ABOVE, BELOW = "above no explanations", "below no explanations"


def rows_of(found: Findings) -> tuple[Row, ...]:
    """Simulability, then heads, then plausibility."""
    students = [(key, one) for key, one in found.students.items() if isinstance(one, Scaffold)]
    return (
        *(row for key, one in students for row in _simulability(key, one, found)),
        *(row for key, one in students for row in _heads(key, one, found)),
        *_plausibility(found),
    )


def _simulability(key: Key, scaffold: Scaffold, found: Findings) -> Iterator[Row]:
    for size in sorted(scaffold.plan.train_sizes):
        for setting in scaffold.plan.settings:
            cell = scaffold.cell(setting, size)
            if cell is not None:
                row = _row(SIMULABILITY, key, cell)
                yield replace(row, note="; ".join(filter(None, (_beside(cell, key, found), _odd(scaffold, cell)))))


def _row(table: str, key: Key, cell: Cell) -> Row:
    ends = cell.median, cell.low, cell.high
    return Row(table, *key, cell.setting, "", cell.train_size, *ends, len(cell.values))


def _beside(cell: Cell, key: Key, found: Findings) -> str:
    """Whether quartiles lie apart from those of no explanations, which have no normalisation."""
    plain = found.students.get((key[0], "sparsemax"))
    baseline = plain.cell(NONE, cell.train_size) if isinstance(plain, Scaffold) else None
    if baseline is None or cell.setting == NONE:
        return ""
    return ABOVE if cell.above(baseline) else BELOW if baseline.above(cell) else ""


def _odd(scaffold: Scaffold, cell: Cell) -> str:
    """What became of students that did not end as others do."""
    students = scaffold.of(cell.setting, cell.train_size)
    counts = {
        "diverged": sum(one.diverged for one in students),
        "no better than untaught": sum(one.best_epoch < 0 for one in students),
        "without a simulability": sum(one.simulability is None for one in students),
        "not finished": len(scaffold.plan.seeds) - len(students),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _heads(key: Key, scaffold: Scaffold, found: Findings) -> Iterator[Row]:
    names = {size: name for name, size in found.sizes[key[0]].items()}
    for size in sorted(set(scaffold.plan.train_sizes) & set(names)):
        for measure in (ACTIVE, DEPTH):
            term = Term(1, key[0], measure, SMAT, names[size], key[1])
            try:
                yield _row(measure, key, found.cell(term))
            except NoNumber:
                continue


def _plausibility(found: Findings) -> Iterator[Row]:
    for task, one in found.plausible.items():
        if isinstance(one, str):
            continue
        for side in one.sides:
            note = "; ".join(f"{count} left out: {why}" for why, count in side.skipped.items())
            for row in side.rows:
                low, high = _ends(row.interval)
                chosen = f"layer {', head '.join(map(str, row.at))}" if row.at else ""
                told = "; ".join(filter(None, (chosen, note)))
                yield Row(
                    AUC, task, "sparsemax", row.explainer, side.name, 0, row.mean, low, high, len(side.examples), told
                )


def _ends(found: Interval | None) -> Interval:
    """One example has no interval: from the least to the most that is possible."""
    return (0.0, 1.0) if found is None else found
