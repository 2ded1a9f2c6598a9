"""SMaT's claims: the question that is asked, and the students that answer it, taught where they are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from cache.keys import plain
from engine.errors import Cancelled, ExegesisError
from engine.experiments.sample import error_line
from engine.home import product_version
from engine.models import catalog
from engine.progress import Report, silent
from engine.reproduction.claims import SPARSEMAX, Claim, Sizes
from engine.reproduction.experiments import are_correct, label_correlation, predict_examples
from engine.reproduction.papers import AUC, TASKS
from engine.reproduction.query import Evidence, ReproductionQuery
from engine.reproduction.report import ExperimentSummary, ModelSummary
from engine.reproduction.students import StudentFindings, StudentsKey, table_rows
from engine.scaffold import experiment, presets
from engine.scaffold.experiment import load_result, scaffold
from engine.scaffold.plan import (
    ATTENTION,
    NORMALIZATIONS,
    SMAT,
    ScaffoldPlan,
    evaluation_sample,
    is_regression,
    source_of,
    splits_of,
)
from engine.scaffold.plausibility import Plausibility, plausibility
from engine.scaffold.presets import PRESETS, preset_plan
from engine.scaffold.result import ScaffoldResult, coefficients_of

VERSION = 2
"""Raised whenever the numbers of a report change."""
PRESET_OF = {"text": "imdb", "image": "cifar100", "regression": "mlqe"}
"""The published preset of each task."""
MIDDLE = "middle"
SIZE_NAMES = {0: (), 1: (MIDDLE,), 2: ("small", "large"), 3: ("small", MIDDLE, "large")}
"""Names of so many train sizes of a task, the smallest first."""
NO_STUDENT = "no student is finished."


@dataclass(frozen=True)
class SmatQuery(ReproductionQuery):
    """`examples`: on which plausibility is measured. `seed`: of the intervals over examples."""

    job: ClassVar[str] = "reproduce_smat"

    @property
    def topic_id(self) -> str:
        return "smat"

    @cached_property
    def tasks(self) -> Mapping[str, ScaffoldPlan | str]:
        """The plan of each task; in the place of one that cannot be made, why."""
        return {task: self._task(task) for task in TASKS}

    def _task(self, task: str) -> ScaffoldPlan | str:
        try:
            if self.scale == "embedded":
                plan = presets.OPENING_PLANS[task]
                teacher, dataset = (self.places.get(name, name) for name in (plan.teacher, plan.dataset))
                return replace(plan, teacher=teacher, dataset=dataset, base=plan.base and self._place(plan.base))
            one = PRESETS[PRESET_OF[task]]
            plan = preset_plan(
                one.name, self.places.get(one.out), self.places.get(one.name) or self.places.get(one.dataset)
            )
            return replace(plan, base=self._place(one.base))
        except ExegesisError as error:
            return " ".join(str(error).split())

    def _place(self, name: str) -> str:
        return self.places.get(name, name)

    @property
    def sizes(self) -> Sizes:
        """The train sizes of each task by the names that claims give them."""
        # Where a plan cannot be made, claims are still listed, with the sizes that they were declared for.
        usual = dict.fromkeys(SIZE_NAMES[3], 0)
        return {
            task: usual if isinstance(plan, str) else named_sizes(plan.train_sizes) for task, plan in self.tasks.items()
        }

    @property
    def selected_claims(self) -> tuple[Claim, ...]:
        return self.declaration.select(self.claims, self.sizes)

    @property
    def keys(self) -> tuple[StudentsKey, ...]:
        """The tasks and normalizations that the selected claims are about."""
        needed = {key for claim in self.selected_claims for key in student_keys(claim)}
        order = {one: place for place, one in enumerate(NORMALIZATIONS)}
        return tuple(sorted(needed, key=lambda key: (list(TASKS).index(key[0]), order[key[1]])))

    def plan(self, key: StudentsKey) -> ScaffoldPlan | str:
        """The plan of all students that are looked at, or why there is none.

        Of another normalization than sparsemax: attention alone and the middle train size, as in table 7. Baselines are
        those of sparsemax: they use none.
        """
        task, normalization = key
        plan = self.tasks[task]
        if isinstance(plan, str) or normalization == SPARSEMAX:
            return plan
        middle = named_sizes(plan.train_sizes).get(MIDDLE, max(plan.train_sizes))
        recipe = replace(plan.recipe, normalisation=normalization)
        return replace(plan, settings=(*ATTENTION, SMAT), train_sizes=(middle,), recipe=recipe)

    def training_plan(self, key: StudentsKey) -> ScaffoldPlan | str:
        """The same with no more seeds than are declared, which are taught where they are missing."""
        plan = self.plan(key)
        if isinstance(plan, str) or key[1] == SPARSEMAX:
            return plan
        return replace(plan, seeds=plan.seeds[: self.declaration.seeds["normalisations"]])

    def collect(self, report: Report = silent, compute: bool = True) -> Evidence:
        """What explainers mark is measured in any case, where it is not in the store."""
        trained = {key: self._train(key, report) for key in self.keys} if compute else {}
        students = {key: self._students(key, trained.get(key)) for key in self.keys}
        marked = dict.fromkeys(
            term.task for claim in self.selected_claims for term in claim.terms if term.metric == AUC
        )
        plausible = {task: self._plausibility(task, students[task, SPARSEMAX]) for task in marked}
        findings = StudentFindings(students, plausible, self.sizes, self.declaration.seeds["least"])
        models = tuple(self._model(task) for task, normalization in self.keys if normalization == SPARSEMAX)
        summaries = tuple(_summary(key, one) for key, one in students.items())
        return Evidence(findings, models, summaries, table_rows(findings))

    def _train(self, key: StudentsKey, report: Report) -> ScaffoldResult | str:
        """Teach the students that are not finished; or why that failed."""
        plan = self.training_plan(key)
        if isinstance(plan, str):
            return plan
        try:
            return scaffold(plan, report)
        except Cancelled:
            raise
        except ExegesisError as error:
            return error_line(error)

    def _students(self, key: StudentsKey, trained: ScaffoldResult | str | None) -> ScaffoldResult | str:
        """All that are finished, with why others failed; where nothing could be taught and nothing is finished, why."""
        plan, training = self.plan(key), self.training_plan(key)
        if isinstance(plan, str) or isinstance(training, str):
            return str(plan)
        try:
            result = load_result(plan)
        except ExegesisError as error:
            return error_line(error)
        if isinstance(trained, str) and not result.students:
            return trained
        failed = trained.failed if isinstance(trained, ScaffoldResult) else {}
        return replace(_with_seeds(result, training.seeds), failed=failed)

    def _plausibility(self, task: str, result: ScaffoldResult | str) -> Plausibility | str:
        """Of the explainer of the median student at the middle train size, as in the paper."""
        if isinstance(result, str) or not result.students:
            return result if isinstance(result, str) else NO_STUDENT
        size = self.sizes[task].get(MIDDLE, max(result.plan.train_sizes))
        try:
            learned = coefficients_of(result.plan, result.median_student(size))
            return plausibility(evaluation_sample(result.plan, self.count), learned)
        except Cancelled:
            raise
        except ExegesisError as error:
            return error_line(error)

    def _model(self, task: str) -> ModelSummary:
        plan = self.tasks[task]
        if isinstance(plan, str):
            return ModelSummary(f"teacher of {TASKS[task]}", "", plan, None, 0)
        try:
            return teacher_summary(plan)
        except ExegesisError as error:
            return ModelSummary(plan.teacher, plan.dataset, error_line(error), None, 0)

    def key_parts(self) -> dict[str, Any]:
        """Reads no data set: pages ask it."""
        plans = [self.plan(key) for key in self.keys]
        return {
            "kind": "reproduction of smat",
            "version": [VERSION, experiment.VERSION, product_version()],
            "plans": [plan if isinstance(plan, str) else plain(plan.as_plain()) for plan in plans],
            "teachers": [_teacher_revision(plan) for plan in plans],
        }

    def models_of_claims(self, models: Sequence[ModelSummary]) -> dict[str, list[ModelSummary]]:
        teachers = {one.name: one for one in models}
        names = {task: plan.teacher for task, plan in self.tasks.items() if isinstance(plan, ScaffoldPlan)}
        return {
            claim.id: [teachers[names[task]] for task in claim.tasks if names.get(task) in teachers]
            for claim in self.selected_claims
        }


def named_sizes(train_sizes: Sequence[int]) -> dict[str, int]:
    """The train sizes of a plan by what claims call them; of more than three the smallest, middle and largest."""
    ordered = sorted(train_sizes)
    if len(ordered) > 3:
        ordered = [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    return dict(zip(SIZE_NAMES[len(ordered)], ordered, strict=True))


def student_keys(claim: Claim) -> tuple[StudentsKey, ...]:
    """The tasks and normalizations that a claim is about."""
    return tuple(dict.fromkeys((term.task, term.normalization) for term in claim.terms))


def teacher_summary(plan: ScaffoldPlan) -> ModelSummary:
    """The teacher, with how often it is right on the examples on which students are tested.

    Errors: those of the teacher and of the data set.
    """
    source = source_of(plan)
    pairs = predict_examples(plan.teacher, source, splits_of(source.count, plan).test)
    summary = ModelSummary(plan.teacher, plan.dataset, "", None, 0, catalog.revision(plan.teacher))
    if is_regression(plan.teacher):
        r, n = label_correlation(pairs) or (None, 0)
        return replace(summary, correlation=r, n=n)
    correct = [one for one in are_correct(pairs, source) if one is not None]
    accuracy = sum(correct) / len(correct) if correct else None
    return replace(summary, accuracy=accuracy, n=len(correct), classes=len(source.labels))


def _with_seeds(result: ScaffoldResult, seeds: tuple[int, ...]) -> ScaffoldResult:
    """The students of the seeds that are taught, and of any other of which all students are finished."""
    a_seed = len(result.plan.students) // len(result.plan.seeds)
    counts = {seed: sum(one.run.seed == seed for one in result.students) for seed in result.plan.seeds}
    used = tuple(seed for seed, count in counts.items() if count == a_seed or seed in seeds)
    outcomes = tuple(one for one in result.students if one.run.seed in used)
    return replace(result, plan=replace(result.plan, seeds=used), students=outcomes)


def _teacher_revision(plan: ScaffoldPlan | str) -> str:
    """A hash of the teacher, or why there is none."""
    if isinstance(plan, str):
        return plan
    try:
        return catalog.revision(plan.teacher)
    except ExegesisError as error:
        return error_line(error)


def _summary(key: StudentsKey, result: ScaffoldResult | str) -> ExperimentSummary:
    name = ", ".join(key)
    if isinstance(result, str):
        return ExperimentSummary(name, {}, result, 0, "scaffold")
    missing = len(result.plan.students) - len(result.students)
    return ExperimentSummary(name, result.plan.as_plain(), "", missing, "scaffold")
