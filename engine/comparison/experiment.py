"""Implementation of the experiment `compare`: the maps of several pairs on many examples, and where they disagree most.

The units of the job explain the examples pair by pair. `find_disagreements` then reads the cached maps without running
a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.comparison.agreement import AgreementOptions, find_random, mean_disagreement, measure_agreement
from engine.comparison.alignment import AlignedMaps, align_maps
from engine.comparison.plan import ComparisonPlan, ModelMethodPair, plan_of
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import Cancelled, ExegesisError, one_line
from engine.experiments.example_jobs import plan_explain
from engine.experiments.sample import draw_indices
from engine.explain import explain, explain_many, key_of
from engine.jobs.kinds import Spec, WorkUnit, job_kind, unreadable_key
from engine.metrics.agreement import MEASURES
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.request import Example, Request
from engine.result import Explanation, explanation_to_json, unpack
from engine.store import result_store

EXAMPLES_AT_ONCE = 16


@dataclass(frozen=True)
class ExampleDisagreement:
    """The disagreement on an example. `index`: its index in the data set.

    `value`: `mean_disagreement`, None if no two maps have an order. `predicted`: the class that each pair's model
    predicts, None if there is no map.
    """

    index: int
    name: str
    value: float | None
    predicted: tuple[str | None, ...]

    @property
    def maps(self) -> int:
        """Number of pairs that have a map."""
        return sum(label is not None for label in self.predicted)

    @property
    def labels_differ(self) -> bool:
        return len(set(self.predicted) - {None}) > 1


@dataclass(frozen=True)
class SkippedMap:
    """An example, or one column's map of it, that is left out. `column`: the pair's code, None for all columns."""

    index: int
    column: str | None
    why: str


OnSkip = Callable[[SkippedMap], None]
Answer = Explanation | str | None
"""An explanation, or the reason why it failed; None if it is not computed yet."""


def sample(plan: ComparisonPlan) -> tuple[ExampleSource, list[int]]:
    """Return the data set and the indices of the compared examples. A row that is not an example fails when read."""
    source = load_source(plan.kind, plan.dataset, plan.split, tolerant=True)
    return source, draw_indices(source.count, plan.examples, plan.seed)


def _title(spec: Spec) -> str:
    return f"Compare {', '.join(map(str, spec.get('pairs', [])))} on {spec.get('dataset')}"


@job_kind("compare", title=_title, check=plan_of)
def units(spec: Spec) -> Iterator[WorkUnit]:
    """Yield one unit per map, pair by pair. A row that is not an example is a unit that fails.

    Fields of `spec`: `dataset`: a name, a path or `hub:owner/name`, `pairs`: [method@model], `kind`?: text or image,
    `split`?, `examples`?, `seed`?, `target`?.
    """
    plan = plan_of(spec)
    source, indices = sample(plan)
    if plan.kind == "image":
        split = {"split": plan.split} if plan.split else {}
        examples: list[dict[str, Any]] = [{"dataset": plan.dataset, "index": index, **split} for index in indices]
    else:
        errors = {index: error for index in indices if (error := _length_error(source, index)) is not None}
        yield from (_failing_unit(plan, source, index, error) for index, error in errors.items())
        examples = [source.read(index).input.as_plain() for index in indices if index not in errors]
    for pair in plan.pairs if examples else ():
        yield from plan_explain(_explain_spec(plan, pair, examples))


def _length_error(source: ExampleSource, index: int) -> ExegesisError | None:
    """Return the error if a row cannot be explained, else None."""
    try:
        source.read(index).input.check_length()
    except ExegesisError as error:
        return error
    return None


def _failing_unit(plan: ComparisonPlan, source: ExampleSource, index: int, error: ExegesisError) -> WorkUnit:
    """Return one failing unit for a row, instead of one per map: the row itself is the cause."""
    key = unreadable_key("compare", {"dataset": plan.dataset, "index": index}, error)
    return WorkUnit(key, f"example {index}", lambda: source.read(index).input.check_length(), stores_itself=True)


def _explain_spec(plan: ComparisonPlan, pair: ModelMethodPair, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the specification of an explain job for one pair."""
    spec: dict[str, Any] = {"model": pair.model, "methods": [pair.method], "examples": examples, "seed": plan.seed}
    spec |= {"params": {pair.method: dict(pair.params)}} if pair.params else {}
    return spec | ({} if plan.target is None else {"target": plan.target})


def find_disagreements(
    plan: ComparisonPlan, options: AgreementOptions, unit: str = "word", reference: int | None = None,
    compute: bool = True, report: Report = silent, cancel: CancelToken | None = None,
    on_skip: OnSkip = lambda skipped: None,
) -> list[ExampleDisagreement]:  # fmt: skip
    """Return the examples that have at least two maps, those with the largest disagreement first.

    `compute`: whether to compute missing maps; otherwise only the cache is read. `on_skip`: called with each row or map
    that fails and is left out.
    """
    source, indices = sample(plan)
    examples: list[ExampleDisagreement] = []
    with cancellable(cancel):
        for start in range(0, len(indices), EXAMPLES_AT_ONCE):
            check_cancelled()
            report(start, len(indices), "examples")
            group = list(_read_examples(source, indices[start : start + EXAMPLES_AT_ONCE], on_skip))
            requests = [request for one in group for request in plan.requests(one.input)]
            answers = _explain_all(requests) if compute else [_cached(request) for request in requests]
            width = len(plan.pairs)
            for place, one in enumerate(group):
                own = answers[width * place : width * (place + 1)]
                for pair, answer in zip(plan.pairs, own, strict=True):
                    if isinstance(answer, str):
                        on_skip(SkippedMap(one.index, pair.code, answer))
                maps = [None if isinstance(answer, str) else answer for answer in own]
                if sum(explanation is not None for explanation in maps) > 1:
                    examples.append(_compare_maps(one, maps, options, unit, reference))
    return sorted(examples, key=lambda one: (one.value is None, -(one.value or 0.0), one.index))


def _read_examples(source: ExampleSource, indices: Sequence[int], on_skip: OnSkip) -> Iterator[SourceExample]:
    for index in indices:
        try:
            one = source.read(index)
            one.input.check_length()
            yield one
        except ExegesisError as error:
            on_skip(SkippedMap(index, None, one_line(error)))


def _explain_all(requests: Sequence[Request]) -> list[Answer]:
    """Explain all requests together, or one by one if any of them fails."""
    try:
        return list(explain_many(requests))
    except ExegesisError:
        return [_explain(request) for request in requests]


def _explain(request: Request) -> Answer:
    try:
        return explain(request)
    except Cancelled:
        raise
    except ExegesisError as error:
        return one_line(error)


def _cached(request: Request) -> Answer:
    try:
        entry = result_store().get(key_of(request))
    except ExegesisError:
        return None
    return None if entry is None else unpack(*entry)


def _compare_maps(
    one: SourceExample, maps: Sequence[Explanation | None], options: AgreementOptions, unit: str, reference: int | None
) -> ExampleDisagreement:
    present = {place: explanation for place, explanation in enumerate(maps) if explanation is not None}
    explanations = list(present.values())
    aligned = align_maps(explanations, one.input, unit)
    agreement = measure_agreement(aligned.scores, [str(place) for place in present], options)
    pinned = list(present).index(reference) if reference in present else None
    value = None
    if reference is None or pinned is not None:
        value = mean_disagreement(agreement, pinned, find_random(explanations))
    return ExampleDisagreement(one.index, _name(one), value, tuple(_predicted(explanation) for explanation in maps))


def _predicted(explanation: Explanation | None) -> str | None:
    if explanation is None:
        return None
    prediction = explanation.prediction
    return f"{prediction.logits[0]:.3g}" if prediction.regression else prediction.label


def _name(one: SourceExample) -> str:
    if isinstance(one.input, Example):
        return " / ".join(one.input.texts)
    return str(getattr(one.example, "name", "") or one.label or f"picture {one.index}")


def comparison_to_json(
    codes: Sequence[str], explanations: Sequence[Explanation], maps: AlignedMaps, options: AgreementOptions,
    failed: Mapping[str, str],
) -> dict[str, Any]:  # fmt: skip
    """Return the columns in full, their scores on common parts, and their pairwise agreement by both measures.

    Missing values are null. `codes`: codes of the columns that have a map. `failed`: errors of the others by code.
    """
    agreements = {
        measure: measure_agreement(maps.scores, codes, dataclasses.replace(options, measure=measure))
        for measure in MEASURES
    }
    first, random = agreements[MEASURES[0]], find_random(explanations)
    return {
        "columns": [
            {"column": code, **explanation_to_json(one)} for code, one in zip(codes, explanations, strict=True)
        ],
        "failed": [{"column": code, "error": why} for code, why in failed.items()],
        "grid": None if maps.grid is None else list(maps.grid),
        "joined": maps.joined,
        "parts": [
            {"text": part.text, "start": part.start, "end": part.end, "segment": part.segment, "scores": _numbers(row)}
            for part, row in zip(maps.parts, maps.scores.T, strict=True)
        ],
        "agreement": {
            "order": options.order,
            "n": first.n,
            "k": first.k,
            **{measure: [_numbers(row) for row in one.values] for measure, one in agreements.items()},
            "without_order": list(first.constant),
        },
        "disagreement": {measure: mean_disagreement(one, random_rows=random) for measure, one in agreements.items()},
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    """Convert values to floats, with None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]


def search_to_json(
    plan: ComparisonPlan, examples: Sequence[ExampleDisagreement], skipped: Sequence[SkippedMap] = ()
) -> dict[str, Any]:
    """Return the examples of a search as JSON, largest disagreement first, and what was left out."""
    rows = [
        {"index": one.index, "example": one.name, "disagreement": one.value, "predicted": list(one.predicted)}
        for one in examples
    ]
    return {**plan.as_plain(), "found": rows, "left_out": [dataclasses.asdict(one) for one in skipped]}
