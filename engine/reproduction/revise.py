"""Relabel the shipped reports without a new run: `python -m engine.reproduction.revise "WHEN AND WHY"`.

The measured numbers are kept. Two facts are added: each model's accuracy on its examples, from new predictions, and
which numbers are at a ceiling, as far as the report's numbers prove it. Then verdicts are labeled
(`run.label_outcomes`), and the reports get the digest of the claims as they are declared now.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from engine.experiments.sample import draw_sample
from engine.reproduction.claims import FOLDER, Contrast, ReproductionQuery
from engine.reproduction.estimates import entries_at
from engine.reproduction.experiments import are_correct, predict_examples
from engine.reproduction.papers import AUC, OVERLAP, SIMULABILITY, TOPICS, ceiling_measure, scale_of
from engine.reproduction.report import (
    CEILING_WIDTH,
    NOT_RUN,
    ClaimOutcome,
    ExperimentSummary,
    ModelSummary,
    Reproduction,
)
from engine.reproduction.run import label_outcomes
from engine.reproduction.shipped import default_query, shipped_report, write_shipped
from engine.reproduction.smat import SmatQuery, teacher_summary
from engine.reproduction.thesis import ThesisQuery
from engine.scaffold.plan import ScaffoldPlan

MEASURED_WITH = {"quantity": "mixed", "starts": 1}
"""Settings of attacks that were run before these settings existed."""
EXACT = 1e-6
"""Tolerance for a stored number. The minima add up several such errors, for which `with_ceilings` allows 0.001."""

ModelMethod = tuple[str, str, str]
"""Data set, method, model."""


def revise(topic: str, revised: str) -> None:
    """Relabel a topic's shipped report and write it and its document. `revised`: when and why, as text."""
    shipped, query = shipped_report(topic), default_query(topic)
    assert shipped is not None
    revision = _revise_students if isinstance(query, SmatQuery) else _revise_thesis
    report = revision(shipped.report, query)
    outcomes = label_outcomes(query, report.outcomes, report.models)
    digest = query.declaration.digest
    if query.about.reasons:
        file = FOLDER / query.about.reasons
        reasons = {**json.loads(file.read_text(encoding="utf-8")), "digest": digest}
        file.write_text(json.dumps(reasons, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_shipped(topic, replace(shipped, report=replace(report, digest=digest, outcomes=outcomes), revised=revised))


def _revise_thesis(report: Reproduction, query: ReproductionQuery) -> Reproduction:
    assert isinstance(query, ThesisQuery)
    return replace(
        report,
        models=tuple(_with_accuracy(one, report.experiments) for one in report.models),
        outcomes=with_ceilings(report, query),
        experiments=tuple(_with_settings(one) for one in report.experiments),
    )


def _revise_students(report: Reproduction, query: ReproductionQuery) -> Reproduction:
    """Update the models of a SMaT report. Asserts that none of its medians and mean AUCs is at a ceiling."""
    assert isinstance(query, SmatQuery)
    rows = (row for row in report.rows or () if row.table in (SIMULABILITY, AUC))
    assert all(row.value < 1 - CEILING_WIDTH for row in rows)
    plans = [plan for plan in query.tasks.values() if isinstance(plan, ScaffoldPlan)]
    outcomes = tuple(one if one.numbers else replace(one, verdict=NOT_RUN) for one in report.outcomes)
    return replace(report, models=tuple(map(teacher_summary, plans)), outcomes=outcomes)


def _with_settings(experiment: ExperimentSummary) -> ExperimentSummary:
    if experiment.source != "attack":
        return experiment
    return replace(experiment, plan={**experiment.plan, "attack": {**MEASURED_WITH, **experiment.plan["attack"]}})


def _with_accuracy(model: ModelSummary, experiments: Sequence[ExperimentSummary]) -> ModelSummary:
    """Add the model's accuracy on the examples of its largest experiment."""
    plans = [one.plan for one in experiments if model.name in one.plan["models"]]
    plan = max(plans, key=lambda plan: int(plan["examples"]))
    sample = draw_sample("text", model.data, plan["split"], plan["examples"], plan["seed"])
    correct = list(are_correct(predict_examples(model.name, sample.source, sample.indices), sample.source))
    assert None not in correct
    accuracy, classes = sum(map(bool, correct)) / len(correct), len(sample.source.labels)
    assert model.n != len(correct) or model.accuracy == accuracy, f"{model.name} predicts differently than in the run"
    return replace(model, accuracy=accuracy, n=len(correct), classes=classes)


def with_ceilings(report: Reproduction, query: ThesisQuery) -> tuple[ClaimOutcome, ...]:
    """Return the outcomes, with `at_best` set for numbers that must be at a ceiling given the report's numbers.

    Each number is a weighted sum of mean overlaps, one for each method and model, which lie in 0 to 1. A linear program
    finds the minimum of each mean.
    """
    scale = scale_of(report.scale)
    claims = {claim.id: claim for claim in query.declaration.claims}
    placed = {one.id: entries_at(scale, claims[one.id]) for one in report.outcomes}
    least = least_means(
        [
            (_weights(contrast, scale.bases), number.value)
            for one in report.outcomes
            for entry, contrasts in zip(one.entries, placed[one.id], strict=bool(one.entries))
            for number, contrast in zip(entry, contrasts, strict=True)
            if {term.metric for term in contrast.terms} == {OVERLAP}
            and {term.take for term in contrast.terms} == {"mean"}
        ]
    )

    def at_best(contrast: Contrast) -> bool:
        if {ceiling_measure(term.metric) for term in contrast.terms} != {OVERLAP}:
            return False
        return all(least.get(one, 0.0) >= 1 - CEILING_WIDTH - 1e-3 for one in _weights(contrast, scale.bases))

    return tuple(
        replace(
            one,
            entries=tuple(
                tuple(replace(number, at_best=at_best(contrast)) for number, contrast in zip(entry, own, strict=True))
                for entry, own in zip(one.entries, placed[one.id], strict=bool(one.entries))
            ),
        )
        for one in report.outcomes
    )


def _weights(contrast: Contrast, bases: Mapping[str, str]) -> dict[ModelMethod, float]:
    """Return the weight of each method on each model in a contrast."""
    weights: dict[ModelMethod, float] = {}
    for term in contrast.terms:
        for method in term.methods:
            for part in term.models:
                key = (term.task, method, bases[part])
                weights[key] = weights.get(key, 0.0) + term.times / (len(term.methods) * len(term.models))
    return weights


def least_means(sums: Sequence[tuple[dict[ModelMethod, float], float]]) -> dict[ModelMethod, float]:
    """Return the minimum of each mean, given the values of all sums."""
    keys = list(dict.fromkeys(key for weights, _ in sums for key in weights))
    matrix = np.array([[weights.get(key, 0.0) for key in keys] for weights, _ in sums])
    values = np.array([value for _, value in sums])
    both, ends = np.concatenate([matrix, -matrix]), np.concatenate([values + EXACT, EXACT - values])
    least = {}
    for key, objective in zip(keys, np.eye(len(keys)), strict=True):
        solved = linprog(objective, A_ub=both, b_ub=ends, bounds=(0, 1))
        assert solved.success, solved.message
        least[key] = float(solved.fun)
    return least


def main() -> None:
    [revised] = sys.argv[1:]
    for topic in TOPICS:
        revise(topic, revised)


if __name__ == "__main__":
    main()
