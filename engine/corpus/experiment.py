"""The steps of the experiment `corpus`: test which words or patches matter over a data set, by class and slice.

`engine.corpus.statistics` describes the test. Over words, Benjamini and Hochberg's procedure controls the false
discovery rate, as in Burns et al. (2020), Interpreting black box models via hypothesis testing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.corpus import scores
from engine.corpus.plan import CorpusPlan
from engine.corpus.scores import ExampleScores, methods_of, score_examples, score_key
from engine.corpus.statistics import word_statistics
from engine.data.labels import PROMPT_LABELS, match_classes
from engine.data.sources import ExampleSource, SourceExample
from engine.errors import ExegesisError, one_line
from engine.experiments.base import ExperimentResult, Units
from engine.experiments.run import carry_out
from engine.experiments.sample import GROUP_SIZE, Sample, bisect_failures, draw_sample
from engine.jobs.kinds import WorkUnit, batched_units, unreadable_key
from engine.predictions import VERSION as PREDICTION_VERSION
from engine.progress import CancelToken, Report, silent
from engine.result import OTHERS
from engine.significance.false_discovery import adjusted_p_values, shortage

VERSIONS = [2, scores.VERSION, PREDICTION_VERSION]
COLUMNS = {
    "model": str, "dataset": str, "slice": str, "method": str, "word": str, "examples": int, "occurrences": int,
    "metric": str, "value": float, "low": float, "high": float, "p_value": float, "adjusted_p_value": float,
}  # fmt: skip
"""Columns of the rows. `value`: mean score of the word. `low`, `high`: its 95% interval."""
Result = ExperimentResult
ALL, CORRECT, WRONG = "all examples", "correct", "wrong"


@dataclass(frozen=True, eq=False)
class CorpusWords:
    """Statistics of the words that occur in enough examples, by slice. NaN: too few examples of a slice have the word.

    `counts`: number of examples with the word. `occurrences`: how often it occurs in them. `means`: mean score for the
    explained class, in the unit of the method; `low`, `high`: its 95% interval. `sizes`: number of examples of each
    slice. `failed`: errors by example. `cut`: number of examples with words that the model does not read; these words
    are left out.
    """

    model: str
    dataset: str
    examples: tuple[int, ...]
    slices: tuple[str, ...]
    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    words: tuple[str, ...]
    permutations: int
    counts: Int[np.ndarray, "slice word"]
    occurrences: Int[np.ndarray, "slice word"]
    means: Float[np.ndarray, "slice method word"]
    low: Float[np.ndarray, "slice method word"]
    high: Float[np.ndarray, "slice method word"]
    p_values: Float[np.ndarray, "slice method word"]
    failed: dict[int, str]
    complete: bool
    cut: int = 0

    def tested(self, slice: str) -> Bool[np.ndarray, "word"]:
        """Whether each word is in enough examples of the slice to be tested."""
        there: np.ndarray = np.isfinite(self.p_values[self.slices.index(slice), 0])
        return there

    def shortage(self, slice: str, rate: float) -> str:
        """Return a warning if there are too few permutations for a single word to be significant, else ""."""
        return shortage(int(self.tested(slice).sum()), self.permutations, rate, drawn="permutations")

    def adjusted(self, slice: str, method: str) -> Float[np.ndarray, "word"]:
        """Return the adjusted p-values of a slice: the false discovery rate at which each word becomes significant.

        NaN: the word is not tested.
        """
        p_values = self.p_values[self.slices.index(slice), self.methods.index(method)]
        adjusted, tested = np.full(len(self.words), np.nan), self.tested(slice)
        adjusted[tested] = adjusted_p_values(p_values[tested])
        return adjusted


ModelResult = CorpusWords


def corpus(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str] | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> ExperimentResult:
    """Test which words or patches matter to each model over a data set. `more`: other fields of the plan."""
    given = {} if methods is None else {"methods": tuple(methods)}
    plan = CorpusPlan(tuple(models), dataset, **given, **more)  # type: ignore[arg-type]
    result: ExperimentResult = carry_out(plan, report, cancel)
    return result


def check(plan: CorpusPlan) -> None:
    """Check nothing: the fields of the plan need no further checks."""


def sample(plan: CorpusPlan) -> Sample:
    """Draw the examples by the seed of the plan. Errors: those of reading the data set."""
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def units(plan: CorpusPlan, sample: Sample) -> Units:
    """Return one unit of work per example. A worker of a cluster takes `GROUP_SIZE` of them at a time."""
    return Units(_units(plan, sample))


def _units(plan: CorpusPlan, sample: Sample) -> Iterator[WorkUnit]:
    [model] = plan.models
    keys = [_key(plan, sample, index) for index in sample.indices]
    labels = [f"example {index}, {model}" for index in sample.indices]

    def work(indices: list[int]) -> None:
        score_examples(plan, [sample.source.read(index) for index in indices])

    each = batched_units(keys, list(sample.indices), labels, work, f"Scores of words by {model}")
    for place, unit in enumerate(each):
        yield dataclasses.replace(unit, group=[place // GROUP_SIZE])


def _key(plan: CorpusPlan, sample: Sample, index: int) -> str:
    try:
        return score_key(plan, sample.source.read(index))
    except ExegesisError as error:
        return unreadable_key("corpus", {"dataset": plan.dataset, "index": index}, error)


def assemble(plan: CorpusPlan, sample: Sample, report: Report) -> CorpusWords:
    """Compute the result on one model: the scores of all examples, cached or computed, and their statistics."""
    scored: dict[int, ExampleScores] = {}
    given: dict[int, SourceExample] = {}
    failed: dict[int, str] = {}
    for group in sample.groups():
        report(len(scored), len(sample.indices), f"words of {sample.source.name}")
        readable = [one for one in group if isinstance(one, SourceExample)]
        failed |= {one.index: one.why for one in group if not isinstance(one, SourceExample)}
        for one, result in zip(readable, bisect_failures(partial(score_examples, plan), readable), strict=True):
            if isinstance(result, ExegesisError):
                failed[one.index] = one_line(result)
            else:
                scored[one.index], given[one.index] = result, one
    slices = slices_of(sample.source, list(given.values()), list(scored.values()))
    methods = methods_of(plan)
    table = word_statistics(list(scored.values()), list(slices.values()), plan.least, len(methods), plan.seed, report)
    return CorpusWords(
        plan.models[0], plan.dataset, tuple(scored), tuple(slices), tuple(int(own.sum()) for own in slices.values()),
        methods, **vars(table), failed=failed, complete=not failed,
        cut=sum(one.unread > 0 for one in scored.values()),
    )  # fmt: skip


def slices_of(
    source: ExampleSource, examples: Sequence[SourceExample], scored: Sequence[ExampleScores]
) -> dict[str, Bool[np.ndarray, "example"]]:
    """Return the examples of each slice: all, by predicted class, by label, and by whether the prediction is correct.

    Slices that are undefined are left out, for example without classes or if the classes do not match those of the
    model, and so are empty ones. The classes of a set of prompts are the answer and the other token; if each prompt has
    classes of its own, there are no slices by class.
    """
    slices = {ALL: np.ones(len(scored), dtype=bool)}
    if not scored or scored[0].regression:
        return slices
    labels, predicted = scored[0].labels, np.array([one.predicted for one in scored])
    if source.labels == PROMPT_LABELS and all(len(one.labels) == len(PROMPT_LABELS) for one in scored):
        labels = PROMPT_LABELS
    elif OTHERS in labels or any(one.labels != labels for one in scored):
        return slices
    slices |= {f"predicted {label}": predicted == at for at, label in enumerate(labels)}
    classes = match_classes(source.labels, labels, source.unnamed).indices
    if classes is not None:
        own = [one.class_index for one in examples]
        true = np.array([-1 if at is None or classes[at] is None else classes[at] for at in own], dtype=np.int64)
        slices |= {f"labeled {label}": true == at for at, label in enumerate(labels)}
        slices |= {CORRECT: true == predicted, WRONG: (true >= 0) & (true != predicted)}
    return {name: own for name, own in slices.items() if own.any()}


def rows(found: CorpusWords) -> Iterator[dict[str, Any]]:
    """Yield a row for each slice, method and tested word."""
    for at, name in enumerate(found.slices):
        for place, method in enumerate(found.methods):
            adjusted = found.adjusted(name, method)
            for word in np.flatnonzero(found.tested(name)).tolist():
                cell = (at, place, word)
                yield {
                    "model": found.model, "dataset": found.dataset, "slice": name, "method": method,
                    "word": found.words[word], "examples": int(found.counts[at, word]),
                    "occurrences": int(found.occurrences[at, word]), "metric": "mean_score",
                    "value": float(found.means[cell]), "low": float(found.low[cell]), "high": float(found.high[cell]),
                    "p_value": float(found.p_values[cell]), "adjusted_p_value": float(adjusted[word]),
                }  # fmt: skip


def to_json(result: ExperimentResult) -> dict[str, Any]:
    """Convert a result to JSON: the plan, and for each model its slices with their sizes, rows and failed examples."""
    return {
        "plan": result.plan.as_plain(),
        "models": [
            {
                "model": one.model,
                "dataset": one.dataset,
                "slices": dict(zip(one.slices, one.sizes, strict=True)),
                "permutations": one.permutations,
                "cut": one.cut,
                "failed": {str(index): why for index, why in one.failed.items()},
                "rows": list(rows(one)),
            }
            for one in result.models
        ],
    }
