"""What is said of an evaluation: what its numbers are measured against, what was left out, what each metric means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from components.evaluate.board import BETTER
from components.numbers import count
from engine.evaluation.plan import removal_of
from engine.metrics.catalog import METRICS

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan
    from engine.evaluation.result import Evaluation
    from engine.metrics.results import MetricSkip

TRUTH = (
    "Against the truth: this data set was made so that it says exactly what decides. Overlap, rank and plausibility "
    "tell how well a map finds that, as far as the model has learned it."
)
PEOPLE = (
    "Against people's marks: overlap, rank and plausibility tell how well a map agrees with what people marked, which "
    "need not be what the model uses."
)
NEITHER = "This data set marks nothing, so nothing is measured against a truth or against people."
MODEL = (
    "Against the model: comprehensiveness, sufficiency and removal curves tell how much the model loses, whatever "
    "people think."
)
MARKED = ("marks", "pair")
NAMED = 2
"""So many methods are named; of more it is said how many."""


def measured_against(found: Evaluation, exact: bool) -> list[str]:
    """A sentence for each thing that the metrics compare with."""
    needs = {METRICS[id].needs for id in found.plan.metrics}
    marks = (TRUTH if exact else PEOPLE) if needs & set(MARKED) else NEITHER
    return [marks, *([MODEL] if "removal" in needs else [])]


def how(plan: Plan, size: int) -> str:
    """How it was done, in one sentence of numbers and our own words."""
    shares = ", ".join(map(str, plan.shares))
    removed = f"{plan.units}s removed by {removal_of(plan)}; means over {shares} % removed"
    if plan.units == "patch":
        removed = removed.replace("patchs", "patches")
    return f"{count(size, 'example')}, seed {plan.seed}; {removed}."


def without_words(skips: Sequence[MetricSkip], titles: Mapping[str, str]) -> str:
    """Which methods lack a value on some of the examples, by how many metrics; of many only how many methods."""
    by: dict[str, set[str]] = {}
    for skip in skips:
        by.setdefault(skip.of.method, set()).add(skip.of.metric)
    named = [f"{titles.get(one, one)} (by {count(len(metrics), 'metric')})" for one, metrics in by.items()]
    what = ", ".join(named) if len(named) <= NAMED else count(len(named), "method")
    return f"Values that are missing, and why: {what}"


def left_out(skips: Sequence[MetricSkip], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """For each reason: how many examples of each model, by which methods and metrics; the commonest first."""
    by: dict[tuple[str, str], list[MetricSkip]] = {}
    for skip in skips:
        by.setdefault((skip.reason, skip.of.model), []).append(skip)
    examples = {reason: {one.example for one in own} for reason, own in by.items()}
    ordered = sorted(by, key=lambda reason: -len(examples[reason]))
    return [
        (why, f"{count(len(examples[why, of]), 'example')} on {of}", _of(by[why, of], titles)) for why, of in ordered
    ]


def metrics_html(metrics: Sequence[str]) -> str:
    """What each metric is, which way is better, and who it is from."""
    rows = "".join(f"<dt>{escape(METRICS[id].title)}</dt><dd>{_meaning(id)}</dd>" for id in metrics)
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl></div>'


def _meaning(id: str) -> str:
    of = METRICS[id]
    cited = f" <cite>{escape(of.citation)}</cite>" if of.citation else ""
    return f"{escape(of.about)} {escape(of.unit.capitalize())}; {BETTER[of.better]}.{cited}"


def _of(skips: Sequence[MetricSkip], titles: Mapping[str, str]) -> str:
    methods = ", ".join(titles.get(one, one) for one in dict.fromkeys(skip.of.method for skip in skips))
    metrics = ", ".join(METRICS[one].title.lower() for one in dict.fromkeys(skip.of.metric for skip in skips))
    return f"{methods}: {metrics}"
