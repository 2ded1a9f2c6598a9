"""The job kind `evaluate`: all maps, removal curves and sensitivities of an evaluation, each kept as it is made.

What it leaves in the cache is what `engine.evaluation.evaluate` then reads without running a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cache import key_for
from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.jobs.kinds import Batch, Spec, UnitStep, WorkUnit, job_kind, unreadable_key

if TYPE_CHECKING:
    from engine.data.sources import SourceExample
    from engine.evaluation.plan import Plan
    from engine.evaluation.sample import Sample

LISTS = ("models", "methods", "metrics", "shares")


def _title(spec: Spec) -> str:
    methods, models = (", ".join(map(str, spec.get(name, []))) for name in ("methods", "models"))
    return f"Evaluate {methods} on {spec.get('dataset')} with {models}"


def plan_of(spec: Spec) -> Plan:
    """The plan that a specification names. Errors: a field that is missing, unknown or of another shape."""
    from engine.evaluation.plan import Plan

    known = {field.name for field in fields(Plan)}
    if spec.keys() - known or {"models", "dataset", "methods"} - spec.keys():
        raise UsageError(
            f"spec of an evaluate job: must have models, dataset and methods, and may have "
            f"{', '.join(sorted(known - {'models', 'dataset', 'methods'}))}, got {shown(sorted(spec))}."
        )
    for name in LISTS:
        if not isinstance(spec.get(name, []), list):
            raise not_allowed(f"{name} of an evaluate job", "a list", spec[name])
    if not isinstance(spec["dataset"], str):
        raise not_allowed("dataset of an evaluate job", "a data set's name, a path or hub:owner/name", spec["dataset"])
    given: dict[str, Any] = {name: tuple(value) if name in LISTS else value for name, value in spec.items()}
    return Plan(**given)


def check(spec: Spec) -> None:
    """Refuses what cannot be evaluated. The data set is read when the job runs."""
    from engine.evaluation.plan import check as check_plan

    check_plan(plan_of(spec))


@job_kind("evaluate", title=_title, check=check)
def plan(spec: Spec) -> Iterator[WorkUnit]:
    """The fields of `engine.evaluation.plan.Plan`. Model by model: a unit a map, then a unit an example for all its
    removal curves, which share their passes, then a unit a sensitivity where that is asked for; at the end the whole.
    """
    from engine.evaluation.plan import check as check_plan
    from engine.evaluation.sample import sample_of, with_metrics

    asked = plan_of(spec)
    check_plan(asked)
    sample = sample_of(asked)
    asked = with_metrics(asked, sample)
    for model in asked.models:
        yield from _OneModel(asked, model, sample).units()


class _OneModel:
    """The units of one model. Examples are read when their turn comes: all the pictures would not fit into memory."""

    def __init__(self, plan: Plan, model: str, sample: Sample) -> None:
        self.plan, self.model, self.sample = plan, model, sample

    def units(self) -> Iterator[WorkUnit]:
        from engine.evaluation.keeping import key_of
        from engine.registry import estimate_rows, explainer

        keys = {index: self._keys(index) for index in self.sample.indices}
        plan, known = self.plan, {id: explainer(id, self.plan.kind) for id in self.plan.company}
        rows = {id: estimate_rows(method, plan.params_of(id)) for id, method in known.items()}
        for place, id in enumerate(plan.company):
            own = {of_example[place]: index for index, of_example in keys.items()}
            yield from self._each(own, id, known[id].title, rows[id], partial(self._explain, id))
        if plan.needs("removal"):
            own = {self._removal_key(of_example): index for index, of_example in keys.items()}
            work = partial(self._remove, {index: key for key, index in own.items()})
            curves = 2 * len(plan.percents) * len(plan.company)
            yield from self._each(own, "removal", "Removal by all methods", curves, work)
        if plan.needs("perturbation"):
            for place, id in enumerate(plan.company):
                own = {self._marker("sensitivity", [of[place]], plan.samples): index for index, of in keys.items()}
                title = f"{known[id].title} after small changes"
                work = partial(self._move, id, own)
                yield from self._each(own, f"small changes, {id}", title, plan.samples * rows[id], work)
        whole = key_of(plan, self.model, self.sample)
        yield WorkUnit(whole, f"all together, {self.model}", self._put_together, stores_itself=True)

    def _each(
        self, own: Mapping[str, int], what: str, title: str, rows: int, work: Callable[[Sequence[int]], object]
    ) -> Iterator[WorkUnit]:
        batch = _together(work, own)
        for place, (key, index) in enumerate(own.items(), 1):
            label = f"{what}, example {index}, {self.model}"
            step = UnitStep(f"{title} on {self.model}", place, len(own), rows)
            yield WorkUnit(key, label, partial(work, [index]), stores_itself=True, batch=batch, step=step)

    def _keys(self, index: int) -> list[str]:
        from engine.evaluation.maps import request_of
        from engine.explain import key_of

        try:
            one = self.sample.source.read(index)
            return [key_of(request_of(self.plan, self.model, method, one)) for method in self.plan.company]
        except ExegesisError as error:
            named = {"dataset": self.plan.dataset, "index": index}
            return [unreadable_key(method, named, error) for method in self.plan.company]

    def _removal_key(self, of_example: Sequence[str]) -> str:
        from engine.evaluation.plan import removal_of
        from engine.metrics.faithfulness import VERSION

        plan = self.plan
        return self._marker("removal", of_example, VERSION, removal_of(plan), plan.units, list(plan.percents))

    def _marker(self, what: str, of: Sequence[str], *how: object) -> str:
        """The key of a note that it is done; the numbers themselves are kept one by one."""
        return key_for({"kind": "evaluated", "what": what, "of": list(of), "how": list(how)})

    def _read(self, indices: Sequence[int]) -> list[SourceExample]:
        return [self.sample.source.read(index) for index in indices]

    def _explain(self, method: str, indices: Sequence[int]) -> object:
        from engine.evaluation.maps import request_of
        from engine.explain import explain_many

        return explain_many([request_of(self.plan, self.model, method, one) for one in self._read(indices)])

    def _remove(self, keys: Mapping[int, str], indices: Sequence[int]) -> None:
        from engine.evaluation.maps import explained
        from engine.evaluation.measuring import removal

        made = explained(self.plan, self.model, self._read(indices))
        removal(self.plan, self.model, made)
        for why in (why for one in made for why in one.failed.values()):
            raise ExegesisError(why)  # so that the example is tried again once its maps can be made
        _mark([keys[index] for index in indices])

    def _move(self, method: str, own: Mapping[str, int], indices: Sequence[int]) -> None:
        from engine.evaluation.maps import request_of
        from engine.metrics.sensitivity import sensitivities

        asked = [request_of(self.plan, self.model, method, one) for one in self._read(indices)]
        sensitivities(asked, samples=self.plan.samples)
        _mark([key for key, index in own.items() if index in set(indices)])

    def _put_together(self) -> None:
        from engine.evaluation.evaluate import carry_out

        carry_out(replace(self.plan, models=(self.model,)))


def _together(work: Callable[[Sequence[int]], object], own: Mapping[str, int]) -> Batch:
    return lambda units: work([own[unit.key] for unit in units])


def _mark(keys: Sequence[str]) -> None:
    from engine.store import result_store

    for key in keys:
        result_store().put(key, {"done": True}, {})
