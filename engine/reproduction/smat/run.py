"""A whole reproduction of SMaT: students that are still to be taught, what their explainers mark, verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from cache import key_for
from cache.keys import plain
from engine.errors import Cancelled, ExegesisError
from engine.evaluation.sample import reason
from engine.home import product_version
from engine.models import catalog
from engine.progress import CancelToken, Report, cancellable, silent
from engine.reproduction.accuracy import correlation_of, predicted, rights_of
from engine.reproduction.labels import Labels
from engine.reproduction.outcome import ExperimentFound, ModelFound, Outcome
from engine.reproduction.run import LIBRARIES
from engine.reproduction.smat.asked import MIDDLE, Asked, Key
from engine.reproduction.smat.claims import AUC, SPARSEMAX
from engine.reproduction.smat.findings import Findings
from engine.reproduction.smat.judging import judge
from engine.reproduction.smat.naming import TASKS
from engine.reproduction.smat.report import SmatReport, from_plain
from engine.reproduction.smat.tables import rows_of
from engine.scaffold import keeping
from engine.scaffold.asked import asked_of, learned_of
from engine.scaffold.examples import examples_of
from engine.scaffold.plan import Plan
from engine.scaffold.plausibility import Plausibility, plausibility
from engine.scaffold.result import Scaffold
from engine.scaffold.run import finished, is_regression, scaffold
from engine.scaffold.splits import splits_of
from engine.store import result_store

VERSION = 2
"""Raised whenever the numbers of a report change."""
NO_STUDENT = "no student is finished."


def reproduce(asked: Asked, report: Report = silent, cancel: CancelToken | None = None) -> SmatReport:
    """Teaches the students that the chosen claims need and that are not finished, and judges the claims.

    A teacher or data set that is not there leaves its claims `not run`, with the reason.
    """
    asked.check()
    with cancellable(cancel):
        taught = {key: _taught(asked.taught(key), report) for key in asked.needed}
        return judged(asked, taught, report)


def judged(asked: Asked, taught: Mapping[Key, Scaffold | str] | None = None, report: Report = silent) -> SmatReport:
    """The claims on the students that are finished; what explainers mark is measured where it is not in the store.

    `taught`: what teaching just now told of students that failed.
    """
    students = {key: _students(asked, key, (taught or {}).get(key)) for key in asked.needed}
    plausible = {task: _plausible(asked, task, students) for task in _marked(asked)}
    found = Findings(students, plausible, asked.sizes, asked.declared.least_seeds)
    models = tuple(_model(task, asked.plan((task, normal))) for task, normal in asked.needed if normal == SPARSEMAX)
    made = SmatReport(
        asked.command(),
        asked.scale,
        asked.count,
        asked.seed,
        asked.declared.digest,
        {"Exegesis": product_version(), **{name: version(name) for name in LIBRARIES}},
        models,
        tuple(_experiment(key, students[key]) for key in asked.needed),
        labelled(asked, judge(asked, found), models),
        tuple(sorted(asked.places)),
        rows_of(found),
    )
    result_store().put(report_key(asked), made.as_plain(), {})
    return made


def kept(asked: Asked) -> SmatReport | None:
    """What an earlier run found with the teachers and data sets as they are now; None where there was none."""
    entry = result_store().get(report_key(asked))
    return None if entry is None else from_plain(entry[0])


def report_key(asked: Asked) -> str:
    """The cache key of the report: by what is asked, and by teachers as they are. Reads no data set: pages ask it."""
    plans = [asked.plan(key) for key in asked.needed]
    return key_for(
        {
            "kind": "reproduction of smat",
            "version": [VERSION, keeping.VERSION, product_version()],
            "asked": [asked.command(), asked.declared.digest],
            "plans": [plan if isinstance(plan, str) else plain(plan.as_plain()) for plan in plans],
            "teachers": [_revision(plan) for plan in plans],
        }
    )


def _revision(plan: Plan | str) -> str:
    """A hash of the teacher, or why there is none."""
    if isinstance(plan, str):
        return plan
    try:
        return catalog.revision(plan.teacher)
    except ExegesisError as error:
        return reason(error)


def _taught(plan: Plan | str, report: Report) -> Scaffold | str:
    if isinstance(plan, str):
        return plan
    try:
        return scaffold(plan, report)
    except Cancelled:
        raise
    except ExegesisError as error:
        return reason(error)


def _students(asked: Asked, key: Key, taught: Scaffold | str | None) -> Scaffold | str:
    """All that are finished, with why others failed; where nothing could be taught and nothing is finished, why."""
    plan, wanted = asked.plan(key), asked.taught(key)
    if isinstance(plan, str) or isinstance(wanted, str):
        return str(plan)
    try:
        found = finished(plan)
    except ExegesisError as error:
        return reason(error)
    if isinstance(taught, str) and not found.outcomes:
        return taught
    failed = taught.failed if isinstance(taught, Scaffold) else {}
    return dataclasses.replace(_with_seeds(found, wanted.seeds), failed=failed)


def _with_seeds(found: Scaffold, seeds: tuple[int, ...]) -> Scaffold:
    """Of the seeds that are taught, and of any other of which all students are finished."""
    a_seed = len(found.plan.pupils) // len(found.plan.seeds)
    whole = {seed for seed in found.plan.seeds if sum(one.pupil.seed == seed for one in found.outcomes) == a_seed}
    kept = tuple(seed for seed in found.plan.seeds if seed in whole or seed in seeds)
    outcomes = tuple(one for one in found.outcomes if one.pupil.seed in kept)
    return dataclasses.replace(found, plan=dataclasses.replace(found.plan, seeds=kept), outcomes=outcomes)


def _marked(asked: Asked) -> tuple[str, ...]:
    """Tasks of which a claim is about plausibility."""
    terms = [term for claim in asked.chosen for one in claim.contrasts for term in one.terms]
    return tuple(dict.fromkeys(term.of for term in terms if term.measure == AUC))


def _plausible(asked: Asked, task: str, students: Mapping[Key, Scaffold | str]) -> Plausibility | str:
    """Of the explainer of the median student at the middle train size, as in the paper."""
    found = students[task, SPARSEMAX]
    if isinstance(found, str) or not found.outcomes:
        return found if isinstance(found, str) else NO_STUDENT
    size = asked.sizes[task].get(MIDDLE, max(found.plan.train_sizes))
    try:
        return plausibility(asked_of(found.plan, asked.count), learned_of(found.plan, found.median_outcome(size)))
    except Cancelled:
        raise
    except ExegesisError as error:
        return reason(error)


def labelled(asked: Asked, outcomes: Sequence[Outcome], models: Sequence[ModelFound]) -> tuple[Outcome, ...]:
    """The outcomes of the chosen claims, in their order, with labels on those that are no findings."""
    teachers = {one.name: one for one in models}
    plans = {task: plan.teacher for task, plan in asked.tasks.items() if isinstance(plan, Plan)}
    found = {
        claim.id: [teachers[plans[task]] for task in claim.tasks if plans.get(task) in teachers]
        for claim in asked.chosen
    }
    labels = Labels(found)
    return tuple(labels.label(claim, one) for claim, one in zip(asked.chosen, outcomes, strict=True))


def _model(task: str, plan: Plan | str) -> ModelFound:
    if isinstance(plan, str):
        return ModelFound(f"teacher of {TASKS[task]}", "", plan, None, 0)
    try:
        return teacher_found(plan)
    except ExegesisError as error:
        return ModelFound(plan.teacher, plan.dataset, reason(error), None, 0)


def teacher_found(plan: Plan) -> ModelFound:
    """The teacher, with how often it is right on the examples on which students are tested.

    Errors: those of the teacher and of the data set.
    """
    source = examples_of(plan)
    pairs = predicted(plan.teacher, source, splits_of(source.count, plan).test)
    made = ModelFound(plan.teacher, plan.dataset, "", None, 0, catalog.revision(plan.teacher))
    if is_regression(plan.teacher):
        r, n = correlation_of(pairs) or (None, 0)
        return dataclasses.replace(made, correlation=r, n=n)
    right = [one for one in rights_of(pairs, source) if one is not None]
    accuracy = sum(right) / len(right) if right else None
    return dataclasses.replace(made, accuracy=accuracy, n=len(right), classes=len(source.labels))


def _experiment(key: Key, found: Scaffold | str) -> ExperimentFound:
    name = ", ".join(key)
    if isinstance(found, str):
        return ExperimentFound(name, {}, found, 0, "scaffold")
    missing = len(found.plan.pupils) - len(found.outcomes)
    return ExperimentFound(name, found.plan.as_plain(), "", missing, "scaffold")
