"""Reproduction of the thesis's claims: the query, and the fine-tunings and experiments that answer it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cache.codec import plain
from engine.data.datasets import SST2_COLUMNS, load, registered_name
from engine.data.examples import Dataset
from engine.data.generation import draw_balanced
from engine.data.labels import SENTIMENT_LABELS
from engine.errors import Cancelled, ExegesisError, one_line, unknown
from engine.experiments.run import carry_out, key_of, parts_of, prepare, sample_of
from engine.home import product_version
from engine.lazy import LazyModule
from engine.models import catalog
from engine.progress import Report, silent, token_here
from engine.reproduction.claims import Claim, Contrast, Evidence, ReproductionQuery, declaration
from engine.reproduction.estimates import ExampleFindings, ValueKey
from engine.reproduction.experiments import KINDS, ExperimentKind, ExperimentRequest
from engine.reproduction.papers import (
    MARKED_SST,
    THESIS_TOPICS,
    Locations,
    Scale,
    Source,
    TaskData,
    family_of,
    measure,
    scale_of,
    topics_at,
)
from engine.reproduction.report import ExperimentSummary, ModelSummary
from engine.training.config import TrainConfig

if TYPE_CHECKING:
    from engine.training import finetuning
else:
    finetuning = LazyModule("engine.training.finetuning")

VERSION = 4
"""Version of the numbers of a report; raised whenever they change."""
FOLDER = "reproduction"
SPLITS = ("train", "validation")
MARKS_SEED = 0
REHEARSED_STEPS = 2
"""Number of steps of an attack in a rehearsal."""
SECONDS = {
    "t5-mini": 0.6, "t5-small": 0.9, "t5": 1.6, "t5-deep": 4.5, "bert": 1.2, "roberta": 1.5, "gpt2": 1.7,
}  # fmt: skip
"""Seconds per example on one CPU core, on either data set, for all methods and the metrics by removal. Measured in the
run of the shipped report."""


@dataclass(frozen=True)
class PlannedFineTuning:
    """A model to fine-tune, as options of `exegesis train`.

    `source`: the data set that marked reviews are made from, else empty. `data`: name of the data set, because
    `dataset` may be a folder. `options`: options that differ from the thesis's recipe, such as one epoch in a
    rehearsal.
    """

    name: str
    base: str
    dataset: str
    out: str
    source: str = ""
    data: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def config(self) -> TrainConfig:
        """The configuration. The defaults of `exegesis train` are the thesis's recipe."""
        return TrainConfig(base=self.base, dataset=self.dataset, out=self.out, **dict(self.options))

    def run(self, report: Report = silent) -> float:
        """Train, from a checkpoint if there is one. Returns the seconds of its steps.

        Errors: those of the base, the data set and the training.
        """
        if self.source:
            write_marked_reviews(self.source, Path(self.dataset))
        return finetuning.train(self.config, report, token_here()).seconds


def fine_tune(pending: Iterable[PlannedFineTuning], report: Report = silent) -> dict[str, str]:
    """Run fine-tunings. Returns the reasons of those that failed, by name."""
    failed = {}
    for one in pending:
        try:
            one.run(lambda done, total, label, name=one.name: report(done, total, f"{name}, {label}"))  # type: ignore[misc]
        except Cancelled:
            raise
        except ExegesisError as error:
            failed[one.name] = f"not fine-tuned: {one_line(error)}"
    return failed


@dataclass(frozen=True)
class ModelRole:
    """A model and the parts that it plays on one data set.

    `place`: its folder or name. `why`: why it is unavailable, else empty. `revision`: a hash of its weights, empty if
    it is unavailable.
    """

    name: str
    parts: tuple[str, ...]
    data: TaskData
    place: str
    why: str
    revision: str = ""

    @property
    def available(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class ThesisExperiment:
    """An experiment with the models of one comparison on one data set.

    `source`: the kind of experiment. `request`: the request without models.
    """

    name: str
    data: TaskData
    source: Source
    roles: tuple[ModelRole, ...]
    request: ExperimentRequest

    @property
    def kind(self) -> ExperimentKind:
        """The kind of experiment."""
        return KINDS[self.source]

    @property
    def plan(self) -> Any:
        """The plan for the available models, or None if none is available."""
        models = tuple(dict.fromkeys(role.place for role in self.roles if role.available))
        return self.kind.plan(replace(self.request, models=models)) if models else None


Result = tuple[ThesisExperiment, Any]
"""An experiment with its result, or with the reason why it has none."""


@dataclass(frozen=True)
class ThesisQuery(ReproductionQuery):
    """A query for the thesis's claims.

    `folder`: where models are fine-tuned. `topic`: the topic of the claims. `rehearsal`: whether it only tests the
    machine, with one epoch per training and few steps per attack (`engine.reproduction.rehearsal`).
    """

    folder: str = FOLDER
    topic: str = THESIS_TOPICS[0]
    rehearsal: bool = False

    job: ClassVar[str] = "reproduce"

    @property
    def topic_id(self) -> str:
        return self.topic

    def check(self) -> None:
        if self.topic not in THESIS_TOPICS:
            raise unknown("topic", self.topic, THESIS_TOPICS)
        super().check()

    @property
    def selected_claims(self) -> tuple[Claim, ...]:
        return self.declaration.select(self.claims)

    def command(self) -> str:
        """Return the command that repeats it; for a rehearsal, without the folders of its stand-ins."""
        if not self.rehearsal:
            return super().command()
        return f"{replace(self, places={}, rehearsal=False).command()} --rehearse"

    @property
    def locations(self) -> Locations:
        return Locations(scale_of(self.scale), self.places, Path(self.folder))

    def request(self, source: Source, data: TaskData, metrics: tuple[str, ...] = ()) -> ExperimentRequest:
        """Return the request for an experiment.

        A source that is declared with fewer examples gets proportionally fewer, but at least two.
        """
        settings = dict(self.declaration.settings.get(self.scale, {}).get(source, {}))
        declared = self.declaration.examples[self.scale]
        own = settings.pop("fewer", {}).get(data.key, settings.pop("examples", declared))
        count = max(2, round(self.count * own / declared))
        if self.rehearsal and source == "attack":
            settings["attack"] = {**settings["attack"], "steps": REHEARSED_STEPS}
        return ExperimentRequest((), self.locations.dataset(data.dataset), metrics, count, self.seed, settings)

    def experiments(self) -> tuple[ThesisExperiment, ...]:
        """Return the experiments that the selected claims need. Looks up the models without loading them."""
        scale = scale_of(self.scale)
        parts: dict[tuple[TaskData, str, Source], list[tuple[str, str]]] = {}
        for task, part, source in _needs(self.selected_claims):
            parts.setdefault((scale.tasks[task], family_of(part), source), []).append((task, part))
        return tuple(self._experiment(*key, own) for key, own in parts.items())

    def _experiment(
        self, data: TaskData, family: str, source: Source, parts: Sequence[tuple[str, str]]
    ) -> ThesisExperiment:
        scale, locations = scale_of(self.scale), self.locations
        by_model: dict[str, list[str]] = {}
        for task, part in parts:
            by_model.setdefault(scale.model(part, task), []).append(part)
        roles = tuple(
            ModelRole(
                name, tuple(dict.fromkeys(own)), data, locations.model(name), *availability(locations.model(name))
            )
            for name, own in by_model.items()
        )
        # Use the metrics of all tasks of the data set, whichever claims are selected, so that runs share their results.
        tasks = [own for task, own in self.declaration.tasks.items() if scale.tasks[task] == data]
        metrics = tuple(dict.fromkeys(metric for own in tasks for metric in own))
        return ThesisExperiment(
            _experiment_name(data, family, source), data, source, roles, self.request(source, data, metrics)
        )

    def fine_tunings(self) -> tuple[PlannedFineTuning, ...]:
        """Return the fine-tunings that the selected claims need, finished or not."""
        return tuple(dict.fromkeys(one for one, _ in self._fine_tunings()))

    def pending_fine_tunings(self) -> tuple[PlannedFineTuning, ...]:
        """Return the fine-tunings that the selected claims need and whose models are missing."""
        return tuple(dict.fromkeys(one for one, role in self._fine_tunings() if not role.available))

    def _fine_tunings(self) -> Iterator[tuple[PlannedFineTuning, ModelRole]]:
        locations = self.locations
        rehearsed = (("epochs", 1),) if self.rehearsal else ()
        roles = (role for experiment in self.experiments() for role in experiment.roles)
        for role in (role for role in roles if not role.data.model) if locations.scale.trains else ():
            name = role.data.dataset
            base = locations.base(locations.scale.bases[role.parts[0]])
            source = locations.dataset("sst2") if name == MARKED_SST and name not in locations.given else ""
            options = role.data.training + rehearsed
            yield PlannedFineTuning(role.name, base, locations.dataset(name), role.place, source, name, options), role

    def collect(self, report: Report = silent, compute: bool = True) -> Evidence:
        """Fine-tune missing models and run the experiments, whatever `compute` is.

        A model or data set that is unavailable, or a fine-tuning that fails, is reported as a reason.
        """
        failed = fine_tune(self.pending_fine_tunings(), report)
        results = []
        for experiment in self.experiments():
            roles = tuple(replace(role, why=failed.get(role.name, role.why)) for role in experiment.roles)
            results.append(_run(replace(experiment, roles=roles), report))
        summaries = tuple(_summary(experiment, result) for experiment, result in results)
        return Evidence(findings_of(results, scale_of(self.scale)), _model_summaries(results), summaries)

    def key_parts(self) -> dict[str, Any]:
        experiments = self.experiments()
        return {
            "kind": "reproduction",
            "version": [VERSION, product_version()],
            "absent": [role.name for one in experiments for role in one.roles if not role.available],
            "evaluations": [key for one in experiments for key in _result_keys(one)],
        }

    def models_of_claims(self, models: Sequence[ModelSummary]) -> dict[str, list[ModelSummary]]:
        scale, by_name = scale_of(self.scale), {(one.name, one.data): one for one in models}

        def used(claim: Claim) -> Iterator[tuple[str, str]]:
            for term in claim.terms:
                for part in term.models:
                    yield scale.model(part, term.task), scale.tasks[term.task].dataset

        return {
            claim.id: [by_name[key] for key in dict.fromkeys(used(claim)) if key in by_name]
            for claim in self.selected_claims
        }

    def duplicates(self) -> dict[str, str]:
        """Map duplicate claims to earlier ones: other tasks on the same data set, and equal numbers up to the sign."""
        scale = scale_of(self.scale)
        first: dict[object, Claim] = {}
        duplicates = {}
        for claim in self.selected_claims:
            sums = frozenset(_unsigned_sum(contrast, scale) for contrast in claim.contrasts)
            earlier = first.setdefault(sums, claim)
            if earlier.tasks != claim.tasks:
                duplicates[claim.id] = earlier.id
        return duplicates

    def seconds(self) -> float | None:
        """Return the seconds that the selected claims take on the available models, or None if that is unknown."""
        names = {role.name for experiment in self.experiments() for role in experiment.roles if role.available}
        bases = [name.rpartition("-")[0] for name in names]
        if self.places or self.topic != THESIS_TOPICS[0] or not bases or not SECONDS.keys() >= set(bases):
            return None
        return self.count * sum(SECONDS[base] for base in bases)


def split_topics(whole: ThesisQuery, topics: Sequence[str] = ()) -> tuple[ThesisQuery, ...]:
    """Split a query into one per topic that has selected claims.

    All but the first use at most the declared number of examples. `topics`: empty for all topics at the scale. Errors:
    an unknown scale or claim.
    """
    scale_of(whole.scale)
    topics = topics or topics_at("thesis", whole.scale)
    ids = {topic: declaration(topic).ids for topic in topics}
    every = [id for own in ids.values() for id in own]
    for id in whole.claims:
        if id not in every:
            raise unknown("claims", id, every)
    chosen = {topic: tuple(id for id in whole.claims if id in own) for topic, own in ids.items()}
    queries = [replace(whole, topic=topic, claims=own) for topic, own in chosen.items() if own or not whole.claims]
    for place, query in enumerate(queries[1:], 1):
        if query.examples is not None and query.examples >= query.declaration.examples[query.scale]:
            queries[place] = replace(query, examples=None)
    return tuple(queries)


def experiment_names(claim: Claim, scale: Scale) -> tuple[str, ...]:
    """Return the names of the experiments that the claim rests on."""
    needs = ((scale.tasks[task], family_of(part), source) for task, part, source in _needs([claim]))
    return tuple(dict.fromkeys(_experiment_name(*one) for one in needs))


def findings_of(results: Sequence[Result], scale: Scale) -> ExampleFindings:
    """Collect the values of the experiments by example, and the reasons for missing results."""
    values: dict[ValueKey, dict[int, float]] = {}
    absent: dict[tuple[str, str, Source], str] = {}
    for experiment, result in results:
        why = result if isinstance(result, str) else ""
        parts: dict[str, list[str]] = {}
        for role in experiment.roles:
            parts.setdefault(role.place, []).extend(role.parts if role.available else ())
            for part in role.parts if role.why or why else ():
                absent[experiment.data.key, part, experiment.source] = f"{role.name}: {role.why or why}"
        for row in () if isinstance(result, str) else experiment.kind.rows(result):
            for part in parts[row.of.model]:
                key = (experiment.data.key, part, row.of.method, row.of.metric)
                values.setdefault(key, {})[row.example] = row.value
    return ExampleFindings(values, absent, scale)


def _needs(claims: Sequence[Claim]) -> list[tuple[str, str, Source]]:
    """Return the distinct (task, part of a model, source) that the claims need, in the order of declaration."""
    terms = (term for claim in claims for term in claim.terms)
    return list(
        dict.fromkeys((term.task, model, measure(term.metric).source) for term in terms for model in term.models)
    )


def _experiment_name(data: TaskData, family: str, source: Source) -> str:
    return f"{data.key}, {family}" if source == "evaluation" else f"{data.key}, {family}, {source}"


def availability(place: str) -> tuple[str, str]:
    """Return (reason why the model is unavailable, revision), one of which is empty."""
    try:
        return "", catalog.revision(place)
    except ExegesisError as error:
        return one_line(error), ""


def _run(experiment: ThesisExperiment, report: Report) -> Result:
    plan = experiment.plan
    if plan is None:
        return experiment, "none of its models is available"
    try:
        return experiment, carry_out(plan, report)
    except Cancelled:
        raise
    except ExegesisError as error:
        return experiment, one_line(error)


def _summary(experiment: ThesisExperiment, result: Any) -> ExperimentSummary:
    plan = experiment.plan
    if isinstance(result, str) or plan is None:
        return ExperimentSummary(experiment.name, {}, str(result), 0, experiment.source)
    skipped = experiment.kind.skipped(result)
    return ExperimentSummary(experiment.name, plain(plan.as_plain()), "", skipped, experiment.source)


def _model_summaries(results: Sequence[Result]) -> tuple[ModelSummary, ...]:
    """Summarize each model once per data set, with its accuracy in the experiment that used most examples."""
    models: dict[tuple[str, str], ModelSummary] = {}
    for experiment, result in results:
        done = not isinstance(result, str)
        correct = list(experiment.kind.correctness(result)) if done else []
        classes = len(sample_of(experiment.plan).source.labels) if done else 0
        for role in experiment.roles:
            own = [right for model, right in correct if model == role.place and right is not None]
            accuracy = sum(own) / len(own) if own else None
            name, data = role.name, role.data.dataset
            one = ModelSummary(name, data, role.why, accuracy, len(own), role.revision, classes)
            if (name, data) not in models or one.n > models[name, data].n:
                models[name, data] = one
    return tuple(models.values())


def _result_keys(experiment: ThesisExperiment) -> list[str]:
    """Return the cache keys of an experiment's results, or the reason why its data set cannot be read."""
    plan = experiment.plan
    if plan is None:
        return []
    try:
        whole, sample = prepare(plan)
        return [key_of(part, sample) for part in parts_of(whole)]
    except ExegesisError as error:
        return [one_line(error)]


def _unsigned_sum(contrast: Contrast, scale: Scale) -> object:
    """Return a key of a contrast on its data sets that is equal for the contrast and its negation."""
    terms = [
        (scale.tasks[term.task].key, term.metric, term.methods, term.models, term.take, term.times)
        for term in contrast.terms
    ]
    negated = [(*rest, -times) for *rest, times in terms]
    return contrast.oriented, frozenset([frozenset(terms), frozenset(map(tuple, negated))])


def write_marked_reviews(source: str, folder: Path) -> None:
    """Write SST-2 with random labels, and the word of the label at the end of each text, which alone determines it.

    One JSONL file per split, unless it exists. `source`: `sst2`, or a folder with train.tsv and dev.tsv. Source:
    section 3.1 of the thesis, after Zhou et al. (2022).
    """
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        file = folder / f"{split}.jsonl"
        if not file.is_file():
            partial = file.with_suffix(f".{os.getpid()}.partial")
            data = (
                load(source, split)
                if registered_name(source)
                else load(source, split, SST2_COLUMNS, label_names=SENTIMENT_LABELS)
            )
            partial.write_text("".join(_marked_lines(data, split)), encoding="utf-8")
            os.replace(partial, file)


def _marked_lines(data: Dataset, split: str) -> Iterator[str]:
    labels = draw_balanced(f"{MARKS_SEED}/{split}/marks", len(data))
    for one, label in zip(data.examples, labels, strict=True):
        text, word = one.text.rstrip(), SENTIMENT_LABELS[label]
        row = {"text": f"{text} {word}", "label": word, "rationale": [[len(text) + 1, len(text) + 1 + len(word)]]}
        yield json.dumps(row, ensure_ascii=False) + "\n"
