"""`evaluate`: methods on a data set by many metrics, on one model or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine import runtime
from engine.data.labels import match_classes
from engine.errors import Cancelled, ExegesisError
from engine.evaluation.judging import judge, withdraw_orders
from engine.evaluation.keeping import keep, kept
from engine.evaluation.maps import Explained, Maps, explained, facts_of, maps_of
from engine.evaluation.measuring import note_removal, note_sensitivity
from engine.evaluation.notes import Notes
from engine.evaluation.plan import Plan, check
from engine.evaluation.result import Evaluation, Facts, OfModel, joined
from engine.evaluation.sample import Sample, Unread, reason, sample_of, with_metrics
from engine.input_kinds import load_classifier
from engine.metrics.faithfulness import RowCounts
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent


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
    """Every method on every model by every metric, on examples that the seed draws; `more`: other fields of `Plan`.

    Methods get company: an ensemble's members and `random`. Maps, removal curves and sensitivities are kept one by
    one, so that work which was stopped goes on where it was, and another method or metric costs only itself. An example
    that fails is skipped with the reason. Errors: those of the plan, and of a data set that cannot be read.
    """
    given: dict[str, object] = {} if examples is None else {"examples": examples}
    plan = Plan(tuple(models), dataset, tuple(methods), tuple(metrics), seed=seed, **given, **more)  # type: ignore[arg-type]
    return carry_out(plan, report, cancel)


def carry_out(plan: Plan, report: Report = silent, cancel: CancelToken | None = None) -> Evaluation:
    """A whole plan: see `evaluate`. What was found on a model is kept as a whole too, so that it opens at once."""
    check(plan)
    sample = sample_of(plan)
    plan = with_metrics(plan, sample)
    tally, found, each = RowCounts(), list[OfModel](), len(sample.indices)
    with cancellable(cancel):
        for place, model in enumerate(plan.models):
            progress = _Progress(report, place * each, len(plan.models) * each)
            found.append(kept(plan, model, sample) or _worked_out(plan, model, sample, tally, progress))
    report(len(plan.models) * each, len(plan.models) * each, "")
    return joined(plan, found, tally.requested, tally.evaluated)


def of_some(plan: Plan, model: str, sample: Sample) -> OfModel:
    """What is found on these examples alone, with all its parts kept one by one. `plan`: with its metrics."""
    return _OneModel(plan, model, sample, RowCounts()).run(_Progress(silent, 0, len(sample.indices)))


def _worked_out(plan: Plan, model: str, sample: Sample, tally: RowCounts, progress: _Progress) -> OfModel:
    found = _OneModel(plan, model, sample, tally).run(progress)
    keep(plan, model, sample, found)
    return found


@dataclass
class _Progress:
    report: Report
    done: int
    total: int

    def tell(self, label: str) -> None:
        check_cancelled()
        self.report(self.done, self.total, label)


class _OneModel:
    """The work on one model: its examples a few at a time."""

    def __init__(self, plan: Plan, model: str, sample: Sample, tally: RowCounts) -> None:
        self.plan, self.model, self.sample, self.tally = plan, model, sample, tally
        self.notes = Notes(model, sample.source.name)
        self.facts: list[Facts] = []
        self.said = ""

    def run(self, progress: _Progress) -> OfModel:
        maps: list[Maps] = []
        broken = ""
        for group in self.sample.groups():
            progress.tell(f"explanations by {self.model}")
            given = [Unread(one.index, broken) for one in group] if broken else group
            made = explained(self.plan, self.model, given)
            broken = broken or ("" if any(one.made for one in made) else self._not_loaded())
            progress.tell(f"removal on {self.model}")
            note_removal(self.plan, self.notes, made, self.tally)
            progress.tell(f"small changes on {self.model}")
            note_sensitivity(self.plan, self.notes, made)
            here = [maps_of(self.plan, one) for one in made]
            self._remember(made, here)
            maps += here
            progress.done += len(group)
        judge(self.plan, maps, self.notes)
        withdraw_orders(self.plan, maps, self.notes)
        facts = tuple(sorted(self.facts, key=lambda one: one.example))
        complete = not any(one.failed for one in maps)
        return OfModel(tuple(self.notes.rows), tuple(self.notes.skips), facts, self.said, complete)

    def _not_loaded(self) -> str:
        """Why the model itself fails, nothing where it loads: then it is the examples, and others may do better."""
        plan = self.plan
        try:
            with runtime.turn():
                load_classifier(plan.kind, self.model, plan.dtype, runtime.device())
        except Cancelled:
            raise
        except ExegesisError as error:
            return reason(error)
        return ""

    def _remember(self, made: Sequence[Explained], maps: Sequence[Maps]) -> None:
        for one, own in zip(made, maps, strict=True):
            length = len(next(iter(own.scores.values()), ()))
            found = facts_of(self.model, one, self._true(one), length)
            self.facts += [] if found is None else [found]

    def _true(self, one: Explained) -> int | None:
        """The model's class that the example's label is."""
        known = None if one.candidate is None else one.candidate.class_index
        if known is None or one.any is None:
            return None
        source = self.sample.source
        classes = match_classes(source.labels, one.any.prediction.labels, source.unnamed)
        self.said = classes.note
        return None if classes.indices is None else classes.indices[known]
