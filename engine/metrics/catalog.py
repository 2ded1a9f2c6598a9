"""Catalog of metrics: what each measures, its unit, which direction is better, what it needs, and its source."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine import plugins
from engine.errors import UsageError, unknown

Better = Literal["high", "low", "neither"]
Needs = Literal["nothing", "removal", "marks", "pair", "others", "perturbation"]

Compute = Callable[[np.ndarray, np.ndarray | None], float | None]
COMPUTABLE: tuple[Needs, ...] = ("nothing", "marks")
"""Values of `needs` that a registered metric may have."""

FALL = "drop in probability"
FALL_OF_LOGIT = "drop in logit"
"""Units of metrics that compare the probability or logit of the class with and without some units."""
OF_EXAMPLES = "share of examples"
"""Unit of metrics that are 1 or 0 on each example."""
PERCENTS = tuple(range(0, 101, 10))
"""Percentages of units along a removal curve."""
SHARES = (5, 10, 20, 50)
"""Percentages over which comprehensiveness and sufficiency are averaged."""
K = 5
"""Default k of recall_at_k."""
SAMPLES = 10
"""Default number of perturbed inputs for sensitivity."""
SIDES = {"first": 0, "second": 1}
"""The texts of a pair, such as source and translation, and the segment of their tokens."""


@dataclass(frozen=True)
class Metric:
    """A metric of maps.

    `needs`: `nothing` but the map; predictions with features removed (`removal`); `marks` of the true or human-marked
    units, or marks of one text of a `pair`; maps of other methods (`others`); maps of perturbed inputs
    (`perturbation`). `by_batch`: examples that are processed together share one measurement, so it has no interval.
    `on_request`: it is measured only if it is named. `compute`: for a registered metric, the function from the units'
    scores and marks (None if it needs none) to the value, or to None for an example without one. `package`: the package
    that adds it, with its version.
    """

    id: str
    title: str
    better: Better
    unit: str
    about: str
    citation: str
    needs: Needs
    by_percent: bool = False
    side: str = ""
    by_batch: bool = False
    on_request: bool = False
    compute: Compute | None = None
    package: str = ""

    @property
    def is_share(self) -> bool:
        """Whether its mean is a share of examples, each of which counts as 1 or 0."""
        return self.unit == OF_EXAMPLES


_DEYOUNG = "DeYoung et al. (2020), ERASER, section 5"
_THESIS = "The thesis, section 2.2.3.1"
_SMAT = "Fernandes et al. (2022), SMaT, section 5; Fomicheva et al. (2021), Eval4NLP shared task"
_BHATT = "Bhatt et al. (2020), Evaluating and aggregating feature-based model explanations"

_PLAUSIBILITY = (
    Metric("plausibility_auc", "Plausibility, AUC", "high", "from 0 to 1",
           "The probability that a marked unit scores higher than an unmarked one; 0.5 by chance.", _SMAT, "marks"),
    Metric("plausibility_ap", "Plausibility, average precision", "high", "from 0 to 1",
           "Mean precision at the rank of each marked unit; by chance about the share of marked units.",
           f"{_DEYOUNG}, soft scores", "marks"),
    Metric("token_f1", "Plausibility, F1", "high", "from 0 to 1",
           "F1 of the top units, as many as an average example of the data set has marks.",
           f"{_DEYOUNG}, token-level F1", "marks"),
    Metric("recall_at_k", "Plausibility, recall at k", "high", "from 0 to 1",
           "The share of the marked units that are among the k highest scores.",
           "Manning, Raghavan and Schütze (2008), 8.4",
           "marks"),
)  # fmt: skip


def _of_side(metric: Metric, side: str) -> Metric:
    return Metric(f"{metric.id}_{side}", f"{metric.title}, {side} text", metric.better, metric.unit,
                  f"{metric.about} In the {side} text alone.", metric.citation, "pair", side=side)  # fmt: skip


class MetricCatalog(Mapping[str, Metric]):
    """The metrics by id, those of plugins last. Plugins are loaded when the catalog is first read."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = dict(metrics)

    def register(self, metric: Metric) -> Callable[[Compute], Compute]:
        """Return a decorator that registers the function of a metric from scores and marks, under a new id.

        Errors: the id is taken, or the metric needs more than a map and its marks.
        """

        def enter(compute: Compute) -> Compute:
            if metric.id in self._metrics:
                raise UsageError(f"metric {metric.id!r} is registered twice")
            if metric.needs not in COMPUTABLE or metric.by_percent:
                raise UsageError(f"needs of metric {metric.id}: must be one of {', '.join(COMPUTABLE)}")
            plugin = plugins.registering("metrics", metric.id, functools.partial(self._metrics.pop, metric.id, None))
            if plugin is not None:
                guarded = plugins.guarded(compute, plugin, f"metric {metric.id}: failed")
                self._metrics[metric.id] = replace(metric, compute=guarded, package=plugin.source)
            else:
                self._metrics[metric.id] = replace(metric, compute=compute)
            return compute

        return enter

    def __getitem__(self, id: str) -> Metric:
        plugins.load("metrics")
        return self._metrics[id]

    def __iter__(self) -> Iterator[str]:
        plugins.load("metrics")
        return iter(self._metrics)

    def __len__(self) -> int:
        plugins.load("metrics")
        return len(self._metrics)


METRICS = MetricCatalog({
    metric.id: metric
    for metric in (
        Metric("comprehensiveness", "Comprehensiveness", "high", FALL,
               "The drop in the class probability when the units with the highest scores are removed.",
               _DEYOUNG, "removal"),
        Metric("sufficiency", "Sufficiency", "low", FALL,
               "The drop in the class probability when only the units with the highest scores remain.",
               _DEYOUNG, "removal"),
        Metric("comprehensiveness_logit", "Comprehensiveness, logit", "high", FALL_OF_LOGIT,
               "The drop in the class logit when the units with the highest scores are removed; informative where "
               "the probability is saturated near 1.",
               f"{_DEYOUNG}, with the logit in place of the probability", "removal", on_request=True),
        Metric("sufficiency_logit", "Sufficiency, logit", "low", FALL_OF_LOGIT,
               "The drop in the class logit when only the units with the highest scores remain; informative where "
               "the probability is saturated near 1.",
               f"{_DEYOUNG}, with the logit in place of the probability", "removal", on_request=True),
        Metric("without_top", "Probability without the top units", "low", "probability",
               "The class probability after a share of the units, highest scores first, is removed.",
               "Samek et al. (2017), section III", "removal", by_percent=True),
        Metric("with_top", "Probability with only the top units", "high", "probability",
               "The class probability when only a share of the units, highest scores first, remains.",
               "Petsiuk et al. (2018), section 3.3", "removal", by_percent=True),
        Metric("gt_overlap", "Overlap with the marks", "high", OF_EXAMPLES,
               "How often the |L| highest scores are exactly the marked units L.", _THESIS, "marks"),
        Metric("gt_share", "Share of the marks found", "high", "from 0 to 1",
               "The share of the marked units L among the |L| highest scores.", _THESIS, "marks"),
        Metric("mean_rank", "Mean rank", "low", "rank",
               "The smallest r such that the r highest scores contain all marked units.", _THESIS, "marks"),
        Metric("mean_rank_pct", "Mean rank, normalized", "low", "share of the units",
               "The mean rank divided by the number of units.", _THESIS, "marks"),
        Metric("truth_mass", "Score mass on the marks", "high", "from 0 to 1",
               "The share of the total absolute score that lies on the marked units.",
               "Arras, Osman and Samek (2022), CLEVR-XAI, relevance mass accuracy", "marks"),
        *_PLAUSIBILITY,
        *(_of_side(metric, side) for side in SIDES for metric in _PLAUSIBILITY),
        Metric("rank_spearman", "Rank agreement", "neither", "rho",
               "Spearman's rho with the signed scores of another method's map.", "Spearman (1904)", "others"),
        Metric("rank_top_k", "Top-15% agreement", "neither", "from 0 to 1",
               "The share of the top 15% of units that is also in the top 15% of another method's map.",
               "The thesis, section 3.5", "others"),
        Metric("complexity", "Complexity", "low", "nats",
               "Entropy of the units' shares of the total absolute score; 0 if one unit has it all.",
               f"{_BHATT}, complexity", "nothing"),
        Metric("sensitivity", "Sensitivity", "low", "relative change",
               "The largest change of the map under small changes of the input that keep the prediction.",
               f"Yeh et al. (2019), On the (in)fidelity and sensitivity of explanations, SENS_MAX; {_BHATT}",
               "perturbation"),
        Metric("evaluations", "Model evaluations", "low", "per example",
               "The number of model evaluations for the map.", "", "nothing"),
        Metric("seconds", "Seconds", "low", "per example",
               "The time to compute the map, ensemble members included; it depends on the load of the machine.",
               "", "nothing", by_batch=True),
    )
})  # fmt: skip
register = METRICS.register


AREAS = {"without_top": "comprehensiveness", "with_top": "sufficiency"}
"""The metric that is the mean drop over a removal curve, by the curve."""


def is_favored(tuned: str | None, metric: str) -> bool:
    """Whether `metric` favors methods that are tuned on `tuned`: the same metric, or the mean over the same curve."""
    return tuned is not None and metric in (tuned, AREAS.get(tuned))


def metric(id: str) -> Metric:
    """Return the metric with this id. Errors: an unknown id; the known ones are listed."""
    if id not in METRICS:
        raise unknown("metric", id, METRICS)
    return METRICS[id]
