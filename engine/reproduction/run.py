"""A whole reproduction: fine-tunings that are still to be made, experiments, verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from cache import key_for
from cache.keys import plain
from engine.errors import Cancelled, ExegesisError
from engine.evaluation.sample import reason
from engine.home import product_version
from engine.progress import CancelToken, Report, cancellable, silent
from engine.reproduction.asked import Asked, Experiment, experiments
from engine.reproduction.finetuning import to_do
from engine.reproduction.judging import findings, judge
from engine.reproduction.labels import Labels, models_of, twins_of
from engine.reproduction.outcome import ExperimentFound, ModelFound, Outcome, Reproduction, from_plain
from engine.reproduction.scales import scale_of
from engine.store import result_store

VERSION = 4
"""Raised whenever the numbers of a report change."""
LIBRARIES = ("torch", "transformers", "numpy")

Ran = tuple[Experiment, Any]
"""An experiment with what was found, or why nothing was."""


def reproduce(asked: Asked, report: Report = silent, cancel: CancelToken | None = None) -> Reproduction:
    """All that the chosen claims need, and what becomes of them. What is there from before is not computed again.

    A model or data set that is not there, and a fine-tuning that fails, leave their claims `not run`, with the reason.
    """
    asked.check()
    with cancellable(cancel):
        lost = _fine_tuned(asked, report)
        ran = [_ran(_told(experiment, lost), asked, report) for experiment in experiments(asked)]
        found = _reproduction(asked, ran)
        result_store().put(report_key(asked), found.as_plain(), {})
    return found


def kept(asked: Asked) -> Reproduction | None:
    """What an earlier run found on the models and data sets as they are now; None where there was none."""
    entry = result_store().get(report_key(asked))
    return None if entry is None else from_plain(entry[0])


def _fine_tuned(asked: Asked, report: Report) -> dict[str, str]:
    """Why those that failed did, by name."""
    lost = {}
    for one in to_do(asked):
        try:
            one.run(lambda done, total, label, name=one.name: report(done, total, f"{name}, {label}"))  # type: ignore[misc]
        except Cancelled:
            raise
        except ExegesisError as error:
            lost[one.name] = f"not fine-tuned: {reason(error)}"
    return lost


def _told(experiment: Experiment, lost: dict[str, str]) -> Experiment:
    players = tuple(dataclasses.replace(one, why=lost.get(one.name, one.why)) for one in experiment.players)
    return dataclasses.replace(experiment, players=players)


def _ran(experiment: Experiment, asked: Asked, report: Report) -> Ran:
    plan = experiment.plan(asked)
    if plan is None:
        return experiment, "none of its models is there"
    try:
        return experiment, experiment.way.carry_out(plan, report)
    except Cancelled:
        raise
    except ExegesisError as error:
        return experiment, reason(error)


def _reproduction(asked: Asked, ran: Sequence[Ran]) -> Reproduction:
    models = _models(asked, ran)
    return Reproduction(
        asked.command(),
        asked.scale,
        asked.count,
        asked.seed,
        asked.declared.digest,
        {"Exegesis": product_version(), **{name: version(name) for name in LIBRARIES}},
        models,
        tuple(_experiment(experiment, found, asked) for experiment, found in ran),
        labelled(asked, judge(asked, findings(ran)), models),
        tuple(sorted(asked.places)),
    )


def labelled(asked: Asked, outcomes: Sequence[Outcome], models: Sequence[ModelFound]) -> tuple[Outcome, ...]:
    """The outcomes of the chosen claims, in their order, with labels on those that are no findings."""
    scale = scale_of(asked.scale)
    labels = Labels(models_of(asked.chosen, scale, models), twins_of(asked.chosen, scale))
    return tuple(labels.label(claim, one) for claim, one in zip(asked.chosen, outcomes, strict=True))


def _models(asked: Asked, ran: Sequence[Ran]) -> tuple[ModelFound, ...]:
    """Each model once on each data set: with how often it is right on the most examples that an experiment used."""
    models: dict[tuple[str, str], ModelFound] = {}
    for experiment, found in ran:
        for one in _models_of(experiment, found, asked):
            if (one.name, one.data) not in models or one.n > models[one.name, one.data].n:
                models[one.name, one.data] = one
    return tuple(models.values())


def _models_of(experiment: Experiment, found: Any, asked: Asked) -> Iterator[ModelFound]:
    there = not isinstance(found, str)
    rights = list(experiment.way.rights(found)) if there else []
    classes = len(experiment.way.sample(experiment.plan(asked)).source.labels) if there else 0
    for player in experiment.players:
        right = [one for model, one in rights if model == player.place and one is not None]
        accuracy = sum(right) / len(right) if right else None
        yield ModelFound(player.name, player.data.dataset, player.why, accuracy, len(right), player.revision, classes)


def _experiment(experiment: Experiment, found: Any, asked: Asked) -> ExperimentFound:
    plan = experiment.plan(asked)
    if isinstance(found, str) or plan is None:
        return ExperimentFound(experiment.name, {}, str(found), 0, experiment.source)
    skipped = experiment.way.skipped(found)
    return ExperimentFound(experiment.name, plain(plan.as_plain()), "", skipped, experiment.source)


def report_key(asked: Asked) -> str:
    """The cache key of the report: by what is asked, and by the models and data sets as they are."""
    needed = experiments(asked)
    return key_for(
        {
            "kind": "reproduction",
            "version": [VERSION, product_version()],
            "asked": [asked.command(), asked.declared.digest],
            "absent": [player.name for one in needed for player in one.players if not player.there],
            "evaluations": [key for one in needed for key in _keys(one, asked)],
        }
    )


def _keys(experiment: Experiment, asked: Asked) -> list[str]:
    """Of what the experiment finds; where the data set cannot be read, why."""
    plan = experiment.plan(asked)
    if plan is None:
        return []
    try:
        return experiment.way.keys(plan)
    except ExegesisError as error:
        return [reason(error)]
