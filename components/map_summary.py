"""One sentence on the maps of an input: the feature that most methods rank highly, and how well their rankings agree.

Only maps that rank the features count. The sentence names the shown maps that it leaves out: random baselines and maps
of equal scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np
import streamlit as st

from components.numbers import count, hundredths, plural
from engine.format import join_names
from engine.metrics.ranking import FeatureScores, average_ranks, is_constant, spearman_of_pairs
from engine.registry import Explainer
from engine.result import Explanation
from engine.word_units import BASELINE

TOP = 3
"""Features with the highest scores that count as the top of a map: at most a third of all, at least one."""
LEVELS = ((0.0, "disagree"), (0.3, "agree little"), (0.7, "agree in part"), (1.1, "largely agree"))
"""How far rankings agree, by an upper bound of the median of Spearman's rho."""


def draw_map_summary(
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
    scores: Callable[[Explanation], FeatureScores],
    names: Sequence[str],
    unit: str,
) -> None:
    """Draw the sentence on these maps; nothing with fewer than two that rank the features.

    `scores`: of the features of a map; `names`: those of the features.
    """
    counted = [scores(one) for id, one in explanations.items() if methods[id].family != BASELINE]
    baselines = [methods[id].title for id in explanations if methods[id].family == BASELINE]
    if sentence := summary_html(counted, names, unit, baselines):
        st.html(sentence)


def summary_html(
    maps: Sequence[FeatureScores],
    names: Sequence[str],
    unit: str,
    baselines: Sequence[str] = (),
) -> str:
    """The sentence with its names escaped; empty for fewer than two maps that rank at least two features.

    `baselines`: the titles of shown maps that are not among `maps`.
    """
    ranked = [scores for scores in maps if len(scores) > 1 and not is_constant(scores)]
    if len(ranked) < 2:
        return ""
    left_out = [escape(title) for title in baselines]
    if len(maps) > len(ranked):
        left_out.append(f"{count(len(maps) - len(ranked), 'method')} with equal scores")
    not_counted = f" Not counted: {', '.join(left_out)}." if left_out else ""
    top, agreement = _describe_top(ranked, names, unit), describe_agreement(ranked)
    return f'<div class="xg"><p class="xg-summary">{top} {agreement}{not_counted}</p></div>'


def count_in_top(maps: Sequence[FeatureScores], k: int) -> list[int]:
    """Maps that have a feature among their k highest scores, for each feature; a tie across the limit never."""
    return [sum(int((scores >= scores[at]).sum()) <= k for scores in maps) for at in range(len(maps[0]))]


def describe_agreement(maps: Sequence[FeatureScores]) -> str:
    """The median and range of Spearman's rho over all pairs of maps that rank the features."""
    values = spearman_of_pairs(maps)
    median = float(np.median(values))
    level = next(word for bound, word in LEVELS if median < bound)
    if len(values) == 1:
        return f"Rankings {level}: Spearman ρ {hundredths(median)}."
    ends = f"{hundredths(min(values))} to {hundredths(max(values))}"
    return f"Rankings {level}: median Spearman ρ {hundredths(median)} ({len(values)} pairs: {ends})."


def _describe_top(maps: Sequence[FeatureScores], names: Sequence[str], unit: str) -> str:
    n = len(names)
    k = min(TOP, max(1, n // TOP))
    counts = count_in_top(maps, k)
    if max(counts) < 2 and k == 1:
        return f"No two methods put the same {unit} at the top of {n} {plural(unit)}."
    if max(counts) < 2:
        return f"No {unit} is among the top {k} of {n} {plural(unit)} for more than one of {len(maps)} methods."
    leads = list(zip(counts, count_in_top(maps, 1), strict=True))  # more first places come first
    mean_rank = np.mean([average_ranks(scores) for scores in maps], axis=0)
    best, *others = sorted((at for at in range(n) if leads[at] == max(leads)), key=lambda at: -mean_rank[at])
    also = join_names([f"“<bdi>{escape(names[at])}</bdi>”" for at in others[:TOP]]) if others else ""
    more = f" and {len(others) - TOP} more" if len(others) > TOP else ""
    name = f"“<bdi>{escape(names[best])}</bdi>”{f' (also {also}{more})' if others else ''}"
    if k == 1:
        return f"{max(counts)} of {len(maps)} methods put {name} at the top of {n} {plural(unit)}."
    return f"{max(counts)} of {len(maps)} methods rank {name} in the top {k} of {n} {plural(unit)}."
