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
from engine import runtime
from engine.errors import UsageError, not_allowed, unknown
from engine.experiments.base import (
    CustomGroups,
    CustomStorage,
    CustomTasks,
    Experiment,
    ResolvedPlans,
    experiment_of,
)
from engine.experiments.options import Option, Spec, options_of
from engine.experiments.sample import Sample
from engine.explain import method_key
from engine.input_kinds import kind_of_model
from engine.jobs import cluster
from engine.jobs.cluster import CacheEntries
from engine.jobs.cluster_tasks import compute_units
from engine.jobs.kinds import JobKind, WorkUnit
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
    """A whole plan. The result of a model is cached as a whole too, so that it opens at once.

    `executor`: "local", or "ray" for a cluster at `address`, None for the one on this machine. What a worker could not
    do is tried here, so that its reason is told. Errors: those of the plan, of a data set that cannot be read, and of
    the experiment's own work; no cluster.
    """
    cluster.check_executor(executor, address)
    check(plan)
    query = plan
    plan, sample = prepare(query)
    if executor == "ray":
        cluster.run_tasks(missing_tasks(plan, sample), address, report, cancel or CancelToken())
    with cancellable(cancel):
        parts = parts_of(plan)
        reports = (_part_report(report, place, len(parts)) for place in range(len(parts)))
        results = tuple(_part_result(part, sample, own) for part, own in zip(parts, reports, strict=True))
        return join_results(plan, results, query)


def prepare(plan: Any) -> tuple[Any, Sample]:
    """The plan with what the data set decides filled in, and its examples. Errors: those of reading the data set."""
    steps, sample = experiment_of(plan).steps, sample_of(plan)
    return (steps.resolve(plan, sample) if isinstance(steps, ResolvedPlans) else plan), sample


def _part_report(report: Report, place: int, of: int) -> Report:
    """The progress of one of several parts, as that of all."""
    return lambda done, total, label: report(place * total + done, of * total, label)


def parts_of(plan: Any) -> tuple[Any, ...]:
    """The plans of which each has a result in the cache: one a model, or the whole where results are joint."""
    if experiment_of(plan).joint:
        return (plan,)
    return tuple(replace(plan, models=(model,)) for model in plan.models)


def join_results(plan: Any, results: tuple[Any, ...], query: Any = None) -> Any:
    """The result of a plan from those of its parts. `query`: the plan before it was resolved, where that differs."""
    own = experiment_of(plan)
    return results[0] if own.joint else own.steps.Result(plan, results, *([] if query in (None, plan) else [query]))


def sample_of(plan: Any) -> Sample:
    """The examples that the seed draws. Errors: those of reading the data set."""
    return experiment_of(plan).steps.sample(plan)


def finished(plan: Any) -> Any | None:
    """The whole from the cache, without a model; None while it holds nothing of one of its models."""
    check(plan)
    query = plan
    plan, sample = prepare(query)
    results = tuple(find(part, sample) for part in parts_of(plan))
    return None if None in results else join_results(plan, results, query)


def _part_result(part: Any, sample: Sample, report: Report) -> Any:
    """The result of a part, cached or computed now; an incomplete one is tried again."""
    cached = find(part, sample)
    if cached is not None and cached.complete:
        return cached
    result = experiment_of(part).steps.assemble(part, sample, report)
    keep(part, sample, result)
    return result


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
    lists = [one for one in plan_options(plan) if one.is_list and not one.is_number_list]
    for one in lists:
        values = getattr(plan, one.name)
        if not values and one.default != () and not one.get("allowed"):
            raise UsageError(f"{one.name}: must name at least one, got none.")
        if len(set(values)) < len(values) or (not values and one.default != ()):
            raise not_allowed(one.name, one.get("allowed", "different names"), list(values))
    for one in lists:
        for value in getattr(plan, one.name):
            if one.get("choices") and value not in one.get("choices"):
                raise unknown(one.link, value, one.get("choices"))
    for method in plan.params:
        if method not in plan.methods_with_baselines:
            raise unknown("params: method", method, plan.methods_with_baselines)


def _check_methods(plan: Any) -> None:
    kind = plan.kind
    for model in plan.models:
        if kind_of_model(model) != kind:
            raise UsageError(f"models: {plan.models[0]} and {model} must both read texts or both read pictures.")
    for method in {*plan.methods, *plan.params}:
        known = explainer(method, kind)
        from_mapping(known.params, plan.params_of(method), method)
        for model in plan.models:
            known.resolve(plan.params_of(method), model)


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


def key_of(part: Any, sample: Sample) -> str:
    """The cache key of the result of a part of a plan (see `parts_of`). Reads the model's files, never loads it."""
    own, source = experiment_of(part), sample.source
    if isinstance(own.steps, CustomStorage):
        return own.steps.result_key(part, sample)
    [model] = part.models
    asked = {name: value for name, value in part.as_plain().items() if name not in ("models", "params")}
    return key_for(
        {
            "kind": own.noun,
            "version": own.steps.VERSIONS,
            "plan": asked,
            "model": [model, catalog.revision(model)],
            "data": [source.name, source.revision, source.count],
            "methods": [_method_key(part, method, model) for method in part.methods_with_baselines],
            "device": runtime.device_type(),
        }
    )


def _method_key(plan: Any, method: str, model: str) -> list[object]:
    given = plan.params_of(method)
    return [method, method_key(explainer(method, plan.kind), given, model), keyed_params(given)]


def entry_key(part: Any, sample: Sample) -> str | None:
    """Under which key the cache holds a result of a part of a plan, complete or not. Reads no result."""
    key = key_of(part, sample)
    return next((one for one in (key, _incomplete_key(part, key)) if result_store().contains(one)), None)


def find(part: Any, sample: Sample) -> Any | None:
    """The cached result of a part of a plan, None where there is none. It may be incomplete."""
    key, steps = key_of(part, sample), experiment_of(part).steps
    for one in (key, _incomplete_key(part, key)):
        entry = result_store().get(one)
        if entry is None:
            continue
        if not isinstance(steps, CustomStorage):
            return unpack_fields(steps.ModelResult, *entry)
        result = steps.unpack(part, *entry)
        return result if result.complete is (one == key) else replace(result, complete=one == key)
    return None


def keep(part: Any, sample: Sample, result: Any) -> None:
    """Cache a result, under a key of its own where something failed: that never stands for the whole."""
    key, steps = key_of(part, sample), experiment_of(part).steps
    packed = steps.pack(result) if isinstance(steps, CustomStorage) else pack_fields(result)
    result_store().put(key if result.complete else _incomplete_key(part, key), *packed)


def _incomplete_key(plan: Any, key: str) -> str:
    return key_for({"kind": f"{experiment_of(plan).noun}, incomplete", "of": key})


def pack_fields(found: Any) -> tuple[Meta, Arrays]:
    """A dataclass as an entry of the cache: its arrays, and all else as plain values."""
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


def unpack_fields(kind: type[Any], meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """The dataclass of an entry that `pack_fields` made. A field that an older entry lacks has its default."""
    hints = typing.get_type_hints(kind)
    return kind(**arrays, **{name: _read(hints[name], meta[name]) for name in hints if name in meta})


def _read(hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        return tuple(_read(typing.get_args(hint)[0], one) for one in value)
    if typing.get_origin(hint) is dict:
        return {key: _read(typing.get_args(hint)[1], one) for key, one in value}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint(*(_read(one, own) for one, own in zip(typing.get_type_hints(hint).values(), value, strict=True)))
    return value


def job_kind(own: Experiment) -> JobKind:
    """The experiment as a kind of job; what it leaves in the cache is what `finished` then reads without a model."""
    units, tasks = partial(_job_units, own), partial(_job_tasks, own)
    return JobKind(own.id, own.title_of, units, lambda spec: check(own.plan_of(spec)), tasks)


def _job_units(own: Experiment, spec: Spec) -> Iterator[WorkUnit]:
    """Part by part the experiment's own units, and at the end the result of the part."""
    plan = own.plan_of(spec)
    check(plan)
    plan, sample = prepare(plan)
    for part in parts_of(plan):
        work = own.steps.units(part, sample)
        yield from work.each
        label = "all together" if own.joint else f"all together, {part.models[0]}"
        yield WorkUnit(key_of(part, sample), label, partial(_assemble, part, work.finish), stores_itself=True)


def _job_tasks(own: Experiment, spec: Spec) -> list[cluster.ClusterTask]:
    """The tasks of the experiment on a cluster. The results of its parts are assembled on this machine."""
    return missing_tasks(*prepare(own.plan_of(spec)))


def _assemble(plan: Any, finish: Callable[[], object]) -> None:
    finish()
    carry_out(plan)


@dataclass(frozen=True)
class UnitGroupTask:
    """A group of units for a worker of a cluster. `plan`: a part of one. `size`: how many examples.

    `at`: the group. `key`: of the note that it is done.
    """

    plan: Any
    at: Any
    size: int
    key: str

    def run(self) -> CacheEntries:
        """Leave all entries of the group in a cache, and hand them over. Runs on a worker."""
        with cluster.worker_cache() as found:
            steps, whole = experiment_of(self.plan).steps, sample_of(self.plan)
            if isinstance(steps, CustomGroups):
                steps.compute_group(self.plan, whole, self.at)
                return found
            plan, sample = _narrow(self.plan, whole, self.at)
            work = steps.units(plan, sample)
            failed = compute_units([unit for unit in work.each if unit.group == self.at])
            if failed is not None and not found:
                raise failed
            work.finish()
        return found


def missing_tasks(plan: Any, sample: Sample) -> list[cluster.ClusterTask]:
    """The tasks that a cluster has to do, one for each group of units."""
    parts = [part for part in parts_of(plan) if (found := find(part, sample)) is None or not found.complete]
    return cluster.pending([task for part in parts for task in _tasks(part, sample)])


def _tasks(part: Any, sample: Sample) -> Iterator[UnitGroupTask]:
    own, of = experiment_of(part), key_of(part, sample)
    groups = own.steps.groups(part, sample) if isinstance(own.steps, CustomGroups) else _unit_groups(part, sample)
    for at, size in groups:
        key = key_for({"kind": own.participle, "what": "task", "of": of, "at": at})
        yield UnitGroupTask(part, at, size, key)


def _unit_groups(part: Any, sample: Sample) -> Iterator[tuple[Any, int]]:
    """The groups of units, which need not be neighbors, with how many examples each is of."""
    groups = (unit.group for unit in experiment_of(part).steps.units(part, sample).each if unit.group is not None)
    by_key = {key_for({"at": at}): at for at, _ in itertools.groupby(groups)}
    return ((at, len(_narrow(part, sample, at)[1].indices)) for at in by_key.values())


def _narrow(part: Any, sample: Sample, group: Any) -> tuple[Any, Sample]:
    """The plan and the examples of a group of units."""
    steps = experiment_of(part).steps
    return steps.narrow(part, sample, group) if isinstance(steps, CustomTasks) else (part, sample)


def part_results(result: Any) -> tuple[Any, ...]:
    """The results of the parts of a plan, from that of the whole."""
    return (result,) if experiment_of(result.plan).joint else tuple(result.models)


def rows_of(result: Any) -> Iterator[dict[str, Any]]:
    """An observation a row, of all models."""
    steps = experiment_of(result.plan).steps
    return itertools.chain.from_iterable(steps.rows(one) for one in part_results(result))


def _csv(found: Any) -> bytes:
    columns = experiment_of(found.plan).steps.COLUMNS
    return (to_csv(rows_of(found)) or ",".join(columns) + "\n").encode()


FORMATS: Mapping[str, Callable[[Any], bytes]] = {
    "csv": _csv,
    "json": lambda found: to_json(rows_of(found)).encode(),
    "parquet": lambda found: to_parquet(rows_of(found), experiment_of(found.plan).steps.COLUMNS),
}
"""The tidy table as a file, by the ending of its name."""


def formats_of(own: Experiment | None = None) -> Mapping[str, Callable[[Any], bytes]]:
    """The formats of an experiment's files: those of all, and those that its module adds as `FORMATS`."""
    return {**FORMATS, **({} if own is None else getattr(own.steps, "FORMATS", {}))}
