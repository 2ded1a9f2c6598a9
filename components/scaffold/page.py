"""The Scaffold page: controls, job, simulability chart and table, learning curves, learned explainer, and files."""

from __future__ import annotations

from html import escape

import streamlit as st

from components.errors import describe_error, show_error, show_note
from components.numbers import count
from components.palette import browser_theme
from components.scaffold import controls
from components.scaffold.charts import answer_html, exceptions_of, lines_of, table_html
from components.scaffold.controls import key, plan_controls, view_choice
from components.scaffold.export import curves_files, draw_chart, explainer_area, export_area, simulability_files
from components.scaffold.guide import open_guide
from components.scaffold.page_texts import (
    ABOUT,
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
    TITLE,
    about_html,
)
from components.scaffold.runs import ScaffoldStatus, status_of, students_in_training, work_area
from components.scaffold.sections import sections_area
from components.scaffold.state import GUIDE, ScaffoldState, plan_of
from components.styles import use_sheet
from engine.scaffold.plan import NONE, SETTINGS, SMAT, check
from engine.scaffold.result import ScaffoldResult

FEWEST_SEEDS = 3
"""Seeds below which quartiles are unreliable."""


def scaffold_page() -> None:
    """Draw the page below its title."""
    kind = controls.INPUT_KIND.chosen()
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with line:
        controls.INPUT_KIND.switch()
    guided = GUIDE in st.query_params
    loaded, errors = controls.load(kind)
    plan_controls(kind, line)
    state, wrong = controls.from_widgets(loaded)
    controls.save(state, loaded)
    if guided:
        st.query_params.pop(GUIDE, None)
        open_guide(state.teacher)
    for error in [*errors, *wrong]:
        show_error(error)
    _plan_area(state)
    with st.expander(TITLE, key=key(state.kind, "about")):
        st.markdown(ABOUT)
        st.html(about_html(browser_theme()))


def _plan_area(state: ScaffoldState) -> None:
    """Draw the results of the plan, or the error that it has."""
    use_sheet("scaffold")
    try:
        plan = plan_of(state)
        check(plan)
        status = status_of(plan)
    except Exception as error:
        show_error(describe_error(error))
        return
    work_area(status)
    if status.result.students:
        _simulability_area(state, status.result)
        explainer_area(status.result, max(one.run.train_size for one in status.result.students))
        size = _curves_area(state, status)
        sections_area(status.result, size)
        export_area(status.result, size)


def _simulability_area(state: ScaffoldState, result: ScaffoldResult) -> None:
    st.html(answer_html(result))
    draw_chart(simulability_files(result), " ".join([METRIC_HELP[result.metric], READS, SOURCE]))
    st.html(table_html(result))
    has_baseline = any(result.cell(NONE, size) for size in result.plan.train_sizes)
    few = [FEW] if len(result.plan.seeds) < FEWEST_SEEDS else []
    st.caption(" ".join([MARKS if has_baseline else NO_BASELINE, *few, CAUTION]))
    if exceptions := exceptions_of(result):
        items = "".join(f"<li>{escape(one)}</li>" for one in exceptions)
        title = f"Students that did not learn as planned ({len(exceptions)})"
        with st.expander(title, key=key(state.kind, "told")):
            st.html(f'<div class="xg"><ul class="xg-told xg-small">{items}</ul></div>')


def _curves_area(state: ScaffoldState, status: ScaffoldStatus) -> int:
    """Draw the learning curves. Returns their train size, which the sections below use too."""
    result = status.result
    sizes = {size: f"{size:,}" for size in sorted({one.run.train_size for one in result.students})}
    st.subheader("Learning curves", anchor=False)
    st.caption(CURVES)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        size = view_choice(state, "Train size", "size", sizes, max(sizes)) if len(sizes) > 1 else max(sizes)
        settings = {one: SETTING_TITLES[one] for one in SETTINGS if one in result.plan.settings}
        setting = view_choice(state, "Setting", "curve", settings, SMAT if SMAT in settings else next(iter(settings)))
        measures = {name: title for name, title in MEASURES.items() if name != "outer" or setting == SMAT}
        measure = view_choice(state, "Measure", "measure", measures, "validation", MEASURE_HELP)
    in_training = students_in_training(status.store) if status.running else {}
    lines = lines_of(result, setting, size, measure, in_training)
    if lines:
        draw_chart(curves_files(result, setting, size, measure, lines))
    else:
        show_note(f"{SETTING_TITLES[setting]}, {count(size, 'example')}: no student has finished a pass yet.")
    return size
