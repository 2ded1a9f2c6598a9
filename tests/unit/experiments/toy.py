"""A toy experiment, declared in one module: how long the texts of a data set are, a unit an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cache import key_for
from engine.experiments import options
from engine.experiments.base import Experiment, ExperimentResult, Units, register
from engine.experiments.options import ExperimentPlan
from engine.experiments.run import rows_of
from engine.experiments.sample import Sample, draw_sample
from engine.jobs.kinds import WorkUnit
from engine.params import Plain, option
from engine.progress import Report
from engine.store import result_store

VERSIONS = [1]
COLUMNS = {"model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float}
Result = ExperimentResult


@dataclass(frozen=True)
class ToyPlan(ExperimentPlan):
    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(("gradient",), "Or 'all'.")
    examples: int = options.examples(3)
    seed: int = options.seed("Draws the examples.")
    unit: str = option("letter", "What is counted.", choices=("letter", "word"), metavar="U")
    split: str | None = options.split()
    dtype: str = options.dtype()
    params: Mapping[str, Mapping[str, Plain]] = options.params()


@dataclass(frozen=True)
class ToyResult:
    model: str
    dataset: str
    examples: tuple[int, ...]
    lengths: tuple[int, ...]
    complete: bool = True


ModelResult = ToyResult
TOY = register(
    Experiment(
        id="toy", plan=ToyPlan, module=__name__, title="Count {unit}s of {dataset}", noun="toy", participle="counted",
        summary="Count the letters of texts.", doing="counting",
        opens_with={"text": ToyPlan(("reviews-minilm",), "reviews"), "image": ToyPlan(("scenes-vit",), "scenes")},
    )
)  # fmt: skip


def check(plan: ToyPlan) -> None:
    """Nothing beyond the fields."""


def sample(plan: ToyPlan) -> Sample:
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def units(plan: ToyPlan, sample: Sample) -> Units:
    return Units(
        WorkUnit(
            _key(plan, sample, index), f"example {index}", partial(_measure, plan, sample, index), True, group=[index]
        )
        for index in sample.indices
    )


def assemble(plan: ToyPlan, sample: Sample, report: Report) -> ToyResult:
    lengths = tuple(_measure(plan, sample, index) for index in sample.indices)
    return ToyResult(plan.models[0], plan.dataset, sample.indices, lengths)


def rows(found: ToyResult) -> Iterator[dict[str, Any]]:
    shared = {"model": found.model, "dataset": found.dataset}
    for example, length in zip(found.examples, found.lengths, strict=True):
        yield {**shared, "example": example, "method": "", "metric": "length", "value": float(length)}


def to_json(found: ExperimentResult) -> dict[str, Any]:
    return {"plan": found.plan.as_plain(), "rows": list(rows_of(found))}


def _key(plan: ToyPlan, sample: Sample, index: int) -> str:
    return key_for({"kind": "toy length", "unit": plan.unit, "data": sample.source.revision, "index": index})


def _measure(plan: ToyPlan, sample: Sample, index: int) -> int:
    key = _key(plan, sample, index)
    if entry := result_store().get(key):
        return int(entry[0]["length"])
    text = sample.source.read(index).input.text
    length = len(text.split() if plan.unit == "word" else text)
    result_store().put(key, {"length": length}, {})
    return length
