"""Run the experiment `evaluate`: sample, work units and result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cache import key_for
from engine import runtime
from engine.data.labels import match_classes
from engine.data.sources import ExampleSource, SourceExample
from engine.errors import Cancelled, ExegesisError, not_allowed, one_line, unknown
from engine.evaluation.measurement import (
    ExplainedExample,
    Measurements,
    UnitScores,
    compute_removal,
    example_facts,
    explain_examples,
    measure_maps,
    measure_removal,
    measure_sensitivity,
    request_for,
    unit_scores_of,
    withdraw_constant_maps,
)
from engine.evaluation.plan import NO_OPERATOR, READ, EvaluationPlan, marks_of, second_removals_of
from engine.evaluation.quantus_export import FORMATS as QUANTUS_FORMATS
from engine.evaluation.result import COLUMNS, Evaluation, ExampleFacts, ModelEvaluation, pack, unpack
from engine.evaluation.scores import to_json
from engine.experiments.base import Units
from engine.experiments.run import carry_out
from engine.experiments.sample import GROUP_SIZE, Sample, UnreadableExample, draw_sample, has_marks
from engine.explain import explain_many, method_key
from engine.explain import key_of as explanation_key
from engine.input_kinds import check_removal, check_unit, load_classifier
from engine.jobs.kinds import Batch, UnitStep, WorkUnit, unreadable_key
from engine.metrics import faithfulness, sensitivity
from engine.metrics.catalog import METRICS
from engine.metrics.faithfulness import RowCounts, check_percents
from engine.metrics.sensitivity import sensitivities
from engine.models import catalog
from engine.models.catalog import model_labels
from engine.progress import CancelToken, Report, check_cancelled, silent
from engine.registry import estimate_rows, explainer
from engine.removal_operators import keyed, keyed_params
from engine.store import result_store

__all__ = [
    "COLUMNS", "VERSIONS", "ModelResult", "Result", "assemble", "check", "compute_group", "evaluate", "groups",
    "pack", "resolve", "result_key", "rows", "sample", "to_json", "units", "unpack",
]  # fmt: skip

VERSIONS = [3, faithfulness.VERSION, sensitivity.VERSION]
"""Increase the first whenever the values of a metric change that is not cached by itself."""
ModelResult = ModelEvaluation
Result = Evaluation


def evaluate(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str],
    metrics: Sequence[str] = (),
    examples: int | None = None,
    seed: int = 0,
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> Evaluation:
    """Evaluate every method on every model by every metric, on a random sample of examples.

    `more`: other fields of the plan. The members of ensembles and `random` are added to the methods. Each map, removal
    curve and sensitivity is cached, so a stopped run can be continued, and another method or metric costs only itself.
    Examples that fail are skipped with a reason. Errors: an invalid plan, a data set that cannot be read.
    """
    given: dict[str, object] = {} if examples is None else {"examples": examples}
    plan = EvaluationPlan(tuple(models), dataset, tuple(methods), tuple(metrics), seed=seed, **given, **more)  # type: ignore[arg-type]
    result: Evaluation = carry_out(plan, report, cancel)
    return result


FORMATS = QUANTUS_FORMATS
"""Additional export formats, by file ending."""


def check(plan: EvaluationPlan) -> None:
    """Refuse units, operators, marks and shares that this kind of input does not have, and the same operator twice."""
    if plan.removal is not None:
        check_removal(plan.removal, plan.kind)
    if plan.second_removal is not None and plan.second_removal not in (choices := second_removals_of(plan.kind)):
        raise unknown("second_removal", plan.second_removal, choices)
    if plan.second_removal == plan.operator:
        raise not_allowed("second_removal", f"another operator than the first, or {NO_OPERATOR}", plan.second_removal)
    if plan.unit is not None:
        check_unit(plan.unit, plan.kind)
    if plan.marks is not None and plan.marks not in (choices := marks_of(plan.kind)):
        raise unknown("marks", plan.marks, choices)
    if not plan.shares or 0 in plan.shares:
        raise not_allowed("shares", "at least one percentage above 0", list(plan.shares))
    check_percents(plan.percents)


def sample(plan: EvaluationPlan) -> Sample:
    """Draw the sample of examples. Errors: a data set that cannot be read."""
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def resolve(plan: EvaluationPlan, sample: Sample) -> EvaluationPlan:
    """Fill in the metrics if none are named: all that the data set allows, except those that must be named."""
    if plan.metrics:
        return plan
    needs = {"nothing", "removal", "others"}
    if any(isinstance(one, SourceExample) and has_marks(one) for group in sample.groups() for one in group):
        needs |= {"marks", "pair"} if sample.source.pairs else {"marks"}
    suited = (metric.id for metric in METRICS.values() if metric.needs in needs and not metric.on_request)
    return replace(plan, metrics=tuple(suited))


def result_key(plan: EvaluationPlan, sample: Sample) -> str:
    """Cache key of the result on one model. Reads the model's files without loading it.

    The second operator is part of the key only if there are second scores, and `marks` only if it is `read`. Results
    without them therefore keep the keys that they had before these options existed.
    """
    [model] = plan.models
    left_out = ("models", "second_removal", *(["marks"] if plan.marks != READ else []))
    asked = {name: value for name, value in plan.as_plain().items() if name not in left_out}
    second = {} if plan.second_operator is None else {"second_removal": keyed(plan.second_operator)}
    params = {method: keyed_params(plan.params_of(method)) for method in plan.params}
    source = sample.source
    return key_for(
        {
            "kind": "evaluation",
            "version": VERSIONS,
            "plan": asked | {"removal": keyed(plan.removal), "params": params} | second,
            "model": [model, catalog.revision(model)],
            "data": [source.name, source.revision, source.count],
            "methods": [_method_key(plan, method, model) for method in plan.methods_with_baselines],
            "device": runtime.device_type(),
            **({"packages": packages} if (packages := _metric_packages(plan)) else {}),
        }
    )


def _metric_packages(plan: EvaluationPlan) -> dict[str, str]:
    """The external packages that define metrics of the plan, with their versions."""
    return {id: METRICS[id].package for id in plan.metrics if METRICS[id].package}


def _method_key(plan: EvaluationPlan, method: str, model: str) -> list[object]:
    known = explainer(method, plan.kind)
    if known.resolver is None:
        return [method, known.keyed_version]
    return [method, *method_key(known, plan.params_of(method), model)]


def rows(result: ModelEvaluation) -> Iterator[dict[str, Any]]:
    """Yield one row per value, those of the second operator last."""
    for one in (result, *([] if result.second is None else [result.second])):
        for row in one.rows:
            yield {**row.as_plain(), "removal": one.removal if METRICS[row.of.metric].needs == "removal" else ""}


def class_notes(plan: EvaluationPlan, source: ExampleSource) -> dict[str, list[str]]:
    """Notes on how the data set's classes match the models' if that is not obvious, each with its models.

    No model is loaded.
    """
    notes: dict[str, list[str]] = {}
    for model in plan.models if source.labels else ():
        if note := _class_note(model, source):
            notes.setdefault(note, []).append(model)
    return notes


def _class_note(model: str, source: ExampleSource) -> str:
    """The note for one model, or an empty string.

    It is empty for language models, whose classes come from the prompt, and for models with broken files, for which the
    run itself reports the error.
    """
    try:
        labels = model_labels(model)
        return match_classes(source.labels, labels, source.unnamed).note if labels else ""
    except (ExegesisError, TypeError, ValueError, LookupError, AttributeError):
        return ""


def assemble(plan: EvaluationPlan, sample: Sample, report: Report) -> ModelEvaluation:
    """Collect the results on one model: maps, removal curves, sensitivities and all metrics, computed if not cached."""
    return _ModelEvaluator(plan, sample).run(report)


def groups(plan: EvaluationPlan, sample: Sample) -> Iterator[tuple[list[int], int]]:
    """Yield the tasks for a cluster: indices of examples that are processed together, and their number."""
    for start in range(0, len(sample.indices), GROUP_SIZE):
        group = list(sample.indices[start : start + GROUP_SIZE])
        yield group, len(group)


def compute_group(plan: EvaluationPlan, sample: Sample, group: Sequence[int]) -> None:
    """Process these examples, so that all their intermediate results are cached."""
    assemble(plan, Sample(sample.source, tuple(group)), silent)


class _ModelEvaluator:
    """Evaluates one model on its examples, a few at a time."""

    def __init__(self, plan: EvaluationPlan, sample: Sample) -> None:
        self.plan, self.sample = plan, sample
        [self.model] = plan.models
        self.measurements = Measurements(self.model, sample.source.name)
        self.second_measurements = Measurements(self.model, sample.source.name)
        self.facts: list[ExampleFacts] = []
        self.class_note = ""

    def run(self, report: Report) -> ModelEvaluation:
        plan, second, counts, scored = self.plan, self.plan.second_plan, RowCounts(), list[UnitScores]()
        broken, total = "", len(self.sample.indices)

        def tell(label: str) -> None:
            check_cancelled()
            report(len(scored), total, label)

        for group in self.sample.groups():
            tell(f"explanations by {self.model}")
            given = [UnreadableExample(one.index, broken) for one in group] if broken else group
            explained = explain_examples(plan, self.model, given)
            broken = broken or ("" if any(one.explanations for one in explained) else self._load_error())
            tell(f"removal on {self.model}")
            measure_removal(plan, self.measurements, explained, counts)
            if second is not None:
                measure_removal(second, self.second_measurements, explained, counts)
            tell(f"small changes on {self.model}")
            measure_sensitivity(plan, self.measurements, explained)
            own = [unit_scores_of(plan, one) for one in explained]
            self._add_facts(explained, own)
            scored += own
        measure_maps(plan, scored, self.measurements)
        withdraw_constant_maps(plan, scored, self.measurements)
        report(total, total, "")
        result = ModelEvaluation(
            self.model,
            plan.dataset,
            tuple(self.measurements.rows),
            tuple(self.measurements.skips),
            tuple(sorted(self.facts, key=lambda one: one.example)),
            self.class_note,
            not any(one.failed for one in scored),
            counts.requested,
            counts.evaluated,
            plan.operator,
        )
        if second is None:
            return result
        withdraw_constant_maps(second, scored, self.second_measurements)
        return result.with_second(second.operator, self.second_measurements.rows, self.second_measurements.skips)

    def _load_error(self) -> str:
        """The error of loading the model, or an empty string if it loads.

        If the model loads, only these examples failed, and others may still succeed.
        """
        plan = self.plan
        try:
            with runtime.turn():
                load_classifier(plan.kind, self.model, plan.dtype, runtime.device())
        except Cancelled:
            raise
        except ExegesisError as error:
            return one_line(error)
        return ""

    def _add_facts(self, explained: Sequence[ExplainedExample], scored: Sequence[UnitScores]) -> None:
        for one, own in zip(explained, scored, strict=True):
            length = len(next(iter(own.scores.values()), ()))
            facts = example_facts(self.model, one, self._true_class(one), length)
            self.facts += [] if facts is None else [facts]

    def _true_class(self, one: ExplainedExample) -> int | None:
        """The index of the model's class that matches the example's label."""
        label = None if one.example is None else one.example.class_index
        if label is None or one.first is None:
            return None
        source = self.sample.source
        classes = match_classes(source.labels, one.first.prediction.labels, source.unnamed)
        self.class_note = classes.note
        return None if classes.indices is None else classes.indices[label]


def units(plan: EvaluationPlan, sample: Sample) -> Units:
    """Work units of one model: one per map, then one per example and operator, then one per sensitivity if requested.

    The removal curves of an example are one unit, because they share passes.
    """
    return Units(_ModelUnits(plan, sample).units())


class _ModelUnits:
    """The work units of one model. Examples are read when needed, because not all pictures fit into memory."""

    def __init__(self, plan: EvaluationPlan, sample: Sample) -> None:
        self.plan, self.sample = plan, sample
        [self.model] = plan.models

    def units(self) -> Iterator[WorkUnit]:
        keys = {index: self._keys(index) for index in self.sample.indices}
        plan, known = self.plan, {id: explainer(id, self.plan.kind) for id in self.plan.methods_with_baselines}
        cost = {id: estimate_rows(method, plan.params_of(id)) for id, method in known.items()}
        for place, id in enumerate(plan.methods_with_baselines):
            own = {of_example[place]: index for index, of_example in keys.items()}
            yield from self._each(own, id, known[id].title, cost[id], partial(self._explain, id))
        judges = (plan, plan.second_plan) if plan.needs("removal") else ()
        for of_plan in (one for one in judges if one is not None):
            own = {_removal_key(of_plan, of_example): index for index, of_example in keys.items()}
            work = partial(self._remove, of_plan, {index: key for key, index in own.items()})
            curves = 2 * len(plan.percents) * len(plan.methods_with_baselines)
            second = "" if of_plan is plan else f" ({of_plan.operator})"
            yield from self._each(own, f"removal{second}", f"Removal by all methods{second}", curves, work)
        if plan.needs("perturbation"):
            for place, id in enumerate(plan.methods_with_baselines):
                own = {_marker("sensitivity", [of[place]], plan.samples): index for index, of in keys.items()}
                title = f"{known[id].title} after small changes"
                work = partial(self._perturb, id, own)
                yield from self._each(own, f"small changes, {id}", title, plan.samples * cost[id], work)

    def _each(
        self, own: Mapping[str, int], what: str, title: str, cost: int, work: Callable[[Sequence[int]], object]
    ) -> Iterator[WorkUnit]:
        """Yield a unit for each example. `own`: index of the example by key."""

        def run_batch(units: Sequence[WorkUnit]) -> object:
            return work([own[unit.key] for unit in units])

        batch: Batch = run_batch
        for place, (key, index) in enumerate(own.items(), 1):
            label = f"{what}, example {index}, {self.model}"
            step = UnitStep(f"{title} on {self.model}", place, len(own), cost)
            yield WorkUnit(key, label, partial(work, [index]), stores_itself=True, batch=batch, step=step)

    def _keys(self, index: int) -> list[str]:
        """Cache keys of the example's explanations, one per method."""
        try:
            one = self.sample.source.read(index)
            return [
                explanation_key(request_for(self.plan, self.model, method, one))
                for method in self.plan.methods_with_baselines
            ]
        except ExegesisError as error:
            named = {"dataset": self.plan.dataset, "index": index}
            return [unreadable_key(method, named, error) for method in self.plan.methods_with_baselines]

    def _read(self, indices: Sequence[int]) -> list[SourceExample]:
        return [self.sample.source.read(index) for index in indices]

    def _explain(self, method: str, indices: Sequence[int]) -> object:
        return explain_many([request_for(self.plan, self.model, method, one) for one in self._read(indices)])

    def _remove(self, plan: EvaluationPlan, keys: Mapping[int, str], indices: Sequence[int]) -> None:
        explained = explain_examples(plan, self.model, self._read(indices))
        compute_removal(plan, self.model, explained)
        for why in (why for one in explained for why in one.failed.values()):
            raise ExegesisError(why)  # so the example is retried once its maps can be computed
        _mark_done([keys[index] for index in indices])

    def _perturb(self, method: str, own: Mapping[str, int], indices: Sequence[int]) -> None:
        requests = [request_for(self.plan, self.model, method, one) for one in self._read(indices)]
        sensitivities(requests, samples=self.plan.samples)
        _mark_done([key for key, index in own.items() if index in set(indices)])


def _removal_key(plan: EvaluationPlan, of_example: Sequence[str]) -> str:
    return _marker("removal", of_example, faithfulness.VERSION, plan.operator, plan.units, list(plan.percents))


def _marker(what: str, of: Sequence[str], *how: object) -> str:
    """Key of the marker that a unit is done. The values themselves are cached separately."""
    return key_for({"kind": "evaluated", "what": what, "of": list(of), "how": list(how)})


def _mark_done(keys: Sequence[str]) -> None:
    for key in keys:
        result_store().put(key, {"done": True}, {})
