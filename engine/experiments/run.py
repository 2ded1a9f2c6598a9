"""Running an experiment: checks, execution in this process or on a cluster, caching by model, jobs and files."""

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
    """Carry out a plan and return its result. Results are cached as a whole per model too, so that they open at once.

    `executor`: "local", or "ray" for a cluster at `address` (None: the one on this machine). Work that failed on a
    worker is tried again here, so that its error is reported. Errors: those of the plan, of a data set that cannot be
    read, and of the experiment's own work; no cluster.
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
    """Return the plan, with open fields filled in from the data set, and its examples. Errors: as in `sample_of`."""
    steps, sample = experiment_of(plan).steps, sample_of(plan)
    return (steps.resolve(plan, sample) if isinstance(steps, ResolvedPlans) else plan), sample


def _part_report(report: Report, place: int, of: int) -> Report:
    """Return a report that converts the progress of one of several parts to that of all."""
    return lambda done, total, label: report(place * total + done, of * total, label)


def parts_of(plan: Any) -> tuple[Any, ...]:
    """Return the plans that each have a cached result: one per model, or the whole plan if results are joint."""
    if experiment_of(plan).joint:
        return (plan,)
    return tuple(replace(plan, models=(model,)) for model in plan.models)


def join_results(plan: Any, results: tuple[Any, ...], query: Any = None) -> Any:
    """Return the result of a plan from those of its parts. `query`: the plan before it was resolved, if it differs."""
    own = experiment_of(plan)
    return results[0] if own.joint else own.steps.Result(plan, results, *([] if query in (None, plan) else [query]))


def sample_of(plan: Any) -> Sample:
    """Draw the examples of a plan with its seed. Errors: those of reading the data set."""
    return experiment_of(plan).steps.sample(plan)


def finished(plan: Any) -> Any | None:
    """Return the result of a plan from the cache, without running a model; None if a part is missing."""
    check(plan)
    query = plan
    plan, sample = prepare(query)
    results = tuple(find(part, sample) for part in parts_of(plan))
    return None if None in results else join_results(plan, results, query)


def _part_result(part: Any, sample: Sample, report: Report) -> Any:
    """Return the result of a part, cached or computed now; an incomplete one is tried again."""
    cached = find(part, sample)
    if cached is not None and cached.complete:
        return cached
    result = experiment_of(part).steps.assemble(part, sample, report)
    keep(part, sample, result)
    return result


def check(plan: Any) -> None:
    """Refuse a plan that cannot be carried out. This may download a model of the hub, but loads no model."""
    _check_lists(plan)
    _check_methods(plan)
    experiment_of(plan).steps.check(plan)
    _check_values(plan)


def plan_options(plan: Any) -> Iterable[Option]:
    """Return the options of a plan."""
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
    """Return the cache key of a part's result (see `parts_of`). Reads the model's files, never loads it."""
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
    """Return the key of the cached result of a part of a plan, complete or not, or None. Reads no result."""
    key = key_of(part, sample)
    return next((one for one in (key, _incomplete_key(part, key)) if result_store().contains(one)), None)


def find(part: Any, sample: Sample) -> Any | None:
    """Return the cached result of a part of a plan, or None. It may be incomplete."""
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
    """Cache a result. An incomplete one has its own key, so that it is never taken for a complete one."""
    key, steps = key_of(part, sample), experiment_of(part).steps
    packed = steps.pack(result) if isinstance(steps, CustomStorage) else pack_fields(result)
    result_store().put(key if result.complete else _incomplete_key(part, key), *packed)


def _incomplete_key(plan: Any, key: str) -> str:
    return key_for({"kind": f"{experiment_of(plan).noun}, incomplete", "of": key})


def pack_fields(found: Any) -> tuple[Meta, Arrays]:
    """Convert a dataclass to a cache entry: its arrays, and all other fields as plain values."""
    values = vars(found).items()
    meta = {name: _plain(value) for name, value in values if not isinstance(value, np.ndarray)}
    return meta, {name: value for name, value in values if isinstance(value, np.ndarray)}


def _plain(value: Any) -> Any:
    """Convert dataclasses to lists of their fields, and mappings to lists of their pairs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_plain(one) for one in vars(value).values()]
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def unpack_fields(kind: type[Any], meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """Read a dataclass from an entry of `pack_fields`. A field that an older entry lacks has its default."""
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
    """Return the experiment as a kind of job. `finished` then reads the cached results without running a model."""
    units, tasks = partial(_job_units, own), partial(_job_tasks, own)
    return JobKind(own.id, own.title_of, units, lambda spec: check(own.plan_of(spec)), tasks)


def _job_units(own: Experiment, spec: Spec) -> Iterator[WorkUnit]:
    """Yield the experiment's units part by part, each part followed by a unit for its result."""
    plan = own.plan_of(spec)
    check(plan)
    plan, sample = prepare(plan)
    for part in parts_of(plan):
        work = own.steps.units(part, sample)
        yield from work.each
        label = "all together" if own.joint else f"all together, {part.models[0]}"
        yield WorkUnit(key_of(part, sample), label, partial(_assemble, part, work.finish), stores_itself=True)


def _job_tasks(own: Experiment, spec: Spec) -> list[cluster.ClusterTask]:
    """Return the tasks of the experiment on a cluster. The results of its parts are assembled on this machine."""
    return missing_tasks(*prepare(own.plan_of(spec)))


def _assemble(plan: Any, finish: Callable[[], object]) -> None:
    finish()
    carry_out(plan)


@dataclass(frozen=True)
class UnitGroupTask:
    """A group of units for a worker of a cluster. `plan`: a part of a plan. `size`: number of examples.

    `at`: the group. `key`: key of the record that it is done.
    """

    plan: Any
    at: Any
    size: int
    key: str

    def run(self) -> CacheEntries:
        """Compute the group and return its cache entries. Runs on a worker."""
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
    """Return the tasks that a cluster has to do, one for each group of units."""
    parts = [part for part in parts_of(plan) if (found := find(part, sample)) is None or not found.complete]
    return cluster.pending([task for part in parts for task in _tasks(part, sample)])


def _tasks(part: Any, sample: Sample) -> Iterator[UnitGroupTask]:
    own, of = experiment_of(part), key_of(part, sample)
    groups = own.steps.groups(part, sample) if isinstance(own.steps, CustomGroups) else _unit_groups(part, sample)
    for at, size in groups:
        key = key_for({"kind": own.participle, "what": "task", "of": of, "at": at})
        yield UnitGroupTask(part, at, size, key)


def _unit_groups(part: Any, sample: Sample) -> Iterator[tuple[Any, int]]:
    """Return the groups of units, which need not be adjacent, with the number of examples of each."""
    groups = (unit.group for unit in experiment_of(part).steps.units(part, sample).each if unit.group is not None)
    by_key = {key_for({"at": at}): at for at, _ in itertools.groupby(groups)}
    return ((at, len(_narrow(part, sample, at)[1].indices)) for at in by_key.values())


def _narrow(part: Any, sample: Sample, group: Any) -> tuple[Any, Sample]:
    """Return the plan and the examples of a group of units."""
    steps = experiment_of(part).steps
    return steps.narrow(part, sample, group) if isinstance(steps, CustomTasks) else (part, sample)


def part_results(result: Any) -> tuple[Any, ...]:
    """Return the results of the parts of a plan from the result of the whole."""
    return (result,) if experiment_of(result.plan).joint else tuple(result.models)


def rows_of(result: Any) -> Iterator[dict[str, Any]]:
    """Return the rows of all models, one observation per row."""
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
"""Functions that return the tidy table as a file, by file extension."""


def formats_of(own: Experiment | None = None) -> Mapping[str, Callable[[Any], bytes]]:
    """Return the file formats of an experiment: the common ones, and those that its module adds as `FORMATS`."""
    return {**FORMATS, **({} if own is None else getattr(own.steps, "FORMATS", {}))}
