"""Evaluations of a few numbers, written by hand: what views and charts of them show can be told beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import Evaluation, ExampleFacts, ModelEvaluation
from engine.metrics.results import MetricKey, MetricRow, MetricSkip

Key = tuple[str, str, str] | tuple[str, str, str, int]
"""Model, method and metric, along a curve the percent."""
Found = Sequence[int | float | str]
"""Of examples 0, 1, ...: the value, or why there is none."""


def by_hand(
    found: Mapping[Key, Found],
    facts: Sequence[ExampleFacts] = (),
    dataset: str = "reviews",
    metrics: Sequence[str] = (),
) -> Evaluation:
    """Models, methods and metrics are those that the keys name, in their order, and `metrics` besides."""
    models, methods, named = (tuple(dict.fromkeys(key[place] for key in found)) for place in range(3))
    plan = EvaluationPlan(models, dataset, methods, (*named, *metrics), unit="token")  # type: ignore[arg-type]
    rows, skips = list[MetricRow](), list[MetricSkip]()
    for (model, method, metric, *percent), values in found.items():
        of = MetricKey(model, dataset, method, metric, "", *percent)
        for example, value in enumerate(values):
            if isinstance(value, str):
                skips.append(MetricSkip(of, example, value))
            else:
                rows.append(MetricRow(of, example, float(value)))
    return evaluation(plan, rows, skips, facts)


def by_two_operators(
    first: Mapping[Key, Found], second: Mapping[Key, Found], operators: tuple[str, str] = ("mask", "delete")
) -> Evaluation:
    """The values by each operator. Models are ones that there are, so that what methods use themselves is known."""
    one, other = (by_hand(values) for values in (first, second))
    plan = replace(one.plan, removal=operators[0], second_removal=operators[1])
    pairs = zip(one.models, other.models, strict=True)
    models = (replace(a, removal=operators[0]).with_second(operators[1], b.rows, b.skips) for a, b in pairs)
    return Evaluation(plan, tuple(models))


def evaluation(
    plan: EvaluationPlan,
    rows: Sequence[MetricRow],
    skips: Sequence[MetricSkip] = (),
    facts: Sequence[ExampleFacts] = (),
) -> Evaluation:
    """These values, each on its model."""
    return Evaluation(
        plan,
        tuple(
            ModelEvaluation(
                model,
                plan.dataset,
                tuple(row for row in rows if row.of.model == model),
                tuple(skip for skip in skips if skip.of.model == model),
                tuple(one for one in facts if one.model == model),
            )
            for model in plan.models
        ),
    )


def fact(
    example: int, label: str | None = "good", right: bool | None = True, length: int = 5, model: str = "m",
    marked: bool | None = None,
) -> ExampleFacts:  # fmt: skip
    """One example as a model sees it."""
    extra = {} if marked is None else {"marked": marked}
    return ExampleFacts(model, example, label, "good", 0.9, right, length, extra)
