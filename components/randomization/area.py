"""The Randomization page below its controls: the work, curves and verdicts of each model, one example, the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from components.compact import compact_css
from components.evaluate.controls import Places, say_beside
from components.evaluate.words import left_out_html
from components.kept import KEPT
from components.numbers import count
from components.picture.styles import use_picture_styles
from components.randomization.judged import verdicts_html
from components.randomization.keep import keep_area
from components.randomization.known import Held, Known, known, trouble_of
from components.randomization.look import LOOK, MEASURES, measures_of
from components.randomization.session import key, put
from components.randomization.stage import stage_area
from components.randomization.state import RandomizationState, plan_of
from components.randomization.words import APPLIES, CAUTION, NO_VERDICT, ZERO
from components.randomization.work import work_area
from components.trouble import literal, say_note, sentence
from engine.errors import ExegesisError
from engine.randomization.plan import MODES
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.randomization.curves import Curve
    from engine.randomization.result import OfModel

LAYOUT = Path(__file__).resolve().parent.parent / "assets" / "randomization.css"
EVERY = "All models"
Methods = Mapping[str, Explainer]


def randomization_area(state: RandomizationState, methods: Methods, places: Places) -> None:
    """What is wrong with what is asked, or what there is of it."""
    try:
        plan = plan_of(state, methods)
    except ExegesisError as error:
        say_beside(places, sentence(error))
        return
    if trouble := trouble_of(plan):
        say_beside(places, trouble)
        return
    try:
        seen = known(plan)
    except Exception as error:
        say_beside(places, sentence(error))
        return
    work_area(plan, seen)
    if seen.held.found:
        _found(state, seen, methods)


def _found(state: RandomizationState, seen: Known, methods: Methods) -> None:
    held, titles = seen.held, {id: method.title for id, method in methods.items()}
    use_picture_styles()
    st.html(f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>")
    st.caption(how(held))
    _view_controls(state, held, titles)
    _models(state, held, titles)
    _cautions(held)
    stage_area(state, seen, methods)
    _left_out(held, titles)
    keep_area(state, held, methods)


def how(held: Held) -> str:
    """How it was done, in one sentence of numbers and our own words."""
    plan, size = held.plan, max(len(one.examples) for one in held.found)
    return (
        f"{count(size, 'example')}, each part randomized {count(plan.seeds, 'time')}; means over examples with 95 % "
        "intervals, correlations over the tokens or patches of each."
    )


def _view_controls(state: RandomizationState, held: Held, titles: Mapping[str, str]) -> None:
    names = [one.model for one in held.found]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.segmented_control(
            "Measure", measures_of(state.kind), key=key(state.kind, f"{LOOK}measure"), required=True,
            format_func=MEASURES.__getitem__, persist_state=KEPT,
        )  # fmt: skip
        if len(names) > 1:
            _model_control(state, names)
        _methods_control(state, held, titles)


def _model_control(state: RandomizationState, names: list[str]) -> None:
    widget = key(state.kind, f"{LOOK}model")
    if st.session_state.get(widget) not in names:
        st.session_state[widget] = ""
    st.selectbox(
        "Models drawn", ["", *names], key=widget, format_func=lambda name: name or EVERY, width=280, persist_state=KEPT
    )


def _methods_control(state: RandomizationState, held: Held, titles: Mapping[str, str]) -> None:
    company, widget = list(held.plan.company), key(state.kind, "view.only")
    shown = [method for method in company if method in state.look.only] or company
    st.session_state[widget] = shown
    with st.popover(f"Methods drawn: {len(shown)} of {len(company)}", key=key(state.kind, "methods_drawn")):
        st.pills(
            "Methods drawn", company, selection_mode="multi", key=widget, persist_state=KEPT,
            format_func=lambda id: titles.get(id, id), on_change=_take_methods,
            args=(state.kind, widget, len(company)),
        )  # fmt: skip


def _take_methods(kind: str, widget: str, all: int) -> None:
    """All of them is nothing chosen, so that the link stays short."""
    wanted = list(st.session_state[widget])
    put(kind, f"{LOOK}only", [] if len(wanted) == all else wanted)


def _models(state: RandomizationState, held: Held, titles: Mapping[str, str]) -> None:
    """A row of charts and the verdicts for each model that is drawn, on the same axes."""
    from components.randomization.charts import span_of
    from engine.randomization.curves import curves_of

    names = [one.model for one in held.found]
    drawn = [one for one in held.found if state.look.model not in names or one.model == state.look.model]
    curves = {one.model: curves_of(one, held.plan.seed) for one in drawn}
    measured = (curve for own in curves.values() for curve in own if curve.metric == state.look.measure)
    span = span_of(measured)
    for one in drawn:
        _model(state, held, one, curves[one.model], titles, span)


def _model(
    state: RandomizationState, held: Held, found: OfModel, curves: list[Curve], titles: Mapping[str, str],
    span: tuple[float, float],
) -> None:  # fmt: skip
    from components.randomization.lines import panels_area
    from engine.randomization.verdict import verdicts

    st.markdown(f"**{literal(found.model)}**, {count(found.blocks, 'block')}")
    panels_area(state, held.plan, found, curves, titles, span)
    if MODES[0] not in held.plan.modes:
        say_note(NO_VERDICT)
        return
    judged = verdicts(found, held.plan.kind, held.plan.seed)
    st.html(verdicts_html(judged, titles, held.plan.kind, found.model))


def _cautions(held: Held) -> None:
    flat = any(why.startswith("its map of the model as it is") for one in held.found for why in one.reasons)
    st.caption(" ".join([CAUTION, APPLIES, *([ZERO] if flat else [])]))


def _left_out(held: Held, titles: Mapping[str, str]) -> None:
    """Examples that failed and maps without an order, counted with the reason."""
    lines = left_out(held.found, titles)
    if lines:
        with st.expander(f"Left out somewhere: {count(len(lines), 'reason')}", key="randomization.left_out"):
            st.html(left_out_html(lines))


def left_out(found: Sequence[OfModel], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """For each reason: how many examples or maps of each model, and by which methods."""
    lines = []
    for one in found:
        for why, number in Counter(one.failed.values()).items():
            lines.append((why, f"{count(number, 'example')} on {one.model}", "all methods"))
        for code, why in enumerate(one.reasons):
            hit = one.why == code
            of = ", ".join(titles.get(id, id) for at, id in enumerate(one.methods) if hit[:, :, at].any())
            lines.append((why, f"{count(int(hit.sum()), 'map')} on {one.model}", of))
    return lines
