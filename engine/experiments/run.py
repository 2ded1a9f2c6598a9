"""An experiment carried out: checked, in this process or on a cluster, cached by model, as a job, as files."""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cache import key_for
from cache.codec import Arrays, Meta
from engine import cluster, runtime
from engine.cluster import CacheEntries
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.evaluation.sample import Sample
from engine.experiments.base import Experiment, experiment_of
from engine.experiments.options import Option, Spec, options_of
from engine.explain import method_key
from engine.input_kinds import kind_of_model
from engine.jobs.kinds import Kind, Unit
from engine.models import catalog
from engine.params import allowed, from_mapping
from engine.progress import CancelToken, Report, cancellable, silent
from engine.registry import explainer
from engine.removal_operators import keyed_params
from engine.request import DTYPES
from engine.store import result_store
from engine.table_io import to_csv, to_json, to_parquet


def carry_out(
    plan: Any,
    report: Report = silent,
    cancel: CancelToken | None = None,
    executor: str = "local",
    address: str | None = None,
) -> Any:
    """A whole plan. What is found on a model is cached as a whole too, so that it opens at once.

    `executor`: "local", or "ray" for a cluster at `address`, None for the one on this machine. What a worker could not
    do is tried here, so that its reason is told. Errors: those of the plan, of a data set that cannot be read, and of
    the experiment's own work; no cluster.
    """
    cluster.check_executor(executor, address)
    check(plan)
    sample = sample_of(plan)
    if executor == "ray":
        cluster.run_tasks(missing_tasks(plan, sample), address, report, cancel or CancelToken())
    with cancellable(cancel):
        found = tuple(_on_model(plan, model, sample, report) for model in plan.models)
    return experiment_of(plan).steps.Result(plan, found)


def sample_of(plan: Any) -> Sample:
    """The examples that the seed draws. Errors: those of reading the data set."""
    return experiment_of(plan).steps.sample(plan)


def finished(plan: Any) -> Any | None:
    """The whole from the cache, without a model; None while it holds nothing of one of its models."""
    check(plan)
    sample = sample_of(plan)
    found = tuple(one for model in plan.models if (one := find(plan, model, sample)) is not None)
    return experiment_of(plan).steps.Result(plan, found) if len(found) == len(plan.models) else None


def _on_model(plan: Any, model: str, sample: Sample, report: Report) -> Any:
    """From the cache or worked out now; what is incomplete is tried again."""
    there = find(plan, model, sample)
    if there is not None and there.complete:
        return there
    found = experiment_of(plan).steps.assemble(replace(plan, models=(model,)), sample, report)
    keep(plan, model, sample, found)
    return found


def check(plan: Any) -> None:
    """Refuse a plan that cannot be carried out. A hub's model may be downloaded for it; no model is loaded."""
    _check_lists(plan)
    _check_methods(plan)
    experiment_of(plan).steps.check(plan)
    _check_values(plan)


def plan_options(plan: Any) -> Iterable[Option]:
    """The options of a plan."""
    return options_of(experiment_of(plan).plan).values()


def _check_lists(plan: Any) -> None:
    lists = [one for one in plan_options(plan) if one.is_list]
    for one in lists:
        values = getattr(plan, one.name)
        if not values and one.default != ():
            raise UsageError(f"{one.name}: must name at least one, got none.")
        if len(set(values)) < len(values):
            raise not_allowed(one.name, "different names", list(values))
    for one in lists:
        for value in getattr(plan, one.name):
            if one.get("choices") and value not in one.get("choices"):
                raise unknown(one.link, value, one.get("choices"))
    for method in plan.params:
        if method not in plan.company:
            raise unknown("params: method", method, plan.company)


def _check_methods(plan: Any) -> None:
    kind = plan.kind
    for model in plan.models:
        if kind_of_model(model) != kind:
            raise UsageError(f"models: {plan.models[0]} and {model} must both read texts or both read pictures.")
    for method in {*plan.methods, *plan.params}:
        known = explainer(method, kind)
        from_mapping(known.params, plan.params_of(method), method)
        for model in plan.models:
            known.settled(plan.params_of(method), model)


def _check_values(plan: Any) -> None:
    for one in plan_options(plan):
        value, low, high = getattr(plan, one.name), one.get("low"), one.get("high")
        if one.hint is int:
            wrong = type(value) is not int or (low is not None and value < low) or (high is not None and value > high)
        else:
            wrong = one.hint is bool and type(value) is not bool
        if wrong:
            raise not_allowed(one.name, allowed(one.field, one.hint), value)
        if one.hint is str and one.get("choices") and value not in one.get("choices"):
            raise unknown(one.link, value, one.get("choices"))
    if plan.dtype not in DTYPES:
        raise unknown("dtype", plan.dtype, DTYPES)


def key_of(plan: Any, model: str, sample: Sample) -> str:
    """The cache key of what is found on one model. Reads the model's files, never loads it."""
    own, source = experiment_of(plan), sample.source
    asked = {name: value for name, value in plan.as_plain().items() if name not in ("models", "params")}
    return key_for(
        {
            "kind": own.noun,
            "version": own.steps.VERSIONS,
            "plan": asked,
            "model": [model, catalog.revision(model)],
            "data": [source.name, source.revision, source.count],
            "methods": [_method_key(plan, method, model) for method in plan.company],
            "device": runtime.device_type(),
        }
    )


def _method_key(plan: Any, method: str, model: str) -> list[object]:
    given = plan.params_of(method)
    return [method, method_key(explainer(method, plan.kind), given, model), keyed_params(given)]


def find(plan: Any, model: str, sample: Sample) -> Any | None:
    """What the cache holds of a model, None where it holds nothing. It may be incomplete."""
    key = key_of(plan, model, sample)
    entry = result_store().get(key) or result_store().get(_incomplete_key(plan, key))
    return None if entry is None else _unpack(experiment_of(plan).steps.ModelResult, *entry)


def keep(plan: Any, model: str, sample: Sample, found: Any) -> None:
    """Cache what is found, under a key of its own where something failed: that never stands for the whole."""
    key = key_of(plan, model, sample)
    result_store().put(key if found.complete else _incomplete_key(plan, key), *_pack(found))


def _incomplete_key(plan: Any, key: str) -> str:
    return key_for({"kind": f"{experiment_of(plan).noun}, incomplete", "of": key})


def _pack(found: Any) -> tuple[Meta, Arrays]:
    values = vars(found).items()
    meta = {name: _plain(value) for name, value in values if not isinstance(value, np.ndarray)}
    return meta, {name: value for name, value in values if isinstance(value, np.ndarray)}


def _plain(value: Any) -> Any:
    """Dataclasses as the list of their fields, mappings as the list of their pairs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_plain(one) for one in vars(value).values()]
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _unpack(kind: type[Any], meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    hints = typing.get_type_hints(kind)
    return kind(**arrays, **{name: _read(hints[name], meta[name]) for name in hints if name not in arrays})


def _read(hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        return tuple(_read(typing.get_args(hint)[0], one) for one in value)
    if typing.get_origin(hint) is dict:
        return {key: _read(typing.get_args(hint)[1], one) for key, one in value}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint(*(_read(one, own) for one, own in zip(typing.get_type_hints(hint).values(), value, strict=True)))
    return value


def job_kind(own: Experiment) -> Kind:
    """The experiment as a kind of job; what it leaves in the cache is what `finished` then reads without a model."""
    return Kind(own.id, own.title_of, partial(_job_units, own), lambda spec: check(own.plan_of(spec)))


def _job_units(own: Experiment, spec: Spec) -> Iterator[Unit]:
    """Model by model the experiment's own units, and at the end the whole."""
    plan = own.plan_of(spec)
    check(plan)
    sample = sample_of(plan)
    for model in plan.models:
        alone = replace(plan, models=(model,))
        work = own.steps.units(alone, sample)
        yield from work.each
        whole = partial(_assemble, alone, work.finish)
        yield Unit(key_of(alone, model, sample), f"all together, {model}", whole, stores_itself=True)


def _assemble(plan: Any, finish: Callable[[], object]) -> None:
    finish()
    carry_out(plan)


@dataclass(frozen=True)
class ClusterTask:
    """A group of units for a worker of a cluster. `plan`: of one model. `size`: how many examples.

    `at`: the group. `key`: of the note that it is done.
    """

    plan: Any
    at: Any
    size: int
    key: str

    def run(self) -> CacheEntries:
        """Leave all entries of the group in a cache, and hand them over. Runs on a worker."""
        with cluster.worker_cache() as found:
            work = experiment_of(self.plan).steps.units(self.plan, sample_of(self.plan))
            failed = _do(unit for unit in work.each if unit.group == self.at)
            if failed is not None and not found:
                raise failed
            work.finish()
        return found


def missing_tasks(plan: Any, sample: Sample) -> list[cluster.ClusterTask]:
    """What a cluster has to do, a task for each group of units."""
    models = [model for model in plan.models if find(plan, model, sample) is None]
    return cluster.pending([task for model in models for task in _tasks(replace(plan, models=(model,)), sample)])


def _tasks(plan: Any, sample: Sample) -> Iterator[ClusterTask]:
    own, of = experiment_of(plan), key_of(plan, plan.models[0], sample)
    groups = (unit.group for unit in own.steps.units(plan, sample).each if unit.group is not None)
    for at, _ in itertools.groupby(groups):
        key = key_for({"kind": own.participle, "what": "task", "of": of, "at": at})
        yield ClusterTask(plan, at, len(sample.indices), key)


def _do(units: Iterable[Unit]) -> ExegesisError | None:
    """Neighbours with the same batch together; what fails is left over. Returns the first error."""
    first: ExegesisError | None = None
    for batch, neighbours in itertools.groupby(units, key=lambda unit: unit.batch or unit.key):
        same = list(neighbours)
        try:
            batch(same) if callable(batch) else same[0].compute()
        except ExegesisError as error:
            first = first or error
    return first


def rows_of(found: Any) -> Iterator[dict[str, Any]]:
    """An observation a row, of all models."""
    steps = experiment_of(found.plan).steps
    return itertools.chain.from_iterable(steps.rows(one) for one in found.models)


def plan_and_rows(found: Any) -> dict[str, Any]:
    """The plan and all rows: a `to_json` for experiments that sum nothing up."""
    return {"plan": found.plan.as_plain(), "rows": list(rows_of(found))}


def _csv(found: Any) -> bytes:
    columns = experiment_of(found.plan).steps.COLUMNS
    return (to_csv(rows_of(found)) or ",".join(columns) + "\n").encode()


def _json(found: Any) -> bytes:
    return to_json(rows_of(found)).encode()


def _parquet(found: Any) -> bytes:
    return to_parquet(rows_of(found), experiment_of(found.plan).steps.COLUMNS)


FORMATS: Mapping[str, Callable[[Any], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""The tidy table as a file, by the ending of its name."""
