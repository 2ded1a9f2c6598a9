"""`evaluate`: methods on a data set by many metrics, on one model or several."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.data.classes import match_classes
from engine.evaluation.judging import judge
from engine.evaluation.maps import Explained, Facts, Maps, explained, facts_of, maps_of
from engine.evaluation.measuring import note_removal, note_sensitivity
from engine.evaluation.notes import Notes
from engine.evaluation.plan import Plan, check
from engine.evaluation.sample import AT_ONCE, Sample, Unread, sample_of, with_metrics
from engine.metrics.results import Row, Score, Skip, scores
from engine.metrics.shared_rows import Tally
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent


@dataclass(frozen=True)
class Evaluation:
    """What was found, an observation a row; `plan` with its metrics filled in.

    `asked`, `run`: model rows that the removal metrics asked for, and that were run for them now.
    """

    plan: Plan
    rows: tuple[Row, ...]
    skips: tuple[Skip, ...]
    facts: tuple[Facts, ...]
    asked: int
    run: int
    said: tuple[str, ...] = ()
    """How the data set's classes are the model's, where that is not plain."""

    @cached_property
    def scores(self) -> list[Score]:
        """A score for each model, method and metric (pair of methods, percent), with its 95 % interval."""
        return scores(self.rows, self.skips, self.plan.seed)

    def slice(self, wanted: Callable[[Facts], bool]) -> Evaluation:
        """The same of some examples only. F1 keeps the share of the whole."""
        kept = {(one.model, one.example) for one in self.facts if wanted(one)}
        return dataclasses.replace(
            self,
            rows=tuple(row for row in self.rows if (row.of.model, row.example) in kept),
            skips=tuple(skip for skip in self.skips if (skip.of.model, skip.example) in kept),
            facts=tuple(one for one in self.facts if (one.model, one.example) in kept),
        )

    def by(self, group: Callable[[Facts], str]) -> dict[str, Evaluation]:
        """Apart for each group of examples, such as a label or a pair of languages, in order."""
        names = sorted({group(one) for one in self.facts})
        return {name: self.slice(lambda one, name=name: group(one) == name) for name in names}  # type: ignore[misc]


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
    """A whole plan: see `evaluate`."""
    check(plan)
    sample = sample_of(plan)
    plan = with_metrics(plan, sample)
    tally, facts, said, notes = Tally(), list[Facts](), dict[str, None](), list[Notes]()
    with cancellable(cancel):
        for place, model in enumerate(plan.models):
            told = _Progress(report, place * len(sample.indices), len(plan.models) * len(sample.indices))
            work = _OneModel(plan, model, sample, tally)
            work.run(told)
            notes.append(work.notes)
            facts += sorted(work.facts, key=lambda one: one.example)
            said[work.said] = None
    report(told.total, told.total, "")
    rows, skips = (tuple(one for of in notes for one in getattr(of, name)) for name in ("rows", "skips"))
    return Evaluation(plan, rows, skips, tuple(facts), tally.asked, tally.run, tuple(filter(None, said)))


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

    def __init__(self, plan: Plan, model: str, sample: Sample, tally: Tally) -> None:
        self.plan, self.model, self.sample, self.tally = plan, model, sample, tally
        self.notes = Notes(model, sample.source.name)
        self.facts: list[Facts] = []
        self.said = ""

    def run(self, progress: _Progress) -> None:
        maps: list[Maps] = []
        broken = ""
        for group in self.sample.groups():
            progress.tell(f"explanations by {self.model}")
            given = [Unread(one.index, broken) for one in group] if broken else group
            made = explained(self.plan, self.model, given)
            broken = broken or _shared_reason(made)
            progress.tell(f"removal on {self.model}")
            note_removal(self.plan, self.notes, made, self.tally)
            progress.tell(f"small changes on {self.model}")
            note_sensitivity(self.plan, self.notes, made)
            here = [maps_of(self.plan, one) for one in made]
            self._remember(made, here)
            maps += here
            progress.done += len(group)
        judge(self.plan, maps, self.notes)

    def _remember(self, made: Sequence[Explained], maps: Sequence[Maps]) -> None:
        for one, own in zip(made, maps, strict=True):
            length = len(next(iter(own.scores.values()), ()))
            found = facts_of(self.model, one, self._true(one), length)
            self.facts += [] if found is None else [found]

    def _true(self, one: Explained) -> int | None:
        """The model's class that the example's label is."""
        known = None if one.candidate is None else one.candidate.known
        if known is None or one.any is None:
            return None
        source = self.sample.source
        classes = match_classes(source.labels, one.any.prediction.labels, source.unnamed)
        self.said = classes.said
        return None if classes.of is None else classes.of[known]


def _shared_reason(made: Sequence[Explained]) -> str:
    """Why none of many examples can be explained, where it is the same for all: then it is not they, but the model."""
    reasons = {why for one in made for why in one.failed.values()}
    alike = len(made) == AT_ONCE and len(reasons) == 1 and not any(one.made for one in made)
    return reasons.pop() if alike else ""
