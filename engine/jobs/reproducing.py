"""The job kind `reproduce`: what the claims need, part by part, and at the end the verdicts.

What it leaves in the cache is what `engine.reproduction.run.reproduce` then reads without running a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cache import canonical, key_for
from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.jobs.kinds import Spec, Unit, job_kind, kind_of

if TYPE_CHECKING:
    from engine.reproduction.asked import Asked, Experiment


def _title(spec: Spec) -> str:
    told = f"Reproduce the thesis at {spec.get('scale', 'embedded')} scale"
    return f"{told}, {spec['topic']}" if "topic" in spec and spec["topic"] != "faithfulness" else told


def asked_of(spec: Spec) -> Asked:
    """What a specification asks. Errors: a field that is unknown or of another shape."""
    from engine.reproduction.asked import Asked

    known = {field.name for field in fields(Asked)}
    if spec.keys() - known:
        raise UsageError(
            f"spec of a reproduce job: may have {', '.join(sorted(known))}, got {shown(sorted(spec.keys() - known))}."
        )
    claims, places = spec.get("claims", []), spec.get("places", {})
    if not isinstance(claims, list):
        raise not_allowed("claims of a reproduce job", "a list", claims)
    if not isinstance(places, dict):
        raise not_allowed("places of a reproduce job", "an object of folders by name", places)
    given: dict[str, Any] = {**spec, "claims": tuple(claims)}
    return Asked(**given)


def check(spec: Spec) -> None:
    """Refuses an unknown scale or claim. Models and data sets are looked for when the job runs."""
    asked_of(spec).check()


@job_kind("reproduce", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """The fields of `engine.reproduction.asked.Asked`. Fine-tunings that are to be made; then the units of each
    experiment, or one a model that is not there yet; then the verdicts.
    """
    from engine.reproduction.asked import experiments
    from engine.reproduction.finetuning import to_do
    from engine.reproduction.run import reproduce

    asked = asked_of(spec)
    asked.check()
    making = to_do(asked)
    for one in making:
        yield _always(f"fine-tune {one.name}", one.out, one.run)
    for experiment in experiments(asked):
        yield from _later(experiment, asked) if making else _now(experiment, asked)
    yield _always("verdicts", asked.command(), partial(reproduce, asked))


def _always(label: str, of: str, work: Callable[[], object]) -> Unit:
    """Work that looks itself for what is done of it; nothing is ever found under its key."""
    return Unit(key_for({"kind": "reproducing", "of": of, "label": label}), label, work, stores_itself=True)


def _later(experiment: Experiment, asked: Asked) -> Iterator[Unit]:
    """A unit a model: its parts cannot be named before it is there."""
    for player in experiment.players:
        alone = replace(experiment, players=(player,))
        label = f"{experiment.way.job} {player.name}, {experiment.name}"
        yield _always(label, player.place, partial(_carry_out, alone, asked))


def _carry_out(experiment: Experiment, asked: Asked) -> None:
    players = tuple(replace(player, why="") for player in experiment.players)  # it was not there when this was planned
    plan = replace(experiment, players=players).plan(asked)
    assert plan is not None
    experiment.way.carry_out(plan)


def _now(experiment: Experiment, asked: Asked) -> Iterator[Unit]:
    """The units of the experiment; none where its data set cannot be read, which the report says."""
    plan = experiment.plan(asked)
    if plan is None:
        return
    try:
        yield from kind_of(experiment.way.job).plan(json.loads(canonical(plan.as_plain())))
    except ExegesisError:
        return
