"""Questions to the maps of one example: does the prediction fall when the top tokens go, and do the methods agree?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import streamlit as st

from components.engine_room import explain
from components.palette import Theme
from components.text_results import PROBE, request_for
from components.text_session import key
from components.text_state import TextState
from components.trouble import sentence
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation
from engine.words import UNITS, units

MEASURE_NAMES = {"spearman": "Rank correlation", "top_k": "Shared top tokens"}
REMOVAL_NAMES = {
    "mask": "the mask token in its place",
    "pad": "the padding token in its place",
    "delete": "hidden from attention",
    "zero": "a zero embedding in its place",
    "mean": "the mean embedding in its place",
}
Made = dict[str, Explanation]


def question_area(state: TextState, methods: Mapping[str, Explainer], probe: Explanation) -> None:
    """Below the maps: removal curves and agreement, computed only once they are asked for."""
    if not state.methods:
        return
    titles = {id: method.title for id, method in methods.items()}
    st.subheader("Question the maps", anchor=False)
    if not st.toggle(
        "Removal curves and agreement of these methods", key=key("open.questions"), help="Runs the model on request."
    ):
        return
    made, failed = _maps(state)
    if failed:
        left = ", ".join(titles[id] for id in failed)
        st.caption(f"Left out, because there is no map (its row above says why): {left}.")
    curves, agreement = st.tabs(["Removal curves", "Agreement"])
    with curves:
        _curves(state, made, titles, probe)
    with agreement:
        _agreement(state, {id: made[id] for id in made if id in state.methods}, titles)


def _maps(state: TextState) -> tuple[Made, list[str]]:
    """The maps of the chosen methods and of random, and the methods that have none."""
    made: Made = {}
    failed = []
    for id in dict.fromkeys((*state.methods, PROBE)):
        try:
            made[id] = explain(request_for(state, id))
        except Exception:
            failed.append(id)
    return made, failed


def _curves(state: TextState, made: Made, titles: Mapping[str, str], probe: Explanation) -> None:
    # Here and below: charts and metrics take long to import, and most visits ask for neither.
    from components.charts import area_table, curves_chart
    from engine.metrics.curves import removal_curves

    st.selectbox(
        f"A removed {state.unit} is",
        list(REMOVAL_NAMES),
        key=key("removal"),
        format_func=REMOVAL_NAMES.__getitem__,
        width=320,
    )
    progress = st.empty()

    def report(done: int, total: int, label: str) -> None:
        progress.progress(done / max(total, 1), f"{done} of {total} {label}")

    try:
        requests: Sequence[Request] = [request_for(state, id) for id in made]
        curves = removal_curves(requests, state.removal, report, unit=state.unit)
    except Exception as error:
        st.error(sentence(error))
        return
    finally:
        progress.empty()
    score = probe.prediction.regression
    target = next(iter(made.values())).provenance.target_label
    explained = f"score {target}" if score else f"probability of {target}"
    st.altair_chart(curves_chart(curves, titles, explained, score, state.unit), key="text_curves_chart")
    st.caption(
        f"How the {'score' if score else 'probability'} changes when the {state.unit}s that a map scores highest go "
        f"first. A line that falls sooner than Random names {state.unit}s that the model relies on; the lower the "
        "area, the sooner. "
        "Random is one order by chance, so a small difference from it says little, and a shortened text is unlike "
        "what the model was trained on. "
        "(Samek et al., 2017; DeYoung et al., 2020)"
    )
    st.dataframe(area_table(curves, titles), hide_index=True, width=420, key="text_curves_areas")


def _agreement(state: TextState, made: Made, titles: Mapping[str, str]) -> None:
    from components.charts import agreement_figure
    from engine.metrics.agreement import MEASURES, agreement

    if len(made) < 2:
        st.info("Pick at least two methods above to see whether they agree.")
        return
    st.segmented_control(
        "Measure", list(MEASURES), key=key("measure"), required=True, format_func=MEASURE_NAMES.__getitem__
    )
    maps = {id: _unit_scores(state, one) for id, one in made.items()}
    try:
        found = agreement(maps, state.measure, seed=(state.seed,))
    except Exception as error:
        st.error(sentence(error))
        return
    st.plotly_chart(agreement_figure(found, titles, _theme()), key="text_agreement_chart")
    if found.constant:
        names = ", ".join(titles[id] for id in found.constant)
        st.html(
            f'<div class="xg"><p class="xg-small">No order, because all scores are equal: {escape(names)}.</p></div>'
        )
    st.caption(_meaning(found.measure, found.k, found.n, state.unit))


def _unit_scores(state: TextState, made: Explanation) -> np.ndarray:
    """A score for each unit that is ranked: the page's tokens or words."""
    if state.unit == UNITS[0]:
        return made.scores[made.features]
    drawn = units(made.tokens, made.scores, state.example, state.unit)
    return np.array([unit.score for unit in drawn if not unit.special])


def _meaning(measure: str, k: int, n: int, unit: str) -> str:
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
