"""`attack_examples`: methods attacked on a data set, by each objective, on one model or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from engine.attacks import transfer
from engine.attacks.attack import AttackRequest, attack_many
from engine.attacks.findings import METRICS, TRANSFERRED, ZERO, AttackOutcome, Findings, Of, Row, Skip, values_of
from engine.attacks.keeping import complete, finished, keep
from engine.attacks.notes import notes_of_many, reach_of_many
from engine.attacks.plan import AttackPlan, check
from engine.attacks.result import Attacked
from engine.data.labels import match_classes
from engine.data.sources import SourceExample, load_source
from engine.errors import ExegesisError, not_allowed
from engine.evaluation.maps import surviving
from engine.evaluation.result import Facts
from engine.evaluation.sample import Sample, Unread, reason, sample_of
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.result import Prediction


def attack_examples(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str],
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> Findings:
    """Every method attacked on every model by every objective, on examples that the seed draws.

    `more`: other fields of `AttackPlan`. Each attack is kept as it ends, so that stopped work goes on where it was.
    An example that fails is skipped with the reason. Errors: those of the plan, and of reading the data set.
    """
    return carry_out(AttackPlan(tuple(models), dataset, tuple(methods), **more), report, cancel)  # type: ignore[arg-type]


def carry_out(plan: AttackPlan, report: Report = silent, cancel: CancelToken | None = None) -> Findings:
    """A whole plan: see `attack_examples`."""
    check(plan)
    sample = sample_of(plan.sampled)
    there = finished(plan, sample)
    if there is not None and complete(there):
        return there
    with cancellable(cancel):
        work = of_some(plan, sample, report)
    report(work.total, work.total, "")
    keep(found := _gathered(work), sample)
    return found


def attack_example(
    plan: AttackPlan, index: int, report: Report = silent, cancel: CancelToken | None = None
) -> Findings:
    """The plan on the one example at that place in the data set, none drawn. Its attacks are kept, not the whole."""
    check(plan)
    source = load_source(plan.kind, plan.dataset, plan.split, tolerant=True)
    if not 0 <= index < source.count:
        raise not_allowed("index", f"a place in {source.name}, from 0 to {source.count - 1:,}", index)
    with cancellable(cancel):
        return _gathered(of_some(plan, Sample(source, (index,)), report))


def of_some(plan: AttackPlan, sample: Sample, report: Report = silent) -> Work:
    """What is found on these examples, with each attack kept."""
    work = Work(plan, sample, report)
    for model in plan.models:
        for group in sample.groups():
            work.model(model, group)
    return work


def _gathered(work: Work) -> Findings:
    plan = work.plan
    facts = tuple(work.facts[key] for key in sorted(work.facts, key=lambda key: (plan.models.index(key[0]), key[1])))
    reach = reach_of_many(work.outcomes, plan.chosen(plan.objectives[0]))
    said = (*dict.fromkeys(work.said), *reach, *notes_of_many(work.notes), *_wrong(facts))
    return Findings(plan, tuple(work.rows), tuple(work.skips), facts, said, tuple(work.outcomes))


def _wrong(facts: Sequence[Facts]) -> Iterator[str]:
    for model in dict.fromkeys(one.model for one in facts):
        own = [one for one in facts if one.model == model]
        if count := sum(one.right is False for one in own):
            yield (
                f"{model} is wrong about {count} of {len(own)} examples before any attack: there the class that is "
                "kept is the predicted, wrong one."
            )


@dataclass(eq=False)
class Work:
    """What is found so far. `notes`: which attack has one, and the note."""

    plan: AttackPlan
    sample: Sample
    report: Report
    rows: list[Row] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    facts: dict[tuple[str, int], Facts] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    outcomes: list[AttackOutcome] = field(default_factory=list)
    done: int = 0

    @property
    def total(self) -> int:
        """Attacks in all."""
        return len(self.plan.models) * len(self.sample.indices) * sum(1 for _ in self.plan.pairs)

    def model(self, model: str, group: Sequence[SourceExample | Unread]) -> None:
        """All attacks on some examples of one model."""
        for objective, method in self.plan.pairs:
            for one in group:
                if isinstance(one, Unread):
                    self._skip_all(model, objective, method, one.index, one.why)
            readable = [one for one in group if isinstance(one, SourceExample)]
            self._attack(model, objective, method, readable)
            self.done += len(group)

    def _attack(self, model: str, objective: str, method: str, group: Sequence[SourceExample]) -> None:
        check_cancelled()
        requests = [self.plan.request(model, objective, method, one) for one in group]
        tell = self._step(f"attack on {method}, {objective}, {model}", len(group))
        made = surviving(partial(attack_many, report=tell), requests)
        for one, request, found in zip(group, requests, made, strict=True):
            if isinstance(found, ExegesisError):
                self._skip_all(model, objective, method, one.index, reason(found))
                continue
            self._note(Of(model, self.plan.dataset, method, "", objective, method), one.index, values_of(found))
            self._remember(model, one, found)
            self.outcomes.append(
                AttackOutcome(model, objective, method, one.index, found.outcome, found.class_kept,
                              found.constraint_kept, found.start, found.relative_epsilon)
            )  # fmt: skip
            self.notes += [(f"{method}, {objective}, {model}, example {one.index}", note) for note in found.notes]
            for other in self.plan.others(method):
                self._transfer(Of(model, self.plan.dataset, other, "", objective, method), one.index, request, found)

    def _step(self, what: str, size: int) -> Report:
        """The steps of the attacks that run now, as a part of all."""

        def tell(step: int, steps: int, unit: str) -> None:
            if unit == "step":  # else it is the map before, which takes no time beside them
                self.report(self.done + size * step // steps, self.total, f"{what}: step {step:,} of {steps:,}")

        return tell

    def _transfer(self, of: Of, example: int, request: AttackRequest, found: Attacked) -> None:
        check_cancelled()
        self.report(self.done, self.total, f"{of.method} on what fooled {of.attacked}, {of.model}")
        params = self.plan.params_of(of.method)
        (made,) = surviving(lambda _: [transfer.transferred(request, found, of.method, params)], [None])
        if isinstance(made, ExegesisError):
            self._skip(of, TRANSFERRED, example, reason(made))
        else:
            self._note(of, example, values_of(made))

    def _note(self, of: Of, example: int, values: Mapping[str, float | None]) -> None:
        for metric, value in values.items():
            own = _by(of, metric)
            if value is None:
                self.skips.append(Skip(own, example, ZERO))
            else:
                self.rows.append(Row(own, example, value))

    def _skip_all(self, model: str, objective: str, method: str, example: int, why: str) -> None:
        self._skip(Of(model, self.plan.dataset, method, "", objective, method), tuple(METRICS), example, why)
        for other in self.plan.others(method):
            self._skip(Of(model, self.plan.dataset, other, "", objective, method), TRANSFERRED, example, why)

    def _skip(self, of: Of, metrics: Sequence[str], example: int, why: str) -> None:
        self.skips += [Skip(_by(of, metric), example, why) for metric in metrics]

    def _remember(self, model: str, one: SourceExample, found: Attacked) -> None:
        said = found.prediction
        self.facts[model, one.index] = Facts(
            model=model,
            example=one.index,
            label=one.label,
            predicted=said.label,
            confidence=max(said.probabilities),
            right=self._right(one, said),
            length=len(found.features),
        )

    def _right(self, one: SourceExample, said: Prediction) -> bool | None:
        """Whether the model is right about it; None where that cannot be told."""
        source = self.sample.source
        if one.class_index is None or said.regression:
            return None
        classes = match_classes(source.labels, said.labels, source.unnamed)
        self.said += [classes.note] if classes.note else []
        true = None if classes.indices is None else classes.indices[one.class_index]
        return None if true is None else said.index == true


def _by(of: Of, metric: str) -> Of:
    return Of(of.model, of.dataset, of.method, metric, of.objective, of.attacked)
