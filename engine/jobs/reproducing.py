"""The job kinds `reproduce` and `reproduce_smat`: what the claims need, part by part, and at the end the verdicts.

What they leave in the cache is what `engine.reproduction.run.reproduce` then reads without running a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from cache import canonical, key_for
from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.jobs.kinds import Spec, Unit, job_kind, kind_of
from engine.reproduction.query import ReproductionQuery
from engine.reproduction.run import reproduce
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import Experiment, ThesisQuery

QUERIES: dict[str, type[ReproductionQuery]] = {query.job: query for query in (ThesisQuery, SmatQuery)}
"""By the kind of job: the query whose fields are its specification."""


def query_of(kind: str, spec: Spec) -> Any:
    """The query of a specification. Errors: a field that is unknown or of another shape."""
    known = {field.name for field in fields(QUERIES[kind])}
    if strange := sorted(spec.keys() - known):
        raise UsageError(f"spec of a {kind} job: may have {', '.join(sorted(known))}, got {shown(strange)}.")
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


@job_kind(ThesisQuery.job, title=_thesis_title, check=partial(check, ThesisQuery.job))
def plan_thesis(spec: Spec) -> Iterator[Unit]:
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


@job_kind(SmatQuery.job, title=_smat_title, check=partial(check, SmatQuery.job))
def plan_smat(spec: Spec) -> Iterator[Unit]:
    """The fields of `SmatQuery`. A unit a student; then the verdicts on what is finished."""
    query: SmatQuery = check(SmatQuery.job, spec)
    for key in query.keys:
        training = query.training_plan(key)
        if not isinstance(training, str):
            yield from _units("scaffold", training)
    verdicts = key_for({"kind": "reproducing smat", "of": query.command()})
    yield Unit(verdicts, "verdicts", partial(reproduce, query, compute=False), stores_itself=True)


def _units(kind: str, plan: Any) -> Iterator[Unit]:
    """The units of an experiment; none where its plan cannot be carried out, which the report says."""
    try:
        yield from kind_of(kind).plan(json.loads(canonical(plan.as_plain())))
    except ExegesisError:
        return


def _always(label: str, of: str, work: Callable[[], object]) -> Unit:
    """Work that looks up itself what is done of it; nothing is ever stored under its key."""
    return Unit(key_for({"kind": "reproducing", "of": of, "label": label}), label, work, stores_itself=True)


def _whole_models(experiment: Experiment) -> Iterator[Unit]:
    """A unit a model: its parts cannot be named before it is there."""
    for role in experiment.roles:
        alone = replace(experiment, roles=(role,))
        label = f"{experiment.kind.job} {role.name}, {experiment.name}"
        yield _always(label, role.place, partial(_carry_out, alone))


def _carry_out(experiment: Experiment) -> None:
    roles = tuple(replace(role, why="") for role in experiment.roles)  # it was not there when this was planned
    experiment.kind.carry_out(replace(experiment, roles=roles).plan)
