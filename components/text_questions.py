"""Questions to the maps of one example: does the prediction fall when the top tokens go, and do the methods agree?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.engine_room import explain
from components.palette import Theme
from components.text_results import PROBE, request_for
from components.text_session import key
from components.text_state import MEASURES, QUESTIONS, TextState
from components.trouble import say_error, say_note, sentence
from engine.registry import Explainer
from engine.result import Explanation
from engine.words import unit_scores

if TYPE_CHECKING:
    from engine.metrics.agreement import Agreement
    from engine.metrics.curves import RemovalCurve

QUESTION_NAMES = {"curves": "Removal curves", "agreement": "Agreement"}
MEASURE_NAMES = {"spearman": "Rank correlation", "top_k": "Shared top tokens"}
REMOVAL_NAMES = {
    "mask": "the mask token in its place",
    "pad": "the padding token in its place",
    "delete": "hidden from attention",
    "zero": "a zero embedding in its place",
    "mean": "the mean embedding in its place",
}
Made = Mapping[str, Explanation]


def question_area(state: TextState, methods: Mapping[str, Explainer], made: Made, probe: Explanation) -> None:
    """Below the maps: removal curves or the agreement of the maps, computed only once it is asked for."""
    if not state.methods:
        return
    titles = {id: method.title for id, method in methods.items()}
    st.subheader("Question the maps", anchor=False)
    if not st.toggle(
        "Removal curves and agreement of these methods", key=key("open.questions"), help="Runs the model on request."
    ):
        return
    _left_out([titles[id] for id in state.methods if id not in made])
    st.segmented_control(
        "Question", QUESTIONS, key=key("question"), required=True, format_func=QUESTION_NAMES.__getitem__
    )
    if state.question == "curves":
        _curves(state, made, titles, probe)
    else:
        _agreement(state, made, titles)


def _left_out(titles: Sequence[str]) -> None:
    if titles:
        st.caption(f"Left out, because there is no map (its row above says why): {', '.join(titles)}.")


def _curves(state: TextState, made: Made, titles: Mapping[str, str], probe: Explanation) -> None:
    if not made:
        st.info("No method above has a map, so there is none to question. Pick another method.")
        return
    st.selectbox(
        f"A removed {state.unit} is", list(REMOVAL_NAMES), key=key("removal"),
        format_func=REMOVAL_NAMES.__getitem__, width=320,
    )  # fmt: skip
    try:
        curves = _measured(state, _with_random(state, made, titles))
    except Exception as error:
        say_error(sentence(error))
        return
    target = next(iter(made.values())).provenance.target_label
    _drawn(state.unit, curves, titles, target, probe.prediction.regression)


def _with_random(state: TextState, made: Made, titles: Mapping[str, str]) -> Sequence[str]:
    """The methods that have a map, and random: what the others are held against."""
    try:
        explain(request_for(state, PROBE))
    except Exception as error:
        say_note(f"Without {titles[PROBE]}: {sentence(error)}")
        return tuple(made)
    return tuple(dict.fromkeys((*made, PROBE)))


def _measured(state: TextState, methods: Sequence[str]) -> Sequence[RemovalCurve]:
    # Here and below: charts and metrics take long to import, and most visits ask for neither.
    from engine.metrics.curves import removal_curves

    progress = st.empty()

    def report(done: int, total: int, label: str) -> None:
        progress.progress(done / max(total, 1), f"{done} of {total} {label}")

    try:
        return removal_curves([request_for(state, id) for id in methods], state.removal, report, unit=state.unit)
    finally:
        progress.empty()


def _drawn(unit: str, curves: Sequence[RemovalCurve], titles: Mapping[str, str], target: str, score: bool) -> None:
    from components.charts import area_table, curves_chart

    explained = f"score {target}" if score else f"probability of {target}"
    st.altair_chart(curves_chart(curves, titles, explained, score, unit), key="text_curves_chart")
    st.caption(_of_curves(unit, "score" if score else "probability"))
    st.dataframe(area_table(curves, titles), hide_index=True, width=420, key="text_curves_areas")


def _of_curves(unit: str, value: str) -> str:
    return (
        f"How the {value} changes when the {unit}s that a map scores highest go first. A line that falls sooner than "
        f"Random names {unit}s that the model relies on; the lower the area, the sooner. "
        "Random is one order by chance, so a small difference from it says little, and a shortened text is unlike "
        "what the model was trained on. (Samek et al., 2017; DeYoung et al., 2020)"
    )


def _agreement(state: TextState, made: Made, titles: Mapping[str, str]) -> None:
    if len(made) < 2:
        st.info("Pick at least two methods above to see whether they agree.")
        return
    st.segmented_control("Measure", MEASURES, key=key("measure"), required=True, format_func=MEASURE_NAMES.__getitem__)
    try:
        found = _compared(state, made)
    except Exception as error:
        say_error(sentence(error))
        return
    _matrix(found, titles)
    st.caption(_of_agreement(found.measure, found.k, found.n, state.unit))


def _compared(state: TextState, made: Made) -> Agreement:
    from engine.metrics.agreement import agreement

    maps = {id: unit_scores(one, state.example, state.unit) for id, one in made.items()}
    return agreement(maps, state.measure, seed=(state.seed,))


def _matrix(found: Agreement, titles: Mapping[str, str]) -> None:
    from components.charts import agreement_figure

    st.plotly_chart(agreement_figure(found, titles, _theme()), key="text_agreement_chart")
    if found.constant:
        names = ", ".join(titles[id] for id in found.constant)
        st.html(
            f'<div class="xg"><p class="xg-small">No order, because all scores are equal: {escape(names)}.</p></div>'
        )


def _of_agreement(measure: str, k: int, n: int, unit: str) -> str:
    if measure == "spearman":
        words = (
            f"Spearman's ρ of the {unit}s' scores: +1 the same order, 0 no relation, −1 the reverse. "
            "Agreement is not correctness: two methods can share a mistake. "
        )
    else:
        words = (
            f"The share of the {k} highest-scored of {n} {unit}s that both maps name; "
            f"about {100 * k / n:.0f} % by chance. "
        )
    return words + (
        "Scores count with their sign: what speaks strongly against the class comes last on a signed map "
        "and may come first on an unsigned one."
    )


def _theme() -> Theme:
    """The theme that the browser told; light until it has."""
    return "dark" if st.context.theme.type == "dark" else "light"
