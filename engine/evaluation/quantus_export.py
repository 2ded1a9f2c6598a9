"""Export of scores in the format of `quantus.evaluate`: by method and metric, a list with one score per example.

The format is that of Quantus 0.6. Source: Hedström et al. (2023), Quantus: an explainable AI toolkit, JMLR 24.
"""

from __future__ import annotations

import json
from typing import Any

from engine.evaluation.result import Evaluation, ModelEvaluation
from engine.metrics.results import MetricKey

ENDING = "quantus.json"


def quantus_scores(result: ModelEvaluation) -> dict[str, dict[str, Any]]:
    """Scores of one model: `{method: {metric: [score]}}`, in the order of the examples' indices.

    If a metric has several values per example, each has its own list below the metric, as Quantus has them for several
    call arguments: `"10%"` for a curve, `"with METHOD"` for an agreement. None: an example without a value.
    """
    keys = [*((row.of, row.example) for row in result.rows), *((skip.of, skip.example) for skip in result.skips)]
    examples = sorted({example for _, example in keys})
    place = {example: at for at, example in enumerate(examples)}
    lists: dict[MetricKey, list[float | None]] = {}
    for of in dict.fromkeys(of for of, _ in keys):
        lists[of] = [None] * len(examples)
    for row in result.rows:
        lists[row.of][place[row.example]] = row.value
    several = {of.metric for of in lists if of.percent is not None or of.against}
    scores: dict[str, dict[str, Any]] = {}
    for of, values in lists.items():
        own = scores.setdefault(of.method, {})
        if of.metric not in several:
            own[of.metric] = values
        elif of.percent is not None or of.against:  # a skip of a whole curve has no percentage
            own.setdefault(of.metric, {})[f"with {of.against}" if of.against else f"{of.percent}%"] = values
    return scores


def quantus_file(evaluation: Evaluation) -> bytes:
    """The scores as JSON, nested by model if there are several.

    A missing score is NaN in Quantus but null here, since JSON has no NaN.
    """
    by_model = {one.model: quantus_scores(one) for one in evaluation.models}
    plain: dict[str, Any] = next(iter(by_model.values())) if len(by_model) == 1 else by_model
    return (json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


FORMATS = {ENDING: quantus_file}
