"""Run the experiment `attack`: sample, work units and result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cache import key_for
from engine import runtime
from engine.attacks.attack import (
    EXAMPLES_AT_ONCE,
    TRANSFER_VERSION,
    attack,
    attack_key,
    attack_many,
    check_request,
    measure_transfer,
    transfer_key,
)
from engine.attacks.attack import VERSION as ATTACK_VERSION
from engine.attacks.experiment_result import (
    COLUMNS,
    METRICS,
    TRANSFERRED,
    ZERO,
    AttackExperimentResult,
    AttackMetricKey,
    AttackOutcome,
    AttackRow,
    AttackSkip,
    epsilon_notes,
    metric_values,
    pack,
    summarize_notes,
    to_json,
    unpack,
)
from engine.attacks.plan import AttackPlan, AttackRequest
from engine.attacks.result import AttackResult
from engine.data.labels import match_classes
from engine.data.sources import SourceExample, load_source
from engine.errors import ExegesisError, UsageError, not_allowed, one_line
from engine.evaluation.result import ExampleFacts
from engine.experiments.base import Units
from engine.experiments.run import carry_out
from engine.experiments.run import check as check_plan
from engine.experiments.sample import Sample, UnreadableExample, bisect_failures, draw_sample
from engine.explain import method_key, versions_of
from engine.jobs.kinds import UnitStep, WorkUnit, unreadable_key
from engine.models import catalog
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.registry import explainer
from engine.result import Prediction

__all__ = [
    "COLUMNS", "VERSIONS", "ModelResult", "Result", "assemble", "attack_example", "attack_examples", "check", "narrow",
    "pack", "result_key", "rows", "sample", "to_json", "units", "unpack",
]  # fmt: skip

VERSIONS = [2, ATTACK_VERSION, TRANSFER_VERSION]
"""Increase the first whenever the recorded facts of an attack change."""
ModelResult = Result = AttackExperimentResult


def attack_examples(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str],
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> AttackExperimentResult:
    """Attack every method on every model with every objective, on a random sample of examples.

    `more`: other fields of `AttackPlan`. Each attack is cached when it ends, so a stopped run can be continued.
    Examples that fail are skipped with a reason. Errors: an invalid plan, a data set that cannot be read.
    """
    plan = AttackPlan(tuple(models), dataset, tuple(methods), **more)  # type: ignore[arg-type]
    result: AttackExperimentResult = carry_out(plan, report, cancel)
    return result


def attack_example(
    plan: AttackPlan, index: int, report: Report = silent, cancel: CancelToken | None = None
) -> AttackExperimentResult:
    """Run the plan on one example of the data set. The attacks are cached, their summary is not."""
    check_plan(plan)
    source = load_source(plan.kind, plan.dataset, plan.split, tolerant=True)
    if not 0 <= index < source.count:
        raise not_allowed("index", f"an index of {source.name}, from 0 to {source.count - 1:,}", index)
    with cancellable(cancel):
        return _Assembly(plan, Sample(source, (index,)), report).run()


def check(plan: AttackPlan) -> None:
    """Refuse a plan that cannot be run."""
    if "objective" in plan.attack:
        raise UsageError("attack: must not contain objective. Set objectives instead.")
    for method in plan.transfer:
        known = explainer(method, plan.kind)
        for model in plan.models:
            known.resolve(plan.params_of(method), model)
    for objective, method in plan.pairs:
        check_request(method, plan.kind, {**plan.attack, "objective": objective}, plan.params_of(method))


def sample(plan: AttackPlan) -> Sample:
    """The sample of examples, the same as an evaluation with this seed. Errors: a data set that cannot be read."""
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def result_key(plan: AttackPlan, sample: Sample) -> str:
    """Cache key of the result. Reads the models' files without loading them."""
    source = sample.source
    return key_for(
        {
            "kind": "attacks",
            "version": VERSIONS,
            "plan": plan.as_plain(),
            "models": [catalog.revision(model) for model in plan.models],
            "data": [source.name, source.revision, source.count],
            "methods": [_method_key(plan, method) for method in plan.measured_methods],
            "device": runtime.device_type(),
        }
    )


def _method_key(plan: AttackPlan, method: str) -> list[object]:
    known = explainer(method, plan.kind)
    if known.resolver is None:
        return [*versions_of(known)]
    return [method_key(known, plan.params_of(method), model) for model in plan.models]


def units(plan: AttackPlan, sample: Sample) -> Units:
    """Work units by model, objective and method: one per attacked example, then one per example and transfer method.

    Examples that run as one batch form a group, for one worker.
    """
    return Units(
        unit
        for model in plan.models
        for objective, method in plan.pairs
        for unit in _MethodUnits(plan, sample, model, objective, method).units()
    )


def narrow(plan: AttackPlan, sample: Sample, group: Sequence[Any]) -> tuple[AttackPlan, Sample]:
    """Restrict the plan to one model, objective and method, and to some examples."""
    model, objective, method, indices = group
    alone = replace(plan, models=(model,), objectives=(objective,), methods=(method,))
    return alone, Sample(sample.source, tuple(indices))


def assemble(plan: AttackPlan, sample: Sample, report: Report) -> AttackExperimentResult:
    """Collect all attacks and transfers, computing those that are not cached."""
    assembly = _Assembly(plan, sample, report)
    result = assembly.run()
    report(assembly.total, assembly.total, "")
    return result


def rows(result: AttackExperimentResult) -> Iterator[dict[str, str | int | float | None]]:
    """One row per observation, with the outcome of its attack."""
    return result.tidy_rows()


@dataclass(frozen=True)
class _MethodUnits:
    """The work units of one method and objective. Examples are read when needed."""

    plan: AttackPlan
    sample: Sample
    model: str
    objective: str
    method: str

    def units(self) -> Iterator[WorkUnit]:
        plan, model, indices = self.plan, self.model, self.sample.indices
        keys = {index: self._key(index) for index in indices}
        places = {key: index for index, key in keys.items()}
        starts = range(0, len(indices), EXAMPLES_AT_ONCE)
        batches = [list(indices[at : at + EXAMPLES_AT_ONCE]) for at in starts]
        groups = {index: [model, self.objective, self.method, batch] for batch in batches for index in batch}
        steps = plan.attack_params(self.objective).steps  # the maximum: an attack that no longer moves ends sooner
        what = f"{self.method}, {self.objective}"

        def attack_together(units: Sequence[WorkUnit]) -> None:
            self._attack([places[unit.key] for unit in units])

        for place, (index, key) in enumerate(keys.items(), 1):
            step = UnitStep(f"Attack on {what}, {model}", place, len(keys), steps, "steps")
            yield WorkUnit(
                key, f"attack on {what}, example {index}, {model}", partial(self._attack, [index]), stores_itself=True,
                batch=attack_together, step=step, group=groups[index],
            )  # fmt: skip
        for other in plan.transfer_methods(self.method):
            for index in indices:
                yield WorkUnit(
                    self._key(index, other), f"{other} on what fooled {what}, example {index}, {model}",
                    partial(self._transfer, index, other), stores_itself=True, group=groups[index],
                )  # fmt: skip

    def _key(self, index: int, other: str = "") -> str:
        try:
            request = self._request(index)
            return transfer_key(request, other, self.plan.params_of(other)) if other else attack_key(request)
        except ExegesisError as error:
            example = {"dataset": self.plan.dataset, "index": index}
            return unreadable_key(f"{other or self.method}, {self.objective}", example, error)

    def _request(self, index: int) -> AttackRequest:
        return self.plan.request(self.model, self.objective, self.method, self.sample.source.read(index))

    def _attack(self, indices: Sequence[int]) -> None:
        attack_many([self._request(index) for index in indices])

    def _transfer(self, index: int, other: str) -> None:
        request = self._request(index)
        measure_transfer(request, attack(request), other, self.plan.params_of(other))


@dataclass(eq=False)
class _Assembly:
    """Builds the result. `notes`: pairs of attack name and note."""

    plan: AttackPlan
    sample: Sample
    report: Report
    rows: list[AttackRow] = field(default_factory=list)
    skips: list[AttackSkip] = field(default_factory=list)
    facts: dict[tuple[str, int], ExampleFacts] = field(default_factory=dict)
    class_notes: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    outcomes: list[AttackOutcome] = field(default_factory=list)
    done: int = 0

    @property
    def total(self) -> int:
        """Total number of attacks."""
        return len(self.plan.models) * len(self.sample.indices) * sum(1 for _ in self.plan.pairs)

    def run(self) -> AttackExperimentResult:
        """Collect all attacks, computing those that are not cached."""
        plan = self.plan
        for model in plan.models:
            for group in self.sample.groups():
                self._attack_group(model, group)
        facts = tuple(self.facts[at] for at in sorted(self.facts, key=lambda at: (plan.models.index(at[0]), at[1])))
        epsilon = epsilon_notes(self.outcomes, plan.attack_params(plan.objectives[0]))
        notes = (*dict.fromkeys(self.class_notes), *epsilon, *summarize_notes(self.notes), *_wrong_predictions(facts))
        return AttackExperimentResult(plan, tuple(self.rows), tuple(self.skips), facts, notes, tuple(self.outcomes))

    def _attack_group(self, model: str, group: Sequence[SourceExample | UnreadableExample]) -> None:
        """Run all attacks on some examples of one model."""
        for objective, method in self.plan.pairs:
            for one in group:
                if isinstance(one, UnreadableExample):
                    self._skip_all(model, objective, method, one.index, one.why)
            self._attack(model, objective, method, [one for one in group if isinstance(one, SourceExample)])
            self.done += len(group)

    def _attack(self, model: str, objective: str, method: str, group: Sequence[SourceExample]) -> None:
        check_cancelled()
        requests = [self.plan.request(model, objective, method, one) for one in group]
        report = self._step_report(f"attack on {method}, {objective}, {model}", len(group))
        results = bisect_failures(partial(attack_many, report=report), requests)
        for one, request, result in zip(group, requests, results, strict=True):
            if isinstance(result, ExegesisError):
                self._skip_all(model, objective, method, one.index, one_line(result))
                continue
            self._add(self._metric_key(model, objective, method, method), one.index, metric_values(result))
            self._add_facts(model, one, result)
            self.outcomes.append(
                AttackOutcome(model, objective, method, one.index, result.outcome, result.class_kept,
                              result.constraint_kept, result.start, result.relative_epsilon)
            )  # fmt: skip
            self.notes += [(f"{method}, {objective}, {model}, example {one.index}", note) for note in result.notes]
            for other in self.plan.transfer_methods(method):
                self._transfer(self._metric_key(model, objective, method, other), one.index, request, result)

    def _metric_key(self, model: str, objective: str, attacked: str, method: str) -> AttackMetricKey:
        """The key, still without a metric."""
        return AttackMetricKey(model, self.plan.dataset, method, "", objective, attacked)

    def _step_report(self, what: str, size: int) -> Report:
        """Progress of the running attacks as a share of all."""

        def report(step: int, steps: int, unit: str) -> None:
            if unit == "step":  # not for the map before the attack, which takes little time
                self.report(self.done + size * step // steps, self.total, f"{what}: step {step:,} of {steps:,}")

        return report

    def _transfer(self, key: AttackMetricKey, example: int, request: AttackRequest, attacked: AttackResult) -> None:
        check_cancelled()
        self.report(self.done, self.total, f"{key.method} after attacks on {key.attacked}, {key.model}")
        params = self.plan.params_of(key.method)
        (result,) = bisect_failures(lambda _: [measure_transfer(request, attacked, key.method, params)], [None])
        if isinstance(result, ExegesisError):
            self._skip(key, TRANSFERRED, example, one_line(result))
        else:
            self._add(key, example, metric_values(result))

    def _add(self, key: AttackMetricKey, example: int, values: Mapping[str, float | None]) -> None:
        for metric, value in values.items():
            own = replace(key, metric=metric)
            if value is None:
                self.skips.append(AttackSkip(own, example, ZERO))
            else:
                self.rows.append(AttackRow(own, example, value))

    def _skip_all(self, model: str, objective: str, method: str, example: int, why: str) -> None:
        self._skip(self._metric_key(model, objective, method, method), tuple(METRICS), example, why)
        for other in self.plan.transfer_methods(method):
            self._skip(self._metric_key(model, objective, method, other), TRANSFERRED, example, why)

    def _skip(self, key: AttackMetricKey, metrics: Sequence[str], example: int, why: str) -> None:
        self.skips += [AttackSkip(replace(key, metric=metric), example, why) for metric in metrics]

    def _add_facts(self, model: str, one: SourceExample, result: AttackResult) -> None:
        prediction = result.prediction
        self.facts[model, one.index] = ExampleFacts(
            model=model,
            example=one.index,
            label=one.label,
            predicted=prediction.label,
            confidence=prediction.confidence,
            right=self._is_right(one, prediction),
            length=len(result.features),
        )

    def _is_right(self, one: SourceExample, prediction: Prediction) -> bool | None:
        """Whether the prediction is right; None if unknown."""
        source = self.sample.source
        if one.class_index is None or prediction.regression:
            return None
        classes = match_classes(source.labels, prediction.labels, source.unnamed)
        self.class_notes += [classes.note] if classes.note else []
        true = None if classes.indices is None else classes.indices[one.class_index]
        return None if true is None else prediction.index == true


def _wrong_predictions(facts: Sequence[ExampleFacts]) -> Iterator[str]:
    for model in dict.fromkeys(one.model for one in facts):
        own = [one for one in facts if one.model == model]
        if count := sum(one.right is False for one in own):
            yield (
                f"{model} is wrong on {count} of {len(own)} examples before any attack. There, attacks keep the wrong "
                "class."
            )
