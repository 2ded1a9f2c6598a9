"""Run the experiment `randomize`: sample, work units and the result on a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from engine.errors import ExegesisError, UsageError
from engine.experiments.base import Units
from engine.experiments.run import carry_out
from engine.experiments.sample import Sample, draw_sample
from engine.jobs.kinds import Batch, UnitStep, WorkUnit
from engine.models.summary import is_head_tied
from engine.params import from_mapping
from engine.progress import CancelToken, Report, check_cancelled, silent
from engine.randomization import chunks as chunk_work
from engine.randomization.chunks import Chunk, ChunkMaps, ChunkPredictions, ChunkResult, ModelInput, ModelWork, Setting
from engine.randomization.curves import to_json
from engine.randomization.plan import THESIS_METHODS, RandomizationPlan
from engine.randomization.result import (
    COLUMNS,
    EMBEDDINGS,
    FINE,
    HEAD,
    MEASURES,
    TIED,
    ModelRandomization,
    RandomizationResult,
    is_baseline,
    likeness,
    no_order,
    parts_words,
    rows,
)
from engine.registry import IMPORTED_PREFIX, explainer
from engine.registry import estimate_rows as evaluations_of
from engine.result import Prediction, explained_class

__all__ = [
    "COLUMNS", "VERSIONS", "ModelResult", "Result", "assemble", "check", "randomize", "rows", "sample", "to_json",
    "units",
]  # fmt: skip

VERSIONS = [1, chunk_work.VERSION]
"""Increase the first whenever the values of a measure change."""
ModelResult = ModelRandomization
Result = RandomizationResult


def randomize(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str] = THESIS_METHODS,
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> RandomizationResult:
    """Explain a sample of examples with every method at every stage of every model.

    `more`: other fields of the plan. A random baseline is added. Each chunk of work is cached, so a stopped run can be
    continued, and another method, mode or seed reuses the rest. Examples that fail are skipped with a reason. Errors:
    an invalid plan, a data set that cannot be read, a model that cannot be randomized.
    """
    plan = RandomizationPlan(tuple(models), dataset, tuple(methods), **more)  # type: ignore[arg-type]
    result: RandomizationResult = carry_out(plan, report, cancel)
    return result


def check(plan: RandomizationPlan) -> None:
    """Refuse a plan without a method that depends on the model, and imported methods.

    The maps of an imported method cannot be recomputed on randomized models.
    """
    if imported := [method for method in plan.methods if method.startswith(IMPORTED_PREFIX)]:
        raise UsageError(
            f"methods: {', '.join(imported)} was imported, and its maps cannot be recomputed on a randomized model. "
            "Leave it out."
        )
    if all(is_baseline(method, plan.kind) for method in plan.methods):
        raise UsageError(
            f"methods: {', '.join(plan.methods)} does not depend on the model, so the check cannot test it. "
            f"Add a method that does, such as {THESIS_METHODS[1]}."
        )


def sample(plan: RandomizationPlan) -> Sample:
    """Draw the sample of examples, the same as an evaluation with this seed. Errors: a data set that cannot be read."""
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def units(plan: RandomizationPlan, sample: Sample) -> Units:
    """Work units by stage: the predictions of a chunk of examples, then their maps by each method.

    The units of a stage and seed form a group for one worker, which randomizes its own copy.
    """
    [model] = plan.models
    work = ModelWork(plan, model, sample)
    chunks = {chunk.key: chunk for chunk in work.all_chunks()}

    def run_batch(units: Sequence[WorkUnit]) -> None:
        _do(work, [chunks[unit.key] for unit in units])

    return Units((_unit(work, chunk, run_batch) for chunk in chunks.values()), work.check_untouched)


def _unit(work: ModelWork, chunk: Chunk, run_batch: Batch) -> WorkUnit:
    plan, examples = work.plan, len(chunk.indices)
    what = f"{chunk.method or 'prediction'}, {examples} examples from {chunk.indices[0]}"
    label = f"{what}, {parts_words(chunk.parts)} randomized, {work.model}"
    cost = 1
    if chunk.method:
        cost = evaluations_of(explainer(chunk.method, plan.kind), plan.params_of(chunk.method))
    return WorkUnit(
        chunk.key, label, partial(_do, work, [chunk]), stores_itself=True, batch=run_batch,
        step=UnitStep("", 0, 0, examples * cost), group=[list(chunk.parts), chunk.seed],
    )  # fmt: skip


def _do(work: ModelWork, chunks: Sequence[Chunk]) -> None:
    for result in work.do(chunks).values():
        for why in result.failed.values() if isinstance(result, ChunkMaps) or not result.lasting else ():
            raise ExegesisError(why)  # so the example is retried


def assemble(plan: RandomizationPlan, sample: Sample, report: Report) -> ModelRandomization:
    """Collect all chunks, computing those that are not cached, and compare them with the original model."""
    [model] = plan.models
    work = ModelWork(plan, model, sample)
    assembly, settings = _Assembly(work), work.settings()
    done, total = 0, len(settings) * len(work.batches)
    for setting in settings:
        for indices in work.batches:
            check_cancelled()
            report(done, total, f"{parts_words(setting[0])} randomized, {model}")
            chunks = work.chunks(setting, indices)
            results = work.do(chunks)
            assembly.add(setting, {chunk.method: results[chunk.key] for chunk in chunks})
            done += 1
    work.check_untouched()
    report(total, total, "")
    return assembly.result()


class _Assembly:
    """Compares the maps of one model with the originals. The chunks of the original model must be added first."""

    def __init__(self, work: ModelWork) -> None:
        self.work, self.methods = work, work.plan.methods_with_baselines
        self.predictions: dict[int, Prediction] = {}
        self.targets: dict[int, int] = {}
        self.inputs: dict[int, ModelInput] = {}
        self.failed = dict(work.faults)
        self.originals: dict[tuple[str, int], np.ndarray] = {}
        self.signed = [self._is_signed(method) for method in self.methods]
        self.broken = False
        self.reasons: dict[str, int] = {}
        self.place = {index: place for place, index in enumerate(work.sample.indices)}
        stages, seeds, examples = shape = len(work.stages), len(work.plan.all_seeds), len(work.sample.indices)
        self.likeness = np.full((stages, seeds, len(self.methods), len(MEASURES), examples), np.nan)
        self.why = np.full((stages, seeds, len(self.methods), examples), FINE)
        self.after = np.full(shape, np.nan)
        self.changed = np.zeros(shape, dtype=bool)

    def add(self, setting: Setting, results: Mapping[str, ChunkResult]) -> None:
        """Add the chunks of one setting, by method."""
        for method, result in results.items():
            if not setting[0]:
                self._add_original(method, result)
                continue
            for at in self._places(setting):
                if isinstance(result, ChunkPredictions):
                    self._add_predictions(at, result)
                else:
                    self._compare(at, method, result)

    def result(self) -> ModelRandomization:
        """The result on the examples that the original model can predict."""
        work = self.work
        examples = [index for index in work.sample.indices if index in self.predictions]
        places = [self.place[index] for index in examples]
        predictions = [self.predictions[index] for index in examples]
        explained = [(self.predictions[index], self.targets[index]) for index in examples]
        parts = {part for stage in work.stages for part in stage.parts}
        return ModelRandomization(
            model=work.model,
            dataset=work.sample.source.name,
            stages=work.stages,
            seeds=work.plan.all_seeds,
            methods=self.methods,
            examples=tuple(examples),
            targets=tuple(one.labels[target] for one, target in explained),
            likeness=self.likeness[..., places],
            why=self.why[..., places],
            reasons=tuple(self.reasons),
            before=np.array([one.probabilities[target] for one, target in explained], dtype=np.float64),
            after=self.after[..., places],
            changed=self.changed[..., places],
            failed=self.failed,
            regression=any(one.regression for one in predictions),
            complete=not self.broken,
            notes=(TIED,) if {HEAD, EMBEDDINGS} & parts and is_head_tied(work.model) else (),
        )

    def _is_signed(self, method: str) -> bool:
        known, given = explainer(method, self.work.plan.kind), self.work.plan.params_of(method)
        return known.is_signed(vars(from_mapping(known.params, given, method)))

    def _places(self, setting: Setting) -> Iterator[tuple[int, int]]:
        """The positions of the stages (both modes if they share it) and of the seed of a setting."""
        draw = self.work.plan.all_seeds.index(setting[1])
        return ((at, draw) for at, stage in enumerate(self.work.stages) if stage.parts == setting[0])

    def _add_original(self, method: str, result: ChunkResult) -> None:
        if isinstance(result, ChunkPredictions):
            self.predictions |= result.predictions
            self.targets |= {
                index: explained_class(self.work.sample.source.read(index).input, prediction)
                for index, prediction in result.predictions.items()
            }
            self.inputs |= result.inputs
            self.failed |= result.failed
            self.broken |= not result.lasting
            return
        for index, scores in result.scores.items():
            self.originals[method, index] = scores[self.inputs[index].features]
        self._note_failures(method, result, list(np.ndindex(self.after.shape[:2])))

    def _add_predictions(self, at: tuple[int, int], result: ChunkPredictions) -> None:
        self.broken |= not result.lasting
        for index, prediction in result.predictions.items():
            self.after[(*at, self.place[index])] = prediction.probabilities[self.targets[index]]
            self.changed[(*at, self.place[index])] = prediction.index != self.predictions[index].index

    def _compare(self, at: tuple[int, int], method: str, result: ChunkMaps) -> None:
        which = self.methods.index(method)
        for index, scores in result.scores.items():
            read, place, before = self.inputs[index], self.place[index], self.originals.get((method, index))
            if before is None:
                continue  # the reason is recorded already
            after = scores[read.features]
            if why := no_order(before, after):
                self.why[(*at, which, place)] = self._code(why)
            else:
                self.likeness[(*at, which, slice(None), place)] = likeness(before, after, read.grid, self.signed[which])
        self._note_failures(method, result, [at])

    def _note_failures(self, method: str, result: ChunkMaps, places: Sequence[tuple[int, ...]]) -> None:
        for index, why in result.failed.items():
            self.broken = True
            for at in places:
                self.why[(*at, self.methods.index(method), self.place[index])] = self._code(why)

    def _code(self, why: str) -> int:
        return self.reasons.setdefault(why, len(self.reasons))
