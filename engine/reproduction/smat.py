"""Reproduction of SMaT's claims: the query, the students that it trains, their numbers, and the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from cache.codec import plain
from engine.data.sources import load_source
from engine.errors import Cancelled, ExegesisError, one_line
from engine.home import product_version
from engine.metrics.results import Interval
from engine.models import catalog
from engine.progress import Report, silent
from engine.reproduction.claims import (
    SPARSEMAX,
    Claim,
    Contrast,
    Evidence,
    NoNumber,
    ReproductionQuery,
    Sizes,
    StudentTerm,
    interval_number,
)
from engine.reproduction.estimates import seed_interval, widened_interval, with_room
from engine.reproduction.experiments import are_correct, label_correlation, predict_examples
from engine.reproduction.papers import (
    ACTIVE,
    AUC,
    DEPTH,
    PAPERS,
    SIMULABILITY,
    TASKS,
    setting_name,
    size_name,
    topics_at,
)
from engine.reproduction.report import (
    CEILING_WIDTH,
    ERROR_RATE,
    ClaimNumber,
    ExperimentSummary,
    Margin,
    ModelSummary,
    TableRow,
    detectable_effect,
)
from engine.reproduction.thesis import FOLDER, PlannedFineTuning, availability, fine_tune
from engine.scaffold import experiment, presets
from engine.scaffold.experiment import load_result, scaffold
from engine.scaffold.explainer_checks import HEAD, LAYER, Plausibility, plausibility
from engine.scaffold.plan import (
    ATTENTION,
    NONE,
    NORMALIZATIONS,
    SMAT,
    ScaffoldPlan,
    evaluation_sample,
    is_regression,
    source_of,
    splits_of,
)
from engine.scaffold.presets import PAIRS, PRESETS, preset_plan
from engine.scaffold.result import ScaffoldResult, SimulabilityCell, StudentResult, coefficients_of

VERSION = 3
"""Version of the numbers of a report; raised whenever they change."""
PRESET_OF = {"text": "imdb", "image": "cifar100", "regression": "mlqe"}
"""The paper's preset for each task."""
TEACHERS = {pair: f"bert-{pair}" for pair in PAIRS.split("+")}
"""Names of the teachers of language pairs at the data scale, including those without students."""
TEACHER_BASE = "bases/bert"
TEACHER_TRAINING = (("epochs", 5), ("batch_size", 32), ("learning_rate", 1e-3), ("held_out", 200), ("max_length", 128))
"""Options of `exegesis train` for these teachers, chosen on held-out training rows."""
UNSEEN = "validation"
"""The split of MLQE-PE that no teacher was trained on."""
MIDDLE = "middle"
SIZE_NAMES = {0: (), 1: (MIDDLE,), 2: ("small", "large"), 3: ("small", MIDDLE, "large")}
"""Names of a task's train sizes by their number, the smallest first."""
NO_STUDENT = "no student is finished."


@dataclass(frozen=True)
class SmatQuery(ReproductionQuery):
    """A query for SMaT's claims. `examples`: number of examples for plausibility. `seed`: seed of its intervals.

    `folder`: where teachers are fine-tuned.
    """

    folder: str = FOLDER

    job: ClassVar[str] = "reproduce_smat"

    @property
    def topic_id(self) -> str:
        return next(iter(topics_at("smat", self.scale)), PAPERS["smat"][0].id)

    @cached_property
    def tasks(self) -> Mapping[str, ScaffoldPlan | str]:
        """The plan of each task, or the reason why it has none."""
        return {task: self._task(task) for task in self._ready_plans or PRESET_OF}

    @property
    def _ready_plans(self) -> Mapping[str, ScaffoldPlan]:
        """The plan of each task at the scales that need no presets; empty at others."""
        return {"embedded": presets.OPENING_PLANS, "data": presets.DATA_PLANS}.get(self.scale, {})

    def _task(self, task: str) -> ScaffoldPlan | str:
        try:
            if self._ready_plans:
                plan = self._ready_plans[task]
                teacher = self._pair_teacher(task) if task in TEACHERS else self._place(plan.teacher)
                dataset, base = self._place(plan.dataset), plan.base and self._place(plan.base)
                return replace(plan, teacher=teacher, dataset=dataset, base=base)
            one = PRESETS[PRESET_OF[task]]
            plan = preset_plan(
                one.name, self.places.get(one.out), self.places.get(one.name) or self.places.get(one.dataset)
            )
            return replace(plan, base=self._place(one.base))
        except ExegesisError as error:
            return one_line(error)

    def _place(self, name: str) -> str:
        return self.places.get(name, name)

    def _pair_teacher(self, pair: str) -> str:
        """Return the folder of a language pair's teacher: the given place, or where the run fine-tunes it."""
        name = TEACHERS[pair]
        return self.places.get(name) or str(Path(self.folder) / "models" / name)

    @property
    def pairs(self) -> tuple[str, ...]:
        """Language pairs whose teachers are fine-tuned and measured: those of the selected claims, or all."""
        if self.scale != "data":
            return ()
        return tuple(TEACHERS) if not self.claims else tuple(task for task, _ in self.keys if task in TEACHERS)

    def fine_tunings(self) -> tuple[PlannedFineTuning, ...]:
        """Return the fine-tunings of teachers, finished or not."""
        return tuple(
            PlannedFineTuning(
                TEACHERS[pair],
                self._place(TEACHER_BASE),
                self._place(pair_data(pair)),
                self._pair_teacher(pair),
                options=TEACHER_TRAINING,
            )
            for pair in self.pairs
            if TEACHERS[pair] not in self.places
        )

    def pending_fine_tunings(self) -> tuple[PlannedFineTuning, ...]:
        """Return the fine-tunings whose teachers are missing."""
        return tuple(one for one in self.fine_tunings() if availability(one.out)[0])

    @property
    def sizes(self) -> Sizes:
        """The train sizes of each task, by the names that claims use."""
        # Claims of a task without a plan are still listed, with the sizes that they were declared for.
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
        """Return the plan of all students to evaluate, or the reason why there is none.

        Normalizations other than sparsemax have only the attention settings and SMaT, at the largest train size, so
        that the students of a seed see the same examples as with sparsemax. Their baselines are those of the sparsemax
        plan, because students without explanations use no normalization.
        """
        task, normalization = key
        plan = self.tasks[task]
        if isinstance(plan, str) or normalization == SPARSEMAX:
            return plan
        recipe = replace(plan.recipe, normalisation=normalization)
        return replace(plan, settings=(*ATTENTION, SMAT), train_sizes=(max(plan.train_sizes),), recipe=recipe)

    def training_plan(self, key: StudentsKey) -> ScaffoldPlan | str:
        """Return `plan`, limited to the declared number of seeds unless it is that of sparsemax."""
        plan = self.plan(key)
        if isinstance(plan, str) or key[1] == SPARSEMAX:
            return plan
        return replace(plan, seeds=plan.seeds[: self.declaration.seeds["normalisations"]])

    def collect(self, report: Report = silent, compute: bool = True) -> Evidence:
        """Collect the students' values. Plausibility is measured if missing; students are trained if `compute`."""
        failed = fine_tune(self.pending_fine_tunings(), report) if compute else {}
        why = {pair: failed[name] for pair, name in TEACHERS.items() if name in failed}
        trained = {key: self._train(key, report) for key in self.keys if key[0] not in why} if compute else {}
        students = {key: why.get(key[0]) or self._students(key, trained.get(key)) for key in self.keys}
        marked = dict.fromkeys(
            term.task for claim in self.selected_claims for term in claim.terms if term.metric == AUC
        )
        plausible = {task: self._plausibility(task, students[task, SPARSEMAX]) for task in marked}
        findings = StudentFindings(
            students, plausible, self.sizes, *(self.declaration.seeds[name] for name in ("least", "paper"))
        )
        tasks = (task for task, normalization in self.keys if normalization == SPARSEMAX)
        models = tuple(self._model(task) for task in dict.fromkeys((*tasks, *self.pairs)))
        summaries = tuple(_summary(key, one) for key, one in students.items())
        return Evidence(findings, models, summaries, table_rows(findings))

    def _train(self, key: StudentsKey, report: Report) -> ScaffoldResult | str:
        """Train the unfinished students; return the result, or the reason why it failed."""
        plan = self.training_plan(key)
        if isinstance(plan, str):
            return plan
        try:
            return scaffold(plan, report)
        except Cancelled:
            raise
        except ExegesisError as error:
            return one_line(error)

    def _students(self, key: StudentsKey, trained: ScaffoldResult | str | None) -> ScaffoldResult | str:
        """Return the finished students and why others failed; if none is finished, the reason as a string."""
        plan, training = self.plan(key), self.training_plan(key)
        if isinstance(plan, str) or isinstance(training, str):
            return str(plan)
        try:
            result = load_result(plan)
        except ExegesisError as error:
            return one_line(error)
        if isinstance(trained, str) and not result.students:
            return trained
        failed = trained.failed if isinstance(trained, ScaffoldResult) else {}
        return replace(_with_seeds(result, training.seeds), failed=failed)

    def _plausibility(self, task: str, result: ScaffoldResult | str) -> Plausibility | str:
        """Measure the explainer of the median student at the middle train size, as in the paper; or return why not."""
        if isinstance(result, str) or not result.students:
            return result if isinstance(result, str) else NO_STUDENT
        size = self.sizes[task].get(MIDDLE, max(result.plan.train_sizes))
        try:
            learned = coefficients_of(result.plan, result.median_student(size))
            return plausibility(evaluation_sample(result.plan, self.count), learned)
        except Cancelled:
            raise
        except ExegesisError as error:
            return one_line(error)

    def _model(self, task: str) -> ModelSummary:
        """Summarize the teacher of a task, or of a language pair without students."""
        is_pair = task in TEACHERS
        plan = self.tasks.get(task) or ScaffoldPlan(self._pair_teacher(task), self._place(pair_data(task)))
        if isinstance(plan, str):
            return ModelSummary(f"teacher of {TASKS[task]}", "", plan, None, 0)
        name, data = self._teacher_name(task, plan), pair_data(task) if is_pair else plan.dataset
        try:
            return replace(teacher_summary(plan, UNSEEN if is_pair else None), name=name, data=data)
        except ExegesisError as error:
            return ModelSummary(name, data, one_line(error), None, 0)

    def _teacher_name(self, task: str, plan: ScaffoldPlan) -> str:
        """Return the teacher's name in the report: without its folder if it is fine-tuned for the run."""
        return TEACHERS.get(task, plan.teacher)

    def key_parts(self) -> dict[str, Any]:
        """Return the parts of the cache key. Reads no data set, because pages call it."""
        plans = [self.plan(key) for key in self.keys]
        return {
            "kind": "reproduction of smat",
            "version": [VERSION, experiment.VERSION, product_version()],
            "plans": [plan if isinstance(plan, str) else plain(plan.as_plain()) for plan in plans],
            "teachers": [
                *(plan if isinstance(plan, str) else _teacher_revision(plan.teacher) for plan in plans),
                *(_teacher_revision(self._pair_teacher(pair)) for pair in self.pairs if pair not in self.tasks),
            ],
        }

    def models_of_claims(self, models: Sequence[ModelSummary]) -> dict[str, list[ModelSummary]]:
        teachers = {one.name: one for one in models}
        plans = {task: plan for task, plan in self.tasks.items() if isinstance(plan, ScaffoldPlan)}
        names = {task: self._teacher_name(task, plan) for task, plan in plans.items()}
        return {
            claim.id: [teachers[names[task]] for task in claim.tasks if names.get(task) in teachers]
            for claim in self.selected_claims
        }


def named_sizes(train_sizes: Sequence[int]) -> dict[str, int]:
    """Return a plan's train sizes by name: of more than three, only the smallest, middle and largest."""
    ordered = sorted(train_sizes)
    if len(ordered) > 3:
        ordered = [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    return dict(zip(SIZE_NAMES[len(ordered)], ordered, strict=True))


def student_keys(claim: Claim) -> tuple[StudentsKey, ...]:
    """Return the tasks and normalizations that a claim is about."""
    return tuple(dict.fromkeys((term.task, term.normalization) for term in claim.terms))


def pair_data(pair: str) -> str:
    """Return the name of a language pair's data set."""
    return f"mlqe-pe:pair={pair}"


def teacher_summary(plan: ScaffoldPlan, split: str | None = None) -> ModelSummary:
    """Summarize a teacher, with its accuracy or correlation on the test examples of its students.

    `split`: a whole split to measure on instead, for a teacher that was trained on those examples. Errors: those of the
    teacher and of the data set.
    """
    if split is None:
        source = source_of(plan)
        indices: Sequence[int] = splits_of(source.count, plan).test
    else:
        source = load_source(plan.kind, plan.dataset, split, tolerant=True)
        indices = range(source.count)
    pairs = predict_examples(plan.teacher, source, indices)
    summary = ModelSummary(plan.teacher, plan.dataset, "", None, 0, catalog.revision(plan.teacher))
    if is_regression(plan.teacher):
        r, n = label_correlation(pairs) or (None, 0)
        return replace(summary, correlation=r, n=n)
    correct = [one for one in are_correct(pairs, source) if one is not None]
    accuracy = sum(correct) / len(correct) if correct else None
    return replace(summary, accuracy=accuracy, n=len(correct), classes=len(source.labels))


def _with_seeds(result: ScaffoldResult, seeds: tuple[int, ...]) -> ScaffoldResult:
    """Keep the students of the training seeds `seeds`, and of every other seed whose students are all finished."""
    a_seed = len(result.plan.students) // len(result.plan.seeds)
    counts = {seed: sum(one.run.seed == seed for one in result.students) for seed in result.plan.seeds}
    used = tuple(seed for seed, count in counts.items() if count == a_seed or seed in seeds)
    outcomes = tuple(one for one in result.students if one.run.seed in used)
    return replace(result, plan=replace(result.plan, seeds=used), students=outcomes)


def _teacher_revision(teacher: str) -> str:
    """Return a hash of the teacher's weights, or the reason why it is unavailable."""
    return "".join(availability(teacher))


def _summary(key: StudentsKey, result: ScaffoldResult | str) -> ExperimentSummary:
    name = ", ".join(key)
    if isinstance(result, str):
        return ExperimentSummary(name, {}, result, 0, "scaffold")
    missing = len(result.plan.students) - len(result.students)
    return ExperimentSummary(name, result.plan.as_plain(), "", missing, "scaffold")


ACTIVE_HEADS = "active_heads"
ABOVE, BELOW = "above no explanations", "below no explanations"

StudentsKey = tuple[str, str]
"""A task and a normalization."""


@dataclass(frozen=True)
class StudentFindings:
    """Values of SMaT's students and of their explainers.

    `students`: results by task and normalization. `plausible`: plausibility by task. The reason stands in the place of
    a missing value. `least_seeds`: seeds that a number needs.
    """

    students: Mapping[StudentsKey, ScaffoldResult | str]
    plausible: Mapping[str, Plausibility | str] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    least_seeds: int = 1
    source_seeds: int = 5
    """Number of seeds of each setting in the paper."""

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        return claim.entries

    def missing(self, claim: Claim) -> str:
        return ""

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        if contrast.terms[0].metric == AUC:
            return self._over_examples(claim, contrast, seed, error_rates)
        return self._over_seeds(claim, contrast, error_rates)

    def _over_seeds(
        self, claim: Claim, contrast: Contrast, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        each = [self.seed_values(term) for term in contrast.terms]
        seeds = sorted(set.intersection(*map(set, each)))
        if len(seeds) < self.least_seeds:
            raise NoNumber(f"{len(seeds)} seeds have every student that it compares; {self.least_seeds} are needed.")
        times = [term.times for term in contrast.terms]
        values = np.array([sum(t * one[seed] for t, one in zip(times, each, strict=True)) for seed in seeds])
        reach = [sorted(t * end for end in self._range(term)) for t, term in zip(times, contrast.terms, strict=True)]
        ends = sum(low for low, _ in reach), sum(high for _, high in reach)
        intervals = [seed_interval(values, ends, rate) for rate in (ERROR_RATE, *error_rates)]
        at_best = all(
            term.metric == SIMULABILITY and np.mean([one[seed] for seed in seeds]) >= 1 - CEILING_WIDTH
            for term, one in zip(contrast.terms, each, strict=True)
        )
        gain = self._smallest_gain(claim, contrast, [[one[seed] for seed in seeds] for one in each])
        return interval_number(claim, contrast, float(values.mean()), intervals, len(seeds), error_rates, at_best, gain)

    def _smallest_gain(self, claim: Claim, contrast: Contrast, each: Sequence[Sequence[float]]) -> float:
        """Return the smallest gain that counts for a claim that one setting has higher simulability; else 0.

        It is the gain that the paper's number of seeds detects one time in three, given the standard deviation within
        a setting here. `each`: values of the two settings. Other claims state in their bounds what counts.
        """
        compares_two = sorted(term.times for term in contrast.terms) == [-1, 1]
        alone = claim.least is None and all(len(entry) == 1 for entry in claim.entries)
        asks_for_more = claim.strict and claim.bounds == (0, None) and contrast.terms[0].metric == SIMULABILITY
        if not (compares_two and alone and asks_for_more and len(each[0]) > 1):
            return 0.0
        within = math.sqrt(np.mean([np.var(own, ddof=1) for own in each]))
        return detectable_effect(self.source_seeds) * within

    def _over_examples(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        each = [self.example_values(term) for term in contrast.terms]
        common = sorted(set.intersection(*map(set, each)))
        if len(common) < 2:
            raise NoNumber(f"{len(common)} examples have a value; 2 are needed for an interval.")
        times = [term.times for term in contrast.terms]
        values = np.array([sum(t * one[at] for t, one in zip(times, each, strict=True)) for at in common])
        ends = float(sum(min(t, 0) for t in times)), float(sum(max(t, 0) for t in times))
        rates = (ERROR_RATE, *error_rates)
        intervals = [with_room(values, widened_interval(values, seed, rate), ends, rate) for rate in rates]
        at_best = all(np.mean(list(one.values())) >= 1 - CEILING_WIDTH for one in each)
        return interval_number(claim, contrast, float(values.mean()), intervals, len(common), error_rates, at_best)

    def cell(self, term: StudentTerm) -> SimulabilityCell:
        """Return the values of a term's students as a cell. Errors: `NoNumber` if there are too few."""
        return SimulabilityCell(term.setting, self.sizes[term.task][term.size], tuple(self.seed_values(term).values()))

    def seed_values(self, term: StudentTerm) -> dict[int, float]:
        """Return the value of each student by seed. Errors: `NoNumber` if there are too few."""
        scaffold = self._scaffold(term)
        students = scaffold.students_of(term.setting, self.sizes[term.task][term.size])
        values = {one.run.seed: value for one in students if (value := self._value(term, one)) is not None}
        if len(values) < self.least_seeds:
            raise NoNumber(self._too_few(term, scaffold, len(values)))
        return values

    def _range(self, term: StudentTerm) -> Interval:
        """Return the range of a term's values: 0 to 1, or -1 to 1 for a correlation."""
        correlates = term.metric == SIMULABILITY and self._scaffold(term).metric == "pearson"
        return (-1.0 if correlates else 0.0), 1.0

    def _scaffold(self, term: StudentTerm) -> ScaffoldResult:
        scaffold = self.students.get((term.task, term.normalization), "It was not trained.")
        if isinstance(scaffold, str):
            raise NoNumber(f"{TASKS[term.task].capitalize()}: {scaffold}")
        return scaffold

    def _value(self, term: StudentTerm, student: StudentResult) -> float | None:
        if term.metric == SIMULABILITY:
            return student.simulability
        weights = self._scaffold(term).weights(student)
        if weights is None:
            return None
        return active_share(weights) if term.metric == ACTIVE else mean_depth(weights)

    def _too_few(self, term: StudentTerm, scaffold: ScaffoldResult, count: int) -> str:
        size = self.sizes[term.task][term.size]
        what = f"{TASKS[term.task].capitalize()}, {setting_name(term.setting)}, {size_name(size)}"
        what += "" if term.normalization == SPARSEMAX else f", {term.normalization}"
        seeds = len(scaffold.plan.seeds)
        text = f"{what}: {count} of {seeds} students have a value; {self.least_seeds} are needed."
        cell = (term.setting, size)
        why = dict.fromkeys(w for run, w in scaffold.failed.items() if (run.setting, run.train_size) == cell)
        return " ".join((text, *why))

    def example_values(self, term: StudentTerm) -> dict[int, float]:
        """Return the AUC of each example by its index. Errors: `NoNumber` if there is none."""
        measured = self.plausible.get(term.task, "Plausibility was not measured.")
        task = TASKS[term.task].capitalize()
        if isinstance(measured, str):
            raise NoNumber(f"{task}: {measured}")
        if term.side not in {side.name for side in measured.sides}:
            raise NoNumber(f"{task}: {measured.sample.dataset} has no {term.side} texts of pairs.")
        examples = measured.side(term.side).examples
        values = _auc(measured, term, task)
        return dict(zip(examples, map(float, values), strict=True))


def _auc(measured: Plausibility, term: StudentTerm, task: str) -> Float[np.ndarray, "example"]:
    side = measured.side(term.side)
    if term.setting in side.methods:
        return side.methods[term.setting]
    if term.setting == SMAT or measured.coefficients is None:
        raise NoNumber(f"{task}: no learned explainer is finished.")
    if not side.examples:
        raise NoNumber(f"{task}: no example could be judged.")
    if term.setting in (LAYER, HEAD):
        columns = side.layers if term.setting == LAYER else side.heads
        return columns[:, int(columns.mean(0).argmax())]
    active = measured.coefficients.weights > 0
    heads = active if term.setting == ACTIVE_HEADS else ~active
    if not heads.any():
        raise NoNumber(f"{task}: all heads are active, so that there is nothing to compare.")
    return side.heads[:, heads].mean(1)


def active_share(weights: Float[np.ndarray, "layer head"]) -> float:
    """Return the share of heads with a weight above 0."""
    return float((weights > 0).mean())


def mean_depth(weights: Float[np.ndarray, "layer head"]) -> float | None:
    """Return the weighted mean layer, from 0 (first) to 1 (last); None for a single layer or if all weights are 0."""
    by_layer, last = weights.sum(1), len(weights) - 1
    if not last or not by_layer.sum() > 0:
        return None
    return float((by_layer * np.arange(len(weights))).sum() / by_layer.sum() / last)


def table_rows(findings: StudentFindings) -> tuple[TableRow, ...]:
    """Return the rows of the paper's tables 1 to 7 and figure 5: simulability, then heads, then plausibility."""
    students = [(key, one) for key, one in findings.students.items() if isinstance(one, ScaffoldResult)]
    return (
        *(row for key, one in students for row in _simulability_rows(key, one, findings)),
        *(row for key, one in students for row in _head_rows(key, one, findings)),
        *_plausibility_rows(findings),
    )


def _simulability_rows(key: StudentsKey, result: ScaffoldResult, findings: StudentFindings) -> Iterator[TableRow]:
    for size in sorted(result.plan.train_sizes):
        for setting in result.plan.settings:
            cell = result.cell(setting, size)
            if cell is not None:
                notes = _baseline_note(cell, key, findings), _exceptions_note(result, cell)
                yield replace(_cell_row(SIMULABILITY, key, cell), note="; ".join(filter(None, notes)))


def _cell_row(table: str, key: StudentsKey, cell: SimulabilityCell) -> TableRow:
    ends = cell.median, cell.low, cell.high
    return TableRow(table, *key, cell.setting, "", cell.train_size, *ends, len(cell.values))


def _baseline_note(cell: SimulabilityCell, key: StudentsKey, findings: StudentFindings) -> str:
    """Say whether the quartiles lie above or below those of sparsemax students without explanations; else empty."""
    sparsemax = findings.students.get((key[0], SPARSEMAX))
    baseline = sparsemax.cell(NONE, cell.train_size) if isinstance(sparsemax, ScaffoldResult) else None
    if baseline is None or cell.setting == NONE:
        return ""
    return ABOVE if cell.above(baseline) else BELOW if baseline.above(cell) else ""


def _exceptions_note(result: ScaffoldResult, cell: SimulabilityCell) -> str:
    """List how many students of a cell diverged, did not improve, have no simulability or are not finished."""
    students = result.students_of(cell.setting, cell.train_size)
    counts = {
        "diverged": sum(one.diverged for one in students),
        "no better than untrained": sum(one.best_epoch < 0 for one in students),
        "without a simulability": sum(one.simulability is None for one in students),
        "not finished": len(result.plan.seeds) - len(students),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _head_rows(key: StudentsKey, result: ScaffoldResult, findings: StudentFindings) -> Iterator[TableRow]:
    names = {size: name for name, size in findings.sizes[key[0]].items()}
    for size in sorted(set(result.plan.train_sizes) & set(names)):
        for measure in (ACTIVE, DEPTH):
            term = StudentTerm(1, key[0], measure, SMAT, names[size], key[1])
            try:
                yield _cell_row(measure, key, findings.cell(term))
            except NoNumber:
                continue


def _plausibility_rows(findings: StudentFindings) -> Iterator[TableRow]:
    for task, measured in findings.plausible.items():
        if isinstance(measured, str):
            continue
        for side in measured.sides:
            skipped = "; ".join(f"{count} left out: {why}" for why, count in side.skipped.items())
            for row in side.rows:
                # A single example has no interval; the range of the AUC stands in for it.
                low, high = row.interval or (0.0, 1.0)
                chosen = f"layer {', head '.join(map(str, row.at))}" if row.at else ""
                note, n = "; ".join(filter(None, (chosen, skipped))), len(side.examples)
                yield TableRow(AUC, task, SPARSEMAX, row.explainer, side.name, 0, row.mean, low, high, n, note)
