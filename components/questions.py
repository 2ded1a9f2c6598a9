"""Comparison of the maps of an example: a summary sentence, and on request removal curves and agreement.

The sentence names the feature that most methods rank highly and describes how well their rankings agree. Maps that do
not rank the features (random baselines and maps of equal scores) are not counted, which the sentence mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from jaxtyping import Float

from components.ablation import TIED, QuestionWords
from components.compute import explain
from components.controls import PERSIST
from components.errors import describe_error, show_error, show_note
from components.method_row import explained_name, quoted_html
from components.numbers import count, hundredths, plural
from components.palette import browser_theme
from components.prediction import PROBE
from components.state import MEASURES, QUESTIONS, PageState
from engine.format import join_names
from engine.lazy import LazyModule
from engine.metrics.ranking import FeatureScores, average_ranks, is_constant, spearman_of_pairs
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation
from engine.word_units import BASELINE

if TYPE_CHECKING:
    from components.charts import comparisons
    from engine.metrics import agreement, faithfulness
    from engine.metrics.agreement import Agreement
    from engine.metrics.faithfulness import RemovalCurve
else:  # charts and metrics take long to import, and most visits need neither
    comparisons = LazyModule("components.charts.comparisons")
    agreement, faithfulness = LazyModule("engine.metrics.agreement"), LazyModule("engine.metrics.faithfulness")

TOP = 3
"""Number of features in the top of a map; at most a third of all features, but at least one."""
LEVELS = ((0.0, "disagree"), (0.3, "agree little"), (0.7, "agree in part"), (1.1, "largely agree"))
"""Descriptions of the agreement of rankings, by an upper bound of the median of Spearman's rho."""

COLUMNS_OF_TWO = 2
"""Number of columns of a legend if two charts are side by side."""
AREAS_WIDTH, AREA_WIDTH = 220, 200
"""Width of the table of areas in pixels: of the column of methods, and of each column of areas."""
READINGS = {
    "deletion": (
        "How the {value} changes when the {units} that a map scores highest are removed first. A line that falls "
        "sooner than Random's shows that the model relies on these {units}; a smaller area means a sooner fall. "
    ),
    "insertion": (
        "Insertion starts with all {units} removed and restores the highest-scored ones first. A line that rises "
        "sooner than Random's shows that these {units} are enough for the model; a larger area means a sooner rise. "
    ),
}
SOURCES = {
    ("deletion",): "(Samek et al., 2017; DeYoung et al., 2020)",
    ("deletion", "insertion"): "(Samek et al., 2017; Petsiuk et al., 2018; DeYoung et al., 2020)",
}
Maps = Mapping[str, Explanation]


def draw_map_summary(
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
    scores: Callable[[Explanation], FeatureScores],
    names: Sequence[str],
    unit: str,
    words: Sequence[str] = (),
) -> None:
    """Draw the summary sentence of the maps; nothing if fewer than two rank the features.

    `scores`: returns the feature scores of a map. `names`, `words`: of the features, as in `summary_html`.
    """
    counted = [scores(one) for id, one in explanations.items() if methods[id].family != BASELINE]
    baselines = [methods[id].title for id in explanations if methods[id].family == BASELINE]
    if sentence := summary_html(counted, names, unit, baselines, words):
        st.html(sentence)


def summary_html(
    maps: Sequence[FeatureScores],
    names: Sequence[str],
    unit: str,
    baselines: Sequence[str] = (),
    words: Sequence[str] = (),
) -> str:
    """HTML of the summary sentence, escaped; empty if fewer than two maps rank at least two features.

    `baselines`: titles of shown maps that are not among `maps`. `words`: for each feature the word that it is a piece
    of, or an empty string.
    """
    ranked = [scores for scores in maps if len(scores) > 1 and not is_constant(scores)]
    if len(ranked) < 2:
        return ""
    left_out = [escape(title) for title in baselines]
    if len(maps) > len(ranked):
        left_out.append(f"{count(len(maps) - len(ranked), 'method')} with equal scores")
    not_counted = f" Not counted: {', '.join(left_out)}." if left_out else ""
    quoted = [quoted_html(name, word) for name, word in zip(names, words or [""] * len(names), strict=True)]
    top, agreement = _describe_top(ranked, quoted, unit), describe_agreement(ranked)
    return f'<div class="xg"><p class="xg-summary">{top} {agreement}{not_counted}</p></div>'


def count_in_top(maps: Sequence[FeatureScores], k: int) -> list[int]:
    """Count, for each feature, the maps with it among their k highest scores; a tie across the limit never counts."""
    return [sum(int((scores >= scores[at]).sum()) <= k for scores in maps) for at in range(len(maps[0]))]


def describe_agreement(maps: Sequence[FeatureScores]) -> str:
    """Describe the median and range of Spearman's rho over all pairs of maps; each map must rank the features."""
    values = spearman_of_pairs(maps)
    median = float(np.median(values))
    level = next(word for bound, word in LEVELS if median < bound)
    if len(values) == 1:
        return f"Rankings {level}: Spearman ρ {hundredths(median)}."
    ends = f"{hundredths(min(values))} to {hundredths(max(values))}"
    return f"Rankings {level}: median ρ {hundredths(median)} ({len(values)} pairs: {ends})."


def _describe_top(maps: Sequence[FeatureScores], names: Sequence[str], unit: str) -> str:
    """Describe the feature that most maps rank in their top. `names`: of the features, as HTML."""
    n = len(names)
    k = min(TOP, max(1, n // TOP))
    counts = count_in_top(maps, k)
    two = len(maps) == 2
    if max(counts) < 2 and k == 1 and two:
        return f"The two methods do not rank the same {unit} first of {n} {plural(unit)}."
    if max(counts) < 2 and two:
        return f"The two methods share no {unit} in their top {k} of {n} {plural(unit)}."
    if max(counts) < 2 and k == 1:
        return f"No two methods rank the same {unit} first of {n} {plural(unit)}."
    if max(counts) < 2:
        return f"No {unit} is among the top {k} of {n} {plural(unit)} for more than one of {len(maps)} methods."
    leads = list(zip(counts, count_in_top(maps, 1), strict=True))  # more first places come first
    mean_rank = np.mean([average_ranks(scores) for scores in maps], axis=0)
    best, *others = sorted((at for at in range(n) if leads[at] == max(leads)), key=lambda at: -mean_rank[at])
    also = join_names([names[at] for at in others[:TOP]]) if others else ""
    more = f" and {len(others) - TOP} more" if len(others) > TOP else ""
    name = f"{names[best]}{f' (also {also}{more})' if others else ''}"
    number = max(counts)
    who = f"{number} of {len(maps)}" if number < len(maps) else "Both" if two else f"All {number}"
    if k == 1:
        return f"{who} methods rank {name} first of {n} {plural(unit)}."
    return f"{who} methods rank {name} in the top {k} of {n} {plural(unit)}."


@dataclass(frozen=True)
class QuestionPage:
    """The page whose maps are tested.

    `unit`: noun for the scored unit. `request`: returns the request of a method. `key`: returns the widget key of a
    control. `scores`: returns the unit scores of a map, in reading order.
    """

    page: str
    state: PageState
    words: QuestionWords
    unit: str
    request: Callable[[str], Request]
    key: Callable[[str], str]
    scores: Callable[[Explanation], Float[np.ndarray, "unit"]]


def question_section(page: QuestionPage, methods: Mapping[str, Explainer], maps: Maps, probe: Explanation) -> None:
    """Draw the toggle of the tests and, once it is on, the curves or the agreement of the maps."""
    if not page.state.methods:
        return
    titles = {id: method.title for id, method in methods.items()}
    st.subheader("Test the maps", anchor=False)
    if not st.toggle(
        f"{page.words.curves} and agreement of these methods", key=page.key("open.questions"), persist_state=PERSIST,
        help="Runs the model on request.",
    ):  # fmt: skip
        return
    if missing := [titles[id] for id in page.state.methods if id not in maps]:
        st.caption(f"Left out because they have no map (the reason is above): {', '.join(missing)}.")
    names = {"curves": page.words.curves, "agreement": "Agreement"}
    st.segmented_control(
        "Question", QUESTIONS, key=page.key("question"), required=True, format_func=names.__getitem__,
        persist_state=PERSIST,
    )  # fmt: skip
    if page.state.question == "curves":
        _draw_curves(page, maps, titles, probe)
    else:
        _draw_agreement(page, maps, titles)


def _draw_curves(page: QuestionPage, maps: Maps, titles: Mapping[str, str], probe: Explanation) -> None:
    if not maps:
        st.info("No method above has a map to test. Pick another method.")
        return
    st.selectbox(
        f"A removed {page.unit} is", list(page.words.removals), key=page.key("removal"),
        format_func=page.words.removals.__getitem__, width=320, persist_state=PERSIST,
    )  # fmt: skip
    try:
        curves = _compute_curves(page, _with_random(page, maps, titles))
    except Exception as error:
        show_error(describe_error(error))
        return
    example = page.request(PROBE).example
    target = explained_name(next(iter(maps.values())), example)
    _draw_charts(page, curves, titles, target, probe.prediction.regression)


def _with_random(page: QuestionPage, maps: Maps, titles: Mapping[str, str]) -> Sequence[str]:
    """Return the methods that have a map, and random for comparison unless it fails."""
    try:
        explain(page.request(PROBE))
    except Exception as error:
        show_note(f"Without {titles[PROBE]}: {describe_error(error)}")
        return tuple(maps)
    return tuple(dict.fromkeys((*maps, PROBE)))


def _compute_curves(page: QuestionPage, methods: Sequence[str]) -> Sequence[RemovalCurve]:
    progress = st.empty()

    def report(done: int, total: int, label: str) -> None:
        progress.progress(done / max(total, 1), f"{done} of {total} {label}")

    try:
        requests = [page.request(id) for id in methods]
        return faithfulness.removal_curves(requests, page.state.removal, report, unit=page.unit, ways=page.words.ways)
    finally:
        progress.empty()


def _draw_charts(
    page: QuestionPage, curves: Sequence[RemovalCurve], titles: Mapping[str, str], target: str, score: bool
) -> None:
    explained, ways = f"score {target}" if score else f"probability of {target}", page.words.ways
    columns = comparisons.LEGEND_COLUMNS if len(ways) == 1 else COLUMNS_OF_TWO
    for way, place in zip(ways, st.columns(len(ways), gap="medium"), strict=True):
        of_way = [one for one in curves if one.way == way]
        chart = comparisons.curves_chart(of_way, titles, explained, score, page.unit, columns, browser_theme())
        place.altair_chart(chart, key=f"{page.page}_{way}_chart")
    st.caption(_describe_curves(ways, page.unit, "score" if score else "probability", page.words.shortened))
    width = AREAS_WIDTH + AREA_WIDTH * len(ways)
    st.dataframe(comparisons.area_table(curves, titles), hide_index=True, width=width, key=f"{page.page}_areas")


def _describe_curves(ways: Sequence[str], unit: str, value: str, shortened: str) -> str:
    read = "".join(READINGS[way].format(unit=unit, units=plural(unit), value=value) for way in ways)
    return (
        f"{read}Random is a single random order, so a small difference from it means little, and {shortened} is unlike "
        f"what the model was trained on. {SOURCES[tuple(ways)]}"
    )


def _draw_agreement(page: QuestionPage, maps: Maps, titles: Mapping[str, str]) -> None:
    if len(maps) < 2:
        st.info("Pick at least two methods above to see whether they agree.")
        return
    st.segmented_control(
        "Measure", MEASURES, key=page.key("measure"), required=True, format_func=page.words.measures.__getitem__,
        persist_state=PERSIST,
    )  # fmt: skip
    try:
        result = agreement.agreement({id: page.scores(one) for id, one in maps.items()}, page.state.measure)
    except Exception as error:
        show_error(describe_error(error))
        return
    _draw_matrix(page, result, titles)
    st.caption(_describe_agreement(result.measure, result.k, result.n, page.unit))


def _draw_matrix(page: QuestionPage, result: Agreement, titles: Mapping[str, str]) -> None:
    figure = comparisons.agreement_figure(result, titles, browser_theme())
    st.plotly_chart(figure, key=f"{page.page}_agreement_chart")
    if result.constant:
        names = ", ".join(titles[id] for id in result.constant)
        st.html(
            f'<div class="xg"><p class="xg-small">No order, because all scores are equal: {escape(names)}.</p></div>'
        )


def _describe_agreement(measure: str, k: int, n: int, unit: str) -> str:
    if measure == "spearman":
        words = (
            f"Spearman's ρ of the {plural(unit)}' scores: +1 the same order, 0 no relation, −1 the reverse. "
            "Agreement is not correctness: two methods can share a mistake. "
        )
    else:
        words = (
            f"The share of the {k} highest-scored of {n} {plural(unit)} that both maps name; "
            f"about {100 * k / n:.0f}% by chance. {TIED} "
        )
    return words + (
        "Scores count with their sign: what speaks strongly against the class comes last on a signed map "
        "and may come first on an unsigned one."
    )
