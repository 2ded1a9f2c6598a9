"""Run a reproduction, directly or as a job: experiments, verdicts, and labels for verdicts that are not findings.

The job kinds `reproduce` and `reproduce_smat` run the experiments in units and compute the verdicts last. `reproduce`
reads their cached results without running a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import version
from typing import Any

from cache import canonical, key_for
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed
from engine.experiments.run import carry_out
from engine.home import product_version
from engine.jobs.cluster import ClusterTask
from engine.jobs.kinds import Spec, WorkUnit, job_kind, kind_of
from engine.progress import CancelToken, Report, cancellable, silent
from engine.reproduction.claims import Claim, Findings, NoNumber, ReproductionQuery
from engine.reproduction.report import (
    CEILING,
    CONSTRUCTION,
    DUPLICATE,
    NOT_RUN,
    UNLEARNED,
    ClaimOutcome,
    ModelSummary,
    Reproduction,
    best_margin,
    error_rates,
    judge_margins,
    report_from_plain,
)
from engine.reproduction.smat import TEACHERS, SmatQuery
from engine.reproduction.thesis import ThesisExperiment, ThesisQuery
from engine.scaffold.experiment import scaffold
from engine.store import result_store

LIBRARIES = ("torch", "transformers", "numpy")
AT_CEILING = "Every compared number is within 0.01 of the best possible score."
DUPLICATE_OF = "At this scale one data set stands in for two, so this claim rests on the same numbers as `{}`."
QUERIES: dict[str, type[ReproductionQuery]] = {query.job: query for query in (ThesisQuery, SmatQuery)}
"""The query class of each kind of job; its fields are the job's specification."""


def reproduce(
    query: ReproductionQuery, report: Report = silent, cancel: CancelToken | None = None, compute: bool = True
) -> Reproduction:
    """Run the experiments that the selected claims need, and judge the claims. Cached results are not computed again.

    Claims whose model or data set is unavailable, or whose training fails, get the verdict `not run` with the reason.
    `compute`: see `ReproductionQuery.collect`.
    """
    query.check()
    with cancellable(cancel):
        evidence = query.collect(report, compute)
        outcomes = judge_claims(query, evidence.findings)
        reproduction = Reproduction(
            query.command(),
            query.scale,
            query.count,
            query.seed,
            query.declaration.digest,
            {"Exegesis": product_version(), **{name: version(name) for name in LIBRARIES}},
            evidence.models,
            evidence.experiments,
            label_outcomes(query, outcomes, evidence.models),
            tuple(sorted(query.places)),
            evidence.rows,
        )
        result_store().put(report_key(query), reproduction.as_plain(), {})
    return reproduction


def cached_report(query: ReproductionQuery) -> Reproduction | None:
    """Return the report of an earlier run with the current models and data sets, or None if there is none."""
    entry = result_store().get(report_key(query))
    return None if entry is None else report_from_plain(entry[0])


def report_key(query: ReproductionQuery) -> str:
    """Return the cache key of the report, which depends on the query, its claims, and the current models and data."""
    return key_for({"asked": [query.command(), query.declaration.digest], **query.key_parts()})


def judge_claims(query: ReproductionQuery, findings: Findings) -> tuple[ClaimOutcome, ...]:
    """Judge each selected claim; the outcomes are in the order of the claims."""
    return tuple(judge_claim(claim, findings, query.seed) for claim in query.selected_claims)


def judge_claim(claim: Claim, findings: Findings, seed: int) -> ClaimOutcome:
    """Judge a claim by the findings of the experiments."""
    if why := claim.people or claim.why or findings.missing(claim):
        return ClaimOutcome(claim.id, NOT_RUN, why=why, unit=claim.unit)
    entries = findings.entries(claim)
    rates = error_rates(len(entries), max(map(len, entries)), claim.least or len(entries))
    try:
        numbers = [[findings.number(claim, contrast, seed, rates) for contrast in entry] for entry in entries]
    except NoNumber as error:
        return ClaimOutcome(claim.id, NOT_RUN, why=str(error), unit=claim.unit)
    judgment = judge_margins([best_margin([inside for _, inside in entry]) for entry in numbers], claim.least)
    return ClaimOutcome(
        claim.id,
        judgment.verdict,
        tuple(tuple(number for number, _ in entry) for entry in numbers),
        settled_by=judgment.settled_by,
        on_bound=judgment.on_bound,
        unit=claim.unit,
    )


def label_outcomes(
    query: ReproductionQuery, outcomes: Sequence[ClaimOutcome], models: Sequence[ModelSummary]
) -> tuple[ClaimOutcome, ...]:
    """Return the outcomes of the selected claims, in their order, with labels for those that are not findings."""
    used, duplicates = query.models_of_claims(models), query.duplicates()
    return tuple(
        _label(claim, outcome, used.get(claim.id, ()), duplicates.get(claim.id, ""))
        for claim, outcome in zip(query.selected_claims, outcomes, strict=True)
    )


def _label(claim: Claim, outcome: ClaimOutcome, models: Sequence[ModelSummary], duplicate_of: str) -> ClaimOutcome:
    """Relabel an outcome that is not a finding, with the reason; return other outcomes unchanged.

    A duplicate, or a claim on a model that has not learned its task, loses its numbers.
    """
    if outcome.verdict == NOT_RUN:
        return outcome
    if duplicate_of:
        return ClaimOutcome(claim.id, DUPLICATE, why=DUPLICATE_OF.format(duplicate_of), unit=outcome.unit)
    if unlearned := [one for one in models if one.unlearned]:
        return ClaimOutcome(claim.id, UNLEARNED, why=" ".join(map(chance_text, unlearned)), unit=outcome.unit)
    if outcome.verdict == "holds" and claim.by_construction:
        return replace(outcome, verdict=CONSTRUCTION, why=claim.by_construction)
    if outcome.numbers and all(one.at_best for one in outcome.numbers):
        return replace(outcome, verdict=CEILING, why=AT_CEILING, settled_by=None, on_bound=0)
    return outcome


def chance_text(model: ModelSummary) -> str:
    """Return a sentence that compares a model's score with chance."""
    if model.correlation is not None:
        score, chance = f"has a correlation of {model.correlation:.2f} with the labels of {model.n:,}", "0"
    else:
        score, chance = f"is right on {round((model.accuracy or 0) * model.n):,} of {model.n:,}", f"1/{model.classes}"
    return f"{model.name} {score} examples (chance {chance}, p = {model.p_value or 0:.2g})."


def query_of(kind: str, spec: Spec) -> Any:
    """Return the query of a job's specification. Errors: a field that is unknown or has the wrong type."""
    names = {field.name for field in fields(QUERIES[kind])}
    if unknown_names := sorted(spec.keys() - names):
        raise UsageError(f"spec of a {kind} job: may have {', '.join(sorted(names))}, got {excerpt(unknown_names)}.")
    claims, places = spec.get("claims", []), spec.get("places", {})
    if not isinstance(claims, list):
        raise not_allowed(f"claims of a {kind} job", "a list", claims)
    if not isinstance(places, dict):
        raise not_allowed(f"places of a {kind} job", "an object of folders by name", places)
    values: dict[str, Any] = {**spec, "claims": tuple(claims)}
    return QUERIES[kind](**values)


def check(kind: str, spec: Spec) -> Any:
    """Return the query of a specification. Errors: an unknown scale or claim. Models and data are not checked yet."""
    query = query_of(kind, spec)
    query.check()
    return query


def _thesis_title(spec: Spec) -> str:
    title = f"Reproduce the thesis at {spec.get('scale', 'embedded')} scale"
    return f"{title}, {spec['topic']}" if "topic" in spec and spec["topic"] != "faithfulness" else title


def _smat_title(spec: Spec) -> str:
    return f"Reproduce SMaT at {spec.get('scale', 'embedded')} scale"


def thesis_tasks(spec: Spec) -> list[ClusterTask]:
    """Return the cluster tasks of the experiments; none until the models that they need are fine-tuned here."""
    query: ThesisQuery = check(ThesisQuery.job, spec)
    if query.pending_fine_tunings():
        return []
    plans = [(one.kind.job, one.plan) for one in query.experiments() if one.plan is not None]
    return [task for kind, plan in plans for task in _tasks(kind, plan)]


def smat_tasks(spec: Spec) -> list[ClusterTask]:
    """Return the cluster tasks of the experiments, one per student; none until their teachers are fine-tuned here."""
    query: SmatQuery = check(SmatQuery.job, spec)
    if query.pending_fine_tunings():
        return []
    trainings = [query.training_plan(key) for key in query.keys]
    return [task for one in trainings if not isinstance(one, str) for task in _tasks("scaffold", one)]


def _tasks(kind: str, plan: Any) -> Sequence[ClusterTask]:
    """Return the cluster tasks of an experiment; none if its plan cannot be run."""
    tasks = kind_of(kind).tasks
    try:
        return tasks(json.loads(canonical(plan.as_plain()))) if tasks else []
    except ExegesisError:
        return []


@job_kind(ThesisQuery.job, title=_thesis_title, check=partial(check, ThesisQuery.job), tasks=thesis_tasks)
def plan_thesis(spec: Spec) -> Iterator[WorkUnit]:
    """Yield the pending fine-tunings, the units of each experiment, and the verdicts. `spec`: fields of `ThesisQuery`.

    If a fine-tuning is pending, each experiment has one unit per model instead.
    """
    query: ThesisQuery = check(ThesisQuery.job, spec)
    pending = query.pending_fine_tunings()
    for one in pending:
        yield _always(f"fine-tune {one.name}", one.out, one.run)
    for experiment in query.experiments():
        if pending:
            yield from _whole_models(experiment)
        elif experiment.plan is not None:
            yield from _units(experiment.kind.job, experiment.plan)
    yield _always("verdicts", query.command(), partial(reproduce, query))


@job_kind(SmatQuery.job, title=_smat_title, check=partial(check, SmatQuery.job), tasks=smat_tasks)
def plan_smat(spec: Spec) -> Iterator[WorkUnit]:
    """Yield the pending fine-tunings, one unit per student, and the verdicts. `spec`: fields of `SmatQuery`.

    A task whose teacher is not fine-tuned yet has a single unit for all of its students.
    """
    query: SmatQuery = check(SmatQuery.job, spec)
    pending = query.pending_fine_tunings()
    for one in pending:
        yield _always(f"fine-tune {one.name}", one.out, one.run)
    for key in query.keys:
        training = query.training_plan(key)
        if isinstance(training, str):
            continue
        if training.teacher in {one.out for one in pending}:
            yield _always(f"students of {TEACHERS[key[0]]}", training.teacher, partial(scaffold, training))
        else:
            yield from _units("scaffold", training)
    verdicts = key_for({"kind": "reproducing smat", "of": query.command()})
    yield WorkUnit(verdicts, "verdicts", partial(reproduce, query, compute=False), stores_itself=True)


def _units(kind: str, plan: Any) -> Iterator[WorkUnit]:
    """Yield the units of an experiment; none if its plan cannot be run, for which the report gives the reason."""
    try:
        yield from kind_of(kind).plan(json.loads(canonical(plan.as_plain())))
    except ExegesisError:
        return


def _always(label: str, of: str, work: Callable[[], object]) -> WorkUnit:
    """Return a unit that always runs: nothing is stored under its key, and `work` itself skips what is finished."""
    return WorkUnit(key_for({"kind": "reproducing", "of": of, "label": label}), label, work, stores_itself=True)


def _whole_models(experiment: ThesisExperiment) -> Iterator[WorkUnit]:
    """Yield one unit per model, because the parts of an experiment are unknown until its model exists."""
    for role in experiment.roles:
        alone = replace(experiment, roles=(role,))
        label = f"{experiment.kind.job} {role.name}, {experiment.name}"
        yield _always(label, role.place, partial(_carry_out, alone))


def _carry_out(experiment: ThesisExperiment) -> None:
    roles = tuple(replace(role, why="") for role in experiment.roles)  # the models did not exist when this was planned
    carry_out(replace(experiment, roles=roles).plan)
