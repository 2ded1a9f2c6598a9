"""Labels the shipped reports anew without a new run: `python -m engine.reproduction.revise "WHEN AND WHY"`.

Numbers stay as they were measured. Added are how often each model is right on the examples used, from predictions made
now, and which numbers compare what is the best that a score can be, as far as the report's numbers tell. Then verdicts
are labelled (`labels`), and the reports answer the claims as they are declared now (their digest).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.evaluation.sample import drawn_sample
from engine.reproduction import run
from engine.reproduction.accuracy import predicted, rights_of
from engine.reproduction.asked import Asked
from engine.reproduction.claims import TOPICS, Contrast
from engine.reproduction.judging import entries_at
from engine.reproduction.labels import CEILING_WIDTH, OVERLAP, best_measure
from engine.reproduction.outcome import ExperimentFound, ModelFound, Outcome, Reproduction
from engine.reproduction.scales import scale_of
from engine.reproduction.ship import document_of
from engine.reproduction.shipped import file_of, shipped
from engine.reproduction.smat import run as smat_run
from engine.reproduction.smat.asked import Asked as SmatAsked
from engine.reproduction.smat.examined import FILE as EXAMINED
from engine.reproduction.smat.examined import examined
from engine.reproduction.smat.shipped import DOCUMENT as SMAT_DOCUMENT
from engine.reproduction.smat.shipped import FILE as SMAT_FILE
from engine.reproduction.smat.shipped import shipped_smat
from engine.reproduction.smat.writing import markdown as smat_markdown
from engine.reproduction.writing import markdown
from engine.scaffold.plan import Plan

MEASURED_WITH = {"quantity": "mixed", "starts": 1}
"""How attacks were made before these could be chosen."""
EXACT = 1e-6
"""What a stored number may be off. Least values are off by several of them, which 0.001 allows for."""

Cell = tuple[str, str, str]
"""Data set, method, model."""


def revise_topic(topic: str, revised: str) -> None:
    """Writes a topic's report and its document. `revised`: when, and why."""
    made, asked = shipped(file_of(topic)), Asked(topic=topic)
    assert made is not None
    models = tuple(_with_accuracy(one, made.report.experiments) for one in made.report.models)
    outcomes = run.labelled(asked, with_ceilings(made.report, asked), models)
    experiments = tuple(_as_measured(one) for one in made.report.experiments)
    digest = asked.declared.digest
    report = replace(made.report, digest=digest, models=models, outcomes=outcomes, experiments=experiments)
    made = replace(made, report=report, revised=revised)
    file_of(topic).write_text(made.as_json(), encoding="utf-8")
    document_of(topic).write_text(markdown(report, asked.declared, made.told), encoding="utf-8")


def revise_smat(revised: str) -> None:
    """The same of SMaT: none of its medians and mean AUCs is at a ceiling."""
    made, asked = shipped_smat(), SmatAsked()
    assert made is not None
    assert all(row.value < 1 - CEILING_WIDTH for row in made.report.rows if row.table in ("simulability", "auc"))
    plans = [plan for task in ("text", "image", "regression") if isinstance(plan := asked.tasks[task], Plan)]
    models = tuple(map(smat_run.teacher_found, plans))
    given = tuple(_only_people(one) for one in made.report.outcomes)
    digest = asked.declared.digest
    report = replace(made.report, digest=digest, models=models, outcomes=smat_run.labelled(asked, given, models))
    made = replace(made, report=report, revised=revised)
    SMAT_FILE.write_text(made.as_json(), encoding="utf-8")
    known = {**json.loads(EXAMINED.read_text(encoding="utf-8")), "digest": digest}
    EXAMINED.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = smat_markdown(report, asked.declared, asked.chosen, examined(digest), made.told)
    SMAT_DOCUMENT.write_text(text, encoding="utf-8")


def _only_people(outcome: Outcome) -> Outcome:
    return outcome if outcome.numbers else replace(outcome, verdict="not run")


def _as_measured(experiment: ExperimentFound) -> ExperimentFound:
    if experiment.source != "attack":
        return experiment
    return replace(experiment, plan={**experiment.plan, "attack": {**MEASURED_WITH, **experiment.plan["attack"]}})


def _with_accuracy(model: ModelFound, experiments: Sequence[ExperimentFound]) -> ModelFound:
    """With how often it is right on the most examples that an experiment used."""
    plan = max((one.plan for one in experiments if model.name in one.plan["models"]), key=_examples)
    sample = drawn_sample("text", model.data, plan["split"], plan["examples"], plan["seed"])
    right = list(rights_of(predicted(model.name, sample.source, sample.indices), sample.source))
    assert None not in right
    found = replace(model, accuracy=sum(map(bool, right)) / len(right), n=len(right), classes=len(sample.source.labels))
    assert model.n != found.n or model.accuracy == found.accuracy, f"{model.name} answers otherwise than in the run"
    return found


def _examples(plan: object) -> int:
    assert isinstance(plan, dict)
    return int(plan["examples"])


def with_ceilings(found: Reproduction, asked: Asked) -> tuple[Outcome, ...]:
    """The outcomes with `at_best` where the numbers of the report leave no other possibility.

    Each number is a sum of mean overlaps, one for each method on each model, and these lie from 0 to 1: a linear
    program tells the least that each can be.
    """
    scale = scale_of(found.scale)
    claims = {claim.id: claim for claim in asked.declared.claims}
    placed = {one.id: entries_at(scale, claims[one.id]) for one in found.outcomes}
    least = _least(
        [
            (_cells(contrast, scale.bases), number.value)
            for one in found.outcomes
            for entry, contrasts in zip(one.entries, placed[one.id], strict=bool(one.entries))
            for number, contrast in zip(entry, contrasts, strict=True)
            if {term.metric for term in contrast.terms} == {OVERLAP}
            and {term.take for term in contrast.terms} == {"mean"}
        ]
    )

    def at_best(contrast: Contrast) -> bool:
        if {best_measure(term.metric) for term in contrast.terms} != {OVERLAP}:
            return False
        return all(least.get(cell, 0.0) >= 1 - CEILING_WIDTH - 1e-3 for cell in _cells(contrast, scale.bases))

    return tuple(
        replace(
            one,
            entries=tuple(
                tuple(replace(number, at_best=at_best(contrast)) for number, contrast in zip(entry, own, strict=True))
                for entry, own in zip(one.entries, placed[one.id], strict=bool(one.entries))
            ),
        )
        for one in found.outcomes
    )


def _cells(contrast: Contrast, bases: Mapping[str, str]) -> dict[Cell, float]:
    """The weight of each method on each model in the sum."""
    weights: dict[Cell, float] = {}
    for term in contrast.terms:
        for method in term.methods:
            for part in term.models:
                cell = (term.task, method, bases[part])
                weights[cell] = weights.get(cell, 0.0) + term.times / (len(term.methods) * len(term.models))
    return weights


def _least(sums: Sequence[tuple[dict[Cell, float], float]]) -> dict[Cell, float]:
    """The least that each cell can be where all sums are as they are."""
    from scipy.optimize import linprog

    cells = list(dict.fromkeys(cell for weights, _ in sums for cell in weights))
    matrix = np.array([[weights.get(cell, 0.0) for cell in cells] for weights, _ in sums])
    values = np.array([value for _, value in sums])
    both, ends = np.concatenate([matrix, -matrix]), np.concatenate([values + EXACT, EXACT - values])
    found = {}
    for cell, objective in zip(cells, np.eye(len(cells)), strict=True):
        solved = linprog(objective, A_ub=both, b_ub=ends, bounds=(0, 1))
        assert solved.success, solved.message
        found[cell] = float(solved.fun)
    return found


def main() -> None:
    [revised] = sys.argv[1:]
    for topic in TOPICS:
        revise_topic(topic, revised)
    revise_smat(revised)


if __name__ == "__main__":
    main()
