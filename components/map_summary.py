"""One sentence on the maps of an input: the feature that most methods rank highly, and how well their rankings agree.

Only maps that rank the features count: random baselines and maps of equal scores are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np
import streamlit as st

from components.numbers import count, hundredths, percent, plural, signed
from engine.metrics.ranking import FeatureScores, average_ranks, is_constant, spearman
from engine.registry import Explainer
from engine.result import Explanation, Prediction
from engine.word_units import BASELINE

TOP = 3
"""Features with the highest scores that count as the top of a map."""
LEVELS = ((0.0, "disagree"), (0.3, "agree little"), (0.7, "agree in part"), (1.1, "largely agree"))
"""How far rankings agree, by an upper bound of the median of Spearman's rho."""


def draw_map_summary(
    probe: Explanation,
    target: int,
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
    scores: Callable[[Explanation], FeatureScores],
    names: Sequence[str],
    unit: str,
) -> None:
    """Draw the sentence on these maps; nothing with fewer than two that rank the features.

    `target`: the explained class. `scores`: of the features of a map; `names`: those of the features.
    """
    ranked = [scores(one) for id, one in explanations.items() if methods[id].family != BASELINE]
    if sentence := summary_html(probe.prediction, target, ranked, names, unit):
        st.html(sentence)


def summary_html(
    prediction: Prediction, target: int, maps: Sequence[FeatureScores], names: Sequence[str], unit: str
) -> str:
    """The sentence with its names escaped; empty for fewer than two maps that rank at least two features."""
    ranked = [scores for scores in maps if len(scores) > 1 and not is_constant(scores)]
    if len(ranked) < 2:
        return ""
    left_out = len(maps) - len(ranked)
    equal = f" {count(left_out, 'method')} left out: equal scores everywhere." if left_out else ""
    top, agreement = _describe_top(ranked, names, unit), describe_agreement(ranked)
    explained = _describe_class(prediction, target)
    return f'<div class="xg"><p class="xg-summary"><b>{explained}.</b> {top} {agreement}{equal}</p></div>'


def count_in_top(maps: Sequence[FeatureScores], k: int) -> list[int]:
    """Maps that have a feature among their k highest scores, for each feature; a tie across the limit never."""
    return [sum(int((scores >= scores[at]).sum()) <= k for scores in maps) for at in range(len(maps[0]))]


def describe_agreement(maps: Sequence[FeatureScores]) -> str:
    """The median and range of Spearman's rho over all pairs of maps that rank the features."""
    values = [rho for a, b in itertools.combinations(maps, 2) if (rho := spearman(a, b)) is not None]
    median = float(np.median(values))
    level = next(word for bound, word in LEVELS if median < bound)
    if len(values) == 1:
        return f"Rankings {level}: Spearman ρ {hundredths(median)}."
    ends = f"{hundredths(min(values))} to {hundredths(max(values))}"
    return f"Rankings {level}: median Spearman ρ {hundredths(median)} over {len(values)} pairs ({ends})."


def _describe_class(prediction: Prediction, target: int) -> str:
    if prediction.regression:
        return f"Score {signed(prediction.logits[0])}"
    return f"<bdi>{escape(prediction.labels[target])}</bdi>, {escape(percent(prediction.probabilities[target]))}"


def _describe_top(maps: Sequence[FeatureScores], names: Sequence[str], unit: str) -> str:
    n = len(names)
    k = TOP if n > TOP else 1
    counts = count_in_top(maps, k)
    if max(counts) < 2 and k == 1:
        return f"No two methods put the same {unit} at the top of {n} {plural(unit)}."
    if max(counts) < 2:
        return f"No {unit} is among the top {k} of {n} {plural(unit)} for more than one of {len(maps)} methods."
    mean_rank = np.mean([average_ranks(scores) for scores in maps], axis=0)
    best = max(range(n), key=lambda at: (counts[at], mean_rank[at]))
    place = f"their top {k} of {n} {plural(unit)}" if k > 1 else f"the top of {n} {plural(unit)}"
    verb = f"rank “<bdi>{escape(names[best])}</bdi>” in" if k > 1 else f"put “<bdi>{escape(names[best])}</bdi>” at"
    return f"{max(counts)} of {len(maps)} methods {verb} {place}."
