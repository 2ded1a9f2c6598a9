"""Questions to the maps of one example: does the prediction follow what they score highest, and do they agree?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import streamlit as st
from jaxtyping import Float

from components.engine_room import explain
from components.kept import KEPT
from components.prediction_area import PROBE
from components.question_words import MEASURES, QUESTIONS, TIED, QuestionWords, plural
from components.theme import shown_theme
from components.trouble import say_error, say_note, sentence
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation

if TYPE_CHECKING:
    from engine.metrics.agreement import Agreement
    from engine.metrics.faithfulness import RemovalCurve

COLUMNS_OF_TWO = 2
"""Columns of the legend where two charts stand side by side."""
AREAS_WIDTH, AREA_WIDTH = 220, 200
"""Width of the table of areas in pixels: of its methods, and of each area."""
READINGS = {
    "deletion": (
        "How the {value} changes when the {units} that a map scores highest go first. A line that falls sooner than "
        "Random names {units} that the model relies on; the lower the area, the sooner. "
    ),
    "insertion": (
        "Insertion starts with every {unit} removed and brings those scored highest back first: a line that rises "
        "sooner than Random names {units} that are enough for the model; the higher the area, the sooner. "
    ),
}
SOURCES = {
    ("deletion",): "(Samek et al., 2017; DeYoung et al., 2020)",
    ("deletion", "insertion"): "(Samek et al., 2017; Petsiuk et al., 2018; DeYoung et al., 2020)",
}
Made = Mapping[str, Explanation]


@runtime_checkable
class Choices(Protocol):
    """What the page's state holds of it."""

    @property
    def methods(self) -> tuple[str, ...]: ...
    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def removal(self) -> str: ...
    @property
    def measure(self) -> str: ...


@dataclass(frozen=True)
class Questioned:
    """The page that asks. `unit`: what is scored; `request`: what to compute for a method; `key`: of its widgets.

    `scores`: those of a map's units, in reading order.
    """

    page: str
    state: Choices
    words: QuestionWords
    unit: str
    request: Callable[[str], Request]
    key: Callable[[str], str]
    scores: Callable[[Explanation], Float[np.ndarray, "unit"]]


def questions(page: Questioned, methods: Mapping[str, Explainer], made: Made, probe: Explanation) -> None:
    """Curves or the agreement of the maps, computed only once it is asked for."""
    if not page.state.methods:
        return
    titles = {id: method.title for id, method in methods.items()}
    st.subheader("Question the maps", anchor=False)
    if not st.toggle(
        f"{page.words.curves} and agreement of these methods", key=page.key("open.questions"), persist_state=KEPT,
        help="Runs the model on request.",
    ):  # fmt: skip
        return
    _left_out([titles[id] for id in page.state.methods if id not in made])
    names = {"curves": page.words.curves, "agreement": "Agreement"}
    st.segmented_control(
        "Question", QUESTIONS, key=page.key("question"), required=True, format_func=names.__getitem__,
        persist_state=KEPT,
    )  # fmt: skip
    if page.state.question == "curves":
        _curves(page, made, titles, probe)
    else:
        _agreement(page, made, titles)


def _left_out(titles: Sequence[str]) -> None:
    if titles:
        st.caption(f"Left out, because there is no map (above it says why): {', '.join(titles)}.")


def _curves(page: Questioned, made: Made, titles: Mapping[str, str], probe: Explanation) -> None:
    if not made:
        st.info("No method above has a map, so there is none to question. Pick another method.")
        return
    st.selectbox(
        f"A removed {page.unit} is", list(page.words.removals), key=page.key("removal"),
        format_func=page.words.removals.__getitem__, width=320, persist_state=KEPT,
    )  # fmt: skip
    try:
        curves = _measured(page, _with_random(page, made, titles))
    except Exception as error:
        say_error(sentence(error))
        return
    target = next(iter(made.values())).provenance.target_label
    _drawn(page, curves, titles, target, probe.prediction.regression)


def _with_random(page: Questioned, made: Made, titles: Mapping[str, str]) -> Sequence[str]:
    """The methods that have a map, and random: what the others are held against."""
    try:
        explain(page.request(PROBE))
    except Exception as error:
        say_note(f"Without {titles[PROBE]}: {sentence(error)}")
        return tuple(made)
    return tuple(dict.fromkeys((*made, PROBE)))


def _measured(page: Questioned, methods: Sequence[str]) -> Sequence[RemovalCurve]:
    # Here and below: charts and metrics take long to import, and most visits ask for neither.
    from engine.metrics.faithfulness import removal_curves

    progress = st.empty()

    def report(done: int, total: int, label: str) -> None:
        progress.progress(done / max(total, 1), f"{done} of {total} {label}")

    try:
        asked = [page.request(id) for id in methods]
        return removal_curves(asked, page.state.removal, report, unit=page.unit, ways=page.words.ways)
    finally:
        progress.empty()


def _drawn(
    page: Questioned, curves: Sequence[RemovalCurve], titles: Mapping[str, str], target: str, score: bool
) -> None:
    from components.charts.comparisons import LEGEND_COLUMNS, area_table, curves_chart

    explained, ways = f"score {target}" if score else f"probability of {target}", page.words.ways
    columns = LEGEND_COLUMNS if len(ways) == 1 else COLUMNS_OF_TWO
    for way, place in zip(ways, st.columns(len(ways), gap="medium"), strict=True):
        drawn = [one for one in curves if one.way == way]
        chart = curves_chart(drawn, titles, explained, score, page.unit, columns, shown_theme())
        place.altair_chart(chart, key=f"{page.page}_{way}_chart")
    st.caption(_of_curves(ways, page.unit, "score" if score else "probability", page.words.shortened))
    width = AREAS_WIDTH + AREA_WIDTH * len(ways)
    st.dataframe(area_table(curves, titles), hide_index=True, width=width, key=f"{page.page}_areas")


def _of_curves(ways: Sequence[str], unit: str, value: str, shortened: str) -> str:
    read = "".join(READINGS[way].format(unit=unit, units=plural(unit), value=value) for way in ways)
    return (
        f"{read}Random is one order by chance, so a small difference from it says little, and {shortened} is unlike "
        f"what the model was trained on. {SOURCES[tuple(ways)]}"
    )


def _agreement(page: Questioned, made: Made, titles: Mapping[str, str]) -> None:
    if len(made) < 2:
        st.info("Pick at least two methods above to see whether they agree.")
        return
    st.segmented_control(
        "Measure", MEASURES, key=page.key("measure"), required=True, format_func=page.words.measures.__getitem__,
        persist_state=KEPT,
    )  # fmt: skip
    try:
        found = _compared(page, made)
    except Exception as error:
        say_error(sentence(error))
        return
    _matrix(page, found, titles)
    st.caption(_of_agreement(found.measure, found.k, found.n, page.unit))


def _compared(page: Questioned, made: Made) -> Agreement:
    from engine.metrics.agreement import agreement

    maps = {id: page.scores(one) for id, one in made.items()}
    return agreement(maps, page.state.measure)


def _matrix(page: Questioned, found: Agreement, titles: Mapping[str, str]) -> None:
    from components.charts.comparisons import agreement_figure

    st.plotly_chart(agreement_figure(found, titles, shown_theme()), key=f"{page.page}_agreement_chart")
    if found.constant:
        names = ", ".join(titles[id] for id in found.constant)
        st.html(
            f'<div class="xg"><p class="xg-small">No order, because all scores are equal: {escape(names)}.</p></div>'
        )


def _of_agreement(measure: str, k: int, n: int, unit: str) -> str:
    if measure == "spearman":
        words = (
            f"Spearman's ρ of the {plural(unit)}' scores: +1 the same order, 0 no relation, −1 the reverse. "
            "Agreement is not correctness: two methods can share a mistake. "
        )
    else:
        words = (
            f"The share of the {k} highest-scored of {n} {plural(unit)} that both maps name; "
            f"about {100 * k / n:.0f} % by chance. {TIED} "
        )
    return words + (
        "Scores count with their sign: what speaks strongly against the class comes last on a signed map "
        "and may come first on an unsigned one."
    )
