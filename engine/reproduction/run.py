"""A whole reproduction, as a job too: the experiments that claims need, the verdicts, and which are no findings.

The job kinds `reproduce` and `reproduce_smat` do what the claims need part by part, and at the end the verdicts. What
they leave in the cache is what `reproduce` then reads without running a model.
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
"""By the kind of job: the query whose fields are its specification."""


def reproduce(
    query: ReproductionQuery, report: Report = silent, cancel: CancelToken | None = None, compute: bool = True
) -> Reproduction:
    """Run all that the selected claims need, and judge the claims. What is there from before is not computed again.

    A model or data set that is not there, and a training that fails, leave their claims `not run`, with the reason.
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
    """The report of an earlier run on the models and data sets as they are now; None where there was none."""
    entry = result_store().get(report_key(query))
    return None if entry is None else report_from_plain(entry[0])


def report_key(query: ReproductionQuery) -> str:
    """The cache key of the report: by what is asked, and by the models and data sets as they are."""
    return key_for({"asked": [query.command(), query.declaration.digest], **query.key_parts()})


def judge_claims(query: ReproductionQuery, findings: Findings) -> tuple[ClaimOutcome, ...]:
    """An outcome for each selected claim, in their order."""
    return tuple(judge_claim(claim, findings, query.seed) for claim in query.selected_claims)


def judge_claim(claim: Claim, findings: Findings, seed: int) -> ClaimOutcome:
    """Judge a claim on what the experiments found."""
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
    """The outcomes of the selected claims, in their order, with labels on those that are no findings."""
    used, duplicates = query.models_of_claims(models), query.duplicates()
    return tuple(
        _label(claim, outcome, used.get(claim.id, ()), duplicates.get(claim.id, ""))
        for claim, outcome in zip(query.selected_claims, outcomes, strict=True)
    )


def _label(claim: Claim, outcome: ClaimOutcome, models: Sequence[ModelSummary], duplicate_of: str) -> ClaimOutcome:
    """Numbers of models that have learned nothing are left out."""
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
    """How far a model is from chance, in one sentence."""
    if model.correlation is not None:
        score, chance = f"has a correlation of {model.correlation:.2f} with the labels of {model.n:,}", "0"
    else:
        score, chance = f"is right on {round((model.accuracy or 0) * model.n):,} of {model.n:,}", f"1/{model.classes}"
    return f"{model.name} {score} examples (chance {chance}, p = {model.p_value or 0:.2g})."


def query_of(kind: str, spec: Spec) -> Any:
    """The query of a specification. Errors: a field that is unknown or of another shape."""
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
    """The query, after refusing an unknown scale or claim. Models and data are looked for when the job runs."""
    query = query_of(kind, spec)
    query.check()
    return query


def _thesis_title(spec: Spec) -> str:
    title = f"Reproduce the thesis at {spec.get('scale', 'embedded')} scale"
    return f"{title}, {spec['topic']}" if "topic" in spec and spec["topic"] != "faithfulness" else title


def _smat_title(spec: Spec) -> str:
    return f"Reproduce SMaT at {spec.get('scale', 'embedded')} scale"


def thesis_tasks(spec: Spec) -> list[ClusterTask]:
    """The tasks of the experiments on a cluster; none before the models that they need are fine-tuned here."""
    query: ThesisQuery = check(ThesisQuery.job, spec)
    if query.pending_fine_tunings():
        return []
    plans = [(one.kind.job, one.plan) for one in query.experiments() if one.plan is not None]
    return [task for kind, plan in plans for task in _tasks(kind, plan)]


def smat_tasks(spec: Spec) -> list[ClusterTask]:
    """The tasks of the experiments on a cluster, one per student; none before their teachers are fine-tuned here."""
    query: SmatQuery = check(SmatQuery.job, spec)
    if query.pending_fine_tunings():
        return []
    trainings = [query.training_plan(key) for key in query.keys]
    return [task for one in trainings if not isinstance(one, str) for task in _tasks("scaffold", one)]


def _tasks(kind: str, plan: Any) -> Sequence[ClusterTask]:
    """The tasks of an experiment; none where its plan cannot be carried out."""
    tasks = kind_of(kind).tasks
    try:
        return tasks(json.loads(canonical(plan.as_plain()))) if tasks else []
    except ExegesisError:
        return []


@job_kind(ThesisQuery.job, title=_thesis_title, check=partial(check, ThesisQuery.job), tasks=thesis_tasks)
def plan_thesis(spec: Spec) -> Iterator[WorkUnit]:
    """The fields of `ThesisQuery`. Fine-tunings that are to be made; then the units of each experiment, or one a model
    that is not there yet; then the verdicts.
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
    """The fields of `SmatQuery`. Teachers that are to be fine-tuned; a unit a student, or one a task whose teacher is
    not there yet; then the verdicts on what is finished.
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
    """The units of an experiment; none where its plan cannot be carried out, which the report says."""
    try:
        yield from kind_of(kind).plan(json.loads(canonical(plan.as_plain())))
    except ExegesisError:
        return


def _always(label: str, of: str, work: Callable[[], object]) -> WorkUnit:
    """Work that looks up itself what is done of it; nothing is ever stored under its key."""
    return WorkUnit(key_for({"kind": "reproducing", "of": of, "label": label}), label, work, stores_itself=True)


def _whole_models(experiment: ThesisExperiment) -> Iterator[WorkUnit]:
    """A unit a model: its parts cannot be named before it is there."""
    for role in experiment.roles:
        alone = replace(experiment, roles=(role,))
        label = f"{experiment.kind.job} {role.name}, {experiment.name}"
        yield _always(label, role.place, partial(_carry_out, alone))


def _carry_out(experiment: ThesisExperiment) -> None:
    roles = tuple(replace(role, why="") for role in experiment.roles)  # it was not there when this was planned
    carry_out(replace(experiment, roles=roles).plan)
