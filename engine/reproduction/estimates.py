"""Numbers of the thesis's claims: from values by example to a contrast with its intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.metrics.results import Interval
from engine.reproduction.claims import Claim, Contrast, MethodTerm
from engine.reproduction.intervals import mean_interval, range_of_sum, sum_interval, variance_intervals
from engine.reproduction.measures import Source, ceiling_measure, measure
from engine.reproduction.query import NoNumber, interval_number
from engine.reproduction.report import ClaimNumber
from engine.reproduction.scales import EMBEDDED, Scale
from engine.reproduction.verdicts import CEILING_WIDTH, ERROR_RATE, ROUNDING, Margin

ValueKey = tuple[str, str, str, str]
"""Key of the data set (or task), part that a model plays, method, metric."""
ExampleValues = Mapping[int, float]
"""Values by example."""


@dataclass(frozen=True)
class ExampleFindings:
    """`values`: by data set, part, method and metric. `absent`: why the model of a part has none of a source."""

    values: Mapping[ValueKey, ExampleValues]
    absent: Mapping[tuple[str, str, Source], str] = field(default_factory=dict)
    scale: Scale = EMBEDDED

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        return entries_at(self.scale, claim)

    def missing(self, claim: Claim) -> str:
        terms = [term for entry in self.entries(claim) for contrast in entry for term in contrast.terms]
        needed = dict.fromkeys(
            (term.task, model, measure(term.metric).source) for term in terms for model in term.models
        )
        return " ".join(dict.fromkeys(self.absent[part] for part in needed if part in self.absent))

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        result = estimate(contrast, self.values, seed, (ERROR_RATE, *error_rates))
        at_best = self._at_best(contrast)
        return interval_number(claim, contrast, result.value, result.intervals, result.n, error_rates, at_best)

    def _at_best(self, contrast: Contrast) -> bool:
        """Whether each method on each model has the best mean that its score can have, or one that is hardly below."""
        keys = [
            (term.task, model, method, ceiling_measure(term.metric))
            for term in contrast.terms
            for model in term.models
            for method in term.methods
        ]
        means = [sum(own.values()) / len(own) if (own := self.values.get(key)) else None for key in keys]
        return all(
            mean is not None and mean >= measure(key[3]).high - CEILING_WIDTH - ROUNDING
            for key, mean in zip(keys, means, strict=True)
        )


def entries_at(scale: Scale, claim: Claim) -> list[tuple[Contrast, ...]]:
    """The claim's entries with the data sets that stand in for its tasks, each once; two tasks may have the same."""
    keys = {task: data.key for task, data in scale.tasks.items()}

    def place(contrast: Contrast) -> Contrast:
        terms = tuple(replace(term, task=keys[term.task]) for term in contrast.terms)
        name = ", ".join(keys.get(word, word) for word in contrast.name.split(", "))
        return replace(contrast, name=name, terms=terms)

    return list(dict.fromkeys(tuple(place(contrast) for contrast in choices) for choices in claim.entries))


@dataclass(frozen=True)
class Estimate:
    """`intervals`: one for each error rate. `n`: examples that have all the values; of two data sets the smaller n."""

    value: float
    intervals: tuple[Interval, ...]
    n: int


def estimate(
    contrast: Contrast,
    values: Mapping[ValueKey, ExampleValues],
    seed: int,
    error_rates: Sequence[float] = (ERROR_RATE,),
) -> Estimate:
    """Estimate a contrast by pairs: only examples count that have a value in every cell of their task.

    Means over methods and models are taken within an example (`intervals.mean_interval`); of variances between models
    see `intervals.variance_intervals`. Tasks have examples of their own, and their intervals are summed.
    """
    tasks = dict.fromkeys(term.task for term in contrast.terms)
    of_tasks = ([term for term in contrast.terms if term.task == task] for task in tasks)
    parts = [_task_estimate(terms, contrast.oriented, values, seed, error_rates) for terms in of_tasks]
    if len(parts) == 1:
        return parts[0]
    each = [part.value for part in parts]
    total = sum(each)
    intervals = zip(*(part.intervals for part in parts), strict=True)
    return Estimate(total, tuple(sum_interval(total, each, own) for own in intervals), min(part.n for part in parts))


def _task_estimate(
    terms: Sequence[MethodTerm],
    oriented: bool,
    values: Mapping[ValueKey, ExampleValues],
    seed: int,
    error_rates: Sequence[float],
) -> Estimate:
    keys = [
        [[(term.task, model, method, term.metric) for method in term.methods] for model in term.models]
        for term in terms
    ]
    examples = _shared_examples([key for term in keys for model in term for key in model], values)
    columns = [np.stack([_mean(model, values, examples) for model in term], axis=1) for term in keys]
    signs = [-1 if oriented and measure(term.metric).better == "low" else 1 for term in terms]
    weights = [term.times * sign for term, sign in zip(terms, signs, strict=True)]
    if terms[0].take == "variance":
        return Estimate(*variance_intervals(columns, weights, error_rates), len(examples))
    sums = np.stack([own.mean(axis=1) for own in columns], axis=1) @ np.array(weights, dtype=np.float64)
    ends = range_of_sum(terms, weights)
    intervals = tuple(mean_interval(sums, ends, terms, seed, rate) for rate in error_rates)
    return Estimate(float(sums.mean()), intervals, len(examples))


def _shared_examples(keys: Sequence[ValueKey], values: Mapping[ValueKey, ExampleValues]) -> list[int]:
    for key in keys:
        if not values.get(key):
            _, model, method, metric = key
            raise NoNumber(f"no example has a value of {metric} of {method} on {model}.")
    examples = sorted(set.intersection(*(set(values[key]) for key in keys)))
    if len(examples) < 2:
        raise NoNumber("fewer than two examples have all the numbers.")
    return examples


def _mean(keys: Sequence[ValueKey], values: Mapping[ValueKey, ExampleValues], examples: Sequence[int]) -> np.ndarray:
    return np.mean([[values[key][example] for example in examples] for key in keys], axis=0)
