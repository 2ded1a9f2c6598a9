"""Finished students and a report of SMaT, made by hand: no model is run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.reproduction.claims import Claim, Contrast, StudentTerm
from engine.reproduction.report import Bounds, Reproduction
from engine.reproduction.run import judge_claims, report_key
from engine.reproduction.smat import SmatQuery, StudentFindings, table_rows
from engine.scaffold.plan import SMAT, ScaffoldPlan, StudentRun
from engine.scaffold.result import ScaffoldResult, StudentResult
from engine.store import result_store

SEEDS = (0, 1, 2, 3, 4)
SIZES = {"text": {"small": 10, "middle": 20, "large": 40}, "image": {"middle": 20}, "regression": {"middle": 20}}
SHAPE = (2, 2)


def student(pupil: StudentRun, value: float | None) -> StudentResult:
    """Taught in one step; a learned explainer uses one head of the last layer."""
    phi = np.array([0.0, 0.0, 0.0, 1.0]) if pupil.setting == SMAT else None
    return StudentResult(pupil, value, 0, 1, 0.1, "patience", (), phi)


def students(
    cells: Mapping[tuple[str, int], tuple[float | None, ...]], plan: ScaffoldPlan | None = None
) -> ScaffoldResult:
    """A value a seed, by setting and train size."""
    made = plan or ScaffoldPlan("teacher", "data", train_sizes=(10, 20, 40), seeds=SEEDS)
    outcomes = (
        student(StudentRun(*cell, seed), value)
        for cell, values in cells.items()
        for seed, value in zip(SEEDS, values, strict=False)
    )
    return ScaffoldResult(made, SHAPE, tuple(outcomes))


def findings_of(scaffold: ScaffoldResult | str, task: str = "text") -> StudentFindings:
    """Students of one task and nothing else."""
    return StudentFindings({(task, "sparsemax"): scaffold}, {}, SIZES, least_seeds=3)


def claim(contrasts: tuple[Contrast, ...], bounds: Bounds = (0.0, None), rule: str = "more than") -> Claim:
    """Of which each number must lie inside."""
    given = tuple((one,) for one in contrasts)
    return Claim("a", "A", "5.1", "It is so.", rule, bounds, given)  # type: ignore[arg-type]


def gain(other: str = "none", size: str = "middle", task: str = "text") -> Contrast:
    """SMaT less another setting."""
    terms = (StudentTerm(1, task, "simulability", SMAT, size), StudentTerm(-1, task, "simulability", other, size))
    return Contrast("", terms)


def report_of(query: SmatQuery) -> Reproduction:
    """Of the embedded plans, with settings from worst to best as they are listed; nothing else was measured."""
    trained: dict[tuple[str, str], ScaffoldResult | str] = {}
    for key in query.keys:
        plan = query.plan(key)
        assert isinstance(plan, ScaffoldPlan)
        values = {(s, n): tuple(0.7 + at / 50 + seed * at / 1000 for seed in range(5)) for n in plan.train_sizes
                  for at, s in enumerate(plan.settings)}  # fmt: skip
        trained[key] = students(values, plan)
    findings = StudentFindings(trained, {}, query.sizes, query.declaration.seeds["least"])
    return Reproduction(
        query.command(), query.scale, query.count, query.seed, query.declaration.digest, {"Exegesis": "1"}, (), (),
        judge_claims(query, findings), (), table_rows(findings),
    )  # fmt: skip


def store_report(query: SmatQuery) -> Reproduction:
    """The same, where the page looks for it."""
    report = report_of(query)
    result_store().put(report_key(query), report.as_plain(), {})
    return report
