"""The Scaffold page below its controls: the work, simulability as chart and table, curves, what was learned, files."""

from __future__ import annotations

from html import escape
from pathlib import Path

import streamlit as st

from components.compact import compact_css
from components.experiment.controls import Places
from components.numbers import count
from components.scaffold.about import TITLE, about_html
from components.scaffold.charted import Chart, draw
from components.scaffold.choose import one_of
from components.scaffold.controls import finished_buttons, say_beside
from components.scaffold.keep import keep_area
from components.scaffold.known import Known, known, learning, trouble_of
from components.scaffold.session import key
from components.scaffold.state import ScaffoldState, plan_of
from components.scaffold.table import table_html, told_of
from components.scaffold.words import (
    CAUTION,
    CURVES,
    FEW,
    MARKS,
    MEASURE_HELP,
    MEASURES,
    METRIC_HELP,
    NO_BASELINE,
    READS,
    SETTING_TITLES,
    SOURCE,
)
from components.scaffold.work import work_area
from components.theme import shown_theme
from components.trouble import say_note, sentence
from engine.errors import ExegesisError
from engine.scaffold.plan import NONE, SETTINGS, SMAT
from engine.scaffold.result import Scaffold

LAYOUT = Path(__file__).resolve().parent.parent / "assets" / "scaffold.css"
ENOUGH = 3
"""Seeds from which quartiles say something."""


def scaffold_area(state: ScaffoldState, places: Places) -> None:
    """What is wrong with what is asked, or what there is of it."""
    st.html(f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>")
    finished_buttons(state)
    with st.expander(TITLE, key=key(state.kind, "about")):
        st.html(about_html(shown_theme()))
    try:
        plan = plan_of(state)
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
    work_area(seen)
    if seen.found.outcomes:
        _found(state, seen)


def _found(state: ScaffoldState, seen: Known) -> None:
    found = seen.found
    _simulability(state, found)
    size = _curves(state, seen)
    # Here and not above: it draws with what reads models' files.
    from components.scaffold.sections import sections_area

    sections_area(found, size)
    keep_area(state, found, size)


def _simulability(state: ScaffoldState, found: Scaffold) -> None:
    st.subheader("How well students foresee the teacher", anchor=False)
    st.caption(" ".join([METRIC_HELP[found.metric], READS, SOURCE]))
    draw(Chart(state, found))
    st.html(table_html(found))
    has_base = any(found.cell(NONE, size) for size in found.plan.train_sizes)
    few = [FEW] if len(found.plan.seeds) < ENOUGH else []
    st.caption(" ".join([MARKS if has_base else NO_BASELINE, *few, CAUTION]))
    if told := told_of(found):
        items = "".join(f"<li>{escape(one)}</li>" for one in told)
        with st.expander(f"Students that did not learn: {count(len(told), 'remark')}", key=key(state.kind, "told")):
            st.html(f'<div class="xg"><ul class="xg-told xg-small">{items}</ul></div>')


def _curves(state: ScaffoldState, seen: Known) -> int:
    """Draws the curves. Returns the train size of them and of all that is below."""
    from components.scaffold.charted import Curves

    found, plan = seen.found, seen.found.plan
    sizes = {size: f"{size:,}" for size in sorted({one.pupil.train_size for one in found.outcomes})}
    st.subheader("Learning curves", anchor=False)
    st.caption(CURVES)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        size = one_of(state, "Train size", "size", sizes, max(sizes)) if len(sizes) > 1 else max(sizes)
        there = {one: SETTING_TITLES[one] for one in SETTINGS if one in plan.settings}
        setting = one_of(state, "Setting", "curve", there, SMAT if SMAT in there else next(iter(there)))
        measures = {name: title for name, title in MEASURES.items() if name != "outer" or setting == SMAT}
        measure = one_of(state, "Measure", "measure", measures, "validation", MEASURE_HELP)
    curves = Curves(state, found, setting, size, measure, learning(seen.keys) if seen.running else {})
    if curves.lines:
        draw(curves)
    else:
        say_note(f"No student of {SETTING_TITLES[setting]} with {count(size, 'example')} has a pass yet.")
    return size
